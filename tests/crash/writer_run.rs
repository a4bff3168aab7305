//! A run of a writer on a disk: random operations, and after each acknowledged one a mark of the expected state.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use oddsbox::clock::Clock;
use oddsbox::config::catalogue;
use oddsbox::keys::{BURST_MAX, Cost, Keyring, Refusal};
use oddsbox::keys::{KeyChange, KeyId, KeyKind, Limits, NewKey};
use oddsbox::model::{
    Catalogue, Contest, EventId, EventNews, EventStatus, Maintenance, Market, News, OddsNews, Outcome, Point, Price,
    ReadNews, Score, ScoreNews, ScoreStatus, SportId, Timestamp, World,
};
use oddsbox::store::Store;
use oddsbox::writer::{Writer, WriterOptions};

use super::disk::Disk;
use crate::process::seed::Random;

/// Noon, so that no test is near the end of a day.
pub const NOON_MS: i64 = 1_794_657_600_000;
pub const EVENTS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
const BOOKS: [&str; 3] = ["betmgm", "draftkings", "unibet"];
const MARKETS: [Market; 3] = [Market::MONEYLINE, Market::SPREAD, Market::TOTAL_POINTS];

pub fn the_catalogue() -> Arc<Catalogue> {
    static CATALOGUE: OnceLock<Arc<Catalogue>> = OnceLock::new();
    Arc::clone(CATALOGUE.get_or_init(|| Arc::new(catalogue::builtin())))
}

/// A key, as the test knows it.
#[derive(Clone, Debug)]
pub struct KeyState {
    pub id: String,
    pub secret: String,
    /// Rotated secrets, without a grace period.
    pub dead: Vec<String>,
    pub revoked: bool,
    pub quota: u64,
    /// Requests that passed, over all restarts.
    pub passed: u64,
    /// Crashes, each of which may cost a lease.
    pub crashes: u64,
}

/// In order of issue, since their ids are random.
pub type Keys = BTreeMap<usize, KeyState>;

/// The expected state after so many disk operations.
#[derive(Clone, Debug)]
pub struct Mark {
    pub steps: usize,
    pub picture: String,
    pub keys: Keys,
    /// The last operation, and whether it is one commit: then no intermediate state may be seen.
    pub done: &'static str,
    pub is_one_commit: bool,
}

pub struct WriterRun {
    pub disk: Disk,
    pub clock: Clock,
    /// `None` only while it is being reopened.
    writer: Option<Writer>,
    pub keys: Keys,
    pub marks: Vec<Mark>,
}

/// The contents of a file, as text for comparison.
pub fn picture(store: &mut Store) -> String {
    let loaded = store.load().expect("a file that loads");
    assert!(loaded.damage.is_empty(), "{:?}", loaded.damage);
    let mut text = format!("{loaded:?}");
    for (key, _) in &loaded.keys {
        // `Debug` omits hashes.
        let retired: Vec<_> = key.retired.iter().map(|retired| retired.hash.0).collect();
        let _ = write!(text, "{:?} {retired:?}", key.hash.0);
    }
    let _ = write!(text, "{:?}", store.audit(None, 100_000).expect("an audit log"));
    text
}

pub fn open_writer(store: Store, clock: &Clock) -> Writer {
    try_open_writer(store, clock).expect("a writer")
}

/// The same on a disk that may fail.
pub fn try_open_writer(store: Store, clock: &Clock) -> Option<Writer> {
    // A short retention, so that removals are in progress when the power is cut.
    let options = WriterOptions { retention_s: 30, ..WriterOptions::default() };
    Writer::open(store, the_catalogue(), clock.clone(), options).ok().map(|opened| opened.writer)
}

impl WriterRun {
    /// Continues from the contents of a disk and its known keys.
    pub fn begin(disk: Disk, clock: Clock, keys: Keys) -> WriterRun {
        let writer = Some(open_writer(disk.open().expect("a disk that opens"), &clock));
        disk.take_steps();
        let picture = picture(&mut Disk::new(disk.bytes()).open().expect("a copy that opens"));
        let marks = vec![Mark { steps: 0, picture, keys: keys.clone(), done: "nothing", is_one_commit: true }];
        WriterRun { disk, clock, writer, keys, marks }
    }

    pub fn writer(&mut self) -> &mut Writer {
        self.writer.as_mut().expect("an open writer")
    }

    fn mark(&mut self, done: &'static str, is_one_commit: bool) {
        let steps = self.disk.steps();
        let last = self.marks.last().expect("a mark");
        let picture = if steps == last.steps {
            last.picture.clone()
        } else {
            picture(&mut Disk::new(self.disk.bytes()).open().expect("a copy that opens"))
        };
        self.marks.push(Mark { steps, picture, keys: self.keys.clone(), done, is_one_commit });
    }

    /// One random operation, acknowledged.
    pub fn act(&mut self, random: &mut Random) {
        self.clock.advance(Duration::from_millis(random.below(4_000)));
        match random.below(16) {
            0..7 => self.ingest(random),
            7 | 8 if self.keys.len() < 4 => self.issue(random),
            7..9 => self.rotate(random),
            9 => self.undo_rotation(random),
            10 => self.revoke(random),
            11 => self.set(random),
            12 => self.maintenance(random),
            13 | 14 => self.use_key(random),
            _ if random.below(2) == 0 => self.restart(),
            _ => {
                self.clock.advance(Duration::from_secs(61));
                self.writer().tick();
                self.mark("tick", false);
            }
        }
    }

    fn ingest(&mut self, random: &mut Random) {
        let now = self.clock.now().timestamp();
        let news = (0..=random.below(8)).map(|_| news(random, now)).collect();
        let world = pick(random, &World::ALL);
        let end = random.below(2) == 0;
        self.writer().ingest(world, news, end).expect("a commit");
        // At the end of an ingest its publication is logged.
        self.mark("ingest", !end);
    }

    fn issue(&mut self, random: &mut Random) {
        let quota = pick(random, &[120, 250, 400]);
        let limits = Limits { burst_per_minute: BURST_MAX, per_day: Some(quota), per_month: None, streams: 10 };
        let name = "hurt".into();
        let new = NewKey {
            kind: KeyKind::Sandbox,
            name,
            groups: Vec::new(),
            limits,
            expires: None,
            approved_by: None,
            self_service: false,
        };
        let issued = self.writer().issue_key(new, "test").expect("a key");
        let secret = issued.secret.expose().to_owned();
        let id = issued.key.id().as_str().to_owned();
        let state = KeyState { id, secret, dead: Vec::new(), revoked: false, quota, passed: 0, crashes: 0 };
        self.keys.insert(self.keys.len(), state);
        self.mark("issue", true);
    }

    fn some_key(&self, random: &mut Random) -> Option<(usize, String)> {
        let usable: Vec<_> = self.keys.iter().filter(|(_, state)| !state.revoked).collect();
        if usable.is_empty() {
            None
        } else {
            Some(pick(random, &usable)).map(|(number, state)| (*number, state.id.clone()))
        }
    }

    fn rotate(&mut self, random: &mut Random) {
        let Some((number, id)) = self.some_key(random) else { return };
        let issued = self.writer().rotate_key(&id, 0, "test").expect("a rotation");
        let state = self.keys.get_mut(&number).expect("a key");
        state.dead.push(std::mem::replace(&mut state.secret, issued.secret.expose().to_owned()));
        self.mark("rotate", true);
    }

    /// A rotation that is taken back: the old secret is the key's again.
    fn undo_rotation(&mut self, random: &mut Random) {
        let Some((number, id)) = self.some_key(random) else { return };
        let issued = self.writer().rotate_key(&id, 3_600, "test").expect("a rotation");
        let state = self.keys.get_mut(&number).expect("a key");
        let old = std::mem::replace(&mut state.secret, issued.secret.expose().to_owned());
        self.mark("rotate with a grace", true);
        self.writer().undo_rotation(&id, "test").expect("a rotation to undo");
        let state = self.keys.get_mut(&number).expect("a key");
        state.dead.push(std::mem::replace(&mut state.secret, old));
        self.mark("undo rotation", true);
    }

    fn revoke(&mut self, random: &mut Random) {
        let Some((number, id)) = self.some_key(random) else { return };
        self.writer().revoke_key(&id, "test").expect("a revocation");
        self.keys.get_mut(&number).expect("a key").revoked = true;
        self.mark("revoke", true);
    }

    fn set(&mut self, random: &mut Random) {
        let Some((_, id)) = self.some_key(random) else { return };
        let name = Some(format!("name {}", random.below(100)).into());
        self.writer().set_key(&id, KeyChange { name, ..KeyChange::default() }, "test").expect("a change");
        self.mark("set", true);
    }

    fn maintenance(&mut self, random: &mut Random) {
        let since = self.clock.now().timestamp();
        let until = (random.below(2) == 0).then_some(Maintenance { since, until: None });
        self.writer().set_maintenance(until, "test").expect("a commit");
        self.mark("maintenance", true);
    }

    /// Some requests of a key; each lease is a separate commit.
    fn use_key(&mut self, random: &mut Random) {
        let Some((number, id)) = self.some_key(random) else { return };
        for _ in 0..random.below(160) {
            match charge(self.writer.as_ref().expect("an open writer"), &self.clock, &id) {
                Charged::Passed => self.keys.get_mut(&number).expect("a key").passed += 1,
                Charged::NeedsLease => {
                    // What has passed counts, whatever happens to the lease.
                    self.mark("use", true);
                    lease(self.writer.as_mut().expect("an open writer"), &self.clock, &id);
                    self.mark("lease", true);
                }
                Charged::Spent => break,
            }
        }
        self.mark("use", true);
    }

    /// A graceful stop, which returns unused leases, and a restart.
    fn restart(&mut self) {
        self.writer().flush().expect("a flush");
        self.mark("flush", false);
        self.writer = None;
        let store = self.disk.open().expect("a disk that opens");
        self.writer = Some(open_writer(store, &self.clock));
        self.mark("restart", false);
    }
}

pub enum Charged {
    Passed,
    NeedsLease,
    Spent,
}

/// One request of a key.
pub fn charge(writer: &Writer, clock: &Clock, id: &str) -> Charged {
    let entry = writer.keyring().get(&KeyId::new(id).expect("an id")).expect("a key");
    match entry.meter().charge(Cost::Full, clock.now()) {
        Ok(_charge) => Charged::Passed,
        Err(Refusal::NeedsLease) => Charged::NeedsLease,
        Err(_spent) => Charged::Spent,
    }
}

/// Plans, stores and grants the lease that a key needs.
pub fn lease(writer: &mut Writer, clock: &Clock, id: &str) {
    let id = KeyId::new(id).expect("an id");
    let entry = writer.keyring().get(&id).expect("a key");
    let usage = entry.meter().plan_lease(clock.now()).expect("a plan");
    writer.take_leases(&[(id, usage)]).expect("a lease");
    entry.meter().grant(usage);
}

/// Asserts that each secret is accepted or rejected as expected.
pub fn check_secrets(keyring: &Keyring, keys: &Keys, clock: &Clock) {
    let opens = |secret: &String| keyring.load().authenticate(Some(secret), clock.now()).is_ok();
    for state in keys.values() {
        let id = &state.id;
        assert_eq!(opens(&state.secret), !state.revoked, "{id}");
        assert!(!state.dead.iter().any(opens), "{id}: a secret that was rotated out opens");
    }
}

pub fn pick<T: Clone>(random: &mut Random, from: &[T]) -> T {
    from[usize::try_from(random.below(from.len() as u64)).expect("a small number")].clone()
}

/// Messages of a small world, so that most of them affect existing data.
pub fn news(random: &mut Random, now: Timestamp) -> News {
    let sport = the_catalogue().find("tennis").expect("tennis");
    let event = EventId::new(pick(random, &EVENTS)).expect("an id");
    match random.below(12) {
        0..3 => event_news(random, sport, event, now),
        3..9 => odds_news(random, sport, event, now),
        9 => {
            let status = pick(random, &[ScoreStatus::Live, ScoreStatus::Final]);
            let points = Some((2, i32::try_from(random.below(3)).expect("a small number")));
            let score = Score { status, points, periods: [].into(), winner: None, updated: now };
            News::Score(ScoreNews { sport, event, score })
        }
        10 => News::Remove { sport, event },
        _ => {
            let latency_ms = u32::try_from(random.below(900)).expect("a small number");
            News::Read(ReadNews { sport, bookmaker: pick(random, &BOOKS).into(), at: now, latency_ms })
        }
    }
}

fn event_news(random: &mut Random, sport: SportId, id: EventId, now: Timestamp) -> News {
    let contest = Contest::Sides { home: format!("home {id}").into(), away: format!("away {id}").into() };
    // Some begin while the test goes on.
    let commence = now.plus_seconds(pick(random, &[0, 60, 600, 3600, 3 * 3600]));
    let status = pick(random, &[EventStatus::Scheduled, EventStatus::Scheduled, EventStatus::Cancelled]);
    let competition = format!("cup {}", random.below(3)).into();
    News::Event(EventNews {
        sport,
        id,
        competition,
        competition_key: None,
        competition_title: None,
        commence,
        contest,
        status,
    })
}

fn odds_news(random: &mut Random, sport: SportId, event: EventId, last_update: Timestamp) -> News {
    let market = pick(random, &MARKETS);
    let point = market.has_point().unwrap_or_default().then(|| Point::from_milli(2500).expect("a point"));
    let mut outcome = |name: &str| {
        let american = i64::try_from(100 + random.below(400)).expect("a small number");
        Outcome { name: name.into(), price: Price::from_american(american).expect("a price"), point }
    };
    let outcomes = [outcome("home"), outcome("away")];
    let outcomes = if random.below(6) == 0 { [].into() } else { outcomes.into() };
    News::Odds(OddsNews {
        sport,
        event,
        bookmaker: pick(random, &BOOKS).into(),
        market: market.into(),
        last_update,
        bookmaker_update: None,
        outcomes,
    })
}
