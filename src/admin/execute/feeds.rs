//! Feeds: their tokens, what each has brought, and how fresh the sources are.

use super::super::context::Context;
use super::super::protocol::{
    AddedAnswer, Answer, Failure, FailureAnswer, FailureCode, FeedAnswer, FeedsAnswer, PlanAnswer, RejectedAnswer,
    SecretText, SkippedAnswer, SourceAnswer, TokenAnswer, UpstreamAnswer, WorldName,
};
use crate::ingest::{Account, PlanLimit, RejectedMessage, SkippedPoll, Upstream, UpstreamPlan};
use crate::keys::{FeedToken, Feeder};
use crate::model::{FeederQuota, FeederUse, Timestamp, World};
use crate::writer::{FeederError, IssuedToken};

const SECONDS_PER_DAY: u32 = 86_400;

pub(super) async fn issue(name: &str, world: WorldName, context: &Context, who: &str) -> Result<Answer, Failure> {
    let IssuedToken { feeder, token } = context.writer.issue_token(name, world.into(), who).await?;
    context.writer.spread().await;
    Ok(answer(&feeder, Some(&token), Vec::new(), context))
}

pub(super) async fn rotate(name: &str, grace_s: u32, context: &Context, who: &str) -> Result<Answer, Failure> {
    let IssuedToken { feeder, token } = context.writer.rotate_token(name, grace_s, who).await?;
    Ok(answer(&feeder, Some(&token), context.writer.settled().await, context))
}

pub(super) async fn revoke(name: &str, context: &Context, who: &str) -> Result<Answer, Failure> {
    let revoked = context.writer.revoke_token(name, who).await?;
    Ok(answer(&revoked, None, context.writer.settled().await, context))
}

/// The one answer that can carry a token. Nodes may not have confirmed what it says.
fn answer(feeder: &Feeder, token: Option<&FeedToken>, unconfirmed: Vec<Box<str>>, context: &Context) -> Answer {
    let token = token.map(|token| SecretText::new(token.expose()));
    let unconfirmed = unconfirmed.into_iter().map(String::from).collect();
    let now = context.clock.now().timestamp();
    Answer::Token(Box::new(TokenAnswer { token, unconfirmed, ..shown(feeder, now) }))
}

/// Everything, or one world's.
pub(super) fn feeds(world: Option<WorldName>, only_stale: bool, context: &Context) -> Answer {
    let now = context.clock.now().timestamp();
    let is_asked = |own: World| world.is_none_or(|asked| World::from(asked) == own);
    let accounts = context.server.is_some().then(|| {
        let accounts = context.ledger.accounts().into_iter().filter(|(_, account)| is_asked(account.world));
        accounts.map(|(name, account)| feed(&name, account, now)).collect()
    });
    let worlds = [World::Live, World::Sandbox].into_iter().filter(|world| is_asked(*world));
    let sources = worlds.flat_map(|world| sources(world, context, now));
    let feeders = context.feeders.list();
    Answer::Feeds(Box::new(FeedsAnswer {
        time: now.to_string(),
        feeds: accounts,
        sources: sources.filter(|source| source.stale || !only_stale).collect(),
        tokens: feeders.iter().filter(|feeder| is_asked(feeder.world)).map(|feeder| shown(feeder, now)).collect(),
    }))
}

fn sources(world: World, context: &Context, now: Timestamp) -> Vec<SourceAnswer> {
    let (board, catalogue) = (context.boards.load_full(world), context.boards.catalogue());
    let mut sources = Vec::new();
    for sport in catalogue.sport_ids() {
        for state in board.sport(sport).sources().iter() {
            sources.push(SourceAnswer {
                world: world.into(),
                sport: catalogue[sport].key.to_string(),
                bookmaker: board.register().bookmakers().key(state.bookmaker).to_owned(),
                last_good: state.source.last_read.to_string(),
                age_s: now.seconds_since(state.source.last_read),
                stale_after_s: state.stale_after_s,
                stale: state.is_stale(now),
                latency_ms: state.source.latency_ms,
                empty_since: state.source.empty_since.map(|since| since.to_string()),
            });
        }
    }
    sources
}

fn feed(name: &str, account: Account, now: Timestamp) -> FeedAnswer {
    let messages = account.rejected_messages.iter();
    let messages = messages.map(|(reason, list)| (reason.key().to_owned(), list.iter().map(rejected).collect()));
    FeedAnswer {
        name: name.to_owned(),
        kind: account.kind.key().to_owned(),
        world: account.world.into(),
        accepted: account.accepted,
        rejected: account.rejected.values().sum(),
        rejected_by_reason: account.rejected.iter().map(|(reason, n)| (reason.key().to_owned(), *n)).collect(),
        rejected_messages: messages.collect(),
        bytes: account.bytes,
        added: account.added.map(|(used, quota)| added(used.on(now.unix() / SECONDS_PER_DAY), quota)),
        last_good: account.last_good.map(|at| at.to_string()),
        last_failure: account.last_failure.map(|(at, why)| FailureAnswer { at: at.to_string(), why: why.into() }),
        upstream: account.upstream.map(upstream),
    }
}

fn rejected(message: &RejectedMessage) -> RejectedAnswer {
    let RejectedMessage { at, line, detail, text } = message;
    let text = text.as_ref().map(ToString::to_string);
    RejectedAnswer { at: at.to_string(), line: *line, detail: detail.to_string(), text }
}

fn upstream(upstream: Upstream) -> UpstreamAnswer {
    let plan = |plan: UpstreamPlan| PlanAnswer {
        credits_per_day: plan.credits_per_day,
        interval_s: plan.interval_s,
        resets: plan.resets.map(|at: Timestamp| at.to_string()),
        odds_per_day: plan.odds_per_day,
        event_odds_per_day: plan.event_odds_per_day,
        scores_per_day: plan.scores_per_day,
        scores_interval_s: plan.scores_interval_s,
        limited_by: plan.limit.map(|limit: PlanLimit| limit.key().to_owned()),
    };
    let skipped = |skipped: SkippedPoll| SkippedAnswer {
        competition: skipped.competition.into(),
        market: skipped.market.map(String::from),
        why: skipped.why.into(),
        until: skipped.until.to_string(),
    };
    UpstreamAnswer {
        remaining: upstream.remaining,
        used: upstream.used,
        budget_left: upstream.budget_left,
        next_poll: upstream.next_poll.map(|at| at.to_string()),
        used_up_until: upstream.used_up_until.map(|at| at.to_string()),
        budget_per_day: upstream.budget_per_day,
        plan: upstream.plan.map(plan),
        skipped: upstream.skipped.into_iter().map(skipped).collect(),
    }
}

fn added(used: FeederUse, quota: FeederQuota) -> AddedAnswer {
    AddedAnswer {
        bookmakers_today: used.bookmakers_today,
        bookmakers_per_day: quota.bookmakers_per_day,
        bookmakers: used.bookmakers,
        bookmakers_max: quota.bookmakers,
        events_today: used.events_today,
        events_per_day: quota.events_per_day,
        events: used.events,
        events_max: quota.events,
        names_today: used.names_today,
        names_per_day: quota.names_per_day,
        names: used.names,
        names_max: quota.names,
    }
}

fn shown(feeder: &Feeder, now: Timestamp) -> TokenAnswer {
    TokenAnswer {
        name: feeder.name.to_string(),
        token: None,
        world: feeder.world.into(),
        status: if feeder.revoked.is_some() { "revoked" } else { "active" }.to_owned(),
        hint: format!("{}…{}", FeedToken::PREFIX, feeder.last_four),
        created: feeder.created.to_string(),
        revoked: feeder.revoked.map(|at| at.to_string()),
        old_secret_until: feeder.grace_until(now).map(|until| until.to_string()),
        unconfirmed: Vec::new(),
    }
}

impl From<FeederError> for Failure {
    fn from(error: FeederError) -> Self {
        let code = match &error {
            FeederError::NoSuchFeeder(_) | FeederError::SecretForName => FailureCode::FeederNotFound,
            FeederError::BadName | FeederError::HasToken(_) | FeederError::Revoked(_) => FailureCode::Refused,
            FeederError::Random(_) | FeederError::Write(_) => FailureCode::Unavailable,
        };
        Failure::new(code, error.to_string())
    }
}
