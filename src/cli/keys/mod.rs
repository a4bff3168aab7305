//! `oddsbox keys`: who may read, and how much.

mod print;

use std::process::ExitCode;

use clap::{ArgGroup, Args, Subcommand};

use super::flags::{self, Groups};
use super::output;
use super::session::{Session, block_on};
use crate::admin::{Access, Command, IssueKey, KeyAnswer, SetKey, Setting, StatusAnswer};

/// Issue, list, rotate, revoke and change API keys
#[derive(Debug, Subcommand)]
pub(super) enum Keys {
    Issue(Issue),
    List(List),
    Show(Show),
    Rotate(Rotate),
    Revoke(Revoke),
    Set(Set),
}

impl Keys {
    pub(super) fn run(self, session: &Session) -> anyhow::Result<ExitCode> {
        match self {
            Keys::Issue(issue) => issue.run(session),
            Keys::List(List {}) => List::run(session),
            Keys::Show(show) => show.run(session),
            Keys::Rotate(rotate) => rotate.run(session),
            Keys::Revoke(revoke) => revoke.run(session),
            Keys::Set(set) => set.run(session),
        }?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Issue a key and show its secret, this once
///
/// Safe on a running server: the key works when the command returns.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("kind").required(true).args(["sandbox", "live"])))]
pub(super) struct Issue {
    /// A key for the simulated world (`sk_test_`)
    #[arg(long)]
    sandbox: bool,
    /// A production key (`sk_live_`); asks for --approved-by
    #[arg(long, requires = "approved_by")]
    live: bool,
    /// What or whom the key is for
    #[arg(long)]
    name: String,
    /// Who approved production access; kept in the audit log
    #[arg(long, value_name = "WHO")]
    approved_by: Option<String>,
    /// Sport groups that a production key is restricted to, between commas
    #[arg(long, value_parser = flags::groups)]
    groups: Option<Groups>,
    /// Requests a minute [default: 60 for sandbox, 600 for production keys]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    burst: Option<u32>,
    /// Requests a UTC day, or none [default: 10000 for sandbox, 1000000 for production keys]
    #[arg(long, value_name = "N", value_parser = flags::quota)]
    per_day: Option<Setting<u64>>,
    /// Requests a UTC month, or none [default: none]
    #[arg(long, value_name = "N", value_parser = flags::quota)]
    per_month: Option<Setting<u64>>,
    /// How long it works, such as 90d [default: never expires]
    #[arg(long, value_name = "TIME", value_parser = flags::expiry)]
    expires: Option<Setting<u32>>,
}

impl Issue {
    fn command(self) -> Command {
        Command::KeysIssue(IssueKey {
            kind: if self.live { "production" } else { "sandbox" }.to_owned(),
            name: self.name,
            approved_by: self.approved_by,
            groups: self.groups.unwrap_or_default().0,
            burst_per_minute: self.burst,
            requests_per_day: self.per_day.unwrap_or_default(),
            requests_per_month: self.per_month.unwrap_or_default(),
            expires_in_s: match self.expires {
                Some(Setting::To(seconds)) => Some(seconds),
                _ => None,
            },
        })
    }

    fn run(self, session: &Session) -> anyhow::Result<()> {
        show_secret(session, Access::Create, self.command(), "Issued")
    }
}

/// Has a secret made and shows it, with a line that tries it out.
fn show_secret(session: &Session, access: Access, command: Command, done: &str) -> anyhow::Result<()> {
    let (key, base) = block_on(async {
        let door = session.door(access).await?;
        let answer = door.ask::<KeyAnswer>(command).await;
        let status = door.ask::<StatusAnswer>(Command::Status).await.ok();
        // The secret must be shown whatever happens next: it cannot be had again.
        if let Err(error) = door.close().await {
            output::complain("warning", &error.to_string());
        }
        Ok((answer?, base_url(session, status)))
    })?;
    session.output.answer(&key, |output| print::secret(output, done, &key, &base))
}

/// Where the service is reached from this machine: as the server says, or as it is set to.
fn base_url(session: &Session, status: Option<StatusAnswer>) -> String {
    let running = status.and_then(|status| status.server).map(|server| (server.scheme(), server.address));
    let set = || session.settings().ok()?.read().ok().map(|config| (config.scheme(), config.listen));
    let (scheme, mut address) = running.or_else(set).unwrap_or_else(|| ("http", ([127, 0, 0, 1], 8080).into()));
    if address.ip().is_unspecified() {
        address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
    }
    format!("{scheme}://{address}")
}

/// List every key with its use today against its quota; never a secret
///
/// Safe on a running server: it only looks.
#[derive(Debug, Args)]
pub(super) struct List {}

impl List {
    fn run(session: &Session) -> anyhow::Result<()> {
        let keys: Vec<KeyAnswer> = session.ask(Access::Existing, Command::KeysList)?;
        session.output.answer(&keys, |output| print::list(output, &keys))
    }
}

/// Show one key; never its secret
///
/// Safe on a running server: it only looks.
#[derive(Debug, Args)]
pub(super) struct Show {
    /// The key's id, as `oddsbox keys list` shows it
    id: String,
}

impl Show {
    fn run(self, session: &Session) -> anyhow::Result<()> {
        let key: KeyAnswer = session.ask(Access::Existing, Command::KeysShow { id: self.id })?;
        session.output.answer(&key, |_| print::key(&key))
    }
}

/// Give a key a new secret and show it, this once
///
/// Safe on a running server: the new secret works when the command returns. The old one works for the grace.
#[derive(Debug, Args)]
pub(super) struct Rotate {
    /// The key's id
    id: String,
    /// How long the old secret goes on working, such as 24h
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = flags::seconds)]
    grace: u32,
}

impl Rotate {
    fn run(self, session: &Session) -> anyhow::Result<()> {
        let command = Command::KeysRotate { id: self.id, grace_s: self.grace };
        show_secret(session, Access::Existing, command, "Rotated")
    }
}

/// Revoke a key for good
///
/// Safe on a running server: it is in force when the command returns.
#[derive(Debug, Args)]
pub(super) struct Revoke {
    /// The key's id
    id: String,
}

impl Revoke {
    fn run(self, session: &Session) -> anyhow::Result<()> {
        let key: KeyAnswer = session.ask(Access::Existing, Command::KeysRevoke { id: self.id })?;
        session.output.answer(&key, |_| format!("{} ({}) is revoked.\n", key.id, key.name))
    }
}

/// Change the limits, groups, expiry or name of a key
///
/// Safe on a running server: it is in force when the command returns, and the counters go on.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("changes").required(true).multiple(true)
    .args(["name", "groups", "burst", "per_day", "per_month", "expires", "reset_usage"])))]
pub(super) struct Set {
    /// The key's id
    id: String,
    #[arg(long)]
    name: Option<String>,
    /// Sport groups between commas, or none to lift the restriction
    #[arg(long, value_parser = flags::groups)]
    groups: Option<Groups>,
    /// Requests a minute
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    burst: Option<u32>,
    /// Requests a UTC day, or none
    #[arg(long, value_name = "N", value_parser = flags::quota)]
    per_day: Option<Setting<u64>>,
    /// Requests a UTC month, or none
    #[arg(long, value_name = "N", value_parser = flags::quota)]
    per_month: Option<Setting<u64>>,
    /// How long it works from now, such as 90d, or never
    #[arg(long, value_name = "TIME", value_parser = flags::expiry)]
    expires: Option<Setting<u32>>,
    /// Begin its day and its month anew with nothing used, after a clock that was wrong or counters that were lost
    #[arg(long)]
    reset_usage: bool,
}

impl Set {
    fn command(self) -> Command {
        Command::KeysSet(SetKey {
            id: self.id,
            name: self.name,
            groups: self.groups.map(|groups| groups.0),
            burst_per_minute: self.burst,
            requests_per_day: self.per_day.unwrap_or_default(),
            requests_per_month: self.per_month.unwrap_or_default(),
            expires_in_s: self.expires.unwrap_or_default(),
            reset_usage: self.reset_usage,
        })
    }

    fn run(self, session: &Session) -> anyhow::Result<()> {
        let key: KeyAnswer = session.ask(Access::Existing, self.command())?;
        session.output.answer(&key, |_| print::key(&key))
    }
}

#[cfg(test)]
mod tests;
