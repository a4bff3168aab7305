//! Feeders on other machines: lines pushed over TCP with a token, and their responses.

use std::io::Write as _;
use std::net::SocketAddr;

use oddsbox::admin::{AdminAccess, Command, DataDir, FeedsAnswer, StatusAnswer, TokenAnswer, WorldName};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::fixture::{EVENING, bookmaker, event, moneyline, remove};
use crate::harness::{Answer, Service};
use crate::process::command::until;

const PUSHED: [(&str, &str); 2] = [("ingest.listen", "127.0.0.1:0"), ("idle_timeout", "2s")];

/// A service with a push listener.
pub(super) struct Pushed {
    pub(super) service: Service,
    access: AdminAccess,
    address: SocketAddr,
}

impl Pushed {
    pub(super) async fn start() -> Pushed {
        Pushed::start_with(&[]).await
    }

    pub(super) async fn of(service: Service) -> Pushed {
        let access = AdminAccess::server(&DataDir::new(service.data())).await.expect("a socket").expect("a server");
        let status: StatusAnswer = access.ask(Command::Status).await.expect("a status");
        let address = status.server.and_then(|server| server.ingest_address).expect("an address");
        Pushed { service, access, address }
    }

    pub(super) async fn token(&self, name: &str, world: WorldName) -> String {
        let issued: TokenAnswer = self.access.ask(Command::FeedsToken { name: name.into(), world }).await.expect("one");
        issued.token.expect("a token").expose().to_owned()
    }

    pub(super) async fn revoke(&self, name: &str) {
        let command = Command::FeedsTokenRevoke { name: name.into() };
        let _: TokenAnswer = self.access.ask(command).await.expect("revoked");
    }

    async fn feeds(&self) -> FeedsAnswer {
        self.access.ask(Command::Feeds { world: None, stale: false }).await.expect("feeds")
    }

    /// One request on a new connection.
    async fn send(&self, head: &str, body: &[u8]) -> Answer {
        let mut stream = TcpStream::connect(self.address).await.expect("a connection");
        let head = format!("{head}\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.write_all(head.as_bytes()).await.expect("a head");
        stream.write_all(body).await.expect("a body");
        read(stream).await
    }

    pub(super) async fn post(&self, token: &str, query: &str, body: &[u8]) -> Answer {
        self.send(&format!("POST /ingest{query} HTTP/1.1\r\nauthorization: Bearer {token}"), body).await
    }

    /// Starts a request with a chunked body, open until the caller ends it.
    async fn stream(&self, token: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.expect("a connection");
        let head = format!(
            "POST /ingest HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.expect("a head");
        stream
    }

    /// Waits until the live world has this many events.
    async fn wait_for_events(&self, count: u64) {
        until("enough events", async || {
            let status: StatusAnswer = self.access.ask(Command::Status).await.expect("a status");
            status.worlds.live.events as u64 >= count
        })
        .await;
    }
}

async fn read(mut stream: TcpStream) -> Answer {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.expect("an answer");
    Answer::parse(&bytes)
}

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

fn lines() -> String {
    event("mma", "m1", EVENING) + &bookmaker("acme", "Acme", r#"["us"]"#) + &moneyline("mma", "m1", "acme", -110, -110)
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text.as_bytes()).expect("memory");
    encoder.finish().expect("memory")
}

fn error(answer: &Answer) -> (u16, String) {
    (answer.status, answer.code())
}

#[tokio::test]
async fn lines_are_accepted_with_a_token_and_counted_under_its_name() {
    let pushed = Pushed::start().await;
    let token = pushed.token("scraper", WorldName::Live).await;
    let answer = pushed.post(&token, "", (lines() + "nonsense\n").as_bytes()).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let report = answer.json();
    assert_eq!((&report["world"], &report["accepted"], &report["rejected"]), (&json!("live"), &json!(3), &json!(1)));
    assert_eq!(pushed.service.get("/v1/sports/mma/events/m1").await.status, 200);
    let feeds = pushed.feeds().await;
    let feed = feeds.feeds.as_ref().and_then(|feeds| feeds.iter().find(|feed| feed.name == "token/scraper"));
    let feed = feed.expect("its account");
    assert_eq!((feed.kind.as_str(), feed.accepted, feed.rejected), ("token", 3, 1));
    assert_eq!(feed.rejected_by_reason["bad_json"], 1);
    let source = feeds.sources.iter().find(|source| source.bookmaker == "acme").expect("its source");
    assert_eq!((source.sport.as_str(), source.age_s, source.stale), ("mma", 30, false));
    let strict = pushed.post(&token, "?strict=true", (lines() + "nonsense\n").as_bytes()).await.json();
    assert_eq!((&strict["written"], &strict["rejected"]), (&json!(false), &json!(1)));
}

#[tokio::test]
async fn token_writes_only_to_its_own_world() {
    let pushed = Pushed::start().await;
    let token = pushed.token("tester", WorldName::Sandbox).await;
    let answer = pushed.post(&token, "?world=live", b"").await;
    assert_eq!(error(&answer), (400, "refused".to_owned()), "{answer:?}");
    assert_eq!(pushed.post(&token, "", lines().as_bytes()).await.json()["world"], "sandbox");
    assert_eq!(pushed.service.get("/v1/sports/mma/events/m1").await.status, 404);
}

#[tokio::test]
async fn request_without_a_token_is_401_and_other_paths_are_404() {
    let pushed = Pushed::start().await;
    let token = pushed.token("scraper", WorldName::Live).await;
    let wrong = [String::new(), "ft_ob_x".to_owned(), pushed.service.live.clone(), token.replace("ft_ob_", "ft_ob_0")];
    for token in wrong {
        let answer = pushed.post(&token, "", lines().as_bytes()).await;
        assert_eq!(error(&answer), (401, "unauthorized".to_owned()), "{answer:?}");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
    }
    assert_eq!(error(&pushed.send("POST /ingest HTTP/1.1", b"x").await), (401, "unauthorized".to_owned()));
    let basic = format!("POST /ingest HTTP/1.1\r\nauthorization: Basic {token}");
    assert_eq!(pushed.send(&basic, b"").await.status, 401);
    let get = pushed.send(&format!("GET /ingest HTTP/1.1\r\nauthorization: Bearer {token}"), b"").await;
    assert_eq!((error(&get), get.header("allow")), ((405, "method_not_allowed".to_owned()), Some("POST")));
    for path in ["/", "/command", "/export", "/v1/sports", "/ingest/x"] {
        let answer = pushed.send(&format!("POST {path} HTTP/1.1\r\nauthorization: Bearer {token}"), b"").await;
        assert_eq!(error(&answer), (404, "not_found".to_owned()), "{path}");
    }
    assert_eq!(pushed.post(&token, "?strict=maybe", b"").await.status, 400);
    // The public API accepts no tokens, and the push listener no keys.
    assert_eq!(pushed.service.get_as(&token, "/v1/sports").await.status, 401);
}

#[tokio::test]
async fn revoked_token_is_rejected_and_ends_open_streams_at_the_next_batch() {
    let pushed = Pushed::start().await;
    let token = pushed.token("scraper", WorldName::Live).await;
    let mut stream = pushed.stream(&token).await;
    stream.write_all(chunk(&event("mma", "m1", EVENING)).as_bytes()).await.expect("a line");
    pushed.wait_for_events(1).await;
    pushed.revoke("scraper").await;
    stream.write_all(chunk(&event("mma", "m2", EVENING)).as_bytes()).await.expect("a line");
    stream.write_all(b"0\r\n\r\n").await.expect("an end");
    let answer = read(stream).await;
    assert_eq!(error(&answer), (401, "unauthorized".to_owned()), "{answer:?}");
    assert_eq!(answer.json()["taken_lines"], 1);
    assert_eq!(pushed.service.get("/v1/sports/mma/events/m1").await.status, 200);
    assert_eq!(pushed.service.get("/v1/sports/mma/events/m2").await.status, 404);
    assert_eq!(pushed.post(&token, "", b"").await.status, 401);

    let other = pushed.token("scraper", WorldName::Live).await;
    assert_eq!((pushed.post(&token, "", b"").await.status, pushed.post(&other, "", b"").await.status), (401, 200));
    let twice: Result<Value, _> =
        pushed.access.ask(Command::FeedsToken { name: "scraper".into(), world: WorldName::Live }).await;
    assert!(twice.unwrap_err().to_string().contains("--revoke"));
    assert_eq!(pushed.feeds().await.tokens.len(), 1);
}

#[tokio::test]
async fn gzip_is_accepted_in_any_chunks_and_other_encodings_are_rejected() {
    let pushed = Pushed::start().await;
    let token = pushed.token("scraper", WorldName::Live).await;
    let head = |encoding: &str| {
        format!("POST /ingest HTTP/1.1\r\nauthorization: Bearer {token}\r\ncontent-encoding: {encoding}")
    };
    // Two gzip members, the second inflating to far more than one chunk.
    let many: String = (0..5_000).map(|number| event("mma", &format!("n{number}"), EVENING)).collect();
    let body = [gzip(&lines()), gzip(&many)].concat();
    let answer = pushed.send(&head("gzip"), &body).await;
    assert_eq!((answer.status, &answer.json()["accepted"]), (200, &json!(5_003)), "{answer:?}");
    let cut = pushed.send(&head("gzip"), &body[..body.len() - 9]).await;
    assert_eq!(cut.status, 400, "{cut:?}");
    assert!(cut.text().contains("broke off"), "{cut:?}");
    assert_eq!(pushed.send(&head("gzip"), lines().as_bytes()).await.status, 400);
    assert_eq!(error(&pushed.send(&head("br"), b"x").await), (415, "unsupported_encoding".to_owned()));
}

#[tokio::test]
async fn expect_continue_is_answered() {
    let pushed = Pushed::start().await;
    let token = pushed.token("scraper", WorldName::Live).await;
    for (token, first) in [(token.as_str(), "HTTP/1.1 100"), ("ft_ob_no", "HTTP/1.1 401")] {
        let mut stream = TcpStream::connect(pushed.address).await.expect("a connection");
        let head = format!(
            "POST /ingest HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\nexpect: 100-continue\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            lines().len()
        );
        stream.write_all(head.as_bytes()).await.expect("a head");
        let mut word = [0; 12];
        stream.read_exact(&mut word).await.expect("a word");
        assert_eq!(std::str::from_utf8(&word), Ok(first));
    }
}

#[tokio::test]
async fn idle_stream_is_ended_with_the_line_to_resume_at() {
    let pushed = Pushed::start().await;
    let token = pushed.token("scraper", WorldName::Live).await;
    let mut stream = pushed.stream(&token).await;
    stream.write_all(chunk(&(lines() + "{\"type\":")).as_bytes()).await.expect("lines");
    let answer = read(stream).await;
    assert_eq!(error(&answer), (408, "timeout".to_owned()), "{answer:?}");
    assert_eq!(answer.json()["taken_lines"], 3);
    assert!(answer.text().contains("go on from line 4"), "{answer:?}");
}

#[tokio::test]
async fn shutdown_reports_the_accepted_lines_and_they_are_kept() {
    let mut pushed = Pushed::start().await;
    let token = pushed.token("scraper", WorldName::Live).await;
    let mut stream = pushed.stream(&token).await;
    stream.write_all(chunk(&lines()).as_bytes()).await.expect("lines");
    pushed.wait_for_events(1).await;
    stream.write_all(chunk(&event("mma", "m2", EVENING)).as_bytes()).await.expect("a line");
    let (answer, ()) = tokio::join!(read(stream), pushed.service.stop());
    assert_eq!(error(&answer), (503, "unavailable".to_owned()), "{answer:?}");
    let taken = answer.json()["taken_lines"].as_u64().expect("a number");
    assert!((3..=4).contains(&taken), "{answer:?}");
    let service = pushed.service.restart().await;
    assert_eq!(service.get("/v1/sports/mma/events/m1").await.status, 200);
    assert_eq!(service.get("/v1/sports/mma/events/m2").await.status, if taken == 4 { 200 } else { 404 });
    let access = AdminAccess::server(&DataDir::new(service.data())).await.expect("a socket").expect("a server");
    let feeds: FeedsAnswer = access.ask(Command::Feeds { world: None, stale: false }).await.expect("feeds");
    assert_eq!((feeds.tokens[0].name.as_str(), feeds.tokens[0].status.as_str()), ("scraper", "active"));
}

#[tokio::test]
async fn server_ingests_files_of_the_drop_directory() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().to_str().expect("a text").to_owned();
    let service = Service::start_with(&[("ingest.drop", &path)]).await;
    std::fs::write(directory.path().join(".lines"), lines()).expect("a file");
    std::fs::rename(directory.path().join(".lines"), directory.path().join("lines.ndjson")).expect("a name");
    until("the event of the file", async || service.get("/v1/sports/mma/events/m1").await.status == 200).await;
}

impl Pushed {
    pub(super) async fn start_with(settings: &[(&'static str, &str)]) -> Pushed {
        let all = [&PUSHED, settings].concat();
        Pushed::of(Service::start_with(&all).await).await
    }

    /// Stops in order and starts again on the same directory.
    pub(super) async fn restart_with(self, settings: &[(&'static str, &str)]) -> Pushed {
        let all = [&PUSHED, settings].concat();
        Pushed::of(self.service.restart_with(&all).await).await
    }

    pub(super) async fn account(&self, name: &str) -> oddsbox::admin::FeedAnswer {
        let feeds = self.feeds().await.feeds.expect("a server");
        feeds.into_iter().find(|feed| feed.name == name).expect("its account")
    }

    async fn post_gzip(&self, token: &str, query: &str, body: &[u8]) -> Answer {
        let head = format!("POST /ingest{query} HTTP/1.1\r\nauthorization: Bearer {token}\r\ncontent-encoding: gzip");
        self.send(&head, body).await
    }
}

#[tokio::test]
async fn feeder_beyond_its_quota_is_rejected_and_counted_and_others_are_served() {
    let quota = [("ingest.bookmakers_per_day", "2"), ("ingest.events", "3"), ("ingest.events_per_day", "100")];
    let pushed = Pushed::start_with(&quota).await;
    let (greedy, other) = (pushed.token("greedy", WorldName::Live).await, pushed.token("other", WorldName::Live).await);
    let books: String = (0..5).map(|n| bookmaker(&format!("book{n}"), "Book", r#"["us"]"#)).collect();
    let events: String = (0..5).map(|n| event("mma", &format!("e{n}"), EVENING)).collect();
    let report = pushed.post(&greedy, "", (books.clone() + &events).as_bytes()).await.json();
    assert_eq!(
        (&report["accepted"], &report["rejected_by_reason"]["feeder_quota"]),
        (&json!(5), &json!(5)),
        "{report}"
    );
    // Existing events use no quota, and the quota applies to strict input too.
    let known = bookmaker("book0", "Other", r#"["us"]"#) + &event("mma", "e0", EVENING);
    assert_eq!(pushed.post(&greedy, "", known.as_bytes()).await.json()["accepted"], 2);
    let strict = pushed.post(&greedy, "?strict=true", event("mma", "e9", EVENING).as_bytes()).await.json();
    assert_eq!((&strict["written"], &strict["rejected_by_reason"]["feeder_quota"]), (&json!(false), &json!(1)));

    let feed = pushed.account("token/greedy").await;
    let added = feed.added.expect("its quota");
    assert_eq!((added.bookmakers_today, added.bookmakers_per_day, added.bookmakers_max), (2, 2, 500));
    assert_eq!((added.events_today, added.events, added.events_max), (3, 3, 3));
    assert_eq!((added.names_today, added.names), (1, 1), "the competition of the events");
    assert_eq!((feed.rejected_by_reason["feeder_quota"], feed.bytes > 500), (6, true));
    let last = feed.rejected_messages["feeder_quota"].last().expect("an example");
    assert!(last.text.as_ref().is_some_and(|text| text.contains("\"e9\"")), "{last:?}");
    assert!(last.detail.contains("as many bookmakers, events, competitions or markets as it may"), "{last:?}");
    let report = pushed.post(&other, "", (lines() + &event("mma", "e9", EVENING)).as_bytes()).await.json();
    assert_eq!(report["rejected"], 0, "another feeder has a quota of its own: {report}");

    // Removing an event makes room for another.
    let report = pushed.post(&greedy, "", (remove("mma", "e0") + &event("mma", "e7", EVENING)).as_bytes()).await.json();
    assert_eq!(report["accepted"], 2, "{report}");
    let report = pushed.post(&greedy, "", event("mma", "e8", EVENING).as_bytes()).await.json();
    assert_eq!(report["rejected_by_reason"]["feeder_quota"], 1, "{report}");
}

#[tokio::test]
async fn feeder_removes_only_events_that_it_announced() {
    let pushed = Pushed::start().await;
    let (one, two) = (pushed.token("one", WorldName::Live).await, pushed.token("two", WorldName::Live).await);
    pushed.post(&one, "", event("mma", "m1", EVENING).as_bytes()).await;
    pushed.service.ingest(&event("mma", "m2", EVENING)).await;
    for event in ["m1", "m2"] {
        // Announcing it again does not change its owner.
        let lines = super::fixture::event("mma", event, EVENING) + &remove("mma", event);
        let report = pushed.post(&two, "", lines.as_bytes()).await.json();
        assert_eq!(report["rejected_by_reason"]["not_own_event"], 1, "{report}");
        assert_eq!(pushed.service.get(&format!("/v1/sports/mma/events/{event}")).await.status, 200);
    }
    assert_eq!(pushed.account("token/two").await.rejected_by_reason["not_own_event"], 2);
    assert_eq!(pushed.post(&one, "", remove("mma", "m1").as_bytes()).await.json()["accepted"], 1);
    assert_eq!(pushed.service.get("/v1/sports/mma/events/m1").await.status, 404);
    pushed.service.ingest(&remove("mma", "m2")).await;
    assert_eq!(pushed.service.get("/v1/sports/mma/events/m2").await.status, 404, "the operator removes anything");
}

#[tokio::test]
async fn bodies_that_inflate_too_far_are_rejected_and_counted() {
    let pushed = Pushed::start_with(&[("ingest.inflated_max", "1")]).await;
    let token = pushed.token("scraper", WorldName::Live).await;
    let answer = pushed.post_gzip(&token, "", &gzip(&(lines() + &" \n".repeat(1 << 20)))).await;
    assert_eq!(error(&answer), (413, "too_large".to_owned()), "{answer:?}");
    let feed = pushed.account("token/scraper").await;
    assert_eq!(feed.rejected_by_reason["stream_too_large"], 1);
    assert!(feed.last_failure.is_some_and(|failure| failure.why.contains("ingest.inflated_max")));

    // Inflates to a thousand times its size, within the limit.
    let pushed = Pushed::start().await;
    let token = pushed.token("scraper", WorldName::Live).await;
    let answer = pushed.post_gzip(&token, "", &gzip(&"\n".repeat(40 << 20))).await;
    assert_eq!(error(&answer), (413, "too_large".to_owned()), "{answer:?}");
    assert!(pushed.account("token/scraper").await.bytes < 20 << 20, "it ended at the bound");
    assert_eq!(pushed.post(&token, "", lines().as_bytes()).await.json()["accepted"], 3);
}

#[tokio::test]
async fn strict_line_that_is_too_long_is_rejected_and_nothing_is_written() {
    let pushed = Pushed::start().await;
    let token = pushed.token("scraper", WorldName::Live).await;
    let long = "x".repeat(3 << 20) + "\n";
    let report = pushed.post(&token, "?strict=true", (long + &lines()).as_bytes()).await.json();
    assert_eq!(
        (&report["written"], &report["rejected_by_reason"]["line_too_long"]),
        (&json!(false), &json!(1)),
        "{report}"
    );
    assert_eq!(report["rejected"], 1, "{report}");
}
