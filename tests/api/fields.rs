//! Events with a field instead of two sides, in any sport.

use serde_json::json;

use super::fixture::{EVENING, UPDATED, error, event, fields, moneyline, odds, payload_event, records};
use super::payload::{ingest_lines, ingest_payload, reasons};
use crate::harness::Service;

const WINNER: &str = "americanfootball_nfl_super_bowl_winner";

/// An event with a field and its competition's key.
fn field(sport: &str, id: &str, key: &str, title: &str) -> String {
    format!(
        r#"{{"type":"event","sport":"{sport}","id":"{id}","competition":"{title}","competition_key":"{key}","commence_time":"{EVENING}","title":"{title}","status":"scheduled"}}"#
    ) + "\n"
}

fn outright(sport: &str, id: &str) -> String {
    let teams = r#"[{"name":"Kansas City Chiefs","price":450},{"name":"Buffalo Bills","price":700},{"name":"Detroit Lions","price":800}]"#;
    odds(sport, id, "draftkings", "outright", teams)
}

fn final_score(sport: &str, id: &str, more: &str) -> String {
    format!(
        r#"{{"type":"score","sport":"{sport}","event":"{id}","status":"final","updated_at":"{UPDATED}","periods":[]{more}}}"#
    ) + "\n"
}

/// A match and a field with an outright market, of a sport.
fn both(sport: &str, key: &str) -> String {
    [
        event(sport, "two", EVENING),
        moneyline(sport, "two", "draftkings", -110, -110),
        field(sport, "field", key, "The Winner"),
        outright(sport, "field"),
    ]
    .concat()
}

#[tokio::test]
async fn event_of_a_payload_without_sides_has_a_field() {
    let service = Service::start().await;
    let outcomes = json!([{"name": "Kansas City Chiefs", "price": 5.5}, {"name": "Buffalo Bills", "price": 8.0}]);
    let book = json!([{"key": "draftkings", "title": "DraftKings", "last_update": UPDATED, "markets": [
        {"key": "outrights", "last_update": UPDATED, "outcomes": outcomes}]}]);
    let mut winner = payload_event("sb", WINNER, "NFL Super Bowl Winner", book);
    winner["home_team"] = json!(null);
    winner["away_team"] = json!(null);
    let report = ingest_payload(&service, &json!([winner])).await;
    assert_eq!((report.accepted, report.rejected), (2, 0), "{report:?}");
    let event = service.get("/v1/sports/american_football/events/sb").await;
    assert_eq!(
        event.text(),
        concat!(
            r#"{"id":"sb","sport_key":"american_football","title":"NFL Super Bowl Winner","competition":"NFL Super Bowl Winner","#,
            r#""competition_key":"americanfootball_nfl_super_bowl_winner","commence_time":"2026-11-15T02:00:00Z","#,
            r#""home_team":null,"away_team":null,"status":"scheduled","markets":["outright"]}"#
        )
    );
    let asked = service.get("/v1/sports/american_football/odds?market=outright&odds_format=decimal").await;
    assert_eq!(records(&asked), ["sb draftkings outright"]);
    assert!(asked.text().contains(r#"{"name":"Kansas City Chiefs","price":5.5,"point":null}"#), "{asked:?}");
    // The only market of such a key is what a request without markets is about.
    for query in ["&markets=outrights", ""] {
        let v4 = service.get(&format!("/v4/sports/{WINNER}/odds?regions=us{query}")).await.json();
        assert_eq!((&v4[0]["id"], &v4[0]["home_team"]), (&json!("sb"), &json!(null)));
        assert_eq!(v4[0]["sport_title"], "NFL Super Bowl Winner");
        let market = &v4[0]["bookmakers"][0]["markets"][0];
        assert_eq!((&market["key"], &market["outcomes"]), (&json!("outrights"), &outcomes), "{query}");
    }
}

#[tokio::test]
async fn fields_are_hidden_in_sports_of_two_sides_unless_they_are_asked_for() {
    for (sport, key) in [
        ("mma", "mma_grand_prix_winner"),
        ("boxing", "boxing_super_six_winner"),
        ("tennis", "tennis_atp_us_open_winner"),
        ("american_football", WINNER),
    ] {
        let service = Service::start().await;
        service.ingest(&both(sport, key)).await;
        let found =
            async |path: &str, name: &str| fields(&service.get(&format!("/v1/sports/{sport}/{path}")).await, name);
        for (path, name) in [("odds", "event_id"), ("events", "id"), ("scores", "event_id")] {
            assert_eq!(found(path, name).await, ["two"], "{sport} {path}");
            assert_eq!(found(&format!("{path}?event_ids=field,two"), name).await, ["field", "two"], "{sport} {path}");
            assert_eq!(found(&format!("{path}?competition={key}"), name).await, ["field"], "{sport} {path}");
        }
        for (query, events) in [
            ("market=all", &["two"][..]),
            ("market=moneyline", &["two"]),
            ("bookmaker=draftkings", &["two"]),
            ("commence_from=2026-11-15T00:00:00Z", &["two"]),
            ("market=outright", &["field"]),
            ("market=outrights", &["field"]),
            ("market=moneyline,outright", &["field", "two"]),
        ] {
            assert_eq!(found(&format!("odds?{query}"), "event_id").await, events, "{sport} {query}");
        }
        let one = service.get(&format!("/v1/sports/{sport}/events/field")).await.json();
        assert_eq!(
            (&one["title"], &one["home_team"], &one["markets"]),
            (&json!("The Winner"), &json!(null), &json!(["outright"]))
        );
    }
}

#[tokio::test]
async fn fields_are_returned_like_other_events_in_every_other_sport() {
    for (sport, key) in [
        ("soccer", "soccer_fifa_world_cup_winner"),
        ("golf", "golf_masters_tournament_winner"),
        ("basketball", "basketball_nba_championship_winner"),
    ] {
        let service = Service::start().await;
        service.ingest(&both(sport, key)).await;
        for (path, name) in [("odds", "event_id"), ("events", "id"), ("scores", "event_id")] {
            let answer = service.get(&format!("/v1/sports/{sport}/{path}")).await;
            assert_eq!(fields(&answer, name), ["field", "two"], "{sport} {path}");
        }
    }
}

#[tokio::test]
async fn bouts_never_contain_a_field() {
    let service = Service::start().await;
    let winner = r#"[{"name":"A","price":450},{"name":"B","price":700}]"#;
    let lines = both("mma", "mma_grand_prix_winner") + &odds("mma", "field", "draftkings", "moneyline", winner);
    service.ingest(&lines).await;
    for query in ["", "&event_ids=field,two", "&competition=mma_grand_prix_winner,mma_mixed_martial_arts"] {
        let answer = service.get(&format!("/v1/sports/mma/odds?group=bout{query}")).await;
        let homes: Vec<String> = super::fixture::strings(&answer.json()["bouts"], "home");
        assert_eq!(homes, ["Home two"], "{query}");
    }
}

/// The score of an event follows the event: numbers for two sides, none for a field, whatever the sport usually has.
#[tokio::test]
async fn score_of_a_field_has_no_points() {
    for (sport, key) in
        [("american_football", WINNER), ("mma", "mma_grand_prix_winner"), ("golf", "golf_masters_tournament_winner")]
    {
        let service = Service::start().await;
        service.ingest(&field(sport, "field", key, "The Winner")).await;
        let path = format!("/v1/sports/{sport}/scores?event_ids=field");
        let score = async || service.get(&path).await.text().to_owned();
        let text = |status: &str, updated: &str| {
            format!(
                r#"[{{"event_id":"field","sport_key":"{sport}","status":"{status}","home_team":null,"away_team":null,"home_score":null,"away_score":null,"periods":[],"updated_at":"{updated}"}}]"#
            )
        };
        assert_eq!(score().await, text("scheduled", crate::harness::START));
        let with_points = final_score(sport, "field", r#","home_score":1,"away_score":0"#);
        let report = ingest_lines(&service, &with_points).await;
        assert_eq!(report.rejected_by_reason, reasons([("bad_field", 1)]), "{sport}: a field has no sides");
        let report = ingest_lines(&service, &final_score(sport, "field", "")).await;
        assert_eq!(report.rejected, 0, "{sport}: {report:?}");
        assert_eq!(score().await, text("final", UPDATED));
    }
}

#[tokio::test]
async fn score_of_two_sides_has_points_in_golf_too() {
    let service = Service::start().await;
    service.ingest(&event("golf", "ryder", EVENING)).await;
    let report = ingest_lines(&service, &final_score("golf", "ryder", "")).await;
    assert_eq!(report.rejected_by_reason, reasons([("missing_field", 1)]));
    let report = ingest_lines(&service, &final_score("golf", "ryder", r#","home_score":15,"away_score":13"#)).await;
    assert_eq!(report.rejected, 0, "{report:?}");
    let score = service.get("/v1/sports/golf/scores").await.json();
    assert_eq!((&score[0]["home_score"], &score[0]["away_score"]), (&json!(15), &json!(13)));
}

#[tokio::test]
async fn completed_field_of_a_payload_is_final_without_points() {
    let service = Service::start().await;
    for (sport, key) in [("american_football", WINNER), ("mma", "mma_grand_prix_winner")] {
        let mut winner = payload_event("w1", key, "The Winner", json!(null));
        winner["home_team"] = json!(null);
        winner["away_team"] = json!(null);
        winner["completed"] = json!(true);
        let report = ingest_payload(&service, &json!([winner])).await;
        assert_eq!((report.accepted, report.rejected), (2, 0), "{report:?}");
        let score = service.get(&format!("/v1/sports/{sport}/scores?event_ids=w1")).await.json();
        assert_eq!((&score[0]["status"], &score[0]["home_score"]), (&json!("final"), &json!(null)), "{sport}");
    }
}

#[tokio::test]
async fn unknown_event_with_a_field_is_404() {
    let service = Service::start().await;
    let answer = service.get("/v1/sports/american_football/events/field").await;
    assert_eq!(error(&answer), (404, "event_not_found".into()));
}
