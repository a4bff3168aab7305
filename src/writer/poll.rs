//! Complete polls of a feed: what one brought and the next no longer does is closed, in one batch with the news.
//!
//! What a poll may close is only what the same feed's polls of the same thing brought before, so that no feed ever
//! closes what another one put: each scope (a feed, and the sport key that it asks for) remembers the records of its
//! last complete poll, in the file as well. A record that another scope still has stays open, and one that was put by
//! other means since is not the scope's any more. Whether regions or markets were asked for in between does not
//! matter: what is no longer asked for is no longer brought.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use foldhash::{HashMap, HashSet};

use super::batch::Batch;
use super::budget::FeedCharge;
use super::slot::Place;
use super::{IngestReport, WriteError, Writer};
use crate::board::Applied;
use crate::model::{BookId, EventId, FeedBudget, Market, News, Reason, SportId, Timestamp, World};
use crate::store::{Change, LoadedPoll};

/// What is asked for again and again: a feed, and one of its sport keys.
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

/// What the names of a feed's scopes begin with. A feed's name has no slash.
fn prefix(feed: &str) -> String {
    format!("{feed}/")
}

/// One complete, successful poll.
#[derive(Clone, Debug)]
pub struct Poll {
    pub scope: PollScope,
    pub sport: SportId,
    /// All that the scope has now.
    pub news: Vec<News>,
    /// When the answer came, and how long that took.
    pub at: Timestamp,
    pub latency_ms: u32,
    /// How long the bookmakers in it count as fresh, if that is longer than for others.
    pub stale_after_s: u32,
    /// Whether the feed's round goes on with another poll of the same sport: its prices are published together.
    pub has_more: bool,
    /// What the feed has spent, stored with the news.
    pub budget: Option<FeedBudget>,
}

/// What became of a poll.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PollReport {
    pub news: IngestReport,
    /// Records that were closed because the poll no longer has them.
    pub closed: u64,
}

type Pairs = BTreeSet<(BookId, Market)>;

/// What the last complete poll of a scope brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PollState {
    pub(super) sport: SportId,
    stale_after_s: u32,
    /// Every bookmaker that a poll has brought.
    books: BTreeSet<BookId>,
    events: HashMap<EventId, Pairs>,
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

    fn holds(&self, event: &EventId, pair: (BookId, Market)) -> bool {
        self.events.get(event).is_some_and(|pairs| pairs.contains(&pair))
    }

    /// The events of which the scope loses records, with what is left: those were put by other means.
    fn without(&self, places: &[Place]) -> HashMap<EventId, Pairs> {
        let mut left: HashMap<EventId, Pairs> = HashMap::default();
        for place in places.iter().filter(|place| place.sport == self.sport) {
            let pair = (place.bookmaker, place.market);
            if self.holds(&place.event, pair) {
                let pairs = left.entry(place.event.clone()).or_insert_with(|| self.events[&place.event].clone());
                pairs.remove(&pair);
            }
        }
        left
    }

    /// What the file has to learn.
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
        let held = before.map_or(&empty, |before| &before.events);
        let put =
            |event: &EventId, records| Change::PutPolled { world, scope: scope.into(), event: event.clone(), records };
        let gone = held.keys().filter(|event| !self.events.contains_key(*event));
        changes.extend(gone.map(|event| put(event, Box::default())));
        let other = self.events.iter().filter(|(event, pairs)| held.get(*event) != Some(*pairs));
        changes.extend(other.map(|(event, pairs)| put(event, pairs.iter().copied().collect())));
    }
}

/// What each scope loses to news that came by other means.
pub(super) type Lost = Vec<(Box<str>, HashMap<EventId, Pairs>)>;

impl Writer {
    /// The change that brings a scope's own row back to what memory holds of it.
    pub(super) fn held_poll(&self, world: World, scope: &str) -> Change {
        match self.worlds[world.index()].polls.get(scope) {
            Some(held) => Change::PutPoll {
                world,
                scope: scope.into(),
                sport: held.sport,
                stale_after_s: held.stale_after_s,
                books: held.books.iter().copied().collect(),
            },
            None => Change::RemovePoll { world, scope: scope.into() },
        }
    }

    /// The same for one event of a scope.
    pub(super) fn held_polled(&self, world: World, scope: &str, event: &EventId) -> Change {
        let held = self.worlds[world.index()].polls.get(scope).and_then(|poll| poll.events.get(event));
        let records = held.map(|pairs| pairs.iter().copied().collect()).unwrap_or_default();
        Change::PutPolled { world, scope: scope.into(), event: event.clone(), records }
    }

    /// What was put or closed by other means than a poll is no poll's to close; the file learns that with the news.
    pub(super) fn lost_to_news(&self, world: World, places: &[Place], changes: &mut Vec<Change>) -> Lost {
        let polls = self.worlds[world.index()].polls.iter();
        let lost: Lost = polls.map(|(scope, poll)| (scope.clone(), poll.without(places))).collect();
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

    pub(super) fn forget_lost(&mut self, world: World, lost: Lost) {
        let polls = &mut Arc::make_mut(&mut self.worlds[world.index()]).polls;
        for (scope, left) in lost.into_iter().filter(|(_, left)| !left.is_empty()) {
            let Some(poll) = polls.get_mut(&scope) else { continue };
            poll.events.extend(left);
            poll.events.retain(|_, pairs| !pairs.is_empty());
        }
    }

    /// Takes in the news of a complete poll and closes what it no longer has: all of it is committed, or nothing.
    pub fn poll(&mut self, poll: Poll) -> Result<PollReport, WriteError> {
        let (world, name) = (poll.scope.world, poll.scope.name());
        let (sport, has_more) = (poll.sport, poll.has_more);
        let charge = poll.budget.map(|budget| FeedCharge { feed: poll.scope.feed.clone(), budget });
        let now = self.clock.now();
        let state = &self.worlds[world.index()];
        let before = state.polls.get(&name);
        let mut batch = self.batch(world, now.timestamp());
        let found = batch.take_poll(poll, before);
        let closed = batch.close_gone(&name, before, &found.mentioned);
        let (mut changes, step, news) = batch.finish();
        found.state.changes(before, world, &name, &mut changes);
        changes.extend(charge.as_ref().map(FeedCharge::change));
        self.commit(&changes)?;
        self.take_charge(charge);
        Arc::make_mut(&mut self.worlds[world.index()]).polls.insert(name, found.state);
        self.take_step(world, step, now.unix_ms);
        self.take_round(world, sport, has_more, now.unix_ms);
        Ok(PollReport { news, closed })
    }

    /// Ends a round whose last poll did not say so, because a later one failed.
    pub fn end_round(&mut self, world: World, sport: SportId) {
        self.take_round(world, sport, false, self.clock.now().unix_ms);
    }

    /// Ends the scopes of a feed that are not asked for any more: everything that only they had is closed.
    /// Each scope is a transaction of its own; `meanwhile` is called between them.
    pub fn end_polls(
        &mut self,
        world: World,
        feed: &str,
        kept_keys: &[Box<str>],
        mut meanwhile: impl FnMut(&mut Writer),
    ) -> Result<u64, WriteError> {
        let prefix = prefix(feed);
        let is_over =
            |name: &str| name.strip_prefix(&*prefix).is_some_and(|key| !kept_keys.iter().any(|kept| **kept == *key));
        let names: Vec<Box<str>> =
            self.worlds[world.index()].polls.keys().filter(|name| is_over(name)).cloned().collect();
        let mut closed = 0;
        for name in names {
            closed += self.end_poll(world, &name)?;
            meanwhile(self);
        }
        Ok(closed)
    }

    fn end_poll(&mut self, world: World, name: &str) -> Result<u64, WriteError> {
        let now = self.clock.now();
        let state = &self.worlds[world.index()];
        let Some(before) = state.polls.get(name) else { return Ok(0) };
        let mut batch = self.batch(world, now.timestamp());
        let closed = batch.close_gone(name, Some(before), &HashMap::default());
        let (mut changes, step, _) = batch.finish();
        changes.extend(before.events.keys().map(|event| Change::PutPolled {
            world,
            scope: name.into(),
            event: event.clone(),
            records: Box::default(),
        }));
        changes.push(Change::RemovePoll { world, scope: name.into() });
        self.commit(&changes)?;
        Arc::make_mut(&mut self.worlds[world.index()]).polls.remove(name);
        self.take_step(world, step, now.unix_ms);
        self.publish_quiet(world, now.unix_ms);
        Ok(closed)
    }
}

/// What stands in a poll.
struct Found {
    state: PollState,
    /// Every record in it, also those that were not taken because something newer is held.
    mentioned: HashMap<EventId, Pairs>,
}

impl Batch<'_> {
    fn take_poll(&mut self, poll: Poll, before: Option<&PollState>) -> Found {
        let mut mentioned: HashMap<EventId, Pairs> = HashMap::default();
        let mut events: HashMap<EventId, Pairs> = HashMap::default();
        let mut answered: HashSet<BookId> = HashSet::default();
        for news in poll.news {
            let odds = match &news {
                News::Odds(odds) if odds.sport == poll.sport && !odds.outcomes.is_empty() => {
                    Some((odds.event.clone(), odds.bookmaker.clone(), odds.market))
                }
                _ => None,
            };
            let applied = self.apply(news);
            let Some((event, key, market)) = odds else { continue };
            // It says nothing about now: neither that the stored price still stands, nor that its bookmaker was read.
            if applied == Err(Reason::InFuture) {
                continue;
            }
            let is_taken = matches!(applied, Ok(Applied::Changed | Applied::Unchanged));
            let Some(book) = self.register().find(&key) else { continue };
            let pair = (book, market);
            answered.insert(book);
            mentioned.entry(event.clone()).or_default().insert(pair);
            if is_taken || before.is_some_and(|before| before.holds(&event, pair)) {
                events.entry(event).or_default().insert(pair);
            }
        }
        for book in &answered {
            self.advance_read(poll.sport, *book, poll.at, Some(poll.latency_ms));
        }
        let known = before.iter().flat_map(|before| &before.books);
        let books = known.chain(&answered).copied().collect();
        let state = PollState { sport: poll.sport, stale_after_s: poll.stale_after_s, books, events };
        Found { state, mentioned }
    }

    /// Closes what a scope had and is not mentioned any more, unless another scope still has it.
    fn close_gone(&mut self, name: &str, before: Option<&PollState>, mentioned: &HashMap<EventId, Pairs>) -> u64 {
        let Some(before) = before else { return 0 };
        let mut closed = 0;
        let is_elsewhere = |polls: &Polls, event: &EventId, pair| {
            let others = polls.iter().filter(|(other, poll)| ***other != *name && poll.sport == before.sport);
            others.into_iter().any(|(_, poll)| poll.holds(event, pair))
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
