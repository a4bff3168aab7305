//! Nodes that apply the same entries have the same: boards, positions, history, keys and audit log, whenever each of them
//! was closed and opened.

mod engines;
mod faults;
mod nodes;
#[cfg(feature = "cluster")]
mod redis;
mod shares;
mod simulation;
mod views;

use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;

use super::entry::{decode, encode};
use crate::admin::{HistoryRange, export_history, export_world};
use crate::clock::{Clock, Moment};
use crate::config::catalogue;
use crate::ingest::wire;
use crate::keys::{FieldEdit, KeyChange, KeyId, KeyKind, KeyRecord, Limits, NewKey, Secret, StoredSecret};
use crate::model::{Catalogue, EntryId, EventId, FeedBudget, Membership, News, Timestamp, World};
use crate::store::{Store, StoreOptions};
use crate::testing::short_or_long;
use crate::writer::operation::{
    EndPoll, EndRound, Ingest, IngestWhole, IssueKey, IssueToken, MarkSimulated, NewsReader, PutFeedBudget, RecordUse,
    RetainPolled, RevokeKey, RevokeToken, RotateKey, SetKey, SetMaintenance, UndoRotation, WriteAudit,
};
use crate::writer::{
    Applied, FeedCharge, Opened, Poll, PollPart, PollScope, Sender, SharedOperation, Whole, WriteError, Writer,
    WriterOptions,
};

/// Two sports, so that a file is opened quickly.
const CATALOGUE: &str = r#"
replace = true
sports = [
  { key = "tennis", title = "Tennis", group = "tennis", kind = "head_to_head" },
  { key = "golf", title = "Golf", group = "golf", kind = "tournament" },
]
bookmakers = [
  { key = "one", title = "One", regions = ["us"] },
  { key = "two", title = "Two", regions = ["uk", "eu"] },
]
"#;

const START_MS: u64 = 1_794_657_600_000;
const BEGIN: Membership =
    Membership { cluster: 7, epoch: 1, file: 1, applied: EntryId { ms: START_MS, number: 0 }, fence: 1 };

fn two_sports() -> Arc<Catalogue> {
    Arc::new(catalogue::parse(CATALOGUE).unwrap())
}

/// A node without a server.
struct Node {
    directory: TempDir,
    catalogue: Arc<Catalogue>,
    writer: Option<Writer>,
}

impl Node {
    fn new() -> Node {
        let mut node = Node { directory: tempfile::tempdir().unwrap(), catalogue: two_sports(), writer: None };
        node.open(START_MS);
        node.writer().set_membership(Some(BEGIN)).unwrap();
        node
    }

    /// A node that begins with a copy of another's file.
    fn copy(other: &mut Node) -> Node {
        other.writer = None;
        let node =
            Node { directory: tempfile::tempdir().unwrap(), catalogue: Arc::clone(&other.catalogue), writer: None };
        std::fs::copy(other.directory.path().join("file"), node.directory.path().join("file")).unwrap();
        node
    }

    /// Opens the file on a machine whose clock is wrong: nothing may depend on it.
    fn open(&mut self, unix_ms: u64) {
        self.writer = None;
        let opened = self.open_with(Clock::manual(i64::try_from(unix_ms).unwrap()));
        self.writer = Some(opened.writer);
    }

    fn open_with(&self, clock: Clock) -> Opened {
        let path = self.directory.path().join("file");
        let store = Store::open(&path, Arc::clone(&self.catalogue), StoreOptions::default()).unwrap();
        Writer::open(store, Arc::clone(&self.catalogue), clock, WriterOptions::default()).unwrap()
    }

    fn writer(&mut self) -> &mut Writer {
        self.writer.as_mut().unwrap()
    }

    fn apply(&mut self, id: EntryId, fence: Option<u64>, entry: &[u8]) -> Applied<()> {
        let operation = decode(entry, &self.catalogue).unwrap();
        let applied = self.writer().apply(id, fence, |writer| operation.run_unanswered(writer)).unwrap();
        // Upkeep of its own, which may come at any time.
        self.writer().tick();
        applied
    }

    fn positions(&mut self) -> [crate::model::Position; 2] {
        let boards = Arc::clone(self.writer().boards());
        World::ALL.map(|world| boards.load_full(world).position())
    }

    /// All that clients and operators can see of it, line by line.
    async fn shown(&mut self) -> Vec<String> {
        let mut shown = Vec::new();
        let catalogue = Arc::clone(&self.catalogue);
        let writer = self.writer();
        let (boards, history) = (Arc::clone(writer.boards()), writer.history());
        for world in World::ALL {
            let board = boards.load_full(world);
            shown.push(format!("{world} at {:?}", board.position()));
            for (sport, id) in board.sports().iter().zip(catalogue.sport_ids()) {
                let key = &catalogue[id].key;
                let published = sport.published();
                shown.push(format!("{world} {key} sources {:?}", published.sources()));
                shown.push(format!("{world} {key} sources now {:?}", sport.sources()));
                for (name, index) in [("published", published.index()), ("current", sport.current())] {
                    shown.extend(index.iter().map(|node| {
                        let (event, score) = (node.event(), node.score());
                        format!("{world} {key} {name} {event:?} {score:?} {:?} {:?}", node.records(), node.closed())
                    }));
                }
            }
            shown.extend(lines(export_world(world, &boards)).await);
            shown.extend(lines(export_history(HistoryRange { world, from: None, to: None }, &boards, &history)).await);
            // The counts of a day that is over stay until the next addition.
            let uses = writer.feeder_uses(world).map(|(name, used)| (name, used.on(0)));
            shown.extend(uses.filter(|(_, used)| !used.is_unused()).map(|used| format!("{world} {used:?}")));
        }
        let keys = writer.keyring().list();
        // Of the last use, a record has what was known when it was read.
        let without_use = |record: &KeyRecord| KeyRecord { last_used: None, ..record.clone() };
        shown.extend(keys.iter().map(|key| format!("{:?} {:?}", without_use(key.record()), key.meter().shared_use())));
        shown.extend(writer.feeders().list().iter().map(|feeder| format!("{feeder:?}")));
        shown.extend(writer.read_audit(None, usize::MAX).unwrap().iter().map(|entry| format!("{entry:?}")));
        shown.push(format!("{:?} {:?}", boards.condition().is_simulated(World::Live), writer.feed_budget("feed")));
        shown.push(format!("{:?}", writer.membership()));
        shown
    }
}

async fn lines(mut source: crate::admin::PieceSource) -> Vec<String> {
    let mut text = Vec::new();
    while let Some(piece) = source.recv().await {
        text.extend_from_slice(&piece.unwrap());
    }
    String::from_utf8(text).unwrap().lines().map(str::to_owned).collect()
}

/// A small generator of random numbers (splitmix64).
#[derive(Debug)]
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % limit
    }

    fn of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[usize::try_from(self.below(choices.len() as u64)).unwrap()]
    }

    fn is(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// The clients of a cluster: what they ask for depends on nothing but the seed.
struct Clients {
    random: Random,
    catalogue: Arc<Catalogue>,
    now: Timestamp,
    keys: Vec<String>,
}

const EVENTS: [&str; 5] = ["e1", "e2", "e3", "e4", "e5"];
const BOOKS: [&str; 4] = ["one", "two", "three", "four"];
const FEEDS: [&str; 2] = ["feed", "other"];

impl Clients {
    fn event(&mut self) -> String {
        let (id, status) = (self.random.of(&EVENTS), self.random.of(&["scheduled", "scheduled", "live", "final"]));
        let commence = self.now.plus_seconds(u32::try_from(self.random.below(7200)).unwrap());
        let competition = self.random.of(&["Open", "Masters"]);
        let names = if self.random.is(50) { r#""home":"A","away":"B""# } else { r#""home":"A","away":"C""# };
        format!(
            r#"{{"type":"event","sport":"tennis","id":"{id}","competition":"{competition}","commence_time":"{commence}",{names},"status":"{status}"}}"#
        )
    }

    fn odds(&mut self) -> String {
        let (event, book) = (self.random.of(&EVENTS), self.random.of(&BOOKS));
        let market = self.random.of(&["moneyline", "moneyline", "total_points"]);
        let (price, updated) = (110 + self.random.below(300), self.ago());
        let outcomes = match market {
            _ if self.random.is(15) => String::new(),
            "moneyline" => format!(
                r#"{{"name":"A","price":{price},"point":null}},{{"name":"B","price":-{},"point":null}}"#,
                price + 7
            ),
            _ => format!(
                r#"{{"name":"Over","price":{price},"point":20.5}},{{"name":"Under","price":-{price},"point":20.5}}"#
            ),
        };
        format!(
            r#"{{"type":"odds","sport":"tennis","event":"{event}","bookmaker":"{book}","market":"{market}","last_update":"{updated}","format":"american","outcomes":[{outcomes}]}}"#
        )
    }

    /// A time of now, or of a little before.
    fn ago(&mut self) -> Timestamp {
        Timestamp::from_unix(self.now.unix() - u32::try_from(self.random.below(20)).unwrap())
    }

    fn line(&mut self) -> String {
        match self.random.below(12) {
            0..=2 => self.event(),
            3..=8 => self.odds(),
            9 => {
                let (event, at) = (self.random.of(&EVENTS), self.ago());
                format!(
                    r#"{{"type":"score","sport":"tennis","event":"{event}","status":"live","home_score":{},"away_score":1,"periods":[],"updated_at":"{at}"}}"#,
                    self.random.below(3)
                )
            }
            10 => format!(r#"{{"type":"remove","sport":"tennis","event":"{}"}}"#, self.random.of(&EVENTS)),
            _ => {
                let (book, at) = (self.random.of(&BOOKS), self.ago());
                let latency = self.random.below(400);
                format!(r#"{{"type":"read","sport":"tennis","bookmaker":"{book}","at":"{at}","latency_ms":{latency}}}"#)
            }
        }
    }

    fn news(&mut self) -> Vec<News> {
        let books =
            BOOKS.map(|key| format!(r#"{{"type":"bookmaker","key":"{key}","title":"{key}","regions":["us"]}}"#));
        let books = books.into_iter().take(if self.random.is(20) { 4 } else { 0 });
        let count = self.random.below(8);
        let lines: Vec<String> = books.chain((0..count).map(|_| self.line()).collect::<Vec<_>>()).collect();
        lines
            .iter()
            .filter_map(|line| wire::read(line.as_bytes(), &self.catalogue).ok())
            .map(|line| line.news)
            .collect()
    }

    fn budget(&mut self) -> FeedBudget {
        FeedBudget { spent: self.random.below(1000), polled: Some(self.now), ..FeedBudget::default() }
    }

    fn scope(&mut self) -> PollScope {
        PollScope { world: World::Live, feed: self.random.of(&FEEDS).into(), key: self.random.of(&["a", "b"]).into() }
    }

    fn poll(&mut self) -> Poll {
        let part =
            PollPart { event: EventId::new(self.random.of(&EVENTS)).unwrap(), markets: vec!["moneyline".into()] };
        Poll {
            scope: self.scope(),
            part: self.random.is(30).then_some(part),
            sport: self.catalogue.find("tennis").unwrap(),
            news: self.news(),
            at: self.now,
            latency_ms: 5,
            stale_after_s: 150,
            has_more: self.random.is(30),
            budget: self.random.is(50).then(|| self.budget()),
        }
    }

    fn new_key(&mut self) -> SharedOperation {
        let (id, secret) = (KeyId::generate().unwrap(), Secret::generate(KeyKind::Sandbox).unwrap());
        self.keys.push(id.to_string());
        let new = NewKey {
            kind: KeyKind::Sandbox,
            name: "key".into(),
            groups: Vec::new(),
            limits: Limits::default_of(KeyKind::Sandbox),
            expires: self.random.is(30).then_some(self.now.plus_seconds(60)),
            approved_by: None,
            self_service: true,
        };
        IssueKey { new, id, secret: secret.stored(), who: "ada".into() }.into()
    }

    fn key_operation(&mut self) -> SharedOperation {
        // Also of keys that there are not: refusals are the same everywhere.
        let id: Box<str> = match self.keys.len() as u64 {
            0 => "key_000000000000".into(),
            count => self.keys[usize::try_from(self.random.below(count)).unwrap()].as_str().into(),
        };
        let (secret, who): (StoredSecret, Box<str>) =
            (Secret::generate(KeyKind::Sandbox).unwrap().stored(), "bob".into());
        let change = KeyChange {
            burst_per_minute: Some(5),
            per_month: FieldEdit::To(9),
            reset_usage: self.random.is(50),
            ..KeyChange::default()
        };
        let used = self.ago();
        match self.random.below(8) {
            0 | 1 => self.new_key(),
            7 => {
                let key = KeyId::new(&id).unwrap();
                RecordUse { uses: vec![(key, self.random.below(9), used)] }.into()
            }
            2 => RotateKey { id, secret, grace_s: 60, who }.into(),
            3 => UndoRotation { id, who }.into(),
            4 => RevokeKey { id, who }.into(),
            5 => SetKey { id, change, who }.into(),
            _ => IssueToken { name: self.random.of(&FEEDS).into(), world: World::Live, token: secret, who }.into(),
        }
    }

    fn operation(&mut self) -> SharedOperation {
        let (world, sport) = (World::Live, self.catalogue.find("tennis").unwrap());
        let sender = |name: &str| Sender { name: name.into(), removes_any: false };
        match self.random.below(20) {
            0..=6 => Ingest {
                world: if self.random.is(80) { world } else { World::Sandbox },
                news: self.news(),
                is_end: self.random.is(50),
                charge: self.random.is(20).then(|| FeedCharge { feed: "feed".into(), budget: self.budget() }),
                sender: self.random.is(30).then(|| sender(self.random.of(&FEEDS))),
            }
            .into(),
            7 => {
                let news = NewsReader(Box::new(self.news().into_iter().map(Ok)));
                IngestWhole { world, news, whole: Whole::Taken, sender: None }.into()
            }
            8..=12 => self.poll().into(),
            13 => EndRound { world, sport }.into(),
            14 => RetainPolled {
                scope: self.scope(),
                events: vec![EventId::new(self.random.of(&EVENTS)).unwrap()],
                markets: vec!["moneyline".into()],
            }
            .into(),
            15 => EndPoll { world, scope: format!("{}/a", self.random.of(&FEEDS)).into() }.into(),
            16 => match self.random.below(4) {
                0 => PutFeedBudget(FeedCharge { feed: "feed".into(), budget: self.budget() }).into(),
                1 => SetMaintenance { until: None, who: "ada".into() }.into(),
                2 => RevokeToken { name: self.random.of(&FEEDS).into(), who: "ada".into() }.into(),
                _ => MarkSimulated { who: "ada".into() }.into(),
            },
            17 => {
                let (action, subject) = ("note".into(), "service".into());
                WriteAudit { who: "ada".into(), action, subject, detail: String::new() }.into()
            }
            _ => self.key_operation(),
        }
    }
}

/// One run: random operations, publications that a node plans, and nodes that are closed and opened in between.
async fn run(seed: u64) {
    let mut first = Node::new();
    let mut nodes = vec![Node::copy(&mut first), Node::copy(&mut first), first];
    let catalogue = Arc::clone(&nodes[0].catalogue);
    for node in &mut nodes {
        node.open(START_MS);
    }
    let mut clients = Clients { random: Random(seed), catalogue, now: Timestamp::default(), keys: Vec::new() };
    let mut id = EntryId { ms: START_MS, number: 0 };
    for step in 0..120_u64 {
        let later = match clients.random.below(10) {
            0..=3 => clients.random.below(900),
            4..=8 => clients.random.below(20_000),
            // Events and sources are removed after days.
            _ => clients.random.below(90_000_000),
        };
        id = EntryId { ms: id.ms + later, number: step + 1 };
        clients.now = Timestamp::from_unix(u32::try_from(id.ms / 1000).unwrap());
        let planner = usize::try_from(clients.random.below(3)).unwrap();
        let moment = Moment::unset(i64::try_from(id.ms).unwrap(), id.ms);
        let mut operations: Vec<SharedOperation> = vec![clients.operation()];
        if clients.random.is(40) {
            operations = nodes[planner].writer().plan_due(moment);
        }
        let last = step == 119;
        if last || clients.random.is(5) {
            operations.push(nodes[planner].writer().plan_full_publication(moment).into());
        }
        let fence = clients.random.is(20).then(|| clients.random.below(3) + step / 40);
        for operation in operations {
            id.number += 1_000;
            let entry = encode(operation, &clients.catalogue).unwrap();
            let mut applied = Vec::new();
            let described = String::from_utf8_lossy(&entry).into_owned();
            for node in &mut nodes {
                if clients.random.is(6) {
                    node.open(clients.random.below(1 << 41));
                }
                applied.push(node.apply(id, fence.filter(|_| !last), &entry));
                if clients.random.is(6) {
                    node.open(clients.random.below(1 << 41));
                    assert_eq!(node.apply(id, None, &entry), Applied::Before);
                }
            }
            assert!(applied.iter().all(|one| *one == applied[0]), "{applied:?}");
            let positions: Vec<_> = nodes.iter_mut().map(Node::positions).collect();
            assert!(positions.iter().all(|one| *one == positions[0]), "seed {seed}, {described}: {positions:?}");
        }
    }
    let now = Moment::unset(i64::try_from(id.ms).unwrap(), id.ms);
    let plan = nodes[0].writer().plan_full_publication(now);
    let entry = encode(plan.into(), &clients.catalogue).unwrap();
    let end = EntryId { ms: id.ms + 1_000, number: 0 };
    for node in &mut nodes {
        node.apply(end, None, &entry);
    }
    let expected = nodes[0].shown().await;
    assert!(expected.len() > 20, "{expected:#?}");
    for node in &mut nodes[1..] {
        let shown = node.shown().await;
        let differs = expected.iter().zip(&shown).position(|(one, other)| one != other);
        if let Some(at) = differs {
            panic!("seed {seed}\n{}\n{}", expected[at], shown[at]);
        }
        assert_eq!(expected.len(), shown.len(), "seed {seed}");
    }
}

#[tokio::test]
async fn nodes_that_apply_the_same_entries_are_alike() {
    let seeds = match std::env::var("ODDSBOX_SEED") {
        Ok(seed) => vec![seed.parse().unwrap()],
        Err(_) => (1..=short_or_long(6, 500)).collect(),
    };
    for seed in seeds {
        run(seed).await;
    }
}

#[test]
fn file_of_a_node_takes_no_change_from_anywhere_else() {
    let mut node = Node::new();
    let issued = node.writer().issue_key(new_key(), "test");
    assert!(matches!(issued, Err(crate::writer::KeyError::Write(WriteError::Member))), "{issued:?}");
    let news = node.writer().ingest(World::Live, Vec::new(), true);
    assert!(news.is_ok(), "it changes nothing: {news:?}");
    assert_eq!(node.writer().keyring().list().len(), 0);
    node.writer().set_membership(None).unwrap();
    node.writer().issue_key(new_key(), "test").unwrap();
    node.open(START_MS + u64::try_from(Duration::from_secs(60).as_millis()).unwrap());
    assert!(!node.writer().is_member());
}

#[test]
fn file_of_a_node_that_leaves_has_what_its_keys_have_used() {
    let mut node = Node::new();
    node.writer().set_membership(None).unwrap();
    let key = node.writer().issue_key(new_key(), "test").unwrap().key.id().clone();
    node.writer().set_membership(Some(BEGIN)).unwrap();
    node.open(START_MS);
    let used = Timestamp::from_unix(u32::try_from(START_MS / 1000).unwrap());
    let entry = encode(RecordUse { uses: vec![(key.clone(), 50, used)] }.into(), &node.catalogue).unwrap();
    node.apply(EntryId { ms: START_MS + 1000, number: 0 }, None, &entry);
    node.writer().set_membership(None).unwrap();
    node.writer().flush().unwrap();
    node.open(START_MS + 60_000);
    let usage = node.writer().keyring().get(&key).unwrap().meter().usage();
    assert_eq!((usage.day_used, usage.month_used), (50, 50));
}

fn new_key() -> NewKey {
    let (kind, expires, approved_by) = (KeyKind::Sandbox, None, None);
    let limits = Limits::default_of(kind);
    NewKey { kind, name: "k".into(), groups: Vec::new(), limits, expires, approved_by, self_service: false }
}
