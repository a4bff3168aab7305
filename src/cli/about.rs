//! `oddsbox openapi`, `completions` and `man`: generated documentation.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, CommandFactory, ValueHint};
use clap_complete::Shell;
use clap_mangen::roff::{Roff, bold, roman};

use super::invocation::Invocation;
use super::output;

/// Print the `openapi.json` of the public API
///
/// Needs no server and no data.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  oddsbox openapi > openapi.json")]
pub(super) struct OpenapiArgs {}

impl OpenapiArgs {
    pub(super) fn run() -> anyhow::Result<ExitCode> {
        output::text(crate::http::OPENAPI)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Print a completion script for a shell
///
/// Needs no server and no data.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  oddsbox completions bash > ~/.local/share/bash-completion/completions/oddsbox
  oddsbox completions zsh > ~/.zfunc/_oddsbox")]
pub(super) struct CompletionsArgs {
    shell: Shell,
}

impl CompletionsArgs {
    pub(super) fn run(self, invocation: &Invocation) -> anyhow::Result<ExitCode> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut super::Cli::command(), "oddsbox", &mut script);
        let script = String::from_utf8(script)?;
        let document = serde_json::json!({ "shell": self.shell.to_string(), "script": script });
        invocation.output.answer(&document, |_| script.clone())?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Write manual pages, one per command
///
/// Needs no server and no data.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  oddsbox man ~/.local/share/man/man1")]
pub(super) struct ManArgs {
    /// Directory to write to; created if it does not exist
    #[arg(value_hint = ValueHint::DirPath)]
    dir: PathBuf,
}

impl ManArgs {
    pub(super) fn run(self, invocation: &Invocation) -> anyhow::Result<ExitCode> {
        let dir = self.dir.display().to_string();
        let mut command = super::Cli::command().disable_help_subcommand(true);
        command.build();
        let written = std::fs::create_dir_all(&self.dir).and_then(|()| write_pages(&command, &self.dir));
        written.map_err(|error| anyhow::anyhow!("cannot write to {dir}: {error}; name another directory"))?;
        let answer = serde_json::json!({ "directory": dir });
        invocation.output.answer(&answer, |_| format!("The manual is in {dir}: try `man -l {dir}/oddsbox.1`.\n"))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Writes the pages of a command and its subcommands.
pub(super) fn write_pages(command: &clap::Command, dir: &Path) -> io::Result<()> {
    for command in command.get_subcommands() {
        write_pages(command, dir)?;
    }
    let source = concat!("oddsbox ", env!("CARGO_PKG_VERSION"));
    // The examples get a section with their own name.
    let examples = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
    let command = command.clone().after_long_help(None::<&'static str>);
    let page = clap_mangen::Man::new(command).source(source).manual("oddsbox manual");
    let mut text = Vec::new();
    page.render(&mut text)?;
    examples_section(&examples).to_writer(&mut text)?;
    common_sections().to_writer(&mut text)?;
    std::fs::write(dir.join(page.get_filename()), text)
}

/// The examples of a command's help, as they are laid out there.
fn examples_section(help: &str) -> Roff {
    let mut page = Roff::new();
    let lines: Vec<&str> = help.lines().skip(1).map(str::trim).collect();
    if !lines.is_empty() {
        page.control("SH", ["EXAMPLES"]).control("nf", []);
        for line in lines {
            page.text([roman(line)]);
        }
        page.control("fi", []);
    }
    page
}

/// The sections that are the same on every page and that clap does not generate.
fn common_sections() -> Roff {
    let mut page = Roff::new();
    page.control("SH", ["EXIT STATUS"]);
    for (code, meaning) in [
        ("0", "success"),
        ("1", "failure; one line on standard error says why"),
        ("2", "wrong usage"),
        ("130", "an ingest was interrupted; one line on standard error says what was kept"),
    ] {
        page.control("TP", ["4"]).text([bold(code)]).text([roman(meaning)]);
    }
    page.control("SH", ["ENVIRONMENT"]);
    page.text([roman("Every setting of the configuration file is also an environment variable: "), bold("refresh")]);
    page.text([roman("is "), bold("ODDSBOX_REFRESH"), roman(". "), bold("oddsbox config show"), roman(" lists them.")]);
    page.text([bold("NO_COLOR"), roman(" is honoured.")]);
    page
}
