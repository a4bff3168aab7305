//! `oddsbox check`: whether the file is what it should be.

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::Args;

use super::session::Session;
use crate::admin::{Access, CheckAnswer, CheckOptions, Command};

/// Read every record and index; say what is wrong and what to do
///
/// Safe on a running server: requests and changes go on. The database's own pages are checked when no server runs, or
/// with --pages.
#[derive(Debug, Args)]
pub(super) struct Check {
    /// Check the database's own pages too while a server runs; changes wait until it is done
    #[arg(long)]
    pages: bool,
    /// Take out what is damaged, after a copy was made; refused while a server runs
    #[arg(long)]
    drop_damaged: bool,
}

impl Check {
    pub(super) fn run(self, session: &Session) -> anyhow::Result<ExitCode> {
        let options = CheckOptions { pages: self.pages, drop_damaged: self.drop_damaged };
        let report: CheckAnswer = session.ask_watching(Access::Damaged, Command::Check(options))?;
        session.output.answer(&report, |_| shown(&report))?;
        if !report.clean && report.dropped.is_none() {
            anyhow::bail!("{}", report.advice.as_deref().unwrap_or("the file is not sound: restore a backup"));
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn shown(report: &CheckAnswer) -> String {
    let mut text = String::new();
    for problem in &report.problems {
        let _ = writeln!(text, "{}, {}: {}", problem.table, problem.key, problem.reason);
    }
    if let Some(detail) = &report.integrity_detail {
        let _ = writeln!(text, "the database itself: {detail}");
    }
    let rows: u64 = report.rows.values().sum();
    let _ = writeln!(text, "{rows} rows read, {} problems, pages {}", report.problem_count, report.integrity);
    if let Some(dropped) = &report.dropped {
        let copy = dropped.copy.display();
        let _ = writeln!(text, "{} damaged rows were taken out; the file as it was is {copy}", dropped.rows);
    }
    text
}
