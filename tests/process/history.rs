//! `oddsbox history`: the same with and without a server.

use super::command::{Directory, file_with};

const EVENT: &str = r#"{"type":"event","sport":"mma","id":"m1","competition":"Cup","commence_time":"2099-01-01T00:00:00Z","home":"Ana, A.","away":"Bea","status":"scheduled"}"#;

fn price(home: &str, at: &str) -> String {
    format!(
        r#"{{"type":"odds","sport":"mma","event":"m1","bookmaker":"betmgm","market":"moneyline","last_update":"{at}","format":"decimal","outcomes":[{{"name":"Ana, A.","price":{home}}},{{"name":"Bea","price":1.8}}]}}"#
    )
}

/// Each ingest is published by the time the next command looks.
fn ingested() -> Directory {
    let directory = Directory::new();
    for lines in [format!("{EVENT}\n{}\n", price("2.1", "2026-01-01T00:00:00Z")), price("2.3", "2026-01-01T01:00:00Z")]
    {
        let (_kept, feed) = file_with(lines.as_bytes());
        directory.json(&format!("ingest {}", feed.display()));
    }
    directory
}

/// The times of the changes differ from run to run.
fn without_times(text: &str) -> String {
    let is_time = |word: &str| word.len() == 20 && word.ends_with('Z') && word.starts_with("20");
    text.split(',').map(|word| if is_time(word) { "TIME" } else { word }).collect::<Vec<_>>().join(",")
}

#[test]
fn history_of_an_event_is_shown_in_three_forms() {
    let directory = ingested();
    for is_running in [false, true] {
        let server = is_running.then(|| directory.serve());
        let history = directory.json("history m1 --odds-format decimal");
        let line = &history["lines"][0];
        assert_eq!((&history["name"], &history["market"]), (&"Ana, A. v Bea".into(), &"moneyline".into()));
        assert_eq!((&line["bookmaker"], &line["closing"]), (&"betmgm".into(), &serde_json::Value::Null));
        let prices: Vec<_> =
            line["points"].as_array().expect("points").iter().map(|point| &point["outcomes"][0]["price"]).collect();
        assert_eq!(prices, [&serde_json::json!(2.1), &serde_json::json!(2.3)]);

        let csv = directory.run("history m1 --csv --odds-format decimal");
        let expected = [
            "event_id,bookmaker,market,at,name,description,point,price",
            "m1,betmgm,moneyline,TIME,\"Ana, A.\",,,2.1",
            "m1,betmgm,moneyline,TIME,Bea,,,1.8",
            "m1,betmgm,moneyline,TIME,\"Ana, A.\",,,2.3",
            "m1,betmgm,moneyline,TIME,Bea,,,1.8",
        ];
        let lines: Vec<String> = csv.stdout.lines().map(without_times).collect();
        assert_eq!(lines, expected, "{csv:?}");

        let table = directory.run("history m1 --outcome Bea");
        let row = table.stdout.lines().last().unwrap_or_default().to_owned();
        let fields: Vec<&str> = row.split('\t').collect();
        assert_eq!(fields[..5], ["betmgm", "-125", "-125", "-", "0"], "{table:?}");
        assert_eq!(fields[5].chars().count(), 24, "{row}");
        drop(server);
    }
    for (line, complaint) in [
        ("history m2", "has no event m2"),
        ("history m1 --world sandbox", "the sandbox world has no event m1"),
        ("history m1 --market total_rounds", "no price in the market total_rounds, but in: moneyline"),
    ] {
        let done = directory.run(line);
        assert_eq!(done.code, Some(1), "{done:?}");
        assert!(done.complaint().contains(complaint), "{done:?}");
    }
}

const OTHER: &str = r#"{"type":"event","sport":"mma","id":"m2","competition":"Cup","commence_time":"2099-01-01T00:00:00Z","home":"Cleo","away":"Dora","status":"scheduled"}"#;

fn other_price() -> String {
    price("3.1", "2026-01-01T02:00:00Z").replace("m1", "m2").replace("Ana, A.", "Cleo").replace("Bea", "Dora")
}

#[test]
fn forgotten_event_is_as_one_never_seen_and_the_others_stay() {
    for is_running in [false, true] {
        let directory = ingested();
        let ingest = |lines: &str| {
            let (_kept, feed) = file_with(lines.as_bytes());
            directory.json(&format!("ingest {}", feed.display()));
        };
        ingest(&format!("{OTHER}\n{}\n", other_price()));
        let server = is_running.then(|| directory.serve());
        let before = directory.json("history m2");
        for (line, complaint) in [
            ("history forget m1", "add --yes"),
            ("history forget m1 --yes", "is on the board"),
            ("history forget m9 --yes", "has no event m9"),
            ("history forget m1 --sport chess --yes", "there is no sport chess"),
        ] {
            let done = directory.run(line);
            assert_eq!(done.code, Some(1), "{done:?}");
            assert!(done.complaint().contains(complaint), "{done:?}");
        }
        ingest(r#"{"type":"remove","sport":"mma","event":"m1"}"#);
        let forgotten = directory.json("history forget m1 --yes");
        assert_eq!(forgotten["sport_key"], "mma");
        // The event, two prices and its removal.
        assert_eq!(forgotten["changes"], 4, "{forgotten}");
        for line in ["history m1", "history forget m1 --yes", "history forget m1 --sport mma --yes"] {
            assert!(directory.run(line).complaint().contains("has no event m1"), "{line}");
        }
        assert_eq!(directory.json("history m2"), before);
        let audit = directory.json("audit");
        let notes: Vec<_> =
            audit.as_array().expect("entries").iter().filter(|note| note["action"] == "forget history").collect();
        assert_eq!((&notes[0]["subject"], &notes[0]["detail"]), (&"m1".into(), &"live mma".into()));
        drop(server);
        directory.run("check").succeeded();
    }
}
