//! The stream: what a client sees that follows the board, comes back, is slow, or may not go on.

use std::time::Duration;

use oddsbox::keys::issue::KeyChange;
use oddsbox::model::Maintenance;
use serde_json::json;

use super::fixture::{
    EVENING, bookmaker, closed, event, event_of, every_sport, moneyline_at, odds_at, remove, score, time, total,
    tournament,
};
use crate::harness::follower::{FollowedBoard, Follower, odds_of};
use crate::harness::{START, Service};

const ALL: &str = "/v1/stream";

#[tokio::test]
async fn stream_begins_with_the_board_and_goes_on_with_every_change() {
    let service = Service::start().await;
    service.ingest(&every_sport()).await;
    let mut follower = Follower::open(&service, "/v1/stream?sports=mma&odds_format=decimal").await;
    assert_eq!(follower.status, 200, "{}", follower.head);
    assert!(follower.head.contains("content-type: text/event-stream\r\n"), "{}", follower.head);
    assert!(follower.head.contains("cache-control: no-store\r\n"), "{}", follower.head);
    assert!(follower.head.contains("x-requests-used: 1\r\n"), "{}", follower.head);

    let hello = follower.expect("hello").await;
    assert_eq!(hello.id, None);
    assert_eq!(hello.data["refresh_s"], 30);
    assert_eq!(hello.data["filters"]["sports"], json!(["mma"]));
    let snapshot = follower.expect("snapshot").await;
    assert_eq!(snapshot.id, None, "a client that loses the connection here begins again");
    let odds = service.get("/v1/sports/mma/odds?odds_format=decimal").await;
    assert_eq!(snapshot.data["records"], odds.json());
    let ready = follower.expect("ready").await;
    assert_eq!(ready.id.as_deref(), odds.header("x-position"));
    assert_eq!(ready.data["position"], ready.id.clone().unwrap());

    // A change of a price comes with the tick that publishes it, then the beat of the tick.
    service.ingest(&moneyline_at("mma", "m1", "draftkings", START, -120, 100)).await;
    service.ingest(&moneyline_at("tennis", "t1", "fanduel", START, 110, -130)).await;
    service.advance(30).await;
    let change = follower.expect("odds").await;
    let odds = service.get("/v1/sports/mma/odds?odds_format=decimal&market=moneyline").await;
    assert_eq!(
        change.data,
        json!({"at": time(30), "sport_key": "mma", "records": odds.json(), "closed": []}),
        "tennis is not followed"
    );
    let beat = follower.expect("beat").await;
    assert_eq!(beat.id.as_deref(), odds.header("x-position"), "the beat is after everything that was published");
    assert_eq!(beat.data["at"], time(30));
    assert_eq!(beat.data["sources"], json!([{"sport_key": "mma", "bookmaker": "draftkings", "last_read": START}]));

    // Scores and events come at once, and so does a removal.
    service.ingest(&score("mma", "m1", "live", 0, 0, &time(30))).await;
    let started = follower.expect("event").await;
    assert_eq!(started.data, service.get("/v1/sports/mma/events/m1").await.json());
    let live = follower.expect("score").await;
    assert_eq!(json!([live.data]), service.get("/v1/sports/mma/scores").await.json());
    service.ingest(&remove("mma", "m1")).await;
    let removed = follower.expect("event").await;
    assert_eq!(removed.data, json!({"id": "m1", "sport_key": "mma", "status": "removed"}));

    // A tick without a change has a beat all the same.
    service.advance(30).await;
    assert_eq!(follower.expect("beat").await.data["sources"], json!([]));
}

#[tokio::test]
async fn source_that_goes_stale_and_comes_back_is_reported() {
    let service = Service::start().await;
    service.ingest(&every_sport()).await;
    let mut follower = Follower::open(&service, "/v1/stream?sports=boxing").await;
    follower.until("ready").await;
    service.go_to(150).await;
    let stale = follower.until("source").await.pop().unwrap();
    assert_eq!(stale.data["bookmaker"], "draftkings");
    assert_eq!(stale.data["stale"], true);
    service.ingest(&moneyline_at("boxing", "b1", "draftkings", &time(150), -210, 175)).await;
    service.advance(30).await;
    let back = follower.until("source").await.pop().unwrap();
    assert_eq!((&back.data["sport_key"], &back.data["stale"]), (&json!("boxing"), &json!(false)));
}

#[tokio::test]
async fn client_continues_after_the_last_event_that_it_saw() {
    let service = Service::start().await;
    service.ingest(&every_sport()).await;
    let mut follower = Follower::open(&service, ALL).await;
    let mut board = FollowedBoard::default();
    for event in follower.until("ready").await {
        board.apply(&event);
    }
    drop(follower);
    for round in 1..=3 {
        let at = time(30 * round - 10);
        service.ingest(&moneyline_at("mma", "m1", "draftkings", &at, -110 - i32::try_from(round).unwrap(), 105)).await;
        service.ingest(&score("tennis", "t1", "live", i32::try_from(round).unwrap(), 0, &at)).await;
        service.advance(30).await;
    }
    let resume = async |service: &Service, last: &str| {
        let mut follower = Follower::open_as(service, &service.live, ALL, Some(last)).await;
        assert_eq!(follower.expect("hello").await.id.as_deref(), Some(last), "it repeats the position");
        let mut events = Vec::new();
        for _ in 0..7 {
            events.push(follower.next().await.expect("an event"));
        }
        events
    };
    let first = board.last_id.clone().unwrap();
    let events = resume(&service, &first).await;
    let kinds: Vec<&str> = events.iter().map(|event| event.kind.as_str()).collect();
    // Live once, and then only scores.
    assert_eq!(kinds, ["event", "score", "odds", "score", "odds", "score", "odds"]);
    // From every one of them on, the rest comes and nothing twice; also after a restart, when the log is read.
    for at in 0..events.len() - 1 {
        let mut follower = Follower::open_as(&service, &service.live, ALL, events[at].id.as_deref()).await;
        follower.expect("hello").await;
        for event in &events[at + 1..] {
            assert_eq!(follower.next().await.as_ref(), Some(event), "after {}", events[at].kind);
        }
    }
    let used = service.live.clone();
    let service = service.restart_now().await;
    for at in 0..events.len() - 1 {
        let mut follower = Follower::open_as(&service, &used, ALL, events[at].id.as_deref()).await;
        follower.expect("hello").await;
        for event in &events[at + 1..] {
            assert_eq!(follower.next().await.as_ref(), Some(event), "after {} and a restart", events[at].kind);
        }
    }
    assert_eq!(resume(&service, &first).await, events);
}

#[tokio::test]
async fn position_of_another_log_begins_anew() {
    let service = Service::start().await;
    service.ingest(&every_sport()).await;
    let other = "0123456789abcdef.1.0";
    let mut follower = Follower::open_as(&service, &service.live, "/v1/stream?sports=mma", Some(other)).await;
    follower.expect("hello").await;
    let reset = follower.expect("reset").await;
    assert_eq!((reset.id, reset.data), (None, json!({"why": "epoch"})));
    follower.expect("snapshot").await;
    let ready = follower.expect("ready").await;
    let mut follower =
        Follower::open_as(&service, &service.live, "/v1/stream?sports=mma&snapshot=false", Some(other)).await;
    follower.expect("hello").await;
    assert_eq!(follower.expect("reset").await.id, ready.id, "it goes on from now");
    let malformed = service.get_with(ALL, &[("last-event-id", "yesterday")]).await;
    assert_eq!((malformed.status, malformed.param().as_str()), (400, "Last-Event-ID"));
}

#[tokio::test]
async fn filters_are_those_of_get_odds() {
    let service = Service::start().await;
    let uk = bookmaker("williamhill", "William Hill", r#"["uk"]"#);
    let props = r#"[{"name":"Over","description":"A. Ames","price":-110,"point":20.5}]"#;
    let prop = super::fixture::odds("basketball", "k1", "draftkings", "player_points", props);
    let lines = [
        every_sport(),
        uk,
        event("basketball", "k1", EVENING),
        prop,
        super::fixture::moneyline("mma", "m1", "williamhill", -105, -115),
        total("basketball", "k1", "betmgm", "total_points", "210.5"),
    ];
    service.ingest(&lines.concat()).await;
    for (sport, query) in [
        ("mma", ""),
        ("mma", "&regions=uk"),
        ("mma", "&regions=us,uk"),
        ("mma", "&bookmaker=williamhill"),
        ("mma", "&market=total_rounds"),
        ("mma", "&market=totals"),
        ("mma", "&event_ids=other"),
        ("basketball", "&market=all"),
        ("basketball", "&market=player_points"),
        ("golf", "&odds_format=fractional"),
    ] {
        let mut follower = Follower::open(&service, &format!("/v1/stream?sports={sport}{query}")).await;
        let mut board = FollowedBoard::default();
        for event in follower.until("ready").await {
            board.apply(&event);
        }
        assert_eq!(board.comparable(), odds_of(&service, sport, query).await, "{sport} {query}");
    }
    let mut follower =
        Follower::open(&service, "/v1/stream?bookmaker=nobody,draftkings&competition=never_seen&snapshot=false").await;
    let hello = follower.expect("hello").await;
    assert_eq!(hello.data["unmatched"], json!({"bookmakers": ["nobody"], "competitions": ["never_seen"]}));
    let mut follower =
        Follower::open(&service, "/v1/stream?sports=basketball,mma&market=totals,player_points&include=event").await;
    assert_eq!(
        follower.expect("hello").await.data["filters"],
        json!({
            "sports": ["mma", "basketball"], "competition": null,
            "market": ["player_points", "total_points", "total_rounds"], "bookmaker": null, "regions": ["us"],
            "event_ids": null, "odds_format": "american", "include": ["event"],
        })
    );
    let mut board = FollowedBoard::default();
    for event in follower.until("ready").await {
        board.apply(&event);
    }
    let query = "&market=totals,player_points&include=event";
    let mut expected = odds_of(&service, "mma", query).await;
    expected.extend(odds_of(&service, "basketball", query).await);
    assert_eq!(board.comparable(), expected);
}

#[tokio::test]
async fn record_that_leaves_the_filter_with_its_event_is_closed() {
    let service = Service::start().await;
    let of = |competition: &str| event_of(competition, "t1");
    service.ingest(&of("tennis_two")).await;
    service.ingest(&of("tennis_one")).await;
    service.ingest(&super::fixture::moneyline("tennis", "t1", "betmgm", -110, -110)).await;
    let (one, two) = ("/v1/stream?competition=tennis_one", "/v1/stream?competition=tennis_two");
    let mut left = Follower::open(&service, one).await;
    let mut arrived = Follower::open(&service, two).await;
    let ready = left.until("ready").await.pop().unwrap();
    arrived.until("ready").await;
    service.ingest(&of("tennis_two")).await;
    service.advance(30).await;
    let odds = service.get("/v1/sports/tennis/odds?competition=tennis_two").await.json();
    let closing = left.expect("odds").await;
    assert_eq!((&closing.data["records"], &closing.data["closed"]), (&json!([]), &json!([odds[0]["id"]])));
    let moved = arrived.expect("event").await;
    assert_eq!(moved.data["competition_key"], "tennis_two");
    let opening = arrived.expect("odds").await;
    assert_eq!((&opening.data["records"], &opening.data["closed"]), (&odds, &json!([])));
    assert_eq!((moved.id, &opening.id), (None, &closing.id), "one event of the log");
    // The log has the same.
    let key = service.live.clone();
    let service = service.restart_now().await;
    let mut left = Follower::open_as(&service, &key, one, ready.id.as_deref()).await;
    left.expect("hello").await;
    assert_eq!(left.expect("odds").await, closing);
    let mut arrived = Follower::open_as(&service, &key, two, ready.id.as_deref()).await;
    arrived.expect("hello").await;
    arrived.expect("event").await;
    assert_eq!(arrived.expect("odds").await, opening);
}

#[tokio::test]
async fn snapshot_right_after_a_move_has_the_event_where_it_is() {
    let service = Service::start().await;
    service.ingest(&event_of("tennis_two", "t1")).await;
    service.ingest(&event_of("tennis_one", "t1")).await;
    service.ingest(&super::fixture::moneyline("tennis", "t1", "betmgm", -110, -110)).await;
    let board = service.get("/v1/sports/tennis/odds").await;
    // Between two publications.
    service.ingest(&event_of("tennis_two", "t1")).await;
    assert_eq!(service.get("/v1/sports/tennis/odds").await.body, board.body, "prices do not change");
    assert_eq!(service.get("/v1/sports/tennis/odds?competition=tennis_one").await.json(), json!([]));
    let mut left = Follower::open(&service, "/v1/stream?competition=tennis_one").await;
    left.expect("hello").await;
    left.expect("ready").await;
    let mut arrived = Follower::open(&service, "/v1/stream?competition=tennis_two").await;
    arrived.expect("hello").await;
    assert_eq!(arrived.expect("snapshot").await.data["records"], board.json());
}

#[tokio::test]
async fn mistakes_are_reported_before_a_stream_opens() {
    let service = Service::start().await;
    let golf = service.issue(oddsbox::keys::KeyKind::Production, |new| new.groups = vec!["golf".into()]).await;
    for (path, status, code) in [
        ("/v1/stream?sports=curling", 404, "sport_not_found"),
        ("/v1/stream?market=nonsense_market", 400, "invalid_parameter"),
        ("/v1/stream?sport=mma", 400, "invalid_parameter"),
        ("/v1/stream?since=x", 400, "invalid_parameter"),
        ("/v1/stream?snapshot=maybe", 400, "invalid_parameter"),
    ] {
        let answer = service.get(path).await;
        assert_eq!((answer.status, answer.code().as_str()), (status, code), "{path}");
    }
    let refused = service.get_as(golf.secret.expose(), "/v1/stream?sports=mma").await;
    assert_eq!((refused.status, refused.code().as_str()), (403, "forbidden"));
    assert_eq!(service.get_as("sk_live_ob_x", ALL).await.status, 401);
    // Without names, a key follows what it may read.
    let mut follower = Follower::open_as(&service, golf.secret.expose(), ALL, None).await;
    assert_eq!(follower.expect("hello").await.data["filters"]["sports"], json!(["golf"]));
    assert_eq!(service.send("HEAD", ALL, &[("x-api-key", &service.live)]).await.status, 200);
    assert_eq!(service.send("POST", ALL, &[("x-api-key", &service.live)]).await.status, 405);
}

#[tokio::test]
async fn key_has_so_many_streams_and_a_change_of_the_key_reaches_them() {
    let service = Service::start().await;
    service.ingest(&every_sport()).await;
    let key = service.issue(oddsbox::keys::KeyKind::Production, |new| new.limits.streams = 2).await;
    let (id, secret) = (key.key.id().to_string(), key.secret.expose().to_owned());
    let mut first = Follower::open_as(&service, &secret, ALL, None).await;
    let mut second = Follower::open_as(&service, &secret, ALL, None).await;
    first.until("ready").await;
    second.until("ready").await;
    let third = service.get_as(&secret, ALL).await;
    assert_eq!((third.status, third.code().as_str()), (429, "too_many_streams"));
    assert_eq!(third.header("retry-after"), Some("30"));
    assert_eq!(third.header("x-requests-used"), Some("2"), "it is not charged");

    // The newest ends when fewer are allowed.
    let set = |change: KeyChange| service.writer().set_key(&id, change, "test");
    set(KeyChange { streams: Some(1), ..KeyChange::default() }).await.unwrap();
    assert_eq!(second.expect("bye").await.data, json!({"why": "limit", "retry_after_s": null}));
    assert_eq!(second.next().await, None);
    assert!(second.is_complete);
    // A group that does not have every sport of a stream ends it.
    set(KeyChange { groups: Some(vec!["golf".into()]), ..KeyChange::default() }).await.unwrap();
    assert_eq!(first.expect("bye").await.data["why"], "forbidden");
    let mut golf = Follower::open_as(&service, &secret, "/v1/stream?sports=golf", None).await;
    golf.until("ready").await;
    service.writer().revoke_key(&id, "test").await.unwrap();
    assert_eq!(golf.expect("bye").await.data["why"], "revoked");
    assert_eq!(golf.next().await, None);
    assert_eq!(service.get_as(&secret, ALL).await.status, 401);
}

#[tokio::test]
async fn replaced_secret_ends_with_its_grace() {
    let service = Service::start().await;
    let key = service.issue(oddsbox::keys::KeyKind::Production, |_| {}).await;
    let id = key.key.id().to_string();
    let mut old = Follower::open_as(&service, key.secret.expose(), ALL, None).await;
    old.until("ready").await;
    let next = service.writer().rotate_key(&id, 60, "test").await.unwrap();
    let mut new = Follower::open_as(&service, next.secret.expose(), ALL, None).await;
    new.until("ready").await;
    service.advance(30).await;
    old.expect("beat").await;
    service.advance(30).await;
    assert_eq!(old.until("bye").await.pop().unwrap().data["why"], "expired");
    new.until("beat").await;
}

#[tokio::test]
async fn maintenance_and_the_end_of_the_service_say_when_to_come_back() {
    let mut service = Service::start().await;
    let mut follower = Follower::open(&service, ALL).await;
    follower.until("ready").await;
    let now = service.clock.now().timestamp();
    let maintenance = Maintenance { since: now, until: Some(now.plus_seconds(600)) };
    service.writer().set_maintenance(Some(maintenance), "test").await.unwrap();
    assert_eq!(follower.expect("bye").await.data, json!({"why": "maintenance", "retry_after_s": 600}));
    assert_eq!(service.get(ALL).await.status, 503);
    service.writer().set_maintenance(None, "test").await.unwrap();
    let mut follower = Follower::open(&service, ALL).await;
    follower.until("ready").await;
    let stopped = tokio::spawn(async move {
        service.stop().await;
        service
    });
    let bye = follower.expect("bye").await;
    assert_eq!(bye.data["why"], "shutdown");
    assert!((1..=10).contains(&bye.data["retry_after_s"].as_u64().unwrap()), "{bye:?}");
    assert_eq!(follower.next().await, None);
    assert!(follower.is_complete);
    tokio::time::timeout(Duration::from_secs(20), stopped).await.expect("it drains").unwrap();
}

#[tokio::test]
async fn snapshot_costs_as_much_as_its_records() {
    let service = Service::start().await;
    let lines: String = (0..601).map(|at| event("tennis", &format!("e{at:03}"), EVENING)).collect();
    service.ingest(&lines).await;
    let lines: String =
        (0..601).map(|at| super::fixture::moneyline("tennis", &format!("e{at:03}"), "betmgm", -110, -110)).collect();
    service.ingest(&lines).await;
    let mut follower = Follower::open(&service, "/v1/stream?sports=tennis").await;
    assert!(follower.head.contains("x-requests-used: 2\r\n"), "{}", follower.head);
    follower.expect("hello").await;
    let first = follower.expect("snapshot").await;
    assert_eq!(first.data["records"].as_array().unwrap().len(), 500);
    let second = follower.expect("snapshot").await;
    assert_eq!(second.data["records"].as_array().unwrap().len(), 101);
    let ready = follower.expect("ready").await;
    // Continuing has no snapshot, and costs one.
    let follower = Follower::open_as(&service, &service.live, "/v1/stream?sports=tennis", ready.id.as_deref()).await;
    assert!(follower.head.contains("x-requests-used: 3\r\n"), "{}", follower.head);
    let key = service.issue(oddsbox::keys::KeyKind::Production, |new| new.limits.per_day = Some(1)).await;
    let refused = service.get_as(key.secret.expose(), "/v1/stream?sports=tennis").await;
    assert_eq!((refused.status, refused.code().as_str()), (429, "quota_exceeded"));
}

#[tokio::test]
async fn position_that_the_log_lacks_costs_as_much_as_the_snapshot_that_follows() {
    let service = Service::start().await;
    let events: String = (0..601).map(|at| event("tennis", &format!("e{at:03}"), EVENING)).collect();
    service.ingest(&events).await;
    let prices: String =
        (0..601).map(|at| super::fixture::moneyline("tennis", &format!("e{at:03}"), "betmgm", -110, -110)).collect();
    service.ingest(&prices).await;
    let position = service.get("/v1/sports/tennis/odds?limit=1").await.header("x-position").unwrap().to_owned();
    let epoch = position.split('.').next().unwrap();
    let mut used = 1;
    let lost = [("0000000000000001.1.0".to_owned(), "epoch"), (format!("{epoch}.9999999.0"), "epoch")];
    for (since, why) in lost.into_iter().chain([(format!("{epoch}.0.0"), "trimmed")]) {
        let path = format!("/v1/stream?sports=tennis&since={since}");
        let mut follower = Follower::open(&service, &path).await;
        used += 2;
        assert!(follower.head.contains(&format!("x-requests-used: {used}\r\n")), "{since}: {}", follower.head);
        follower.expect("hello").await;
        assert_eq!(follower.expect("reset").await.data["why"], why);
        follower.expect("snapshot").await;
        // Without a snapshot it costs one.
        let follower = Follower::open(&service, &format!("{path}&snapshot=false")).await;
        used += 1;
        assert!(follower.head.contains(&format!("x-requests-used: {used}\r\n")), "{since}: {}", follower.head);
        let key = service.issue(oddsbox::keys::KeyKind::Production, |new| new.limits.per_day = Some(1)).await;
        let refused = service.get_as(key.secret.expose(), &path).await;
        assert_eq!((refused.status, refused.code().as_str()), (429, "quota_exceeded"), "{since}");
    }
}

#[tokio::test]
async fn reader_that_is_slow_gets_the_last_state_of_what_it_missed() {
    let service = Service::start().await;
    let count = 25;
    let lines: String = (0..count).map(|at| tournament(&format!("g{at:02}"), "The Open", EVENING)).collect();
    service.ingest(&lines).await;
    let prices = |round: i32, at: &str| -> String {
        let outcome =
            |player: i32| format!(r#"{{"name":"A player with the number {player}","price":{}}}"#, 100 + round);
        let field: Vec<String> = (0..200).map(outcome).collect();
        let line = |id: i32| {
            odds_at("golf", &format!("g{id:02}"), "betmgm", "outright", at, &format!("[{}]", field.join(",")))
        };
        (0..count).map(line).collect()
    };
    service.ingest(&prices(0, START)).await;
    let mut follower = Follower::open(&service, "/v1/stream?sports=golf").await;
    let mut board = FollowedBoard::default();
    // It reads nothing while more is published than all buffers take.
    let rounds = 60;
    for round in 1..=rounds {
        service.ingest(&prices(round, &time(u32::try_from(round).unwrap() * 30 - 5))).await;
        service.advance(30).await;
    }
    let last = time(u32::try_from(rounds).unwrap() * 30);
    loop {
        let event = follower.next().await.expect("an event");
        board.apply(&event);
        if event.kind == "odds" && event.data["at"] == last.as_str() {
            break;
        }
    }
    assert!(board.conflated > 0, "{} resets", board.resets);
    assert_eq!(board.comparable(), odds_of(&service, "golf", "").await);
    service.ingest(&closed("golf", "g00", "betmgm", "outright", &last)).await;
    service.advance(30).await;
    loop {
        let event = follower.next().await.expect("an event");
        board.apply(&event);
        if event.kind == "beat" && event.data["at"] == time(u32::try_from(rounds + 1).unwrap() * 30) {
            break;
        }
    }
    assert_eq!(board.comparable(), odds_of(&service, "golf", "").await);
}

#[tokio::test]
async fn address_has_as_many_streams_as_connections() {
    let settings = [("connections_per_address", "2"), ("trusted_proxies", "127.0.0.1")];
    let service = Service::start_with(&settings).await;
    let from = |address: &str| format!("x-api-key: {}\r\nx-forwarded-for: {address}\r\n", service.live);
    let mut open = Vec::new();
    for _ in 0..2 {
        open.push(Follower::open_with(&service, "/v1/stream", &from("203.0.113.7")).await);
    }
    assert!(open.iter().all(|follower| follower.status == 200));
    let refused = service.get_with("/v1/stream", &[("x-forwarded-for", "203.0.113.7")]).await;
    assert_eq!((refused.status, refused.code()), (429, "too_many_streams".into()));
    assert!(refused.text().contains("Your address"), "{}", refused.text());
    // Others have their own, and the proxy itself has no such limit.
    assert_eq!(Follower::open_with(&service, "/v1/stream", &from("203.0.113.8")).await.status, 200);
    for _ in 0..4 {
        open.push(Follower::open(&service, "/v1/stream").await);
    }
    assert!(open.iter().all(|follower| follower.status == 200));
}
