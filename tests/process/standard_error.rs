//! The log must not affect the service: a standard error that blocks, fails or is closed costs log lines and nothing
//! else.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, PipeReader, Write, pipe};
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::process::Stdio;

use oddsbox::admin::{Command, StatusAnswer};

use super::client::{Connection, get};
use super::command::{Directory, Server, issue, revoke, sandbox};
use super::deploy::metrics;
use crate::harness::Figures;

/// `O_NONBLOCK` on Linux.
const NONBLOCKING: i32 = 0o4000;

/// More lines than the buffers of the log and of a pipe hold together.
const MANY: usize = 8_000;
const FEW: usize = 200;

/// A full pipe without a reader.
fn full_pipe() -> (File, PipeReader) {
    let (reader, writer) = pipe().expect("a pipe");
    // Reopened to get separate flags, so that the server's end still blocks.
    let path = format!("/proc/self/fd/{}", writer.as_raw_fd());
    let open = |flags| OpenOptions::new().write(true).custom_flags(flags).open(&path).expect("a pipe");
    let mut filling = open(NONBLOCKING);
    for piece in [4096, 1] {
        while let Ok(1..) = filling.write(&vec![b'x'; piece]) {}
    }
    assert_eq!(filling.write(b"x").expect_err("a full pipe").kind(), ErrorKind::WouldBlock);
    (open(0), reader)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unread_stderr_does_not_block_the_server() {
    let (stderr, _unread) = full_pipe();
    let dropped = serves(Stdio::piped(), stderr.into(), MANY).await;
    assert!(dropped > 0.0, "{dropped} lines were dropped");
}

/// As with `2>&1`: the line with the server's address cannot be written either.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unread_stdout_and_stderr_do_not_block_the_server() {
    let (output, _unread) = full_pipe();
    let stderr = output.try_clone().expect("a descriptor");
    serves(output.into(), stderr.into(), FEW).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stderr_on_a_full_disk_does_not_fail_the_server() {
    let full = OpenOptions::new().write(true).open("/dev/full").expect("a full device");
    let dropped = serves(Stdio::piped(), full.into(), FEW).await;
    assert!(dropped > 0.0, "{dropped} lines were dropped");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closed_stderr_pipe_does_not_fail_the_server() {
    let (reader, writer) = pipe().expect("a pipe");
    drop(reader);
    let dropped = serves(Stdio::piped(), writer.into(), FEW).await;
    assert!(dropped > 0.0, "{dropped} lines were dropped");
}

/// Opened for reading only, which is as good as closed: every write fails. Rust's standard library reopens descriptors
/// that are closed altogether as `/dev/null` at startup.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn read_only_stderr_does_not_fail_the_server() {
    let null = File::open("/dev/null").expect("a device");
    let dropped = serves(Stdio::piped(), null.into(), FEW).await;
    assert!(dropped > 0.0, "{dropped} lines were dropped");
}

/// Asserts that a server still answers, rejects, revokes, reports readiness and shuts down gracefully. Returns how many
/// log lines it dropped.
async fn serves(stdout: Stdio, stderr: Stdio, requests: usize) -> f64 {
    let directory = Directory::new();
    let server = Server::spawn_onto(directory.path(), stdout, stderr, &[("ODDSBOX_LOG", "info")]);
    let address = address_of(&directory).await;
    let access = directory.access().await;
    let key = issue(&access, sandbox(1_000_000)).await.expect("a key");
    let mut connection = Connection::open(address).await.expect("a connection");
    for _ in 0..requests {
        assert_eq!(connection.get("/v1/sports", &key.secret).await.expect("an answer").status, 200);
    }
    for _ in 0..FEW {
        assert_eq!(connection.get("/v1/sports", "sk_test_ob_wrong").await.expect("an answer").status, 401);
    }
    revoke(&access, &key.id).await.expect("a revocation");
    assert_eq!(connection.get("/v1/sports", &key.secret).await.expect("an answer").status, 401);
    assert_eq!(get(address, "/v1/sports", &key.secret).await.status, 401);
    directory.run("ready").succeeded();
    let figures = Figures::parse(&metrics(&directory));
    server.stop();
    figures.get("oddsbox_log_lines_dropped_total", "").expect("a metric")
}

/// The server's address, from the admin socket: it may have no output to print it to.
async fn address_of(directory: &Directory) -> SocketAddr {
    let mut address = None;
    super::command::until("the server is ready", async || {
        let Ok(Some(access)) = oddsbox::admin::AdminAccess::server(&directory.data()).await else { return false };
        let Ok(status) = access.ask::<StatusAnswer>(Command::Status).await else { return false };
        address = status.server.filter(|server| server.ready).map(|server| server.address);
        address.is_some()
    })
    .await;
    address.expect("a server")
}
