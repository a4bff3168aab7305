//! kill -9 at any moment: what was acknowledged holds, and no quota is granted twice.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use oddsbox::admin::{AdminAccess, AuditAnswer, Command};
use serde_json::Value;

use super::client::{Connection, get};
use super::command::{Directory, Issued, Server, Started, issue, revoke, rotate, sandbox, show, until};
use super::seed::{Random, short_or_long, within_a_day};

fn rounds() -> u64 {
    short_or_long(8, 170)
}

/// What a crash may cost a key: one lease.
fn lease_size(quota: u64) -> u64 {
    (quota / 100).clamp(100, 10_000)
}

fn serve(directory: &Directory) -> Server {
    directory.serve_with(&[("ODDSBOX_LOG", "warn")])
}

/// Runs `work` until it has acknowledged a few operations and a moment longer, then kills the server.
async fn kill_during(server: Server, random: &mut Random, acknowledged: &AtomicU64, work: impl Future<Output = ()>) {
    let enough = acknowledged.load(Ordering::Relaxed) + 1 + random.below(6);
    let moment = Duration::from_micros(random.below(10_000));
    let killed = async {
        until("the server acknowledges", async || acknowledged.load(Ordering::Relaxed) >= enough).await;
        tokio::time::sleep(moment).await;
        server.kill();
    };
    tokio::join!(killed, work);
}

/// Asserts the status of each secret.
async fn expect(server: &Server, status: u16, secrets: impl IntoIterator<Item = &String>, what: &str) {
    let mut connection = Connection::open(server.address()).await.expect("a connection");
    for secret in secrets {
        let answer = connection.get("/v1/status", secret).await.expect("an answer");
        assert_eq!(answer.status, status, "{what}: {answer:?}");
    }
}

/// The subjects of an action in the audit log.
async fn audited(access: &AdminAccess, action: &str) -> Vec<String> {
    let mut subjects = Vec::new();
    let mut after = None;
    loop {
        let page: Vec<AuditAnswer> = access.ask(Command::Audit { after, limit: Some(1000) }).await.expect("a log");
        let Some(last) = page.last() else { return subjects };
        after = Some(last.sequence);
        subjects.extend(page.into_iter().filter(|entry| entry.action == action).map(|entry| entry.subject));
    }
}

/// Asserts that the file is intact after all those crashes.
fn finish(directory: &Directory, server: Server) {
    server.stop();
    let report = directory.json("check");
    assert_eq!((&report["clean"], &report["problem_count"]), (&true.into(), &0.into()), "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_key_that_was_issued_works_after_a_crash() {
    let mut random = Random::new();
    let directory = Directory::new();
    let mut keys: Vec<Issued> = Vec::new();
    let acknowledged = AtomicU64::new(0);
    for round in 0..rounds() {
        let server = serve(&directory);
        let access = directory.access().await;
        expect(&server, 200, keys.iter().map(|key| &key.secret), "an issued key").await;
        kill_during(server, &mut random, &acknowledged, async {
            while let Ok(key) = issue(&access, sandbox(1_000)).await {
                keys.push(key);
                acknowledged.fetch_add(1, Ordering::Relaxed);
            }
        })
        .await;
        assert!(directory.socket().exists(), "round {round}: the killed server could not remove its socket");
    }
    let server = serve(&directory);
    expect(&server, 200, keys.iter().map(|key| &key.secret), "an issued key").await;
    let audited: BTreeSet<String> = audited(&directory.access().await, "issue").await.into_iter().collect();
    assert!(keys.iter().all(|key| audited.contains(&key.id)), "who issued them is kept");
    println!("{} keys over {} crashes", keys.len(), rounds());
    finish(&directory, server);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_revocation_holds_after_a_crash() {
    let mut random = Random::new();
    let directory = Directory::new();
    let mut revoked: Vec<Issued> = Vec::new();
    let acknowledged = AtomicU64::new(0);
    for _ in 0..rounds() {
        let server = serve(&directory);
        let access = directory.access().await;
        expect(&server, 401, revoked.iter().map(|key| &key.secret), "a revoked key").await;
        // More keys than are revoked before the crash.
        let mut keys = Vec::new();
        for _ in 0..40 {
            keys.push(issue(&access, sandbox(1_000)).await.expect("a key"));
        }
        let mut waiting = keys.iter();
        kill_during(server, &mut random, &acknowledged, async {
            // The revocation in progress when the server is killed may or may not hold.
            for key in waiting.by_ref() {
                if revoke(&access, &key.id).await.is_err() {
                    break;
                }
                revoked.push(key.clone());
                acknowledged.fetch_add(1, Ordering::Relaxed);
            }
        })
        .await;
        let server = serve(&directory);
        expect(&server, 401, revoked.iter().map(|key| &key.secret), "a revoked key").await;
        expect(&server, 200, waiting.map(|key| &key.secret), "a key that was not revoked").await;
        server.kill();
    }
    let server = serve(&directory);
    let audited: BTreeSet<String> = audited(&directory.access().await, "revoke").await.into_iter().collect();
    assert!(revoked.iter().all(|key| audited.contains(&key.id)), "who revoked them is kept");
    println!("{} revocations over {} crashes", revoked.len(), 2 * rounds());
    finish(&directory, server);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rotated_secret_is_rejected_after_a_crash() {
    let mut random = Random::new();
    let directory = Directory::new();
    let acknowledged = AtomicU64::new(0);
    // The current secret of each key, and its previous ones.
    let mut current: BTreeMap<String, String> = BTreeMap::new();
    let mut dead: Vec<String> = Vec::new();
    let mut rotations = 0;
    for _ in 0..rounds() {
        let server = serve(&directory);
        let access = directory.access().await;
        while current.len() < 5 {
            let key = issue(&access, sandbox(1_000)).await.expect("a key");
            current.insert(key.id, key.secret);
        }
        let ids: Vec<String> = current.keys().cloned().collect();
        let mut under_way = String::new();
        kill_during(server, &mut random, &acknowledged, async {
            for id in ids.iter().cycle() {
                under_way.clone_from(id);
                let Ok(key) = rotate(&access, id).await else { break };
                dead.extend(current.insert(key.id, key.secret));
                rotations += 1;
                acknowledged.fetch_add(1, Ordering::Relaxed);
            }
        })
        .await;
        let server = serve(&directory);
        expect(&server, 401, &dead, "a secret that was rotated out").await;
        // Whether the last rotation was kept is unknown, so its key starts over.
        let unknown = current.remove(&under_way);
        expect(&server, 200, current.values(), "the secret of the last rotation").await;
        let access = directory.access().await;
        let key = rotate(&access, &under_way).await.expect("a rotation");
        dead.extend(unknown);
        current.insert(key.id, key.secret);
        expect(&server, 401, &dead, "a secret that was rotated out").await;
        server.kill();
    }
    let server = serve(&directory);
    expect(&server, 401, &dead, "a secret that was rotated out").await;
    expect(&server, 200, current.values(), "the secret of the last rotation").await;
    println!("{rotations} rotations over {} crashes", 2 * rounds());
    finish(&directory, server);
}

/// Uses a key on a few connections until the server is killed or the quota is exhausted. Returns how many requests were sent
/// and how many were answered with 200.
async fn use_up(address: SocketAddr, key: &Issued, passed: &Arc<AtomicU64>) -> (u64, u64) {
    let client = |_| {
        let (secret, passed) = (key.secret.clone(), Arc::clone(passed));
        tokio::spawn(async move {
            let (mut sent, mut answered) = (0, 0);
            let Ok(mut connection) = Connection::open(address).await else { return (0, 0) };
            loop {
                sent += 1;
                match connection.get("/v1/sports", &secret).await {
                    Err(_dead) => return (sent, answered),
                    Ok(answer) if answer.status == 200 => answered += 1,
                    Ok(answer) if answer.status == 429 => return (sent - 1, answered),
                    Ok(answer) => panic!("{answer:?}"),
                }
                passed.fetch_add(1, Ordering::Relaxed);
            }
        })
    };
    let clients: Vec<_> = (0..4).map(client).collect();
    let mut total = (0, 0);
    for client in clients {
        let (sent, answered) = client.await.expect("a client");
        total = (total.0 + sent, total.1 + answered);
    }
    total
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quota_is_never_exceeded_over_crashes_and_a_crash_costs_at_most_one_lease() {
    within_a_day(check_quota_is_never_exceeded_over_crashes_and_a_crash_costs_at_most_one_lease).await;
}

async fn check_quota_is_never_exceeded_over_crashes_and_a_crash_costs_at_most_one_lease() {
    let mut random = Random::new();
    let directory = Directory::new();
    let mut crashes = 0;
    let mut worst = 0;
    let quotas = [300, 300, 1_000, 25_000];
    while crashes < rounds() {
        let quota = quotas[usize::try_from(random.below(4)).expect("a small number")];
        let server = serve(&directory);
        let key = issue(&directory.access().await, sandbox(quota)).await.expect("a key");
        server.kill();
        let (mut passed_in_all, mut stored) = (0, 0);
        // An exhausted key is done; a large quota has been tested enough after a few rounds.
        for _ in 0..8 {
            let server = serve(&directory);
            let passed = Arc::new(AtomicU64::new(0));
            let enough = 1 + random.below(quota.min(400));
            let mut using = pin!(use_up(server.address(), &key, &passed));
            let spent = tokio::select! {
                spent = &mut using => Some(spent),
                () = until("requests pass", async || passed.load(Ordering::Relaxed) >= enough) => None,
            };
            server.kill();
            crashes += 1;
            let (sent, answered) = match spent {
                Some(spent) => spent,
                None => using.await,
            };
            passed_in_all += answered;
            assert!(passed_in_all <= quota, "{passed_in_all} of {quota} passed");
            let server = serve(&directory);
            let used = show(&directory.access().await, &key.id).await.used_today;
            server.kill();
            assert!(used <= quota, "{used} of {quota}");
            assert!(stored + answered <= used, "{answered} passed, and {stored} became only {used}");
            assert!(used <= stored + sent + lease_size(quota), "{sent} were sent, and {stored} became {used}");
            worst = worst.max(used - stored - answered);
            stored = used;
            if used == quota {
                break;
            }
        }
    }
    let server = serve(&directory);
    println!("{crashes} crashes, {worst} requests lost by the worst of them");
    finish(&directory, server);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quota_of_300_grants_at_most_300_over_many_crashes() {
    within_a_day(check_quota_of_300_grants_at_most_300_over_many_crashes).await;
}

async fn check_quota_of_300_grants_at_most_300_over_many_crashes() {
    let mut random = Random::new();
    let directory = Directory::new();
    let server = serve(&directory);
    let key = issue(&directory.access().await, sandbox(300)).await.expect("a key");
    server.kill();
    let (mut passed, mut crashes) = (0, 0);
    loop {
        let server = serve(&directory);
        let mut connection = Connection::open(server.address()).await.expect("a connection");
        let mut is_spent = false;
        for _ in 0..=random.below(60) {
            match connection.get("/v1/sports", &key.secret).await.expect("an answer").status {
                200 => passed += 1,
                429 => is_spent = true,
                status => panic!("{status}"),
            }
        }
        if is_spent {
            break;
        }
        server.kill();
        crashes += 1;
    }
    assert!(passed <= 300, "{passed}");
    assert!(passed + crashes * lease_size(300) >= 300, "{crashes} crashes left {passed} of 300");
}

/// A file that is being created is never left in a state that the next start rejects, such as empty.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_first_command_leaves_a_usable_directory() {
    let mut random = Random::new();
    for _ in 0..2 * rounds() {
        let directory = Directory::new();
        let mut command = Started::new(directory.path(), "keys issue --sandbox --name killed --json".split(' '));
        tokio::time::sleep(Duration::from_micros(random.below(40_000))).await;
        command.kill();
        directory.json("keys issue --sandbox --name next");
        assert_eq!(directory.json("check")["clean"], true);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn command_without_a_server_survives_a_kill() {
    let mut random = Random::new();
    let directory = Directory::new();
    let mut keys = vec![Issued::from(&directory.json("keys issue --sandbox --name first"))];
    for _ in 0..rounds() {
        let mut command = Started::new(directory.path(), "keys issue --sandbox --name killed --json".split(' '));
        tokio::time::sleep(Duration::from_micros(random.below(60_000))).await;
        command.kill();
        // It may have finished already: what it printed is acknowledged.
        keys.extend(serde_json::from_str(&command.done().stdout).ok().map(|key: Value| Issued::from(&key)));
        keys.push(Issued::from(&directory.json("keys issue --sandbox --name next")));
        let listed = directory.json("keys list").to_string();
        assert!(keys.iter().all(|key| listed.contains(&key.id)), "{listed}");
    }
    let server = serve(&directory);
    for key in &keys {
        assert_eq!(get(server.address(), "/v1/sports", &key.secret).await.status, 200);
    }
    finish(&directory, server);
}
