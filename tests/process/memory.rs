//! Memory that runs out ends the server, and costs nothing that was acknowledged. A limit of threads is named when it starts.

use std::fmt::Write;

use super::client::get;
use super::command::{Directory, Issued, Server, file_with};

/// One and a half of what a server takes that has just started, in KiB of addresses.
const ENOUGH_TO_START: &str = "ulimit -v 320000";
/// So many rounds of events need more, whatever the machine.
const ROUNDS_MAX: usize = 30;
const EVENTS: usize = 30_000;

fn events(round: usize) -> String {
    let mut lines = String::new();
    for number in round * EVENTS..(round + 1) * EVENTS {
        writeln!(
            lines,
            r#"{{"type":"event","sport":"mma","id":"e{number}","competition":"UFC","commence_time":"2036-01-01T00:00:00Z","home":"A {number}","away":"B {number}","status":"scheduled"}}"#,
        )
        .expect("a text");
    }
    lines
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_without_memory_ends_and_keeps_what_was_acknowledged() {
    let directory = Directory::new();
    // Each thread takes addresses for its stack, and glibc would reserve 64 MiB more for each, until there are too few.
    let variables = [("TOKIO_WORKER_THREADS", "2"), ("MALLOC_ARENA_MAX", "1")];
    let mut server = Server::spawn_limited(directory.path(), ENOUGH_TO_START, &variables);
    server.wait_until_ready();
    let issue = || Issued::from(&directory.json("keys issue --sandbox --name app"));
    let (kept, revoked) = (issue(), issue());
    directory.run(&format!("keys revoke {}", revoked.id)).succeeded();
    let ingest = |round| {
        let (_kept, path) = file_with(events(round).as_bytes());
        directory.run(&format!("ingest {}", path.display()))
    };
    let refused = (0..ROUNDS_MAX).map(ingest).find(|done| done.code != Some(0)).expect("an end");
    let complaint = refused.failed();
    assert!(complaint.contains("the server does not answer"), "{complaint}");
    let (code, _, log) = server.end();
    assert!(code.is_none() && log.contains("memory allocation of"), "{code:?}: {log}");

    let server = directory.serve();
    for (key, expected) in [(&kept, 200), (&revoked, 401)] {
        assert_eq!(get(server.address(), "/v1/sports", &key.secret).await.status, expected);
    }
    server.stop();
    directory.run("check").succeeded();
}

/// Each thread takes addresses for its stack, so that this is a limit of threads for any user.
#[test]
fn server_that_cannot_start_its_threads_says_so_and_ends() {
    let directory = Directory::new();
    let refused = |workers: &str| {
        let server = Server::spawn_limited(directory.path(), ENOUGH_TO_START, &[("TOKIO_WORKER_THREADS", workers)]);
        let (code, _, log) = server.end();
        assert_eq!(code, Some(1), "{log}");
        log
    };
    let log = refused("500");
    assert!(log.contains("error: 504 threads cannot be started") && log.contains("raise the limit"), "{log}");
    assert!(!log.contains("panicked"), "{log}");
    let log = refused("none");
    assert!(log.contains("TOKIO_WORKER_THREADS must be a number of threads"), "{log}");
}
