//! Get Odds as the bare array.

use super::fixture::{
    EVENING, closed, error, event, every_sport, fields, first_price, key, message, moneyline, moneyline_at, odds,
    records, remove, restricted, total, tournament,
};
use crate::harness::Service;
use oddsbox::keys::KeyKind;

const FIGHT: &str = r#"
{"type":"event","sport":"mma","id":"ufc1","competition":"UFC 400","commence_time":"2026-11-15T02:00:00Z","home":"Ana \"The Ace\" Ruiz","away":"Bea Hölt","status":"scheduled"}
{"type":"odds","sport":"mma","event":"ufc1","bookmaker":"draftkings","market":"moneyline","last_update":"2026-11-14T23:38:30Z","format":"american","outcomes":[{"name":"Ana \"The Ace\" Ruiz","price":-110},{"name":"Bea Hölt","price":150}]}
"#;

#[tokio::test]
async fn a_record_has_its_exact_shape_in_each_of_the_three_formats() {
    let service = Service::start().await;
    service.ingest(FIGHT).await;
    let id = service.get("/v1/sports/mma/odds").await.json()[0]["id"].to_string();
    for (query, format, ana, bea) in [
        ("", "american", "-110", "150"),
        ("?odds_format=american", "american", "-110", "150"),
        ("?odds_format=decimal", "decimal", "1.909", "2.5"),
        ("?odds_format=fractional", "fractional", r#""10/11""#, r#""3/2""#),
    ] {
        let answer = service.get(&format!("/v1/sports/mma/odds{query}")).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.header("content-type"), Some("application/json"));
        let outcomes = format!(
            r#"[{{"name":"Ana \"The Ace\" Ruiz","price":{ana},"point":null}},{{"name":"Bea Hölt","price":{bea},"point":null}}]"#
        );
        assert_eq!(
            answer.text(),
            format!(
                r#"[{{"id":{id},"sport_key":"mma","event_id":"ufc1","bookmaker":"draftkings","market":"moneyline","format":"{format}","last_update":"2026-11-14T23:38:30Z","outcomes":{outcomes}}}]"#
            )
        );
    }
}

#[tokio::test]
async fn point_is_null_without_a_line_and_a_signed_number_with_one() {
    let service = Service::start().await;
    let spread = r#"[{"name":"Home f1","price":-110,"point":-3.5},{"name":"Away f1","price":-110,"point":3.5}]"#;
    let lines = [
        event("american_football", "f1", EVENING),
        moneyline("american_football", "f1", "betmgm", -160, 140),
        odds("american_football", "f1", "betmgm", "spread", spread),
        total("american_football", "f1", "betmgm", "total_points", "44"),
    ];
    service.ingest(&lines.concat()).await;
    let answer = service.get("/v1/sports/american_football/odds").await;
    for part in [
        r#""outcomes":[{"name":"Home f1","price":-160,"point":null},{"name":"Away f1","price":140,"point":null}]"#,
        r#""outcomes":[{"name":"Home f1","price":-110,"point":-3.5},{"name":"Away f1","price":-110,"point":3.5}]"#,
        r#""outcomes":[{"name":"Over","price":-105,"point":44.0},{"name":"Under","price":-115,"point":44.0}]"#,
    ] {
        assert!(answer.text().contains(part), "{part}\n{answer:?}");
    }
}

#[tokio::test]
async fn every_format_returns_the_same_records() {
    let service = Service::start().await;
    service.ingest(&every_region()).await;
    let american = records(&service.get("/v1/sports/tennis/odds?regions=us,uk,eu,au").await);
    for format in ["decimal", "fractional"] {
        let answer = service.get(&format!("/v1/sports/tennis/odds?regions=us,uk,eu,au&odds_format={format}")).await;
        assert_eq!(records(&answer), american);
        assert!(answer.json().as_array().unwrap().iter().all(|record| record["format"] == format));
    }
}

/// One match with prices of one or two bookmakers in each region.
fn every_region() -> String {
    [
        event("tennis", "t1", EVENING),
        moneyline("tennis", "t1", "fanduel", 120, -140),
        moneyline("tennis", "t1", "coral", 125, -145),
        moneyline("tennis", "t1", "betvictor", 130, -150),
        moneyline("tennis", "t1", "neds", 135, -155),
        moneyline("tennis", "t1", "betonlineag", 140, -160),
    ]
    .concat()
}

#[tokio::test]
async fn regions_choose_the_bookmakers() {
    let service = Service::start().await;
    service.ingest(&every_region()).await;
    for (query, books) in [
        ("", "betonlineag fanduel"),
        ("?regions=us", "betonlineag fanduel"),
        ("?regions=uk", "betvictor coral"),
        ("?regions=eu", "betonlineag betvictor"),
        ("?regions=au", "neds"),
        ("?regions=uk,au", "betvictor coral neds"),
        ("?regions=au%2Cuk", "betvictor coral neds"),
        ("?regions=us,uk,eu,au", "betonlineag betvictor coral fanduel neds"),
        ("?region=uk", "betvictor coral"),
        ("?region=uk,au", "betvictor coral neds"),
        ("?region=uk&regions=au", "neds"),
        ("?regions=au&region=uk", "neds"),
    ] {
        let answer = service.get(&format!("/v1/sports/tennis/odds{query}")).await;
        assert_eq!(fields(&answer, "bookmaker").join(" "), books, "{query}");
    }
}

#[tokio::test]
async fn bookmaker_without_regions_ignores_the_default_region() {
    let service = Service::start().await;
    service.ingest(&every_region()).await;
    for (query, books) in [
        ("?bookmaker=neds", "neds"),
        ("?bookmaker=neds&regions=us", ""),
        ("?bookmaker=neds&region=us", ""),
        ("?bookmaker=neds&regions=us,au", "neds"),
        ("?bookmaker=betvictor&regions=eu", "betvictor"),
        ("?bookmaker=fanduel", "fanduel"),
        ("?bookmaker=skybet", ""),
    ] {
        let answer = service.get(&format!("/v1/sports/tennis/odds{query}")).await;
        assert_eq!((answer.status, fields(&answer, "bookmaker").join(" ")), (200, books.into()), "{query}");
    }
}

#[tokio::test]
async fn order_of_results_is_commence_event_bookmaker_market() {
    let service = Service::start().await;
    let (early, late) = ("2026-11-15T01:00:00Z", "2026-11-15T03:00:00Z");
    let mut lines = [event("mma", "a", late), event("mma", "z", early), event("mma", "b", early)].concat();
    for id in ["z", "a", "b"] {
        for book in ["fanduel", "betmgm"] {
            lines += &total("mma", id, book, "total_rounds", "2.5");
            lines += &moneyline("mma", id, book, -110, -110);
        }
    }
    service.ingest(&lines).await;
    let mut expected = Vec::new();
    for id in ["b", "z", "a"] {
        for book in ["betmgm", "fanduel"] {
            for market in ["moneyline", "total_rounds"] {
                expected.push(format!("{id} {book} {market}"));
            }
        }
    }
    let first = service.get("/v1/sports/mma/odds").await;
    assert_eq!(records(&first), expected);
    assert_eq!(service.get("/v1/sports/mma/odds").await.body, first.body, "always the same for the same data");
}

#[tokio::test]
async fn filters_combine() {
    let service = Service::start().await;
    let mut lines = String::new();
    for id in ["m1", "m2"] {
        lines += &event("mma", id, EVENING);
        for book in ["fanduel", "betmgm", "coral"] {
            lines += &moneyline("mma", id, book, -110, -110);
            lines += &total("mma", id, book, "total_rounds", "2.5");
        }
    }
    service.ingest(&lines).await;
    for (query, expected) in [
        ("market=moneyline&bookmaker=coral&event_ids=m2", &["m2 coral moneyline"][..]),
        ("market=total_rounds&regions=uk&event_ids=m1", &["m1 coral total_rounds"]),
        ("market=moneyline&regions=uk,us&event_ids=m1,m2&limit=2", &["m1 betmgm moneyline", "m1 coral moneyline"]),
        ("bookmaker=coral&regions=us", &[]),
        ("market=moneyline&event_ids=m3", &[]),
    ] {
        assert_eq!(records(&service.get(&format!("/v1/sports/mma/odds?{query}")).await), expected, "{query}");
    }
}

#[tokio::test]
async fn event_ids_filter_and_unknown_ones_are_ignored() {
    let service = Service::start().await;
    let mut lines = String::new();
    for id in ["m1", "m2", "m3"] {
        lines += &event("mma", id, EVENING);
        lines += &moneyline("mma", id, "betmgm", -110, -110);
    }
    service.ingest(&lines).await;
    for (ids, expected) in
        [("m2", "m2"), ("m3,m1", "m1 m3"), ("m1,nobody,m1", "m1"), ("nobody", ""), ("no%20body", ""), ("m1,M2", "m1")]
    {
        for list in ["odds", "events", "scores"] {
            let answer = service.get(&format!("/v1/sports/mma/{list}?event_ids={ids}")).await;
            let name = if list == "events" { "id" } else { "event_id" };
            assert_eq!(fields(&answer, name).join(" "), expected, "{list} {ids}");
        }
    }
}

#[tokio::test]
async fn event_ids_are_up_to_100_and_101_is_400() {
    let service = Service::start().await;
    let ids: Vec<String> = (0..101).map(|number| format!("e{number}")).collect();
    for list in ["odds", "events", "scores"] {
        let fits = service.get(&format!("/v1/sports/mma/{list}?event_ids={}", ids[..100].join(","))).await;
        assert_eq!((fits.status, fits.text()), (200, "[]"), "{list}");
        let beyond = service.get(&format!("/v1/sports/mma/{list}?event_ids={}", ids.join(","))).await;
        assert_eq!((error(&beyond), beyond.param()), ((400, "invalid_parameter".into()), "event_ids".into()));
    }
}

#[tokio::test]
async fn limit_is_1_to_500_and_never_clamped() {
    let service = Service::start().await;
    let mut lines = String::new();
    for number in 0..120 {
        let id = format!("t{number:03}");
        lines += &event("tennis", &id, EVENING);
        for book in ["betmgm", "fanduel", "draftkings", "bovada", "betus"] {
            lines += &moneyline("tennis", &id, book, -110, -110);
        }
    }
    service.ingest(&lines).await;
    let count = async |path: &str| service.get(path).await.json().as_array().map(Vec::len);
    for (query, odds, events) in
        [("", 100, 100), ("?limit=1", 1, 1), ("?limit=101", 101, 101), ("?limit=500", 500, 120)]
    {
        assert_eq!(count(&format!("/v1/sports/tennis/odds{query}")).await, Some(odds), "{query}");
        assert_eq!(count(&format!("/v1/sports/tennis/events{query}")).await, Some(events), "{query}");
        assert_eq!(count(&format!("/v1/sports/tennis/scores{query}")).await, Some(events), "{query}");
    }
    for limit in ["0", "501", "1000", "-1", "%2B5", "5.0", "1e2", "x", "99999999999999999999", "0x10"] {
        for list in ["odds", "events", "scores"] {
            let answer = service.get(&format!("/v1/sports/tennis/{list}?limit={limit}")).await;
            assert_eq!(
                (error(&answer), answer.param()),
                ((400, "invalid_parameter".into()), "limit".into()),
                "{limit}"
            );
            assert!(message(&answer).contains("1 to 500"), "{answer:?}");
        }
    }
}

#[tokio::test]
async fn record_id_is_the_same_after_reopening_and_on_another_machine_and_tells_records_apart() {
    let (service, other) = (Service::start().await, Service::start().await);
    let lines = [
        event("mma", "m1", EVENING),
        event("mma", "m2", EVENING),
        event("boxing", "m1", EVENING),
        moneyline("mma", "m1", "betmgm", -110, -110),
        moneyline("mma", "m1", "fanduel", -110, -110),
        moneyline("mma", "m2", "betmgm", -110, -110),
        total("mma", "m1", "betmgm", "total_rounds", "2.5"),
        moneyline("boxing", "m1", "betmgm", -110, -110),
    ];
    service.ingest(&lines.concat()).await;
    other.ingest(&lines.concat()).await;
    let ids = fields(&service.get("/v1/sports/mma/odds").await, "id");
    assert_eq!(fields(&other.get("/v1/sports/mma/odds").await, "id"), ids, "another machine");
    let mut all = ids.clone();
    all.extend(fields(&service.get("/v1/sports/boxing/odds").await, "id"));
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 5, "each record its own");

    service.ingest(&closed("mma", "m1", "betmgm", "moneyline", "2026-11-14T23:38:40Z")).await;
    service.advance(30).await;
    assert_eq!(records(&service.get("/v1/sports/mma/odds").await).len(), 3);
    let again = moneyline_at("mma", "m1", "betmgm", "2026-11-14T23:38:50Z", 300, -400);
    service.ingest(&again).await;
    service.advance(30).await;
    let reopened = service.get("/v1/sports/mma/odds").await;
    assert_eq!((fields(&reopened, "id"), first_price(&reopened)), (ids, "300".into()));
}

#[tokio::test]
async fn two_meetings_of_the_same_two_fighters_are_two_events() {
    let service = Service::start().await;
    let meeting = |id: &str, commence: &str| event("mma", id, commence).replace(&format!(" {id}\""), " X\"");
    let lines = [
        meeting("first", "2026-11-15T02:00:00Z"),
        meeting("second", "2027-03-01T02:00:00Z"),
        moneyline("mma", "first", "betmgm", -110, -110),
        moneyline("mma", "second", "betmgm", 250, -300),
    ];
    service.ingest(&lines.concat()).await;
    assert_eq!(
        records(&service.get("/v1/sports/mma/odds").await),
        ["first betmgm moneyline", "second betmgm moneyline"]
    );
    service.ingest(&remove("mma", "first")).await;
    assert_eq!(records(&service.get("/v1/sports/mma/odds").await), ["second betmgm moneyline"]);
}

#[tokio::test]
async fn a_key_restricted_to_groups_gets_403_outside_and_200_inside() {
    let service = Service::start().await;
    service.ingest(&every_sport()).await;
    let combat = restricted(&service, &["combat"]).await.secret;
    let two = restricted(&service, &["golf", "tennis"]).await.secret;
    for (sport, of_combat, of_two) in [
        ("mma", 200, 403),
        ("boxing", 200, 403),
        ("tennis", 403, 200),
        ("american_football", 403, 403),
        ("golf", 403, 200),
    ] {
        for list in ["odds", "scores", "events"] {
            let path = format!("/v1/sports/{sport}/{list}");
            for (key, expected) in [(&combat, of_combat), (&two, of_two)] {
                let answer = service.get_as(key, &path).await;
                assert_eq!(answer.status, expected, "{path}");
                assert!(expected == 200 || answer.code() == "forbidden", "{answer:?}");
            }
        }
    }
    let unrestricted = key(&service, KeyKind::Production, |_| {}).await.secret;
    assert_eq!(service.get_as(&unrestricted, "/v1/sports/golf/odds").await.status, 200);
}

#[tokio::test]
async fn a_sport_without_prices_answers_an_empty_array() {
    let service = Service::start().await;
    service.ingest(&[event("tennis", "t1", EVENING), tournament("g1", "Open", EVENING)].concat()).await;
    for sport in ["mma", "boxing", "tennis", "american_football", "golf"] {
        let answer = service.get(&format!("/v1/sports/{sport}/odds")).await;
        assert_eq!((answer.status, answer.text()), (200, "[]"), "{sport}");
    }
}

#[tokio::test]
async fn odds_are_filtered_by_the_start_of_their_event() {
    let service = Service::start().await;
    let at = |id: &str, hour: u32| {
        event("basketball", id, &format!("2026-11-15T{hour:02}:00:00Z"))
            + &moneyline("basketball", id, "betmgm", -110, -110)
    };
    service.ingest(&(at("a", 1) + &at("b", 2) + &at("c", 3))).await;
    for (query, found) in [
        ("commence_from=2026-11-15T02:00:00Z", &["b", "c"][..]),
        ("commence_to=2026-11-15T02:00:00Z", &["a", "b"]),
        ("commence_from=2026-11-15T01:00:01Z&commence_to=2026-11-15T02:59:59Z", &["b"]),
        ("commence_from=2026-11-15T04:00:00%2B02:00&limit=1", &["b"]),
        ("commence_from=2026-11-15T03:00:01Z", &[]),
        ("commence_to=2026-11-15T02:00:00Z&event_ids=b,c", &["b"]),
    ] {
        let answer = service.get(&format!("/v1/sports/basketball/odds?{query}")).await;
        assert_eq!(fields(&answer, "event_id"), found, "{query}");
        let events = service.get(&format!("/v1/sports/basketball/events?{query}")).await;
        assert_eq!(fields(&events, "id"), found, "as List Events: {query}");
    }
    for query in ["commence_from=tomorrow", "commence_to=", "commence_from=2026-11-15"] {
        assert_eq!(
            error(&service.get(&format!("/v1/sports/basketball/odds?{query}")).await),
            (400, "invalid_parameter".into())
        );
    }
}
