//! The shape of each answer, byte for byte.

use crate::http::testing::{Fixture, Got};

fn ok(got: &Got) -> String {
    assert_eq!(got.status, 200, "{}", got.text());
    assert_eq!(got.header("content-type"), Some("application/json"));
    assert_eq!(got.header("x-content-type-options"), Some("nosniff"));
    got.text().to_owned()
}

/// The event ids of a list.
fn ids(got: &Got) -> Vec<String> {
    let list: serde_json::Value = serde_json::from_str(&ok(got)).unwrap();
    let id = |item: &serde_json::Value| item.get("event_id").or(item.get("id")).unwrap().as_str().unwrap().to_owned();
    list.as_array().unwrap().iter().map(id).collect()
}

#[test]
fn one_odds_record() {
    let body = ok(&Fixture::new().get("/v1/sports/mma/odds?bookmaker=betmgm&market=moneyline"));
    let id = serde_json::from_str::<serde_json::Value>(&body).unwrap()[0]["id"].as_str().unwrap().to_owned();
    let expected = format!(
        r#"[{{"id":"{id}","sport_key":"mma","event_id":"mma-1","bookmaker":"betmgm","market":"moneyline","#
    ) + r#""format":"american","last_update":"2026-11-14T23:38:40Z","outcomes":["#
        + r#"{"name":"Ana Silva","price":-110,"point":null},{"name":"Bea \"The Bull\" Costa","price":100,"point":null}]}]"#;
    assert_eq!(body, expected);
    assert_eq!(id.len(), 16);
}

#[test]
fn prices_in_each_format_and_points_where_there_are_any() {
    let fixture = Fixture::new();
    for (format, over) in [("american", "-105"), ("decimal", "1.952"), ("fractional", "\"20/21\"")] {
        let body = ok(&fixture.get(&format!("/v1/sports/mma/odds?market=totals&odds_format={format}")));
        assert!(body.contains(&format!("\"format\":\"{format}\"")), "{body}");
        assert!(body.contains(&format!(r#"{{"name":"Over","price":{over},"point":2.5}}"#)), "{body}");
    }
}

#[test]
fn which_records_are_asked_for() {
    let fixture = Fixture::new();
    let records = |query: &str| {
        let list: serde_json::Value =
            serde_json::from_str(&ok(&fixture.get(&format!("/v1/sports/mma/odds?{query}")))).unwrap();
        let text = |item: &serde_json::Value, name: &str| item[name].as_str().unwrap().to_owned();
        let name = |item: &serde_json::Value| {
            format!("{}/{}/{}", text(item, "event_id"), text(item, "bookmaker"), text(item, "market"))
        };
        list.as_array().unwrap().iter().map(name).collect::<Vec<_>>().join(" ")
    };
    let (live, us) = ("mma-2/unibet/moneyline", "mma-1/betmgm/moneyline mma-1/betmgm/total_rounds");
    let (uk, all) =
        ("mma-1/bet365/moneyline", "mma-1/bet365/moneyline mma-1/betmgm/moneyline mma-1/betmgm/total_rounds");
    for (query, expected) in [
        ("", format!("{live} {us}")),
        ("regions=us", format!("{live} {us}")),
        ("region=uk", format!("{live} {uk}")),
        ("region=us&regions=uk", format!("{live} {uk}")),
        ("region=us,uk", format!("{live} {all}")),
        ("regions=us%2Cuk", format!("{live} {all}")),
        ("regions=au", String::new()),
        ("bookmaker=bet365", uk.to_owned()),
        ("bookmaker=bet365&regions=us", String::new()),
        ("market=h2h", format!("{live} mma-1/betmgm/moneyline")),
        ("market=spread", String::new()),
        ("market=top5", String::new()),
        ("event_ids=mma-2,nobody", live.to_owned()),
        ("event_ids=nobody", String::new()),
        ("limit=1", live.to_owned()),
    ] {
        assert_eq!(records(query), expected, "{query}");
    }
}

#[test]
fn fights_grouped_by_bout() {
    let fixture = Fixture::new();
    let body = ok(&fixture.get("/v1/sports/mma/odds?group=bout&regions=us,uk&event_ids=mma-1"));
    let expected = r#"{"sport":"mma","generated_at":"2026-11-14T23:39:00.000Z","sources":["#.to_owned()
        + r#"{"book":"bet365","last_update":"2026-11-14T23:30:40Z","stale":true,"latency_ms":40},"#
        + r#"{"book":"betmgm","last_update":"2026-11-14T23:38:40Z","stale":false,"latency_ms":40},"#
        + r#"{"book":"unibet","last_update":"2026-11-14T23:38:40Z","stale":false,"latency_ms":40}],"#
        + r#""bouts":[{"home":"Ana Silva","away":"Bea \"The Bull\" Costa","commence_time":"2026-11-15T00:39:00Z","books":["#
        + r#"{"book":"bet365","last_update":"2026-11-14T23:38:40Z","outcomes":[{"name":"Ana Silva","price":-120},{"name":"Bea \"The Bull\" Costa","price":105}]},"#
        + r#"{"book":"betmgm","last_update":"2026-11-14T23:38:40Z","outcomes":[{"name":"Ana Silva","price":-110},{"name":"Bea \"The Bull\" Costa","price":100}]}]}]}"#;
    assert_eq!(body, expected);
    let same = ok(&fixture.get("/v1/sports/mma/odds?group=bout&regions=us,uk&event_ids=mma-1&market=moneyline"));
    assert_eq!(same, body);
}

#[test]
fn scores() {
    let fixture = Fixture::new();
    assert_eq!(
        ok(&fixture.get("/v1/sports/mma/scores?status=final")),
        r#"[{"event_id":"mma-3","sport_key":"mma","status":"final","home_team":"Eve Ito","away_team":"Flo Roy","#
            .to_owned()
            + r#""home_score":1,"away_score":0,"periods":[{"number":1,"home_score":10,"away_score":9},"#
            + r#"{"number":2,"home_score":10,"away_score":8}],"updated_at":"2026-11-14T23:38:50Z","winner":"Eve Ito"}]"#
    );
    assert_eq!(
        ok(&fixture.get("/v1/sports/golf/scores")),
        r#"[{"event_id":"golf-1","sport_key":"golf","status":"live","home_team":null,"away_team":null,"#.to_owned()
            + r#""home_score":null,"away_score":null,"periods":[{"number":1,"home_score":66,"away_score":67},"#
            + r#"{"number":2,"home_score":68,"away_score":70}],"updated_at":"2026-11-14T23:38:50Z"}]"#
    );
    assert_eq!(ids(&fixture.get("/v1/sports/mma/scores")), ["mma-3", "mma-2", "mma-1"]);
    assert_eq!(ids(&fixture.get("/v1/sports/mma/scores?event_ids=mma-1,mma-4")), ["mma-1"]);
    assert_eq!(ids(&fixture.get("/v1/sports/mma/scores?status=live&limit=1")), ["mma-2"]);
}

#[test]
fn events_one_and_all() {
    let fixture = Fixture::new();
    assert_eq!(
        ok(&fixture.get("/v1/sports/golf/events/golf-1")),
        r#"{"id":"golf-1","sport_key":"golf","title":"The Open","competition":"Major","competition_key":"golf_the_open_winner","#.to_owned()
            + r#""commence_time":"2026-11-13T22:39:00Z","home_team":null,"away_team":null,"status":"live","#
            + r#""markets":["outright","top5"]}"#
    );
    assert_eq!(
        ok(&fixture.get("/v1/sports/american_football/events")),
        r#"[{"id":"nfl-1","sport_key":"american_football","competition":"Test League","#.to_owned()
            + r#""competition_key":"americanfootball_nfl","#
            + r#""commence_time":"2026-11-15T00:09:00Z","home_team":"Bears","away_team":"Packers","status":"scheduled","#
            + r#""markets":["spread","total_points"]}]"#
    );
    for (query, expected) in [
        ("", &["mma-3", "mma-2", "mma-1", "mma-4"][..]),
        ("?status=cancelled", &["mma-4"]),
        ("?commence_from=2026-11-15T00:39:00Z", &["mma-1", "mma-4"]),
        ("?commence_from=2026-11-15T00:39:00.001Z", &["mma-4"]),
        ("?commence_to=2026-11-14T23:29:00Z", &["mma-3", "mma-2"]),
        ("?commence_from=2026-11-15T01:29:00%2B02:00&commence_to=2026-11-15T00:39:00Z", &["mma-2", "mma-1"]),
        ("?event_ids=mma-4,mma-1&limit=1", &["mma-1"]),
    ] {
        assert_eq!(ids(&fixture.get(&format!("/v1/sports/mma/events{query}"))), expected, "{query}");
    }
}

#[test]
fn sports_and_books() {
    let fixture = Fixture::new();
    assert_eq!(
        ok(&fixture.get("/v1/sports")),
        r#"{"sports":[{"key":"mma","title":"Mixed Martial Arts","group":"combat","active":true,"events":2,"books":3},"#
            .to_owned()
            + r#"{"key":"boxing","title":"Boxing","group":"combat","active":false,"events":0,"books":0},"#
            + r#"{"key":"tennis","title":"Tennis","group":"tennis","active":true,"events":7,"books":1},"#
            + r#"{"key":"american_football","title":"American Football","group":"american_football","active":true,"events":1,"books":1},"#
            + r#"{"key":"golf","title":"Golf","group":"golf","active":true,"events":1,"books":1}]}"#
    );
    let books = r#"[{"key":"bet365","title":"bet365","regions":["uk","eu"]},"#.to_owned()
        + r#"{"key":"betmgm","title":"BetMGM","regions":["us"]},"#
        + r#"{"key":"pinnacle","title":"Pinnacle","regions":["eu","au"]},"#
        + r#"{"key":"unibet","title":"Unibet","regions":["us","uk","eu"]}]"#;
    for _ in 0..2 {
        assert_eq!(ok(&fixture.get("/v1/books")), books);
    }
}

#[test]
fn status_speaks_of_the_keys_world_and_limits() {
    let fixture = Fixture::new();
    let status = |key: &str| ok(&fixture.get_as(key, "/v1/status", &[]));
    assert_eq!(
        status(&fixture.sandbox),
        r#"{"status":"degraded","api_version":"v1","server_time":"2026-11-14T23:39:00Z","#.to_owned()
            + r#""rate_limit":{"burst_per_minute":60,"requests_per_day":10000},"sports_active":4,"history_since":null}"#
    );
    assert_eq!(
        status(&fixture.production),
        r#"{"status":"ok","api_version":"v1","server_time":"2026-11-14T23:39:00Z","#.to_owned()
            + r#""rate_limit":{"burst_per_minute":600,"requests_per_day":1000000},"sports_active":1,"history_since":null}"#
    );
    assert!(status(&fixture.monthly).contains(r#""requests_per_day":100}"#));
    fixture.service.boards.condition().set_unwritable(true);
    assert!(status(&fixture.production).starts_with(r#"{"status":"degraded""#));
}

#[test]
fn worlds_do_not_meet() {
    let fixture = Fixture::new();
    assert_eq!(ids(&fixture.get_as(&fixture.production, "/v1/sports/mma/events", &[])), [""; 0]);
    assert_eq!(ids(&fixture.get_as(&fixture.production, "/v1/sports/tennis/events", &[])), ["tennis-1"]);
    assert_eq!(ids(&fixture.get("/v1/sports/tennis/events")).len(), 7);
}

#[test]
fn trailing_slashes_and_open_pages() {
    let fixture = Fixture::new();
    assert_eq!(ok(&fixture.get("/v1/books/")), ok(&fixture.get("/v1/books")));
    for path in ["/", "/docs", "/docs/", "/docs/style.css", "/openapi.json", "/healthz"] {
        assert_eq!(fixture.anonymous(http::Method::GET, path).status, 200, "{path}");
        let posted = fixture.anonymous(http::Method::POST, path);
        assert_eq!((posted.error(), posted.header("allow")), ((405, "method_not_allowed".into()), Some("GET, HEAD")));
    }
    assert_eq!(fixture.anonymous(http::Method::GET, "/healthz").text(), r#"{"status":"ok"}"#);
}

#[test]
fn pages_visit_every_result_once_and_links_carry_no_key() {
    let fixture = Fixture::new();
    for list in ["odds", "events", "scores"] {
        let mut target = format!("/v1/sports/tennis/{list}?limit=3&api_key={}", fixture.sandbox);
        let mut seen = Vec::new();
        for _ in 0..9 {
            let got = fixture.get_as(&fixture.sandbox, &target, &[]);
            let link = got.header("link").map(ToOwned::to_owned);
            seen.extend(ids(&got));
            let Some(link) = link else { break };
            let next = link.strip_prefix('<').unwrap().strip_suffix(">; rel=\"next\"").unwrap();
            assert!(next.starts_with(&format!("/v1/sports/tennis/{list}?limit=3&after=")), "{next}");
            target = next.to_owned();
        }
        assert_eq!(
            seen,
            ["tennis-1", "tennis-2", "tennis-3", "tennis-4", "tennis-5", "tennis-6", "tennis-7"],
            "{list}"
        );
    }
    let first = fixture.get("/v1/sports/mma/odds?group=bout&limit=1");
    let link = first.header("link").unwrap();
    let second = fixture.get(&link[1..link.find('>').unwrap()]);
    assert!(second.text().contains("Ana Silva") && !second.text().contains("Cy Young"));
    assert_eq!(second.header("link"), None);
}
