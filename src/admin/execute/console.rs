//! Commands about the console.

use super::super::console::Desk;
use super::super::context::Context;
use super::super::protocol::{Answer, ConsoleAnswer, Failure, FailureCode, SecretText, SignedOutAnswer};

/// A link that opens the console once, in the name of `who`.
pub(super) fn link(context: &Context, who: &str) -> Result<Answer, Failure> {
    let link = desk(context)?.link(who).map_err(|error| Failure::new(FailureCode::Unavailable, error.to_string()))?;
    Ok(Answer::Console(ConsoleAnswer { url: SecretText::new(&link.url), expires: link.until.to_string() }))
}

/// Ends every session, then says so in the audit log.
pub(super) async fn sign_out(context: &Context, who: &str) -> Result<Answer, Failure> {
    let sessions = desk(context)?.sign_out_all();
    context.writer.audit(who, "sign out", "console", format!("{sessions} sessions ended")).await?;
    Ok(Answer::SignedOut(SignedOutAnswer { sessions }))
}

fn desk(context: &Context) -> Result<&Desk, Failure> {
    let refused = |told| Failure::new(FailureCode::Refused, told);
    match (&context.console, &context.server) {
        (Some(desk), _) => Ok(desk),
        (None, Some(_)) => {
            Err(refused("the console is off: set `[console] listen`, as in 127.0.0.1:8081, and restart"))
        }
        (None, None) => Err(refused("no server runs here: start one with `[console] listen` set, or `oddsbox demo`")),
    }
}
