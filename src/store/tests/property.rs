//! Random batches against a plain model of what a file should hold, with the file closed and opened after each.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::keys::{Feeder, Usage};
use crate::model::{
    Bookmakers, Closed, EntryId, FeedBudget, FeederUse, Maintenance, Membership, ReportedCredits, Score, ScoreStatus,
    SeenCompetition, Source,
};
use crate::store::{BookOrigin, LoadedEvent, LoadedPoll, LoadedSport};

const SPORTS: [&str; 2] = ["mma", "tennis"];
const NUMBERS: u16 = 5;

type Scope = (World, Box<str>);

/// What a file holds, without any of what makes it quick.
#[derive(Clone, Debug, Default)]
struct Plain {
    books: BTreeMap<(World, u16), Option<Arc<Bookmaker>>>,
    competitions: BTreeMap<(World, Arc<str>), SeenCompetition>,
    markets: BTreeSet<(World, Market)>,
    events: BTreeMap<(World, usize, EventId), PlainEvent>,
    sources: BTreeMap<(World, usize, u16), Source>,
    keys: BTreeMap<String, (KeyRecord, Usage)>,
    issued: Vec<String>,
    used: BTreeMap<String, Option<Timestamp>>,
    feeders: BTreeMap<Box<str>, Feeder>,
    uses: BTreeMap<(World, Box<str>), FeederUse>,
    /// Without their events.
    polls: BTreeMap<Scope, LoadedPoll>,
    polled: BTreeMap<Scope, BTreeMap<EventId, Vec<(BookId, Market)>>>,
    maintenance: Option<Maintenance>,
    simulated_live: bool,
    membership: Option<Membership>,
    budgets: BTreeMap<Box<str>, FeedBudget>,
    audit: Vec<AuditNote>,
}

#[derive(Clone, Debug)]
struct PlainEvent {
    event: Arc<Event>,
    owner: EventOwner,
    score: Option<Arc<Score>>,
    odds: BTreeMap<(u16, Market), Result<Arc<Record>, Closed>>,
}

impl Plain {
    /// At each opening the catalogue's bookmakers are as the catalogue has them, but for those that a feed has declared since.
    fn open(&mut self) {
        for world in World::ALL {
            for (number, key) in (0..).zip(BOOKS) {
                self.books.entry((world, number)).or_default().get_or_insert_with(|| Arc::new(book(key)));
            }
        }
    }

    fn has_book(&self, world: World, id: BookId) -> bool {
        self.books.get(&(world, id.number())).is_some_and(Option::is_some)
    }

    fn put_book(&mut self, world: World, id: BookId, bookmaker: Arc<Bookmaker>) {
        self.books.insert((world, id.number()), Some(bookmaker));
    }

    /// Applies a change; `None` if it must be refused.
    fn apply(&mut self, change: &Change) -> Option<()> {
        match change.clone() {
            Change::PutBookmaker { world, id, bookmaker, .. } => self.put_book(world, id, bookmaker),
            Change::RemoveBookmaker { world, id } => self.remove_book(world, id),
            Change::PutCompetition { world, key, competition } => {
                drop(self.competitions.insert((world, key), competition));
            }
            Change::RemoveCompetition { world, key } => drop(self.competitions.remove(&(world, key))),
            Change::PutMarket { world, market } => drop(self.markets.insert((world, market))),
            Change::RemoveMarket { world, market } => drop(self.markets.remove(&(world, market))),
            Change::PutEvent { world, sport, event, owner } => {
                let key = (world, sport.index(), event.id.clone());
                let (score, odds) = (None, BTreeMap::new());
                let new = PlainEvent { event: Arc::clone(&event), owner: EventOwner::Unknown, score, odds };
                let stored = self.events.entry(key).or_insert(new);
                (stored.event, stored.owner) = (event, owner);
            }
            Change::RemoveEvent { world, sport, event } => drop(self.events.remove(&(world, sport.index(), event))),
            Change::PutScore { world, sport, event, score } => {
                self.events.get_mut(&(world, sport.index(), event))?.score = Some(score);
            }
            Change::PutOdds { world, sport, event, record } => {
                self.put(world, sport, event, record.bookmaker, record.market, Ok(record))?;
            }
            Change::CloseOdds { world, sport, event, closed } => {
                self.put(world, sport, event, closed.bookmaker, closed.market, Err(closed))?;
            }
            Change::PutSource { world, sport, bookmaker, source } => {
                self.has_book(world, bookmaker).then_some(())?;
                self.sources.insert((world, sport.index(), bookmaker.number()), source);
            }
            Change::RemoveSource { world, sport, bookmaker } => {
                self.sources.remove(&(world, sport.index(), bookmaker.number()));
            }
            Change::PutKey(record) => {
                let id = record.id.as_str().to_owned();
                let usage = self.keys.get(&id).map_or(Usage::default(), |(_, usage)| *usage);
                if self.keys.insert(id.clone(), ((*record).clone(), usage)).is_none() {
                    self.issued.push(id);
                }
            }
            Change::RemoveKey(id) => drop(self.keys.remove(id.as_str())),
            Change::PutUsage { key, usage, last_used } => {
                self.keys.get_mut(key.as_str())?.1 = usage;
                self.used.insert(key.as_str().to_owned(), last_used);
            }
            Change::PutRecentUse { key, .. } => drop(self.keys.get(key.as_str())?),
            Change::PutFeeder(feeder) => drop(self.feeders.insert(feeder.name.clone(), (*feeder).clone())),
            Change::PutFeederUse { world, feed, used } => {
                let (key, used) = ((world, Box::from(&*feed)), FeederUse { events: 0, ..used });
                let _ = if used.is_unused() { self.uses.remove(&key) } else { self.uses.insert(key, used) };
            }
            Change::SetMaintenance(maintenance) => self.maintenance = maintenance,
            Change::SetSimulated(is_simulated) => self.simulated_live = is_simulated,
            Change::SetMembership(membership) => self.membership = membership,
            Change::PutFeedBudget { feed, budget } => drop(self.budgets.insert(feed, budget)),
            Change::RemoveFeedBudget { feed } => drop(self.budgets.remove(&feed)),
            Change::Log { .. } | Change::RevertLog { .. } | Change::ClearLog { .. } | Change::RenewEpochs(_) => {}
            Change::Audit(note) => self.audit.push(note),
            Change::PutPoll { world, scope, sport, stale_after_s, books } => {
                let (name, books, events) = (scope.clone(), books.into(), Vec::new());
                drop(self.polls.insert((world, name), LoadedPoll { scope, sport, stale_after_s, books, events }));
            }
            Change::PutPolled { world, scope, event, records } => {
                let events = self.polled.entry((world, scope)).or_default();
                drop(if records.is_empty() { events.remove(&event) } else { events.insert(event, records.into()) });
            }
            Change::RemovePoll { world, scope } => drop(self.polls.remove(&(world, scope))),
        }
        Some(())
    }

    /// Of a bookmaker that is gone a poll knows nothing any more, and without its scope nothing is known of an event.
    fn polls(&self, world: World) -> Vec<LoadedPoll> {
        let here = self.polls.iter().filter(|((at, _), _)| *at == world);
        here.map(|(scope, poll)| {
            let mut poll = poll.clone();
            poll.books.retain(|book| self.has_book(world, *book));
            for (event, records) in self.polled.get(scope).into_iter().flatten() {
                let mut records = records.clone();
                records.retain(|(book, _)| self.has_book(world, *book));
                poll.events.push((event.clone(), records.into()));
            }
            poll
        })
        .collect()
    }

    fn remove_book(&mut self, world: World, id: BookId) {
        if !self.has_book(world, id) {
            return;
        }
        self.books.insert((world, id.number()), None);
        self.sources.retain(|key, _| (key.0, key.2) != (world, id.number()));
        for (_, event) in self.events.iter_mut().filter(|(key, _)| key.0 == world) {
            event.odds.retain(|key, odds| key.0 != id.number() || odds.is_err());
        }
    }

    fn put(
        &mut self,
        world: World,
        sport: SportId,
        event: EventId,
        book: BookId,
        market: Market,
        odds: Result<Arc<Record>, Closed>,
    ) -> Option<()> {
        self.has_book(world, book).then_some(())?;
        self.events.get_mut(&(world, sport.index(), event))?.odds.insert((book.number(), market), odds);
        Some(())
    }

    fn loaded(&self) -> Loaded {
        let feeders = self.feeders.values().cloned().collect();
        let mut loaded = Loaded {
            maintenance: self.maintenance,
            simulated_live: self.simulated_live,
            membership: self.membership,
            feed_budgets: self.budgets.clone().into_iter().collect(),
            feeders,
            ..Loaded::default()
        };
        for world in World::ALL {
            let target = &mut loaded.worlds[world.index()];
            for ((_, number), book) in self.books.iter().filter(|(key, _)| key.0 == world) {
                let id = BookId::from_number(*number);
                target.bookmakers.put(id, book.clone().unwrap_or_else(|| Arc::new(self::book("gone"))));
                if book.is_none() {
                    target.bookmakers.remove(id);
                }
            }
            for ((_, key), competition) in self.competitions.iter().filter(|((at, _), _)| *at == world) {
                target.competitions.put(Arc::clone(key), competition.clone());
            }
            target.markets = self.markets.iter().filter(|(at, _)| *at == world).map(|(_, market)| *market).collect();
            target.sports = (0..SPORTS.len()).map(|sport| self.sport(world, sport, &target.bookmakers)).collect();
            target.polls = self.polls(world);
            let uses = self.uses.iter().filter(|((at, _), _)| *at == world);
            target.feeder_uses = uses.map(|((_, feed), used)| (feed.clone(), *used)).collect();
        }
        for id in &self.issued {
            let (key, usage) = &self.keys[id];
            let mut key = key.clone();
            key.last_used = self.used.get(id).copied().flatten().or(key.last_used);
            loaded.keys.push((key, *usage));
        }
        loaded
    }

    fn sport(&self, world: World, sport: usize, books: &Bookmakers) -> LoadedSport {
        let here = self.events.iter().filter(|(key, _)| (key.0, key.1) == (world, sport));
        let mut events: Vec<LoadedEvent> = here.map(|(_, event)| event.loaded(books)).collect();
        events.sort_by(|a, b| (a.event.commence, &a.event.id).cmp(&(b.event.commence, &b.event.id)));
        let sources = self.sources.iter().filter(|(key, _)| (key.0, key.1) == (world, sport));
        let sources = sources.map(|(key, source)| (BookId::from_number(key.2), *source)).collect();
        LoadedSport { events, sources }
    }
}

impl PlainEvent {
    fn loaded(&self, books: &Bookmakers) -> LoadedEvent {
        let mut records: Vec<_> = self.odds.values().filter_map(|odds| odds.clone().ok()).collect();
        records.sort_by_key(|record| {
            (books.key(record.bookmaker).to_owned(), !record.market.is_featured(), record.market.key())
        });
        let marks = self.odds.values().filter_map(|odds| odds.as_ref().err().copied());
        let mut closed: Vec<Closed> = marks.filter(|closed| books.get(closed.bookmaker).is_some()).collect();
        closed.sort_by_key(|mark| (mark.bookmaker, !mark.market.is_featured(), mark.market.key()));
        let (event, owner) = (Arc::clone(&self.event), self.owner.clone());
        LoadedEvent { event, owner, score: self.score.clone(), records, closed }
    }
}

/// The key of a bookmaker follows from its number, so that record ids come out the same.
fn book_key(number: u16) -> String {
    BOOKS.get(usize::from(number)).map_or_else(|| format!("declared{number}"), |key| (*key).to_owned())
}

/// A change out of a few random numbers; small ranges, so that changes meet each other.
fn change(kind: u8, seed: [u8; 8]) -> Change {
    let pick = |at: usize, of: u8| seed[at] % of;
    let world = World::ALL[usize::from(pick(0, 2))];
    let sport = sport_id(usize::from(pick(1, 2)));
    let id = format!("e{}", pick(2, 4));
    let number = u16::from(pick(3, 8)) % NUMBERS;
    let bookmaker = BookId::from_number(number);
    let market = match pick(4, 14) {
        at @ 0..11 => Market::FEATURED[usize::from(at)],
        at => prop(["player_points", "moneyline_lay", "alternate_spread_q1"][usize::from(at - 11)]),
    };
    let time = at(u32::from(pick(5, 4)));
    let event = event_id(&id);
    match kind {
        0 => {
            let book = Bookmaker { key: book_key(number).into(), ..book(&format!("t{}", pick(6, 3))) };
            Change::PutBookmaker { world, id: bookmaker, bookmaker: Arc::new(book), origin: BookOrigin::Declared }
        }
        1 => Change::RemoveBookmaker { world, id: bookmaker },
        2..=5 | 36 => feeder_change(kind, world, sport, &id, seed),
        6 => Change::RemoveEvent { world, sport, event },
        7 => {
            let winner = seed[6].is_multiple_of(2).then(|| "winner".into());
            let status = ScoreStatus::Final;
            let score = Score { status, points: Some((1, -2)), periods: [].into(), winner, updated: time };
            Change::PutScore { world, sport, event, score: Arc::new(score) }
        }
        8 | 9 => Change::CloseOdds { world, sport, event, closed: Closed { bookmaker, market, at: time } },
        10 => {
            let source = Source { last_read: time, latency_ms: 5, empty_since: None };
            Change::PutSource { world, sport, bookmaker, source }
        }
        11 => Change::RemoveSource { world, sport, bookmaker },
        12 => Change::PutKey(key(&id)),
        13 => {
            let usage = Usage { day: 1, day_used: seed[6].into(), month: 2, month_used: 3 };
            Change::PutUsage { key: key(&id).id.clone(), usage, last_used: Some(time) }
        }
        14 => Change::SetMaintenance(seed[6].is_multiple_of(2).then_some(Maintenance { since: time, until: None })),
        15 => Change::Audit(AuditNote { at: time, ..note(&id) }),
        16 => {
            let revoked = seed[6].is_multiple_of(2).then_some(time);
            Change::PutFeeder(Arc::new(Feeder { name: id.into(), world, created: time, revoked, ..feeder() }))
        }
        37 | 38 => market_change(kind, world, market),
        39 | 40 => competition_change(kind, world, sport, id.into(), pick(6, 3)),
        33 => Change::SetSimulated(seed[6].is_multiple_of(2)),
        41 => Change::SetMembership(seed[6].is_multiple_of(2).then(|| membership(seed))),
        34 => {
            let reported = seed[6].is_multiple_of(2).then_some(ReportedCredits { left: seed[7].into(), at: time });
            let budget = FeedBudget { spent: seed[5].into(), reported, polled: Some(time), ..FeedBudget::default() };
            Change::PutFeedBudget { feed: id.into(), budget }
        }
        35 => Change::RemoveFeedBudget { feed: id.into() },
        17..=20 => poll_change(kind, world, sport, event, seed),
        _ => {
            let outcomes = (0..=seed[6] % 3).map(|at| {
                let price = ["-110", "6/4", "250"][usize::from(seed[7].wrapping_add(at) % 3)];
                outcome(&format!("{id} {at}"), price, (seed[7] % 2 == at).then_some(i32::from(seed[7]) * 500))
            });
            let record = Record {
                id: RecordId::new(SPORTS[sport.index()], &event, &book_key(number), market),
                bookmaker,
                market,
                last_update: time,
                bookmaker_update: time.unix().is_multiple_of(2).then(|| time.plus_seconds(1)),
                outcomes: outcomes.collect(),
            };
            Change::PutOdds { world, sport, event, record: Arc::new(record) }
        }
    }
}

fn market_change(kind: u8, world: World, market: Market) -> Change {
    if kind == 38 { Change::RemoveMarket { world, market } } else { Change::PutMarket { world, market } }
}

fn membership(seed: [u8; 8]) -> Membership {
    let applied = EntryId { ms: seed[5].into(), number: seed[7].into() };
    Membership { cluster: 1, epoch: 2, file: 6, applied, fence: seed[3].into() }
}

fn competition_change(kind: u8, world: World, sport: SportId, key: Arc<str>, title: u8) -> Change {
    if kind == 40 {
        return Change::RemoveCompetition { world, key };
    }
    let competition = SeenCompetition { sport, title: format!("title {title}").into() };
    Change::PutCompetition { world, key, competition }
}

/// An event with its owner, or what a feeder has used of its quota.
fn feeder_change(kind: u8, world: World, sport: SportId, id: &str, seed: [u8; 8]) -> Change {
    let feed = ["drop", "token/a"][usize::from(seed[5] % 2)];
    if kind == 36 {
        let (day, bookmakers, events_today) = (seed[2].into(), (seed[6] % 3).into(), (seed[7] % 2).into());
        let used = FeederUse {
            day,
            bookmakers_today: bookmakers,
            bookmakers,
            events_today,
            events: 9,
            ..FeederUse::default()
        };
        return Change::PutFeederUse { world, feed: feed.into(), used };
    }
    let owners = [EventOwner::Unknown, EventOwner::Operator, EventOwner::Feeder(feed.into())];
    let owner = owners[usize::from(seed[7] % 3)].clone();
    Change::PutEvent { world, sport, event: event(id, (seed[6] % 3).into()), owner }
}

/// A change of what polls last had, of two scopes whose names begin alike.
fn poll_change(kind: u8, world: World, sport: SportId, event: EventId, seed: [u8; 8]) -> Change {
    let scope = ["feed", "feed/mma"][usize::from(seed[3] % 2)].into();
    let books = (0..seed[6] % 4).map(|at| BookId::from_number(u16::from(seed[7].wrapping_add(at)) % NUMBERS));
    match kind {
        17 => Change::PutPoll { world, scope, sport, stale_after_s: seed[5].into(), books: books.collect() },
        18 => Change::RemovePoll { world, scope },
        _ => {
            let market = |at: u8| Market::FEATURED[usize::from(seed[4].wrapping_add(at)) % Market::FEATURED.len()];
            let records = books.zip((0..).map(market)).collect();
            Change::PutPolled { world, scope, event, records }
        }
    }
}

pub(super) fn batches() -> impl Strategy<Value = Vec<Vec<Change>>> {
    let change = (0u8..42, any::<[u8; 8]>()).prop_map(|(kind, seed)| change(kind, seed));
    // The file looks for a counter's key when the batch is whole, the plain map when it comes to the counter: keys first.
    let batch = prop::collection::vec(change, 1..14).prop_map(|mut batch| {
        batch.sort_by_key(|change| matches!(change, Change::PutUsage { .. }));
        batch
    });
    prop::collection::vec(batch, 1..8)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn file_behaves_like_a_plain_map(batches in batches()) {
        let memory = Memory::new(Vec::new());
        let mut plain = Plain::default();
        for batch in batches {
            let mut store = memory.open();
            plain.open();
            // Most random changes refer to nothing: they make a batch that is refused as a whole.
            let mut next = plain.clone();
            if batch.iter().try_for_each(|change| next.apply(change)).is_none() {
                prop_assert!(!store.commit(&batch).unwrap_err().needs_reopen());
            }
            let mut next = plain.clone();
            let valid: Vec<Change> = batch.into_iter().filter(|change| next.apply(change).is_some()).collect();
            store.commit(&valid).unwrap();
            plain = next;
            drop(store);

            let mut store = memory.open();
            plain.open();
            let loaded = store.load().unwrap();
            // Epochs are random.
            let expected = Loaded { log_heads: loaded.log_heads, ..plain.loaded() };
            prop_assert_eq!(picture(&loaded), picture(&expected));
            let report = store.check().unwrap();
            prop_assert!(report.is_clean(), "{:?}", report);
            let audit: Vec<AuditNote> = store.audit(None, 1000).unwrap().into_iter().map(|entry| entry.note).collect();
            prop_assert_eq!(audit, plain.audit.clone());
        }
    }
}
