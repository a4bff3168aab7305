//! The metrics of the admin socket.

use oddsbox::admin::DataDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use super::fixture::{every_sport, limited, moneyline, restricted, strings};
use crate::harness::follower::Follower;
use crate::harness::{Answer, Figures, Service};

/// One request to the admin socket.
async fn ask(service: &Service, method: &str, path: &str, body: &str) -> Answer {
    let socket = DataDir::new(service.data()).socket().expect("a short path");
    let mut stream = UnixStream::connect(socket).await.expect("a connection");
    let length = body.len();
    let head = format!("{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
    stream.write_all((head + body).as_bytes()).await.expect("a request");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.expect("an answer");
    Answer::parse(&answer)
}

async fn figures(service: &Service) -> Figures {
    let answer = ask(service, "GET", "/metrics", "").await;
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("text/plain; version=0.0.4; charset=utf-8")));
    Figures::parse(answer.text())
}

#[tokio::test]
async fn requests_are_counted_by_route_status_and_reason() {
    let service = Service::start().await;
    service.ingest(&every_sport()).await;
    for (path, times) in [("/v1/sports", 2), ("/v1/sports/mma/odds", 3), ("/v1/sports/curling/odds", 1), ("/v1/x", 1)] {
        for _ in 0..times {
            service.get(path).await;
        }
    }
    assert_eq!(service.send("GET", "/healthz", &[]).await.status, 200);
    assert_eq!(service.send("GET", "/v1/sports", &[]).await.status, 401);
    assert_eq!(service.get_as("nonsense", "/v1/sports").await.status, 401);
    let short = limited(&service, 1, Some(100), None).await.secret;
    let spent = limited(&service, 100, Some(1), None).await.secret;
    for key in [&short, &spent] {
        assert_eq!(service.get_as(key, "/v1/books").await.status, 200);
        assert_eq!(service.get_as(key, "/v1/books").await.status, 429);
    }
    let fights = restricted(&service, &["combat"]).await.secret;
    assert_eq!(service.get_as(&fights, "/v1/sports/golf/odds").await.status, 403);

    let figures = figures(&service).await;
    let odds = "/v1/sports/{sport_key}/odds";
    for (route, status, expected) in [
        ("/v1/sports", "200", Some(2.0)),
        ("/v1/sports", "401", Some(2.0)),
        (odds, "200", Some(3.0)),
        (odds, "404", Some(1.0)),
        (odds, "403", Some(1.0)),
        ("unknown", "404", Some(1.0)),
        ("/healthz", "200", Some(1.0)),
        ("/v1/books", "200", Some(2.0)),
        ("/v1/books", "429", Some(2.0)),
        ("/v1/status", "200", None),
    ] {
        let labels = format!("route={route},status={status}");
        assert_eq!(figures.get("oddsbox_http_requests_total", &labels), expected, "{labels}");
    }
    let durations = figures.get("oddsbox_http_request_duration_seconds_count", &format!("route={odds}"));
    assert_eq!(durations, Some(5.0));
    for (reason, expected) in
        [("missing", 1.0), ("malformed", 1.0), ("burst", 1.0), ("day", 1.0), ("group", 1.0), ("month", 0.0)]
    {
        let counted = figures.get("oddsbox_http_requests_refused_total", &format!("reason={reason}"));
        assert_eq!(counted, Some(expected), "{reason}");
    }
    assert_eq!(figures.get("oddsbox_http_connections_accepted_total", ""), Some(15.0));
    assert_eq!(figures.get("oddsbox_http_connections_refused_total", ""), Some(0.0));
    assert_eq!(figures.get("oddsbox_tls_handshakes_failed_total", ""), Some(0.0));
}

#[tokio::test]
async fn streams_and_computed_answers_are_counted() {
    let service = Service::start().await;
    service.ingest(&every_sport()).await;
    let mut follower = Follower::open(&service, "/v1/stream").await;
    follower.until("ready").await;
    service.ingest(&moneyline("mma", "m1", "draftkings", -125, 105).replace("23:38:30Z", "23:38:59Z")).await;
    service.advance(30).await;
    follower.until("beat").await;
    assert_eq!(service.get("/v1/sports/mma/best").await.status, 200);
    let figures = figures(&service).await;
    assert_eq!(figures.get("oddsbox_streams", ""), Some(1.0));
    assert_eq!(figures.get("oddsbox_stream_lag_entries", "world=live"), Some(0.0));
    assert_eq!(figures.get("oddsbox_stream_delivery_seconds_count", ""), Some(1.0));
    assert_eq!(figures.get("oddsbox_computing_requests", ""), Some(0.0));
    assert_eq!(figures.get("oddsbox_computed_answers_total", ""), Some(1.0));
}

#[tokio::test]
async fn metrics_cover_the_board_sources_and_feeds() {
    let service = Service::start_with_sandbox().await;
    service.ingest(&every_sport()).await;
    service.advance(50).await;
    let figures = figures(&service).await;

    let events = service.get("/v1/sports/mma/events").await.json().as_array().expect("a list").len();
    assert_eq!(
        figures.get("oddsbox_events", "world=live,sport=mma"),
        Some(f64::from(u32::try_from(events).expect("a few")))
    );
    for name in ["oddsbox_events", "oddsbox_records", "oddsbox_bookmakers"] {
        for world in ["sandbox", "live"] {
            assert!(figures.get(name, &format!("world={world},sport=mma")).is_some_and(|count| count > 0.0), "{name}");
        }
    }
    let books = service.get("/v1/books").await;
    let books = strings(&books.json(), "key");
    assert!(figures.label("bookmaker").iter().all(|book| books.iter().any(|known| known == book)));
    assert_eq!(figures.get("oddsbox_source_stale", "sport=mma,bookmaker=draftkings"), Some(0.0));
    let age = figures.get("oddsbox_source_age_seconds", "sport=mma,bookmaker=draftkings").expect("a source");
    assert!((50.0..=120.0).contains(&age), "{age}");

    let taken = figures.get("oddsbox_feed_lines_accepted_total", "feed=simulator,world=sandbox");
    assert!(taken.is_some_and(|count| count > 100.0), "{taken:?}");
}

#[tokio::test]
async fn metrics_cover_writer_file_and_process_without_labels_per_key() {
    let service = Service::start().await;
    service.ingest(&every_sport()).await;
    let figures = figures(&service).await;
    assert_eq!(figures.get("oddsbox_build_info", &format!("version={}", env!("CARGO_PKG_VERSION"))), Some(1.0));
    assert_eq!((figures.get("oddsbox_ready", ""), figures.get("oddsbox_writable", "")), (Some(1.0), Some(1.0)));
    assert_eq!(figures.get("oddsbox_maintenance", ""), Some(0.0));
    // The probe of the writer may be included.
    assert!(figures.get("oddsbox_writer_queue_length", "").is_some_and(|length| length <= 1.0));
    assert_eq!(figures.get("process_start_time_seconds", ""), Some(1_794_699_540.0));
    assert_eq!(
        figures.get("oddsbox_last_publication_timestamp_seconds", "world=live,sport=mma"),
        Some(1_794_699_540.0)
    );
    for name in [
        "oddsbox_publish_duration_seconds_count",
        "oddsbox_commit_duration_seconds_count",
        "oddsbox_database_size_bytes",
        "process_resident_memory_bytes",
        "process_open_fds",
        "process_max_fds",
    ] {
        assert!(figures.get(name, "").is_some_and(|value| value > 0.0), "{name}");
    }
    assert_eq!(figures.get("oddsbox_keys", "state=active"), Some(2.0));
    assert_eq!(figures.get("oddsbox_cluster_up", ""), None, "it is a single node");
    let known = ["bookmaker", "feed", "kind", "le", "reason", "route", "sport", "state", "status", "version", "world"];
    assert!(figures.label_names().is_subset(&known.into()), "{:?}", figures.label_names());
}

#[tokio::test]
async fn monitoring_endpoints_accept_only_get() {
    let service = Service::start().await;
    for path in ["/livez", "/readyz"] {
        assert_eq!(ask(&service, "GET", path, "").await.status, 200, "{path}");
    }
    for path in ["/livez", "/readyz", "/metrics"] {
        let refused = ask(&service, "POST", path, "").await;
        assert_eq!((refused.status, refused.header("allow")), (405, Some("GET")), "{path}");
        assert_eq!(service.get(path).await.status, 404, "{path} is not for the public");
    }
}
