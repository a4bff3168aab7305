//! What `oddsbox demo` shows when it is ready: where it is, its keys, and lines to paste.

use super::keys::{DemoKeys, keys};
use crate::admin::ConsoleDesk;
use crate::cli::output;
use crate::cli::session::Session;
use crate::server::{DEMO, Server};

/// Issues keys where there are none, and shows the banner.
pub(crate) async fn show(
    session: &Session,
    server: &Server,
    base: &str,
    console: Option<&ConsoleDesk>,
) -> anyhow::Result<()> {
    let keys = keys(&session.data, server).await?;
    let link = console.map(|desk| desk.link(DEMO)).transpose()?;
    output::announce(text(session, base, link.as_ref().map(|link| link.url.as_str()), &keys)).await
}

fn text(session: &Session, base: &str, console: Option<&str>, keys: &DemoKeys) -> String {
    let title = session.output.bold("oddsbox demo");
    let data = session.data.path().display();
    let command = session.command();
    let console = console.map(|url| {
        format!(
            "  console      {url}\n               (opens once, within 5 minutes; `{command} console` makes another)\n"
        )
    });
    let console = console.unwrap_or_default();
    let (sandbox, live) = (keys.sandbox.expose(), keys.live.expose());
    format!(
        "\n  {title}   two simulated worlds, data in {data}\n\n  \
         listening on {base}\n  \
         docs         {base}/docs\n\
         {console}  \
         sandbox key  {sandbox}\n  \
         live key     {live}\n\n  \
         Paste:\n\n    \
         curl -H 'X-API-Key: {sandbox}' '{base}/v1/sports'\n    \
         curl -H 'X-API-Key: {sandbox}' '{base}/v1/sports/mma/odds?odds_format=decimal&limit=5'\n    \
         curl -H 'X-API-Key: {live}' '{base}/v1/sports/tennis/scores?limit=5'\n    \
         {command} status\n\n"
    )
}
