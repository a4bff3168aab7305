//! File descriptors: clients may use all but a reserve for the operator's commands and the data file.

use std::net::TcpStream;

use super::client::Connection;
use super::command::{Directory, Issued, Server, blocking, until};
use super::deploy::metrics;
use crate::harness::Figures;

const ISSUE: &str = "keys issue --sandbox --name app --burst 100000 --per-day 50000";

fn limited(directory: &Directory, limits: &str) -> Server {
    let mut server = Server::spawn_limited(directory.path(), limits, &[("ODDSBOX_HEADER_TIMEOUT", "80s")]);
    server.wait_until_ready();
    server
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn admin_commands_work_while_clients_hold_every_connection() {
    let directory = Directory::new();
    let key = Issued::from(&directory.json(ISSUE));
    let server = limited(&directory, "ulimit -n 128");
    let mut client = Connection::open(server.address()).await.expect("a connection");
    assert_eq!(client.get("/v1/sports", &key.secret).await.expect("an answer").status, 200);
    // More than there are descriptors. Connections that are not accepted wait in the kernel.
    let address = server.address();
    let connect = move || TcpStream::connect(address).expect("a place in the queue");
    let connections = blocking(move || std::iter::repeat_with(connect).take(300).collect::<Vec<_>>()).await;
    until("every connection is taken", async || {
        let figures = Figures::parse(&metrics(&directory));
        let of = |name| figures.get(name, "").expect("a figure");
        of("oddsbox_http_connections") >= of("oddsbox_http_connections_max")
    })
    .await;
    directory.json(ISSUE);
    directory.run(&format!("keys revoke {}", key.id)).succeeded();
    assert_eq!(client.get("/v1/sports", &key.secret).await.expect("an answer").status, 401);
    drop(connections);
    let log = server.stop();
    assert!(log.contains("fewer connections are accepted than set") && log.contains("ulimit -n"), "{log}");
    assert!(!log.contains("failed to accept"), "{log}");
}

#[test]
fn soft_limit_of_open_files_is_raised_to_the_hard_limit() {
    let directory = Directory::new();
    let server = limited(&directory, "ulimit -S -n 128");
    let figures = Figures::parse(&metrics(&directory));
    let files_max = figures.get("process_max_fds", "").expect("a figure");
    assert!(files_max > 128.0, "{files_max}");
    server.stop();
}
