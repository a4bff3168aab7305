//! A change that was refused and is in the file nevertheless is reverted, whichever change it was.

use super::*;
use crate::keys::{Feeder, KeyId, KeyRecord, Usage};
use crate::model::{
    BookId, Bookmaker, Closed, EntryId, Event, EventOwner, FeedBudget, FeederUse, Maintenance, MarketKey, Membership,
    Record, Region, Regions, Score, ScoreStatus, SeenCompetition, Source,
};
use crate::store::{AuditNote, BookOrigin, Change, EventChange, LogEntry, SportChanges};
use crate::writer::{Poll, PollScope, Sender};

const SCOPE: &str = "feed/old";

/// What the file and the memory of [`filled`] have in common, to be changed.
struct Base {
    _directory: TempDir,
    writer: Writer,
    sport: SportId,
    key: KeyId,
    /// Declared by a feed, and not in the catalogue.
    declared: BookId,
    /// In the catalogue, and declared by a feed with another title.
    retitled: BookId,
    /// In the catalogue, without prices.
    idle: BookId,
}

fn bookmaker(key: &str, title: &str) -> Bookmaker {
    Bookmaker { key: key.into(), title: title.into(), regions: Regions::only(Region::Uk) }
}

fn of_market(news: News, key: &str) -> News {
    let News::Odds(odds) = news else { panic!("no odds") };
    News::Odds(OddsNews { market: MarketKey::New(key.into()), ..odds })
}

fn filled() -> Base {
    let (directory, mut writer) = open();
    let sport = tennis(&writer);
    let some = Some(["1.5", "2.5"]);
    let news = vec![
        News::Bookmaker(bookmaker("declared", "Declared")),
        News::Bookmaker(bookmaker("unibet", "Of the feed")),
        event(sport, "a"),
        event(sport, "b"),
        odds(sport, "a", "declared", some),
        odds(sport, "a", "unibet", some),
        odds(sport, "a", "betmgm", None),
        odds(sport, "b", "declared", some),
        of_market(odds(sport, "b", "declared", some), "player_seen"),
    ];
    assert_eq!(writer.ingest(WORLD, news, true).unwrap().rejected(), 0);
    let scope = PollScope { world: WORLD, feed: "feed".into(), key: "old".into() };
    let news = vec![odds(sport, "b", "unibet", some)];
    let (at, has_more, budget) = (now(), false, None);
    writer
        .poll(Poll { scope, part: None, sport, news, at, latency_ms: 0, stale_after_s: 300, has_more, budget })
        .unwrap();
    let key = writer.issue_key(new_key("old"), "test").unwrap().key.id().clone();
    writer.issue_token("old", WORLD, "test").unwrap();
    let budget = FeedBudget { day: 1, spent: 1, ..FeedBudget::default() };
    writer.store.commit(&[Change::PutFeedBudget { feed: "old".into(), budget }]).unwrap();
    writer.feed_budgets.insert("old".into(), budget);
    let sender = Some(Sender { name: "token/old".into(), removes_any: false });
    let news = vec![News::Bookmaker(bookmaker("fed", "Fed")), event(sport, "c")];
    assert_eq!(writer.ingest_charged(WORLD, news, true, None, sender).unwrap().rejected(), 0);
    writer.flush().unwrap();
    let find = |key: &str| writer.worlds[WORLD.index()].register.bookmakers().find(key).unwrap();
    let (declared, retitled, idle) = (find("declared"), find("unibet"), find("draftkings"));
    Base { _directory: directory, writer, sport, key, declared, retitled, idle }
}

impl Base {
    fn put_event(&self, id: &str) -> Change {
        let state = &self.writer.worlds[WORLD.index()].sports[self.sport.index()];
        let held = Event::clone(state.current.get("a").unwrap().event());
        let event = Arc::new(Event { id: event_id(id), competition: "Other".into(), ..held });
        Change::PutEvent { world: WORLD, sport: self.sport, event, owner: EventOwner::Unknown }
    }

    fn log_entry(&self, id: &str) -> Change {
        let Change::PutEvent { event, sport, .. } = self.put_event(id) else { panic!("an event") };
        let sports = vec![SportChanges { sport, events: vec![EventChange::Put(event)], tick: None }];
        Change::Log { world: WORLD, entry: Arc::new(LogEntry { at: now(), sports }) }
    }

    fn put_odds(&self, bookmaker: BookId) -> Change {
        let state = &self.writer.worlds[WORLD.index()].sports[self.sport.index()];
        let held = Record::clone(&state.current.get("a").unwrap().records()[0]);
        let outcomes = [outcome("home", "9.0"), outcome("away", "1.1")].into();
        let record = Arc::new(Record { bookmaker, outcomes, ..held });
        Change::PutOdds { world: WORLD, sport: self.sport, event: event_id("a"), record }
    }

    fn put_source(&self, bookmaker: BookId) -> Change {
        let source = Source { last_read: now(), latency_ms: 77, empty_since: None };
        Change::PutSource { world: WORLD, sport: self.sport, bookmaker, source }
    }

    fn record(&self) -> KeyRecord {
        self.writer.keyring.get(&self.key).unwrap().record().clone()
    }

    /// Everything in the file as the next start finds it. Where a key stands in the list is left out.
    fn picture(&mut self) -> String {
        self.writer.store.reopen().unwrap();
        self.loaded()
    }

    fn loaded(&mut self) -> String {
        let mut loaded = self.writer.store.load().unwrap();
        assert!(loaded.damage.is_empty(), "{:?}", loaded.damage);
        loaded.keys.sort_by(|(one, _), (other, _)| one.id.as_str().cmp(other.id.as_str()));
        let worlds = loaded.worlds.map(|world| {
            // Numbers that no bookmaker has any more do not matter.
            let books: Vec<_> = world.bookmakers.iter().map(|(id, book)| (id, Arc::clone(book))).collect();
            (books, world.competitions, world.markets, world.sports, world.polls, world.feeder_uses)
        });
        let state = (
            worlds,
            loaded.keys,
            loaded.feeders,
            loaded.feed_budgets,
            loaded.maintenance,
            (loaded.simulated_live, loaded.membership),
        );
        let history = self.writer.store.history();
        let sports: Vec<SportId> = self.writer.catalogue.sport_ids().collect();
        let logged: Vec<_> = World::ALL
            .into_iter()
            .flat_map(|world| sports.iter().map(move |sport| (world, *sport)))
            .map(|(world, sport)| history.last_state(world, sport).unwrap())
            .collect();
        format!("{state:#?}\n{logged:#?}")
    }
}

/// Batches of each variant of [`Change`]. A variant that is missing here does not compile.
macro_rules! batches_of_each {
    ($base:ident; $($variant:ident => $batches:expr,)*) => {
        fn batches_of_each($base: &Base) -> Vec<(&'static str, Vec<Vec<Change>>)> {
            vec![$((stringify!($variant), $batches.into_iter().map(Vec::from).collect())),*]
        }

        fn name_of(change: &Change) -> &'static str {
            match change {
                $(Change::$variant { .. } => stringify!($variant),)*
            }
        }
    };
}

batches_of_each! { base;
    PutBookmaker => [
        [Change::PutBookmaker { world: WORLD, id: BookId::from_number(500), bookmaker: Arc::new(bookmaker("new", "New")), origin: BookOrigin::Declared }],
        [Change::PutBookmaker { world: WORLD, id: base.retitled, bookmaker: Arc::new(bookmaker("unibet", "Other")), origin: BookOrigin::Declared }],
    ],
    RemoveBookmaker => [
        [Change::RemoveBookmaker { world: WORLD, id: base.declared }],
        [Change::RemoveBookmaker { world: WORLD, id: base.retitled }],
    ],
    PutCompetition => [[put_competition(base.sport, "tennis_new")], [put_competition(base.sport, "tennis_open")]],
    RemoveCompetition => [[Change::RemoveCompetition { world: WORLD, key: "tennis_open".into() }]],
    PutMarket => [[Change::PutMarket { world: WORLD, market: prop("player_new") }]],
    RemoveMarket => [[Change::RemoveMarket { world: WORLD, market: prop("player_seen") }]],
    PutEvent => [[base.put_event("a")], [base.put_event("c")], [base.put_event("new")]],
    RemoveEvent => [[Change::RemoveEvent { world: WORLD, sport: base.sport, event: event_id("a") }]],
    PutScore => [[put_score(base.sport)]],
    PutOdds => [[base.put_odds(base.declared)], [base.put_odds(base.idle)]],
    CloseOdds => [[close_odds(base.sport, base.declared)], [close_odds(base.sport, base.idle)]],
    PutSource => [[base.put_source(base.declared)], [base.put_source(base.idle)]],
    RemoveSource => [[Change::RemoveSource { world: WORLD, sport: base.sport, bookmaker: base.declared }]],
    PutPoll => [[put_poll(SCOPE, base.sport)], [put_poll("feed/new", base.sport)]],
    PutPolled => [[put_polled("a", base.declared)], [put_polled("b", base.declared)]],
    RemovePoll => [[Change::RemovePoll { world: WORLD, scope: SCOPE.into() }]],
    PutKey => [
        [Change::PutKey(Arc::new(KeyRecord { name: "other".into(), ..base.record() }))],
        [Change::PutKey(Arc::new(KeyRecord { id: KeyId::new("key_000000000new").unwrap(), ..base.record() }))],
    ],
    RemoveKey => [[Change::RemoveKey(base.key.clone())]],
    PutUsage => [[Change::PutUsage { key: base.key.clone(), usage: Usage { day: 1, day_used: 9, month: 1, month_used: 9 }, last_used: Some(now()) }]],
    PutFeeder => [[Change::PutFeeder(Arc::new(Feeder { revoked: Some(now()), ..Feeder::clone(&base.writer.feeders.get("old").unwrap()) }))]],
    PutFeederUse => [[put_use("token/old")], [put_use("token/new")]],
    SetMaintenance => [[Change::SetMaintenance(Some(Maintenance { since: now(), until: None }))]],
    SetSimulated => [[Change::SetSimulated(true)]],
    SetMembership => [[Change::SetMembership(Some(Membership { cluster: 1, epoch: 1, file: 2, applied: EntryId { ms: 1, number: 0 }, fence: 1 }))]],
    PutFeedBudget => [[put_budget("old")], [put_budget("new")]],
    RemoveFeedBudget => [[Change::RemoveFeedBudget { feed: "old".into() }]],
    Log => [[base.log_entry("a")], [base.log_entry("new")]],
    // What was counted is right wherever it is; an undo itself, and the change of a file that nobody uses: none of them is
    // ever taken back.
    PutRecentUse => Vec::<Vec<Change>>::new(),
    RevertLog => Vec::<Vec<Change>>::new(),
    ClearLog => Vec::<Vec<Change>>::new(),
    RenewEpochs => Vec::<Vec<Change>>::new(),
    Audit => [[Change::Audit(AuditNote { at: now(), who: "w".into(), action: "a".into(), subject: "s".into(), detail: "d".into() })]],
}

fn put_competition(sport: SportId, key: &str) -> Change {
    let competition = SeenCompetition { sport, title: "Another title".into() };
    Change::PutCompetition { world: WORLD, key: key.into(), competition }
}

fn prop(key: &str) -> Market {
    Market::intern(&MarketKey::New(key.into())).unwrap()
}

fn put_score(sport: SportId) -> Change {
    let status = ScoreStatus::Live;
    let score = Score { status, points: Some((1, 0)), periods: [].into(), winner: None, updated: now() };
    Change::PutScore { world: WORLD, sport, event: event_id("a"), score: Arc::new(score) }
}

fn close_odds(sport: SportId, bookmaker: BookId) -> Change {
    let closed = Closed { bookmaker, market: Market::MONEYLINE, at: now() };
    Change::CloseOdds { world: WORLD, sport, event: event_id("a"), closed }
}

fn put_poll(scope: &str, sport: SportId) -> Change {
    Change::PutPoll { world: WORLD, scope: scope.into(), sport, stale_after_s: 999, books: [].into() }
}

fn put_polled(event: &str, bookmaker: BookId) -> Change {
    let records = [(bookmaker, Market::SPREAD)].into();
    Change::PutPolled { world: WORLD, scope: SCOPE.into(), event: event_id(event), records }
}

fn put_use(feed: &str) -> Change {
    let used = FeederUse { day: 1, bookmakers_today: 7, bookmakers: 7, ..FeederUse::default() };
    Change::PutFeederUse { world: WORLD, feed: feed.into(), used }
}

fn put_budget(feed: &str) -> Change {
    Change::PutFeedBudget { feed: feed.into(), budget: FeedBudget { day: 2, spent: 7, ..FeedBudget::default() } }
}

#[test]
fn every_change_that_was_refused_and_kept_is_taken_back() {
    let mut base = filled();
    let before = base.picture();
    for (name, batches) in batches_of_each(&base) {
        for (number, changes) in batches.into_iter().enumerate() {
            assert!(changes.iter().all(|change| name_of(change) == name), "{name}");
            base.writer.store.commit(&changes).unwrap();
            // The audit log is only ever added to: what is in it is looked at below.
            assert_eq!(base.loaded() != before, name != "Audit", "{name} {number}: the change makes no difference");
            let undo = base.writer.undo(&changes);
            base.writer.store.commit(&undo).unwrap();
            let after = base.picture();
            assert!(after == before, "{name} {number}: not taken back by {undo:#?}\n{}", differences(&before, &after));
        }
    }
    let notes = base.writer.audit_tail(2).unwrap();
    let actions: Vec<&str> = notes.iter().map(|entry| &*entry.note.action).collect();
    assert_eq!(actions, ["a", "a taken back"]);
}

#[test]
fn all_changes_together_are_reverted_in_an_order_that_the_file_accepts() {
    let mut base = filled();
    let before = base.picture();
    let one_of_each: Vec<Vec<Change>> = batches_of_each(&base).into_iter().flat_map(|(_, batches)| batches).collect();
    let forwards = one_of_each.concat();
    // An event or a bookmaker may be removed before or after what belongs to it is changed.
    let removed = |change: &Change| matches!(change, Change::RemoveBookmaker { .. } | Change::RemoveEvent { .. });
    let (removals, others): (Vec<_>, Vec<_>) = forwards.into_iter().partition(removed);
    let is_left = |change: &Change| !matches!(change, Change::RemoveKey(_));
    let changes: Vec<Change> = others.into_iter().chain(removals).filter(is_left).collect();
    base.writer.store.commit(&changes).unwrap();
    let undo = base.writer.undo(&changes);
    base.writer.store.commit(&undo).unwrap();
    let after = base.picture();
    assert!(after == before, "{}", differences(&before, &after));
}

fn differences(before: &str, after: &str) -> String {
    let lines = before.lines().zip(after.lines()).filter(|(one, other)| one != other).take(10);
    lines.flat_map(|(one, other)| ["- ", one, "\n+ ", other, "\n"]).collect()
}
