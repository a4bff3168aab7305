//! Export and ingest: the same world again, byte for byte in every response and in what responses do not show.

use std::time::Duration;

use oddsbox::admin::{Access, AdminAccess, DataDir, ExportOptions, Setup};
use oddsbox::clock::Clock;
use oddsbox::config::catalogue;
use oddsbox::ingest::{IngestOptions, IngestSummary, Simulator};
use oddsbox::model::{News, Reason, Timestamp, World};
use serde_json::Value;

use super::fixture::{
    EVENING, UPDATED, bookmaker, closed, event, event_with, fields, limited, moneyline, moneyline_at, odds_in, read,
    remove, score, score_with, tournament,
};
use crate::harness::{START_MS, Service, config};

/// Those of the simulator.
const SPORTS: [&str; 9] =
    ["mma", "boxing", "tennis", "american_football", "golf", "soccer", "basketball", "baseball", "ice_hockey"];
const ALL_REGIONS: &str = "regions=us,us2,us_dfs,us_ex,uk,eu,fr,se,au";

async fn export(access: &AdminAccess) -> String {
    let mut source = access.export(ExportOptions::World(World::Live)).await.expect("an export");
    let mut text = Vec::new();
    while let Some(piece) = source.recv().await {
        text.extend_from_slice(&piece.expect("a piece"));
    }
    String::from_utf8(text).expect("a text")
}

async fn ingest(access: &AdminAccess, text: &str) -> IngestSummary {
    let (sender, source) = tokio::sync::mpsc::channel(4);
    let text = bytes::Bytes::copy_from_slice(text.as_bytes());
    let sent = async move {
        for at in (0..text.len()).step_by(60_000) {
            sender.send(Ok(text.slice(at..(at + 60_000).min(text.len())))).await.expect("a taker");
        }
    };
    let options = IngestOptions { world: World::Live, strict: false };
    let (answer, ()) = tokio::join!(access.ingest(options, source), sent);
    answer.expect("a report")
}

async fn server_door(service: &Service) -> AdminAccess {
    AdminAccess::server(&DataDir::new(service.data())).await.expect("a socket").expect("a server")
}

/// The file of a stopped service, opened at a given time.
async fn file_door(service: &Service, clock: &Clock) -> AdminAccess {
    let setup = Setup { clock: clock.clone(), ..Setup::of(&config(&[])).expect("a setup") };
    AdminAccess::find(&DataDir::new(service.data()), Access::Existing, || Ok(setup)).await.expect("a file")
}

/// An empty service with the clock of the other, after the same tick.
async fn beside(service: &Service, settings: &[(&'static str, &str)]) -> Service {
    let other = Service::start_with(settings).await;
    other.clock.set_unix_ms(service.clock.now().unix_ms);
    other.writer().tick().await.expect("a tick");
    other
}

/// All pages of a list.
async fn pages(service: &Service, key: &str, path: &str) -> Vec<(String, String)> {
    let mut pages = Vec::new();
    let mut next = Some(path.to_owned());
    while let Some(path) = next.take() {
        let answer = service.get_as(key, &path).await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        let link = answer.header("link").and_then(|link| link.strip_prefix('<'));
        next = link.and_then(|link| link.split_once('>')).map(|(path, _)| path.to_owned());
        pages.push((path, answer.text().to_owned()));
    }
    pages
}

/// Everything that a production key can read.
async fn everything(service: &Service) -> Vec<(String, String)> {
    let key = limited(service, 1_000_000, Some(1_000_000), None).await.secret;
    let mut all = Vec::new();
    for path in ["/v1/sports", "/v1/books", "/v1/status", "/v1/markets", "/v4/sports?all=true"] {
        all.extend(pages(service, &key, path).await);
    }
    let catalogue = catalogue::builtin();
    for (_, sport) in catalogue.sports() {
        let sport = &*sport.key;
        for (format, market) in [("american", ""), ("decimal", ""), ("fractional", ""), ("decimal", "&market=all")] {
            let path = format!("/v1/sports/{sport}/odds?limit=500&odds_format={format}{market}&{ALL_REGIONS}");
            all.extend(pages(service, &key, &path).await);
        }
        let lay = format!("/v1/sports/{sport}/odds?market=moneyline_lay,outright&{ALL_REGIONS}");
        all.extend(pages(service, &key, &lay).await);
        all.extend(pages(service, &key, &format!("/v1/sports/{sport}/competitions")).await);
        if ["mma", "boxing"].contains(&sport) {
            let path = format!("/v1/sports/{sport}/odds?group=bout&limit=500&{ALL_REGIONS}");
            all.extend(pages(service, &key, &path).await);
        }
        all.extend(pages(service, &key, &format!("/v1/sports/{sport}/scores?limit=500")).await);
        let events = pages(service, &key, &format!("/v1/sports/{sport}/events?limit=500")).await;
        for (_, page) in &events {
            let page: Vec<Value> = serde_json::from_str(page).expect("a list");
            for id in page.iter().filter_map(|event| event["id"].as_str()) {
                all.extend(pages(service, &key, &format!("/v1/sports/{sport}/events/{id}")).await);
            }
        }
        all.extend(events);
    }
    all
}

fn assert_same(one: &[(String, String)], other: &[(String, String)]) {
    // The status ends with the beginning of history, which is not exported.
    let without_history = |text: &str| text.split(",\"history_since\"").next().unwrap_or_default().to_owned();
    for ((path, one), (same_path, other)) in one.iter().zip(other) {
        assert_eq!(path, same_path);
        let (one, other) = (without_history(one), without_history(other));
        let same = one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count();
        let shown = |text: &str| String::from_utf8_lossy(&text.as_bytes()[same.saturating_sub(200)..]).into_owned();
        assert!(one == other, "{path}\n{:.500}\n{:.500}", shown(&one), shown(&other));
    }
    assert_eq!(one.len(), other.len());
}

async fn tell(service: &Service, news: Vec<News>) {
    for batch in news.chunks(5_000) {
        let report = service.writer().ingest(World::Live, batch.to_vec(), false).await.expect("a commit");
        // The retention may have removed an event just before.
        let removals = batch.iter().filter(|news| matches!(news, News::Remove { .. })).count() as u64;
        let is_unknown = report.reasons().all(|(reason, _)| reason == Reason::UnknownEvent);
        assert!(is_unknown && report.rejected() <= removals, "{report:?}");
    }
}

/// Exports, ingests elsewhere and compares responses and the export of the export, also from the file alone.
async fn assert_round_trip(mut service: Service) {
    let exported = export(&server_door(&service).await).await;
    let mut other = beside(&service, &[]).await;
    let report = ingest(&server_door(&other).await, &exported).await;
    assert_eq!((report.rejected, report.dropped_outcomes), (0, 0), "{report:?}");
    assert_eq!(report.lines, exported.lines().count() as u64);
    assert_same(&everything(&service).await, &everything(&other).await);
    assert!(export(&server_door(&other).await).await == exported, "the stored world is the same");

    let clock = service.clock.clone();
    service.stop().await;
    other.stop().await;
    for stopped in [&service, &other] {
        let access = file_door(stopped, &clock).await;
        let from_file = export(&access).await;
        for (one, other) in from_file.lines().zip(exported.lines()) {
            assert_eq!(one, other, "it is the same from the file");
        }
        assert_eq!(from_file.len(), exported.len());
        access.close().await.expect("an end");
    }
}

#[tokio::test]
async fn simulated_world_round_trips() {
    let service = Service::start().await;
    let simulator = Simulator::new(7, &catalogue::builtin());
    let at = |seconds: i64| Timestamp::from_unix_ms(START_MS + seconds * 1000);
    tell(&service, simulator.opening(at(0))).await;
    let (steps, step_s) = (8, 1_800);
    for step in 0..steps {
        service.clock.advance(Duration::from_secs(step_s));
        let since = step * i64::try_from(step_s).expect("a step");
        tell(&service, simulator.between(at(since), at(since + 1_800))).await;
    }
    // A quiet sport is published after a second, so that the rest is published with the tick.
    let end = steps * 1_800;
    service.advance(1).await;
    service.pass(28);
    tell(&service, simulator.between(at(end), at(end + 29))).await;
    service.advance(1).await;
    for sport in SPORTS {
        assert!(!fields(&service.get(&format!("/v1/sports/{sport}/odds")).await, "id").is_empty(), "{sport}");
    }
    assert!(service.get("/v1/sports/tennis/scores?status=final").await.text().len() > 2, "some are over");
    assert_round_trip(service).await;
}

/// What the simulator does not produce: each line is a way in which a world could come back changed.
#[tokio::test]
async fn rare_records_round_trip() {
    let service = Service::start().await;
    let mixed = r#"[{"name":"A","price":"10/11"},{"name":"B","price":1.909,"format":"decimal"},{"name":"Draw","price":-100,"format":"american"}]"#;
    let winner = r#","winner":"Home m2","periods":[{"number":1,"home_score":10,"away_score":9}]"#;
    let first = [
        bookmaker("nobody", "No \\\"Prices\\\" Yet", r#"["eu","au"]"#),
        bookmaker("betmgm", "Bet & Other", r#"["uk"]"#),
        event("mma", "m1", EVENING),
        // A bookmaker's update time that differs from its market's.
        odds_in("fractional", "mma", "m1", "betmgm", "moneyline", "2026-11-14T23:38:30Z", mixed).replace(
            r#","format":"fractional""#,
            r#","bookmaker_update":"2026-11-14T23:38:31Z","format":"fractional""#,
        ),
        // A feed with a clock ahead, a closed market, and one that was never open.
        moneyline_at("mma", "m1", "fanduel", "2026-11-14T23:39:50Z", -110, -110),
        moneyline("mma", "m1", "draftkings", -120, 100),
        closed("mma", "m1", "draftkings", "moneyline", "2026-11-14T23:38:40Z"),
        closed("mma", "m1", "draftkings", "total_rounds", "2026-11-14T23:38:10Z"),
        read("mma", "draftkings", "2026-11-14T23:38:50Z", 321),
        // Finished, and renamed afterwards.
        event("mma", "m2", EVENING),
        moneyline("mma", "m2", "bovada", -120, 100),
        score_with("mma", "m2", "final", 0, 0, "2026-11-14T23:38:55Z", winner),
        event("mma", "m2", EVENING).replace("Home m2", "Home of Two"),
        // Cancelled, with and without a score.
        event("tennis", "t1", EVENING),
        score("tennis", "t1", "live", 1, 0, "2026-11-14T23:38:55Z"),
        event_with("tennis", "t1", EVENING, "cancelled"),
        event_with("tennis", "t2", EVENING, "cancelled"),
        event_with("tennis", "t3", EVENING, "final"),
        event("tennis", "t4", EVENING),
        remove("tennis", "t4"),
        tournament("g1", "The Open", EVENING),
    ];
    service.ingest(&first.concat()).await;
    service.advance(300).await;
    // Some records changed later than others, and everything is published now.
    service.ingest(&(event("boxing", "b1", EVENING) + &moneyline("boxing", "b1", "betmgm", 100, 200))).await;
    service.ingest(&read("mma", "betmgm", "2026-11-14T23:43:30Z", 5)).await;
    service.ingest(&read("boxing", "betmgm", "2026-11-14T23:43:31Z", 7)).await;
    service.advance(30).await;
    assert_round_trip(service).await;
}

/// Sports, competitions and markets beyond those of the first version, also those of which only the memory is left.
#[tokio::test]
async fn world_with_every_kind_of_market_round_trips() {
    let service = Service::start().await;
    let keyed = |sport: &str, id: &str, key: &str| {
        let given = format!(r#""competition_key":"{key}","competition_title":"  The {key} ","competition":"#);
        event(sport, id, EVENING).replace(r#""competition":"#, &given)
    };
    let field =
        |sport: &str, id: &str| tournament(id, "The Winner", EVENING).replace("\"golf\"", &format!("\"{sport}\""));
    let props = r#"[{"name":" Over ","description":"K. \"Kay\" Li ","price":1.909,"point":0.25},{"name":" Over ","description":"K. \"Kay\" Li ","price":1.909,"point":0.25},{"name":"Under","price":2.0,"point":-1.125},{"name":"Ünder","price":3.5}]"#;
    let priced = |sport: &str, id: &str, market: &str| odds_in("decimal", sport, id, "betmgm", market, UPDATED, props);
    let names = r#"[{"name":"A","price":5.5},{"name":" B","price":8.0}]"#;
    let named = |sport: &str, id: &str, market: &str| odds_in("decimal", sport, id, "ballybet", market, UPDATED, names);
    let over = |sport: &str, id: &str, more: &str| {
        format!(
            r#"{{"type":"score","sport":"{sport}","event":"{id}","status":"final","updated_at":"{UPDATED}"{more}}}"#
        ) + "\n"
    };
    let lines = [
        keyed("soccer", "s1", "soccer_epl"),
        priced("soccer", "s1", "alternate_team_totals_corners_h1"),
        priced("soccer", "s1", "player_export_only_alternate"),
        named("soccer", "s1", "h2h_lay"),
        named("soccer", "s1", "double_chance"),
        // The key that follows from a name may have letters that no other key has.
        event("soccer", "s3", EVENING).replace("\"Cup\"", "\"Íslenska B-deild\""),
        event("soccer", "s4", EVENING).replace("\"Cup\"", "\"Ís\""),
        remove("soccer", "s4"),
        // Gone, with a competition, a sport and a market that nothing else has.
        keyed("soccer", "s2", "soccer_iceland_cup"),
        keyed("handball", "h1", "handball_export_cup"),
        priced("handball", "h1", "player_gone_export"),
        remove("soccer", "s2"),
        remove("handball", "h1"),
        // Fields in sports of two sides and the other way round, open and over.
        field("american_football", "w1"),
        named("american_football", "w1", "outrights"),
        field("mma", "w2"),
        over("mma", "w2", ""),
        field("politics", "w3"),
        named("politics", "w3", "outrights_lay"),
        event("golf", "ryder", EVENING),
        over("golf", "ryder", r#","home_score":15,"away_score":13"#),
        event("mma", "m1", EVENING),
        priced("mma", "m1", "spreads").replace(r#",{"name":"Ünder","price":3.5}"#, ""),
        closed("mma", "m1", "betmgm", "alternate_total_rounds", UPDATED),
    ];
    service.ingest(&lines.concat()).await;
    let path = "/v1/sports/handball/odds?market=player_gone_export";
    assert_eq!(service.get(path).await.text(), "[]");
    let other = beside(&service, &[]).await;
    ingest(&server_door(&other).await, &export(&server_door(&service).await).await).await;
    assert_eq!(other.get(path).await.text(), "[]", "a market that had a price is known");
    assert_round_trip(service).await;
}

#[tokio::test]
async fn imported_world_keeps_close_times_and_retention() {
    let service = Service::start_with(&[("retention", "1h")]).await;
    let lines = [
        event("mma", "m1", EVENING),
        moneyline("mma", "m1", "betmgm", -110, -110),
        closed("mma", "m1", "betmgm", "moneyline", "2026-11-14T23:39:00Z"),
        event_with("mma", "m2", EVENING, "cancelled"),
    ];
    service.ingest(&lines.concat()).await;
    service.advance(3_000).await;
    let exported = export(&server_door(&service).await).await;
    let other = beside(&service, &[("retention", "1h")]).await;
    ingest(&server_door(&other).await, &exported).await;
    let late = other.ingest_report(World::Live, &moneyline("mma", "m1", "betmgm", 500, -500)).await;
    assert_eq!(late.rejected(), 1, "the market closed after that");
    other.advance(599).await;
    assert_eq!(other.get("/v1/sports/mma/events/m2").await.status, 200);
    other.advance(61).await;
    assert_eq!(other.get("/v1/sports/mma/events/m2").await.status, 404, "an hour after it was cancelled");
}

/// Ingesting an export into its own world changes nothing.
#[tokio::test]
async fn ingesting_an_export_into_its_own_world_changes_nothing() {
    let service = Service::start().await;
    service.ingest(&super::fixture::every_sport()).await;
    service.advance(30).await;
    let access = server_door(&service).await;
    let exported = export(&access).await;
    service.advance(10).await;
    let report = ingest(&access, &exported).await;
    assert_eq!((report.changed, report.rejected), (0, 0), "{report:?}");
    assert!(export(&access).await == exported);
}
