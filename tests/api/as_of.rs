//! Odds, events and scores as of a time: what the same request was answered with then.

use super::fixture::{EVENING, error, event, event_with, first_price, moneyline, moneyline_at, remove, score, time};
use crate::harness::{Answer, Service};

const ODDS: &str = "/v1/sports/mma/odds";
const EVENTS: &str = "/v1/sports/mma/events";
const SCORES: &str = "/v1/sports/mma/scores";

fn price(seconds: u32, price: i32) -> String {
    moneyline_at("mma", "m1", "betmgm", &time(seconds), price, -150)
}

/// Three publications of a fight's price, half a minute apart, with another fight that stays as it is.
async fn with_three_ticks() -> Service {
    let service = Service::start().await;
    let fights =
        [event("mma", "m1", EVENING), event("mma", "m2", EVENING), moneyline("mma", "m2", "fanduel", 120, -140)];
    service.ingest(&[fights.concat(), price(0, 101)].concat()).await;
    for (step, american) in [(30, 102), (60, 103)] {
        service.ingest(&price(step - 1, american)).await;
        service.advance(30).await;
    }
    service
}

fn as_of(path: &str, time: &str) -> String {
    format!("{path}{}as_of={time}", if path.contains('?') { '&' } else { '?' })
}

/// The target of a relation in the `Link` header.
fn link(answer: &Answer, relation: &str) -> Option<String> {
    let suffix = format!(r#">; rel="{relation}""#);
    let mut links = answer.header("link")?.split(", ");
    links.find_map(|link| Some(link.strip_suffix(&suffix)?.strip_prefix('<')?.to_owned()))
}

#[tokio::test]
async fn answers_are_those_of_then() {
    let service = Service::start().await;
    let paths = [
        ODDS,
        "/v1/sports/mma/odds?odds_format=fractional&bookmaker=fanduel",
        "/v1/sports/mma/odds?market=all&regions=us,uk&event_ids=m2&limit=1",
        "/v1/sports/mma/odds?commence_from=2026-11-15T01:00:00Z&competition=mma_mixed_martial_arts",
        EVENTS,
        "/v1/sports/mma/events?status=live",
        SCORES,
    ];
    let mut then = Vec::new();
    let steps = [
        [event("mma", "m1", EVENING), price(0, 101)].concat(),
        [event("mma", "m2", EVENING), moneyline("mma", "m2", "fanduel", 120, -140)].concat(),
        [price(61, 130), event_with("mma", "m2", EVENING, "live")].concat(),
        [score("mma", "m1", "live", 0, 0, &time(90)), price(90, 140)].concat(),
        remove("mma", "m2"),
        event("mma", "m3", EVENING),
    ];
    for (lines, seconds) in steps.iter().zip((0..).step_by(60)) {
        service.ingest(lines).await;
        // Prices are shown from the tick on, events and scores at once.
        service.advance(30).await;
        for path in paths {
            then.push((as_of(path, &time(seconds + 30)), service.get(path).await));
        }
        service.advance(30).await;
    }
    service.advance(3600).await;
    let service = service.restart_now().await;
    for (path, then) in &then {
        for time in ["first", "again"] {
            let now = service.get(path).await;
            assert_eq!((now.status, now.text()), (200, then.text()), "{path} {time}");
        }
    }
}

#[tokio::test]
async fn headers_name_the_tick_and_its_neighbours() {
    let service = with_three_ticks().await;
    service.advance(20).await;
    for (asked, tick, american, neighbours) in [
        (0, 0, "101", [None, Some(30)]),
        (29, 0, "101", [None, Some(30)]),
        (30, 30, "102", [Some(0), Some(60)]),
        (59, 30, "102", [Some(0), Some(60)]),
        (60, 60, "103", [Some(30), None]),
        (80, 60, "103", [Some(30), None]),
    ] {
        let answer = service.get(&as_of("/v1/sports/mma/odds?limit=5", &time(asked))).await;
        assert_eq!((answer.status, &*first_price(&answer)), (200, american), "{asked}: {answer:?}");
        assert_eq!(answer.header("x-as-of"), Some(&*time(tick)), "{asked}");
        let links = ["prev-archive", "next-archive"].map(|relation| link(&answer, relation));
        let expected = neighbours.map(|at| Some(as_of("/v1/sports/mma/odds?limit=5", &time(at?))));
        assert_eq!(links, expected, "{asked}");
        let caching = match neighbours {
            [_, None] => "private, max-age=0",
            // An import may bring one before it.
            [None, Some(_)] => "private, max-age=300",
            [Some(_), Some(_)] => "private, max-age=31536000, immutable",
        };
        assert_eq!(answer.header("cache-control"), Some(caching), "{asked}");
        let vary = if neighbours[1].is_some() { "accept-encoding, x-api-key" } else { "accept-encoding" };
        assert_eq!(answer.header("vary"), Some(vary), "{asked}");
    }
    assert_eq!(service.get(ODDS).await.header("x-as-of"), None, "only where it was asked for");
}

#[tokio::test]
async fn last_tick_is_the_last_until_the_next() {
    let service = with_three_ticks().await;
    let now = service.get(&as_of(ODDS, &time(60))).await;
    assert_eq!(first_price(&now), "103");
    // Of a time that has just begun, more may become known.
    service.ingest(&price(60, 104)).await;
    service.advance(30).await;
    let asked = service.get(&as_of(ODDS, &time(90))).await;
    assert_eq!((&*first_price(&asked), asked.header("x-as-of")), ("104", Some(&*time(90))));
    let before = service.get(&as_of(ODDS, &time(60))).await;
    assert_eq!(before.text(), now.text());
    assert_eq!(before.header("cache-control"), Some("private, max-age=31536000, immutable"), "it is final now");
}

#[tokio::test]
async fn pages_stay_at_their_tick() {
    let service = with_three_ticks().await;
    let first = service.get(&as_of("/v1/sports/mma/odds?limit=1", &time(75))).await;
    assert_eq!(error(&first), (400, "invalid_parameter".into()), "{first:?}");
    let first = service.get(&as_of("/v1/sports/mma/odds?limit=1", &time(60))).await;
    let next = link(&first, "next").expect("a second page");
    assert!(next.contains(&format!("as_of={}", time(60))), "{next}");
    service.ingest(&[price(61, 150), moneyline_at("mma", "m2", "fanduel", &time(61), 999, -999)].concat()).await;
    service.advance(30).await;
    let second = service.get(&next).await;
    assert_eq!((&*first_price(&second), second.header("x-as-of")), ("120", Some(&*time(60))));
    assert_eq!(link(&second, "next"), None);
    assert_eq!(link(&second, "prev-archive"), Some(as_of("/v1/sports/mma/odds?limit=1", &time(30))));
}

#[tokio::test]
async fn bouts_have_no_sources() {
    let service = with_three_ticks().await;
    let bouts = service.get(&as_of("/v1/sports/mma/odds?group=bout&event_ids=m1", &time(59))).await;
    assert_eq!(
        bouts.text(),
        concat!(
            r#"{"sport":"mma","generated_at":"2026-11-14T23:39:30.000Z","sources":[],"bouts":["#,
            r#"{"home":"Home m1","away":"Away m1","commence_time":"2026-11-15T02:00:00Z","books":["#,
            r#"{"book":"betmgm","last_update":"2026-11-14T23:39:00Z","outcomes":["#,
            r#"{"name":"Home m1","price":102},{"name":"Away m1","price":-150}]}]}]}"#
        )
    );
}

#[tokio::test]
async fn events_and_scores_are_as_of_the_last_entry_of_any_kind() {
    let service = with_three_ticks().await;
    service.advance(7).await;
    service.ingest(&score("mma", "m1", "live", 0, 0, &time(67))).await;
    service.advance(3).await;
    for path in [EVENTS, SCORES] {
        let status = |answer: &Answer| answer.json()[0]["status"].as_str().unwrap_or_default().to_owned();
        let (before, after) = (service.get(&as_of(path, &time(66))).await, service.get(&as_of(path, &time(67))).await);
        assert_eq!((status(&before), status(&after)), ("scheduled".into(), "live".into()), "{path}");
        assert_eq!((before.header("x-as-of"), after.header("x-as-of")), (Some(&*time(60)), Some(&*time(67))));
        // The next publication is not known yet.
        assert_eq!((before.header("cache-control"), link(&before, "next-archive")), (Some("private, max-age=0"), None));
    }
}

#[tokio::test]
async fn history_that_is_not_there_is_gone() {
    let service = with_three_ticks().await;
    for path in [ODDS, EVENTS, SCORES] {
        let gone = service.get(&as_of(path, "2026-11-14T23:38:59Z")).await;
        assert_eq!(error(&gone), (410, "history_gone".into()), "{path}");
        assert!(gone.text().contains("2026-11-14T23:39:00Z"), "since when there is any: {}", gone.text());
        let never = service.get(&as_of(&path.replace("mma", "golf"), &time(0))).await;
        assert_eq!(error(&never), (410, "history_gone".into()), "{path}");
        for (time, message) in [(time(61), "is in the future"), ("yesterday".into(), "`as_of` takes")] {
            let wrong = service.get(&as_of(path, &time)).await;
            assert_eq!((error(&wrong), &*wrong.param()), ((400, "invalid_parameter".into()), "as_of"), "{path} {time}");
            assert!(wrong.text().contains(message), "{}", wrong.text());
        }
    }
    // A mistake is reported before anything is read.
    for (query, param) in [("limit=0", "limit"), ("odds_format=roman", "odds_format"), ("market=nothing", "market")] {
        let wrong = service.get(&as_of(&format!("{ODDS}?{query}&bookmaker=nobody"), "2026-11-14T23:38:59Z")).await;
        assert_eq!((error(&wrong), &*wrong.param()), ((400, "invalid_parameter".into()), param), "{query}");
    }
    let nobody = service.get(&as_of("/v1/sports/mma/odds?bookmaker=nobody", &time(0))).await;
    assert_eq!((error(&nobody), &*nobody.param()), ((400, "invalid_parameter".into()), "bookmaker"));
    let sandbox = service.get_as(&service.sandbox, &as_of(ODDS, &time(30))).await;
    assert_eq!(error(&sandbox), (410, "history_gone".into()), "each world has its own");
}

#[tokio::test]
async fn history_is_charged_once_and_a_missing_one_too() {
    let service = with_three_ticks().await;
    let used = |answer: &Answer| answer.header("x-requests-used").and_then(|used| used.parse::<u32>().ok()).unwrap();
    let first = used(&service.get(ODDS).await);
    for (count, path) in
        [(1, as_of(ODDS, &time(30))), (2, as_of(ODDS, &time(30))), (3, as_of(ODDS, "2020-01-01T00:00:00Z"))]
    {
        let answer = service.get(&path).await;
        assert_eq!(used(&answer), first + count, "{path}");
    }
}
