//! What the program says about itself: its interface, its completions, its manual.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::output;
use super::session::Session;

/// Print the `openapi.json` of the public interface
///
/// Needs no server and no data.
#[derive(Debug, Args)]
pub(super) struct Openapi {}

impl Openapi {
    pub(super) fn run() -> anyhow::Result<ExitCode> {
        output::text(crate::http::OPENAPI)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Print a completion script for a shell
///
/// Needs no server and no data.
#[derive(Debug, Args)]
pub(super) struct Completions {
    shell: Shell,
}

impl Completions {
    pub(super) fn run(self, session: &Session) -> anyhow::Result<ExitCode> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut super::Cli::command(), "oddsbox", &mut script);
        let script = String::from_utf8(script)?;
        let document = serde_json::json!({ "shell": self.shell.to_string(), "script": script });
        session.output.answer(&document, |_| script.clone())?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Write manual pages, one for each command
///
/// Needs no server and no data.
#[derive(Debug, Args)]
pub(super) struct Man {
    /// The directory to write them to; made if it is missing
    dir: PathBuf,
}

impl Man {
    pub(super) fn run(self, session: &Session) -> anyhow::Result<ExitCode> {
        let dir = self.dir.display().to_string();
        let written = std::fs::create_dir_all(&self.dir)
            .and_then(|()| clap_mangen::generate_to(super::Cli::command(), &self.dir));
        written.map_err(|error| anyhow::anyhow!("{dir} cannot be written to ({error}): name another directory"))?;
        let answer = serde_json::json!({ "directory": dir });
        session.output.answer(&answer, |_| format!("The manual is in {dir}: try `man -l {dir}/oddsbox.1`.\n"))?;
        Ok(ExitCode::SUCCESS)
    }
}
