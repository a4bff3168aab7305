//! `oddsbox history`: the same with and without a server.

use std::time::Duration;

use super::command::{Directory, Started, file_with, until};
use super::seed::{Random, short_or_long};

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

/// A line of history, some days ago, so that it is within what is kept.
fn dated(line: &str, at: &str) -> String {
    format!("{},\"as_of\":\"{at}\"}}\n", line.trim_end().strip_suffix('}').expect("an object"))
}

/// So many minutes after a time ten days ago.
fn minute(minutes: u32) -> String {
    let now = jiff::Timestamp::now().as_second();
    let second = now - now % 86_400 - 10 * 86_400 + i64::from(minutes) * 60;
    jiff::Timestamp::from_second(second).expect("a time").to_string()
}

/// The history of an event whose price changes every minute.
fn changing(minutes: std::ops::Range<u32>) -> String {
    let mut lines = dated(EVENT, &minute(minutes.start));
    for at in minutes {
        lines += &dated(&price(&format!("2.{:03}", 100 + at % 800), &minute(at)), &minute(at));
    }
    lines
}

fn import(directory: &Directory, lines: &str) {
    let (_kept, file) = file_with(lines.as_bytes());
    let report = directory.json(&format!("ingest --history {}", file.display()));
    assert_eq!(report["rejected"], 0, "{report}");
}

fn exported(directory: &Directory) -> String {
    directory.run("export --history").succeeded().stdout
}

#[test]
fn exported_history_is_the_same_in_another_directory() {
    let directory = ingested();
    import(&directory, &changing(0..40));
    let all = exported(&directory);
    assert!(all.contains(&minute(39)), "{all}");
    for is_running in [false, true] {
        let other = Directory::new();
        let server = is_running.then(|| other.serve());
        import(&other, &all);
        assert_eq!(exported(&other), all);
        let (own, theirs) = (directory.json("history m1"), other.json("history m1"));
        assert_eq!(own["lines"], theirs["lines"]);
        drop(server);
        let report = other.json("check");
        assert_eq!(report["clean"], true, "{report}");
    }
    let part = directory.run(&format!("export --history --from {} --to {}", minute(10), minute(12))).succeeded().stdout;
    let times: Vec<&str> =
        part.lines().filter_map(|line| line.split_once("\"as_of\":\"")).map(|(_, at)| &at[..20]).collect();
    assert_eq!(times, [minute(10), minute(10), minute(11), minute(12)]);
}

#[test]
fn wrong_use_of_history_says_what_to_do() {
    let directory = ingested();
    for (line, complaint) in [
        ("export --history --from 2026-11-02 --to 2026-11-01", "swap them"),
        ("ingest a b", "or several with --history"),
        ("ingest --history /nonexistent", "name a file"),
    ] {
        let done = directory.run(line);
        assert_eq!(done.code, Some(1), "{done:?}");
        assert!(done.complaint().contains(complaint), "{done:?}");
    }
    assert_eq!(directory.run("export --from 2026-11-02").code, Some(2));
    let (_kept, file) = file_with(b"{\"type\":\"event\"}\n");
    let done = directory.run(&format!("ingest --history {}", file.display()));
    assert_eq!(done.code, Some(1), "{done:?}");
}

#[test]
fn responses_in_several_files_are_sorted_by_their_times() {
    let directory = Directory::new();
    let response = |minutes: u32, decimal: &str| {
        let at = minute(minutes);
        format!(
            r#"{{"timestamp":"{at}","data":[{{"id":"m1","sport_key":"mma_mixed_martial_arts","sport_title":"MMA","commence_time":"2099-01-01T00:00:00Z","home_team":"Ana","away_team":"Bea","bookmakers":[{{"key":"betmgm","title":"BetMGM","last_update":"{at}","markets":[{{"key":"h2h","outcomes":[{{"name":"Ana","price":{decimal}}},{{"name":"Bea","price":1.85}}]}}]}}]}}]}}"#
        )
    };
    let files: Vec<_> = [(20, "2.3"), (0, "2.1"), (10, "2.2")]
        .map(|(minutes, decimal)| file_with(response(minutes, decimal).as_bytes()))
        .into_iter()
        .collect();
    let names: Vec<String> = files.iter().map(|(_, file)| file.display().to_string()).collect();
    let report = directory.json(&format!("ingest --history --format the-odds-api {}", names.join(" ")));
    assert_eq!((&report["accepted"], &report["rejected"]), (&6.into(), &0.into()), "{report}");
    let history = directory.json("history m1 --odds-format decimal");
    let points = history["lines"][0]["points"].as_array().expect("points").clone();
    let shown: Vec<_> = points.iter().map(|point| (&point["at"], &point["outcomes"][0]["price"])).collect();
    let expected = [(0, 2.1), (10, 2.2), (20, 2.3)].map(|(at, price)| (minute(at), price));
    for ((at, price), (expected_at, expected)) in shown.into_iter().zip(expected) {
        assert_eq!((at.as_str(), price.as_f64()), (Some(&*expected_at), Some(expected)));
    }
}

#[test]
fn forgotten_event_is_gone_from_imported_history() {
    for is_running in [false, true] {
        let directory = Directory::new();
        let other = changing(0..5).replace("m1", "m2");
        import(&directory, &changing(0..5));
        import(&directory, &other);
        let server = is_running.then(|| directory.serve());
        let before = directory.json("history m2");
        let forgotten = directory.json("history forget m1 --yes");
        assert_eq!(forgotten["changes"], 6, "{forgotten}");
        assert!(directory.run("history m1").complaint().contains("has no event m1"));
        assert!(!exported(&directory).contains("\"m1\""));
        assert_eq!(directory.json("history m2"), before);
        drop(server);
        directory.run("check").succeeded();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn import_that_a_kill_ends_has_changed_nothing() {
    let mut random = Random::new();
    let directory = Directory::new();
    import(&directory, &changing(0..20));
    let before = exported(&directory);
    let (_kept, file) = file_with(changing(20..8_000).as_bytes());
    let mut complete = false;
    for _ in 0..short_or_long(3, 50) {
        let server = directory.serve();
        let path = file.display().to_string();
        let mut command = Started::new(directory.path(), ["ingest", "--history", &path]);
        tokio::time::sleep(Duration::from_millis(random.below(400))).await;
        server.kill();
        until("the command ends", async || command.has_ended()).await;
        let report = directory.json("check");
        assert_eq!(report["clean"], true, "{report}");
        let after = exported(&directory);
        // It may have been quick.
        complete |= after != before;
        if complete {
            assert!(after.contains(&minute(7_999)), "{}", after.len());
        }
    }
    import(&directory, &changing(20..8_000));
    let other = Directory::new();
    import(&other, &changing(0..8_000));
    assert_eq!(exported(&directory), exported(&other));
}
