//! Best prices, fair prices and edges.

use serde_json::{Value, json};

use super::fixture::{
    EVENING, closed, error, event, fields, message, moneyline, moneyline_at, odds, restricted, time, total, tournament,
};
use crate::harness::{Answer, Service};

const BEST: &str = "/v1/sports/mma/best";
const FAIR: &str = "/v1/sports/mma/fair";
const EDGES: &str = "/v1/sports/mma/edges";

/// A fight with the prices of three bookmakers.
fn three_books(sport: &str, id: &str) -> String {
    [
        event(sport, id, EVENING),
        moneyline(sport, id, "draftkings", 110, -130),
        moneyline(sport, id, "fanduel", 120, -150),
        moneyline(sport, id, "betmgm", 105, -125),
    ]
    .concat()
}

async fn with_three_books() -> Service {
    let service = Service::start().await;
    service.ingest(&three_books("mma", "m1")).await;
    service
}

async fn rows(service: &Service, path: &str) -> Vec<Value> {
    let answer = service.get(path).await;
    assert_eq!(answer.status, 200, "{path} {answer:?}");
    answer.json().as_array().expect("rows").clone()
}

/// Name, price and bookmaker of each outcome of a row of best prices.
fn offers(row: &Value) -> Vec<Value> {
    let outcomes = row["outcomes"].as_array().expect("outcomes");
    outcomes.iter().map(|outcome| json!([outcome["name"], outcome["price"], outcome["bookmaker"]])).collect()
}

/// The sides of a bet with American prices; `at` is a point.
fn sides(sides: &[(&str, i32, &str)]) -> String {
    let side = |(name, price, point): &(&str, i32, &str)| format!(r#"{{"name":"{name}","price":{price}{point}}}"#);
    format!("[{}]", sides.iter().map(side).collect::<Vec<_>>().join(","))
}

fn next_page(answer: &Answer) -> Option<String> {
    let link = answer.header("link")?;
    Some(link.strip_prefix('<')?.split_once(">; rel=\"next\"")?.0.to_owned())
}

#[tokio::test]
async fn the_shape_of_best_prices_is_exact() {
    let service = with_three_books().await;
    assert_eq!(
        service.get(BEST).await.text(),
        concat!(
            r#"[{"event_id":"m1","sport_key":"mma","market":"moneyline","point":null,"method":"best","#,
            r#""format":"american","hold":0.01,"overround":0.010101,"age_s":30,"#,
            r#""bookmakers":["betmgm","draftkings","fanduel"],"outcomes":["#,
            r#"{"name":"Home m1","price":120,"bookmaker":"fanduel","next":{"price":110,"bookmaker":"draftkings"},"point":null},"#,
            r#"{"name":"Away m1","price":-125,"bookmaker":"betmgm","next":{"price":-130,"bookmaker":"draftkings"},"point":null}]}]"#
        )
    );
    let one = rows(&service, &format!("{BEST}?bookmaker=fanduel&odds_format=decimal")).await;
    assert_eq!(offers(&one[0]), [json!(["Home m1", 2.2, "fanduel"]), json!(["Away m1", 1.667, "fanduel"])]);
    assert_eq!(one[0]["outcomes"][0]["next"], Value::Null);
}

#[tokio::test]
async fn the_shape_of_fair_prices_is_exact() {
    let service = with_three_books().await;
    assert_eq!(
        service.get(FAIR).await.text(),
        concat!(
            r#"[{"event_id":"m1","sport_key":"mma","market":"moneyline","point":null,"method":"power","#,
            r#""from":"consensus","format":"american","age_s":30,"bookmakers":["betmgm","draftkings","fanduel"],"#,
            r#""outcomes":[{"name":"Home m1","probability":0.454597,"price":120,"point":null},"#,
            r#"{"name":"Away m1","probability":0.545403,"price":-120,"point":null}]}]"#
        )
    );
    assert_eq!(
        service.get(&format!("{FAIR}?from=betmgm&odds_format=decimal&method=additive")).await.text(),
        concat!(
            r#"[{"event_id":"m1","sport_key":"mma","market":"moneyline","point":null,"method":"additive","#,
            r#""from":"betmgm","format":"decimal","overround":0.04336,"age_s":30,"bookmakers":["betmgm"],"#,
            r#""outcomes":[{"name":"Home m1","probability":0.466125,"price":2.145,"point":null},"#,
            r#"{"name":"Away m1","probability":0.533875,"price":1.873,"point":null}]}]"#
        )
    );
    // Two bookmakers are no consensus, and one that is not offered in a region has no price there.
    assert_eq!(rows(&service, &format!("{FAIR}?regions=uk")).await, [json!(null); 0]);
    assert_eq!(rows(&service, &format!("{FAIR}?from=betmgm&regions=uk")).await, [json!(null); 0]);
    service.ingest(&closed("mma", "m1", "fanduel", "moneyline", &time(0))).await;
    service.advance(30).await;
    assert_eq!(rows(&service, FAIR).await, [json!(null); 0]);
    assert_eq!(rows(&service, BEST).await[0]["bookmakers"], json!(["betmgm", "draftkings"]));
}

#[tokio::test]
async fn the_shape_of_edges_is_exact() {
    let service = with_three_books().await;
    assert_eq!(
        service.get(&format!("{EDGES}?kind=ev&min=0.0001")).await.text(),
        concat!(
            r#"[{"kind":"ev","event_id":"m1","sport_key":"mma","market":"moneyline","point":null,"edge":0.000114,"#,
            r#""method":"power","reference":"consensus","format":"american","probability":0.454597,"age_s":30,"#,
            r#""bookmakers":["betmgm","draftkings","fanduel"],"legs":[{"bookmaker":"fanduel","name":"Home m1","#,
            r#""point":null,"price":120,"stake":1.0,"age_s":30}]}]"#
        )
    );
    assert_eq!(service.get(&format!("{EDGES}?kind=ev")).await.text(), "[]", "one per cent by default");
    assert_eq!(service.get(&format!("{EDGES}?kind=arbitrage&min=0")).await.text(), "[]");
    service.ingest(&moneyline("mma", "m1", "betrivers", -200, -120)).await;
    service.ingest(&moneyline_at("mma", "m1", "bovada", &time(0), 130, -170)).await;
    service.advance(30).await;
    assert_eq!(
        service.get(&format!("{EDGES}?kind=arbitrage")).await.text(),
        concat!(
            r#"[{"kind":"arbitrage","event_id":"m1","sport_key":"mma","market":"moneyline","point":null,"#,
            r#""edge":0.020161,"method":"best","reference":null,"format":"american","age_s":60,"#,
            r#""bookmakers":["bovada","betrivers"],"legs":["#,
            r#"{"bookmaker":"bovada","name":"Home m1","point":null,"price":130,"stake":0.443548,"age_s":30},"#,
            r#"{"bookmaker":"betrivers","name":"Away m1","point":null,"price":-120,"stake":0.556452,"age_s":60}]}]"#
        )
    );
    // Another bookmaker as the reference, wherever it is offered.
    let by_one = rows(&service, &format!("{EDGES}?kind=ev&from=betmgm&method=shin&bookmaker=bovada&min=0")).await;
    assert_eq!((&by_one[0]["reference"], &by_one[0]["method"]), (&json!("betmgm"), &json!("shin")));
    assert_eq!(by_one[0]["bookmakers"], json!(["betmgm", "bovada"]));
}

#[tokio::test]
async fn included_events_have_their_names() {
    let service = with_three_books().await;
    let about = concat!(
        r#","event":{"competition":"Cup","competition_key":"mma_mixed_martial_arts","commence_time":"2026-11-15T02:00:00Z","#,
        r#""home_team":"Home m1","away_team":"Away m1"}}]"#
    );
    for path in ["odds?bookmaker=betmgm&", "best?", "fair?", "edges?kind=ev&min=0&"] {
        let path = format!("/v1/sports/mma/{path}");
        let (plain, with) =
            (service.get(&path[..path.len() - 1]).await, service.get(&format!("{path}include=event")).await);
        let expected = format!("{}{about}", plain.text().strip_suffix("}]").expect("one row"));
        assert_eq!(with.text(), expected, "{path}");
        let wrong = service.get(&format!("{path}include=score")).await;
        assert_eq!((error(&wrong), &*wrong.param()), ((400, "invalid_parameter".into()), "include"));
    }
    let bouts = service.get("/v1/sports/mma/odds?group=bout&include=event").await;
    assert_eq!((error(&bouts), &*bouts.param()), ((400, "invalid_parameter".into()), "include"));
    let field = odds("golf", "g1", "betmgm", "outright", &sides(&[("A. Ames", 100, ""), ("B. Bohn", -150, "")]));
    service.ingest(&[tournament("g1", "The Open", EVENING), field].concat()).await;
    let golf = rows(&service, "/v1/sports/golf/best?include=event").await;
    assert_eq!((&golf[0]["event"]["title"], &golf[0]["event"]["home_team"]), (&json!("The Open"), &Value::Null));
}

/// A home win is another bet where there is a draw; a total that is priced on one side has no margin.
#[tokio::test]
async fn nothing_is_invented_from_one_sided_and_mismatched_markets() {
    let service = Service::start().await;
    let three = |draw: i32| sides(&[("Home s1", 150, ""), ("Draw", draw, ""), ("Away s1", 180, "")]);
    let over = sides(&[("Over", 300, r#","point":2.5"#)]);
    let lines = [
        event("soccer", "s1", EVENING),
        odds("soccer", "s1", "betmgm", "moneyline", &three(220)),
        odds("soccer", "s1", "draftkings", "moneyline", &three(230)),
        odds("soccer", "s1", "fanduel", "moneyline", &three(240)),
        // The draw is suspended, and the others have prices that would be an arbitrage.
        odds("soccer", "s1", "bovada", "moneyline", &sides(&[("Home s1", 900, ""), ("Away s1", 900, "")])),
        odds("soccer", "s1", "betus", "moneyline", &sides(&[("Home s1", 900, "")])),
        odds("soccer", "s1", "betmgm", "total_points", &over),
        odds("soccer", "s1", "fanduel", "total_points", &over),
    ];
    service.ingest(&lines.concat()).await;
    let best = rows(&service, "/v1/sports/soccer/best").await;
    assert_eq!(best.len(), 2);
    assert_eq!(best[0]["bookmakers"], json!(["betmgm", "draftkings", "fanduel"]));
    assert_eq!(best[0]["outcomes"][1]["price"], 240);
    assert!(best[0]["hold"].is_number());
    assert_eq!(offers(&best[1]), [json!(["Over", 300, "betmgm"])]);
    assert_eq!((&best[1]["hold"], &best[1]["overround"]), (&Value::Null, &Value::Null));
    let fair = rows(&service, "/v1/sports/soccer/fair").await;
    assert_eq!(fair.len(), 1);
    assert_eq!(fair[0]["bookmakers"], json!(["betmgm", "draftkings", "fanduel"]));
    assert_eq!(rows(&service, "/v1/sports/soccer/fair?from=bovada").await, [json!(null); 0]);
    // The same where only the bookmaker that lacks the draw is asked for.
    assert_eq!(rows(&service, "/v1/sports/soccer/best?bookmaker=bovada").await, [json!(null); 0]);
    for kind in ["ev", "arbitrage"] {
        assert_eq!(rows(&service, &format!("/v1/sports/soccer/edges?kind={kind}")).await, [json!(null); 0]);
    }
    // Under from another bookmaker makes it whole.
    let under = sides(&[("Under", -110, r#","point":2.5"#)]);
    service.ingest(&odds("soccer", "s1", "draftkings", "total_points", &under)).await;
    service.advance(30).await;
    let total = rows(&service, "/v1/sports/soccer/best?market=total_points").await;
    assert!(total[0]["hold"].is_number(), "{total:?}");
    assert_eq!(rows(&service, "/v1/sports/soccer/fair?market=total_points&from=draftkings").await, [json!(null); 0]);
    let arbitrage = rows(&service, "/v1/sports/soccer/edges?kind=arbitrage").await;
    assert_eq!(arbitrage[0]["market"], "total_points");
}

#[tokio::test]
async fn closed_markets_and_stale_sources_are_left_out() {
    let service = with_three_books().await;
    service.go_to(120).await;
    for book in ["draftkings", "betmgm"] {
        service.ingest(&moneyline_at("mma", "m1", book, &time(120), 111, -131)).await;
    }
    service.go_to(150).await;
    let best = rows(&service, BEST).await;
    assert_eq!(best[0]["bookmakers"], json!(["betmgm", "draftkings"]), "{best:?}");
    assert_eq!(rows(&service, FAIR).await, [json!(null); 0]);
    assert_eq!(rows(&service, &format!("{EDGES}?kind=ev&from=betmgm&min=0&bookmaker=fanduel")).await, [json!(null); 0]);
    assert_eq!(rows(&service, "/v1/sports/mma/odds").await.len(), 3, "its prices are still served");
    for book in ["draftkings", "betmgm", "fanduel"] {
        service.ingest(&closed("mma", "m1", book, "moneyline", &time(150))).await;
    }
    service.go_to(180).await;
    assert_eq!(rows(&service, BEST).await, [json!(null); 0]);
}

#[tokio::test]
async fn bets_are_never_mixed() {
    let service = Service::start().await;
    let at = |point: &str| format!(r#","point":{point}"#);
    let spread = |home: &str, away: &str| {
        let (home, away) = (at(home), at(away));
        sides(&[("Home f1", 120, &home), ("Away f1", 120, &away)])
    };
    let player = |name: &str, point: &str| {
        let more = format!(r#","description":"{name}","point":{point}"#);
        sides(&[("Over", 120, &more), ("Under", 120, &more)])
    };
    let price = |book: &str, market: &str, outcomes: &str| odds("american_football", "f1", book, market, outcomes);
    let both = sides(&[("Home f1", 120, ""), ("Away f1", 120, "")]);
    let lines = [
        event("american_football", "f1", EVENING),
        event("american_football", "f2", EVENING).replace("Home f2", "Home f1").replace("Away f2", "Away f1"),
        price("betmgm", "spread", &spread("-3.5", "3.5")),
        price("fanduel", "spread", &spread("3.5", "-3.5")),
        // Sides whose points are not opposite are one-sided prices of two bets.
        price("bovada", "spread", &spread("-3.5", "4.5")),
        price("betmgm", "total_points", &sides(&[("Over", 120, &at("44.5")), ("Under", 120, &at("44.5"))])),
        price("fanduel", "total_points", &sides(&[("Over", 120, &at("45.5")), ("Under", 120, &at("45.5"))])),
        price("betmgm", "moneyline", &both),
        price("fanduel", "moneyline_q1", &both),
        price("fanduel", "moneyline_lay", &both),
        odds("american_football", "f2", "fanduel", "moneyline", &both),
        price("betmgm", "player_pass_yds", &player("A", "250.5")),
        price("fanduel", "player_pass_yds", &player("B", "250.5")),
        price("fanduel", "player_unheard_of", &player("B", "250.5")),
        price("fanduel", "spread_3_way", &spread("-3.0", "3.0")),
    ];
    service.ingest(&lines.concat()).await;
    let best = rows(&service, "/v1/sports/american_football/best?market=all").await;
    let bet = |row: &Value| {
        let mut books: Vec<&str> =
            row["outcomes"].as_array().unwrap().iter().map(|o| o["bookmaker"].as_str().unwrap()).collect();
        books.dedup();
        json!([row["event_id"], row["market"], row["point"], row["description"], books.join(" ")])
    };
    let found: Vec<Value> = best.iter().map(bet).collect();
    assert_eq!(
        found,
        [
            json!(["f1", "moneyline", null, null, "betmgm"]),
            json!(["f1", "spread", -4.5, null, "bovada"]),
            json!(["f1", "spread", -3.5, null, "betmgm"]),
            json!(["f1", "spread", 3.5, null, "fanduel"]),
            json!(["f1", "total_points", 44.5, null, "betmgm"]),
            json!(["f1", "total_points", 45.5, null, "fanduel"]),
            json!(["f1", "moneyline_q1", null, null, "fanduel"]),
            json!(["f1", "player_pass_yds", 250.5, "A", "betmgm"]),
            json!(["f1", "player_pass_yds", 250.5, "B", "fanduel"]),
            json!(["f2", "moneyline", null, null, "fanduel"]),
        ]
    );
    assert_eq!(best[1]["hold"], Value::Null, "one side of a spread");
    assert_eq!(best[2]["outcomes"][0]["point"], -3.5);
    assert_eq!(best[2]["outcomes"][1]["point"], 3.5);
    for market in ["moneyline_lay", "player_unheard_of", "spread_3_way"] {
        let path = format!("/v1/sports/american_football/best?market={market}");
        assert_eq!(rows(&service, &path).await, [json!(null); 0], "{market}");
    }
    // Every bet above is an arbitrage of its own.
    let edges = rows(&service, "/v1/sports/american_football/edges?kind=arbitrage&market=all").await;
    assert_eq!(edges.len(), 9);
    let same_book = |row: &Value| row["legs"][0]["bookmaker"] == row["legs"][1]["bookmaker"];
    assert!(edges.iter().all(same_book), "{edges:?}");
}

/// Seven golfers, five of whom finish in the top five; and lists of a field that are not whole.
#[tokio::test]
async fn fields_count_their_winners() {
    let service = Service::start().await;
    let field = |price: i32, count: usize| {
        let names: Vec<String> = (1..=count).map(|player| format!("P{player}")).collect();
        sides(&names.iter().map(|name| (name.as_str(), price, "")).collect::<Vec<_>>())
    };
    let price = |book: &str, market: &str, outcomes: &str| odds("golf", "g1", book, market, outcomes);
    let mut lines = vec![tournament("g1", "The Open", EVENING)];
    for (book, american) in [("betmgm", -300), ("fanduel", -320), ("draftkings", -310)] {
        lines.push(price(book, "top5", &field(american, 7)));
    }
    // Eight names by one bookmaker only, at prices that sum to less than one.
    lines.push(price("betmgm", "outright", &field(600, 7)));
    lines.push(price("fanduel", "outright", &field(900, 8)));
    service.ingest(&lines.concat()).await;
    let fair = rows(&service, "/v1/sports/golf/fair?market=top5").await;
    assert_eq!(fair[0]["outcomes"][0]["probability"], 0.714_286, "five sevenths");
    assert_eq!(fair[0]["outcomes"].as_array().expect("outcomes").len(), 7);
    let best = rows(&service, "/v1/sports/golf/best?market=top5").await;
    assert_eq!((&best[0]["overround"], &best[0]["hold"]), (&json!(0.05), &json!(0.047_619)), "for each winner");
    let best = rows(&service, "/v1/sports/golf/best?market=outright").await;
    assert_eq!(best[0]["outcomes"].as_array().expect("outcomes").len(), 8);
    assert_eq!(best[0]["hold"], Value::Null, "nobody prices a whole field");
    assert_eq!(rows(&service, "/v1/sports/golf/edges?kind=arbitrage&market=outright").await, [json!(null); 0]);
    assert_eq!(rows(&service, "/v1/sports/golf/fair?from=betmgm&market=outright").await, [json!(null); 0]);
}

/// Pairs are the same bet by their names, wherever a bookmaker lists them; a pair that is there twice cannot be told apart.
#[tokio::test]
async fn pairs_in_a_row_are_bets_of_their_own() {
    let service = Service::start().await;
    let price = |book: &str, outcomes: &str| odds("golf", "g1", book, "matchup", outcomes);
    let lines = [
        tournament("g1", "The Open", EVENING),
        price("betmgm", &sides(&[("A", -110, ""), ("B", -110, ""), ("C", 130, ""), ("D", -150, "")])),
        price("fanduel", &sides(&[("D", -140, ""), ("C", 110, ""), ("B", 105, ""), ("A", -125, "")])),
        price("bovada", &sides(&[("A", 300, ""), ("C", -400, ""), ("C", 120, ""), ("A", -140, "")])),
    ];
    service.ingest(&lines.concat()).await;
    let best = rows(&service, "/v1/sports/golf/best?limit=1").await;
    assert_eq!(offers(&best[0]), [json!(["A", -110, "betmgm"]), json!(["B", 105, "fanduel"])]);
    let all = rows(&service, "/v1/sports/golf/best").await;
    assert_eq!(all.len(), 2);
    assert_eq!(offers(&all[1]), [json!(["C", 130, "betmgm"]), json!(["D", -140, "fanduel"])]);
    let next = next_page(&service.get("/v1/sports/golf/best?limit=1").await).expect("a next page");
    assert_eq!(rows(&service, &next).await, all[1..]);
}

#[tokio::test]
async fn another_method_answers_where_one_has_no_solution() {
    let service = Service::start().await;
    let lines = [event("mma", "m1", EVENING), moneyline("mma", "m1", "betmgm", 110, 110)];
    service.ingest(&lines.concat()).await;
    let fair = rows(&service, &format!("{FAIR}?from=betmgm&method=shin")).await;
    assert_eq!(fair[0]["method"], "shin");
    assert_eq!(fair[0]["fallback"], json!({"method": "multiplicative", "bookmakers": ["betmgm"]}));
    assert_eq!(fair[0]["outcomes"][0]["probability"], 0.5);
    let additive = rows(&service, &format!("{FAIR}?from=betmgm&method=additive")).await;
    assert_eq!(additive[0]["fallback"], Value::Null);
}

#[tokio::test]
async fn pages_visit_every_row_once() {
    let service = Service::start().await;
    let fights: Vec<String> = (1..=5)
        .map(|fight| {
            let id = format!("m{fight}");
            let away = -130 + fight;
            [
                three_books("mma", &id),
                moneyline("mma", &id, "bovada", 200 + 10 * fight, away),
                total("mma", &id, "betmgm", "total_rounds", "2.5"),
            ]
            .concat()
        })
        .collect();
    service.ingest(&fights.concat()).await;
    for (path, count) in [
        (format!("{BEST}?"), 10),
        (format!("{BEST}?sort=hold&"), 10),
        (format!("{FAIR}?"), 5),
        (format!("{EDGES}?kind=ev&min=0&"), 13),
        (format!("{EDGES}?kind=arbitrage&min=0&"), 5),
    ] {
        let all = rows(&service, &format!("{path}limit=500")).await;
        assert_eq!(all.len(), count, "{path}");
        let (mut paged, mut next) = (Vec::new(), Some(format!("{path}limit=2")));
        while let Some(page) = next {
            let answer = service.get(&page).await;
            paged.extend(answer.json().as_array().expect("rows").clone());
            next = next_page(&answer);
        }
        assert_eq!(paged, all, "{path}");
    }
    let holds = rows(&service, &format!("{BEST}?sort=hold")).await;
    let holds: Vec<f64> = holds.iter().map(|row| row["hold"].as_f64().expect("a hold")).collect();
    assert!(holds.is_sorted(), "{holds:?}");
    let edges = rows(&service, &format!("{EDGES}?kind=ev&min=0")).await;
    let edges: Vec<f64> = edges.iter().map(|row| row["edge"].as_f64().expect("an edge")).collect();
    assert!(edges.is_sorted_by(|one, other| one >= other), "{edges:?}");
    // A cursor of another list is none of this one.
    let odds = next_page(&service.get("/v1/sports/mma/odds?limit=1").await).expect("a next page");
    let after = odds.split_once("after=").expect("a cursor").1;
    let wrong = service.get(&format!("{BEST}?after={after}")).await;
    assert_eq!((error(&wrong), &*wrong.param()), ((400, "invalid_parameter".into()), "after"));
}

#[tokio::test]
async fn answers_are_validated_and_change_with_a_publication() {
    let service = with_three_books().await;
    for path in [BEST.to_owned(), FAIR.to_owned(), format!("{EDGES}?kind=ev&min=0")] {
        let first = service.get(&path).await;
        let tag = first.header("etag").expect("a validator").to_owned();
        assert_eq!(first.header("cache-control"), Some("private, max-age=30"), "{path}");
        let again = service.get_with(&path, &[("if-none-match", &tag)]).await;
        assert_eq!(again.status, 304, "{path}");
        assert_eq!(service.get(&path).await.text(), first.text());
    }
    let before = service.get(BEST).await;
    service.ingest(&moneyline_at("mma", "m1", "betmgm", &time(1), 140, -160)).await;
    assert_eq!(service.get(BEST).await.text(), before.text(), "until the next tick");
    service.advance(30).await;
    assert_eq!(rows(&service, BEST).await[0]["outcomes"][0]["price"], 140);
}

#[tokio::test]
async fn answers_as_of_a_time_are_those_of_then() {
    let service = with_three_books().await;
    let paths = [BEST.to_owned(), format!("{FAIR}?method=shin"), format!("{EDGES}?kind=ev&min=0&include=event")];
    service.advance(30).await;
    let mut then = Vec::new();
    for path in &paths {
        then.push(service.get(path).await);
    }
    service.advance(30).await;
    service.ingest(&moneyline_at("mma", "m1", "betmgm", &time(61), 140, -160)).await;
    service.advance(30).await;
    let service = service.restart_now().await;
    for (path, then) in paths.iter().zip(&then) {
        let separator = if path.contains('?') { '&' } else { '?' };
        let now = service.get(&format!("{path}{separator}as_of={}", time(30))).await;
        let without_ages = |answer: &Answer| {
            let mut rows = answer.json();
            for row in rows.as_array_mut().expect("rows") {
                row["age_s"] = json!(0);
                for leg in row["legs"].as_array_mut().into_iter().flatten() {
                    leg["age_s"] = json!(0);
                }
            }
            rows
        };
        assert_eq!(without_ages(&now), without_ages(then), "{path}");
        assert_eq!(now.header("x-as-of"), Some(&*time(0)), "the last publication that changed something");
        assert!(now.header("link").is_some_and(|link| link.contains("next-archive")));
    }
    let future = service.get(&format!("{BEST}?as_of=2027-01-01T00:00:00Z")).await;
    assert_eq!((error(&future), &*future.param()), ((400, "invalid_parameter".into()), "as_of"));
    let gone = service.get(&format!("{FAIR}?as_of=2020-01-01T00:00:00Z")).await;
    assert_eq!(error(&gone), (410, "history_gone".into()));
}

#[tokio::test]
async fn keys_are_checked_as_for_odds() {
    let service = with_three_books().await;
    let golf = restricted(&service, &["golf"]).await.secret;
    for path in [BEST.to_owned(), FAIR.to_owned(), format!("{EDGES}?kind=ev")] {
        assert_eq!(error(&service.get_as(&golf, &path).await), (403, "forbidden".into()), "{path}");
        assert_eq!(error(&service.get_as("", &path).await), (401, "authentication_failed".into()), "{path}");
        assert_eq!(service.get_as(&service.sandbox, &path).await.text(), "[]", "another world");
        let used = |answer: Answer| answer.header("x-requests-used").and_then(|used| used.parse::<u64>().ok());
        let first = used(service.get(&path).await).expect("a count");
        assert_eq!(used(service.get(&path).await), Some(first + 1), "one for each answer");
    }
    assert_eq!(error(&service.get("/v1/sports/curling/best").await), (404, "sport_not_found".into()));
}

#[tokio::test]
async fn mistakes_are_named() {
    let service = with_three_books().await;
    for (path, param, says) in [
        (format!("{BEST}?sort=price"), "sort", "`sort` takes hold"),
        (format!("{BEST}?method=power"), "method", "no parameter `method`"),
        (format!("{BEST}?bookmaker=nobody"), "bookmaker", "/v1/books"),
        (format!("{FAIR}?method=magic"), "method", "power, shin, multiplicative or additive"),
        (format!("{FAIR}?from=nobody"), "from", "consensus, or the key of a bookmaker"),
        (format!("{FAIR}?bookmaker=betmgm"), "bookmaker", "no parameter `bookmaker`"),
        (EDGES.to_owned(), "kind", "Send `kind`: ev or arbitrage."),
        (format!("{EDGES}?kind=value"), "kind", "ev or arbitrage"),
        (format!("{EDGES}?kind=ev&min=2"), "min", "from 0 to 1"),
        (format!("{EDGES}?kind=ev&min=-0.1"), "min", "from 0 to 1"),
        (format!("{EDGES}?kind=ev&min=0.0000001"), "min", "6 decimals"),
        (format!("{EDGES}?kind=arbitrage&from=betmgm"), "from", "for `kind=ev` only"),
        (format!("{EDGES}?kind=ev&limit=501"), "limit", "1 to 500"),
        (format!("{BEST}?market=moneylin"), "market", "nearest is moneyline"),
    ] {
        let answer = service.get(&path).await;
        assert_eq!((error(&answer), &*answer.param()), ((400, "invalid_parameter".into()), param), "{path}");
        assert!(message(&answer).contains(says), "{path}: {}", message(&answer));
    }
}

#[tokio::test]
async fn closing_lines_have_fair_prices_on_request() {
    let service = Service::start().await;
    let lines = [event("mma", "m1", &time(600)), moneyline("mma", "m1", "betmgm", 105, -125)];
    service.ingest(&lines.concat()).await;
    service.go_to(600).await;
    let path = "/v1/sports/mma/closing?event_ids=m1";
    let plain = service.get(path).await;
    let with = service.get(&format!("{path}&fair=additive&odds_format=decimal")).await;
    assert!(!plain.text().contains("fair"));
    assert_eq!(
        with.json()[0]["fair"],
        json!([{"method": "additive", "overround": 0.04336, "outcomes": [
            {"name": "Home m1", "probability": 0.466_125, "price": 2.145, "point": null},
            {"name": "Away m1", "probability": 0.533_875, "price": 1.873, "point": null},
        ]}])
    );
    let wrong = service.get(&format!("{path}&fair=best")).await;
    assert_eq!((error(&wrong), &*wrong.param()), ((400, "invalid_parameter".into()), "fair"));
    // Before the start there is no closing line.
    service.ingest(&[event("mma", "m2", EVENING), moneyline("mma", "m2", "betmgm", 105, -125)].concat()).await;
    service.go_to(630).await;
    let ahead = rows(&service, "/v1/sports/mma/closing?event_ids=m2&fair=power").await;
    assert_eq!((&ahead[0]["closing"], &ahead[0]["fair"]), (&Value::Null, &Value::Null));
}

#[tokio::test]
async fn filters_are_those_of_odds() {
    let service = Service::start().await;
    let late = event("mma", "m2", "2026-11-16T02:00:00Z");
    let lines = [three_books("mma", "m1"), late, moneyline("mma", "m2", "betmgm", 110, -130)];
    service.ingest(&lines.concat()).await;
    for (query, events) in [
        ("", &["m1", "m2"][..]),
        ("?event_ids=m2", &["m2"]),
        ("?commence_from=2026-11-15T12:00:00Z", &["m2"]),
        ("?commence_to=2026-11-15T12:00:00Z", &["m1"]),
        ("?competition=mma_mixed_martial_arts&bookmaker=fanduel", &["m1"]),
        ("?market=total_rounds", &[]),
        ("?regions=uk", &[]),
    ] {
        assert_eq!(fields(&service.get(&format!("{BEST}{query}")).await, "event_id"), events, "{query}");
    }
}
