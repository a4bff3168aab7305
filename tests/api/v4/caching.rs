//! Validators, compression and cache lifetimes are those of `/v1`.

use super::{MMA, ROUTES};
use crate::api::fixture::{every_sport, moneyline};
use crate::harness::Service;

#[tokio::test]
async fn unchanged_response_is_304() {
    let service = Service::start().await;
    service.ingest(&every_sport()).await;
    for (path, cost) in ROUTES {
        let first = service.get(path).await;
        let etag = first.header("etag").expect("a validator").to_owned();
        let again = service.get_with(path, &[("if-none-match", &etag)]).await;
        assert_eq!((again.status, again.body.len()), (304, 0), "{path}");
        assert_eq!(again.header("x-requests-last"), Some(&*cost.to_string()), "{path}");
        assert_eq!(service.send("HEAD", path, &[("x-api-key", &service.live)]).await.header("etag"), Some(&*etag));
    }
    let path = format!("{MMA}/odds?regions=us");
    let etag = service.get(&path).await.header("etag").unwrap().to_owned();
    service.ingest(&moneyline("mma", "m1", "betmgm", 300, -400)).await;
    service.advance(30).await;
    assert_eq!(service.get_with(&path, &[("if-none-match", &etag)]).await.status, 200, "prices changed");
}

#[tokio::test]
async fn prices_are_cacheable_until_the_tick_and_events_are_not() {
    let service = Service::start().await;
    service.ingest(&every_sport()).await;
    service.pass(10);
    for (path, age) in [
        ("odds?regions=us", "private, max-age=20"),
        ("events/m1/odds?regions=us", "private, max-age=20"),
        ("events", "private, max-age=0"),
        ("scores", "private, max-age=0"),
        ("participants", "private, max-age=0"),
    ] {
        let answer = service.get(&format!("{MMA}/{path}")).await;
        assert_eq!(answer.header("cache-control"), Some(age), "{path}");
    }
    let upcoming = service.get("/v4/sports/upcoming/odds?regions=us").await;
    assert_eq!(upcoming.header("cache-control"), Some("private, max-age=20"));
}

#[tokio::test]
async fn long_answers_are_compressed_as_negotiated() {
    let service = Service::start().await;
    let books = ["betmgm", "betrivers", "betus", "bovada", "draftkings", "fanduel"];
    let prices: String = books.iter().map(|book| moneyline("mma", "m1", book, -110, -110)).collect();
    service.ingest(&(every_sport() + &prices)).await;
    let path = format!("{MMA}/odds?regions=us");
    let plain = service.get(&path).await;
    assert_eq!((plain.header("content-encoding"), plain.body.len() > 512), (None, true));
    for encoding in ["gzip", "zstd"] {
        let packed = service.get_with(&path, &[("accept-encoding", encoding)]).await;
        assert_eq!(packed.header("content-encoding"), Some(encoding));
        assert!(packed.body.len() < plain.body.len() / 2, "{encoding}");
        assert_ne!(packed.header("etag"), plain.header("etag"));
    }
}
