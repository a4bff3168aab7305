//! `/v4/sports/{sport}/odds`: events with their prices.

use super::{GOLF, MMA, NFL, TENNIS};
use crate::api::fixture::{
    EVENING, closed, event, event_with, every_sport, fields, moneyline, moneyline_at, odds, remove, strings, total,
};
use crate::harness::Service;

#[tokio::test]
async fn odds_of_one_event_have_the_exact_v4_shape() {
    let service = Service::start().await;
    service.ingest(&every_sport()).await;
    let odds = service.get(&format!("{MMA}/odds?regions=us&markets=h2h,totals")).await;
    assert_eq!(
        odds.text(),
        concat!(
            r#"[{"id":"m1","sport_key":"mma_mixed_martial_arts","sport_title":"MMA","commence_time":"2026-11-15T02:00:00Z","#,
            r#""home_team":"Home m1","away_team":"Away m1","bookmakers":[{"key":"draftkings","title":"DraftKings","#,
            r#""last_update":"2026-11-14T23:38:30Z","markets":[{"key":"h2h","last_update":"2026-11-14T23:38:30Z","#,
            r#""outcomes":[{"name":"Home m1","price":1.909},{"name":"Away m1","price":1.909}]},"#,
            r#"{"key":"totals","last_update":"2026-11-14T23:38:30Z","outcomes":["#,
            r#"{"name":"Over","price":1.952,"point":2.5},{"name":"Under","price":1.87,"point":2.5}]}]}]}]"#,
        )
    );
    let path = format!("{MMA}/odds/?bookmakers=draftkings&oddsFormat=fractional&dateFormat=unix");
    let path = format!("{path}&includeLinks=true&includeSids=true&includeBetLimits=true");
    assert_eq!(
        service.get(&path).await.text(),
        concat!(
            r#"[{"id":"m1","sport_key":"mma_mixed_martial_arts","sport_title":"MMA","commence_time":1794708000,"#,
            r#""home_team":"Home m1","away_team":"Away m1","bookmakers":[{"key":"draftkings","title":"DraftKings","#,
            r#""last_update":1794699510,"link":null,"sid":null,"markets":[{"key":"h2h","last_update":1794699510,"#,
            r#""link":null,"sid":null,"outcomes":["#,
            r#"{"name":"Home m1","price":"10/11","link":null,"sid":null,"bet_limit":null},"#,
            r#"{"name":"Away m1","price":"10/11","link":null,"sid":null,"bet_limit":null}]}]}]}]"#,
        )
    );
}

#[tokio::test]
async fn markets_have_their_v4_keys() {
    let service = Service::start().await;
    let golf = r#"[{"name":"A. Ames","price":150},{"name":"B. Bohn","price":250}]"#;
    let lines = [
        every_sport(),
        odds("golf", "g1", "draftkings", "top5", golf),
        odds("american_football", "f1", "betmgm", "spread", r#"[{"name":"Home f1","price":-110,"point":-3.5}]"#),
        moneyline("american_football", "f1", "betmgm", -110, -110),
    ];
    service.ingest(&lines.concat()).await;
    let keys = |path: String| {
        let service = &service;
        async move {
            let json = service.get(&path).await.json();
            let markets = json[0]["bookmakers"][0]["markets"].as_array().cloned().unwrap_or_default();
            markets.iter().map(|market| market["key"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        }
    };
    for (path, markets) in [
        (format!("{NFL}/odds?regions=us"), &["h2h"][..]),
        (format!("{NFL}/odds?regions=us&markets=totals,%20h2h,spreads,"), &["h2h", "spreads", "totals"]),
        (format!("{NFL}/odds?regions=us&markets=h2h_lay"), &[]),
        (format!("{NFL}/odds?regions=us&markets=outrights"), &[]),
        (format!("{GOLF}/odds?regions=us"), &["outrights"]),
        (format!("{GOLF}/odds?regions=us&markets=top5,outrights,outrights_lay"), &["outrights", "top5"]),
        (format!("{TENNIS}/odds?regions=us&markets="), &["h2h"]),
    ] {
        assert_eq!(keys(path.clone()).await, markets, "{path}");
    }
    let open = service.get(&format!("{GOLF}/odds?regions=us")).await.json();
    assert_eq!(open[0]["sport_title"], "The Open Winner");
    assert!(open[0]["home_team"].is_null() && open[0]["away_team"].is_null());
    assert_eq!(open[0]["bookmakers"][0]["markets"][0]["outcomes"][0]["price"], 5.5);
}

#[tokio::test]
async fn bookmakers_win_over_regions_and_repeated_lists_are_joined() {
    let service = Service::start().await;
    let lines = [
        event("mma", "m1", EVENING),
        moneyline("mma", "m1", "betmgm", -110, -110),
        moneyline("mma", "m1", "coral", 120, -140),
        moneyline("mma", "m1", "unibet", 100, -120),
    ];
    service.ingest(&lines.concat()).await;
    for (query, books) in [
        ("regions=us", &["betmgm"][..]),
        ("regions=us,uk", &["betmgm", "coral"]),
        ("regions=au,us2,us", &["betmgm", "unibet"]),
        ("regions=us2", &[]),
        ("regions=us&regions=uk", &["betmgm", "coral"]),
        ("regions=us&regions=&regions=au,uk", &["betmgm", "coral", "unibet"]),
        ("bookmakers=unibet,coral", &["coral", "unibet"]),
        ("bookmakers=unibet&bookmakers=coral", &["coral", "unibet"]),
        ("bookmakers=unibet,nobody,coral", &["coral", "unibet"]),
        ("bookmakers=nobody&bookmakers=coral", &["coral"]),
        ("regions=us&bookmakers=coral", &["coral"]),
        ("regions=us&bookmakers=", &["betmgm"]),
        ("bookmakers=fanduel", &[]),
    ] {
        let json = service.get(&format!("{MMA}/odds?{query}")).await.json();
        assert_eq!(strings(&json[0]["bookmakers"], "key"), books, "{query}");
    }
}

#[tokio::test]
async fn every_list_parameter_may_be_repeated_and_of_others_the_last_counts() {
    let service = Service::start().await;
    service.ingest(&[every_sport(), event("mma", "m2", EVENING)].concat()).await;
    service.advance(30).await;
    let get = async |query: &str| service.get(&format!("{MMA}/{query}")).await;
    let odds = get("odds?regions=us&markets=h2h&markets=totals").await;
    assert_eq!(strings(&odds.json()[0]["bookmakers"][0]["markets"], "key"), ["h2h", "totals"]);
    for list in ["odds?regions=us&eventIds=m2&eventIds=m1", "events?eventIds=m2&eventIds=m1"] {
        assert_eq!(fields(&get(list).await, "id"), ["m1", "m2"], "{list}");
    }
    assert_eq!(fields(&get("scores?eventIds=m1&eventIds=&eventIds=nobody").await, "id"), ["m1"]);
    let unix = get("events?dateFormat=iso&dateFormat=unix").await.json();
    assert!(unix[0]["commence_time"].is_u64(), "{unix}");
}

/// Clients tell a tournament from a match by this field, which only tournaments have.
#[tokio::test]
async fn priced_events_with_a_field_have_outrights() {
    let service = Service::start().await;
    service.ingest(&every_sport()).await;
    for path in [
        format!("{GOLF}/odds?regions=us"),
        format!("{GOLF}/events/g1/odds?regions=us"),
        "/v4/sports/upcoming/odds?regions=us&eventIds=g1&markets=outrights".into(),
    ] {
        let text = service.get(&path).await.text().to_owned();
        let text = text.trim_start_matches('[');
        assert!(text.starts_with(r#"{"id":"g1","has_outrights":true,"sport_key":"golf_"#), "{path}: {text}");
    }
    for path in [format!("{MMA}/odds?regions=us"), format!("{MMA}/events/m1/odds?regions=us"), format!("{GOLF}/events")]
    {
        assert!(!service.get(&path).await.text().contains("has_outrights"), "{path}");
    }
}

#[tokio::test]
async fn every_open_event_is_listed_priced_or_not() {
    let service = Service::start().await;
    let lines = [
        event("mma", "e2", EVENING),
        event("mma", "e1", EVENING),
        event_with("mma", "live", "2026-11-14T23:00:00Z", "live"),
        event_with("mma", "over", "2026-11-14T20:00:00Z", "final"),
        event_with("mma", "off", EVENING, "cancelled"),
        moneyline("mma", "e1", "betmgm", -110, -110),
    ];
    service.ingest(&lines.concat()).await;
    let path = format!("{MMA}/odds?regions=us");
    let answer = service.get(&path).await;
    assert_eq!(fields(&answer, "id"), ["live", "e1", "e2"]);
    assert_eq!(answer.json()[2]["bookmakers"].to_string(), "[]");
    // A new event without prices appears at the next tick; its removal is visible immediately.
    service.ingest(&event("mma", "e3", EVENING)).await;
    service.advance(30).await;
    assert_eq!(fields(&service.get(&path).await, "id"), ["live", "e1", "e2", "e3"]);
    service.ingest(&remove("mma", "e1")).await;
    assert_eq!(fields(&service.get(&path).await, "id"), ["live", "e2", "e3"]);
    service.ingest(&event_with("mma", "live", "2026-11-14T23:00:00Z", "final")).await;
    service.advance(30).await;
    assert_eq!(fields(&service.get(&path).await, "id"), ["e2", "e3"]);
}

#[tokio::test]
async fn events_without_prices_do_not_delay_the_first_prices() {
    let service = Service::start().await;
    service.ingest(&event("mma", "m1", EVENING)).await;
    service.advance(30).await;
    let path = format!("{MMA}/odds?regions=us");
    assert_eq!(service.get(&path).await.json()[0]["bookmakers"].to_string(), "[]");
    service.ingest(&moneyline("mma", "m1", "betmgm", 150, -170)).await;
    let price = &service.get(&path).await.json()[0]["bookmakers"][0]["markets"][0]["outcomes"][0]["price"];
    assert_eq!(*price, 2.5, "the sport was quiet");
}

#[tokio::test]
async fn prices_change_and_close_with_the_tick() {
    let service = Service::start().await;
    service.ingest(&every_sport()).await;
    let path = format!("{MMA}/odds?regions=us&markets=h2h,totals");
    let before = service.get(&path).await;
    let newer = [
        moneyline_at("mma", "m1", "draftkings", "2026-11-14T23:39:00Z", 150, -170),
        closed("mma", "m1", "draftkings", "total_rounds", "2026-11-14T23:39:00Z"),
    ];
    service.ingest(&newer.concat()).await;
    assert_eq!(service.get(&path).await.body, before.body, "between two ticks nothing changes");
    service.advance(30).await;
    let after = service.get(&path).await.json();
    let book = &after[0]["bookmakers"][0];
    assert_eq!((&book["last_update"], book["markets"].as_array().unwrap().len()), (&"2026-11-14T23:39:00Z".into(), 1));
    assert_eq!(book["markets"][0]["outcomes"][0]["price"], 2.5);
}

#[tokio::test]
async fn events_are_narrowed_by_id_and_time() {
    let service = Service::start().await;
    let times = ["2026-11-15T01:00:00Z", "2026-11-15T02:00:00Z", "2026-11-15T03:00:00Z"];
    let lines: Vec<String> = (1..).zip(times).map(|(n, at)| event("mma", &format!("e{n}"), at)).collect();
    service.ingest(&(lines.concat() + &moneyline("mma", "e1", "betmgm", -110, -110))).await;
    for (query, ids) in [
        ("eventIds=e3,e1,nobody", &["e1", "e3"][..]),
        ("eventIds=", &["e1", "e2", "e3"]),
        ("commenceTimeFrom=2026-11-15T02:00:00Z", &["e2", "e3"]),
        ("commenceTimeTo=2026-11-15T02:00:00Z", &["e1", "e2"]),
        ("commenceTimeFrom=2026-11-15T01:30:00Z&commenceTimeTo=2026-11-15T02:30:00Z", &["e2"]),
        ("eventIds=e1&commenceTimeFrom=2026-11-15T02:00:00Z", &[]),
    ] {
        for list in ["odds?regions=us&", "events?"] {
            assert_eq!(fields(&service.get(&format!("{MMA}/{list}{query}")).await, "id"), ids, "{list}{query}");
        }
    }
}

#[tokio::test]
async fn competition_has_only_its_own_events() {
    let service = Service::start().await;
    let other = event("tennis", "t2", EVENING).replace("\"Cup\"", "\"ATP Roma, 2026\"");
    let aus = event("tennis", "t3", EVENING).replace("\"Cup\"", "\"ATP Australian Open\"");
    service.ingest(&[event("tennis", "t1", EVENING), other, aus].concat()).await;
    service.advance(30).await;
    for (key, ids) in [
        ("tennis_cup", &["t1"][..]),
        ("tennis_atp_roma_2026", &["t2"]),
        ("tennis_atp_aus_open_singles", &["t3"]),
        ("tennis_atp_australian_open", &[]),
        ("tennis_not_on_now", &[]),
    ] {
        for list in ["odds?regions=us", "events", "scores"] {
            assert_eq!(fields(&service.get(&format!("/v4/sports/{key}/{list}")).await, "id"), ids, "{key} {list}");
        }
    }
    let odds = service.get("/v4/sports/tennis_cup/events/t2/odds?regions=us").await;
    assert_eq!(super::error(&odds), (404, "EVENT_NOT_FOUND".into()));
}

#[tokio::test]
async fn long_list_continues_behind_a_link() {
    let service = Service::start().await;
    let lines: Vec<String> = (0..520).map(|n| event("mma", &format!("e{n:03}"), EVENING)).collect();
    service.ingest(&(lines.concat() + &total("mma", "e000", "betmgm", "total_rounds", "2.5"))).await;
    for list in ["odds?apiKey=$&regions=us", "events?apiKey=$", "scores?apiKey=$"] {
        let path = format!("{MMA}/{list}").replace('$', &service.live);
        let first = service.send("GET", &path, &[]).await;
        assert_eq!(fields(&first, "id").len(), 500, "{list}");
        let link = first.header("link").expect("a link").to_owned();
        assert!(!link.contains("sk_live"), "{link}");
        let next = link.trim_start_matches('<').split('>').next().unwrap();
        let second = service.get(next).await;
        assert_eq!((fields(&second, "id").len(), second.header("link")), (20, None), "{list}");
        assert_eq!(fields(&second, "id")[0], "e500");
    }
}
