//! Nodes under load while they and their engine are killed, paused and cut off.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::nodes::{Cluster, answers};
use crate::process::client::Connection;
use crate::process::command::{Issued, until};
use crate::process::seed::{Random, Stream, short_or_long, within_a_day};

const CLIENTS: usize = 6;
const PER_DAY: u64 = 20_000;

/// What clients share with the operator.
#[derive(Debug, Default)]
struct Load {
    /// Where each node listens, unless it does not.
    addresses: Mutex<Vec<Option<SocketAddr>>>,
    /// Keys, and whether the command that revoked each has returned.
    keys: Mutex<Vec<(Issued, Arc<AtomicBool>)>>,
    /// Requests of the metered key that passed.
    passed: AtomicU64,
    answered: AtomicU64,
    is_over: AtomicBool,
}

/// Asks any node with any key, until it is over.
async fn client(load: Arc<Load>, metered: Issued, mut random: Stream) {
    while !load.is_over.load(Ordering::SeqCst) {
        let number = usize::try_from(random.below(3)).expect("a number");
        let address = load.addresses.lock().expect("a lock")[number];
        if let Some(address) = address {
            // The node may end meanwhile.
            let _ = ask(&load, &metered, &mut random, address).await;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// A few requests on one connection, which may end at any time.
async fn ask(load: &Load, metered: &Issued, random: &mut Stream, address: SocketAddr) -> std::io::Result<()> {
    let mut connection = Connection::open(address).await?;
    for _ in 0..20 {
        let key = (random.below(3) > 0).then(|| {
            let keys = load.keys.lock().expect("a lock");
            keys.get(usize::try_from(random.below(keys.len() as u64 + 1)).expect("a number")).cloned()
        });
        if let Some((key, is_revoked)) = key.flatten() {
            let was_revoked = is_revoked.load(Ordering::SeqCst);
            let status = connection.get("/v1/sports", &key.secret).await?.status;
            assert!(!was_revoked || status != 200, "{} was revoked, and is let in", key.id);
        } else {
            let status = connection.get("/v1/sports", &metered.secret).await?.status;
            load.passed.fetch_add(u64::from(status == 200), Ordering::SeqCst);
        }
        load.answered.fetch_add(1, Ordering::SeqCst);
    }
    Ok(())
}

/// Something goes wrong, or is mended.
fn disturb(cluster: &mut Cluster, load: &Load, random: &mut Random, is_paused: &mut [bool; 3]) {
    let number = usize::try_from(random.below(3)).expect("a number");
    let node = &mut cluster.nodes[number];
    let listens = |address| load.addresses.lock().expect("a lock")[number] = address;
    match random.below(8) {
        0 | 1 if node.is_running() => {
            listens(None);
            node.kill();
            is_paused[number] = false;
        }
        2 if node.is_running() && !is_paused[number] => {
            node.server().pause();
            is_paused[number] = true;
        }
        3 => node.link.cut(),
        4 | 5 => node.link.mend(),
        6 => {
            cluster.engine.kill();
            cluster.engine.start_again();
        }
        _ if is_paused[number] => {
            node.server().resume();
            is_paused[number] = false;
        }
        _ if !node.is_running() => {
            node.link.mend();
            node.serve();
            listens(Some(node.address()));
        }
        _ => {}
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_limit_and_no_revocation_is_broken_under_load_and_faults() {
    let told = Mutex::new(String::new());
    within_a_day(|| async { *told.lock().expect("a lock") = run().await }).await;
    println!("{}", told.into_inner().expect("a lock"));
}

/// Returns what was done.
async fn run() -> String {
    let test = "no_limit_and_no_revocation_is_broken_under_load_and_faults";
    let Some(mut cluster) = Cluster::start(test) else { return String::new() };
    let mut random = Random::new();
    let metered = cluster.node("a").issue(&format!("--burst 10000000 --per-day {PER_DAY}"));
    for node in &cluster.nodes {
        answers(node, "/v1/sports", &metered, 200).await;
    }
    let load = Arc::new(Load::default());
    load.passed.store(3, Ordering::SeqCst);
    *load.addresses.lock().expect("a lock") = cluster.nodes.iter().map(|node| Some(node.address())).collect();
    let client = |_| tokio::spawn(client(Arc::clone(&load), metered.clone(), random.fork()));
    let clients: Vec<_> = (0..CLIENTS).map(client).collect();

    let (began, mut is_paused, mut revoked) = (Instant::now(), [false; 3], 0);
    while began.elapsed() < Duration::from_secs(short_or_long(15, 300)) {
        tokio::task::block_in_place(|| disturb(&mut cluster, &load, &mut random, &mut is_paused));
        let at = usize::try_from(random.below(3)).expect("a number");
        if cluster.nodes[at].is_running() && !is_paused[at] {
            revoked += tokio::task::block_in_place(|| operate(&cluster, at, &load, &mut random));
        }
        tokio::time::sleep(Duration::from_millis(random.below(400))).await;
    }

    for (node, is_paused) in cluster.nodes.iter_mut().zip(is_paused) {
        node.link.mend();
        if is_paused {
            node.server().resume();
        }
        if !node.is_running() {
            node.serve();
        }
    }
    load.is_over.store(true, Ordering::SeqCst);
    for client in clients {
        client.await.expect("a client");
    }
    until("all follow", async || cluster.nodes.iter().all(|node| node.standing() == "following")).await;
    let key = cluster.node("a").issue("--burst 100000");
    cluster.same("/v1/sports/mma/odds", &key).await;
    let (passed, answered) = (load.passed.load(Ordering::SeqCst), load.answered.load(Ordering::SeqCst));
    let told = format!("{answered} requests, {passed} of {PER_DAY} metered ones passed, {revoked} keys were revoked");
    assert!(passed <= PER_DAY && answered > 100, "{told}");
    told
}

/// Issues a key, or revokes one. Returns how many were revoked.
fn operate(cluster: &Cluster, at: usize, load: &Load, random: &mut Random) -> usize {
    let node = &cluster.nodes[at];
    if random.below(2) == 0 {
        let issued = node.run("keys issue --sandbox --name load --burst 1000000 --json");
        if issued.code == Some(0) {
            load.keys.lock().expect("a lock").push((Issued::from(&issued.document()), Arc::default()));
        }
        return 0;
    }
    let keys = load.keys.lock().expect("a lock").clone();
    let mut in_force = keys.iter().filter(|(_, is_revoked)| !is_revoked.load(Ordering::SeqCst));
    let Some((key, is_revoked)) = in_force.next() else { return 0 };
    let is_done = node.run(&format!("keys revoke {}", key.id)).code == Some(0);
    is_revoked.fetch_or(is_done, Ordering::SeqCst);
    usize::from(is_done)
}
