//! `oddsbox feeds`: feeds, sources and their freshness, and feed tokens.

use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::flags::{self, shown_seconds};
use super::invocation::Invocation;
use super::output::{Output, or_dash};
use crate::admin::{
    Access, AddedAnswer, Command, FeedAnswer, FeedsAnswer, SourceAnswer, TokenAnswer, UpstreamAnswer, WorldName,
};
use crate::model::World;

/// Show all feeds and sources: accepted and rejected lines with reasons, and freshness
///
/// Safe on a running server: it only reads. A server counts feeds from its start; without one, only sources and tokens
/// are shown.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
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

/// Issue a token for a feeder on another machine and show it once, or revoke it
///
/// Safe on a running server: it is in force when the command returns. The feeder pushes its lines to the address of the
/// setting ingest.listen. When a token is revoked, its open streams end at their next batch.
#[derive(Debug, Args)]
struct TokenArgs {
    /// Name of the feeder: letters, digits, dots, - and _
    name: String,
    /// World that its lines go to: live or sandbox
    #[arg(long, default_value = "live", value_parser = flags::world())]
    world: World,
    /// Revoke the feeder's token
    #[arg(long, conflicts_with = "world")]
    revoke: bool,
}

/// List the tokens of feeders, without their secrets
///
/// Safe on a running server: it only reads.
#[derive(Debug, Args)]
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
                invocation.output.answer(&answer, |output| shown(output, &answer))?;
            }
        }
        Ok(ExitCode::SUCCESS)
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
            return invocation.output.answer(&revoked, |_| format!("Revoked the token of {}.\n", revoked.name));
        }
        let command = Command::FeedsToken { name: self.name, world: self.world.into() };
        let issued: TokenAnswer = invocation.ask(Access::Create, command)?;
        invocation.output.answer(&issued, |output| issued_token(output, &issued))
    }
}

fn issued_token(output: Output, issued: &TokenAnswer) -> String {
    let token = issued.token.as_ref().map_or("", |token| token.expose());
    format!(
        "Issued a token for {name}.\n\n    {shown}\n\n{warning}\n\nSend lines with it, to the address of ingest.listen:\n\n    curl -H 'Authorization: Bearer {token}' --data-binary @lines.ndjson http://ADDRESS/ingest\n",
        name = issued.name,
        shown = output.bold(token),
        warning = output.bold("Store it now: it is not shown again."),
    )
}

fn shown(output: Output, answer: &FeedsAnswer) -> String {
    let feeds = match &answer.feeds {
        None => "No server runs: a server counts feeds from its start.\n".to_owned(),
        Some(feeds) => {
            let header = [
                "FEED",
                "KIND",
                "WORLD",
                "ACCEPTED",
                "REJECTED",
                "BYTES",
                "ADDED",
                "LAST GOOD",
                "LAST FAILURE",
                "QUOTA",
                "NEXT",
            ];
            output.table(&header, &feeds.iter().map(feed).collect::<Vec<_>>())
        }
    };
    let header = ["SOURCE", "WORLD", "SPORT", "LAST GOOD", "AGE", "LATENCY", "STATE"];
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

/// How much of its quota a feeder has used.
fn added(added: &AddedAnswer) -> String {
    let of = |what, today, per_day, all, max| format!("{what} {today}/{per_day} today, {all}/{max} in all");
    let AddedAnswer { bookmakers_today, bookmakers_per_day, bookmakers, bookmakers_max, .. } = added;
    let AddedAnswer { events_today, events_per_day, events, events_max, .. } = added;
    format!(
        "{}; {}",
        of("bookmakers", bookmakers_today, bookmakers_per_day, bookmakers, bookmakers_max),
        of("events", events_today, events_per_day, events, events_max)
    )
}

/// The remaining credits, of the upstream and of the operator's daily budget.
fn quota(upstream: &UpstreamAnswer) -> Option<String> {
    let left = upstream.remaining.map(|left| match &upstream.used_up_until {
        Some(until) => format!("{left} left, used up until {until}"),
        None => format!("{left} left"),
    });
    let budget = upstream.budget_left.map(|left| format!("{left} of the day's budget"));
    let parts: Vec<String> = [left, budget].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
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
        vec![name, world(token.world), status, hint, created, or_dash(token.revoked.as_ref())]
    };
    let header = ["FEEDER", "WORLD", "STATUS", "TOKEN", "CREATED", "REVOKED"];
    output.table(&header, &tokens.iter().map(row).collect::<Vec<_>>())
}

fn world(world: WorldName) -> String {
    World::from(world).name().to_owned()
}
