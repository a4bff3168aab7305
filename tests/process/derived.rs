//! `oddsbox best` and `oddsbox edges`: the same with and without a server.

use super::command::{Directory, file_with};

fn line(book: &str, home: &str, away: &str) -> String {
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ");
    format!(
        r#"{{"type":"odds","sport":"mma","event":"m1","bookmaker":"{book}","market":"moneyline","last_update":"{now}","format":"decimal","outcomes":[{{"name":"Ana","price":{home}}},{{"name":"Bea","price":{away}}}]}}"#
    ) + "\n"
}

#[test]
fn best_prices_and_edges_are_shown_as_tables_and_as_json() {
    let directory = Directory::new();
    let event = r#"{"type":"event","sport":"mma","id":"m1","competition":"Cup","commence_time":"2099-01-01T00:00:00Z","home":"Ana","away":"Bea","status":"scheduled"}"#;
    let lines = [
        format!("{event}\n"),
        line("betmgm", "2.2", "1.8"),
        line("fanduel", "2.0", "2.0"),
        line("bovada", "2.0", "1.9"),
    ];
    let (_kept, feed) = file_with(lines.concat().as_bytes());
    directory.json(&format!("ingest {}", feed.display()));
    for is_running in [false, true] {
        let server = is_running.then(|| directory.serve());
        let best = directory.json("best mma --odds-format decimal");
        assert_eq!((&best[0]["event_id"], &best[0]["hold"]), (&"m1".into(), &serde_json::json!(-0.047_619)));
        assert_eq!(best[0]["event"]["home_team"], "Ana");
        let table = directory.run("best mma --odds-format decimal --sort hold");
        let rows: Vec<Vec<&str>> = table.stdout.lines().skip(1).map(|row| row.split('\t').collect()).collect();
        assert_eq!(
            rows[0][..7],
            ["Ana v Bea", "moneyline", "Ana", "2.2", "betmgm", "2.0 bovada", "-4.76%"],
            "{table:?}"
        );
        assert_eq!(rows[1][..6], ["Ana v Bea", "moneyline", "Bea", "2.0", "fanduel", "1.9 bovada"], "{table:?}");
        let table = directory.run("edges mma --kind arbitrage --odds-format decimal");
        let rows: Vec<Vec<&str>> = table.stdout.lines().skip(1).map(|row| row.split('\t').collect()).collect();
        assert_eq!(rows[0][..7], ["4.76%", "Ana v Bea", "moneyline", "Ana", "2.2", "betmgm", "47.62%"], "{table:?}");
        let edges = directory.json("edges mma --from bovada --min 0");
        assert_eq!((&edges[0]["kind"], &edges[0]["reference"]), (&"ev".into(), &"bovada".into()));
        let none = directory.run("best mma --market total_rounds");
        assert!(none.stdout.starts_with("Nothing"), "{none:?}");
        drop(server);
    }
    for (line, complaint) in [
        ("best curling", "there is no sport or competition"),
        ("best mma --bookmaker nobody", "there is no bookmaker nobody"),
        ("best mma --market nothing", "there is no market nothing"),
        ("edges mma --min 2", "min takes a fraction"),
        ("edges mma --kind arbitrage --from betmgm", "--from is for --kind ev"),
    ] {
        let done = directory.run(line);
        assert_eq!(done.code, Some(1), "{done:?}");
        assert!(done.complaint().contains(complaint), "{done:?}");
    }
}
