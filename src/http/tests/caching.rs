//! Validators, freshness, encodings and HEAD.

use std::io::Read;
use std::time::Duration;

use http::Method;

use crate::http::testing::{Fixture, request};

const ODDS: &str = "/v1/sports/mma/odds?regions=us,uk";

#[test]
fn cached_representation_is_not_sent_again() {
    let fixture = Fixture::new();
    let full = fixture.get(ODDS);
    let etag = full.header("etag").unwrap();
    for sent in [etag.to_owned(), format!("W/{etag}"), format!("\"x\", {etag}"), "*".to_owned()] {
        let got = fixture.get_as(&fixture.sandbox, ODDS, &[("if-none-match", &sent)]);
        assert_eq!((got.status.as_u16(), got.bytes.len()), (304, 0), "{sent}");
        assert_eq!((got.header("etag"), got.header("vary")), (Some(etag), Some("accept-encoding")));
        assert_eq!((got.header("cache-control"), got.header("content-type")), (Some("private, max-age=30"), None));
        assert!(got.header("x-request-id").is_some() && got.header("ratelimit").is_some());
    }
    let other = fixture.get_as(&fixture.sandbox, ODDS, &[("if-none-match", "\"other\"")]);
    assert_eq!((other.status.as_u16(), other.text()), (200, full.text()));
}

#[test]
fn freshness_by_endpoint() {
    let fixture = Fixture::new();
    fixture.clock.advance(Duration::from_millis(12_400));
    for (target, value) in [
        (ODDS, "private, max-age=17"),
        ("/v1/books", "private, max-age=17"),
        ("/v1/sports", "private, max-age=0"),
        ("/v1/status", "private, max-age=0"),
        ("/v1/sports/mma/events", "private, max-age=0"),
        ("/v1/sports/mma/events/mma-1", "private, max-age=0"),
        ("/v1/sports/mma/scores", "private, max-age=0"),
        ("/docs", "public, max-age=300"),
        ("/v1/nothing", "no-store"),
    ] {
        assert_eq!(fixture.get(target).header("cache-control"), Some(value), "{target}");
    }
}

#[test]
fn each_encoding_is_a_representation_of_its_own() {
    let fixture = Fixture::new();
    let plain = fixture.get(ODDS);
    assert!(plain.bytes.len() > 512, "long enough to be worth compressing");
    let encoded = |accepted: &str| fixture.get_as(&fixture.sandbox, ODDS, &[("accept-encoding", accepted)]);
    let gzip = encoded("gzip");
    assert_eq!(gzip.header("content-encoding"), Some("gzip"));
    let mut text = String::new();
    flate2::read::GzDecoder::new(&*gzip.bytes).read_to_string(&mut text).unwrap();
    assert_eq!(text, plain.text());
    let zstd = encoded("gzip, deflate, br, zstd");
    assert_eq!(zstd.header("content-encoding"), Some("zstd"));
    assert_eq!(zstd::bulk::decompress(&zstd.bytes, 1 << 20).unwrap(), plain.bytes);
    let tags: std::collections::HashSet<_> = [&plain, &gzip, &zstd].map(|got| got.header("etag").unwrap()).into();
    assert_eq!(tags.len(), 3);
    assert_eq!(encoded("*;q=0").header("content-encoding"), None);
    let short = fixture.get_as(&fixture.sandbox, "/v1/sports/golf/events/golf-1", &[("accept-encoding", "gzip")]);
    assert_eq!(short.header("content-encoding"), None);
}

#[test]
fn head_is_get_without_the_body() {
    let fixture = Fixture::new();
    for target in [ODDS, "/v1/books", "/v1/sports/mma/events/nobody", "/docs", "/healthz", "/nothing"] {
        let get = fixture.get(target);
        let head = fixture.send(&request(Method::HEAD, target, &[("x-api-key", &fixture.sandbox)]));
        assert_eq!((head.status, head.bytes.len()), (get.status, 0), "{target}");
        assert_eq!(head.header("content-length"), Some(&*get.bytes.len().to_string()), "{target}");
        assert_eq!(head.header("etag"), get.header("etag"), "{target}");
        assert_eq!(head.note.bytes, 0);
    }
    let etag = fixture.get(ODDS).header("etag").unwrap().to_owned();
    let headers = [("x-api-key", &*fixture.sandbox), ("if-none-match", &*etag)];
    let head = fixture.send(&request(Method::HEAD, ODDS, &headers));
    assert_eq!((head.status.as_u16(), head.header("content-length")), (304, None));
}

#[test]
fn the_note_has_what_the_log_needs_and_no_secret() {
    let fixture = Fixture::new();
    let got = fixture.get("/v1/sports/mma/events/mma-1");
    assert_eq!(got.note.route, "/v1/sports/{sport_key}/events/{event_id}");
    assert_eq!((got.note.status.as_u16(), got.note.bytes), (200, got.bytes.len()));
    assert_eq!(got.note.key.as_ref().unwrap().as_str(), "key_000000000001");
    assert_eq!(Some(got.note.request_id.as_str()), got.header("x-request-id"));
    assert!(!format!("{:?}", got.note).contains(&fixture.sandbox));
    let refused = fixture.anonymous(Method::GET, "/v1/books");
    assert_eq!((refused.note.refused, refused.note.key), (Some("missing"), None));
}
