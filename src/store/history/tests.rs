//! The log's bytes: whatever is written, a reader gets the same state after every entry.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::Index;

use super::encode::{Dictionary, SectionEncoder};
use super::entry::{EventChange, LogEntry, LoggedChange, RecordChange, SportChanges, TickChanges};
use super::fold::SportFold;
use super::read::apply_sport;
use super::row::{EntryBytes, LogRow, SectionView};
use crate::model::{
    BookId, Contest, Event, EventId, EventStatus, Market, OddsFormat, Outcome, OutcomeName, Period, Point, Price,
    Record, RecordId, Score, ScoreStatus, SportId, Timestamp,
};

const SPORT: u16 = 7;
const BOOKS: [&str; 3] = ["fanduel", "pinnacle", "betfair_ex_uk"];
const MARKETS: [Market; 5] =
    [Market::MONEYLINE, Market::SPREAD, Market::TOTAL_POINTS, Market::OUTRIGHT, Market::THREE_BALL];
const NAMES: [&str; 8] = ["Home", "Away", "Draw", "Over", "Under", "Sinner", "Over\tLeBron", "Under\tAway"];

type Key = (String, usize, usize);

/// A board as the tests keep it: a plain map.
#[derive(Clone, Debug, Default)]
struct Model {
    events: BTreeMap<String, (Arc<Event>, Option<Arc<Score>>)>,
    records: BTreeMap<Key, Arc<Record>>,
}

#[derive(Clone, Debug)]
enum Step {
    PutEvent { id: u8, commence: u32, status: usize, is_renamed: bool, is_field: bool },
    Score { at: Index, home: i32, away: i32, winner: Option<bool>, periods: Vec<(u16, i32, i32)> },
    Remove { at: Index },
    Tick { edits: Vec<Edit>, stale: Vec<bool>, late_s: u32 },
    Restart,
}

#[derive(Clone, Debug)]
struct Edit {
    at: Index,
    book: usize,
    market: usize,
    age_s: i64,
    outcomes: Vec<(usize, Price, Option<i32>)>,
}

fn price() -> impl Strategy<Value = Price> {
    let american =
        (100_i64..3000, any::<bool>()).prop_map(|(odds, is_negative)| if is_negative { -odds } else { odds });
    prop_oneof![
        american.prop_map(|odds| Price::from_american(odds).unwrap()),
        (101_u64..9000).prop_map(|hundredths| Price::from_decimal_milli(hundredths * 10).unwrap()),
        (1001_u64..90_000).prop_map(|milli| Price::from_decimal_milli(milli).unwrap()),
        (1_u64..200, 1_u64..90)
            .prop_map(|(profit, stake)| Price::from_fraction(profit, stake, OddsFormat::Fractional).unwrap()),
        // Not a whole number of American odds.
        Just(Price::from_fraction(7, 13, OddsFormat::American).unwrap()),
    ]
}

/// The outcomes of a record, at least one.
pub(super) fn outcomes() -> impl Strategy<Value = Arc<[Outcome]>> {
    let point = prop::option::of((-400_i32..400).prop_map(|quarters| quarters * 125));
    let outcome = (0..NAMES.len(), price(), point).prop_map(|outcome| outcome_of(&outcome));
    prop::collection::vec(outcome, 1..4).prop_map(Into::into)
}

fn edit() -> impl Strategy<Value = Edit> {
    let outcome = (0..NAMES.len(), price(), prop::option::of((-400_i32..400).prop_map(|quarters| quarters * 125)));
    let outcomes = prop::collection::vec(outcome, 0..4);
    (any::<Index>(), 0..BOOKS.len(), 0..MARKETS.len(), -3_i64..4000, outcomes)
        .prop_map(|(at, book, market, age_s, outcomes)| Edit { at, book, market, age_s, outcomes })
}

fn step() -> impl Strategy<Value = Step> {
    let periods = prop::collection::vec((1_u16..9, 0..9_i32, 0..9_i32), 0..3);
    prop_oneof![
        3 => (0_u8..6, 0_u32..100_000, 0..4_usize, any::<bool>(), any::<bool>()).prop_map(
            |(id, commence, status, is_renamed, is_field)| Step::PutEvent { id, commence, status, is_renamed, is_field }
        ),
        1 => (any::<Index>(), 0..99_i32, -9..99_i32, any::<Option<bool>>(), periods)
            .prop_map(|(at, home, away, winner, periods)| Step::Score { at, home, away, winner, periods }),
        1 => any::<Index>().prop_map(|at| Step::Remove { at }),
        8 => (prop::collection::vec(edit(), 0..6), prop::collection::vec(any::<bool>(), BOOKS.len()), 0_u32..3)
            .prop_map(|(edits, stale, late_s)| Step::Tick { edits, stale, late_s }),
        1 => Just(Step::Restart),
    ]
}

fn sport() -> SportId {
    crate::config::catalogue::builtin().sport_ids().next().unwrap()
}

fn event(id: u8, commence: u32, status: usize, is_renamed: bool, is_field: bool) -> Event {
    let home: Arc<str> = if is_renamed { "Home FC" } else { "Home" }.into();
    Event {
        id: EventId::new(&format!("event-{id}")).unwrap(),
        competition: "League".into(),
        competition_key: if is_field { "tour" } else { "league" }.into(),
        commence: Timestamp::from_unix(commence),
        contest: if is_field {
            Contest::Tournament { title: home }
        } else {
            Contest::Sides { home, away: "Away".into() }
        },
        status: EventStatus::ALL[status],
        changed: Timestamp::default(),
    }
}

fn outcome_of((at, price, point): &(usize, Price, Option<i32>)) -> Outcome {
    let name = match NAMES[*at].split_once('\t') {
        Some((name, description)) => OutcomeName::new(name, Some(description)),
        None => NAMES[*at].into(),
    };
    Outcome { name, price: *price, point: point.and_then(Point::from_milli) }
}

fn record(key: &Key, edit: &Edit, tick: Timestamp) -> Record {
    let id = EventId::new(&key.0).unwrap();
    Record {
        id: RecordId::new("tennis", &id, BOOKS[key.1], MARKETS[key.2]),
        bookmaker: BookId::from_number(u16::try_from(key.1).unwrap()),
        market: MARKETS[key.2],
        last_update: Timestamp::checked_from_unix(i64::from(tick.unix()) - edit.age_s).unwrap(),
        bookmaker_update: None,
        outcomes: edit.outcomes.iter().map(outcome_of).collect(),
    }
}

impl Model {
    /// What a step changes, and the model after it.
    fn take(&mut self, step: &Step, now: Timestamp) -> SportChanges {
        let (mut events, mut tick) = (Vec::new(), None);
        match step {
            Step::PutEvent { id, commence, status, is_renamed, is_field } => {
                let event = Arc::new(event(*id, *commence, *status, *is_renamed, *is_field));
                events.push(EventChange::Put(Arc::clone(&event)));
                self.events.entry(event.id.to_string()).or_insert((Arc::clone(&event), None)).0 = Arc::clone(&event);
            }
            Step::Score { at, home, away, winner, periods } if !self.events.is_empty() => {
                let at = at.index(self.events.len());
                let (event, stored) = self.events.values_mut().nth(at).unwrap();
                let score = Arc::new(Score {
                    status: ScoreStatus::Live,
                    points: event.home().map(|_| (*home, *away)),
                    periods: periods
                        .iter()
                        .map(|(number, home, away)| Period { number: *number, home: *home, away: *away })
                        .collect(),
                    winner: winner
                        .and_then(|is_home| if is_home { event.home().cloned() } else { Some("Other".into()) }),
                    updated: now,
                });
                *stored = Some(Arc::clone(&score));
                events.push(EventChange::Score(event.id.clone(), score));
            }
            Step::Remove { at } if !self.events.is_empty() => {
                let id = self.events.keys().nth(at.index(self.events.len())).unwrap().clone();
                let (event, _) = self.events.remove(&id).unwrap();
                self.records.retain(|key, _| key.0 != id);
                events.push(EventChange::Removed(event.id.clone()));
            }
            Step::Tick { edits, stale, late_s } => {
                let at = Timestamp::from_unix(now.unix() - late_s);
                let records = self.publish(edits, at);
                let stale = BOOKS.iter().zip(stale).filter(|(_, is_stale)| **is_stale).map(|(key, _)| (*key).into());
                tick = Some(TickChanges { at, stale: stale.collect(), records });
            }
            _ => {}
        }
        SportChanges { sport: sport(), events, tick }
    }

    fn publish(&mut self, edits: &[Edit], at: Timestamp) -> Vec<RecordChange> {
        let mut changes: BTreeMap<Key, RecordChange> = BTreeMap::new();
        for edit in edits.iter().filter(|_| !self.events.is_empty()) {
            let id = self.events.keys().nth(edit.at.index(self.events.len())).unwrap().clone();
            let key: Key = (id.clone(), edit.book, edit.market);
            if changes.contains_key(&key) || (edit.outcomes.is_empty() && !self.records.contains_key(&key)) {
                continue;
            }
            let before = self.records.remove(&key);
            let after = (!edit.outcomes.is_empty()).then(|| Arc::new(record(&key, edit, at)));
            self.records.extend(after.iter().map(|after| (key.clone(), Arc::clone(after))));
            let (event, bookmaker) = (EventId::new(&id).unwrap(), BOOKS[edit.book].into());
            changes.insert(key, RecordChange { event, bookmaker, market: MARKETS[edit.market], before, after });
        }
        changes.into_values().collect()
    }

    fn check(&self, fold: &SportFold) {
        assert_eq!(fold.events().count(), self.events.len());
        let mut records = 0;
        for folded in fold.events() {
            let (event, score) = &self.events[folded.event.id.as_str()];
            assert_eq!(Event { changed: event.changed, ..(*folded.event).clone() }, **event);
            assert_eq!(&folded.score, score);
            for (book, market, price) in fold.records(folded) {
                let at = |all: &[&str], key: &str| all.iter().position(|known| *known == key).unwrap();
                let market = MARKETS.iter().position(|known| *known == market).unwrap();
                let record = &self.records[&(event.id.to_string(), at(&BOOKS, book), market)];
                assert_eq!((&*price.outcomes, price.last_update), (&*record.outcomes, record.last_update));
                records += 1;
            }
        }
        assert_eq!(records, self.records.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn reader_has_the_same_state_after_every_entry(steps in prop::collection::vec(step(), 1..40)) {
        let (mut model, mut dictionary, mut fold) = (Model::default(), Dictionary::default(), SportFold::default());
        let mut from_frame = SportFold::default();
        let (mut last_tick, mut rows) = (None, Vec::new());
        for (now, step) in (2_000_000_000..).map(Timestamp::from_unix).zip(&steps) {
            if let Step::Restart = step {
                let frame = fold.to_keyframe(now).unwrap();
                from_frame = SportFold::from_keyframe(&frame).unwrap();
                prop_assert_eq!(&from_frame, &fold);
                dictionary = from_frame.dictionary();
                continue;
            }
            let changes = model.take(step, now);
            let section = SectionEncoder::new(&mut dictionary, now).encode(&changes).unwrap();
            if let Some(tick) = section.tick {
                prop_assert!(last_tick.is_none_or(|last| tick > last), "ticks of a sport are unique and in order");
                last_tick = Some(tick);
            }
            let is_tick = changes.tick.is_some();
            let row = EntryBytes::new(now, 1, &[(SPORT, section)]);
            rows.push(row.clone());
            for fold in [&mut fold, &mut from_frame] {
                let mut seen = 0;
                apply_sport(fold, SPORT, &row.view().unwrap(), |_| seen += 1).unwrap();
                prop_assert_eq!(seen, changes.events.len() + usize::from(is_tick));
            }
            model.check(&fold);
            model.check(&from_frame);
        }
        let pack = LogRow::pack(&rows).unwrap();
        prop_assert_eq!(pack.count(), Ok(rows.len() as u64));
        let mut unpacked = SportFold::default();
        for entry in pack.entries().unwrap() {
            apply_sport(&mut unpacked, SPORT, &entry.view().unwrap(), |_| {}).unwrap();
        }
        prop_assert_eq!(unpacked, fold);
    }

    /// What is left when an event is deleted: the same states without it, and the same numbers of everything else.
    #[test]
    fn rewritten_entries_give_the_same_states_without_the_event(
        steps in prop::collection::vec(step(), 1..40),
        ids in prop::collection::vec(0_u8..6, 1..3),
    ) {
        let (mut model, mut dictionary) = (Model::default(), Dictionary::default());
        let mut entries = Vec::new();
        for (now, step) in (2_000_000_000..).map(Timestamp::from_unix).zip(&steps) {
            let changes = model.take(step, now);
            let section = SectionEncoder::new(&mut dictionary, now).encode(&changes).unwrap();
            entries.push(EntryBytes::new(now, 1, &[(SPORT, section)]));
        }
        for id in ids.iter().map(|id| EventId::new(&format!("event-{id}")).unwrap()) {
            let (mut before, mut beside, mut after) =
                (SportFold::default(), SportFold::default(), SportFold::default());
            for entry in &mut entries {
                let view = entry.view().unwrap();
                let mut changes = Vec::new();
                before.apply(&view.sections[0], view.at, |change| changes.push(change)).unwrap();
                let rewritten = beside.rewrite(&view.sections[0], view.at, &id).unwrap();
                prop_assert_eq!(&beside, &before);
                let section = SectionView { bytes: &rewritten.bytes, ..view.sections[0] };
                let mut left = Vec::new();
                after.apply(&section, view.at, |change| left.push(change)).unwrap();
                let mut without = before.clone();
                without.remove_event(&id);
                prop_assert_eq!(&after, &without);
                prop_assert_eq!(left, without_changes(changes, &id));
                *entry = EntryBytes::of_sections(view.at, view.changes, [section].into_iter());
            }
        }
    }

    /// Whatever the bytes are, reading them ends with an error or a state, and never with a panic.
    #[test]
    fn damaged_bytes_are_an_error(bytes: Vec<u8>) {
        for entry in LogRow(bytes.clone()).entries().unwrap_or_default() {
            for section in entry.view().map(|entry| entry.sections).unwrap_or_default() {
                let _ = SportFold::default().apply(&section, Timestamp::from_unix(9), |_| {});
            }
        }
        let mut body = 2_000_000_000_u32.to_le_bytes().to_vec();
        body.extend_from_slice(&bytes);
        let _ = SportFold::from_keyframe(&zstd::bulk::compress(&body, 1).unwrap());
    }
}

fn without_changes(changes: Vec<LoggedChange>, id: &EventId) -> Vec<LoggedChange> {
    let left = changes.into_iter().filter_map(|change| match change {
        LoggedChange::Event(ref event, ..) | LoggedChange::Score(ref event, _) | LoggedChange::Removed(ref event) => {
            (event.id != *id).then_some(change)
        }
        LoggedChange::Tick(mut tick) => {
            tick.records.retain(|record| record.event.id != *id);
            Some(LoggedChange::Tick(tick))
        }
    });
    left.collect()
}

#[test]
fn entry_of_an_unknown_event_is_refused() {
    let id = EventId::new("nobody").unwrap();
    let changes = SportChanges { sport: sport(), events: vec![EventChange::Removed(id.clone())], tick: None };
    let entry = LogEntry { at: Timestamp::from_unix(9), sports: vec![changes] };
    let refused = SectionEncoder::new(&mut Dictionary::default(), entry.at).encode(&entry.sports[0]);
    assert_eq!(refused.unwrap_err().0, id);
}
