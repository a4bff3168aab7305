//! Commands about the console.

use std::io;

use super::super::console::{ConsoleSessions, SessionFile};
use super::super::context::Context;
use super::super::protocol::{Answer, ConsoleAnswer, Failure, FailureCode, SecretText, SignedOutAnswer};

/// A link that opens the console once, in the name of `who`.
pub(super) fn link(context: &Context, who: &str) -> Result<Answer, Failure> {
    let link =
        sessions_of(context)?.link(who).map_err(|error| Failure::new(FailureCode::Unavailable, error.to_string()))?;
    Ok(Answer::Console(ConsoleAnswer { url: SecretText::new(&link.url), expires: link.until.to_string() }))
}

/// Ends every session, stored ones of a console that is not served included, then says so in the audit log.
pub(super) async fn sign_out(context: &Context, who: &str) -> Result<Answer, Failure> {
    let failed = |message: String| Failure::new(FailureCode::Unavailable, message);
    let sessions = if let Some(console) = &context.console {
        let sessions = console.sign_out_all();
        console.store().await.map_err(|error| failed(error.to_string()))?;
        sessions
    } else {
        let (file, now) = (SessionFile::of(&context.data), context.clock.now().timestamp());
        let ended = tokio::task::spawn_blocking(move || file.end_all(now)).await.map_err(io::Error::other);
        let path = context.data.console_sessions();
        let undeleted = |error: io::Error| failed(format!("{} cannot be deleted: {error}", path.display()));
        ended.and_then(|ended| ended).map_err(undeleted)?
    };
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
