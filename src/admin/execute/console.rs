//! Commands about the console.

use super::super::console::ConsoleSessions;
use super::super::context::Context;
use super::super::protocol::{Answer, ConsoleAnswer, Failure, FailureCode, SecretText, SignedOutAnswer};

/// A link that opens the console once, in the name of `who`.
pub(super) fn link(context: &Context, who: &str) -> Result<Answer, Failure> {
    let link =
        sessions_of(context)?.link(who).map_err(|error| Failure::new(FailureCode::Unavailable, error.to_string()))?;
    Ok(Answer::Console(ConsoleAnswer { url: SecretText::new(&link.url), expires: link.until.to_string() }))
}

/// Ends every session, then says so in the audit log.
pub(super) async fn sign_out(context: &Context, who: &str) -> Result<Answer, Failure> {
    let sessions = sessions_of(context)?.sign_out_all();
    context.writer.audit(who, "sign out", "console", format!("{sessions} sessions ended")).await?;
    Ok(Answer::SignedOut(SignedOutAnswer { sessions }))
}

fn sessions_of(context: &Context) -> Result<&ConsoleSessions, Failure> {
    let refused = |message| Failure::new(FailureCode::Refused, message);
    match (&context.console, &context.server) {
        (Some(sessions), _) => Ok(sessions),
        (None, Some(_)) => {
            Err(refused("the console is off: set `[console] listen`, as in 127.0.0.1:8081, and restart"))
        }
        (None, None) => Err(refused("no server runs here: start one with `[console] listen` set, or `oddsbox demo`")),
    }
}
