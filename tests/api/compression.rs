//! Compressed responses, as negotiated.

use std::io::Read;

use super::fixture::{EVENING, event, moneyline};
use crate::harness::{Answer, Service};

async fn with_data() -> Service {
    let service = Service::start().await;
    let mut lines = String::new();
    for number in 0..20 {
        let id = format!("m{number}");
        lines += &event("mma", &id, EVENING);
        lines += &moneyline("mma", &id, "betmgm", -110, 150);
        lines += &moneyline("mma", &id, "fanduel", -115, 155);
    }
    service.ingest(&lines).await;
    service
}

/// The decompressed body.
fn decoded(answer: &Answer) -> Vec<u8> {
    match answer.header("content-encoding") {
        None => answer.body.clone(),
        Some("gzip") => {
            let mut text = Vec::new();
            flate2::read::MultiGzDecoder::new(&*answer.body).read_to_end(&mut text).unwrap();
            text
        }
        Some("zstd") => zstd::stream::decode_all(&*answer.body).unwrap(),
        Some(other) => panic!("{other} was not requested"),
    }
}

#[tokio::test]
async fn gzip_and_zstd_compress_the_same_body() {
    let service = with_data().await;
    let paths = [
        "/v1/sports/mma/odds",
        "/v1/sports/mma/odds?group=bout&odds_format=decimal",
        "/v1/sports/mma/scores",
        "/v1/sports/mma/events",
        "/v1/books",
        "/docs",
        "/openapi.json",
    ];
    for path in paths {
        let plain = service.get(path).await;
        assert_eq!(plain.header("content-encoding"), None);
        for coding in ["gzip", "zstd"] {
            let answer = service.get_with(path, &[("accept-encoding", coding)]).await;
            assert_eq!(answer.header("content-encoding"), Some(coding), "{path}");
            assert_eq!(decoded(&answer), plain.body, "{path} {coding}");
            assert!(answer.body.len() < plain.body.len() / 2, "{path} {coding}");
            assert_eq!(answer.header("content-type"), plain.header("content-type"));
            assert_ne!(
                answer.header("etag"),
                plain.header("etag"),
                "another representation has another strong validator"
            );
            let etag = answer.header("etag").unwrap();
            let again = service.get_with(path, &[("accept-encoding", coding), ("if-none-match", etag)]).await;
            assert_eq!(again.status, 304, "{path} {coding}");
        }
    }
}

#[tokio::test]
async fn codings_are_chosen_by_quality() {
    let service = with_data().await;
    let plain = service.get("/v1/sports/mma/odds").await.body;
    for (accepted, coding) in [
        (&[][..], None),
        (&[""], None),
        (&["identity"], None),
        (&["br, deflate"], None),
        (&["gzip"], Some("gzip")),
        (&["x-gzip"], Some("gzip")),
        (&["GZip"], Some("gzip")),
        (&["gzip, deflate, br"], Some("gzip")),
        (&["gzip, deflate, br, zstd"], Some("zstd")),
        (&["gzip;q=1.0, zstd;q=0.5"], Some("gzip")),
        (&["gzip;q=0.5", "zstd;q=0.501"], Some("zstd")),
        (&["gzip;q=0"], None),
        (&["gzip;q=0, zstd"], Some("zstd")),
        (&["gzip ; q=0.001"], Some("gzip")),
        (&["*"], Some("zstd")),
        (&["*;q=0.1, zstd;q=0"], Some("gzip")),
        (&["*;q=0"], None),
        (&["*;q=0, gzip"], Some("gzip")),
        (&["identity;q=0, gzip;q=0.1"], Some("gzip")),
        (&["identity, gzip;q=0.5"], None),
        (&["identity;q=0.2, gzip;q=0.5"], Some("gzip")),
    ] {
        let headers: Vec<(&str, &str)> = accepted.iter().map(|value| ("accept-encoding", *value)).collect();
        let answer = service.get_with("/v1/sports/mma/odds", &headers).await;
        assert_eq!(answer.header("content-encoding"), coding, "{accepted:?}");
        assert_eq!(decoded(&answer), plain, "{accepted:?}");
    }
}

#[tokio::test]
async fn errors_and_short_responses_are_not_compressed() {
    let service = Service::start().await;
    for path in ["/v1/status", "/v1/nothing", "/v1/sports/mma/odds"] {
        let answer = service.get_with(path, &[("accept-encoding", "gzip, zstd")]).await;
        assert_eq!(answer.header("content-encoding"), None, "{path}");
        answer.json();
    }
}
