//! The console over a real socket: sign-in, forged requests, and what the page may read.

use std::net::SocketAddr;

use oddsbox::admin::{self, AdminAccess, Command, ConsoleAnswer, DataDir};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::fixture::{EVENING, event, moneyline, moneyline_at, remove};
use crate::harness::tls::{Certificates, get_trusting};
use crate::harness::{Answer, Service};

const HOUR_S: u64 = 3600;

/// Two bouts with prices of bookmakers in two regions.
fn board() -> String {
    event("mma", "one", EVENING)
        + &event("mma", "two", EVENING)
        + &moneyline("mma", "one", "betmgm", -110, -110)
        + &moneyline("mma", "one", "fanduel", -120, 100)
        + &moneyline("mma", "two", "betmgm", 150, -180)
        + &moneyline("mma", "two", "coral", 145, -175)
}

/// A service with a console.
struct Console {
    service: Service,
    address: SocketAddr,
}

/// A signed-in browser.
struct Browser {
    cookie: String,
    csrf: String,
}

impl Console {
    async fn start() -> Console {
        Console::of(Service::start_with(&[("console.listen", "127.0.0.1:0")]).await).await
    }

    /// Restarts the service; the clock goes on.
    async fn restart(self) -> Console {
        Console::of(self.service.restart_now_with(&[("console.listen", "127.0.0.1:0")]).await).await
    }

    async fn of(service: Service) -> Console {
        let mut console = Console { service, address: ([127, 0, 0, 1], 0).into() };
        let link = console.link().await;
        let (address, _) = link.strip_prefix("http://").unwrap().split_once('/').unwrap();
        console.address = address.parse().unwrap();
        console
    }

    async fn ask<A: serde::de::DeserializeOwned>(&self, command: Command) -> A {
        let access = AdminAccess::server(&DataDir::new(self.service.data())).await.unwrap().unwrap();
        access.ask(command).await.unwrap()
    }

    async fn link(&self) -> String {
        self.ask::<ConsoleAnswer>(Command::ConsoleLink).await.url.expose().to_owned()
    }

    /// The path of a new link.
    async fn link_path(&self) -> String {
        let link = self.link().await;
        link[link.find("/sign-in/").unwrap()..].to_owned()
    }

    async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let host = self.address.to_string();
        let mut text = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
        if !headers.iter().any(|(name, _)| *name == "host") {
            text.extend(["host: ", &host, "\r\n"]);
        }
        for (name, value) in headers {
            text.extend([name, ": ", value, "\r\n"]);
        }
        text = format!("{text}content-length: {}\r\n\r\n{body}", body.len());
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        Answer::parse(&answer)
    }

    async fn sign_in(&self) -> Browser {
        let opened = self.send("GET", &self.link_path().await, &[], "").await;
        assert_eq!((opened.status, opened.header("location")), (303, Some("/")));
        let cookie = opened.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
        let session = self.send("GET", "/api/session", &[("cookie", &cookie)], "").await;
        assert_eq!(session.status, 200);
        let csrf = session.json()["csrf"].as_str().unwrap().to_owned();
        Browser { cookie, csrf }
    }

    async fn get(&self, browser: &Browser, path: &str) -> Answer {
        self.send("GET", path, &[("cookie", &browser.cookie)], "").await
    }

    /// Sends a command as the page does, with some headers replaced; an empty header is left out.
    async fn command_with(&self, browser: &Browser, changed: &[(&str, &str)], command: &Value) -> Answer {
        let origin = format!("http://{}", self.address);
        let own = [
            ("cookie", browser.cookie.as_str()),
            ("origin", &origin),
            ("sec-fetch-site", "same-origin"),
            ("x-csrf-token", &browser.csrf),
        ];
        let kept = own.into_iter().filter(|(name, _)| !changed.iter().any(|(other, _)| other == name));
        let headers: Vec<(&str, &str)> =
            kept.chain(changed.iter().copied().filter(|(_, value)| !value.is_empty())).collect();
        self.send("POST", "/api/command", &headers, &command.to_string()).await
    }

    async fn command(&self, browser: &Browser, command: &Value) -> Answer {
        self.command_with(browser, &[], command).await
    }
}

#[tokio::test]
async fn link_works_once_and_starts_a_session_with_an_http_only_cookie() {
    let console = Console::start().await;
    let path = console.link_path().await;
    let looked = console.send("HEAD", &path, &[], "").await;
    assert_eq!(looked.status, 405, "a GET does not use up the link");
    let opened = console.send("GET", &path, &[], "").await;
    assert_eq!(opened.status, 303);
    assert_eq!(opened.header("location"), Some("/"), "the secret is not in the next address");
    assert_eq!(opened.header("cache-control"), Some("no-store"));
    let cookie = opened.header("set-cookie").unwrap();
    let port = console.address.port();
    assert!(cookie.starts_with(&format!("oddsbox_console_{port}=")), "{cookie}");
    for flag in ["; HttpOnly", "; SameSite=Strict", "; Path=/", "; Max-Age=43200"] {
        assert!(cookie.contains(flag), "{cookie}");
    }
    assert!(!cookie.contains("Secure"), "there is no TLS here: {cookie}");
    let again = console.send("GET", &path, &[], "").await;
    assert_eq!((again.status, again.header("set-cookie")), (403, None));
    assert!(again.text().contains("oddsbox console"), "it says what to do");
}

#[tokio::test]
async fn links_last_five_minutes_and_sessions_twelve_hours() {
    let console = Console::start().await;
    let path = console.link_path().await;
    console.service.pass(299);
    assert_eq!(console.send("GET", &path, &[], "").await.status, 303);
    let late = console.link_path().await;
    console.service.pass(300);
    assert_eq!(console.send("GET", &late, &[], "").await.status, 403);

    let browser = console.sign_in().await;
    console.service.pass(12 * HOUR_S - 1);
    assert_eq!(console.get(&browser, "/api/session").await.status, 200);
    console.service.pass(1);
    let ended = console.get(&browser, "/api/session").await;
    assert_eq!((ended.status, ended.json()["error"]["code"].as_str()), (401, Some("signed_out")));
    assert_eq!(console.command(&browser, &json!({"command": "status"})).await.status, 401);
}

#[tokio::test]
async fn a_restart_does_not_lengthen_a_session() {
    let console = Console::start().await;
    let browser = console.sign_in().await;
    let (_, token) = browser.cookie.split_once('=').unwrap();
    let until = console.get(&browser, "/api/session").await.json()["until"].clone();
    let mut console = console;
    for pass_s in [12 * HOUR_S - 1, 1] {
        console.service.pass(pass_s);
        console = console.restart().await;
        let cookie = format!("oddsbox_console_{}={token}", console.address.port());
        let session = console.send("GET", "/api/session", &[("cookie", &cookie)], "").await;
        if pass_s == 1 {
            assert_eq!(session.status, 401);
        } else {
            assert_eq!((session.status, &session.json()["until"]), (200, &until));
            assert_eq!(session.json()["csrf"].as_str(), Some(browser.csrf.as_str()));
        }
    }
}

#[tokio::test]
async fn wrong_links_are_rate_limited() {
    let console = Console::start().await;
    for _ in 0..10 {
        assert_eq!(console.send("GET", "/sign-in/guess", &[], "").await.status, 403);
    }
    let slowed = console.send("GET", "/sign-in/guess", &[], "").await;
    assert_eq!((slowed.status, slowed.header("retry-after")), (429, Some("60")));
    console.sign_in().await;
}

#[tokio::test]
async fn signing_out_ends_one_session_or_all_of_them() {
    let console = Console::start().await;
    let (first, second) = (console.sign_in().await, console.sign_in().await);
    let origin = format!("http://{}", console.address);
    let headers = [("cookie", first.cookie.as_str()), ("origin", &origin), ("x-csrf-token", &first.csrf)];
    let out = console.send("POST", "/api/sign-out", &headers, "{}").await;
    assert_eq!(out.status, 200);
    assert!(out.header("set-cookie").unwrap().contains("Max-Age=0"));
    assert_eq!(console.get(&first, "/api/session").await.status, 401);
    assert_eq!(console.get(&second, "/api/session").await.status, 200);

    let waiting = console.link_path().await;
    let ended: admin::SignedOutAnswer = console.ask(Command::ConsoleSignOut).await;
    assert_eq!(ended.sessions, 1);
    assert_eq!(console.get(&second, "/api/session").await.status, 401);
    assert_eq!(console.send("GET", &waiting, &[], "").await.status, 403, "links end as well");
}

#[tokio::test]
async fn command_needs_session_csrf_token_and_same_origin() {
    let console = Console::start().await;
    let browser = console.sign_in().await;
    let issue = json!({"command": "keys-issue", "kind": "sandbox", "name": "forged"});
    let own = format!("http://{}", console.address);
    let other_port = "http://127.0.0.1:1".to_owned();
    for (forged, status) in [
        (&[("cookie", "")][..], 401),
        (&[("cookie", "oddsbox_console_1=x")], 401),
        (&[("x-csrf-token", "")], 403),
        (&[("x-csrf-token", "0000")], 403),
        (&[("origin", "")], 403),
        (&[("origin", "null")], 403),
        (&[("origin", "http://evil.example")], 403),
        (&[("origin", other_port.as_str())], 403),
        (&[("sec-fetch-site", "cross-site")], 403),
        (&[("sec-fetch-site", "same-site")], 403),
        (&[("host", "evil.example"), ("origin", "http://evil.example")], 421),
        (&[("host", "localhost"), ("origin", own.as_str())], 403),
    ] {
        let answer = console.command_with(&browser, forged, &issue).await;
        assert_eq!(answer.status, status, "{forged:?}: {}", answer.text());
    }
    assert_eq!(console.send("GET", "/api/command", &[("cookie", &browser.cookie)], "").await.status, 405);
    let keys = console.command(&browser, &json!({"command": "keys-list"})).await;
    assert_eq!(keys.json().as_array().unwrap().len(), 2, "only those of the harness");
    assert_eq!(console.command(&browser, &issue).await.status, 200);
}

#[tokio::test]
async fn console_actions_are_audited_under_the_user_of_the_link() {
    let console = Console::start().await;
    let browser = console.sign_in().await;
    let issue = json!({"command": "keys-issue", "kind": "production", "name": "sessions", "approved_by": "ada"});
    let issued = console.command(&browser, &issue).await;
    let secret = issued.json()["key"].as_str().unwrap().to_owned();
    assert_eq!(console.service.get_as(&secret, "/v1/sports").await.status, 200);
    let id = issued.json()["id"].as_str().unwrap().to_owned();
    let revoked = console.command(&browser, &json!({"command": "keys-revoke", "id": id})).await;
    assert_eq!(revoked.status, 200);
    assert_eq!(console.service.get_as(&secret, "/v1/sports").await.status, 401);

    let log = console.command(&browser, &json!({"command": "audit-tail", "limit": 3})).await.json();
    let entries = log.as_array().unwrap();
    let actions: Vec<&str> = entries.iter().map(|entry| entry["action"].as_str().unwrap()).collect();
    assert_eq!(actions, ["sign in", "issue", "revoke"]);
    let me = admin::own_name().unwrap();
    for entry in entries {
        assert_eq!(entry["who"], format!("console ({me})"));
        assert!(!entry.to_string().contains(&secret));
    }
}

#[tokio::test]
async fn console_session_cannot_issue_links_or_check_the_file() {
    let console = Console::start().await;
    let browser = console.sign_in().await;
    for command in
        [json!({"command": "console-link"}), json!({"command": "console-sign-out"}), json!({"command": "check"})]
    {
        assert_eq!(console.command(&browser, &command).await.status, 403, "{command}");
    }
    assert_eq!(console.command(&browser, &json!({"command": "fly"})).await.status, 400);
    let large = json!({"command": "keys-show", "id": "x".repeat(70_000)});
    assert_eq!(console.command(&browser, &large).await.status, 413);
}

#[tokio::test]
async fn single_node_has_no_cluster_to_show() {
    let console = Console::start().await;
    let browser = console.sign_in().await;
    let status = console.command(&browser, &json!({"command": "status"})).await;
    assert_eq!(status.json()["server"].as_object().unwrap().get("cluster"), Some(&Value::Null));
    let refused = console.command(&browser, &json!({"command": "cluster"})).await;
    assert_eq!((refused.status, refused.code()), (400, "refused".to_owned()));
}

#[tokio::test]
async fn every_console_response_has_security_headers() {
    let console = Console::start().await;
    let browser = console.sign_in().await;
    let link = console.link_path().await;
    for path in ["/", "/app.js", "/style.css", "/nothing", "/api/session", "/sign-in/guess", &link] {
        let answer = console.get(&browser, path).await;
        let policy = answer.header("content-security-policy").unwrap();
        for part in ["default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'"] {
            assert!(policy.contains(part), "{path}: {policy}");
        }
        for part in ["frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"] {
            assert!(policy.contains(part), "{path}: {policy}");
        }
        assert!(!policy.contains("unsafe") && !policy.contains("http:") && !policy.contains('*'), "{policy}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
        assert!(answer.header("cache-control").is_some_and(|value| value.contains("no-")), "{path}");
        assert_eq!(answer.header("access-control-allow-origin"), None);
    }
}

#[tokio::test]
async fn foreign_host_name_is_rejected() {
    let console = Console::start().await;
    for (host, status) in
        [("localhost:1234", 200), ("[::1]", 200), ("evil.example", 421), ("127.0.0.1.evil.example", 421)]
    {
        assert_eq!(console.send("GET", "/", &[("host", host)], "").await.status, status, "{host}");
    }
}

#[tokio::test]
async fn console_assets_are_public_and_cacheable() {
    let console = Console::start().await;
    let page = console.send("GET", "/app.js", &[("accept-encoding", "gzip")], "").await;
    assert_eq!((page.status, page.header("content-encoding")), (200, Some("gzip")));
    assert_eq!(page.header("content-type"), Some("text/javascript; charset=utf-8"));
    let etag = page.header("etag").unwrap();
    let again = console.send("GET", "/app.js", &[("accept-encoding", "gzip"), ("if-none-match", etag)], "").await;
    assert_eq!(again.status, 304);
    let head = console.send("HEAD", "/app.js", &[], "").await;
    assert_eq!((head.status, head.text()), (200, ""));
    assert_eq!(console.send("POST", "/app.js", &[], "").await.status, 405);
    let views =
        ["odds", "sports?world=live", "history", "strips", "best", "fair", "edges", "lines", "moments", "position"];
    for path in views.map(|view| format!("/api/{view}")) {
        let path = path.as_str();
        assert_eq!(console.send("GET", path, &[], "").await.status, 401, "{path} needs a session");
    }
}

#[tokio::test]
async fn console_board_shows_the_bytes_that_clients_get() {
    let console = Console::start().await;
    let browser = console.sign_in().await;
    console.service.ingest(&board()).await;
    for format in ["american", "decimal", "fractional"] {
        let query = format!("market=moneyline&regions=us,uk&odds_format={format}");
        let client = console.service.get(&format!("/v1/sports/mma/odds?{query}&limit=500")).await;
        let view = console.get(&browser, &format!("/api/odds?world=live&sport=mma&{query}")).await;
        assert_eq!((view.status, view.text()), (200, client.text()));
        let etag = view.header("etag").unwrap();
        assert_eq!(client.header("etag"), Some(etag));
        let headers = [("cookie", browser.cookie.as_str()), ("if-none-match", etag)];
        let path = format!("/api/odds?world=live&sport=mma&{query}");
        assert_eq!(console.send("GET", &path, &headers, "").await.status, 304);
    }
    let sports = console.get(&browser, "/api/sports?world=live").await;
    assert_eq!(sports.text(), console.service.get("/v1/sports").await.text());
    let books = console.get(&browser, "/api/books?world=live").await;
    assert_eq!(books.text(), console.service.get("/v1/books").await.text());
    for wrong in ["", "?world=mars", "?world=live&sport=chess", "?world=live&sport=mma&market=x"] {
        assert_eq!(console.get(&browser, &format!("/api/odds{wrong}")).await.status, 400, "{wrong}");
    }
}

#[tokio::test]
async fn totals_count_the_whole_view_and_not_a_page() {
    let console = Console::start().await;
    let browser = console.sign_in().await;
    let mut lines = board();
    for number in 0..300 {
        let id = format!("more{number}");
        lines += &event("mma", &id, EVENING);
        lines += &moneyline("mma", &id, "betmgm", -110, -110);
        lines += &moneyline("mma", &id, "fanduel", -120, 100);
    }
    // Without a price, it is no row of the board.
    lines += &event("mma", "unpriced", EVENING);
    console.service.ingest(&lines).await;
    console.service.advance(30).await;
    let totals = async |query: &str| {
        let answer = console.get(&browser, &format!("/api/totals?world=live&sport=mma&{query}")).await;
        (answer.status, answer.json())
    };
    let counted = |events: u64, bookmakers: u64| (200, json!({ "events": events, "bookmakers": bookmakers }));
    assert_eq!(totals("market=moneyline&regions=us").await, counted(302, 2));
    assert_eq!(totals("market=moneyline&regions=uk").await, counted(1, 1));
    assert_eq!(totals("market=moneyline&regions=us,uk").await, counted(302, 3));
    assert_eq!(totals("market=total_rounds&regions=us").await, counted(0, 0));
    let page =
        console.get(&browser, "/api/odds?world=live&sport=mma&market=moneyline&regions=us&odds_format=decimal").await;
    assert_eq!(page.json().as_array().unwrap().len(), 500, "a page has fewer");
    assert_eq!(totals("market=moneyline").await.0, 400);
}

#[tokio::test]
async fn console_shows_the_derived_prices_that_clients_get() {
    let console = Console::start().await;
    let browser = console.sign_in().await;
    let more = moneyline("mma", "one", "draftkings", -115, 105) + &moneyline("mma", "one", "betrivers", 150, -130);
    console.service.ingest(&(board() + &more)).await;
    console.service.advance(30).await;
    let filters = "market=moneyline&regions=us&odds_format=decimal";
    for (view, client) in [
        (format!("best?{filters}"), format!("best?{filters}&limit=500")),
        (format!("fair?{filters}&event_ids=one"), format!("fair?{filters}&event_ids=one&limit=500")),
        (
            format!("edges?{filters}&kind=ev&min=0.005"),
            format!("edges?{filters}&kind=ev&min=0.005&include=event&limit=500"),
        ),
        (
            format!("edges?{filters}&kind=arbitrage&min=0"),
            format!("edges?{filters}&kind=arbitrage&min=0&include=event&limit=500"),
        ),
    ] {
        let (path, query) = view.split_once('?').unwrap();
        let shown = console.get(&browser, &format!("/api/{path}?world=live&sport=mma&{query}")).await;
        let sent = console.service.get(&format!("/v1/sports/mma/{client}")).await;
        assert_eq!((shown.status, shown.text()), (200, sent.text()), "{view}");
        assert!(shown.text().contains("one"), "{view} has rows: {}", shown.text());
    }
    for wrong in ["", "&kind=luck", "&kind=ev&min=2", "&kind=ev&from=nobody", "&kind=ev&bookmaker=nobody"] {
        let path = format!("/api/edges?world=live&sport=mma&odds_format=decimal{wrong}");
        assert_eq!(console.get(&browser, &path).await.status, 400, "{wrong}");
    }
}

#[tokio::test]
async fn console_shows_the_board_of_a_moment_and_the_lines_of_an_event() {
    let console = Console::start().await;
    let browser = console.sign_in().await;
    let filters = "market=moneyline&regions=us&odds_format=decimal";
    let view = async |path: &str| console.get(&browser, &format!("/api/{path}")).await;
    assert_eq!(view("moments?world=live&sport=mma").await.json()["since"], Value::Null);
    console.service.ingest(&board()).await;
    let first = view("moments?world=live&sport=mma").await.json()["at"].as_u64().unwrap();
    let then = view(&format!("odds?world=live&sport=mma&{filters}")).await;

    console.service.advance(600).await;
    console.service.ingest(&moneyline_at("mma", "one", "betmgm", "2026-11-14T23:49:00Z", 300, -400)).await;
    console.service.advance(30).await;
    let now = view(&format!("odds?world=live&sport=mma&{filters}")).await;
    assert_ne!(now.text(), then.text());
    let moments = view("moments?world=live&sport=mma").await.json();
    assert_eq!(moments["since"].as_u64(), Some(first));
    assert!(moments["previous"].as_u64() >= Some(first) && moments["at"].as_u64() > Some(first), "{moments}");
    let past = view(&format!("odds?world=live&sport=mma&{filters}&as_of={}", first + 60)).await;
    assert_eq!(past.text(), then.text());
    let best = view(&format!("best?world=live&sport=mma&{filters}&as_of={first}")).await.json();
    assert_eq!(best[0]["outcomes"].as_array().map(Vec::len), Some(2));
    let (early, never) = (view(&format!("odds?world=live&sport=mma&{filters}&as_of=1")).await, "as_of=soon");
    assert_eq!(early.status, 404);
    assert_eq!(view(&format!("odds?world=live&sport=mma&{filters}&{never}")).await.status, 400);

    let lines = view("lines?world=live&event=one&market=moneyline&odds_format=american").await.json();
    let betmgm = lines["lines"].as_array().unwrap().iter().find(|line| line["bookmaker"] == "betmgm").unwrap();
    assert_eq!(betmgm["points"].as_array().map(Vec::len), Some(2));
    assert_eq!(betmgm["opening"]["outcomes"][0]["price"], json!(-110));
    assert_eq!(lines["every_nth"], json!(1));
    assert_eq!(view("lines?world=live&event=none&odds_format=decimal").await.status, 404);
    let hour = view("sparklines?world=live&sport=mma&market=moneyline&odds_format=american").await.json();
    let first = &hour["events"]["one"]["first"]["betmgm"];
    assert_eq!(*first, betmgm["opening"]["outcomes"], "what it was at the beginning");
}

#[tokio::test]
async fn position_is_answered_with_the_next_publication() {
    let console = Console::start().await;
    let browser = console.sign_in().await;
    let position = async |seen: &str| {
        let answer = console.get(&browser, &format!("/api/position?world=live&seen={seen}")).await.json();
        answer["position"].as_str().unwrap().to_owned()
    };
    let seen = position("").await;
    let waiting = position(&seen);
    tokio::pin!(waiting);
    let early = tokio::time::timeout(std::time::Duration::from_millis(400), &mut waiting).await;
    assert!(early.is_err(), "nothing was published: {early:?}");
    console.service.ingest(&board()).await;
    assert_ne!(waiting.await, seen);
}

#[tokio::test]
async fn sparkline_covers_the_prices_of_the_last_hour() {
    let console = Console::start().await;
    let browser = console.sign_in().await;
    let points = async || {
        let path = "/api/sparklines?world=live&sport=mma&market=moneyline&odds_format=decimal";
        let lines = console.get(&browser, path).await.json();
        assert_eq!(lines["events"]["one"]["outcome"], "Home one");
        let points: Vec<Option<u64>> =
            lines["events"]["one"]["points"].as_array().unwrap().iter().map(Value::as_u64).collect();
        assert_eq!(points.len(), 60);
        points
    };
    let opening = event("mma", "one", EVENING)
        + &moneyline("mma", "one", "betmgm", 100, -120)
        + &moneyline("mma", "one", "fanduel", 100, -120);
    console.service.ingest(&opening).await;
    assert_eq!(points().await[58..], [None, Some(5000)], "before the start nothing is known");

    console.service.advance(600).await;
    console.service.ingest(&moneyline_at("mma", "one", "betmgm", "2026-11-14T23:49:00Z", 300, -400)).await;
    assert_eq!(points().await[59], Some(5000), "what clients see changes with the tick");
    console.service.advance(30).await;
    let line = points().await;
    assert_eq!(line[47..50], [None, None, Some(5000)]);
    assert!(line[50..59].iter().all(|point| *point == Some(5000)), "{line:?}");
    assert_eq!(line[59], Some(3750), "half of 50 % and half of 25 %");

    // An unchanged price is not a change, and a removed event has no sparkline.
    console.service.ingest(&moneyline_at("mma", "one", "betmgm", "2026-11-14T23:49:01Z", 300, -400)).await;
    assert_eq!(points().await, line);
    console.service.ingest(&remove("mma", "one")).await;
    let gone =
        console.get(&browser, "/api/sparklines?world=live&sport=mma&market=moneyline&odds_format=decimal").await.json();
    assert_eq!(gone["events"], json!({}));
}

#[tokio::test]
async fn server_without_a_console_says_how_to_enable_it() {
    let service = Service::start().await;
    let access = AdminAccess::server(&DataDir::new(service.data())).await.unwrap().unwrap();
    let refused = access.ask::<ConsoleAnswer>(Command::ConsoleLink).await.unwrap_err().to_string();
    assert!(refused.contains("set `[console] listen`"), "{refused}");
}

#[tokio::test]
async fn session_cookie_is_secure_under_tls() {
    let (files, trusted) = Certificates::made();
    let service = Service::start_with(&[
        ("console.listen", "127.0.0.1:0"),
        ("console.host", "localhost"),
        ("tls.certificate", &files.chain()),
        ("tls.key", &files.key()),
    ])
    .await;
    let access = AdminAccess::server(&DataDir::new(service.data())).await.unwrap().unwrap();
    let link: ConsoleAnswer = access.ask(Command::ConsoleLink).await.unwrap();
    let rest = link.url.expose().strip_prefix("https://localhost:").unwrap();
    let (port, path) = rest.split_once('/').unwrap();
    let address = SocketAddr::from(([127, 0, 0, 1], port.parse().unwrap()));
    let opened = get_trusting(&trusted, address, &format!("/{path}")).await.unwrap();
    assert_eq!(opened.status, 303);
    assert!(opened.header("set-cookie").unwrap().ends_with("; HttpOnly; SameSite=Strict; Secure"));
}
