//! `oddsbox feeds`: where prices come from, and how fresh they are.

use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::flags::{self, shown_seconds};
use super::output::{Output, or_dash};
use super::session::Session;
use crate::admin::{
    Access, AddedAnswer, Command, FeedAnswer, FeedsAnswer, SourceAnswer, TokenAnswer, UpstreamAnswer, WorldName,
};
use crate::model::World;

/// Show every feed and source: what came, what was rejected and why, and how fresh each is
///
/// Safe on a running server: it only looks. Feeds are counted by a server from its start; without one, only the
/// sources and tokens are shown.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Feeds {
    #[command(subcommand)]
    command: Option<FeedsCommand>,
    /// Only this world: live or sandbox
    #[arg(long, value_parser = flags::world())]
    world: Option<World>,
    /// Only sources that are stale
    #[arg(long)]
    stale: bool,
}

#[derive(Debug, Subcommand)]
enum FeedsCommand {
    Token(Token),
    Tokens(Tokens),
}

/// Issue a token for a feeder on another machine and show it, this once; or end it
///
/// Safe on a running server: it is in force when the command returns. The feeder sends its lines to the address of
/// the setting ingest.listen; a stream under way ends with its next batch when its token is revoked.
#[derive(Debug, Args)]
struct Token {
    /// The feeder's name: letters, digits, dots, - and _
    name: String,
    /// The world that its lines go to: live or sandbox
    #[arg(long, default_value = "live", value_parser = flags::world())]
    world: World,
    /// End the feeder's token
    #[arg(long, conflicts_with = "world")]
    revoke: bool,
}

/// List the tokens of feeders, without their secrets
///
/// Safe on a running server: it only looks.
#[derive(Debug, Args)]
struct Tokens {}

impl Feeds {
    pub(super) fn run(self, session: &Session) -> anyhow::Result<ExitCode> {
        match self.command {
            Some(FeedsCommand::Token(token)) => token.run(session)?,
            Some(FeedsCommand::Tokens(Tokens {})) => {
                let answer = ask(session, None, false)?;
                session.output.answer(&answer.tokens, |output| tokens(output, &answer.tokens))?;
            }
            None => {
                let answer = ask(session, self.world, self.stale)?;
                session.output.answer(&answer, |output| shown(output, &answer))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn ask(session: &Session, world: Option<World>, stale: bool) -> anyhow::Result<FeedsAnswer> {
    session.ask(Access::Existing, Command::Feeds { world: world.map(WorldName::from), stale })
}

impl Token {
    fn run(self, session: &Session) -> anyhow::Result<()> {
        if self.revoke {
            let revoked: TokenAnswer = session.ask(Access::Existing, Command::FeedsTokenRevoke { name: self.name })?;
            return session.output.answer(&revoked, |_| format!("Revoked the token of {}.\n", revoked.name));
        }
        let command = Command::FeedsToken { name: self.name, world: self.world.into() };
        let issued: TokenAnswer = session.ask(Access::Create, command)?;
        session.output.answer(&issued, |output| issued_token(output, &issued))
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
        None => "No server runs: feeds are counted by a server, from its start.\n".to_owned(),
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

/// What a feeder has added, of what it may.
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

/// What is left, upstream and of the operator's own budget.
fn quota(upstream: &UpstreamAnswer) -> Option<String> {
    let left = upstream.remaining.map(|left| match &upstream.used_up_until {
        Some(until) => format!("{left} left, used up until {until}"),
        None => format!("{left} left"),
    });
    let budget = upstream.budget_left.map(|left| format!("{left} of the day's budget"));
    let told: Vec<String> = [left, budget].into_iter().flatten().collect();
    (!told.is_empty()).then(|| told.join(", "))
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
