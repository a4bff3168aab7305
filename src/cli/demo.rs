//! `oddsbox demo`: the service with both worlds simulated, in a data directory of its own; and `oddsbox demo clear`,
//! which prepares such a directory for `oddsbox serve`.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};

use super::invocation::{Invocation, block_on};
use super::{output, serve};
use crate::admin::{ClearAnswer, ConsoleSessions, DataDir, SecretText, Setup, clear_demo};
use crate::keys::issue::NewKey;
use crate::keys::{KeyKind, Limits};
use crate::server::{DEMO, Server};

/// The default data directory of a demo, different from that of `oddsbox serve`.
pub(super) const DEMO_DATA: &str = "./oddsbox-demo";

/// Try it out: both worlds simulated, keys issued, curl commands to paste
///
/// Issues a sandbox and a production key on the first run and shows them on every start: nothing in a demo is secret.
/// The data is in ./oddsbox-demo unless --data is given. Refuses a data directory whose live world has real data. One
/// server at a time can use a data directory.
#[derive(Debug, Args)]
pub(super) struct DemoArgs {
    #[command(subcommand)]
    command: Option<DemoCommand>,
    /// Address of the public API; port 0 picks a free one
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
}

#[derive(Debug, Subcommand)]
enum DemoCommand {
    Clear(ClearArgs),
}

/// Prepare a demo's data directory for `oddsbox serve`: delete its simulated live world
///
/// Refuses while a server runs. Everything in the live world is deleted, including ingested data; keys, quotas and the
/// audit log are kept. The file with the secrets of the demo's two keys is deleted; the keys stay valid.
#[derive(Debug, Args)]
struct ClearArgs {}

impl DemoArgs {
    pub(super) fn run(self, invocation: &Invocation) -> anyhow::Result<ExitCode> {
        match self.command {
            None => serve::start(invocation, self.listen, true),
            // clap's conflicts would also forbid --data before `clear`.
            Some(DemoCommand::Clear(_)) if self.listen.is_some() => anyhow::bail!("`demo clear` takes no --listen"),
            Some(DemoCommand::Clear(ClearArgs {})) => clear(invocation),
        }
    }
}

fn clear(invocation: &Invocation) -> anyhow::Result<ExitCode> {
    let setup = Setup::of(&invocation.settings()?.read()?)?;
    let answer = block_on(async { Ok(clear_demo(&invocation.data, setup).await?) })?;
    invocation.output.answer(&answer, |_| cleared(&answer, invocation))?;
    Ok(ExitCode::SUCCESS)
}

fn cleared(answer: &ClearAnswer, invocation: &Invocation) -> String {
    let data = answer.data.display();
    if !answer.cleared {
        return format!("Nothing to clear in {data}: its live world is empty and was not simulated.\n");
    }
    format!(
        "Deleted the simulated live world in {data}: {} events, {} records, {} sources. The demo's keys are still valid: `oddsbox keys list` shows them, `oddsbox keys revoke ID` ends one.\n\
         Serve it: {} serve\n",
        answer.events,
        answer.records,
        answer.sources,
        invocation.command()
    )
}

/// Issues missing keys and prints the banner.
pub(super) async fn show(
    invocation: &Invocation,
    server: &Server,
    base: &str,
    console: Option<&ConsoleSessions>,
) -> anyhow::Result<()> {
    let keys = demo_keys(&invocation.data, server).await?;
    server.offer_demo_keys(keys.sandbox.expose(), keys.live.expose());
    let link = console.map(|console| console.link(DEMO)).transpose()?;
    output::announce(banner(invocation, base, link.as_ref().map(|link| link.url.as_str()), &keys)).await
}

fn banner(invocation: &Invocation, base: &str, console: Option<&str>, keys: &DemoKeys) -> String {
    let title = invocation.output.bold("oddsbox demo");
    let data = invocation.data.path().display();
    let command = invocation.command();
    let console = console.map(|url| {
        format!(
            "  console      {url}\n               (works once, within 5 minutes; `{command} console` prints another)\n"
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

/// The secrets of a demo's two keys, kept in a file next to its data so that every start can show them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct DemoKeys {
    sandbox: SecretText,
    live: SecretText,
}

/// The keys of the previous start. A key that is missing or no longer valid is replaced by a new one.
async fn demo_keys(data: &DataDir, server: &Server) -> anyhow::Result<DemoKeys> {
    let path = data.demo_keys();
    let kept = read_keys(&path);
    let sandbox = working_secret(kept.as_ref().map(|keys| &keys.sandbox), KeyKind::Sandbox, server).await?;
    let live = working_secret(kept.as_ref().map(|keys| &keys.live), KeyKind::Production, server).await?;
    let keys = DemoKeys { sandbox, live };
    if kept.as_ref() != Some(&keys)
        && let Err(error) = write_keys(&path, &keys)
    {
        tracing::warn!(path = %path.display(), %error, "failed to keep the demo's keys; the next start issues new ones");
    }
    Ok(keys)
}

/// A file that cannot be read or parsed counts as missing.
fn read_keys(path: &Path) -> Option<DemoKeys> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// Writes to a temporary file and renames it, so that a partial file is never seen. Only the owner can read it.
fn write_keys(path: &Path, keys: &DemoKeys) -> io::Result<()> {
    let partial = path.with_extension("json.partial");
    let _ = fs::remove_file(&partial);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&partial)?;
    file.write_all(&serde_json::to_vec(keys)?)?;
    file.write_all(b"\n")?;
    fs::rename(partial, path)
}

/// The kept secret if it is still valid for `kind`, else that of a new key.
async fn working_secret(kept: Option<&SecretText>, kind: KeyKind, server: &Server) -> anyhow::Result<SecretText> {
    if let Some(kept) = kept {
        let grant = server.keyring().authenticate(Some(kept.expose()), server.clock().now());
        if grant.is_ok_and(|grant| grant.record().kind == kind) {
            return Ok(kept.clone());
        }
    }
    let approved_by = (kind == KeyKind::Production).then(|| DEMO.into());
    let limits = Limits::default_of(kind);
    let new = NewKey { kind, name: "demo".into(), groups: Vec::new(), limits, expires: None, approved_by };
    let issued = server.writer().issue_key(new, DEMO).await?;
    Ok(SecretText::new(issued.secret.expose()))
}
