//! `oddsbox keys`: issues and changes API keys.

use std::process::ExitCode;

use clap::{ArgGroup, Args, Subcommand};

use super::cluster::confirmed;
use super::flags::{self, Groups};
use super::invocation::{Invocation, block_on};
use super::output::{Output, or_dash, pairs};
use crate::admin::{Access, Command, FieldSetting, IssueKey, KeyAnswer, SetKey, StatusAnswer};

/// Issue, list, rotate, revoke and change API keys
#[derive(Debug, Subcommand)]
#[command(after_long_help = "\
Examples:
  oddsbox keys issue --sandbox --name trial
  oddsbox keys list
  oddsbox keys show trial")]
pub(super) enum KeysCommand {
    Issue(IssueArgs),
    List(ListArgs),
    Show(ShowArgs),
    Rotate(RotateArgs),
    Revoke(RevokeArgs),
    Set(SetArgs),
}

impl KeysCommand {
    pub(super) fn run(self, invocation: &Invocation) -> anyhow::Result<ExitCode> {
        match self {
            KeysCommand::Issue(issue) => issue.run(invocation),
            KeysCommand::List(ListArgs {}) => ListArgs::run(invocation),
            KeysCommand::Show(show) => show.run(invocation),
            KeysCommand::Rotate(rotate) => rotate.run(invocation),
            KeysCommand::Revoke(revoke) => revoke.run(invocation),
            KeysCommand::Set(set) => set.run(invocation),
        }?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Issue a key and show its secret once
///
/// Safe on a running server: the key works when the command returns.
#[derive(Debug, Args)]
#[command(
    group(ArgGroup::new("kind").required(true).args(["sandbox", "live"])),
    after_long_help = "\
Examples:
  oddsbox keys issue --sandbox --name trial
  oddsbox keys issue --live --name acme --approved-by ada
  oddsbox keys issue --live --name acme --approved-by ada --groups combat,golf
  oddsbox keys issue --live --name acme --approved-by ada --self-service
  oddsbox keys issue --sandbox --name ci --per-day 500 --expires 90d --json"
)]
pub(super) struct IssueArgs {
    /// A key for the simulated world (`sk_test_`)
    #[arg(long)]
    sandbox: bool,
    /// A production key (`sk_live_`); requires --approved-by
    #[arg(long, requires = "approved_by")]
    live: bool,
    /// What or whom the key is for
    #[arg(long)]
    name: String,
    /// Who approved production access; kept in the audit log
    #[arg(long, value_name = "WHO")]
    approved_by: Option<String>,
    #[arg(
        long,
        value_name = "LIST",
        value_parser = flags::groups,
        help = "Sport groups that a production key is restricted to, separated by commas: combat, tennis, american_football, golf, soccer, basketball, baseball, ice_hockey, cricket, rugby_league, rugby_union, aussie_rules, lacrosse, handball, politics"
    )]
    groups: Option<Groups>,
    /// Requests per minute [default: 60 for sandbox, 600 for production keys]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    burst: Option<u32>,
    /// Requests per UTC day, or none [default: 10000 for sandbox, 1000000 for production keys]
    #[arg(long, value_name = "N", value_parser = flags::quota)]
    per_day: Option<FieldSetting<u64>>,
    /// Requests per UTC month, or none [default: none]
    #[arg(long, value_name = "N", value_parser = flags::quota)]
    per_month: Option<FieldSetting<u64>>,
    /// Streams open at the same time [default: 2 for sandbox, 10 for production keys]
    #[arg(long, value_name = "N")]
    streams: Option<u32>,
    /// Time until the key expires, such as 90d [default: never expires]
    #[arg(long, value_name = "DURATION", value_parser = flags::expiry)]
    expires: Option<FieldSetting<u32>>,
    /// Let the holder rotate the key, once a day, with `POST /account/rotate` or the page at /account
    #[arg(long)]
    self_service: bool,
}

impl IssueArgs {
    fn command(self) -> Command {
        Command::KeysIssue(IssueKey {
            kind: if self.live { "production" } else { "sandbox" }.to_owned(),
            name: self.name,
            approved_by: self.approved_by,
            groups: self.groups.unwrap_or_default().0,
            burst_per_minute: self.burst,
            requests_per_day: self.per_day.unwrap_or_default(),
            requests_per_month: self.per_month.unwrap_or_default(),
            streams: self.streams,
            expires_in_s: match self.expires {
                Some(FieldSetting::To(seconds)) => Some(seconds),
                _ => None,
            },
            self_service: self.self_service,
        })
    }

    fn run(self, invocation: &Invocation) -> anyhow::Result<()> {
        show_secret(invocation, Access::Create, self.command(), "Issued")
    }
}

/// Issues or rotates a secret and prints it, with a command to try it.
fn show_secret(invocation: &Invocation, access: Access, command: Command, done: &str) -> anyhow::Result<()> {
    let (key, base) = block_on(async {
        let backend = invocation.backend(access).await?;
        let answer = backend.ask::<KeyAnswer>(command).await;
        let status = backend.ask::<StatusAnswer>(Command::Status).await.ok();
        // The secret must be shown in any case, as it cannot be retrieved again.
        if let Err(error) = backend.close().await {
            invocation.output.diagnostic("warning", &error.to_string());
        }
        Ok((answer?, base_url(invocation, status)))
    })?;
    invocation.output.answer(&key, |output| issued_text(output, done, &key, &base))?;
    confirmed(&key.unconfirmed)
}

/// The service's address from this machine: as the running server reports it, else as configured.
fn base_url(invocation: &Invocation, status: Option<StatusAnswer>) -> String {
    let running = status.and_then(|status| status.server).map(|server| (server.scheme(), server.address));
    let configured = || invocation.config().map(|config| (config.scheme(), config.listen));
    let (scheme, mut address) = running.or_else(configured).unwrap_or_else(|| ("http", ([127, 0, 0, 1], 8080).into()));
    if address.ip().is_unspecified() {
        address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
    }
    format!("{scheme}://{address}")
}

/// List all keys with their usage and quotas, without secrets
///
/// Safe on a running server: it only reads.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  oddsbox keys list
  oddsbox keys list --json")]
pub(super) struct ListArgs {}

impl ListArgs {
    fn run(invocation: &Invocation) -> anyhow::Result<()> {
        let keys: Vec<KeyAnswer> = invocation.ask(Access::Existing, Command::KeysList)?;
        invocation.output.answer(&keys, |output| key_table(output, &keys))
    }
}

/// Show one key, without its secret
///
/// Safe on a running server: it only reads.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  oddsbox keys show acme
  oddsbox keys show key_8sXcPq2LmZ0a --json")]
pub(super) struct ShowArgs {
    /// Id or name of the key, as shown by `oddsbox keys list`; a name that several keys have is refused
    #[arg(value_name = "ID|NAME")]
    id: String,
}

impl ShowArgs {
    fn run(self, invocation: &Invocation) -> anyhow::Result<()> {
        let key: KeyAnswer = invocation.ask(Access::Existing, Command::KeysShow { id: self.id })?;
        invocation.output.answer(&key, |_| key_text(&key))
    }
}

/// Give a key a new secret and show it once
///
/// Safe on a running server: the new secret works when the command returns. The old one works until the grace period
/// ends. With --undo the last rotation is taken back, as long as the old secret works: the new one ends, and the old
/// one is the key's secret again.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  oddsbox keys rotate acme
  oddsbox keys rotate acme --grace 24h --json
  oddsbox keys rotate acme --undo")]
pub(super) struct RotateArgs {
    /// Id or name of the key
    #[arg(value_name = "ID|NAME")]
    id: String,
    /// How long the old secret keeps working, such as 24h
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = flags::seconds)]
    grace: u32,
    /// Take the last rotation back, whoever made it
    #[arg(long, conflicts_with = "grace")]
    undo: bool,
}

impl RotateArgs {
    fn run(self, invocation: &Invocation) -> anyhow::Result<()> {
        if self.undo {
            let key: KeyAnswer = invocation.ask(Access::Existing, Command::KeysRotateUndo { id: self.id })?;
            invocation.output.answer(&key, |_| undone_text(&key))?;
            return confirmed(&key.unconfirmed);
        }
        let command = Command::KeysRotate { id: self.id, grace_s: self.grace };
        show_secret(invocation, Access::Existing, command, "Rotated")
    }
}

/// Revoke a key permanently
///
/// Safe on a running server: it is in force when the command returns.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  oddsbox keys revoke acme
  oddsbox keys revoke key_8sXcPq2LmZ0a")]
pub(super) struct RevokeArgs {
    /// Id or name of the key
    #[arg(value_name = "ID|NAME")]
    id: String,
}

impl RevokeArgs {
    fn run(self, invocation: &Invocation) -> anyhow::Result<()> {
        let key: KeyAnswer = invocation.ask(Access::Existing, Command::KeysRevoke { id: self.id })?;
        invocation.output.answer(&key, |_| format!("{} ({}) is revoked.\n", key.id, key.name))?;
        confirmed(&key.unconfirmed)
    }
}

/// Change the limits, groups, expiry, name or self-service of a key
///
/// Safe on a running server: it is in force when the command returns. Usage counters are kept.
#[derive(Debug, Args)]
#[command(
    group(ArgGroup::new("changes").required(true).multiple(true)
        .args(["name", "groups", "burst", "per_day", "per_month", "streams", "expires", "self_service", "reset_usage"])),
    after_long_help = "\
Examples:
  oddsbox keys set acme --burst 1200 --per-day 2000000
  oddsbox keys set acme --groups none --expires never
  oddsbox keys set acme --self-service true
  oddsbox keys set acme --reset-usage"
)]
pub(super) struct SetArgs {
    /// Id or name of the key
    #[arg(value_name = "ID|NAME")]
    id: String,
    /// New name of the key
    #[arg(long)]
    name: Option<String>,
    #[arg(
        long,
        value_name = "LIST",
        value_parser = flags::groups,
        help = "Sport groups separated by commas (combat, tennis, american_football, golf, soccer, basketball, baseball, ice_hockey, cricket, rugby_league, rugby_union, aussie_rules, lacrosse, handball, politics), or none to lift the restriction"
    )]
    groups: Option<Groups>,
    /// Requests per minute
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    burst: Option<u32>,
    /// Requests per UTC day, or none
    #[arg(long, value_name = "N", value_parser = flags::quota)]
    per_day: Option<FieldSetting<u64>>,
    /// Requests per UTC month, or none
    #[arg(long, value_name = "N", value_parser = flags::quota)]
    per_month: Option<FieldSetting<u64>>,
    /// Streams open at the same time; more than that are closed, the newest first
    #[arg(long, value_name = "N")]
    streams: Option<u32>,
    /// Time until the key expires, such as 90d, or never
    #[arg(long, value_name = "DURATION", value_parser = flags::expiry)]
    expires: Option<FieldSetting<u32>>,
    /// Whether the holder may rotate the key, once a day
    #[arg(long, value_name = "true|false", action = clap::ArgAction::Set, hide_possible_values = true)]
    self_service: Option<bool>,
    /// Reset the usage of the day and the month, after a wrong clock or lost counters
    #[arg(long)]
    reset_usage: bool,
}

impl SetArgs {
    fn command(self) -> Command {
        Command::KeysSet(SetKey {
            id: self.id,
            name: self.name,
            groups: self.groups.map(|groups| groups.0),
            burst_per_minute: self.burst,
            requests_per_day: self.per_day.unwrap_or_default(),
            requests_per_month: self.per_month.unwrap_or_default(),
            streams: self.streams,
            expires_in_s: self.expires.unwrap_or_default(),
            self_service: self.self_service,
            reset_usage: self.reset_usage,
        })
    }

    fn run(self, invocation: &Invocation) -> anyhow::Result<()> {
        let key: KeyAnswer = invocation.ask(Access::Existing, self.command())?;
        invocation.output.answer(&key, |_| key_text(&key))?;
        confirmed(&key.unconfirmed)
    }
}

/// A secret and a command to try it.
fn issued_text(output: Output, done: &str, key: &KeyAnswer, base: &str) -> String {
    let secret = key.key.as_ref().map_or("", |secret| secret.expose());
    let grace = match &key.old_secret_until {
        Some(until) => format!("The old secret works until {until}.\n\n"),
        None => String::new(),
    };
    format!(
        "{done} {id} ({kind}, {name}).\n\n    {shown}\n\n{warning}\n\n{grace}Try it:\n\n    curl -H 'X-API-Key: {secret}' {base}/v1/sports\n",
        id = key.id,
        kind = key.kind,
        name = key.name,
        shown = output.bold(secret),
        warning = output.bold("Store it now: it is not shown again."),
    )
}

/// Whoever rotated the key may have its old secret as well, so the way out of that is named.
fn undone_text(key: &KeyAnswer) -> String {
    let KeyAnswer { id, name, hint, .. } = key;
    format!(
        "The last rotation of {id} ({name}) is undone: its secret is {hint} again.\n\
         If somebody else has that secret, give the key a new one: oddsbox keys rotate {id}\n"
    )
}

fn key_table(output: Output, keys: &[KeyAnswer]) -> String {
    let header =
        ["ID", "KIND", "NAME", "STATUS", "KEY", "TODAY", "MONTH", "LAST USED", "EXPIRES", "SELF-SERVICE", "GROUPS"];
    let row = |key: &KeyAnswer| {
        vec![
            key.id.clone(),
            key.kind.clone(),
            key.name.clone(),
            key.status.clone(),
            key.hint.clone(),
            used_of(key.used_today, key.limits.requests_per_day),
            used_of(key.used_this_month, key.limits.requests_per_month),
            or_dash(key.last_used.as_ref()),
            or_dash(key.expires.as_ref()),
            if key.self_service { "yes" } else { "no" }.to_owned(),
            groups(key),
        ]
    };
    output.table(&header, &keys.iter().map(row).collect::<Vec<_>>())
}

/// `12/10000`, or `12` if there is no limit.
fn used_of(used: u64, limit: Option<u64>) -> String {
    limit.map_or_else(|| used.to_string(), |limit| format!("{used}/{limit}"))
}

fn groups(key: &KeyAnswer) -> String {
    if key.groups.is_empty() { "all".to_owned() } else { key.groups.join(",") }
}

fn key_text(key: &KeyAnswer) -> String {
    pairs(&[
        ("id", key.id.clone()),
        ("kind", key.kind.clone()),
        ("name", key.name.clone()),
        ("status", key.status.clone()),
        ("key", key.hint.clone()),
        ("scope", key.scope.clone()),
        ("groups", groups(key)),
        ("per minute", key.limits.burst_per_minute.to_string()),
        ("today", used_of(key.used_today, key.limits.requests_per_day)),
        ("this month", used_of(key.used_this_month, key.limits.requests_per_month)),
        ("streams", used_of(key.open_streams, Some(key.limits.streams.into()))),
        ("last used", or_dash(key.last_used.as_ref())),
        ("created", key.created.clone()),
        ("expires", or_dash(key.expires.as_ref())),
        ("revoked", or_dash(key.revoked.as_ref())),
        ("approved by", or_dash(key.approved_by.as_ref())),
        ("old secret until", or_dash(key.old_secret_until.as_ref())),
        ("undo until", or_dash(key.undo_until.as_ref())),
        ("self-service", if key.self_service { "yes" } else { "no" }.to_owned()),
    ])
}

#[cfg(test)]
mod tests;
