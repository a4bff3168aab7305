//! `oddsbox console`: the way into the operator's dashboard.

use std::process::ExitCode;

use clap::Args;

use super::session::Session;
use crate::admin::{Access, Command, ConsoleAnswer, SignedOutAnswer};

/// Print a link that opens the console once, within 5 minutes
///
/// Safe on a running server, which must have `[console] listen` set. What is done in the console stands in the audit
/// log under the name of whoever ran this.
#[derive(Debug, Args)]
pub(super) struct Console {
    /// End every session of the console, and every link
    #[arg(long)]
    sign_out: bool,
}

impl Console {
    pub(super) fn run(self, session: &Session) -> anyhow::Result<ExitCode> {
        if self.sign_out {
            let answer: SignedOutAnswer = session.ask(Access::Existing, Command::ConsoleSignOut)?;
            session.output.answer(&answer, |_| format!("Signed out: {} sessions ended.\n", answer.sessions))?;
        } else {
            let answer: ConsoleAnswer = session.ask(Access::Existing, Command::ConsoleLink)?;
            session.output.answer(&answer, |_| format!("{}\n", answer.url.expose()))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
