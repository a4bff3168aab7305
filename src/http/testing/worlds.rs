//! The data of the test service: what its two worlds hold.

use std::sync::Arc;

use super::NOW;
use crate::board::{
    Draft, EventNode, Index, Published, PublishedSource, Register, SourceState, SportBoard, WorldBoard,
};
use crate::model::v4::Pattern;
use crate::model::{
    BookId, Bookmaker, Bookmakers, Catalogue, Competitions, Contest, Event, EventId, EventStatus, Market, OddsFormat,
    Outcome, Period, Point, Position, Price, Record, RecordId, Region, Regions, Score, ScoreStatus, SeenCompetition,
    Source, Sport, SportKind, Timestamp, V4Keys, V4Names,
};

/// A moment so many seconds from now.
pub(super) fn at(offset: i32) -> Timestamp {
    Timestamp::from_unix(NOW.checked_add_signed(offset).unwrap())
}

pub(super) fn catalogue() -> Catalogue {
    let sport = |key: &str, title: &str, group: &str, kind, v4: V4Keys| Sport {
        key: key.into(),
        title: title.into(),
        group: group.into(),
        kind,
        hides_fields: false,
        v4: Some(V4Names { group: title.into(), keys: v4 }),
    };
    let whole = |key: &str, title: &str| V4Keys::Whole {
        key: key.into(),
        title: title.into(),
        description: "All of it".into(),
    };
    let split = |key: &str, title: &str| V4Keys::ByCompetition {
        key: Pattern::parse(key).unwrap(),
        title: Pattern::parse(title).unwrap(),
        irregular: Box::default(),
    };
    let sports = vec![
        sport("mma", "Mixed Martial Arts", "combat", SportKind::Fight, whole("mma_mixed_martial_arts", "MMA")),
        sport("boxing", "Boxing", "combat", SportKind::Fight, whole("boxing_boxing", "Boxing")),
        sport("tennis", "Tennis", "tennis", SportKind::HeadToHead, split("tennis_*", "*")),
        sport(
            "american_football",
            "American Football",
            "american_football",
            SportKind::HeadToHead,
            whole("americanfootball_nfl", "NFL"),
        ),
        sport("golf", "Golf", "golf", SportKind::Tournament, split("golf_*_winner", "* Winner")),
    ];
    Catalogue::new(sports, Vec::new()).unwrap()
}

const BET365: BookId = BookId::from_number(0);
const BETMGM: BookId = BookId::from_number(1);
const PINNACLE: BookId = BookId::from_number(2);
const UNIBET: BookId = BookId::from_number(3);

fn bookmakers() -> Bookmakers {
    let mut books = Bookmakers::default();
    for (id, key, title, regions) in [
        (BET365, "bet365", "bet365", &[Region::Uk, Region::Eu][..]),
        (BETMGM, "betmgm", "BetMGM", &[Region::Us]),
        (PINNACLE, "pinnacle", "Pinnacle", &[Region::Eu, Region::Au]),
        (UNIBET, "unibet", "Unibet", &[Region::Us, Region::Uk, Region::Eu]),
    ] {
        let regions: Regions = regions.iter().copied().collect();
        books.put(id, Arc::new(Bookmaker { key: key.into(), title: title.into(), regions }));
    }
    books
}

fn sides(id: &str, home: &str, away: &str, commence: i32, status: EventStatus) -> Arc<Event> {
    let contest = Contest::Sides { home: home.into(), away: away.into() };
    event(id, "Test League", contest, commence, status)
}

fn event(id: &str, competition: &str, contest: Contest, commence: i32, status: EventStatus) -> Arc<Event> {
    let competition_key = match id.split('-').next() {
        Some("mma") => "mma_mixed_martial_arts",
        Some("nfl") => "americanfootball_nfl",
        Some("golf") => "golf_the_open_winner",
        _ => "tennis_test_league",
    };
    let id = EventId::new(id).unwrap();
    Arc::new(Event {
        id,
        competition: competition.into(),
        competition_key: competition_key.into(),
        commence: at(commence),
        contest,
        status,
        changed: at(-300),
    })
}

fn outcomes(items: &[(&str, &str, Option<&str>)]) -> Box<[Outcome]> {
    let outcome = |(name, price, point): &(&str, &str, Option<&str>)| Outcome {
        name: (*name).into(),
        price: Price::parse(price, OddsFormat::American).unwrap(),
        point: point.map(|point| Point::parse(point).unwrap()),
    };
    items.iter().map(outcome).collect()
}

/// Puts a record into a draft.
fn price(draft: &mut Draft, sport: &str, book: BookId, market: Market, items: &[(&str, &str, Option<&str>)]) {
    let id = RecordId::new(sport, &draft.event().id, bookmakers().key(book), market);
    let record =
        Record { id, bookmaker: book, market, last_update: at(-20), bookmaker_update: None, outcomes: outcomes(items) };
    draft.put(Arc::new(record));
}

fn score(
    draft: &mut Draft,
    status: ScoreStatus,
    points: Option<(i32, i32)>,
    periods: &[(i32, i32)],
    winner: Option<&str>,
) {
    let periods =
        (1..).zip(periods).map(|(number, (home, away))| Period { number, home: *home, away: *away }).collect();
    let winner = winner.map(Into::into);
    draft.set_score(Arc::new(Score { status, points, periods, winner, updated: at(-10) }));
}

fn fights() -> Vec<Draft> {
    let mut first = Draft::new(sides("mma-1", "Ana Silva", "Bea \"The Bull\" Costa", 3600, EventStatus::Scheduled));
    let (ana, bea) = ("Ana Silva", "Bea \"The Bull\" Costa");
    price(&mut first, "mma", BETMGM, Market::MONEYLINE, &[(ana, "-110", None), (bea, "100", None)]);
    price(&mut first, "mma", BET365, Market::MONEYLINE, &[(ana, "-120", None), (bea, "105", None)]);
    let rounds = &[("Over", "-105", Some("2.5")), ("Under", "-115", Some("2.5"))];
    price(&mut first, "mma", BETMGM, Market::TOTAL_ROUNDS, rounds);
    let mut second = Draft::new(sides("mma-2", "Cy Young", "Dee Zhou", -600, EventStatus::Live));
    price(&mut second, "mma", UNIBET, Market::MONEYLINE, &[("Cy Young", "250", None), ("Dee Zhou", "-320", None)]);
    score(&mut second, ScoreStatus::Live, Some((0, 0)), &[], None);
    let mut third = Draft::new(sides("mma-3", "Eve Ito", "Flo Roy", -7200, EventStatus::Final));
    score(&mut third, ScoreStatus::Final, Some((1, 0)), &[(10, 9), (10, 8)], Some("Eve Ito"));
    let fourth = Draft::new(sides("mma-4", "Gia Lee", "Hal Ost", 7200, EventStatus::Cancelled));
    vec![first, second, third, fourth]
}

fn matches() -> Vec<Draft> {
    let mut draft = Draft::new(sides("nfl-1", "Bears", "Packers", 1800, EventStatus::Scheduled));
    let spread = &[("Bears", "-110", Some("-3.5")), ("Packers", "-110", Some("3.5"))];
    price(&mut draft, "american_football", BETMGM, Market::SPREAD, spread);
    let points = &[("Over", "-105", Some("44")), ("Under", "-115", Some("44"))];
    price(&mut draft, "american_football", BETMGM, Market::TOTAL_POINTS, points);
    vec![draft]
}

fn tournaments() -> Vec<Draft> {
    let contest = Contest::Tournament { title: "The Open".into() };
    let mut draft = Draft::new(event("golf-1", "Major", contest, -90_000, EventStatus::Live));
    price(&mut draft, "golf", UNIBET, Market::OUTRIGHT, &[("A. Ames", "450", None), ("B. Bohn", "900", None)]);
    price(&mut draft, "golf", UNIBET, Market::TOP5, &[("A. Ames", "-150", None), ("B. Bohn", "120", None)]);
    score(&mut draft, ScoreStatus::Live, None, &[(66, 67), (68, 70)], None);
    vec![draft]
}

fn tennis(count: usize) -> Vec<Draft> {
    let draft = |number: usize| {
        let offset = 60 * i32::try_from(number).unwrap();
        let mut draft =
            Draft::new(sides(&format!("tennis-{number}"), "Ines Noor", "Jo Vale", offset, EventStatus::Scheduled));
        price(
            &mut draft,
            "tennis",
            BETMGM,
            Market::MONEYLINE,
            &[("Ines Noor", "-200", None), ("Jo Vale", "170", None)],
        );
        draft
    };
    (1..=count).map(draft).collect()
}

/// The board of a sport, whose sources were last read so many seconds ago.
fn board(drafts: Vec<Draft>, books: &Arc<Register>, sources: &[(BookId, u32)]) -> SportBoard {
    let mut nodes: Vec<Arc<EventNode>> =
        drafts.into_iter().map(|draft| Arc::new(draft.finish(books.bookmakers()))).collect();
    nodes.sort_by(|a, b| (a.event().commence, &a.event().id).cmp(&(b.event().commence, &b.event().id)));
    let index = Index::from_sorted(nodes);
    let state = |(book, age): &(BookId, u32)| SourceState {
        bookmaker: *book,
        source: Source { last_read: Timestamp::from_unix(NOW - age), latency_ms: 40, empty_since: None },
        stale_after_s: 120,
    };
    let states: Arc<[SourceState]> = sources.iter().map(state).collect();
    let published = states.iter().map(|state| PublishedSource {
        bookmaker: state.bookmaker,
        last_read: state.source.last_read,
        stale: state.is_stale(at(0)),
        latency_ms: state.source.latency_ms,
    });
    let published = Published::new(index.clone(), Arc::clone(books), published.collect(), at(0).unix_ms());
    SportBoard::new(index, Arc::new(published), states)
}

fn register(catalogue: &Catalogue) -> Arc<Register> {
    let mut competitions = Competitions::default();
    for (key, title) in [
        ("mma_mixed_martial_arts", "MMA"),
        ("americanfootball_nfl", "NFL"),
        ("golf_the_open_winner", "The Open Winner"),
        ("tennis_test_league", "Test League"),
    ] {
        let (sport, _) = catalogue.find_v4(key).unwrap();
        competitions.put(key.into(), SeenCompetition { sport, title: title.into() });
    }
    Arc::new(Register::new(bookmakers()).with_competitions(Arc::new(competitions)))
}

/// Boxing is stale and mma is in part.
pub(super) fn sandbox_world(catalogue: &Catalogue) -> WorldBoard {
    let books = register(catalogue);
    let sports = catalogue.sports().map(|(_, sport)| match &*sport.key {
        "mma" => board(fights(), &books, &[(BET365, 500), (BETMGM, 20), (UNIBET, 20)]),
        "boxing" => board(Vec::new(), &books, &[(BETMGM, 500)]),
        "tennis" => board(tennis(7), &books, &[(BETMGM, 20)]),
        "american_football" => board(matches(), &books, &[(BETMGM, 20)]),
        _ => board(tournaments(), &books, &[(UNIBET, 20)]),
    });
    // As the documentation has it.
    let position = Position::parse("9f3a5c7e1b2d4068.4711.0").unwrap();
    WorldBoard::new(sports.collect(), Arc::clone(&books)).at(position)
}

pub(super) fn live_world(catalogue: &Catalogue) -> WorldBoard {
    let books = register(catalogue);
    let sports = catalogue.sports().map(|(_, sport)| match &*sport.key {
        "tennis" => board(tennis(1), &books, &[(BETMGM, 20)]),
        _ => board(Vec::new(), &books, &[]),
    });
    WorldBoard::new(sports.collect(), Arc::clone(&books))
}
