//! The lines of an event: what its prices were.

use serde_json::{Value, json};

use super::fixture::{
    bookmaker, closed, error, event, event_with, limited, moneyline_at, odds_at, remove, score, time,
};
use crate::harness::{Answer, Service};

const LINES: &str = "/v1/sports/mma/events/m1/lines";
/// When the fight begins: 600 seconds after the start of every test.
const COMMENCE: u32 = 600;

async fn with_fight() -> Service {
    let service = Service::start().await;
    service.ingest(&event("mma", "m1", &time(COMMENCE))).await;
    service
}

async fn price(service: &Service, seconds: u32, american: i32) {
    service.go_to(seconds).await;
    service.ingest(&moneyline_at("mma", "m1", "betmgm", &time(seconds), american, -150)).await;
}

/// The second and the first price of each point; no price where it is closed.
fn points(line: &Value) -> Vec<(String, Value)> {
    let shown = |point: &Value| {
        let at = point["at"].as_str().unwrap_or_default().to_owned();
        (at, point["outcomes"].get(0).map_or(Value::Null, |outcome| outcome["price"].clone()))
    };
    line["points"].as_array().expect("points").iter().map(shown).collect()
}

fn at(expected: &[(u32, Value)]) -> Vec<(String, Value)> {
    expected.iter().map(|(seconds, price)| (time(*seconds), price.clone())).collect()
}

fn next(answer: &Answer) -> Option<String> {
    let link = answer.header("link")?;
    Some(link.strip_prefix('<').and_then(|link| link.strip_suffix(r#">; rel="next""#)).expect("a link").to_owned())
}

#[tokio::test]
async fn the_shape_is_exact() {
    let service = with_fight().await;
    price(&service, 0, 110).await;
    price(&service, 60, 120).await;
    service.go_to(90).await;
    service.ingest(&closed("mma", "m1", "betmgm", "moneyline", &time(90))).await;
    service.go_to(120).await;
    let answer = service.get(&format!("{LINES}?odds_format=decimal")).await;
    assert_eq!(
        answer.text(),
        concat!(
            r#"{"event_id":"m1","sport_key":"mma","commence_time":"2026-11-14T23:49:00Z","lines":["#,
            r#"{"bookmaker":"betmgm","market":"moneyline","format":"decimal","#,
            r#""opening":{"at":"2026-11-14T23:39:00Z","outcomes":["#,
            r#"{"name":"Home m1","price":2.1,"point":null},{"name":"Away m1","price":1.667,"point":null}]},"#,
            r#""closing":null,"points":["#,
            r#"{"at":"2026-11-14T23:39:00Z","outcomes":["#,
            r#"{"name":"Home m1","price":2.1,"point":null},{"name":"Away m1","price":1.667,"point":null}]},"#,
            r#"{"at":"2026-11-14T23:40:00Z","outcomes":["#,
            r#"{"name":"Home m1","price":2.2,"point":null},{"name":"Away m1","price":1.667,"point":null}]},"#,
            r#"{"at":"2026-11-14T23:40:30Z","outcomes":[]}]}]}"#
        )
    );
    assert_eq!(answer.header("cache-control"), Some("private, max-age=0"));
}

#[tokio::test]
async fn closing_price_is_the_last_before_the_start() {
    let service = with_fight().await;
    price(&service, 0, 110).await;
    price(&service, 300, 130).await;
    let closing = async |service: &Service| service.get(LINES).await.json()["lines"][0]["closing"].clone();
    assert_eq!(closing(&service).await, Value::Null, "it has not begun");
    service.go_to(COMMENCE - 1).await;
    assert_eq!(closing(&service).await, Value::Null);
    service.go_to(COMMENCE).await;
    let known = closing(&service).await;
    assert_eq!((&known["at"], &known["reason"]), (&json!(time(300)), &json!("scheduled_start")), "nobody said so");
    price(&service, 660, 500).await;
    assert_eq!(closing(&service).await, known, "a price in play is none");
    // A delayed start: what was published in between counts.
    service.ingest(&event("mma", "m1", &time(1200))).await;
    assert_eq!(closing(&service).await, Value::Null, "it has not begun after all");
    price(&service, 900, 140).await;
    service.ingest(&score("mma", "m1", "live", 0, 0, &time(900))).await;
    let known = closing(&service).await;
    assert_eq!((&known["at"], &known["reason"]), (&json!(time(900)), &json!("started")), "earlier than announced");
    assert_eq!(known["outcomes"][0]["price"], 140);
}

#[tokio::test]
async fn history_of_a_removed_event_stays() {
    let service = with_fight().await;
    price(&service, 0, 110).await;
    service.ingest(&remove("mma", "m1")).await;
    assert_eq!(service.get("/v1/sports/mma/events/m1").await.status, 404);
    let answer = service.get(LINES).await;
    assert_eq!(points(&answer.json()["lines"][0]), at(&[(0, json!(110)), (0, Value::Null)]));
    for (path, expected) in [
        ("/v1/sports/mma/events/m2/lines", (404, "event_not_found")),
        ("/v1/sports/golf/events/m1/lines", (404, "event_not_found")),
        ("/v1/sports/mma/events/m1/line", (404, "not_found")),
        ("/v1/sports/mma/events/m1/lines?as_of=2026-11-14T23:39:00Z", (400, "invalid_parameter")),
    ] {
        let answer = service.get(path).await;
        assert_eq!(error(&answer), (expected.0, expected.1.to_owned()), "{path}");
    }
}

#[tokio::test]
async fn ranges_begin_with_the_price_in_force() {
    let service = with_fight().await;
    for (step, american) in [(0, 110), (60, 120), (120, 130), (180, 140)] {
        price(&service, step, american).await;
    }
    service.go_to(200).await;
    for (query, expected) in [
        (String::new(), at(&[(0, json!(110)), (60, json!(120)), (120, json!(130)), (180, json!(140))])),
        (format!("from={}", time(90)), at(&[(60, json!(120)), (120, json!(130)), (180, json!(140))])),
        (format!("from={}&to={}", time(120), time(179)), at(&[(120, json!(130))])),
        (format!("to={}", time(60)), at(&[(0, json!(110)), (60, json!(120))])),
        ("every=1m".into(), at(&[(0, json!(110)), (60, json!(120)), (120, json!(130)), (180, json!(140))])),
        (format!("every=50s&from={}", time(70)), at(&[(110, json!(120)), (160, json!(130))])),
        (format!("every=90s&to={}", time(179)), at(&[(0, json!(110)), (90, json!(120))])),
    ] {
        let answer = service.get(&format!("{LINES}?{query}")).await;
        assert_eq!(points(&answer.json()["lines"][0]), expected, "{query}");
    }
    let none = service.get(&format!("{LINES}?to=2026-11-14T23:38:00Z")).await;
    assert_eq!(none.json()["lines"], json!([]));
}

#[tokio::test]
async fn pages_visit_every_point_once() {
    let service = with_fight().await;
    for (step, american) in (0..).step_by(30).zip(110..121) {
        price(&service, step, american).await;
        if step % 60 == 0 {
            let other = moneyline_at("mma", "m1", "fanduel", &time(step), 300 + american, -400);
            service.ingest(&other).await;
        }
    }
    service.go_to(330).await;
    for query in ["", "&every=20s"] {
        let all = service.get(&format!("{LINES}?limit=1000{query}")).await.json();
        for limit in [1, 2, 3, 7] {
            let mut found: Vec<Vec<(String, Value)>> = vec![Vec::new(); 2];
            let mut path = Some(format!("{LINES}?limit={limit}{query}"));
            while let Some(page) = path {
                let answer = service.get(&page).await;
                for line in answer.json()["lines"].as_array().expect("lines") {
                    let shown = points(line);
                    assert!(shown.len() <= limit, "{page}");
                    found[usize::from(line["bookmaker"] == "fanduel")].extend(shown);
                }
                path = next(&answer);
            }
            let expected: Vec<_> = all["lines"].as_array().expect("lines").iter().map(points).collect();
            assert_eq!(found, expected, "{limit} {query}");
        }
    }
}

#[tokio::test]
async fn filters_choose_lines_and_outcomes() {
    let service = with_fight().await;
    price(&service, 0, 110).await;
    let total = |point: &str, price: i32| {
        let outcomes = format!(
            r#"[{{"name":"Over","price":{price},"point":{point}}},{{"name":"Under","price":-115,"point":{point}}}]"#
        );
        odds_at("mma", "m1", "betmgm", "total_rounds", &time(0), &outcomes)
    };
    service.ingest(&total("2.5", -105)).await;
    let uk = moneyline_at("mma", "m1", "skybet", &time(0), 105, -120);
    service.ingest(&[uk, total("1.5", 140), event_with("mma", "m1", &time(COMMENCE), "scheduled")].concat()).await;
    service.go_to(60).await;
    let lines = |answer: &Answer| {
        let json = answer.json();
        let name = |line: &Value| format!("{} {}", line["bookmaker"], line["market"]).replace('"', "");
        json["lines"].as_array().expect("lines").iter().map(name).collect::<Vec<_>>().join(", ")
    };
    for (query, expected) in [
        ("", "betmgm moneyline, betmgm total_rounds"),
        ("regions=uk", "skybet moneyline"),
        ("bookmaker=skybet", "skybet moneyline"),
        ("bookmaker=skybet&regions=us", ""),
        ("market=total_rounds", "betmgm total_rounds"),
        ("market=totals&regions=us,uk", "betmgm total_rounds"),
        ("name=Home%20m1", "betmgm moneyline"),
        ("name=Over&point=1.5", "betmgm total_rounds"),
        ("name=Over&point=9.5", ""),
        ("description=Somebody", ""),
    ] {
        let answer = service.get(&format!("{LINES}?{query}")).await;
        assert_eq!((answer.status, lines(&answer)), (200, expected.to_owned()), "{query}");
    }
    let over = service.get(&format!("{LINES}?name=Over")).await.json();
    assert_eq!(over["lines"][0]["opening"]["outcomes"].as_array().map(Vec::len), Some(1));
    for (query, param) in [
        ("bookmaker=nobody", "bookmaker"),
        ("every=1500ms", "every"),
        ("every=0s", "every"),
        ("every=soon", "every"),
        ("limit=1001", "limit"),
        ("limit=0", "limit"),
        ("after=zz", "after"),
        ("point=high", "point"),
        ("from=yesterday", "from"),
        ("from=2026-11-14T23:39:00Z&to=2026-11-14T23:38:00Z", "to"),
    ] {
        let answer = service.get(&format!("{LINES}?{query}")).await;
        assert_eq!((error(&answer), &*answer.param()), ((400, "invalid_parameter".into()), param), "{query}");
    }
}

#[tokio::test]
async fn long_answers_cost_more() {
    let service = with_fight().await;
    price(&service, 0, 110).await;
    service.go_to(590).await;
    let key = limited(&service, 1000, Some(4), None).await;
    let used = |answer: &Answer| answer.header("x-requests-used").expect("a header").to_owned();
    let get = async |every: &str, limit: u32| {
        service.get_as(&key.secret, &format!("{LINES}?every={every}&limit={limit}")).await
    };
    let five_hundred = get("1s", 500).await;
    assert_eq!((five_hundred.status, &*used(&five_hundred)), (200, "1"));
    let more = get("1s", 501).await;
    assert_eq!((more.status, &*used(&more)), (200, "3"), "one for each 500 begun");
    let too_much = get("1s", 501).await;
    assert_eq!((error(&too_much), &*used(&too_much)), ((429, "quota_exceeded".into()), "4"), "one is charged");
    assert!(too_much.text().contains("costs 2 requests"), "{}", too_much.text());
}

#[tokio::test]
async fn answer_of_too_many_points_is_refused() {
    let service = Service::start().await;
    service.ingest(&event("mma", "m1", &time(5000))).await;
    let books = (0..21).map(|at| format!("book_{at}"));
    let lines: String = books
        .map(|book| bookmaker(&book, "A book", r#"["us"]"#) + &moneyline_at("mma", "m1", &book, &time(0), 110, -150))
        .collect();
    service.ingest(&lines).await;
    service.go_to(1000).await;
    let refused = service.get(&format!("{LINES}?every=1s&limit=1000")).await;
    assert_eq!((error(&refused), refused.header("x-requests-used")), ((400, "invalid_parameter".into()), Some("1")));
    assert!(refused.text().contains("more than 20000 points"), "{}", refused.text());
    let fewer = service.get(&format!("{LINES}?every=1s&limit=900")).await;
    assert_eq!((fewer.status, fewer.header("x-requests-used")), (200, Some("39")), "18,900 points are 38 requests");
}
