//! `oddsbox check`: whether the file is what it should be.

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::Args;

use super::session::Session;
use crate::admin::{Access, CheckAnswer, Command};

/// Read every record and index; say what is wrong and what to do
///
/// Safe on a running server: requests go on, changes wait until it is done.
#[derive(Debug, Args)]
pub(super) struct Check {}

impl Check {
    pub(super) fn run(session: &Session) -> anyhow::Result<ExitCode> {
        let report: CheckAnswer = session.ask(Access::Existing, Command::Check)?;
        session.output.answer(&report, |_| shown(&report))?;
        if !report.clean {
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
    text
}
