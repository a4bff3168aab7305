//! After an I/O error, reopening says whether the commit is in the file, for every change that there is. A wrong answer
//! loses an acknowledged change, or keeps one that was refused.

use std::collections::BTreeSet;

use proptest::prelude::*;
use redb::ReadableDatabase;

use super::property::batches;
use super::*;
use crate::keys::{RECENT_HOURS, RecentUse, Usage};
use crate::model::{
    Closed, EntryId, FeedBudget, FeederUse, Maintenance, Membership, Score, ScoreStatus, SeenCompetition, Source,
};
use crate::store::encode_batch::BatchEncoder;
use crate::store::{BookOrigin, LogHead};

const WORLD: World = World::Live;
/// Declared by a feed: the catalogue does not put it back when the file is opened.
const DECLARED: BookId = BookId::from_number(3);

/// One batch for each variant of [`Change`]. A variant that is missing here does not compile.
macro_rules! batch_of_each {
    ($($variant:ident => $changes:expr,)*) => {
        fn batch_of_each() -> Vec<(&'static str, Vec<Change>)> {
            vec![$((stringify!($variant), $changes.into())),*]
        }

        fn name_of(change: &Change) -> &'static str {
            match change {
                $(Change::$variant { .. } => stringify!($variant),)*
            }
        }
    };
}

batch_of_each! {
    PutBookmaker => [Change::PutBookmaker { world: WORLD, id: BookId::from_number(4), bookmaker: Arc::new(book("new")), origin: BookOrigin::Declared }],
    RemoveBookmaker => [Change::RemoveBookmaker { world: WORLD, id: DECLARED }],
    PutCompetition => [put_competition("mma_old", "Other title")],
    RemoveCompetition => [Change::RemoveCompetition { world: WORLD, key: "mma_old".into() }],
    PutMarket => [Change::PutMarket { world: WORLD, market: prop("player_new") }],
    RemoveMarket => [Change::RemoveMarket { world: WORLD, market: prop("player_old") }],
    PutEvent => [put_event(WORLD, "a", 9)],
    RemoveEvent => [Change::RemoveEvent { world: WORLD, sport: sport_id(0), event: event_id("a") }],
    PutScore => [put_score("b", 3)],
    PutOdds => [put_odds(WORLD, "b", 0, Market::MONEYLINE)],
    CloseOdds => [close_odds("a")],
    PutSource => [put_source(BookId::from_number(1))],
    RemoveSource => [Change::RemoveSource { world: WORLD, sport: sport_id(0), bookmaker: DECLARED }],
    PutPoll => [put_poll("feed/new")],
    PutPolled => [put_polled("feed/old", "a", &[(0, Market::SPREAD)])],
    RemovePoll => [Change::RemovePoll { world: WORLD, scope: "feed/old".into() }],
    PutKey => [Change::PutKey(key("new"))],
    RemoveKey => [Change::RemoveKey(key("old").id.clone())],
    PutUsage => [put_usage("old", 9)],
    PutRecentUse => [put_recent_use("old", 9)],
    PutFeeder => [Change::PutFeeder(Arc::new(Feeder { name: "new".into(), ..feeder() }))],
    PutFeederUse => [put_use("token/old", 2)],
    SetMaintenance => [Change::SetMaintenance(Some(Maintenance { since: at(1), until: None }))],
    SetSimulated => [Change::SetSimulated(true)],
    SetMembership => [Change::SetMembership(Some(Membership { cluster: 1, epoch: 2, file: 6, applied: EntryId { ms: 3, number: 4 }, fence: 5 }))],
    PutFeedBudget => [put_budget("new", 1)],
    RemoveFeedBudget => [Change::RemoveFeedBudget { feed: "old".into() }],
    Log => [log_tick(World::Sandbox)],
    RevertLog => [Change::RevertLog { world: WORLD, head: LogHead { epoch: 7, start: 1, next: 1, ..LogHead::default() } }],
    ClearLog => [Change::ClearLog { world: WORLD, epoch: 5 }],
    RenewEpochs => [Change::RenewEpochs([3, 4])],
    Audit => [Change::Audit(note("something"))],
}

fn put_competition(key: &str, title: &str) -> Change {
    let competition = SeenCompetition { sport: sport_id(0), title: title.into() };
    Change::PutCompetition { world: WORLD, key: key.into(), competition }
}

fn put_score(event: &str, points: i32) -> Change {
    let score = Score {
        status: ScoreStatus::Live,
        points: Some((points, 0)),
        periods: [].into(),
        winner: None,
        updated: at(4),
    };
    Change::PutScore { world: WORLD, sport: sport_id(0), event: event_id(event), score: Arc::new(score) }
}

fn close_odds(event: &str) -> Change {
    let closed = Closed { bookmaker: BookId::from_number(0), market: Market::MONEYLINE, at: at(8) };
    Change::CloseOdds { world: WORLD, sport: sport_id(0), event: event_id(event), closed }
}

fn put_source(bookmaker: BookId) -> Change {
    let source = Source { last_read: at(5), latency_ms: 5, empty_since: None };
    Change::PutSource { world: WORLD, sport: sport_id(0), bookmaker, source }
}

fn put_usage(name: &str, used: u64) -> Change {
    let usage = Usage { day: 1, day_used: used, month: 1, month_used: used };
    Change::PutUsage { key: key(name).id.clone(), usage, last_used: None }
}

fn put_recent_use(name: &str, used: u32) -> Change {
    let recent = RecentUse { last_hour: 480_000, hours: [used; RECENT_HOURS], ..RecentUse::default() };
    Change::PutRecentUse { key: key(name).id.clone(), recent: Box::new(recent) }
}

fn put_budget(feed: &str, spent: u64) -> Change {
    Change::PutFeedBudget { feed: feed.into(), budget: FeedBudget { day: 1, spent, ..FeedBudget::default() } }
}

fn put_use(feed: &str, bookmakers: u32) -> Change {
    Change::PutFeederUse { world: WORLD, feed: feed.into(), used: FeederUse { bookmakers, ..FeederUse::default() } }
}

/// A file in which each of the batches makes a difference.
fn base() -> Vec<u8> {
    let memory = Memory::new(Vec::new());
    let mut store = memory.open();
    let declared = Bookmaker { key: "declared".into(), ..book("declared") };
    let record = Arc::new(Record { bookmaker: DECLARED, ..(*record("mma", "a", 2, Market::MONEYLINE, 5)).clone() });
    store
        .commit(&[
            Change::PutBookmaker {
                world: WORLD,
                id: DECLARED,
                bookmaker: Arc::new(declared),
                origin: BookOrigin::Declared,
            },
            put_competition("mma_old", "Old"),
            Change::PutMarket { world: WORLD, market: prop("player_old") },
            put_event(WORLD, "a", 1),
            put_event(WORLD, "b", 2),
            put_score("a", 1),
            put_odds(WORLD, "a", 0, Market::MONEYLINE),
            put_odds(WORLD, "b", 1, Market::SPREAD),
            Change::PutOdds { world: WORLD, sport: sport_id(0), event: event_id("a"), record },
            put_source(BookId::from_number(0)),
            put_source(DECLARED),
            put_poll("feed/old"),
            put_polled("feed/old", "a", &[(0, Market::MONEYLINE)]),
            Change::PutKey(key("old")),
            put_usage("old", 1),
            Change::PutFeeder(Arc::new(feeder())),
            put_budget("old", 1),
            put_use("token/old", 1),
            log_tick(World::Live),
            Change::Audit(note("first")),
        ])
        .unwrap();
    // Writes the epochs.
    store.load().unwrap();
    drop(store);
    memory.bytes()
}

/// Everything in the file, the audit log included.
fn state(store: &mut Store) -> String {
    let loaded = store.load().unwrap();
    assert!(loaded.damage.is_empty(), "{:?}", loaded.damage);
    format!("{} {:#?}", picture(&loaded), store.audit(None, 100).unwrap())
}

#[test]
fn reopening_says_whether_the_commit_was_kept_for_every_change() {
    let base = base();
    let before = state(&mut Memory::new(base.clone()).open());
    for (name, batch) in batch_of_each() {
        assert!(batch.iter().all(|change| name_of(change) == name), "{name}");
        let after = {
            let mut store = Memory::new(base.clone()).open();
            store.commit(&batch).unwrap();
            state(&mut store)
        };
        assert_ne!(before, after, "{name}: the batch makes no difference");
        let mut answers = BTreeSet::new();
        'writes: for writes in 0.. {
            for lose_unsynced in [false, true] {
                let memory = Memory::new(base.clone());
                let mut store = memory.open();
                memory.fail_after(writes);
                let result = store.commit(&batch);
                memory.fail_after(u64::MAX);
                if result.is_ok() {
                    break 'writes;
                }
                if lose_unsynced {
                    memory.lose_unsynced();
                }
                let was_kept = store.reopen().unwrap();
                answers.insert(was_kept);
                let expected = if was_kept { &after } else { &before };
                assert_eq!(state(&mut store), *expected, "{name}, {writes} writes: reopening said kept = {was_kept}");
            }
        }
        assert_eq!(answers.len(), 2, "{name}: a commit that was kept and one that was not");
    }
}

#[test]
fn batch_with_nothing_to_compare_counts_as_not_committed() {
    let memory = Memory::new(base());
    let mut store = memory.open();
    memory.fail_after(0);
    let nothing = Change::RemoveEvent { world: WORLD, sport: sport_id(0), event: event_id("nowhere") };
    store.commit(&[nothing]).unwrap_err();
    memory.fail_after(u64::MAX);
    assert!(!store.reopen().unwrap());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// Also for batches that remove a row and put it again, and the other way round.
    #[test]
    fn committed_batch_is_recognised(batches in batches()) {
        let mut store = Memory::new(Vec::new()).open();
        for changes in batches {
            let before = state(&mut store);
            let maps = store.take_id_maps().unwrap();
            let mut encoder = BatchEncoder::new(&maps, &store.sports, None);
            let encoded = changes.iter().try_for_each(|change| encoder.add(change)).and_then(|()| encoder.finish());
            let Ok((batch, _)) = encoded else { continue };
            let sports: Vec<u16> = store.sports.all().collect();
            let is_stored = |store: &Store| batch.is_stored(&store.file().unwrap().db.begin_read().unwrap(), &sports).unwrap();
            let was_stored = is_stored(&store);
            if batch.commit(&store.file().unwrap().db, &sports).is_err() {
                continue;
            }
            // Loading the file deletes names that the batch has put and does not use.
            let is_recognised = is_stored(&store);
            let after = state(&mut store);
            prop_assert_eq!(was_stored && before != after, false, "taken for stored before it was");
            prop_assert!(is_recognised || before == after, "{changes:?}");
        }
    }
}
