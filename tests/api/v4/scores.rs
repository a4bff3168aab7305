//! `/v4/sports/{sport}/scores`.

use super::{GOLF, MMA, NFL};
use crate::api::fixture::{EVENING, event, event_with, fields, score, tournament};
use crate::harness::Service;

const PLAYED: &str = "2026-11-14T20:00:00Z";

#[tokio::test]
async fn scores_are_strings_and_null_before_the_start() {
    let service = Service::start().await;
    let lines = [
        event("american_football", "f1", PLAYED),
        score("american_football", "f1", "live", 14, 10, "2026-11-14T23:38:00Z"),
        event("american_football", "f2", EVENING),
        event("american_football", "f3", EVENING),
        score("american_football", "f3", "scheduled", 0, 0, "2026-11-14T23:38:00Z"),
    ];
    service.ingest(&lines.concat()).await;
    let head = r#""sport_key":"americanfootball_nfl","sport_title":"NFL","commence_time":"#;
    let unplayed = |id: &str| {
        format!(
            r#"{{"id":"{id}",{head}"{EVENING}","completed":false,"home_team":"Home {id}","away_team":"Away {id}","scores":null,"last_update":null}}"#
        )
    };
    let live = format!(
        r#"{{"id":"f1",{head}"{PLAYED}","completed":false,"home_team":"Home f1","away_team":"Away f1","scores":[{{"name":"Home f1","score":"14"}},{{"name":"Away f1","score":"10"}}],"last_update":"2026-11-14T23:38:00Z"}}"#
    );
    let answer = service.get(&format!("{NFL}/scores")).await;
    assert_eq!(answer.text(), format!("[{live},{},{}]", unplayed("f2"), unplayed("f3")));
    let unix = service.get(&format!("{NFL}/scores?dateFormat=unix&eventIds=f1")).await.json();
    assert_eq!((&unix[0]["commence_time"], &unix[0]["last_update"]), (&1_794_686_400.into(), &1_794_699_480.into()));
}

#[tokio::test]
async fn days_from_adds_recently_finished_events() {
    let service = Service::start_with(&[("retention", "90d")]).await;
    let ended = |id: &str, at: &str| [event("mma", id, PLAYED), score("mma", id, "final", 1, 0, at)].concat();
    let lines = [
        ended("today", "2026-11-14T12:00:00Z"),
        ended("day", "2026-11-13T23:39:00Z"),
        ended("before", "2026-11-13T23:38:59Z"),
        ended("three", "2026-11-12T00:00:00Z"),
        ended("four", "2026-11-10T00:00:00Z"),
        event("mma", "next", EVENING),
        event_with("mma", "off", EVENING, "cancelled"),
    ];
    service.ingest(&lines.concat()).await;
    let ids = |query: &'static str| {
        let service = &service;
        async move {
            let mut ids = fields(&service.get(&format!("{MMA}/scores{query}")).await, "id");
            ids.sort_unstable();
            ids
        }
    };
    assert_eq!(ids("").await, ["next"]);
    assert_eq!(ids("?daysFrom=").await, ["next"]);
    assert_eq!(ids("?daysFrom=1").await, ["day", "next", "today"]);
    assert_eq!(ids("?daysFrom=2").await, ["before", "day", "next", "today"]);
    assert_eq!(ids("?daysFrom=3").await, ["before", "day", "next", "three", "today"]);
    let json = service.get(&format!("{MMA}/scores?daysFrom=1&eventIds=today")).await.json();
    assert_eq!((&json[0]["completed"], &json[0]["scores"][0]["score"]), (&true.into(), &"1".into()));
    service.advance(60).await;
    assert_eq!(ids("?daysFrom=1").await, ["next", "today"], "a day later is a day later");
}

#[tokio::test]
async fn golf_has_no_side_scores() {
    let service = Service::start().await;
    service.ingest(&tournament("g1", "The Open", PLAYED).replace("scheduled", "live")).await;
    let json = service.get(&format!("{GOLF}/scores")).await.json();
    assert!(json[0]["scores"].is_null() && json[0]["completed"] == false);
}
