//! The failure that this prevents: the writer is gone or stuck, revocations have no effect, and the service looks
//! healthy.

use std::sync::mpsc;

use oddsbox::model::World;
use oddsbox::writer::{NewsReader, Whole};

use crate::harness::Service;
use crate::process::client::Connection;
use crate::process::command::until;
use crate::process::deploy::admin_get;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn service_ends_with_an_error_when_its_writer_dies() {
    let mut service = Service::start().await;
    let mut connection = Connection::open(service.address).await.expect("a connection");
    assert_eq!(connection.get("/v1/sports", &service.live).await.expect("an answer").status, 200);
    // Messages that the writer applies on its own thread.
    let faulty = NewsReader(Box::new(std::iter::from_fn(|| panic!("a fault in the writer thread"))));
    let writer = service.writer().clone();
    writer.ingest_whole(World::Live, faulty, Whole::Taken).await.expect_err("the writer is gone");
    writer.tick().await.expect_err("the writer is gone");
    // The key could no longer be revoked, so it is rejected for as long as the process runs.
    if let Ok(answer) = connection.get("/v1/sports", &service.live).await {
        assert_eq!(answer.status, 503, "{answer:?}");
    }
    let error = service.failed().await.to_string();
    assert!(error.starts_with("the writer thread ended unexpectedly"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readiness_needs_a_writer_that_answers() {
    let mut service = Service::start().await;
    let data = service.data().to_owned();
    let is_ready = || admin_get(&data, "/readyz").starts_with("HTTP/1.1 200");
    assert!(is_ready());
    // The key's first lease needs the writer.
    assert_eq!(service.get("/v1/sports").await.status, 200);
    let (release, released) = mpsc::channel::<()>();
    let stuck = NewsReader(Box::new(std::iter::from_fn(move || {
        let _ = released.recv();
        None
    })));
    let writer = service.writer().clone();
    let ingest = tokio::spawn(async move { writer.ingest_whole(World::Live, stuck, Whole::Taken).await });
    until("a server whose writer does not answer is not ready", async || !is_ready()).await;
    // Responses from memory continue.
    assert_eq!(service.get("/v1/sports").await.status, 200);
    drop(release);
    ingest.await.expect("a task").expect("an ingest");
    until("a server whose writer answers again is ready", async || is_ready()).await;
    service.stop().await;
}
