//! `oddsbox catalogue`, and sports that an operator adds.

use std::fs;

use super::command::{Directory, file_with};

#[test]
fn catalogue_lists_sports_competitions_markets_and_bookmakers() {
    let directory = Directory::new();
    let all = directory.json("catalogue");
    assert_eq!(all["sports"].as_array().expect("a list").len(), 16);
    assert_eq!(all["competitions"].as_array().expect("a list").len(), 177);
    let soccer = directory.json("catalogue --sport soccer");
    let epl = soccer.as_array().expect("a list").iter().find(|listed| listed["key"] == "soccer_epl");
    let epl = epl.expect("the league");
    assert_eq!((&epl["sport"], &epl["title"], &epl["field"]), (&"soccer".into(), &"EPL".into(), &false.into()));
    assert_eq!(directory.json("catalogue --sport soccer_epl"), soccer, "a competition names its sport");
    assert_eq!(directory.json("catalogue --bookmakers"), all["bookmakers"]);
    let markets = directory.json("catalogue --markets");
    assert!(markets.as_array().expect("a list").iter().any(|market| market["key"] == "player_points"));

    let table = directory.run("catalogue").succeeded().stdout;
    assert!(table.starts_with("SPORT\tTITLE\tGROUP\tKIND\tCOMPETITIONS\tTHE ODDS API\n"), "{table}");
    assert!(table.contains("\nice_hockey\tIce Hockey\tice_hockey\thead_to_head\t"), "{table}");
    let message = directory.run("catalogue --sport socer").failed();
    assert!(message.contains("did you mean \"soccer\"?"), "{message}");
    for wrong in ["catalogue --markets --bookmakers", "catalogue --markets check file"] {
        assert_eq!(directory.run(wrong).code, Some(2), "{wrong}");
    }
}

#[test]
fn catalogue_check_shows_what_a_file_changes() {
    let directory = Directory::new();
    let text = "families = [\"darts\"]\nbookmakers = [{ key = \"betmgm\", title = \"MGM\", regions = [\"uk\"] }]\n";
    let (_kept, file) = file_with(text.as_bytes());
    let shown = directory.run(&format!("catalogue check {}", file.display())).succeeded().stdout;
    let expected = "is valid and is used on top of the built-in catalogue.\nadds 1 sports: darts\noverrides 1 bookmakers: betmgm\n";
    assert!(shown.ends_with(expected), "{shown}");
    let changes = directory.json(&format!("catalogue check {}", file.display()));
    assert_eq!((&changes["sports"]["added"][0], &changes["replace"]), (&"darts".into(), &false.into()));

    fs::write(&file, "\nbookmakers = [{ key = \"a\", title = \"A\", regions = [] }]\n").expect("a file");
    let message = directory.run(&format!("catalogue check {}", file.display())).failed();
    assert!(message.contains("line 2") && message.contains("`regions`"), "{message}");
}

#[test]
fn family_that_a_feed_names_is_a_sport_also_without_a_server() {
    let directory = Directory::new();
    let feed = "[feeds.us]\nkind = \"the-odds-api\"\nurl = \"https://upstream.invalid/v4\"\nkey = \"k\"\nsports = \"darts_pdc\"\n";
    let (_kept, file) = file_with(feed.as_bytes());
    let sports = directory.json(&format!("catalogue --config {}", file.display()))["sports"].clone();
    assert_eq!(sports.as_array().expect("a list").last().expect("a sport")["v4_key"], "darts_*");

    let config = file.to_str().expect("a text").to_owned();
    let own = [("ODDSBOX_CONFIG", config.as_str()), ("ODDSBOX_LOG", "error")];
    let server = directory.serve_with(&own);
    let line = r#"{"type":"event","sport":"darts","id":"d1","competition":"PDC","commence_time":"2099-01-01T00:00:00Z","home":"A","away":"B","status":"scheduled"}"#;
    let (_lines, lines) = file_with(format!("{line}\n").as_bytes());
    assert_eq!(directory.json(&format!("ingest {}", lines.display()))["accepted"], 1);
    server.stop();
    let exported = directory.run("export").succeeded().stdout;
    assert!(exported.contains(r#""sport":"darts""#), "{exported}");
}

#[test]
fn unknown_sport_of_a_line_says_what_to_do() {
    let directory = Directory::new();
    for (sport, advice) in [
        ("darts", "add families = [\\\"darts\\\"]"),
        ("socer", "did you mean \\\"soccer\\\"?"),
        ("soccer_epl", "is a competition: send \\\"sport\\\":\\\"soccer\\\""),
    ] {
        let line = format!(r#"{{"type":"odds","sport":"{sport}"}}"#);
        let (_kept, file) = file_with(format!("{line}\n").as_bytes());
        let run = directory.run(&format!("ingest {} --json", file.display()));
        assert!(run.stdout.contains(advice), "{}", run.stdout);
    }
}
