//! Get Scores.

use super::fixture::{EVENING, error, event, event_with, every_sport, fields, score, score_with, tournament};
use crate::harness::Service;

const AT: &str = "2026-11-14T23:38:50Z";

#[tokio::test]
async fn scheduled_event_has_zero_scores_without_periods() {
    let service = Service::start().await;
    service.ingest(&event("tennis", "t1", EVENING)).await;
    assert_eq!(
        service.get("/v1/sports/tennis/scores").await.text(),
        concat!(
            r#"[{"event_id":"t1","sport_key":"tennis","status":"scheduled","home_team":"Home t1","away_team":"Away t1","#,
            r#""home_score":0,"away_score":0,"periods":[],"updated_at":"2026-11-14T23:39:00Z"}]"#
        )
    );
}

#[tokio::test]
async fn an_event_that_began_without_a_score_has_null_for_both() {
    let service = Service::start().await;
    let lines = [
        event_with("tennis", "t1", EVENING, "live"),
        event_with("tennis", "t2", EVENING, "final"),
        event_with("mma", "m1", EVENING, "final"),
    ];
    service.ingest(&lines.concat()).await;
    for sport in ["tennis", "mma"] {
        let scores = service.get(&format!("/v1/sports/{sport}/scores")).await;
        for score in scores.json().as_array().expect("a list") {
            let (home, away) = (&score["home_score"], &score["away_score"]);
            assert!(home.is_null() && away.is_null() && score["periods"] == serde_json::json!([]), "{score}");
        }
    }
    let scores = service.get("/v4/sports/tennis_cup/scores?daysFrom=1").await;
    assert_eq!(fields(&scores, "scores"), ["null", "null"]);
    assert_eq!(fields(&scores, "completed"), ["false", "true"]);
}

#[tokio::test]
async fn a_live_score_has_its_periods() {
    let service = Service::start().await;
    let periods =
        r#","periods":[{"number":1,"home_score":7,"away_score":3},{"number":2,"home_score":0,"away_score":10}]"#;
    let live = score_with("american_football", "f1", "live", 7, 13, AT, periods);
    service.ingest(&(event("american_football", "f1", EVENING) + &live)).await;
    let answer = service.get("/v1/sports/american_football/scores").await;
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(
        answer.text(),
        concat!(
            r#"[{"event_id":"f1","sport_key":"american_football","status":"live","home_team":"Home f1","away_team":"Away f1","#,
            r#""home_score":7,"away_score":13,"periods":[{"number":1,"home_score":7,"away_score":3},"#,
            r#"{"number":2,"home_score":0,"away_score":10}],"updated_at":"2026-11-14T23:38:50Z"}]"#
        )
    );
}

#[tokio::test]
async fn a_final_fight_has_one_for_the_winner_and_names_the_fighter() {
    let service = Service::start().await;
    let rounds = r#","winner":"Away m1","periods":[{"number":1,"home_score":9,"away_score":10}]"#;
    let end = score_with("mma", "m1", "final", 0, 1, AT, rounds);
    service.ingest(&(event("mma", "m1", EVENING) + &end)).await;
    assert_eq!(
        service.get("/v1/sports/mma/scores").await.text(),
        concat!(
            r#"[{"event_id":"m1","sport_key":"mma","status":"final","home_team":"Home m1","away_team":"Away m1","#,
            r#""home_score":0,"away_score":1,"periods":[{"number":1,"home_score":9,"away_score":10}],"#,
            r#""updated_at":"2026-11-14T23:38:50Z","winner":"Away m1"}]"#
        )
    );
}

#[tokio::test]
async fn golf_has_null_scores_and_a_period_for_each_round_of_the_leaders() {
    let service = Service::start().await;
    let line = r#"{"type":"score","sport":"golf","event":"g1","status":"live","periods":[{"number":1,"home_score":66,"away_score":67},{"number":2,"home_score":68,"away_score":70}],"updated_at":"2026-11-14T23:38:50Z"}"#;
    service.ingest(&(tournament("g1", "The Open", EVENING) + line + "\n" + &tournament("g2", "Next", EVENING))).await;
    assert_eq!(
        service.get("/v1/sports/golf/scores").await.text(),
        concat!(
            r#"[{"event_id":"g1","sport_key":"golf","status":"live","home_team":null,"away_team":null,"#,
            r#""home_score":null,"away_score":null,"periods":[{"number":1,"home_score":66,"away_score":67},"#,
            r#"{"number":2,"home_score":68,"away_score":70}],"updated_at":"2026-11-14T23:38:50Z"},"#,
            r#"{"event_id":"g2","sport_key":"golf","status":"scheduled","home_team":null,"away_team":null,"#,
            r#""home_score":null,"away_score":null,"periods":[],"updated_at":"2026-11-14T23:39:00Z"}]"#
        )
    );
}

#[tokio::test]
async fn fight_has_zero_scores_until_its_end_and_a_draw_has_no_winner() {
    let service = Service::start().await;
    let row = async || {
        let json = service.get("/v1/sports/mma/scores").await.json();
        let row = &json[0];
        (
            row["status"].to_string(),
            row["home_score"].to_string(),
            row["away_score"].to_string(),
            row.get("winner").cloned(),
        )
    };
    let expect = |status: &str, home: &str, away: &str, winner: Option<&str>| {
        (format!("\"{status}\""), home.to_owned(), away.to_owned(), winner.map(|name| serde_json::json!(name)))
    };
    service.ingest(&event("mma", "m1", EVENING)).await;
    assert_eq!(row().await, expect("scheduled", "0", "0", None));
    // A feed that counts rounds or judges' points during the fight.
    service.ingest(&score("mma", "m1", "live", 2, 1, "2026-11-14T23:38:51Z")).await;
    assert_eq!(row().await, expect("live", "0", "0", None));
    service.ingest(&score_with("mma", "m1", "final", 0, 0, "2026-11-14T23:38:52Z", "")).await;
    assert_eq!(row().await, expect("final", "0", "0", None));
    service.ingest(&score_with("mma", "m1", "final", 0, 0, "2026-11-14T23:38:53Z", r#","winner":"Home m1""#)).await;
    assert_eq!(row().await, expect("final", "1", "0", Some("Home m1")));
    // A feed that gives the winner by points only.
    service.ingest(&score("mma", "m1", "final", 27, 30, "2026-11-14T23:38:54Z")).await;
    assert_eq!(row().await, expect("final", "0", "1", Some("Away m1")));
}

#[tokio::test]
async fn winner_is_for_combat_sports_only() {
    let service = Service::start().await;
    let lines = [
        event("american_football", "f1", EVENING),
        score("american_football", "f1", "final", 20, 17, AT),
        event("tennis", "t1", EVENING),
        score("tennis", "t1", "final", 2, 0, AT),
        event("boxing", "b1", EVENING),
        score("boxing", "b1", "final", 1, 0, AT),
    ];
    service.ingest(&lines.concat()).await;
    for (sport, has) in [("american_football", false), ("tennis", false), ("boxing", true)] {
        let answer = service.get(&format!("/v1/sports/{sport}/scores")).await;
        assert_eq!(answer.text().contains("winner"), has, "{answer:?}");
    }
}

#[tokio::test]
async fn status_filters_and_its_default_is_all() {
    let service = Service::start().await;
    let lines = [
        event("tennis", "a", "2026-11-15T01:00:00Z"),
        event("tennis", "b", "2026-11-14T23:00:00Z"),
        score("tennis", "b", "live", 1, 0, AT),
        event("tennis", "c", "2026-11-14T20:00:00Z"),
        score("tennis", "c", "final", 2, 0, AT),
        event_with("tennis", "d", "2026-11-14T21:00:00Z", "cancelled"),
    ];
    service.ingest(&lines.concat()).await;
    for (query, ids) in [("", "c b a"), ("?status=scheduled", "a"), ("?status=live", "b"), ("?status=final", "c")] {
        let answer = service.get(&format!("/v1/sports/tennis/scores{query}")).await;
        assert_eq!(fields(&answer, "event_id").join(" "), ids, "{query}: a cancelled event has no score");
    }
    let answer = service.get("/v1/sports/tennis/scores?status=cancelled").await;
    assert_eq!((error(&answer), answer.param()), ((400, "invalid_parameter".into()), "status".into()));
}

#[tokio::test]
async fn order_of_scores_and_events_is_commence_then_event_id() {
    let service = Service::start().await;
    let (early, late) = ("2026-11-15T01:00:00Z", "2026-11-15T03:00:00Z");
    let lines = [
        event("tennis", "a", late),
        event("tennis", "z", early),
        event("tennis", "B", late),
        event("tennis", "c", early),
    ];
    service.ingest(&lines.concat()).await;
    assert_eq!(fields(&service.get("/v1/sports/tennis/scores").await, "event_id"), ["c", "z", "B", "a"]);
    assert_eq!(fields(&service.get("/v1/sports/tennis/events").await, "id"), ["c", "z", "B", "a"]);
}

#[tokio::test]
async fn every_event_that_is_not_cancelled_has_a_score() {
    let service = Service::start().await;
    service.ingest(&every_sport()).await;
    for (sport, id) in [("mma", "m1"), ("boxing", "b1"), ("tennis", "t1"), ("american_football", "f1"), ("golf", "g1")]
    {
        assert_eq!(fields(&service.get(&format!("/v1/sports/{sport}/scores")).await, "event_id"), [id]);
    }
}
