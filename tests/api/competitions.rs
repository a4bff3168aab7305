//! Competitions: keys in and out, the filter, the list, and sports that are listed once they had an event.

use oddsbox::model::World;
use serde_json::json;

use super::fixture::{EVENING, error, event, fields, message, moneyline, payload_event, remove, score, strings};
use super::payload::{ingest_lines, ingest_payload, reasons};
use crate::harness::Service;

const CUP: &str = "soccer_iceland_cup";

/// A match of a competition with a key and a title of its own.
fn keyed(sport: &str, id: &str, key: &str, title: &str) -> String {
    event(sport, id, EVENING).replace(
        r#""competition":"Cup""#,
        &format!(r#""competition":"{title}","competition_key":"{key}","competition_title":"{title}""#),
    )
}

/// Two matches of two leagues, one of them not in the catalogue, each with a price and a score.
fn leagues() -> String {
    let lines = [("s1", "soccer_epl", "EPL"), ("s2", CUP, "Bikarinn \\u00cdsland"), ("s3", "soccer_epl", "EPL")];
    let of = |(id, key, title): (&str, &str, &str)| {
        [
            keyed("soccer", id, key, title),
            moneyline("soccer", id, "betmgm", -110, 120),
            score("soccer", id, "live", 1, 0, "2026-11-14T23:38:00Z"),
        ]
        .concat()
    };
    lines.map(of).concat()
}

#[tokio::test]
async fn key_of_a_feed_line_is_returned_unchanged() {
    let service = Service::start_with_sandbox().await;
    service.ingest(&leagues()).await;
    let one = service.get("/v1/sports/soccer/events/s2").await;
    assert!(
        one.text().contains(r#""competition":"Bikarinn Ísland","competition_key":"soccer_iceland_cup","#),
        "{one:?}"
    );
    assert_eq!(
        service.get("/v1/sports/soccer/competitions").await.text(),
        concat!(
            r#"[{"key":"soccer_epl","title":"EPL","sport_key":"soccer","events":2},"#,
            r#"{"key":"soccer_iceland_cup","title":"Bikarinn Ísland","sport_key":"soccer","events":1}]"#
        )
    );
    let events = service.get(&format!("/v4/sports/{CUP}/events")).await;
    assert_eq!((fields(&events, "sport_key"), fields(&events, "id")), (vec![CUP.to_owned()], vec!["s2".to_owned()]));
    assert_eq!(fields(&events, "sport_title"), ["Bikarinn Ísland"]);
}

#[tokio::test]
async fn title_of_the_catalogue_decides_the_key_of_a_line_without_one() {
    let service = Service::start_with_sandbox().await;
    let named = |id: &str, title: &str| event("soccer", id, EVENING).replace("\"Cup\"", &format!("\"{title}\""));
    service.ingest(&(named("s1", "EPL") + &named("s2", "Sunday League"))).await;
    let events = service.get("/v1/sports/soccer/events").await;
    assert_eq!(fields(&events, "competition_key"), ["soccer_epl", "soccer_sunday_league"]);
    assert_eq!(fields(&events, "competition"), ["EPL", "Sunday League"]);
}

#[tokio::test]
async fn key_of_another_sport_is_rejected() {
    let service = Service::start_with_sandbox().await;
    let lines = keyed("soccer", "s1", "tennis_atp_rome", "Rome") + &keyed("soccer", "s2", "soccer_EPL", "EPL");
    let report = ingest_lines(&service, &lines).await;
    assert_eq!(report.rejected_by_reason, reasons([("bad_field", 2)]));
}

#[tokio::test]
async fn keys_of_a_payload_are_returned_unchanged() {
    let service = Service::start_with_sandbox().await;
    let events = json!([
        payload_event("p1", "soccer_epl", "EPL", json!([])),
        payload_event("p2", CUP, "Iceland Cup", json!([])),
    ]);
    let report = ingest_payload(&service, &events).await;
    assert_eq!((report.accepted, report.rejected), (2, 0), "{report:?}");
    // Without prices nothing is published before the tick.
    service.advance(30).await;
    for (key, title, id) in [("soccer_epl", "EPL", "p1"), (CUP, "Iceland Cup", "p2")] {
        let v4 = service.get(&format!("/v4/sports/{key}/odds?regions=us")).await;
        assert_eq!((fields(&v4, "id"), fields(&v4, "sport_key")), (vec![id.to_owned()], vec![key.to_owned()]));
        assert_eq!(fields(&v4, "sport_title"), [title]);
        let v1 = service.get(&format!("/v1/sports/soccer/events?competition={key}")).await;
        assert_eq!((fields(&v1, "id"), fields(&v1, "competition_key")), (vec![id.to_owned()], vec![key.to_owned()]));
        assert_eq!(fields(&v1, "competition"), [title]);
    }
}

#[tokio::test]
async fn competition_filters_odds_events_and_scores() {
    let service = Service::start_with_sandbox().await;
    service.ingest(&leagues()).await;
    for (path, name) in [("odds", "event_id"), ("events", "id"), ("scores", "event_id")] {
        for (keys, found) in [
            ("soccer_epl", &["s1", "s3"][..]),
            (CUP, &["s2"]),
            ("soccer_iceland_cup,soccer_epl", &["s1", "s2", "s3"]),
            ("soccer_epl,soccer_epl", &["s1", "s3"]),
            ("soccer_fa_cup", &[]),
            ("soccer_fa_cup,soccer_iceland_cup", &["s2"]),
            ("tennis_atp_us_open", &[]),
        ] {
            let answer = service.get(&format!("/v1/sports/soccer/{path}?competition={keys}")).await;
            assert_eq!((answer.status, fields(&answer, name)), (200, strings_of(found)), "{path} {keys}");
        }
        let both = service.get(&format!("/v1/sports/soccer/{path}?competition=soccer_epl&event_ids=s2,s3")).await;
        assert_eq!(fields(&both, name), ["s3"], "filters are combined");
        let page = service.get(&format!("/v1/sports/soccer/{path}?competition=soccer_epl&limit=1")).await;
        let link = page.header("link").expect("a second page");
        let next = link.split_once('<').and_then(|(_, rest)| rest.split_once('>')).expect("a link").0.to_owned();
        assert_eq!(fields(&service.get(&next).await, name), ["s3"]);
    }
}

fn strings_of(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[tokio::test]
async fn unknown_competition_is_400_with_the_nearest() {
    let service = Service::start_with_sandbox().await;
    service.ingest(&leagues()).await;
    for path in ["odds", "events", "scores"] {
        for (asked, nearest) in [
            ("soccer_eppl", Some("soccer_epl")),
            ("soccer_epl,soccer_iceland_cop", Some(CUP)),
            ("Soccer_EPL", Some("soccer_epl")),
            ("chess_candidates", None),
            ("soccer_epl,", None),
        ] {
            let answer = service.get(&format!("/v1/sports/soccer/{path}?competition={asked}")).await;
            assert_eq!(error(&answer), (400, "invalid_parameter".into()), "{asked}");
            assert_eq!(answer.param(), "competition");
            let text = message(&answer);
            assert!(nearest.is_none_or(|nearest| text.contains(&format!("the nearest is {nearest}"))), "{text}");
        }
        let empty = service.get(&format!("/v1/sports/soccer/{path}?competition=")).await;
        assert_eq!(error(&empty), (400, "invalid_parameter".into()));
    }
    let many = vec!["soccer_epl"; 101].join(",");
    let answer = service.get(&format!("/v1/sports/soccer/odds?competition={many}")).await;
    assert_eq!((answer.status, answer.param()), (400, "competition".into()));
}

#[tokio::test]
async fn competition_that_one_world_had_is_unknown_in_the_other() {
    let service = Service::start_with_sandbox().await;
    service.ingest(&leagues()).await;
    let path = format!("/v1/sports/soccer/odds?competition={CUP}");
    assert_eq!(service.get(&path).await.status, 200);
    assert_eq!(service.get_as(&service.sandbox, &path).await.status, 400);
    let v4 = format!("/v4/sports/{CUP}/odds?regions=us");
    assert_eq!(fields(&service.get(&v4).await, "id"), ["s2"]);
    assert_eq!(service.get_as(&service.sandbox, &v4).await.text(), "[]");
}

#[tokio::test]
async fn competition_in_place_of_a_sport_is_404_and_names_the_request_that_works() {
    let service = Service::start_with_sandbox().await;
    service.ingest(&leagues()).await;
    for path in ["odds", "events", "scores", "events/s1", "competitions"] {
        let answer = service.get(&format!("/v1/sports/soccer_epl/{path}")).await;
        assert_eq!(error(&answer), (404, "sport_not_found".into()));
        assert!(message(&answer).contains("soccer/odds?competition=soccer_epl"), "{answer:?}");
    }
    let named = service.get("/v1/sports/americanfootball_nfl/odds").await;
    assert!(
        message(&named).contains("/v1/sports/american_football/odds?competition=americanfootball_nfl"),
        "{named:?}"
    );
    let other = service.get("/v1/sports/curling_world_cup/odds").await;
    assert_eq!((error(&other), message(&other).contains("competition=")), ((404, "sport_not_found".into()), false));
    let never = service.get("/v1/sports/soccer_nonsense/odds").await;
    assert_eq!((error(&never), message(&never).contains("competition=")), ((404, "sport_not_found".into()), false));
}

#[tokio::test]
async fn competitions_are_those_that_had_an_event_and_stay_listed() {
    let service = Service::start_with_sandbox().await;
    let path = "/v1/sports/soccer/competitions";
    assert_eq!(service.get(path).await.text(), "[]");
    service.ingest(&leagues()).await;
    service.ingest(&(remove("soccer", "s1") + &score("soccer", "s2", "final", 1, 0, "2026-11-14T23:38:01Z"))).await;
    let events = |answer: &crate::harness::Answer| {
        strings(&answer.json(), "key").into_iter().zip(strings(&answer.json(), "events")).collect::<Vec<_>>()
    };
    let expected = [("soccer_epl".to_owned(), "1".to_owned()), (CUP.to_owned(), "0".to_owned())];
    assert_eq!(events(&service.get(path).await), expected);
    let service = service.restart().await;
    assert_eq!(events(&service.get(path).await), expected, "after a restart");
    assert_eq!(service.get("/v1/sports/tennis/competitions").await.text(), "[]", "those of the sport only");
    assert_eq!(service.get(&format!("{path}?limit=1")).await.status, 400);
}

#[tokio::test]
async fn sport_is_listed_once_its_world_had_an_event_of_it() {
    let service = Service::start_with_sandbox().await;
    let listed = async |key: &str| strings(&service.get_as(key, "/v1/sports").await.json()["sports"], "key");
    let always = ["mma", "boxing", "tennis", "american_football", "golf"];
    assert_eq!(listed(&service.live).await, always);
    service.ingest(&event("ice_hockey", "i1", EVENING)).await;
    service.ingest(&event("soccer", "s1", EVENING)).await;
    let with_both = ["mma", "boxing", "tennis", "american_football", "golf", "soccer", "ice_hockey"];
    assert_eq!(listed(&service.live).await, with_both);
    let simulated = [&always[..], &["soccer", "basketball", "baseball", "ice_hockey"]].concat();
    assert_eq!(listed(&service.sandbox).await, simulated);
    service.ingest(&(remove("soccer", "s1") + &remove("ice_hockey", "i1"))).await;
    assert_eq!(listed(&service.live).await, with_both, "it has had one");
    let report = service.ingest_report(World::Sandbox, &event("handball", "h1", EVENING)).await;
    assert_eq!(report.rejected(), 0);
    assert_eq!(listed(&service.sandbox).await, [simulated, vec!["handball"]].concat());
}

#[tokio::test]
async fn sport_that_is_not_listed_yet_can_be_read_and_is_a_group_of_its_own() {
    let service = Service::start_with_sandbox().await;
    for path in ["odds", "events", "scores", "competitions"] {
        assert_eq!(service.get(&format!("/v1/sports/handball/{path}")).await.text(), "[]");
    }
    service.ingest(&leagues()).await;
    let sports = service.get("/v1/sports").await;
    assert_eq!(
        sports.json()["sports"][5],
        json!({"key": "soccer", "title": "Soccer", "group": "soccer", "active": true, "events": 3, "books": 1})
    );
    let key = super::fixture::restricted(&service, &["soccer"]).await.secret;
    assert_eq!(service.get_as(&key, "/v1/sports/soccer/odds").await.status, 200);
    for path in ["basketball/odds", "mma/odds", "handball/competitions"] {
        assert_eq!(error(&service.get_as(&key, &format!("/v1/sports/{path}")).await), (403, "forbidden".into()));
    }
}
