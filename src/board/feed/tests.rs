//! The memory that entries take is what they are said to take.

use std::sync::Arc;

use super::*;
use crate::model::{
    Bookmakers, Contest, Event, EventId, EventStatus, Market, MarketFilter, OddsFormat, Outcome, Price, Record,
    RecordId, Region, Regions, SportSet,
};

const SPORT_KEY: &str = "golf_tournaments";

fn sport() -> SportId {
    SportId::all().next().unwrap()
}

fn event() -> Arc<Event> {
    Arc::new(Event {
        id: EventId::new("the-masters-2026-augusta").unwrap(),
        competition: "The Masters".into(),
        competition_key: "golf_masters_tournament_winner".into(),
        commence: Timestamp::from_unix(1_792_000_000),
        contest: Contest::Tournament { title: "The Masters".into() },
        status: EventStatus::Scheduled,
        changed: Timestamp::from_unix(0),
    })
}

fn record(event: &Event, bookmaker: &str, players: usize) -> Arc<Record> {
    let id = RecordId::new(SPORT_KEY, &event.id, bookmaker, Market::OUTRIGHT);
    let outcome = |player: usize| Outcome {
        name: format!("Player Number {player:03}").as_str().into(),
        price: Price::from_american(1_000 + i64::try_from(player).unwrap() * 100).unwrap(),
        point: None,
    };
    let outcomes: Vec<Outcome> = (0..players).map(outcome).collect();
    Arc::new(Record::logged(id, Market::OUTRIGHT, Timestamp::from_unix(1_790_000_000), &outcomes))
}

/// Prices of so many bookmakers.
fn sports(books: usize, players: usize) -> Vec<SportEntry> {
    let event = event();
    let changed = |book: usize| -> ChangedRecord {
        let key: Arc<str> = format!("bookmaker{book:02}").into();
        (Arc::clone(&event), Arc::clone(&key), Market::OUTRIGHT, Some(record(&event, &key, players)))
    };
    let at = Timestamp::from_unix(1_790_000_000);
    let tick = TickEntry::new(SPORT_KEY, at, Vec::new(), (0..books).map(changed).collect());
    vec![SportEntry { sport: sport(), key: SPORT_KEY.into(), lists: Vec::new(), tick: Some(tick) }]
}

fn everything(format: OddsFormat, with_event: bool) -> FilterSpec {
    FilterSpec {
        sports: SportSet::NONE.with(sport()),
        sides_only: SportSet::NONE,
        competitions: None,
        events: None,
        markets: [MarketFilter::All].into(),
        markets_to_come: Box::default(),
        bookmakers: None,
        regions: None,
        format,
        with_event,
    }
}

fn nothing() -> FilterSpec {
    FilterSpec { sports: SportSet::NONE, ..everything(OddsFormat::Decimal, false) }
}

/// Filters of all that is published, one for each form of a record.
fn filters() -> Vec<ChangeFilter> {
    let forms = OddsFormat::ALL.into_iter().flat_map(|format| [(format, false), (format, true)]);
    forms.map(|(format, with_event)| ChangeFilter::new(everything(format, with_event))).collect()
}

fn render(entry: &ChangeEntry, filter: &ChangeFilter) {
    let register = Register::new(Bookmakers::default());
    let frames = entry.frames(filter, &register, Position::before(1, entry.sequence));
    assert!(!frames.is_empty());
}

#[test]
fn window_is_within_its_bound_with_all_that_is_rendered_of_it() {
    let feed = Feed::default();
    for sequence in 1..=400 {
        feed.push(ChangeEntry::new(sequence, sports(4, 150)));
        let NextChange::Entry(entry, _) = feed.next(Position::before(1, sequence), feed.last_beat()) else {
            panic!("it was pushed")
        };
        for filter in filters() {
            render(&entry, &filter);
        }
        feed.beat(Beat::new(Timestamp::default(), Position::before(1, sequence + 1), Vec::new()));
        let window = feed.window();
        let bytes: usize = window.entries.iter().map(|entry| entry.weight() + entry.weight_of_forms()).sum();
        assert!(bytes <= WINDOW_BYTES_MAX, "{bytes}");
        assert!(window.entries.back().is_some_and(|last| last.sequence == sequence));
        if sequence == 400 {
            assert!(bytes > WINDOW_BYTES_MAX * 9 / 10, "it is used: {bytes}");
        }
    }
    feed.push(ChangeEntry::new(401, sports(10, 150)));
    feed.push(ChangeEntry::new(402, sports(3_500, 150)));
    assert_eq!(feed.window().entries.len(), 1, "the last one is kept, however long it is");
}

#[test]
fn entry_of_the_log_takes_at_most_its_weight_in_each_form() {
    for (books, players) in [(1, 2), (3, 20), (40, 3), (30, 150), (2_500, 2)] {
        for filter in filters() {
            let entry = ChangeEntry::logged(7, sports(books, players));
            let (weight, weight_rendered) = (entry.weight(), entry.weight_rendered());
            render(&entry, &filter);
            let bytes = weight + entry.weight_of_forms() + entry.frames.size().0;
            assert!(bytes <= weight_rendered, "{books} {players}: {bytes} of {weight_rendered}");
            assert!(bytes > weight_rendered / 3, "{books} {players}: {bytes} of {weight_rendered}");
            assert_eq!(weight_rendered, entry.weight_rendered());
        }
    }
}

#[test]
fn entry_of_the_log_keeps_few_frames() {
    let entry = ChangeEntry::logged(7, sports(3, 20));
    for _ in 0..50 {
        for filter in filters() {
            render(&entry, &filter);
        }
    }
    let (bytes, _) = entry.frames.size();
    assert!(bytes <= entry.weight_rendered(), "{bytes}");
}

#[test]
fn frames_that_are_empty_are_kept_within_the_bound_too() {
    let (logged, pushed) = (ChangeEntry::logged(7, sports(3, 20)), ChangeEntry::new(8, sports(3, 20)));
    let retired = ChangeEntry::new(9, sports(3, 20));
    retired.retire();
    let register = Register::new(Bookmakers::default());
    for (entry, bytes_max) in [(logged, 8 << 10), (pushed, 2 << 20), (retired, 8 << 10)] {
        for _ in 0..20_000 {
            let filter = ChangeFilter::new(nothing());
            assert!(entry.frames(&filter, &register, Position::before(1, entry.sequence)).is_empty());
        }
        let (bytes, filters) = entry.frames.size();
        assert!(filters > 1 && filters * size_of::<(u64, Bytes)>() <= bytes, "{filters} filters in {bytes} bytes");
        assert!(bytes <= bytes_max, "{bytes} bytes for {filters} filters");
    }
}

#[test]
fn frames_of_old_entries_are_bounded_also_without_a_beat() {
    let (feed, register) = (Feed::default(), Register::new(Bookmakers::default()));
    let count = RENDERED_ENTRIES + 1;
    for (sequence, _) in (1..).zip(0..count) {
        feed.push(ChangeEntry::new(sequence, sports(3, 20)));
        if sequence == 1 {
            let NextChange::Entry(entry, _) = feed.next(Position::before(1, 1), 0) else { panic!("not kept") };
            for _ in 0..1000 {
                let _ = entry.frames(&ChangeFilter::new(nothing()), &register, Position::before(1, 1));
            }
            assert_eq!(entry.frames.size().1, 1000);
        }
    }
    let kept: Vec<_> = feed.entries_from(1).unwrap().iter().map(|entry| entry.frames.size().1).collect();
    assert_eq!(kept, vec![0; count]);
}

#[test]
fn close_of_a_bookmaker_that_was_removed_reaches_whoever_follows_a_region() {
    let (event, at) = (event(), Timestamp::from_unix(1_790_000_000));
    let closed: ChangedRecord = (Arc::clone(&event), "gone".into(), Market::OUTRIGHT, None);
    let tick = TickEntry::new(SPORT_KEY, at, Vec::new(), vec![closed]);
    let sport = SportEntry { sport: sport(), key: SPORT_KEY.into(), lists: Vec::new(), tick: Some(tick) };
    let entry = ChangeEntry::new(7, vec![sport]);
    let of_region = FilterSpec { regions: Some(Regions::only(Region::Us)), ..everything(OddsFormat::Decimal, false) };
    let of_another = FilterSpec { bookmakers: Some(["other".into()].into()), ..of_region.clone() };
    let register = Register::new(Bookmakers::default());
    let frames = |spec| entry.frames(&ChangeFilter::new(spec), &register, Position::before(1, 7));
    assert!(!frames(of_region).is_empty());
    assert!(frames(of_another).is_empty());
}

#[test]
fn merged_changes_have_no_source_of_a_sport_that_is_not_followed() {
    let tick = TickEntry::new(SPORT_KEY, Timestamp::from_unix(1_790_000_000), vec![("book".into(), true)], Vec::new());
    let sport = SportEntry { sport: sport(), key: SPORT_KEY.into(), lists: Vec::new(), tick: Some(tick) };
    let entry = ChangeEntry::new(7, vec![sport]);
    let register = Register::new(Bookmakers::default());
    for (spec, is_followed) in [(nothing(), false), (everything(OddsFormat::Decimal, false), true)] {
        let filter = ChangeFilter::new(spec);
        let mut merged = MergedChanges::new(&filter, &register);
        merged.add(&entry, 0, 10);
        assert_eq!(!merged.frames(Position::before(1, 8)).is_empty(), is_followed);
    }
}
