//! A whole service without a socket: a hundred bouts, and keys whose quotas no measurement uses up.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a bench that cannot set itself up has nothing to measure")]

use std::sync::Arc;

use http::{HeaderValue, Request, Response};
use oddsbox::board::{Boards, Draft, Index, Published, Register, SourceState, SportBoard, WorldBoard};
use oddsbox::clock::Clock;
use oddsbox::http::{Handled, ResponseBody, Service, ServiceSettings, handle};
use oddsbox::keys::{
    BURST_MAX, BurstNeed, BurstShare, KeyId, KeyKind, KeyNeed, KeyRecord, KeyShare, Keyring, LeaseQueue, LeaseRequests,
    Limits, QuotaNeed, QuotaShare, Secret, Usage,
};
use oddsbox::model::{
    BookId, Bookmaker, Bookmakers, Catalogue, Contest, Event, EventId, EventStatus, Market, OddsFormat, Outcome, Price,
    Record, RecordId, Region, Regions, Sport, SportKind, Timestamp, V4Keys, V4Names,
};

pub const ODDS_V4: &str = "/v4/sports/mma_mixed_martial_arts/odds?regions=us&markets=h2h";
pub const ODDS: &str = "/v1/sports/mma/odds?market=moneyline&regions=us";
const COMMENCE: u32 = 1_794_700_000;

/// More than a measurement uses up.
const PER_DAY: u64 = 1 << 40;

/// How many keys requests that vary are spread over.
const KEYS: usize = 8;

pub struct Bench {
    service: Service,
    boards: Arc<Boards>,
    /// The connection that every request comes from.
    clock: Clock,
    secrets: Vec<String>,
}

impl Bench {
    /// A service of its own for each measurement, so that none uses up another's minute.
    pub fn new() -> Self {
        Bench::with(LeaseQueue::open())
    }

    /// The same as a node of a cluster, whose lease holds.
    #[allow(dead_code, reason = "not every benchmark has one")]
    pub fn of_node() -> Self {
        let bench = Bench::with(LeaseQueue::open_shared());
        bench.boards.condition().serve_until(bench.clock.now().mono_ms + (1 << 40));
        bench
    }

    fn with((queue, _requests): (LeaseQueue, LeaseRequests)) -> Self {
        let catalogue = Arc::new(Catalogue::new(vec![mma()], Vec::new()).unwrap());
        let boards = Arc::new(Boards::new(Arc::clone(&catalogue), [world(), world()]));
        let (records, secrets): (Vec<KeyRecord>, Vec<String>) =
            (0..KEYS).map(key).map(|(record, secret)| (record, secret.expose().to_owned())).unzip();
        let ids: Vec<KeyId> = records.iter().map(|record| record.id.clone()).collect();
        let clock = Clock::system();
        let keys = records.into_iter().map(|record| (record, Usage::default()));
        let keyring = Arc::new(Keyring::new(catalogue, keys, queue));
        // The whole day as one lease: storing leases is not what is measured here.
        let today = clock.now().timestamp().unix() / 86_400;
        for id in &ids {
            let entry = keyring.get(id).unwrap();
            if let Some(need) = entry.meter().plan_share(clock.now()) {
                entry.meter().grant_share(need, everything(need), clock.now());
            }
            let lease = Usage { day: today, day_used: PER_DAY, month: 0, month_used: 0 };
            entry.meter().grant(lease);
        }
        let service = Service::new(Arc::clone(&boards), keyring, clock.clone(), ServiceSettings::default());
        Bench { service, boards, clock, secrets }
    }

    /// What a browserless client sends, with the key or without.
    pub fn request(&self, target: &str, with_key: bool) -> Request<()> {
        let mut request = Request::new(());
        *request.uri_mut() = target.parse().unwrap();
        let headers = request.headers_mut();
        headers.insert("host", HeaderValue::from_static("odds.example"));
        headers.insert("user-agent", HeaderValue::from_static("bench/1.0"));
        headers.insert("accept", HeaderValue::from_static("*/*"));
        headers.insert("accept-encoding", HeaderValue::from_static("gzip"));
        if with_key {
            headers.insert("x-api-key", HeaderValue::from_str(&self.secrets[0]).unwrap());
        }
        request
    }

    /// Requests that differ in key and request id from one to the next.
    pub fn varied(&self, target: &str, count: usize) -> Vec<Request<()>> {
        let vary = |number: usize| {
            let mut request = self.request(target, true);
            let secret = &self.secrets[number % self.secrets.len()];
            let headers = request.headers_mut();
            headers.insert("x-api-key", HeaderValue::from_str(secret).unwrap());
            headers.insert("x-request-id", HeaderValue::from_str(&format!("job-7.{number:012}")).unwrap());
            request
        };
        (0..count).map(vary).collect()
    }

    /// The answer that the HTTP library gets.
    pub fn answer(&self, request: &Request<()>) -> Response<ResponseBody> {
        match handle(&self.service, request, self.clock.now()) {
            Handled::Answer(answer) => answer.into_response(),
            Handled::NeedsLease(_) => panic!("the lease is long enough for a measurement"),
            Handled::NeedsHistory(..) => panic!("only current prices are asked for"),
            Handled::NeedsWork(..) => panic!("only quoted prices are asked for"),
            Handled::Opens(..) => panic!("no stream is asked for"),
            Handled::Rotates(..) | Handled::NeedsBody(_) => panic!("nothing is posted"),
        }
    }
}

/// All of a key's limits, for one node.
fn everything(need: KeyNeed) -> KeyShare {
    let burst = |need: BurstNeed| BurstShare {
        window: 1,
        elapsed_ms: 0,
        before: 0,
        after: need.limit,
        total: need.limit.into(),
    };
    let day =
        |need: QuotaNeed| QuotaShare { period: need.period, before: 0, after: PER_DAY, total: PER_DAY.cast_signed() };
    KeyShare { resets: need.resets, burst: need.burst.map(burst), day: need.day.map(day), month: None }
}

fn mma() -> Sport {
    let (key, title, description) = ("mma_mixed_martial_arts".into(), "MMA".into(), "MMA".into());
    let names = V4Names { group: "MMA".into(), keys: V4Keys::Whole { key, title, description } };
    let (key, title, group, kind) = ("mma".into(), "MMA".into(), "combat".into(), SportKind::Fight);
    Sport { key, title, group, kind, hides_fields: false, v4: Some(names) }
}

fn key(number: usize) -> (KeyRecord, Secret) {
    let secret = Secret::generate(KeyKind::Sandbox).unwrap();
    let record = KeyRecord {
        id: KeyId::new(&format!("key_{number:012}")).unwrap(),
        kind: KeyKind::Sandbox,
        name: "bench".into(),
        groups: Box::default(),
        limits: Limits { burst_per_minute: BURST_MAX, per_day: Some(PER_DAY), per_month: None, streams: 10 },
        created: Timestamp::from_unix(0),
        expires: None,
        approved_by: None,
        revoked: None,
        hash: secret.hash(),
        last_four: secret.last_four().into(),
        retired: Box::default(),
        replaced_last_four: Box::default(),
        self_service: false,
        self_rotated: None,
        last_used: None,
    };
    (record, secret)
}

/// A hundred bouts, each priced by one bookmaker.
fn world() -> WorldBoard {
    let book = BookId::from_number(0);
    let mut register = Bookmakers::default();
    let betmgm = Bookmaker { key: "betmgm".into(), title: "BetMGM".into(), regions: Regions::only(Region::Us) };
    register.put(book, Arc::new(betmgm));
    let node = |number: u32| {
        let id = EventId::new(&format!("event-{number:05}")).unwrap();
        let contest = Contest::Sides { home: "Ana Silva".into(), away: "Bea Costa".into() };
        let (commence, status) = (Timestamp::from_unix(COMMENCE + number), EventStatus::Scheduled);
        let competition = "League".into();
        let event = Event {
            id: id.clone(),
            competition,
            competition_key: "mma_mixed_martial_arts".into(),
            commence,
            contest,
            status,
            changed: commence,
        };
        let outcome = |name: &str, price| Outcome {
            name: name.into(),
            price: Price::parse(price, OddsFormat::American).unwrap(),
            point: None,
        };
        let record = Record {
            id: RecordId::new("mma", &id, "betmgm", Market::MONEYLINE),
            bookmaker: book,
            market: Market::MONEYLINE,
            last_update: commence,
            bookmaker_update: None,
            outcomes: Box::new([outcome("Ana Silva", "-110"), outcome("Bea Costa", "100")]),
        };
        let mut draft = Draft::new(Arc::new(event));
        draft.put(Arc::new(record));
        Arc::new(draft.finish(&register))
    };
    let index = Index::from_sorted((0..100).map(node).collect());
    let books = Arc::new(Register::new(register.clone()));
    let published = Published::new(index.clone(), Arc::clone(&books), Box::default(), i64::from(COMMENCE) * 1000);
    let sources: Arc<[SourceState]> = Arc::new([]);
    WorldBoard::new(Box::new([SportBoard::new(index, Arc::new(published), sources)]), books)
}
