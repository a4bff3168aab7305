//! A small service to test against: two worlds, five sports, four bookmakers, a key of each sort, a clock that stands.

use std::sync::Arc;

use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::BodyExt;

use super::handle::{Answer, Handled, Note, handle};
use super::service::{Service, Settings};
use crate::board::{
    Boards, Books, Draft, EventNode, Index, Published, PublishedSource, SourceState, SportBoard, WorldBoard,
};
use crate::clock::Clock;
use crate::keys::{KeyId, KeyKind, KeyRecord, Keyring, LeaseDesk, LeaseRequests, Limits, Secret, Usage};
use crate::model::{
    BookId, Bookmaker, Bookmakers, Catalogue, Contest, Event, EventId, EventStatus, Market, OddsFormat, Outcome,
    Period, Point, Price, Record, RecordId, Region, Regions, Score, ScoreStatus, Source, Sport, SportKind, Timestamp,
};

/// 2026-11-14T23:39:00Z, a tick of the refresh.
pub(super) const NOW: u32 = 1_794_699_540;

pub(super) struct Fixture {
    pub service: Arc<Service>,
    pub clock: Clock,
    pub sandbox: String,
    pub production: String,
    /// Restricted to golf.
    pub golf_only: String,
    /// A hundred requests a month and no limit by day.
    pub monthly: String,
    /// Two requests a minute, three a day.
    pub tiny: String,
    pub requests: LeaseRequests,
}

/// An answer, read.
#[derive(Debug)]
pub(super) struct Got {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub bytes: Vec<u8>,
    pub note: Note,
}

impl Got {
    pub(super) fn text(&self) -> &str {
        std::str::from_utf8(&self.bytes).unwrap()
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub(super) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.bytes).unwrap()
    }

    /// Status and error code.
    pub(super) fn error(&self) -> (u16, String) {
        (self.status.as_u16(), self.json()["error"]["code"].as_str().unwrap().to_owned())
    }
}

pub(super) fn request(method: Method, target: &str, headers: &[(&str, &str)]) -> Request<()> {
    let mut request = Request::new(());
    *request.method_mut() = method;
    *request.uri_mut() = target.parse().unwrap();
    for (name, value) in headers {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        request.headers_mut().append(name, HeaderValue::from_str(value).unwrap());
    }
    request
}

impl Fixture {
    pub(super) fn new() -> Self {
        Self::with_settings(Settings::default())
    }

    pub(super) fn with_settings(settings: Settings) -> Self {
        let clock = Clock::manual(i64::from(NOW) * 1000);
        let catalogue = Arc::new(catalogue());
        let boards = Arc::new(Boards::new(Arc::clone(&catalogue), [sandbox_world(&catalogue), live_world(&catalogue)]));
        let (desk, requests) = LeaseDesk::open();
        let sandbox = key(1, KeyKind::Sandbox, &[], Limits::default_of(KeyKind::Sandbox));
        let production = key(2, KeyKind::Production, &[], Limits::default_of(KeyKind::Production));
        let golf_only = key(3, KeyKind::Production, &["golf"], Limits::default_of(KeyKind::Production));
        let month = Limits { burst_per_minute: 60, per_day: None, per_month: Some(100) };
        let monthly = key(4, KeyKind::Sandbox, &[], month);
        let tiny = key(5, KeyKind::Sandbox, &[], Limits { burst_per_minute: 2, per_day: Some(3), per_month: None });
        let keys = [sandbox, production, golf_only, monthly, tiny];
        let records = keys.iter().map(|(record, _)| (record.clone(), Usage::default()));
        let keyring = Arc::new(Keyring::new(catalogue, records, desk));
        for entry in keyring.list() {
            grant_lease(&keyring, entry.id(), &clock);
        }
        let [sandbox, production, golf_only, monthly, tiny] = keys.map(|(_, secret)| secret.expose().to_owned());
        let service = Arc::new(Service::new(boards, keyring, clock.clone(), settings));
        Fixture { service, clock, sandbox, production, golf_only, monthly, tiny, requests }
    }

    /// Answers a request, granting every lease at once.
    pub(super) fn send(&self, request: &Request<()>) -> Got {
        loop {
            match handle(&self.service, request) {
                Handled::Answer(answer) => return got(answer),
                Handled::NeedsLease(grant) => grant_lease(&self.service.keyring, grant.key_id(), &self.clock),
            }
        }
    }

    /// A GET with the sandbox key.
    pub(super) fn get(&self, target: &str) -> Got {
        self.get_as(&self.sandbox, target, &[])
    }

    pub(super) fn get_as(&self, key: &str, target: &str, headers: &[(&str, &str)]) -> Got {
        let mut all = vec![("x-api-key", key)];
        all.extend(headers);
        self.send(&request(Method::GET, target, &all))
    }

    /// A request without a key.
    pub(super) fn anonymous(&self, method: Method, target: &str) -> Got {
        self.send(&request(method, target, &[]))
    }
}

fn got(answer: Answer) -> Got {
    let (parts, body) = answer.response.into_parts();
    let mut polled = std::pin::pin!(body.collect());
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    let std::task::Poll::Ready(Ok(body)) = polled.as_mut().poll(&mut cx) else { panic!("a full body is ready") };
    Got { status: parts.status, headers: parts.headers, bytes: body.to_bytes().to_vec(), note: answer.note }
}

fn grant_lease(keyring: &Keyring, id: &KeyId, clock: &Clock) {
    let entry = keyring.get(id).unwrap();
    if let Some(lease) = entry.meter().plan_lease(clock.now()) {
        entry.meter().grant(lease);
    }
}

fn key(number: u8, kind: KeyKind, groups: &[&str], limits: Limits) -> (KeyRecord, Secret) {
    let secret = Secret::generate(kind).unwrap();
    let record = KeyRecord {
        id: KeyId::new(&format!("key_00000000000{number}")).unwrap(),
        kind,
        name: "test".into(),
        groups: groups.iter().map(|group| (*group).into()).collect(),
        limits,
        created: at(0),
        expires: None,
        approved_by: (kind == KeyKind::Production).then(|| "ops".into()),
        revoked: None,
        hash: secret.hash(),
        last_four: secret.last_four().into(),
        retired: Box::default(),
        last_used: None,
    };
    (record, secret)
}

/// A moment so many seconds from now.
fn at(offset: i32) -> Timestamp {
    Timestamp::from_unix(NOW.checked_add_signed(offset).unwrap())
}

fn catalogue() -> Catalogue {
    let sport = |key: &str, title: &str, group: &str, kind| Sport {
        key: key.into(),
        title: title.into(),
        group: group.into(),
        kind,
    };
    let sports = vec![
        sport("mma", "Mixed Martial Arts", "combat", SportKind::Fight),
        sport("boxing", "Boxing", "combat", SportKind::Fight),
        sport("tennis", "Tennis", "tennis", SportKind::HeadToHead),
        sport("american_football", "American Football", "american_football", SportKind::HeadToHead),
        sport("golf", "Golf", "golf", SportKind::Tournament),
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
    let id = EventId::new(id).unwrap();
    Arc::new(Event { id, competition: competition.into(), commence: at(commence), contest, status, changed: at(-300) })
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
    let record = Record { id, bookmaker: book, market, last_update: at(-20), outcomes: outcomes(items) };
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
    price(&mut first, "mma", BETMGM, Market::Moneyline, &[(ana, "-110", None), (bea, "100", None)]);
    price(&mut first, "mma", BET365, Market::Moneyline, &[(ana, "-120", None), (bea, "105", None)]);
    let rounds = &[("Over", "-105", Some("2.5")), ("Under", "-115", Some("2.5"))];
    price(&mut first, "mma", BETMGM, Market::TotalRounds, rounds);
    let mut second = Draft::new(sides("mma-2", "Cy Young", "Dee Zhou", -600, EventStatus::Live));
    price(&mut second, "mma", UNIBET, Market::Moneyline, &[("Cy Young", "250", None), ("Dee Zhou", "-320", None)]);
    score(&mut second, ScoreStatus::Live, Some((0, 0)), &[], None);
    let mut third = Draft::new(sides("mma-3", "Eve Ito", "Flo Roy", -7200, EventStatus::Final));
    score(&mut third, ScoreStatus::Final, Some((1, 0)), &[(10, 9), (10, 8)], Some("Eve Ito"));
    let fourth = Draft::new(sides("mma-4", "Gia Lee", "Hal Ost", 7200, EventStatus::Cancelled));
    vec![first, second, third, fourth]
}

fn matches() -> Vec<Draft> {
    let mut draft = Draft::new(sides("nfl-1", "Bears", "Packers", 1800, EventStatus::Scheduled));
    let spread = &[("Bears", "-110", Some("-3.5")), ("Packers", "-110", Some("3.5"))];
    price(&mut draft, "american_football", BETMGM, Market::Spread, spread);
    let points = &[("Over", "-105", Some("44")), ("Under", "-115", Some("44"))];
    price(&mut draft, "american_football", BETMGM, Market::TotalPoints, points);
    vec![draft]
}

fn tournaments() -> Vec<Draft> {
    let contest = Contest::Tournament { title: "The Open".into() };
    let mut draft = Draft::new(event("golf-1", "Major", contest, -90_000, EventStatus::Live));
    price(&mut draft, "golf", UNIBET, Market::Outright, &[("A. Ames", "450", None), ("B. Bohn", "900", None)]);
    price(&mut draft, "golf", UNIBET, Market::Top5, &[("A. Ames", "-150", None), ("B. Bohn", "120", None)]);
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
            Market::Moneyline,
            &[("Ines Noor", "-200", None), ("Jo Vale", "170", None)],
        );
        draft
    };
    (1..=count).map(draft).collect()
}

/// The board of a sport, whose sources were last read so many seconds ago.
fn board(drafts: Vec<Draft>, books: &Arc<Books>, sources: &[(BookId, u32)]) -> SportBoard {
    let mut nodes: Vec<Arc<EventNode>> =
        drafts.into_iter().map(|draft| Arc::new(draft.finish(books.register()))).collect();
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

/// Boxing is stale and mma is in part.
fn sandbox_world(catalogue: &Catalogue) -> WorldBoard {
    let books = Arc::new(Books::new(bookmakers()));
    let sports = catalogue.sports().map(|(_, sport)| match &*sport.key {
        "mma" => board(fights(), &books, &[(BET365, 500), (BETMGM, 20), (UNIBET, 20)]),
        "boxing" => board(Vec::new(), &books, &[(BETMGM, 500)]),
        "tennis" => board(tennis(7), &books, &[(BETMGM, 20)]),
        "american_football" => board(matches(), &books, &[(BETMGM, 20)]),
        _ => board(tournaments(), &books, &[(UNIBET, 20)]),
    });
    WorldBoard::new(sports.collect(), Arc::clone(&books))
}

fn live_world(catalogue: &Catalogue) -> WorldBoard {
    let books = Arc::new(Books::new(bookmakers()));
    let sports = catalogue.sports().map(|(_, sport)| match &*sport.key {
        "tennis" => board(tennis(1), &books, &[(BETMGM, 20)]),
        _ => board(Vec::new(), &books, &[]),
    });
    WorldBoard::new(sports.collect(), Arc::clone(&books))
}
