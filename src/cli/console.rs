//! `oddsbox console`: sign-in links of the web console.

use std::process::ExitCode;

use clap::Args;

use super::invocation::Invocation;
use crate::admin::{Access, Command, ConsoleAnswer, SignedOutAnswer};

/// Print a link to the console that works once, within 5 minutes
///
/// Safe on a running server, and needs one with `[console] listen` set; `--sign-out` works without one as well. The audit
/// log records actions in the console under the name of the user who ran this command.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  oddsbox console
  oddsbox console --sign-out")]
pub(super) struct ConsoleArgs {
    /// End all console sessions and invalidate all links
    #[arg(long)]
    sign_out: bool,
}

impl ConsoleArgs {
    pub(super) fn run(self, invocation: &Invocation) -> anyhow::Result<ExitCode> {
        if self.sign_out {
            let answer: SignedOutAnswer = invocation.ask(Access::Existing, Command::ConsoleSignOut)?;
            invocation.output.answer(&answer, |_| format!("Signed out: {} sessions ended.\n", answer.sessions))?;
        } else {
            let answer: ConsoleAnswer = invocation.ask(Access::Existing, Command::ConsoleLink)?;
            invocation.output.answer(&answer, |_| format!("{}\n", answer.url.expose()))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
