//! Market keys as data: how they read in both names, which are returned, in which order, and what their outcomes look like.

use super::fixture::{EVENING, error, event, fields, message, moneyline, odds, records, strings, total};
use super::payload::{ingest_lines, reasons};
use crate::harness::{Answer, Service};
use serde_json::{Value, json};

/// Two outcomes without points.
const PAIR: &str = r#"[{"name":"A","price":-110},{"name":"B","price":-110}]"#;
/// Two outcomes with a point.
const LINE: &str = r#"[{"name":"Over","price":-110,"point":1.5},{"name":"Under","price":-110,"point":1.5}]"#;

/// Prices in markets of a basketball game by one bookmaker.
fn game(markets: &[&str]) -> String {
    let of = |market: &&str| {
        let outcomes = if market.contains("total") || market.contains("spread") { LINE } else { PAIR };
        odds("basketball", "b1", "betmgm", market, outcomes)
    };
    event("basketball", "b1", EVENING) + &markets.iter().map(of).collect::<String>()
}

async fn markets(service: &Service, query: &str) -> Vec<String> {
    let answer = service.get(&format!("/v1/sports/basketball/odds?{query}")).await;
    assert_eq!(answer.status, 200, "{query}: {answer:?}");
    fields(&answer, "market")
}

#[tokio::test]
async fn both_names_are_understood_in_lines_and_filters() {
    let names = [
        ("moneyline", "h2h"),
        ("spread", "spreads"),
        ("total_points", "totals"),
        ("team_total_points", "team_totals"),
        ("outright", "outrights"),
        ("moneyline_3_way_q1", "h2h_3_way_q1"),
        ("alternate_team_total_points_q1", "alternate_team_totals_q1"),
        ("moneyline_lay", "h2h_lay"),
        ("player_points", "player_points"),
        ("alternate_total_points_1st_5_innings", "alternate_totals_1st_5_innings"),
        ("alternate_spread_corners", "alternate_spreads_corners"),
        ("btts_h1", "btts_h1"),
    ];
    for sent in [0, 1] {
        let service = Service::start_with_sandbox().await;
        service.ingest(&game(&names.map(|(own, v4)| if sent == 0 { own } else { v4 }))).await;
        for (own, v4) in names {
            for asked in [own, v4] {
                assert_eq!(markets(&service, &format!("market={asked}")).await, [own], "{asked}");
            }
            let path = format!("/v4/sports/basketball_cup/events/b1/odds?regions=us&markets={v4}");
            let found = service.get(&path).await.json();
            assert_eq!(strings(&found["bookmakers"][0]["markets"], "key"), [v4]);
        }
    }
}

#[tokio::test]
async fn only_the_featured_markets_are_returned_unless_others_are_named() {
    let service = Service::start_with_sandbox().await;
    let all = [
        "total_points",
        "player_points",
        "moneyline",
        "alternate_spread",
        "spread",
        "btts",
        "moneyline_lay",
        "moneyline_q1",
    ];
    service.ingest(&game(&all)).await;
    assert_eq!(markets(&service, "").await, ["moneyline", "spread", "total_points"]);
    assert_eq!(
        markets(&service, "market=all").await,
        ["moneyline", "spread", "total_points", "alternate_spread", "btts", "moneyline_q1", "player_points"],
        "no lay prices, the featured ones first, then by key"
    );
    assert_eq!(markets(&service, "market=moneyline_lay").await, ["moneyline_lay"]);
    assert_eq!(
        markets(&service, "market=player_points,moneyline_lay,spreads,btts").await,
        ["spread", "btts", "moneyline_lay", "player_points"],
        "the order is that of the records, not of the request"
    );
    assert_eq!(markets(&service, "market=btts,btts").await, ["btts"]);
    let event = service.get("/v1/sports/basketball/events/b1").await.json();
    assert_eq!(
        event["markets"],
        json!([
            "moneyline",
            "spread",
            "total_points",
            "alternate_spread",
            "btts",
            "moneyline_lay",
            "moneyline_q1",
            "player_points"
        ])
    );
    let v4 = service.get("/v4/sports/basketball_cup/odds?regions=us").await.json();
    assert_eq!(strings(&v4[0]["bookmakers"][0]["markets"], "key"), ["h2h"]);
}

#[tokio::test]
async fn records_are_sorted_by_bookmaker_then_market() {
    let service = Service::start_with_sandbox().await;
    let lines = ["fanduel", "betmgm"].map(|book| {
        ["player_points", "alternate_spread", "moneyline"]
            .map(|market| odds("basketball", "b1", book, market, PAIR))
            .concat()
    });
    service.ingest(&(event("basketball", "b1", EVENING) + &lines.concat())).await;
    let answer = service.get("/v1/sports/basketball/odds?market=all").await;
    let expected = ["betmgm", "fanduel"]
        .map(|book| ["moneyline", "alternate_spread", "player_points"].map(|market| format!("b1 {book} {market}")));
    assert_eq!(records(&answer), expected.concat());
}

#[tokio::test]
async fn at_most_twenty_markets_can_be_named() {
    let service = Service::start_with_sandbox().await;
    service.ingest(&game(&["moneyline", "moneyline_q1"])).await;
    let keys = |count: usize| {
        let periods = ["q1", "q2", "q3", "q4", "h1", "h2", "p1", "p2", "p3", "s1", "s2"];
        let all = periods.iter().flat_map(|period| [format!("moneyline_{period}"), format!("spread_{period}")]);
        all.take(count).collect::<Vec<_>>().join(",")
    };
    assert_eq!(markets(&service, &format!("market={}", keys(20))).await, ["moneyline_q1"]);
    let answer = service.get(&format!("/v1/sports/basketball/odds?market={}", keys(21))).await;
    assert_eq!((error(&answer), answer.param()), ((400, "invalid_parameter".into()), "market".into()));
    assert!(message(&answer).contains("20"), "{answer:?}");
    for value in ["all,moneyline", "moneyline,", ",", ""] {
        let answer = service.get(&format!("/v1/sports/basketball/odds?market={value}")).await;
        assert_eq!((error(&answer), answer.param()), ((400, "invalid_parameter".into()), "market".into()), "{value}");
    }
}

#[tokio::test]
async fn key_that_reads_matches_nothing_until_it_has_a_price() {
    let service = Service::start_with_sandbox().await;
    service.ingest(&game(&["moneyline"])).await;
    let never = [
        "btts_s3",
        "moneyline_3_way_s9",
        "spread_lay",
        "alternate_team_totals_cards_p3",
        "player_assists_q4",
        "h2h_1st_3_innings",
    ];
    for key in never {
        assert_eq!(markets(&service, &format!("market={key}")).await, [""; 0], "{key}");
        let v4 = service.get(&format!("/v4/sports/basketball_cup/odds?regions=us&markets={key}")).await;
        assert_eq!((v4.status, v4.json()[0]["bookmakers"].clone()), (200, json!([])), "{key}");
    }
    service.ingest(&odds("basketball", "b1", "betmgm", "btts_s3", PAIR)).await;
    service.advance(30).await;
    assert_eq!(markets(&service, "market=btts_s3").await, ["btts_s3"]);
}

#[tokio::test]
async fn key_that_does_not_read_is_400_with_the_nearest() {
    let service = Service::start_with_sandbox().await;
    service.ingest(&game(&["moneyline", "player_of_our_own"])).await;
    for (asked, nearest) in [
        ("money_line", "moneyline"),
        ("Moneyline", "moneyline"),
        ("moneyline,spraed", "spread"),
        ("total_point", "total_points"),
        ("alternate_spred_q1", "alternate_spread_q1"),
        ("h2hh", "h2h"),
        ("alternate_totalls", "alternate_totals"),
        ("double_chanse_h1", "double_chance_h1"),
        ("player_pointz", "player_points"),
        ("player_pointz_q1_alternate", "player_points_q1_alternate"),
        ("player_of_our_owm", "player_of_our_own"),
    ] {
        let answer = service.get(&format!("/v1/sports/basketball/odds?market={asked}")).await;
        assert_eq!((error(&answer), answer.param()), ((400, "invalid_parameter".into()), "market".into()), "{asked}");
        assert!(message(&answer).contains(&format!("the nearest is {nearest}.")), "{asked}: {}", message(&answer));
    }
    for key in ["handicaps", "money line", "moneyline_q0", "moneyline_q10", "player_", &"a".repeat(200)] {
        let path = format!("/v1/sports/basketball/odds?market={}", key.replace(' ', "%20"));
        assert_eq!(error(&service.get(&path).await), (400, "invalid_parameter".into()), "{key}");
        let v4 = format!("/v4/sports/basketball_cup/odds?regions=us&markets=h2h,{}", key.replace(' ', "%20"));
        assert_eq!(super::v4::error(&service.get(&v4).await), (422, "INVALID_MARKET".into()), "{key}");
    }
}

#[tokio::test]
async fn prop_is_known_from_the_catalogue_or_once_it_had_a_price_in_this_world() {
    let service = Service::start_with_sandbox().await;
    service.ingest(&game(&["moneyline"])).await;
    let path = "/v1/sports/basketball/odds?market=player_wire_only";
    assert_eq!(error(&service.get(path).await), (400, "invalid_parameter".into()));
    assert_eq!(markets(&service, "market=player_rebounds").await, [""; 0], "the catalogue has it");
    let v4 = service.get("/v4/sports/basketball_cup/odds?regions=us&markets=player_wire_only").await;
    assert_eq!((v4.status, fields(&v4, "id")), (200, vec!["b1".to_owned()]));
    service.ingest(&game(&["player_wire_only"])).await;
    service.advance(30).await;
    assert_eq!(fields(&service.get(path).await, "market"), ["player_wire_only"]);
    assert_eq!(error(&service.get_as(&service.sandbox, path).await), (400, "invalid_parameter".into()));
    let at = "2026-11-14T23:38:40Z";
    service.ingest(&super::fixture::closed("basketball", "b1", "betmgm", "player_wire_only", at)).await;
    service.advance(30).await;
    assert_eq!(service.get(path).await.text(), "[]", "it had a price");
    let service = service.restart_now().await;
    assert_eq!(service.get(path).await.text(), "[]", "after a restart");
}

#[tokio::test]
async fn markets_lists_what_has_a_price_now() {
    let service = Service::start_with_sandbox().await;
    assert_eq!(service.get("/v1/markets").await.text(), "[]");
    let lines =
        game(&["player_wire_only", "player_points", "moneyline", "btts", "moneyline_lay", "alternate_total_points_q1"])
            + &event("mma", "m1", EVENING)
            + &moneyline("mma", "m1", "betmgm", -110, -110)
            + &total("mma", "m1", "betmgm", "total_rounds", "2.5");
    service.ingest(&lines).await;
    let list = [
        ("moneyline", json!("ways"), json!(["mma", "basketball"])),
        ("total_rounds", json!("over_under"), json!(["mma"])),
        ("alternate_total_points_q1", json!("over_under"), json!(["basketball"])),
        ("btts", json!("yes_no"), json!(["basketball"])),
        ("moneyline_lay", json!("ways"), json!(["basketball"])),
        ("player_points", json!("over_under"), json!(["basketball"])),
        ("player_wire_only", json!(null), json!(["basketball"])),
    ];
    let expected: Value =
        list.into_iter().map(|(key, shape, sports)| json!({"key": key, "shape": shape, "sports": sports})).collect();
    assert_eq!(service.get("/v1/markets").await.json(), expected);
    service.ingest(&super::fixture::closed("basketball", "b1", "betmgm", "btts", "2026-11-14T23:38:40Z")).await;
    service.advance(30).await;
    assert!(!fields(&service.get("/v1/markets").await, "key").contains(&"btts".to_owned()));
    assert_eq!(service.get("/v1/markets?sport=mma").await.status, 400);
}

/// The outcomes of the only record, as text.
fn outcomes(answer: &Answer) -> String {
    assert_eq!(fields(answer, "id").len(), 1, "{answer:?}");
    let (_, rest) = answer.text().split_once(r#""outcomes":"#).expect("outcomes");
    rest.strip_suffix("}]").expect("the end").to_owned()
}

#[tokio::test]
async fn outcomes_come_back_as_they_were_sent() {
    let service = Service::start_with_sandbox().await;
    service.ingest(&event("soccer", "s1", EVENING)).await;
    for (market, sent) in [
        (
            "alternate_spread",
            r#"[{"name":"Home s1","price":-110,"point":-1.25},{"name":"Away s1","price":-110,"point":1.25},{"name":"Home s1","price":150,"point":-1.75},{"name":"Away s1","price":-170,"point":1.75},{"name":"Home s1","price":150,"point":-1.75}]"#,
        ),
        (
            "team_total_points",
            r#"[{"name":"Over","description":"Home s1","price":-110,"point":1.5},{"name":"Under","description":"Home s1","price":-110,"point":1.5},{"name":"Over","description":"Away s1","price":120,"point":1.5}]"#,
        ),
        (
            "moneyline_3_way_h1",
            r#"[{"name":"Draw","price":220,"point":null},{"name":"Home s1","price":130,"point":null},{"name":"Away s1","price":180,"point":null}]"#,
        ),
        ("btts", r#"[{"name":"Yes","price":-120,"point":null},{"name":"No","price":100,"point":null}]"#),
        (
            "double_chance",
            r#"[{"name":"Home s1 or Draw","price":-300,"point":null},{"name":"Away s1 or Draw","price":-150,"point":null},{"name":"Home s1 or Away s1","price":-250,"point":null}]"#,
        ),
        (
            "player_goal_scorer_anytime",
            r#"[{"name":"Yes","description":"J. \"Jo\" Õun","price":250,"point":null},{"name":"Yes","description":"K. Li","price":400,"point":null}]"#,
        ),
        ("correct_score", r#"[{"name":"1-0","price":600,"point":null},{"name":"0-0","price":800,"point":null}]"#),
        ("player_shots", r#"[{"name":"Over","description":"K. Li","price":-110,"point":2.5}]"#),
    ] {
        service.ingest(&odds("soccer", "s1", "betmgm", market, sent)).await;
        service.advance(30).await;
        let answer = service.get(&format!("/v1/sports/soccer/odds?market={market}")).await;
        assert_eq!(outcomes(&answer), sent, "{market}");
    }
}

#[tokio::test]
async fn spreads_of_fights_are_accepted_and_points_are_not_rounds() {
    let service = Service::start_with_sandbox().await;
    let spread = r#"[{"name":"Home m1","price":-110,"point":-4.5},{"name":"Away m1","price":-110,"point":4.5}]"#;
    let lines = event("mma", "m1", EVENING)
        + &odds("mma", "m1", "betmgm", "spreads", spread)
        + &odds("mma", "m1", "betmgm", "totals", LINE)
        + &odds("mma", "m1", "fanduel", "alternate_totals", LINE);
    service.ingest(&lines).await;
    assert_eq!(
        fields(&service.get("/v1/sports/mma/odds?market=all").await, "market"),
        ["spread", "total_rounds", "alternate_total_rounds"]
    );
    let report = ingest_lines(&service, &odds("mma", "m1", "betmgm", "alternate_total_points", LINE)).await;
    assert_eq!(report.rejected_by_reason, reasons([("market_not_of_sport", 1)]));
    let report = ingest_lines(&service, &odds("mma", "m1", "betmgm", "handicap_of_corners", LINE)).await;
    assert_eq!(report.rejected_by_reason, reasons([("unknown_market", 1)]));
}

/// All pages of Get Odds, each checked for its length.
async fn pages(service: &Service, path: &str, limit: usize) -> Vec<Value> {
    let mut all = Vec::new();
    let mut next = Some(format!("{path}&limit={limit}"));
    while let Some(at) = next.take() {
        let page = service.get(&at).await;
        let Value::Array(mut part) = page.json() else { panic!("{page:?}") };
        let link = page.header("link").and_then(|link| link.strip_prefix('<')).and_then(|link| link.split_once('>'));
        next = link.map(|(path, _)| path.to_owned());
        assert!(part.len() == limit || next.is_none(), "only the last page is short: {at}");
        all.append(&mut part);
    }
    all
}

#[tokio::test]
async fn pages_of_one_event_with_hundreds_of_markets_are_the_whole_answer() {
    let service = Service::start_with_sandbox().await;
    let names: Vec<String> =
        (0..230).map(|number| format!("player_prop_{:02}x{number}", (number * 37) % 100)).collect();
    let mut keys: Vec<&str> = names.iter().map(String::as_str).collect();
    keys.extend(["moneyline", "spread", "moneyline_q1", "alternate_spread", "moneyline_lay", "total_points"]);
    let lines = game(&keys);
    service
        .ingest(&(lines.clone() + &lines.replace("betmgm", "fanduel").replace("player_prop_0", "batter_prop_0")))
        .await;
    let path = "/v1/sports/basketball/odds?market=all";
    let Value::Array(whole) = service.get(&format!("{path}&limit=500")).await.json() else { panic!("a list") };
    assert_eq!(whole.len(), 2 * 235);
    for limit in [1, 64, 235, 469, 470] {
        assert!(pages(&service, path, limit).await == whole, "{limit}");
        service.advance(60).await;
    }
    let some = "/v1/sports/basketball/odds?market=player_prop_00x0,moneyline_lay,moneyline_q1,spread";
    let Value::Array(whole) = service.get(&format!("{some}&limit=500")).await.json() else { panic!("a list") };
    assert_eq!(whole.len(), 7);
    assert!(pages(&service, some, 2).await == whole);
}

#[tokio::test]
async fn bouts_carry_the_moneyline_alone() {
    let service = Service::start_with_sandbox().await;
    let lines = event("mma", "m1", EVENING)
        + &moneyline("mma", "m1", "betmgm", -110, -110)
        + &odds("mma", "m1", "betmgm", "moneyline_3_way", PAIR)
        + &odds("mma", "m1", "betmgm", "moneyline_lay", PAIR)
        + &odds("mma", "m1", "betmgm", "player_points", PAIR);
    service.ingest(&lines).await;
    let plain = service.get("/v1/sports/mma/odds?group=bout").await;
    assert_eq!(strings(&plain.json()["bouts"][0]["books"], "book"), ["betmgm"]);
    assert_eq!(service.get("/v1/sports/mma/odds?group=bout&market=h2h").await.body, plain.body);
    for market in ["all", "moneyline_lay", "moneyline,spread", "player_points"] {
        let answer = service.get(&format!("/v1/sports/mma/odds?group=bout&market={market}")).await;
        assert_eq!((error(&answer), answer.param()), ((400, "invalid_parameter".into()), "market".into()), "{market}");
    }
}

#[tokio::test]
async fn responses_with_every_kind_of_market_are_as_documented() {
    let service = Service::start_with_sandbox().await;
    let prop = r#"[{"name":"Over","description":"K. Li","price":-110,"point":2.5},{"name":"Yes","price":150}]"#;
    let field = super::fixture::tournament("w1", "The Winner", EVENING).replace("\"golf\"", "\"basketball\"");
    let lines = game(&["moneyline", "moneyline_lay", "alternate_spread"])
        + &odds("basketball", "b1", "betmgm", "player_points", prop)
        + &field
        + &odds("basketball", "w1", "betmgm", "outright", PAIR);
    service.ingest(&lines).await;
    let document: Value = serde_json::from_str(service.get("/openapi.json").await.text()).expect("a document");
    for (template, path) in [
        ("/v1/sports", "/v1/sports"),
        ("/v1/books", "/v1/books"),
        ("/v1/markets", "/v1/markets"),
        ("/v1/sports/{sport_key}/competitions", "/v1/sports/basketball/competitions"),
        ("/v1/sports/{sport_key}/odds", "/v1/sports/basketball/odds?market=player_points,outright,moneyline_lay"),
        ("/v1/sports/{sport_key}/events", "/v1/sports/basketball/events"),
        ("/v1/sports/{sport_key}/events/{event_id}", "/v1/sports/basketball/events/w1"),
        ("/v1/sports/{sport_key}/scores", "/v1/sports/basketball/scores"),
        (
            "/v4/sports/{sport}/events/{event_id}/odds",
            "/v4/sports/basketball_cup/events/b1/odds?regions=us&markets=player_points",
        ),
        ("/v4/sports/{sport}/events/{event_id}/markets", "/v4/sports/basketball_cup/events/b1/markets?regions=us"),
    ] {
        let answer = service.get(path).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let schema = &document["paths"][template]["get"]["responses"]["200"]["content"]["application/json"]["schema"];
        crate::harness::schema::check(&document, schema, &answer.json())
            .unwrap_or_else(|error| panic!("{path}: {error}"));
    }
}
