//! What `oddsbox demo` shows when it is ready: where it is, its keys, and lines to paste.

use super::output;
use super::session::Session;
use crate::admin::ConsoleDesk;
use crate::keys::issue::NewKey;
use crate::keys::{KeyKind, Limits};
use crate::server::Server;

/// Who issues the demonstration's keys, as the audit log has it.
const WHO: &str = "oddsbox demo";

/// Issues the keys on the first run, and shows the banner.
pub(super) async fn show(
    session: &Session,
    server: &Server,
    base: &str,
    console: Option<&ConsoleDesk>,
) -> anyhow::Result<()> {
    let is_first_run = server.keyring().list().is_empty();
    let keys = if is_first_run {
        Some((issue(server, KeyKind::Sandbox).await?, issue(server, KeyKind::Production).await?))
    } else {
        None
    };
    let keys = keys.as_ref().map(|(sandbox, live)| (sandbox.as_str(), live.as_str()));
    let link = console.map(|desk| desk.link(WHO)).transpose()?;
    output::text(&text(session, base, link.as_ref().map(|link| link.url.as_str()), keys))
}

async fn issue(server: &Server, kind: KeyKind) -> anyhow::Result<String> {
    let approved_by = (kind == KeyKind::Production).then(|| WHO.into());
    let limits = Limits::default_of(kind);
    let new = NewKey { kind, name: "demo".into(), groups: Vec::new(), limits, expires: None, approved_by };
    Ok(server.writer().issue_key(new, WHO).await?.secret.expose().to_owned())
}

fn text(session: &Session, base: &str, console: Option<&str>, keys: Option<(&str, &str)>) -> String {
    let title = session.output.bold("oddsbox demo");
    let data = session.data.path().display();
    let console = console.map(|url| {
        format!(
            "  console      {url}\n               (opens once, within 5 minutes; `oddsbox console` makes another)\n"
        )
    });
    let console = console.unwrap_or_default();
    let head = format!(
        "\n  {title}   two simulated worlds, data in {data}\n\n  listening on {base}\n  docs         {base}/docs\n{console}"
    );
    let Some((sandbox, live)) = keys else {
        return format!(
            "{head}\n  The keys of the first run still work; their secrets are not kept, so they cannot be shown again.\n  \
             A new one: {command} keys issue --sandbox --name me\n\n",
            command = session.command()
        );
    };
    format!(
        "{head}  sandbox key  {sandbox}\n  live key     {live}\n\n  \
         The keys are shown this once. Paste:\n\n    \
         curl -H 'X-API-Key: {sandbox}' '{base}/v1/sports'\n    \
         curl -H 'X-API-Key: {sandbox}' '{base}/v1/sports/mma/odds?odds_format=decimal&limit=5'\n    \
         curl -H 'X-API-Key: {live}' '{base}/v1/sports/tennis/scores?limit=5'\n\n"
    )
}
