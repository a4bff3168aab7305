//! Complete polls of a feed: records that one returned and the next does not are closed, in one batch with the news.
//!
//! A poll closes only what earlier polls of the same scope returned, so that no feed ever closes what another one put:
//! each scope (a feed, and the sport key that it requests) remembers the records of its last complete poll, in the file
//! as well. A record that another scope still has stays open. One that was put by other means since, or whose event was
//! removed since, no longer belongs to the scope. A change of the requested regions or markets needs no special case:
//! what is no longer requested is no longer returned.
//!
//! A scope that is polled event by event is closed in parts: a poll closes records of its event and its markets only, and
//! [`Writer::retain_polled`] closes those of events and markets that are no longer requested.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use foldhash::{HashMap, HashSet};

use super::batch::{NewsBatch, WorldUpdate};
use super::budget::FeedCharge;
use super::{IngestReport, WriteError, Writer};
use crate::board::Applied;
use crate::model::{BookId, EventId, FeedBudget, Market, News, Reason, SportId, Timestamp, World};
use crate::store::{Change, LoadedPoll};

/// What is polled repeatedly: a feed, and one of its sport keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PollScope {
    pub world: World,
    pub feed: Box<str>,
    pub key: Box<str>,
}

impl PollScope {
    fn name(&self) -> Box<str> {
        format!("{}{}", prefix(&self.feed), self.key).into()
    }
}

/// The common prefix of the names of a feed's scopes. A feed's name has no slash.
fn prefix(feed: &str) -> String {
    format!("{feed}/")
}

/// The part of a scope that one poll is about: some markets of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PollPart {
    pub event: EventId,
    /// Their keys. The lay prices of a market belong to it.
    pub markets: Vec<Box<str>>,
}

/// Whether a market is one of the requested ones, or has the lay prices of one.
fn is_requested(markets: &[Box<str>], market: Market) -> bool {
    let key = market.key();
    let back = key.strip_suffix("_lay").unwrap_or(key);
    markets.iter().any(|requested| **requested == *key || **requested == *back)
}

/// One complete, successful poll.
#[derive(Clone, Debug)]
pub struct Poll {
    pub scope: PollScope,
    /// The part of the scope that it is about; `None` for all of it.
    pub part: Option<PollPart>,
    pub sport: SportId,
    /// Everything that the scope, or that part of it, has now.
    pub news: Vec<News>,
    /// When the response arrived, and how long that took.
    pub at: Timestamp,
    pub latency_ms: u32,
    /// How long its bookmakers count as fresh, if that is longer than for others.
    pub stale_after_s: u32,
    /// Whether the feed's round goes on with another poll of the same sport: its prices are published together.
    pub has_more: bool,
    /// What the feed has spent, stored with the news.
    pub budget: Option<FeedBudget>,
}

/// The outcome of a poll.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PollReport {
    pub news: IngestReport,
    /// Records that were closed because the poll did not return them any more.
    pub closed: u64,
}

type RecordSet = BTreeSet<(BookId, Market)>;

/// What the last complete poll of a scope returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PollState {
    pub(super) sport: SportId,
    stale_after_s: u32,
    /// Every bookmaker that a poll has returned.
    books: BTreeSet<BookId>,
    events: HashMap<EventId, RecordSet>,
}

/// The scopes of a world by their names.
pub(super) type Polls = BTreeMap<Box<str>, PollState>;

/// How long a bookmaker's prices in a sport count as fresh.
pub(super) fn stale_after_s(polls: &Polls, sport: SportId, book: BookId, default_s: u32) -> u32 {
    let of_book = polls.values().filter(|poll| poll.sport == sport && poll.books.contains(&book));
    of_book.map(|poll| poll.stale_after_s).fold(default_s, u32::max)
}

impl PollState {
    pub(super) fn loaded(poll: LoadedPoll) -> (Box<str>, Self) {
        let events = poll.events.into_iter().map(|(event, pairs)| (event, pairs.into_iter().collect())).collect();
        let books = poll.books.into_iter().collect();
        (poll.scope, PollState { sport: poll.sport, stale_after_s: poll.stale_after_s, books, events })
    }

    fn contains(&self, event: &EventId, pair: (BookId, Market)) -> bool {
        self.events.get(event).is_some_and(|pairs| pairs.contains(&pair))
    }

    /// The records that a poll of a part says nothing about.
    fn outside(&self, part: &PollPart) -> HashMap<EventId, RecordSet> {
        self.retained(|event, market| *event != part.event || !is_requested(&part.markets, market))
    }

    fn retained(&self, is_kept: impl Fn(&EventId, Market) -> bool) -> HashMap<EventId, RecordSet> {
        let kept = self.events.iter().map(|(event, pairs)| {
            (event.clone(), pairs.iter().copied().filter(|(_, market)| is_kept(event, *market)).collect::<RecordSet>())
        });
        kept.filter(|(_, pairs)| !pairs.is_empty()).collect()
    }

    /// The events of which the scope loses records to an update, with the records that it keeps of them.
    fn without(&self, update: &WorldUpdate) -> HashMap<EventId, RecordSet> {
        let of_sport = update.sports.iter().filter(|update| update.sport == self.sport);
        let removed = of_sport.flat_map(|update| &update.removed).filter(|edit| self.events.contains_key(&edit.id));
        let mut left: HashMap<EventId, RecordSet> = removed.map(|edit| (edit.id.clone(), RecordSet::new())).collect();
        for record in update.touched.iter().filter(|record| record.sport == self.sport) {
            let pair = (record.bookmaker, record.market);
            if self.contains(&record.event, pair) {
                let pairs = left.entry(record.event.clone()).or_insert_with(|| self.events[&record.event].clone());
                pairs.remove(&pair);
            }
        }
        left
    }

    /// The changes to the file.
    fn changes(&self, before: Option<&PollState>, world: World, scope: &str, changes: &mut Vec<Change>) {
        let is_known = before.is_some_and(|before| {
            (before.sport, before.stale_after_s, &before.books) == (self.sport, self.stale_after_s, &self.books)
        });
        if !is_known {
            let (sport, stale_after_s) = (self.sport, self.stale_after_s);
            let books = self.books.iter().copied().collect();
            changes.push(Change::PutPoll { world, scope: scope.into(), sport, stale_after_s, books });
        }
        let empty = HashMap::default();
        let stored = before.map_or(&empty, |before| &before.events);
        let put =
            |event: &EventId, records| Change::PutPolled { world, scope: scope.into(), event: event.clone(), records };
        let gone = stored.keys().filter(|event| !self.events.contains_key(*event));
        changes.extend(gone.map(|event| put(event, Box::default())));
        let other = self.events.iter().filter(|(event, pairs)| stored.get(*event) != Some(*pairs));
        changes.extend(other.map(|(event, pairs)| put(event, pairs.iter().copied().collect())));
    }
}

/// What each scope keeps of the events whose records were put or closed by other means, or that were removed.
pub(super) type LostRecords = Vec<(Box<str>, HashMap<EventId, RecordSet>)>;

impl Writer {
    /// The change that restores a scope's own row from memory.
    pub(super) fn restore_poll(&self, world: World, scope: &str) -> Change {
        match self.worlds[world.index()].polls.get(scope) {
            Some(poll) => Change::PutPoll {
                world,
                scope: scope.into(),
                sport: poll.sport,
                stale_after_s: poll.stale_after_s,
                books: poll.books.iter().copied().collect(),
            },
            None => Change::RemovePoll { world, scope: scope.into() },
        }
    }

    /// The same for one event of a scope.
    pub(super) fn restore_polled(&self, world: World, scope: &str, event: &EventId) -> Change {
        let pairs = self.worlds[world.index()].polls.get(scope).and_then(|poll| poll.events.get(event));
        let records = pairs.map(|pairs| pairs.iter().copied().collect()).unwrap_or_default();
        Change::PutPolled { world, scope: scope.into(), event: event.clone(), records }
    }

    /// Takes records that were put or closed by other means, and those of removed events, out of every scope; the change
    /// is stored with the news.
    pub(super) fn lost_to_news(&self, world: World, update: &WorldUpdate, changes: &mut Vec<Change>) -> LostRecords {
        let polls = self.worlds[world.index()].polls.iter();
        let lost: LostRecords = polls.map(|(scope, poll)| (scope.clone(), poll.without(update))).collect();
        for (scope, left) in &lost {
            changes.extend(left.iter().map(|(event, pairs)| Change::PutPolled {
                world,
                scope: scope.clone(),
                event: event.clone(),
                records: pairs.iter().copied().collect(),
            }));
        }
        lost
    }

    pub(super) fn remove_lost(&mut self, world: World, lost: LostRecords) {
        let polls = &mut Arc::make_mut(&mut self.worlds[world.index()]).polls;
        for (scope, left) in lost.into_iter().filter(|(_, left)| !left.is_empty()) {
            let Some(poll) = polls.get_mut(&scope) else { continue };
            poll.events.extend(left);
            poll.events.retain(|_, pairs| !pairs.is_empty());
        }
    }

    /// Applies the news of a complete poll and closes what it no longer has: all of it is committed, or nothing.
    pub fn poll(&mut self, poll: Poll) -> Result<PollReport, WriteError> {
        let (world, name) = (poll.scope.world, poll.scope.name());
        let (sport, has_more) = (poll.sport, poll.has_more);
        let charge = poll.budget.map(|budget| FeedCharge { feed: poll.scope.feed.clone(), budget });
        let now = self.clock.now();
        let state = &self.worlds[world.index()];
        let before = state.polls.get(&name);
        let mut batch = self.batch(world, now.timestamp());
        let outcome = batch.apply_poll(poll, before);
        let closed = batch.close_gone(&name, before, &outcome.mentioned);
        let (mut changes, update, news) = batch.finish();
        outcome.state.changes(before, world, &name, &mut changes);
        changes.extend(charge.as_ref().map(FeedCharge::change));
        self.commit_update(world, changes, &update, now.timestamp())?;
        self.apply_charge(charge);
        Arc::make_mut(&mut self.worlds[world.index()]).polls.insert(name, outcome.state);
        self.apply_update(world, update, now.unix_ms);
        self.set_in_round(world, sport, has_more, now.unix_ms);
        Ok(PollReport { news, closed })
    }

    /// Ends a round whose last successful poll announced another one, which failed.
    pub fn end_round(&mut self, world: World, sport: SportId) {
        self.set_in_round(world, sport, false, self.clock.now().unix_ms);
    }

    /// Ends the scopes of a feed that are no longer polled; returns how many records that closed.
    pub fn end_polls(&mut self, world: World, feed: &str, kept_keys: &[Box<str>]) -> Result<u64, WriteError> {
        let scopes = self.polls_without(world, feed, kept_keys);
        scopes.iter().map(|scope| self.end_poll(world, scope)).sum()
    }

    /// The names of a feed's scopes that have other keys.
    pub(super) fn polls_without(&self, world: World, feed: &str, kept_keys: &[Box<str>]) -> Vec<Box<str>> {
        let prefix = prefix(feed);
        let is_over =
            |name: &str| name.strip_prefix(&*prefix).is_some_and(|key| !kept_keys.iter().any(|kept| **kept == *key));
        self.worlds[world.index()].polls.keys().filter(|name| is_over(name)).cloned().collect()
    }

    /// Closes what a scope has of other events or other markets than these, unless another scope still has it; how many
    /// records that closed.
    pub fn retain_polled(
        &mut self,
        scope: &PollScope,
        events: &[EventId],
        markets: &[Box<str>],
    ) -> Result<u64, WriteError> {
        let (world, name, now) = (scope.world, scope.name(), self.clock.now());
        let Some(before) = self.worlds[world.index()].polls.get(&name) else { return Ok(0) };
        let kept = before.retained(|event, market| events.contains(event) && is_requested(markets, market));
        if kept == before.events {
            return Ok(0);
        }
        let mut batch = self.batch(world, now.timestamp());
        let closed = batch.close_gone(&name, Some(before), &kept);
        let (mut changes, update, _) = batch.finish();
        let state = PollState { events: kept, ..before.clone() };
        state.changes(Some(before), world, &name, &mut changes);
        self.commit_update(world, changes, &update, now.timestamp())?;
        Arc::make_mut(&mut self.worlds[world.index()]).polls.insert(name, state);
        self.apply_update(world, update, now.unix_ms);
        self.publish_quiet(world, now.unix_ms);
        Ok(closed)
    }

    /// Ends a scope: everything that only it had is closed.
    pub(super) fn end_poll(&mut self, world: World, name: &str) -> Result<u64, WriteError> {
        let now = self.clock.now();
        let state = &self.worlds[world.index()];
        let Some(before) = state.polls.get(name) else { return Ok(0) };
        let mut batch = self.batch(world, now.timestamp());
        let closed = batch.close_gone(name, Some(before), &HashMap::default());
        let (mut changes, update, _) = batch.finish();
        changes.extend(before.events.keys().map(|event| Change::PutPolled {
            world,
            scope: name.into(),
            event: event.clone(),
            records: Box::default(),
        }));
        changes.push(Change::RemovePoll { world, scope: name.into() });
        self.commit_update(world, changes, &update, now.timestamp())?;
        Arc::make_mut(&mut self.worlds[world.index()]).polls.remove(name);
        self.apply_update(world, update, now.unix_ms);
        self.publish_quiet(world, now.unix_ms);
        Ok(closed)
    }
}

/// What a poll returned.
struct PollOutcome {
    state: PollState,
    /// Every record in it or outside its part, also those that were not applied because the stored one is newer.
    mentioned: HashMap<EventId, RecordSet>,
}

impl NewsBatch<'_> {
    fn apply_poll(&mut self, poll: Poll, before: Option<&PollState>) -> PollOutcome {
        let outside = poll.part.as_ref().zip(before).map(|(part, before)| before.outside(part));
        let mut mentioned: HashMap<EventId, RecordSet> = outside.unwrap_or_default();
        let mut events: HashMap<EventId, RecordSet> = mentioned.clone();
        let mut answered: HashSet<BookId> = HashSet::default();
        for news in poll.news {
            let odds = match &news {
                News::Odds(odds) if odds.sport == poll.sport && !odds.outcomes.is_empty() => {
                    Some((odds.event.clone(), odds.bookmaker.clone(), odds.market.clone()))
                }
                _ => None,
            };
            let applied = self.apply(news);
            let Some((event, key, market)) = odds else { continue };
            // It says nothing about now: neither that the stored price is still valid, nor that its bookmaker was read.
            if applied == Err(Reason::InFuture) {
                continue;
            }
            let is_applied = matches!(applied, Ok(Applied::Changed | Applied::Unchanged));
            let Some(book) = self.bookmakers().find(&key) else { continue };
            answered.insert(book);
            // A market that is still unknown was rejected, and no record of it can be open.
            let Some(market) = Market::find(market.as_str()) else { continue };
            let pair = (book, market);
            mentioned.entry(event.clone()).or_default().insert(pair);
            if is_applied || before.is_some_and(|before| before.contains(&event, pair)) {
                events.entry(event).or_default().insert(pair);
            }
        }
        for book in &answered {
            self.advance_read(poll.sport, *book, poll.at, Some(poll.latency_ms));
        }
        let known = before.iter().flat_map(|before| &before.books);
        let books = known.chain(&answered).copied().collect();
        let state = PollState { sport: poll.sport, stale_after_s: poll.stale_after_s, books, events };
        PollOutcome { state, mentioned }
    }

    /// Closes what a scope had and the poll does not mention, unless another scope still has it.
    fn close_gone(&mut self, name: &str, before: Option<&PollState>, mentioned: &HashMap<EventId, RecordSet>) -> u64 {
        let Some(before) = before else { return 0 };
        let mut closed = 0;
        let is_elsewhere = |polls: &Polls, event: &EventId, pair| {
            let others = polls.iter().filter(|(other, poll)| ***other != *name && poll.sport == before.sport);
            others.into_iter().any(|(_, poll)| poll.contains(event, pair))
        };
        for (event, pairs) in &before.events {
            let still = mentioned.get(event);
            for pair in pairs.iter().filter(|pair| !still.is_some_and(|still| still.contains(pair))) {
                if !is_elsewhere(self.polls(), event, *pair) && self.close(before.sport, event, *pair) {
                    closed += 1;
                }
            }
        }
        closed
    }
}
