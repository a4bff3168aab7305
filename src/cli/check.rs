//! `oddsbox check`: verifies the file.

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::Args;

use super::invocation::Invocation;
use crate::admin::{Access, CheckAnswer, CheckOptions, Command};

/// Verify every record and index, and say what to do about problems
///
/// Safe on a running server: requests and changes continue. The pages of the database are verified only if no server
/// runs, or with --pages.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  oddsbox check
  oddsbox check --pages
  oddsbox check --drop-damaged")]
pub(super) struct CheckArgs {
    /// Also verify the pages of the database while a server runs; changes wait until it is done
    #[arg(long)]
    pages: bool,
    /// Remove damaged rows after making a copy; refuses while a server runs
    #[arg(long)]
    drop_damaged: bool,
}

impl CheckArgs {
    pub(super) fn run(self, invocation: &Invocation) -> anyhow::Result<ExitCode> {
        let options = CheckOptions { pages: self.pages, drop_damaged: self.drop_damaged };
        let report: CheckAnswer = invocation.ask_with_progress(Access::Damaged, Command::Check(options))?;
        invocation.output.answer(&report, |_| shown(&report))?;
        if !report.clean && report.dropped.is_none() {
            anyhow::bail!("{}", report.advice.as_deref().unwrap_or("the file is damaged: restore a backup"));
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
        let _ = writeln!(text, "database pages: {detail}");
    }
    let rows: u64 = report.rows.values().sum();
    let _ = writeln!(text, "{rows} rows read, {} problems, pages {}", report.problem_count, report.integrity);
    if let Some(dropped) = &report.dropped {
        let copy = dropped.copy.display();
        let _ = writeln!(text, "{} damaged rows were removed; the original file is kept as {copy}", dropped.rows);
    }
    text
}
