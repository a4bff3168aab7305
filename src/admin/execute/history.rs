//! The history of one event, for its operator.

use std::collections::BTreeSet;

use super::super::context::Context;
use super::super::protocol::{
    Answer, Failure, FailureCode, HistoryAnswer, HistoryOrder, LineAnswer, OutcomeAnswer, PointAnswer,
};
use crate::model::{
    ClosingReason, EventId, EventLines, Line, LinePoint, Market, MarketKey, OddsFormat, Outcome, PricedAt, SportId,
    Start, Timestamp, World,
};
use crate::store::HistoryError;

/// Reads the log on a thread of its own.
pub(super) async fn history(order: HistoryOrder, context: &Context) -> Result<Answer, Failure> {
    let (context, unavailable) = (context.clone(), |error| Failure::new(FailureCode::Unavailable, format!("{error}")));
    let read = tokio::task::spawn_blocking(move || read(&order, &context)).await.map_err(unavailable)?;
    Ok(Answer::History(Box::new(read?)))
}

pub(in crate::admin) fn read(order: &HistoryOrder, context: &Context) -> Result<HistoryAnswer, Failure> {
    let Some(format) = OddsFormat::parse(&order.odds_format) else {
        return Err(Failure::bad_request("the format of odds is american, decimal or fractional"));
    };
    let world = World::from(order.world);
    let not_found = || not_in_history(world, &order.event);
    let id = EventId::new(&order.event).ok_or_else(not_found)?;
    let (sport, lines) = find(world, &id, order.bookmaker.as_deref(), context)?.ok_or_else(not_found)?;
    let mut markets: Vec<Market> = lines.lines.iter().map(|line| line.market).collect();
    markets.sort_unstable_by(|one, other| one.cmp_in_lists(*other));
    markets.dedup();
    let sport = &context.boards.catalogue()[sport];
    let market = match &order.market {
        None => markets.first().copied(),
        Some(key) => Some(chosen(key, &markets, |key| {
            let read = context.boards.catalogue().markets().read(key, sport.kind);
            read.as_ref().map(MarketKey::as_str).map(str::to_owned)
        })?),
    };
    let start = lines.start_by(context.clock.now().timestamp());
    let shown = lines.lines.iter().filter(|line| Some(line.market) == market);
    Ok(HistoryAnswer {
        event_id: lines.event.id.to_string(),
        sport_key: sport.key.to_string(),
        name: name_of(&lines),
        competition: lines.event.competition.to_string(),
        commence_time: lines.event.commence.to_string(),
        status: lines.event.status.key().to_owned(),
        markets: markets.iter().map(|market| market.key().to_owned()).collect(),
        market: market.map(|market| market.key().to_owned()),
        lines: shown.map(|line| answer(line, start, format)).collect(),
    })
}

pub(super) fn not_in_history(world: World, event: &str) -> Failure {
    let message = format!("the history of the {world} world has no event {event}: check --world, and the id");
    Failure::new(FailureCode::NotFound, message)
}

/// The event is in the history of one sport at most, as ids of events are unique in a world.
pub(super) fn find(
    world: World,
    id: &EventId,
    bookmaker: Option<&str>,
    context: &Context,
) -> Result<Option<(SportId, EventLines)>, Failure> {
    let is_wanted = |key: &str, _: Market| bookmaker.is_none_or(|wanted| wanted == key);
    for sport in context.boards.catalogue().sport_ids() {
        match context.history.lines(world, sport, id, is_wanted) {
            Ok(Some(lines)) => return Ok(Some((sport, lines))),
            Ok(None) | Err(HistoryError::Gone) => {}
            Err(error) => return Err(Failure::new(FailureCode::Unavailable, error.to_string())),
        }
    }
    Ok(None)
}

/// The market of a key, of those that the event has had.
fn chosen(key: &str, markets: &[Market], own_key: impl FnOnce(&str) -> Option<String>) -> Result<Market, Failure> {
    let own = own_key(key);
    let found = markets.iter().find(|market| own.as_deref() == Some(market.key()));
    found.copied().ok_or_else(|| {
        let known: BTreeSet<&str> = markets.iter().map(|market| market.key()).collect();
        let known = known.into_iter().collect::<Vec<_>>().join(", ");
        Failure::bad_request(format!("the event has had no price in the market {key}, but in: {known}"))
    })
}

fn name_of(lines: &EventLines) -> String {
    match (lines.event.title(), lines.event.home(), lines.event.away()) {
        (Some(title), ..) => title.to_string(),
        (None, Some(home), Some(away)) => format!("{home} v {away}"),
        _ => String::new(),
    }
}

fn answer(line: &Line, start: Start, format: OddsFormat) -> LineAnswer {
    let priced = |priced: &PricedAt| point(priced.at, Some(&priced.outcomes), format);
    let close = line.close(start);
    LineAnswer {
        bookmaker: line.bookmaker.to_string(),
        opening: priced(&line.opening),
        closing: close.and_then(|(_, closing)| closing.map(priced)),
        closing_reason: close.map(|(reason, _)| ClosingReason::key(reason).to_owned()),
        points: line.points.iter().map(|LinePoint { at, outcomes }| point(*at, outcomes.as_deref(), format)).collect(),
    }
}

fn point(at: Timestamp, outcomes: Option<&[Outcome]>, format: OddsFormat) -> PointAnswer {
    let outcomes = outcomes.unwrap_or_default().iter().map(|outcome| outcome_answer(outcome, format));
    PointAnswer { at: at.to_string(), outcomes: outcomes.collect() }
}

pub(in crate::admin) fn outcome_answer(outcome: &Outcome, format: OddsFormat) -> OutcomeAnswer {
    let (mut price, mut point) = (Vec::new(), Vec::new());
    outcome.price.write_json(format, &mut price);
    if let Some(value) = outcome.point {
        value.write(&mut point);
    }
    OutcomeAnswer {
        name: outcome.name.to_string(),
        description: outcome.name.description().map(str::to_owned),
        price: serde_json::from_slice(&price).unwrap_or_default(),
        point: serde_json::from_slice(&point).ok(),
    }
}
