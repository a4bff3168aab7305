//! Imported history: what prices were before a service began to publish them.

use oddsbox::model::Timestamp;
use serde_json::{Value, json};

use super::fixture::{closed, error, event, fields, first_price, moneyline_at, payload_event, records, remove, time};
use super::history_io::{export, import, import_lines, import_responses};
use crate::harness::{Answer, START_MS, Service};

const ODDS: &str = "/v1/sports/mma/odds";
const COMMENCE: u32 = 7_200;

/// A time before the start of every test.
fn before(seconds: u32) -> String {
    jiff::Timestamp::from_second(START_MS / 1000 - i64::from(seconds)).expect("a time").to_string()
}

/// A feed line with the time of its change.
fn at(line: &str, time: &str) -> String {
    let line = line.trim_end().strip_suffix('}').expect("an object");
    format!("{line},\"as_of\":\"{time}\"}}\n")
}

fn fight(id: &str, time: &str) -> String {
    at(&event("mma", id, &super::fixture::time(COMMENCE)), time)
}

fn price(id: &str, american: i32, time: &str) -> String {
    at(&moneyline_at("mma", id, "betmgm", time, american, -150), time)
}

/// Two prices of a fight, an hour and half an hour before the start of the test.
fn two_prices() -> String {
    [fight("m1", &before(3600)), price("m1", 101, &before(3600)), price("m1", 102, &before(1800))].concat()
}

/// A service that has published a price of the same fight at its start and half a minute later.
async fn with_own_prices() -> Service {
    let service = Service::start().await;
    let fight = [event("mma", "m1", &time(COMMENCE)), moneyline_at("mma", "m1", "betmgm", &time(0), 110, -150)];
    service.ingest(&fight.concat()).await;
    service.ingest(&moneyline_at("mma", "m1", "betmgm", &time(29), 111, -150)).await;
    service.advance(30).await;
    service
}

async fn as_of(service: &Service, at: &str) -> Answer {
    service.get(&format!("{ODDS}?as_of={at}")).await
}

fn link(answer: &Answer, relation: &str) -> Option<String> {
    let suffix = format!(r#">; rel="{relation}""#);
    let found = answer.header("link")?.split(", ").find_map(|link| link.strip_suffix(&suffix))?;
    found.split_once("as_of=").map(|(_, time)| time.to_owned())
}

fn refused(report: &oddsbox::ingest::IngestSummary) -> Vec<(&str, u64)> {
    report.rejected_by_reason.iter().map(|(reason, count)| (reason.as_str(), *count)).collect()
}

#[tokio::test]
async fn publication_before_the_first_own_one_is_of_an_earlier_second() {
    let service = Service::start().await;
    // Another service published in the second in which this one begins.
    let report = import_lines(&service, &two_prices().replace(&before(1800), &time(0))).await;
    assert_eq!(report.accepted, 3, "{report:?}");
    let fight = [event("mma", "m1", &time(COMMENCE)), moneyline_at("mma", "m1", "betmgm", &time(0), 110, -150)];
    service.ingest(&fight.concat()).await;
    service.advance(30).await;
    let answer = as_of(&service, &time(0)).await;
    assert_eq!(answer.header("x-as-of"), Some(&*time(0)));
    assert_eq!((&*first_price(&answer), link(&answer, "prev-archive")), ("110", Some(before(3600))));
}

#[tokio::test]
async fn imported_prices_are_those_before_the_first_own_one() {
    let service = with_own_prices().await;
    assert_eq!(error(&as_of(&service, &before(1)).await), (410, "history_gone".into()));
    let report = import_lines(&service, &two_prices()).await;
    assert_eq!((report.lines, report.accepted, report.changed), (3, 3, 3), "{report:?}");
    let cases = [
        (before(3600), "101", before(3600), None, Some(before(1800))),
        (before(1801), "101", before(3600), None, Some(before(1800))),
        (before(1), "102", before(1800), Some(before(3600)), Some(time(0))),
        (time(0), "110", time(0), Some(before(1800)), Some(time(30))),
        (time(30), "111", time(30), Some(time(0)), None),
    ];
    for (asked, american, tick, previous, next) in cases {
        let answer = as_of(&service, &asked).await;
        assert_eq!((answer.status, &*first_price(&answer)), (200, american), "{asked}");
        assert_eq!(answer.header("x-as-of"), Some(&*tick), "{asked}");
        assert_eq!((link(&answer, "prev-archive"), link(&answer, "next-archive")), (previous, next), "{asked}");
    }
    assert_eq!(error(&as_of(&service, &before(3601)).await), (410, "history_gone".into()));
    assert_eq!(service.get("/v1/status").await.json()["history_since"], json!(before(3600)));
    let now = service.get(ODDS).await;
    assert_eq!(first_price(&now), "111", "what is now does not change");
}

#[tokio::test]
async fn price_that_closes_in_the_second_in_which_its_event_is_removed_is_closed() {
    let service = with_own_prices().await;
    let (open, end) = (before(3600), before(1800));
    let lines = [
        fight("m1", &open) + &price("m1", 101, &open),
        fight("m2", &open) + &price("m2", 102, &open),
        at(&closed("mma", "m1", "betmgm", "moneyline", &end), &end) + &at(&remove("mma", "m1"), &end),
    ];
    let report = import_lines(&service, &lines.concat()).await;
    assert_eq!((report.accepted, refused(&report)), (6, Vec::new()));
    let events = |answer: &Answer| fields(answer, "event_id");
    assert_eq!(events(&as_of(&service, &before(1801)).await), ["m1", "m2"]);
    assert_eq!(events(&as_of(&service, &end).await), ["m2"]);
}

#[tokio::test]
async fn answers_from_imported_history_are_cached_for_minutes() {
    let service = with_own_prices().await;
    import_lines(&service, &two_prices()).await;
    service.ingest(&moneyline_at("mma", "m1", "betmgm", &time(61), 112, -150)).await;
    service.advance(60).await;
    for (asked, caching) in [
        (before(1), "private, max-age=300"),
        // More may be imported before it, and then it has another neighbour.
        (time(0), "private, max-age=300"),
        (time(30), "private, max-age=31536000, immutable"),
    ] {
        let answer = as_of(&service, &asked).await;
        assert_eq!(answer.header("cache-control"), Some(caching), "{asked}");
        assert_eq!(answer.header("vary"), Some("accept-encoding, x-api-key"), "{asked}");
    }
}

#[tokio::test]
async fn lines_and_closing_prices_go_on_from_imported_ones() {
    let service = with_own_prices().await;
    import_lines(&service, &[two_prices(), fight("m0", &before(900)), price("m0", 300, &before(900))].concat()).await;
    let answer = service.get("/v1/sports/mma/events/m1/lines").await.json();
    let line = &answer["lines"][0];
    assert_eq!(line["opening"]["at"], json!(before(3600)));
    let points: Vec<_> = line["points"].as_array().expect("points").iter().map(|point| &point["at"]).collect();
    assert_eq!(points, [&json!(before(3600)), &json!(before(1800)), &json!(time(0)), &json!(time(30))]);
    // The own log has never had this one, so it was gone at its first publication.
    let answer = service.get("/v1/sports/mma/events/m0/lines").await.json();
    let points = &answer["lines"][0]["points"];
    assert_eq!((&points[0]["at"], &points[1]["at"]), (&json!(before(900)), &json!(time(0))));
    assert_eq!(points[1]["outcomes"], json!([]));
    service.go_to(COMMENCE + 1).await;
    let rows = service.get("/v1/sports/mma/closing?date=2026-11-15").await.json();
    let rows: Vec<_> = rows.as_array().expect("rows").iter().collect();
    assert_eq!(rows.len(), 2, "{rows:?}");
    let expected = [(300, 300, "market_closed"), (101, 111, "scheduled_start")];
    for (row, (opening, closing, reason)) in rows.into_iter().zip(expected) {
        assert_eq!(row["opening"]["outcomes"][0]["price"], json!(opening), "{row}");
        assert_eq!(row["closing"]["outcomes"][0]["price"], json!(closing), "{row}");
        assert_eq!(row["closing_reason"], reason);
    }
}

#[tokio::test]
async fn archive_of_an_hour_goes_from_imported_history_to_the_own() {
    let service = with_own_prices().await;
    import_lines(&service, &two_prices()).await;
    service.go_to(3600).await;
    service.ingest(&moneyline_at("mma", "m1", "betmgm", &time(3600), 112, -150)).await;
    service.advance(60).await;
    // The test starts at 23:39: the hour has an imported price of 23:09 and own ones.
    let answer = service.get("/v1/sports/mma/archive/2026-11-14T23").await;
    let lines: Vec<Value> = answer.text().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let odds: Vec<_> = lines.iter().filter(|line| line["type"] == "odds").map(|line| &line["at"]).collect();
    assert_eq!(odds, [&json!(before(1800)), &json!(time(0)), &json!(time(30))]);
    assert_eq!(answer.header("cache-control"), Some("private, max-age=300"));
    let epochs: std::collections::BTreeSet<_> = lines
        .iter()
        .filter_map(|line| line["position"].as_str()?.split_once('.'))
        .map(|(epoch, _)| epoch.to_owned())
        .collect();
    assert_eq!(epochs.len(), 2, "an imported position is none of the stream");
    let imported = lines[0]["position"].as_str().expect("a position");
    let changes = service.get(&format!("/v1/changes?since={imported}")).await;
    assert_eq!(error(&changes), (410, "position_gone".into()));
}

#[tokio::test]
async fn times_that_cannot_be_imported_are_rejected() {
    let service = with_own_prices().await;
    let old = "2020-01-01T00:00:00Z";
    let lines = [
        fight("m1", &before(3600)),
        price("m1", 101, &before(3600)),
        price("m1", 102, &before(7200)),
        price("m1", 103, &time(0)),
        price("m1", 104, &time(100_000)),
        price("m1", 104, old),
        price("nobody", 104, &before(600)),
        at(&moneyline_at("mma", "m1", "unheard_of", &before(600), 100, -150), &before(600)),
        moneyline_at("mma", "m1", "betmgm", &before(600), 100, -150),
    ];
    let report = import_lines(&service, &lines.concat()).await;
    let expected = [
        ("after_own_history", 1),
        ("before_retention", 1),
        ("in_future", 1),
        ("missing_field", 1),
        ("out_of_order", 1),
        ("unknown_bookmaker", 1),
        ("unknown_event", 1),
    ];
    assert_eq!((report.accepted, refused(&report)), (2, expected.to_vec()));
    let details: Vec<&str> = report.examples.iter().map(|example| &*example.detail).collect();
    assert!(details.iter().any(|detail| detail.contains("history.keep")), "{details:?}");
}

#[tokio::test]
async fn imports_are_merged_in_any_order() {
    let older = [fight("m1", &before(3600)), price("m1", 101, &before(3600)), price("m1", 103, &before(1200))].concat();
    let newer = [
        fight("m1", &before(2400)),
        fight("m2", &before(2400)),
        price("m1", 102, &before(2400)),
        price("m2", 200, &before(2400)),
        price("m2", 201, &before(1200)),
    ]
    .concat();
    let mut exports = Vec::new();
    for parts in [[&older, &newer, &older], [&newer, &older, &newer]] {
        let service = Service::start().await;
        for part in parts {
            let report = import_lines(&service, part).await;
            assert_eq!(report.rejected, 0, "{report:?}");
        }
        let again = import_lines(&service, &older).await;
        assert_eq!((again.changed, again.unchanged), (0, 3), "what is there changes nothing");
        let text = export(&service, None, None).await;
        exports.push(text.lines().filter(|line| line.contains("as_of")).collect::<Vec<_>>().join("\n"));
        let lines = service.get("/v1/sports/mma/events/m1/lines").await.json();
        let points = lines["lines"][0]["points"].as_array().expect("points").len();
        assert_eq!(points, 3);
    }
    let sorted = |text: &str| {
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    // Within a second, events stand in the order in which they were first seen.
    assert_eq!(sorted(&exports[0]), sorted(&exports[1]));
}

#[tokio::test]
async fn strict_import_with_a_bad_line_changes_nothing() {
    let service = Service::start().await;
    let report = import(&service, &[&*two_prices(), "no line\n"].concat(), true, None).await.expect("a report");
    assert_eq!((report.written, report.accepted, report.rejected), (false, 3, 1));
    assert_eq!(error(&as_of(&service, &before(1)).await), (410, "history_gone".into()));
    let report = import(&service, &two_prices(), true, None).await.expect("a report");
    assert!(report.written);
    assert_eq!(first_price(&as_of(&service, &before(1)).await), "102");
}

#[tokio::test]
async fn import_that_is_replaced_or_given_up_leaves_nothing_behind() {
    let service = Service::start().await;
    import_lines(&service, &two_prices()).await;
    let bytes = |service: &Service| service.data().join("oddsbox.redb");
    assert!(bytes(&service).exists());
    for round in 0..3 {
        let more = [fight("m1", &before(900 - round)), price("m1", 120, &before(900 - round))].concat();
        import(&service, &[more.as_str(), "no line\n"].concat(), true, None).await.expect("a report");
        import_lines(&service, &more).await;
    }
    service.advance(60).await;
    for _ in 0..20 {
        service.advance(1).await;
    }
    let numbers = service.writer().check().await.expect("a check");
    assert!(numbers.problems.listed().is_empty(), "{numbers:?}");
    let first = export(&service, None, None).await;
    let service = service.restart_now().await;
    assert_eq!(export(&service, None, None).await, first);
    assert_eq!(first_price(&as_of(&service, &before(1)).await), "120");
}

#[tokio::test]
async fn export_of_a_part_begins_with_what_there_was() {
    let service = with_own_prices().await;
    import_lines(&service, &[fight("m0", &before(3000)), price("m0", 300, &before(3000))].concat()).await;
    import_lines(&service, &two_prices()).await;
    let unix = |offset: i64| Some(Timestamp::from_unix(u32::try_from(START_MS / 1000 + offset).expect("a time")));
    let text = export(&service, unix(-2000), unix(10)).await;
    let changes: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"))
        .filter(|line| line.get("as_of").is_some())
        .collect();
    let shown: Vec<String> = changes
        .iter()
        .map(|line| {
            let id = line["id"].as_str().or(line["event"].as_str()).unwrap_or_default();
            let price = line["outcomes"][0]["price"].as_i64().map_or(String::new(), |price| format!(" {price}"));
            format!(
                "{} {id}{price} {}",
                line["type"].as_str().unwrap_or_default(),
                line["as_of"].as_str().unwrap_or_default()
            )
        })
        .collect();
    let expected = [
        format!("event m1 {}", before(2000)),
        format!("event m0 {}", before(2000)),
        format!("odds m1 101 {}", before(2000)),
        format!("odds m0 300 {}", before(2000)),
        format!("odds m1 102 {}", before(1800)),
        // The own log begins, and has the one fight only: that is not news.
        format!("remove m0 {}", time(0)),
        format!("odds m1 110 {}", time(0)),
    ];
    assert_eq!(shown, expected);
}

/// A saved response with the prices of some fights: id, bookmaker and decimal price.
fn response(seconds_before: u32, fights: &[(&str, &[(&str, f64)])]) -> String {
    let event = |(id, prices): &(&str, &[(&str, f64)])| {
        let book = |(key, price): &(&str, f64)| {
            let outcomes =
                json!([{"name": format!("Home {id}"), "price": price}, {"name": format!("Away {id}"), "price": 1.6}]);
            json!({"key": key, "title": key, "last_update": before(seconds_before + 5),
                   "markets": [{"key": "h2h", "outcomes": outcomes}]})
        };
        let bookmakers = prices.iter().map(book).collect::<Vec<_>>();
        payload_event(id, "mma_mixed_martial_arts", "MMA", json!(bookmakers))
    };
    let data: Vec<Value> = fights.iter().map(event).collect();
    json!({"timestamp": before(seconds_before), "previous_timestamp": null, "next_timestamp": null, "data": data})
        .to_string()
}

#[tokio::test]
async fn responses_of_the_archive_open_change_and_close_prices() {
    let service = Service::start().await;
    let responses = [
        response(3600, &[("m1", &[("betmgm", 2.0), ("newbook", 2.1)]), ("m2", &[("betmgm", 3.0)])]),
        response(3000, &[("m1", &[("betmgm", 2.2), ("newbook", 2.1)]), ("m2", &[("betmgm", 3.0)])]),
        // No bookmaker is asked for twice: what a list lacks of those that it has was not offered.
        response(2400, &[("m1", &[("betmgm", 2.2)]), ("m2", &[("newbook", 3.3)])]),
    ];
    let report = import_responses(&service, &responses).await;
    assert_eq!(report.rejected, 0, "{report:?}");
    let shown = async |seconds| {
        let path = format!("{ODDS}?regions=us,uk&odds_format=decimal&as_of={}", before(seconds));
        let answer = service.get(&path).await;
        let prices: Vec<String> = answer
            .json()
            .as_array()
            .expect("a list")
            .iter()
            .map(|record| record["outcomes"][0]["price"].to_string())
            .collect();
        records(&answer).into_iter().zip(prices).map(|(record, price)| format!("{record} {price}")).collect::<Vec<_>>()
    };
    assert_eq!(shown(3600).await, ["m1 betmgm moneyline 2.0", "m1 newbook moneyline 2.1", "m2 betmgm moneyline 3.0"]);
    assert_eq!(shown(3000).await, ["m1 betmgm moneyline 2.2", "m1 newbook moneyline 2.1", "m2 betmgm moneyline 3.0"]);
    assert_eq!(shown(2400).await, ["m1 betmgm moneyline 2.2", "m2 newbook moneyline 3.3"]);
    let again = import_responses(&service, &responses).await;
    assert_eq!((again.changed, again.rejected), (0, 0));
    let record = &service.get(&format!("{ODDS}?as_of={}", before(3600))).await.json()[0];
    assert_eq!(record["last_update"], json!(before(3605)), "as the response has it");
}

#[tokio::test]
async fn response_for_one_event_says_nothing_of_others() {
    let service = Service::start().await;
    let list = response(3600, &[("m1", &[("betmgm", 2.0)]), ("m2", &[("betmgm", 3.0)])]);
    let mut one: Value = serde_json::from_str(&response(3000, &[("m1", &[("betmgm", 2.5)])])).expect("JSON");
    one["data"] = one["data"][0].clone();
    import_responses(&service, &[list, one.to_string()]).await;
    let answer = as_of(&service, &before(2000)).await;
    assert_eq!(fields(&answer, "event_id"), ["m1", "m2"]);
}

#[tokio::test]
async fn events_that_lists_no_longer_have_are_over_after_their_start() {
    let service = Service::start().await;
    let at_start = |hours: u32| response(hours * 3600, &[("m9", &[("betmgm", 2.0)])]);
    let mut early: Value = serde_json::from_str(&response(20 * 3600, &[("m1", &[("betmgm", 2.0)])])).expect("JSON");
    early["data"][0]["commence_time"] = json!(before(15 * 3600));
    import_responses(&service, &[early.to_string(), at_start(10), at_start(8)]).await;
    let listed = async |hours: u32| {
        fields(&service.get(&format!("/v1/sports/mma/events?as_of={}", before(hours * 3600))).await, "id")
    };
    assert_eq!(listed(20).await, ["m1"]);
    assert_eq!(listed(10).await, ["m1", "m9"], "it began five hours before");
    assert_eq!(listed(8).await, ["m9"], "and seven hours before");
    assert_eq!(fields(&as_of(&service, &before(10 * 3600)).await, "event_id"), ["m9"], "its price was not listed");
    let lines = service.get("/v1/sports/mma/events/m1/lines").await;
    assert_eq!(lines.status, 200, "its history stays");
}

#[tokio::test]
async fn what_is_no_response_of_the_archive_is_rejected() {
    let service = Service::start().await;
    let bare = json!([payload_event("m1", "mma_mixed_martial_arts", "MMA", json!([]))]).to_string();
    let good = response(3600, &[("m1", &[("betmgm", 2.0)])]);
    let report = import_responses(&service, &[bare, good, "{\"half\":".to_owned()]).await;
    assert_eq!((report.accepted, report.rejected), (2, 2), "{report:?}");
    let lines: Vec<u64> = report.examples.iter().map(|example| example.line).collect();
    assert_eq!(lines, [1, 3]);
    assert!(report.examples[0].detail.contains("timestamp"), "{report:?}");
}

#[tokio::test]
async fn titles_and_regions_of_known_bookmakers_stay() {
    let service = Service::start().await;
    let books = service.get("/v1/books").await.text().to_owned();
    import_responses(&service, &[response(3600, &[("m1", &[("betmgm", 2.0)])])]).await;
    assert_eq!(service.get("/v1/books").await.text(), books);
    import_responses(&service, &[response(3000, &[("m1", &[("newbook", 2.0)])])]).await;
    let books = service.get("/v1/books").await.json();
    assert!(books.as_array().expect("a list").iter().any(|book| book["key"] == "newbook"), "{books}");
}

#[tokio::test]
async fn imported_history_goes_when_it_is_too_old() {
    let service = Service::start_with(&[("history.keep", "3d")]).await;
    let hours = |hours: u32| before(hours * 3600);
    let lines: Vec<String> =
        (0..60).rev().map(|hour| price("m1", 100 + i32::try_from(hour).expect("small"), &hours(hour + 1))).collect();
    import_lines(&service, &[fight("m1", &hours(61)), lines.concat()].concat()).await;
    assert_eq!(service.get("/v1/status").await.json()["history_since"], json!(hours(60)));
    // Old entries go up to a keyframe, of which an import has one a week: so this one goes as a whole.
    for _ in 0..30 {
        service.advance(4 * 3600).await;
    }
    assert_eq!(error(&as_of(&service, &hours(1)).await), (410, "history_gone".into()));
    assert_eq!(service.get("/v1/sports/mma/events/m1/lines").await.status, 404);
    let check = service.writer().check().await.expect("a check");
    assert!(check.problems.listed().is_empty(), "{check:?}");
}
