//! A payload of The Odds API with markets of every kind: into a file by the command line, out by an export, and into an
//! empty directory again, where every response is the same.

use std::fs;

use serde_json::{Value, json};

use super::client::Connection;
use super::command::{Directory, file_with};

const AT: &str = "2026-01-01T00:00:00Z";

/// An event with the markets of one bookmaker; without sides it has a field.
fn event(id: &str, key: &str, title: &str, sides: Option<[&str; 2]>, markets: &[(&str, Value)]) -> Value {
    let markets: Vec<Value> =
        markets.iter().map(|(key, outcomes)| json!({"key": key, "last_update": AT, "outcomes": outcomes})).collect();
    let book = |book: &str| json!({"key": book, "title": book.to_uppercase(), "last_update": AT, "markets": markets});
    json!({
        "id": id, "sport_key": key, "sport_title": title, "commence_time": "2099-01-01T00:00:00Z",
        "home_team": sides.map(|[home, _]| home), "away_team": sides.map(|[_, away]| away),
        "bookmakers": [book("betmgm"), book("our_own_book")],
    })
}

fn payload() -> Value {
    let sides = Some(["Breiðablik ", "K\"R\""]);
    let winner = json!([{"name": "Breiðablik ", "price": 2.5}, {"name": "Draw", "price": 3.4}, {"name": "K\"R\"", "price": 2.875}]);
    let lines = json!([
        {"name": "Over", "description": " J. Jóns", "price": 1.001, "point": 0.25}, {"name": "Over", "description": " J. Jóns", "price": 100_000, "point": -0.0},
        {"name": "Under", "description": "J. Jóns", "price": 1.909, "point": -2.75}, {"name": "Under", "price": 2, "point": 7},
    ]);
    json!([
        event(
            "s1",
            "soccer_iceland_cup",
            "Bikarinn",
            sides,
            &[
                ("h2h", winner.clone()),
                ("h2h_lay", winner.clone()),
                ("h2h_3_way_h1", winner.clone()),
                ("alternate_team_totals_corners", lines.clone()),
                ("player_of_this_test_alternate", lines.clone())
            ]
        ),
        event(
            "m1",
            "mma_mixed_martial_arts",
            "MMA",
            sides,
            &[("h2h", winner.clone()), ("spreads", lines.clone()), ("totals", lines)]
        ),
        event("w1", "americanfootball_nfl_super_bowl_winner", "NFL Super Bowl Winner", None, &[("outrights", winner)]),
    ])
}

const PATHS: [&str; 14] = [
    "/v1/books",
    "/v1/markets",
    "/v1/sports/soccer/competitions",
    "/v1/sports/soccer/odds?market=all&odds_format=decimal",
    "/v1/sports/soccer/odds?market=moneyline_lay",
    "/v1/sports/soccer/events",
    "/v1/sports/soccer/scores",
    "/v1/sports/mma/odds?odds_format=fractional",
    "/v1/sports/american_football/odds?market=outright",
    "/v1/sports/american_football/events/w1",
    "/v4/sports?all=true",
    "/v4/sports/soccer_iceland_cup/events/s1/odds?regions=us&markets=h2h,h2h_lay,h2h_3_way_h1,alternate_team_totals_corners,player_of_this_test_alternate",
    "/v4/sports/mma_mixed_martial_arts/odds?regions=us&markets=h2h,spreads,totals",
    "/v4/sports/americanfootball_nfl_super_bowl_winner/odds?regions=us",
];

/// The bodies of all paths.
async fn answers(directory: &Directory) -> Vec<String> {
    let issued = directory.json("keys issue --live --name test --approved-by test");
    let key = issued["key"].as_str().expect("a key").to_owned();
    let server = directory.serve_all_sports(&[]);
    let mut connection = Connection::open(server.address()).await.expect("a connection");
    let mut bodies = Vec::new();
    for path in PATHS {
        let answer = connection.get(path, &key).await.expect("an answer");
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        bodies.push(answer.text().to_owned());
    }
    drop(connection);
    server.stop();
    bodies
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn payload_exported_and_ingested_again_gives_the_same_responses() {
    let (_kept, file) = file_with(payload().to_string().as_bytes());
    let (one, other) = (Directory::new(), Directory::new());
    let report =
        one.json(&format!("ingest --format the-odds-api --odds-format decimal --regions us2,us {}", file.display()));
    assert_eq!((&report["rejected"], &report["dropped_outcomes"]), (&json!(0), &json!(0)), "{report}");

    let exported = one.path().join("world.ndjson");
    one.json(&format!("export --output {}", exported.display()));
    let report = other.json(&format!("ingest --strict {}", exported.display()));
    assert_eq!(report["rejected"], 0, "{report}");
    let again = other.run("export").succeeded().stdout;
    assert_eq!(again, fs::read_to_string(&exported).expect("a file"));

    let (first, second) = (answers(&one).await, answers(&other).await);
    for ((path, first), second) in PATHS.iter().zip(&first).zip(&second) {
        assert_eq!(first, second, "{path}");
    }
    let v4: Value = serde_json::from_str(&first[11]).expect("a document");
    let mut sent = payload()[0]["bookmakers"][0]["markets"].as_array().expect("a list").clone();
    let mut got = v4["bookmakers"][0]["markets"].as_array().expect("a list").clone();
    for list in [&mut sent, &mut got] {
        list.sort_by_key(|market| market["key"].to_string());
    }
    assert_eq!(got.len(), 5);
    for (sent, got) in sent.iter().zip(&got) {
        let values = |market: &Value| {
            let outcome = |outcome: &Value| {
                let number = |name: &str| outcome[name].as_f64();
                (outcome["name"].clone(), outcome["description"].clone(), number("price"), number("point"))
            };
            market["outcomes"].as_array().expect("a list").iter().map(outcome).collect::<Vec<_>>()
        };
        assert_eq!((&sent["key"], values(sent)), (&got["key"], values(got)));
    }
}
