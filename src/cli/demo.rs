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

/// What `config` shows as the origin of the settings of a demo.
pub(super) const DEMO_ORIGIN: &str = "oddsbox demo";

/// The default data directory of a demo, different from that of `oddsbox serve`.
pub(super) const DEMO_DATA: &str = "./oddsbox-demo";

/// Try it out: both worlds simulated, keys issued, curl commands to paste
///
/// Issues a sandbox and a production key on the first run and shows them on every start: nothing in a demo is secret.
/// The data is in ./oddsbox-demo unless --data is given. Refuses a data directory whose live world has real data. One
/// server at a time can use a data directory. Requests are not logged unless the setting log is given.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  oddsbox demo
  oddsbox demo --listen 127.0.0.1:9000 --json
  ODDSBOX_LOG=info oddsbox demo
  oddsbox demo clear --data ./oddsbox-demo")]
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
#[command(after_long_help = "\
Examples:
  oddsbox demo clear
  oddsbox demo clear --data ./oddsbox-demo")]
struct ClearArgs {}

impl DemoArgs {
    pub(super) fn run(self, invocation: &Invocation) -> anyhow::Result<ExitCode> {
        match self.command {
            None => serve::start(invocation, self.listen, true),
            Some(DemoCommand::Clear(ClearArgs {})) => clear(invocation),
        }
    }

    /// What a subcommand does not take.
    pub(super) fn conflict(&self) -> Option<&'static str> {
        (self.command.is_some() && self.listen.is_some()).then_some("`demo clear` takes no --listen")
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
    let (sandbox, production) = (keys.sandbox.expose(), keys.live.expose());
    let curl = |secret: &str, target: &str| format!("curl -H 'X-API-Key: {secret}' '{base}{target}'");
    let demo = DemoAnswer {
        url: base,
        docs_url: format!("{base}/docs"),
        account_url: format!("{base}/account"),
        console_url: link.as_ref().map(|link| link.url.as_str()),
        data: invocation.data.path(),
        sandbox_key: sandbox,
        production_key: production,
        commands: [
            curl(sandbox, "/v1/sports"),
            curl(sandbox, "/v1/sports/mma/odds?odds_format=decimal&limit=5"),
            curl(production, "/v1/sports/tennis/scores?limit=5"),
            format!("{} status", invocation.command()),
        ],
    };
    output::announce(invocation.output.format(&demo, |_| banner(invocation, &demo))?).await
}

/// What a demo prints when it has started.
#[derive(Serialize)]
struct DemoAnswer<'a> {
    url: &'a str,
    docs_url: String,
    account_url: String,
    /// Works once.
    console_url: Option<&'a str>,
    data: &'a Path,
    sandbox_key: &'a str,
    production_key: &'a str,
    /// To be pasted into a shell.
    commands: [String; 4],
}

fn banner(invocation: &Invocation, demo: &DemoAnswer<'_>) -> String {
    let DemoAnswer { url, docs_url, account_url, console_url, data, sandbox_key, production_key, commands } = demo;
    let title = invocation.output.bold("oddsbox demo");
    let data = data.display();
    let command = invocation.command();
    let console = console_url.map(|url| {
        format!(
            "  console      {url}\n               (works once, within 5 minutes; `{command} console` prints another)\n"
        )
    });
    let console = console.unwrap_or_default();
    let commands = commands.join("\n    ");
    format!(
        "\n  {title}   two simulated worlds, data in {data}\n\n  \
         listening on {url}\n  \
         docs         {docs_url}\n  \
         account      {account_url}\n\
         {console}\n  \
         sandbox key     {sandbox_key}\n  \
         production key  {production_key}\n\n  \
         Paste:\n\n    \
         {commands}\n\n"
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
        let keys = server.keyring().load();
        let grant = keys.authenticate(Some(kept.expose()), server.clock().now());
        if grant.is_ok_and(|grant| grant.record().kind == kind) {
            return Ok(kept.clone());
        }
    }
    let approved_by = (kind == KeyKind::Production).then(|| DEMO.into());
    let limits = Limits::default_of(kind);
    let new = NewKey {
        kind,
        name: "demo".into(),
        groups: Vec::new(),
        limits,
        expires: None,
        approved_by,
        self_service: false,
    };
    let issued = server.writer().issue_key(new, DEMO).await?;
    Ok(SecretText::new(issued.secret.expose()))
}
