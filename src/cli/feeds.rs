//! `oddsbox feeds`: feeds, sources and their freshness, and feed tokens.

use std::net::SocketAddr;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde::Serialize;

use super::cluster::confirmed;
use super::flags::{self, shown_seconds};
use super::invocation::{Invocation, block_on};
use super::output::{Output, or_dash};
use crate::admin::{
    Access, AddedAnswer, Command, FeedAnswer, FeedsAnswer, PlanAnswer, SkippedAnswer, SourceAnswer, StatusAnswer,
    TokenAnswer, UpstreamAnswer, WorldName,
};
use crate::model::World;

/// Show all feeds and sources: accepted and rejected lines with reasons, and freshness
///
/// Safe on a running server: it only reads. A server counts feeds from its start; without one, only sources and tokens
/// are shown.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  oddsbox feeds
  oddsbox feeds --world live --stale
  oddsbox feeds token scraper
  oddsbox feeds tokens --json")]
pub(super) struct FeedsArgs {
    #[command(subcommand)]
    command: Option<FeedsCommand>,
    /// Only this world: live or sandbox
    #[arg(long, value_parser = flags::world())]
    world: Option<World>,
    /// Only stale sources
    #[arg(long)]
    stale: bool,
}

#[derive(Debug, Subcommand)]
enum FeedsCommand {
    Token(TokenArgs),
    Tokens(TokensArgs),
}

/// Issue a token for a feeder on another machine and show it once, or rotate or revoke it
///
/// Safe on a running server: it is in force when the command returns. The feeder pushes its lines to the address of the
/// setting ingest.listen. After a rotation the old token works until the grace period ends. When a token is revoked or
/// its grace period ends, its open streams end at their next batch.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  oddsbox feeds token scraper
  oddsbox feeds token scraper --world sandbox --json
  oddsbox feeds token scraper --rotate --grace 24h
  oddsbox feeds token scraper --revoke")]
struct TokenArgs {
    /// Name of the feeder: letters, digits, dots, - and _
    name: String,
    /// World that its lines go to: live or sandbox
    #[arg(long, default_value = "live", value_parser = flags::world())]
    world: World,
    /// Replace the feeder's token by a new one
    #[arg(long, conflicts_with = "world")]
    rotate: bool,
    /// How long the old token keeps working, such as 24h
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = flags::seconds, requires = "rotate")]
    grace: u32,
    /// Revoke the feeder's token, and the old one in its grace period
    #[arg(long, conflicts_with_all = ["world", "rotate"])]
    revoke: bool,
}

/// List the tokens of feeders, without their secrets
///
/// Safe on a running server: it only reads.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  oddsbox feeds tokens
  oddsbox feeds tokens --json")]
struct TokensArgs {}

impl FeedsArgs {
    pub(super) fn run(self, invocation: &Invocation) -> anyhow::Result<ExitCode> {
        match self.command {
            Some(FeedsCommand::Token(token)) => token.run(invocation)?,
            Some(FeedsCommand::Tokens(TokensArgs {})) => {
                let answer = ask(invocation, None, false)?;
                invocation.output.answer(&answer.tokens, |output| tokens(output, &answer.tokens))?;
            }
            None => {
                let answer = ask(invocation, self.world, self.stale)?;
                invocation.output.answer(&answer, |output| shown(output, &answer, invocation))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    /// What a subcommand does not take in front of it.
    pub(super) fn conflict(&self) -> Option<&'static str> {
        let has_filter = self.world.is_some() || self.stale;
        match &self.command {
            Some(FeedsCommand::Token(_)) if has_filter => {
                Some("`feeds token` takes no --stale, and --world only after its name")
            }
            Some(FeedsCommand::Tokens(_)) if has_filter => Some("`feeds tokens` takes no --world and no --stale"),
            _ => None,
        }
    }
}

fn ask(invocation: &Invocation, world: Option<World>, stale: bool) -> anyhow::Result<FeedsAnswer> {
    invocation.ask(Access::Existing, Command::Feeds { world: world.map(WorldName::from), stale })
}

impl TokenArgs {
    fn run(self, invocation: &Invocation) -> anyhow::Result<()> {
        if self.revoke {
            let revoked: TokenAnswer =
                invocation.ask(Access::Existing, Command::FeedsTokenRevoke { name: self.name })?;
            invocation.output.answer(&revoked, |_| format!("Revoked the token of {}.\n", revoked.name))?;
            return confirmed(&revoked.unconfirmed);
        }
        let (access, command) = if self.rotate {
            (Access::Existing, Command::FeedsTokenRotate { name: self.name, grace_s: self.grace })
        } else {
            (Access::Create, Command::FeedsToken { name: self.name, world: self.world.into() })
        };
        let (issued, status) = block_on(async {
            let backend = invocation.backend(access).await?;
            let answer = backend.ask::<TokenAnswer>(command).await;
            let status = backend.ask::<StatusAnswer>(Command::Status).await.ok();
            // The token must be shown in any case, as it cannot be retrieved again.
            if let Err(error) = backend.close().await {
                invocation.output.diagnostic("warning", &error.to_string());
            }
            Ok((answer?, status))
        })?;
        let ingest_url = ingest_url(invocation, status);
        let shown = ShownToken { token: &issued, ingest_url: ingest_url.as_deref() };
        let done = if self.rotate { "Rotated the token of" } else { "Issued a token for" };
        invocation.output.answer(&shown, |output| issued_token(output, done, &shown))?;
        confirmed(&issued.unconfirmed)
    }
}

/// A token that was issued, and where its feeder sends lines; `null` if no address is configured.
#[derive(Debug, Serialize)]
struct ShownToken<'a> {
    #[serde(flatten)]
    token: &'a TokenAnswer,
    ingest_url: Option<&'a str>,
}

/// The address for feeders: of the running server, else as configured.
fn ingest_url(invocation: &Invocation, status: Option<StatusAnswer>) -> Option<String> {
    let (scheme, address) = if let Some(server) = status.and_then(|status| status.server) {
        (server.scheme(), server.ingest_address?)
    } else {
        let config = invocation.config()?;
        (config.scheme(), config.ingest_listen?)
    };
    if address.port() == 0 {
        return None;
    }
    // Feeders on other machines cannot use 0.0.0.0.
    let host = if address.ip().is_unspecified() { "HOST".to_owned() } else { host(address) };
    Some(format!("{scheme}://{host}:{}/ingest", address.port()))
}

fn host(address: SocketAddr) -> String {
    match address {
        SocketAddr::V4(address) => address.ip().to_string(),
        SocketAddr::V6(address) => format!("[{}]", address.ip()),
    }
}

fn issued_token(output: Output, done: &str, issued: &ShownToken<'_>) -> String {
    let TokenAnswer { name, token, old_secret_until, .. } = issued.token;
    let token = token.as_ref().map_or("", |token| token.expose());
    let grace = match old_secret_until {
        Some(until) => format!("The old token works until {until}.\n\n"),
        None => String::new(),
    };
    let send = match issued.ingest_url {
        Some(url) => {
            let host = if url.contains("//HOST:") { ", where HOST is the name of this machine" } else { "" };
            format!(
                "Send lines with it{host}:\n\n    curl -H 'Authorization: Bearer {token}' --data-binary @lines.ndjson {url}\n"
            )
        }
        None => "No address accepts lines from feeders yet: set `[ingest] listen = \"0.0.0.0:8082\"` in the \
                 configuration file, or ODDSBOX_INGEST_LISTEN, and restart the server.\n"
            .to_owned(),
    };
    format!(
        "{done} {name}.\n\n    {shown}\n\n{warning}\n\n{grace}{send}",
        shown = output.bold(token),
        warning = output.bold("Store it now: it is not shown again."),
    )
}

fn shown(output: Output, answer: &FeedsAnswer, invocation: &Invocation) -> String {
    let feeds = match &answer.feeds {
        None => format!(
            "No server runs on {}: feeds are counted while one does. The sources are those of the data file.\n",
            invocation.data.path().display()
        ),
        Some(feeds) => {
            let header = [
                "FEED",
                "KIND",
                "WORLD",
                "ACCEPTED",
                "REJECTED",
                "BYTES",
                "ADDED",
                "LAST SUCCESS",
                "LAST FAILURE",
                "QUOTA",
                "NEXT",
            ];
            let table = output.table(&header, &feeds.iter().map(feed).collect::<Vec<_>>());
            format!("{table}{}", skipped(output, feeds))
        }
    };
    let header = ["SOURCE", "WORLD", "SPORT", "LAST SUCCESS", "AGE", "LATENCY", "STATE"];
    let sources = output.table(&header, &answer.sources.iter().map(source).collect::<Vec<_>>());
    if answer.tokens.is_empty() {
        return format!("{feeds}\n{sources}");
    }
    format!("{feeds}\n{sources}\n{}", tokens(output, &answer.tokens))
}

fn feed(feed: &FeedAnswer) -> Vec<String> {
    let reasons: Vec<String> = feed.rejected_by_reason.iter().map(|(reason, n)| format!("{n} {reason}")).collect();
    let rejected = if reasons.is_empty() {
        feed.rejected.to_string()
    } else {
        format!("{} ({})", feed.rejected, reasons.join(", "))
    };
    let failure = feed.last_failure.as_ref().map(|failure| format!("{}: {}", failure.at, failure.why));
    vec![
        feed.name.clone(),
        feed.kind.clone(),
        world(feed.world),
        feed.accepted.to_string(),
        rejected,
        feed.bytes.to_string(),
        or_dash(feed.added.as_ref().map(added)),
        or_dash(feed.last_good.as_ref()),
        or_dash(failure),
        or_dash(feed.upstream.as_ref().and_then(quota)),
        or_dash(feed.upstream.as_ref().and_then(|upstream| upstream.next_poll.as_ref())),
    ]
}

/// The competitions and markets that polled feeds do not poll now, if there are any.
fn skipped(output: Output, feeds: &[FeedAnswer]) -> String {
    let mut rows = Vec::new();
    for feed in feeds {
        for skipped in feed.upstream.iter().flat_map(|upstream| &upstream.skipped) {
            let SkippedAnswer { competition, market, why, until } = skipped.clone();
            rows.push(vec![feed.name.clone(), competition, or_dash(market), why, until]);
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    format!("\n{}", output.table(&["FEED", "NOT POLLED", "MARKET", "WHY", "UNTIL"], &rows))
}

/// How much of its quota a feeder has used.
fn added(added: &AddedAnswer) -> String {
    let of = |what, today, per_day, all, max| format!("{what} {today}/{per_day} today, {all}/{max} in all");
    let AddedAnswer { bookmakers_today, bookmakers_per_day, bookmakers, bookmakers_max, .. } = added;
    let AddedAnswer { events_today, events_per_day, events, events_max, .. } = added;
    let AddedAnswer { names_today, names_per_day, names, names_max, .. } = added;
    format!(
        "{}; {}; {}",
        of("bookmakers", bookmakers_today, bookmakers_per_day, bookmakers, bookmakers_max),
        of("events", events_today, events_per_day, events, events_max),
        of("competitions and markets", names_today, names_per_day, names, names_max)
    )
}

/// The remaining credits, of the upstream and of the operator's daily budget, and how they are spent.
fn quota(upstream: &UpstreamAnswer) -> Option<String> {
    let left = upstream.remaining.map(|left| match &upstream.used_up_until {
        Some(until) => format!("{left} left, used up until {until}"),
        None => format!("{left} left"),
    });
    let budget = upstream.budget_left.map(|left| format!("{left} of the day's budget"));
    let plan = upstream.plan.as_ref().map(plan);
    let parts: Vec<String> = [left, budget, plan].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// What a day costs and for what, the interval that follows, and what limits it.
fn plan(plan: &PlanAnswer) -> String {
    let PlanAnswer { credits_per_day, interval_s, odds_per_day, event_odds_per_day, scores_per_day, .. } = plan;
    let parts = [("odds", odds_per_day), ("event odds", event_odds_per_day), ("scores", scores_per_day)];
    let parts: Vec<String> =
        parts.iter().filter(|(_, cost)| **cost > 0).map(|(what, cost)| format!("{what} {cost}")).collect();
    let parts = if parts.len() > 1 { format!(" ({})", parts.join(", ")) } else { String::new() };
    let limit = match plan.limited_by.as_deref() {
        Some("budget") => ", limited by requests_per_day",
        Some(_) => ", limited by what is left",
        None => "",
    };
    format!("plan: {credits_per_day} a day{parts}, a poll every {}{limit}", shown_seconds(*interval_s))
}

fn source(source: &SourceAnswer) -> Vec<String> {
    let state = match (source.stale, &source.empty_since) {
        (true, _) => "stale".to_owned(),
        (false, Some(since)) => format!("no price since {since}"),
        (false, None) => "fresh".to_owned(),
    };
    vec![
        source.bookmaker.clone(),
        world(source.world),
        source.sport.clone(),
        source.last_good.clone(),
        shown_seconds(source.age_s.into()),
        format!("{} ms", source.latency_ms),
        state,
    ]
}

fn tokens(output: Output, tokens: &[TokenAnswer]) -> String {
    let row = |token: &TokenAnswer| {
        let TokenAnswer { name, status, hint, created, .. } = token.clone();
        let (revoked, old_until) = (or_dash(token.revoked.as_ref()), or_dash(token.old_secret_until.as_ref()));
        vec![name, world(token.world), status, hint, created, revoked, old_until]
    };
    let header = ["FEEDER", "WORLD", "STATUS", "TOKEN", "CREATED", "REVOKED", "OLD TOKEN UNTIL"];
    output.table(&header, &tokens.iter().map(row).collect::<Vec<_>>())
}

fn world(world: WorldName) -> String {
    World::from(world).name().to_owned()
}
