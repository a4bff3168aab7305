//! Nodes and their engine in one process, with simulated time: messages are delayed, lost and doubled, nodes are cut off, killed and
//! started again, and the engine is restarted with what it had a second before. Whatever happens:
//!
//! - a key whose revocation was confirmed is let in nowhere,
//! - no more requests pass than the limits allow,
//! - at most one node has the duty,
//! - and when everything works again, all nodes are alike; or, if the engine has lost what a node has applied, none serves.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::task::{JoinHandle, JoinSet};

use super::engines::{LOG, member_options};
use super::faults::{Faults, FaultyEngine};
use super::{BEGIN, Clients, Node, Random, START_MS, new_key};
use crate::board::Boards;
use crate::clock::Clock;
use crate::cluster::engine::Engine;
use crate::cluster::engine::memory::MemoryEngine;
use crate::cluster::member::{Member, MemberParts};
use crate::keys::{Cost, KeyId, Keyring, Limits, NewKey, Refusal};
use crate::model::{Membership, Timestamp};
use crate::testing::short_or_long;
use crate::writer::{WriteError, spawn_task};

/// How finely time passes.
const STEP: Duration = Duration::from_millis(5);
/// Of how many requests a day the metered key has.
const PER_DAY: u64 = 300;

type SimulatedMember = Member<FaultyEngine<MemoryEngine>>;

/// A node while it runs.
struct Running {
    member: Arc<SimulatedMember>,
    boards: Arc<Boards>,
    keyring: Arc<Keyring>,
    /// Those who asked this node for something.
    clients: JoinSet<()>,
    /// Dropped with the node.
    _tasks: JoinSet<()>,
    writer: JoinHandle<Result<(), WriteError>>,
}

struct SimulatedNode {
    name: String,
    file: Node,
    clock: Clock,
    faults: Arc<Faults>,
    running: Option<Running>,
}

impl SimulatedNode {
    fn start(&mut self, engine: &Arc<MemoryEngine>, first_number: u64) {
        let opened = self.file.open_with(self.clock.clone());
        let (writer, requests) = (opened.writer, opened.lease_requests);
        let membership = writer.membership().unwrap();
        let (boards, keyring) = (Arc::clone(writer.boards()), Arc::clone(writer.keyring()));
        let (handle, writer) = spawn_task(writer);
        let parts = MemberParts {
            catalogue: Arc::clone(&self.file.catalogue),
            writer: handle,
            boards: Arc::clone(&boards),
            keyring: Arc::clone(&keyring),
            clock: self.clock.clone(),
        };
        let engine = Arc::new(FaultyEngine { inner: Arc::clone(engine), faults: Arc::clone(&self.faults) });
        let member = Member::new(engine, member_options(&self.name), membership, parts, first_number);
        let mut tasks = JoinSet::new();
        let running = Arc::clone(&member);
        tasks.spawn(async move {
            let mut inner = JoinSet::new();
            while running.start(&mut inner).await.is_err() {
                inner.shutdown().await;
                // As whoever starts it again does.
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            running.hand_out_shares(requests, std::future::pending()).await;
        });
        let clients = JoinSet::new();
        self.running = Some(Running { member, boards, keyring, clients, _tasks: tasks, writer });
    }

    async fn kill(&mut self) {
        let Some(Running { writer, mut clients, .. }) = self.running.take() else { return };
        clients.shutdown().await;
        writer.abort();
        let _ = writer.await;
    }
}

/// What the clients know.
#[derive(Default)]
struct Known {
    /// Keys that are in force, and their secrets.
    keys: Mutex<Vec<(KeyId, String)>>,
    /// Keys whose revocation was confirmed.
    revoked: Mutex<Vec<(KeyId, String)>>,
    passed: AtomicU64,
}

struct Simulation {
    random: Random,
    engine: Arc<MemoryEngine>,
    clocks: Vec<Clock>,
    nodes: Vec<SimulatedNode>,
    known: Arc<Known>,
    metered: (KeyId, String),
    operations: Clients,
    next_number: u64,
    now_ms: u64,
}

impl Simulation {
    async fn new(seed: u64) -> Simulation {
        let mut random = Random(seed);
        let clock = || Clock::manual(i64::try_from(START_MS).unwrap());
        let engine_clock = clock();
        let engine = Arc::new(MemoryEngine::new(engine_clock.clone()));
        let begin = engine.create(LOG).await.unwrap().unwrap();
        let mut first = Node::new();
        first.writer().set_membership(None).unwrap();
        let limits = Limits { burst_per_minute: 1_000_000, per_day: Some(PER_DAY), per_month: None, streams: 1 };
        let issued = first.writer().issue_key(NewKey { limits, ..new_key() }, "test").unwrap();
        let metered = (issued.key.id().clone(), issued.secret.expose().to_owned());
        let membership = Membership { applied: begin, fence: 0, ..BEGIN };
        first.writer().set_membership(Some(membership)).unwrap();
        let count = 3 + random.below(5);
        let files: Vec<Node> = (1..count).map(|_| Node::copy(&mut first)).collect();
        first.writer = None;
        let node = |(number, file)| SimulatedNode {
            name: format!("node {number}"),
            file,
            clock: clock(),
            faults: Arc::new(Faults::new(seed ^ number)),
            running: None,
        };
        let nodes: Vec<_> = (1..).zip(files.into_iter().chain([first])).map(node).collect();
        let clocks = std::iter::once(engine_clock).chain(nodes.iter().map(|node| node.clock.clone())).collect();
        let known = Arc::default();
        let catalogue = Arc::clone(&nodes[0].file.catalogue);
        let operations = Clients { random: Random(seed + 1), catalogue, now: Timestamp::default(), keys: Vec::new() };
        Simulation { random, engine, clocks, nodes, known, metered, operations, next_number: 0, now_ms: 0 }
    }

    fn start(&mut self, at: usize) {
        // Numbers of entries from before it was started last are not used again.
        self.next_number += 1 << 32;
        self.nodes[at].start(&self.engine, self.next_number);
    }

    /// Lets time pass, and checks what must hold at every moment.
    async fn pass(&mut self, by: Duration) {
        let mut passed = Duration::ZERO;
        while passed < by {
            tokio::time::sleep(STEP).await;
            passed += STEP;
            self.now_ms += 5;
            if self.now_ms.is_multiple_of(1_000) {
                self.engine.save();
            }
            for (number, clock) in self.clocks.iter().enumerate() {
                clock.advance(STEP);
                // Clocks do not run equally fast: some are ahead by two in a hundred.
                if number % 2 == 1 && self.now_ms.is_multiple_of(250) {
                    clock.advance(STEP);
                }
            }
            self.check();
        }
    }

    fn check(&self) {
        let running = || self.nodes.iter().filter_map(|node| Some((node, node.running.as_ref()?)));
        for (node, running) in running() {
            for (id, secret) in self.known.revoked.lock().unwrap().iter() {
                assert!(!accepts(running, &node.clock, secret), "{} lets {id} in at {}", node.name, self.now_ms);
            }
        }
        let on_duty: Vec<_> = running()
            .filter(|(_, running)| running.member.duty().fence().is_some())
            .map(|(node, _)| &node.name)
            .collect();
        assert!(on_duty.len() <= 1, "{on_duty:?} at {}", self.now_ms);
        let passed = self.known.passed.load(Ordering::SeqCst);
        assert!(passed <= PER_DAY, "{passed} of {PER_DAY} at {}", self.now_ms);
    }

    fn any_node(&mut self) -> usize {
        usize::try_from(self.random.below(self.nodes.len() as u64)).unwrap()
    }

    /// Something goes wrong, or is mended.
    async fn disturb(&mut self) {
        let at = self.any_node();
        let (one, two) = (self.random.below(400), self.random.below(300));
        let faults = &self.nodes[at].faults;
        match self.random.below(10) {
            0 | 1 => faults.is_cut.store(true, Ordering::SeqCst),
            2..=4 => faults.is_cut.store(false, Ordering::SeqCst),
            5 => faults.lost_per_mille.store(one.saturating_sub(200), Ordering::SeqCst),
            6 => faults.delay_ms.store(two, Ordering::SeqCst),
            7 => faults.doubled_per_mille.store(two, Ordering::SeqCst),
            _ if self.nodes[at].running.is_some() => self.nodes[at].kill().await,
            _ => self.start(at),
        }
    }

    /// A client asks for something.
    fn ask(&mut self) {
        let at = self.any_node();
        let clock = self.nodes[at].clock.clone();
        let Some(running) = &mut self.nodes[at].running else { return };
        let (writer, known) = (running.member.writer(), Arc::clone(&self.known));
        match self.random.below(10) {
            8 | 9 => {
                self.operations.now = Timestamp::from_unix_ms(clock.now().unix_ms);
                let (operation, member) = (self.operations.operation(), Arc::clone(&running.member));
                running.clients.spawn(async move {
                    // It may be refused, or not be known what became of it.
                    let _ = member.node().enter_with(operation, None, None).await;
                });
            }
            0 => {
                running.clients.spawn(async move {
                    if let Ok(issued) = writer.issue_key(new_key(), "ada").await {
                        let secret = issued.secret.expose().to_owned();
                        known.keys.lock().unwrap().push((issued.key.id().clone(), secret));
                    }
                });
            }
            1 => {
                let Some((id, secret)) = known.keys.lock().unwrap().pop() else { return };
                running.clients.spawn(async move {
                    let revoked = writer.revoke_key(id.as_str(), "ada").await;
                    if revoked.is_ok() && writer.settled().await.is_empty() {
                        known.revoked.lock().unwrap().push((id, secret));
                    }
                });
            }
            _ => {
                let count = 1 + self.random.below(12);
                let metered = self.metered.1.clone();
                let (keyring, boards) = (Arc::clone(&running.keyring), Arc::clone(&running.boards));
                running.clients.spawn(async move {
                    for _ in 0..count {
                        let passed = request((&keyring, &boards, &clock), &metered).await;
                        known.passed.fetch_add(u64::from(passed), Ordering::SeqCst);
                    }
                });
            }
        }
    }

    /// Everything works again: nodes come to the same, and serve. Returns whether they do.
    async fn heal(&mut self) -> bool {
        for at in 0..self.nodes.len() {
            let faults = &self.nodes[at].faults;
            faults.is_cut.store(false, Ordering::SeqCst);
            faults.lost_per_mille.store(0, Ordering::SeqCst);
            faults.doubled_per_mille.store(0, Ordering::SeqCst);
            faults.delay_ms.store(0, Ordering::SeqCst);
            if self.nodes[at].running.is_none() {
                self.start(at);
            }
        }
        self.pass(Duration::from_secs(40)).await;
        if self.engine.has_lost() {
            for node in &self.nodes {
                let running = node.running.as_ref().unwrap();
                assert!(!accepts(running, &node.clock, &self.metered.1), "{} serves without what is lost", node.name);
            }
            return false;
        }
        let last = self.engine.last();
        for node in &mut self.nodes {
            let running = node.running.as_mut().unwrap();
            while running.clients.try_join_next().is_some() {}
            assert!(running.clients.is_empty(), "every client of {} has had an answer", node.name);
            assert!(accepts(running, &node.clock, &self.metered.1), "{} serves", node.name);
            assert_eq!(*running.member.node().applied().borrow(), last, "{}", node.name);
        }
        true
    }

    /// What clients and operators see of each node.
    async fn shown(mut self) -> BTreeMap<String, Vec<String>> {
        let mut shown = BTreeMap::new();
        for node in &mut self.nodes {
            node.kill().await;
        }
        for node in &mut self.nodes {
            node.file.open(0);
            shown.insert(node.name.clone(), node.file.shown().await);
        }
        shown
    }
}

/// Whether a node lets a key in.
fn accepts(running: &Running, clock: &Clock, secret: &str) -> bool {
    let keys = running.keyring.load();
    let is_known = keys.authenticate(Some(secret), clock.now()).is_ok();
    is_known && running.boards.condition().may_serve(|| clock.mono_ms())
}

/// One request, as the public interface takes it.
async fn request((keyring, boards, clock): (&Keyring, &Boards, &Clock), secret: &str) -> bool {
    // A client does not wait for ever.
    for _ in 0..20 {
        let waiting = {
            let keys = keyring.load();
            let Ok(grant) = keys.authenticate(Some(secret), clock.now()) else { return false };
            if !boards.condition().may_serve(|| clock.mono_ms()) {
                return false;
            }
            match grant.meter().charge(Cost::Full, clock.now()) {
                Ok(_) => return true,
                Err(Refusal::NeedsLease) => grant.to_waiting(),
                Err(_) => return false,
            }
        };
        let arrives = waiting.lease_arrives(clock.now());
        if !matches!(tokio::time::timeout(Duration::from_secs(5), arrives).await, Ok(Ok(()))) {
            return false;
        }
    }
    false
}

async fn run(seed: u64) {
    let mut simulation = Simulation::new(seed).await;
    for at in 0..simulation.nodes.len() {
        simulation.start(at);
    }
    simulation.pass(Duration::from_secs(3)).await;
    let restart_at = simulation.random.below(180);
    for step in 0..60 {
        if step == restart_at {
            simulation.engine.restart();
        }
        if simulation.random.is(40) {
            simulation.disturb().await;
        }
        simulation.ask();
        let wait = simulation.random.below(900);
        simulation.pass(Duration::from_millis(wait)).await;
    }
    if !simulation.heal().await {
        return;
    }
    let shown = simulation.shown().await;
    let (first, expected) = shown.first_key_value().unwrap();
    assert!(expected.len() > 5, "{expected:#?}");
    for (name, lines) in &shown {
        let differs = expected.iter().zip(lines).find(|(one, other)| one != other);
        assert_eq!((differs, lines.len()), (None, expected.len()), "{first} and {name}");
    }
}

#[test]
fn invariants_hold_whatever_goes_wrong() {
    let (first, last) = match std::env::var("ODDSBOX_SEED") {
        Ok(seed) => (seed.parse().unwrap(), seed.parse().unwrap()),
        Err(_) => (1, short_or_long(6, 3_000)),
    };
    let next = AtomicU64::new(first);
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed > last {
                break;
            }
            let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
            let outcome = catch_unwind(AssertUnwindSafe(|| runtime.block_on(run(seed))));
            assert!(outcome.is_ok(), "seed {seed}");
            if seed.is_multiple_of(500) {
                println!("{seed} seeds");
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..short_or_long(1, thread::available_parallelism().unwrap().get()) {
            scope.spawn(work);
        }
    });
}
