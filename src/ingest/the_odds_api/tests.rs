//! The traps that real payloads set, each in a small invented one.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::model::v4::{Pattern, V4Keys, V4Names};
use crate::model::{
    Bookmakers, Contest, EventNews, EventStatus, Market, OddsNews, Region, ScoreNews, ScoreStatus, Sport, SportKind,
};

/// 2026-11-14T23:39:00Z.
const NOW: Timestamp = Timestamp::from_unix(1_794_699_540);

fn catalogue() -> Catalogue {
    let whole = |key: &str, title: &str| V4Keys::Whole { key: key.into(), title: title.into(), description: "".into() };
    let by_competition = |key: &str, title: &str| V4Keys::ByCompetition {
        key: Pattern::parse(key).unwrap(),
        title: Pattern::parse(title).unwrap(),
        irregular: [].into(),
    };
    let sport = |key: &str, kind: SportKind, keys: V4Keys| Sport {
        key: key.into(),
        title: key.into(),
        group: key.into(),
        kind,
        hides_fields: false,
        v4: Some(V4Names { group: key.into(), keys }),
    };
    let sports = vec![
        sport("mma", SportKind::Fight, whole("mma_mixed_martial_arts", "MMA")),
        sport("tennis", SportKind::HeadToHead, by_competition("tennis_*", "*")),
        sport("golf", SportKind::Tournament, by_competition("golf_*_winner", "* Winner")),
    ];
    let markets = crate::config::catalogue::builtin().markets().clone();
    Catalogue::new(sports, Vec::new()).unwrap().with_markets(markets)
}

fn read_with(payload: &Value, sport: Option<&str>, odds_format: Option<OddsFormat>) -> Result<Payload, PayloadError> {
    let catalogue = catalogue();
    let sport = sport.map(|key| catalogue.find(key).unwrap());
    read(payload.to_string().as_bytes(), PayloadTerms { catalogue: &catalogue, sport, odds_format, now: NOW })
}

fn decimal(payload: &Value) -> Payload {
    read_with(payload, None, Some(OddsFormat::Decimal)).unwrap()
}

fn bout(bookmakers: Value) -> Value {
    json!({
        "id": "b1", "sport_key": "mma_mixed_martial_arts", "sport_title": "MMA", "commence_time": "2026-11-15T02:00:00Z",
        "home_team": "Ada Stone", "away_team": "Bo Reed", "bookmakers": bookmakers,
    })
}

fn book(markets: Value) -> Value {
    json!({"key": "betmgm", "title": "BetMGM", "last_update": "2026-11-14T23:38:30Z", "markets": markets})
}

fn h2h(prices: &[Value]) -> Value {
    let names = ["Bo Reed", "Ada Stone", "Draw"];
    let outcomes: Vec<Value> =
        names.iter().zip(prices).map(|(name, price)| json!({"name": name, "price": price})).collect();
    json!({"key": "h2h", "last_update": "2026-11-14T23:38:00Z", "outcomes": outcomes})
}

fn reasons(counts: &ReasonCounts) -> Vec<(&'static str, u64)> {
    counts.iter().map(|(reason, count)| (reason.key(), count)).collect()
}

fn market_of(record: &OddsNews) -> Market {
    Market::find(record.market.as_str()).unwrap()
}

fn odds(payload: &Payload) -> Vec<&OddsNews> {
    payload
        .messages
        .iter()
        .filter_map(|message| match &message.news {
            News::Odds(odds) => Some(odds),
            _ => None,
        })
        .collect()
}

fn event(payload: &Payload) -> &EventNews {
    match &payload.messages[0].news {
        News::Event(event) => event,
        other => panic!("{other:?}"),
    }
}

fn score(payload: &Payload) -> Option<&ScoreNews> {
    payload.messages.iter().find_map(|message| match &message.news {
        News::Score(score) => Some(score),
        _ => None,
    })
}

fn at(text: &str) -> Timestamp {
    Timestamp::checked_from_unix(text.parse::<jiff::Timestamp>().unwrap().as_second()).unwrap()
}

#[test]
fn a_bout_with_a_draw_keeps_the_order_of_its_outcomes() {
    let payload = decimal(&json!([bout(json!([book(json!([h2h(&[json!(1.91), json!(2), json!(51.0)])]))]))]));
    let record = odds(&payload)[0];
    assert_eq!((market_of(record), record.last_update), (Market::MONEYLINE, at("2026-11-14T23:38:00Z")));
    let names: Vec<&str> = record.outcomes.iter().map(|outcome| &*outcome.name).collect();
    assert_eq!(names, ["Bo Reed", "Ada Stone", "Draw"]);
    assert!(record.outcomes.iter().all(|outcome| outcome.point.is_none()));
    let event = event(&payload);
    assert_eq!((&*event.competition, event.status), ("MMA", EventStatus::Scheduled));
    assert_eq!(event.contest, Contest::Sides { home: "Ada Stone".into(), away: "Bo Reed".into() });
    assert_eq!(reasons(&payload.rejected), []);
}

#[test]
fn a_price_that_is_none_costs_its_outcome_and_the_rest_stands() {
    let payload = decimal(&json!([bout(json!([book(json!([h2h(&[json!(1.0), json!(2.5), json!(null)])]))]))]));
    assert_eq!(odds(&payload)[0].outcomes.len(), 1);
    assert_eq!(reasons(&payload.dropped), [("missing_field", 1), ("price_too_short", 1)]);

    let payload = decimal(&json!([bout(json!([book(json!([h2h(&[json!(1.0), json!(1.0)])]))]))]));
    assert!(odds(&payload).is_empty());
    assert_eq!(reasons(&payload.rejected), [("price_too_short", 1)]);
    assert_eq!(event(&payload).id.as_str(), "b1", "the event stands without its record");
}

#[test]
fn markets_that_cannot_be_read_are_left_out_and_counted() {
    let outcomes = json!([{"name": "Ada Stone", "price": 2.0, "point": 1.5}]);
    let market = |key: &str| json!({"key": key, "outcomes": outcomes});
    let markets: Vec<Value> = ["h2h_lay", "outrights_lay", "spreads", "player_points", "totals", "handicaps"]
        .map(market)
        .into_iter()
        .collect();
    let payload = decimal(&json!([bout(json!([book(json!(markets))]))]));
    let taken: Vec<&str> = odds(&payload).iter().map(|record| record.market.as_str()).collect();
    assert_eq!(taken, ["moneyline_lay", "outright_lay", "spread", "player_points", "total_rounds"]);
    assert_eq!(reasons(&payload.rejected), [("unknown_market", 1)]);
    let (number, example) = &payload.examples[0];
    assert_eq!(*number, 1);
    assert!(example.detail.starts_with("betmgm on b1: ") && example.detail.contains("handicaps"), "{}", example.detail);
}

#[test]
fn market_that_a_bookmaker_lists_twice_is_rejected_the_second_time() {
    let (first, second) = (h2h(&[json!(2.5), json!(1.5)]), h2h(&[json!(3.5), json!(1.25)]));
    let twice = [json!([book(json!([first, second]))]), json!([book(json!([first])), book(json!([second]))])];
    for bookmakers in twice {
        let payload = decimal(&bout(bookmakers));
        assert_eq!(reasons(&payload.rejected), [("bad_field", 1)]);
        let records = odds(&payload);
        assert_eq!((records.len(), records[0].outcomes[0].price.decimal_milli()), (1, 2500));
    }
}

#[test]
fn a_market_without_a_time_has_that_of_its_bookmaker_or_of_the_payload() {
    let market = |price: f64| json!({"key": "h2h", "outcomes": [{"name": "Ada Stone", "price": price}]});
    let timeless = |key: &str| json!({"key": key, "title": key, "markets": [market(1.5)]});
    let payload = decimal(&json!({
        "timestamp": "2026-11-14T12:00:00Z", "previous_timestamp": null, "next_timestamp": null,
        "data": [bout(json!([book(json!([market(1.9)])), timeless("a")]))],
    }));
    assert!(odds(&payload).iter().all(|record| record.bookmaker_update.is_none()));
    let times: Vec<Timestamp> = odds(&payload).iter().map(|record| record.last_update).collect();
    assert_eq!(times, [at("2026-11-14T23:38:30Z"), at("2026-11-14T12:00:00Z")]);

    let payload = decimal(&json!([bout(json!([timeless("a")]))]));
    assert_eq!(odds(&payload)[0].last_update, NOW);
}

#[test]
fn one_event_alone_and_an_archive_of_one_are_payloads_too() {
    let one = bout(json!([book(json!([h2h(&[json!(1.91), json!(2)])]))]));
    for payload in [one.clone(), json!({"timestamp": "2026-11-14T12:00:00Z", "data": one}), json!([one])] {
        assert_eq!(odds(&decimal(&payload)).len(), 1, "{payload}");
    }
    for other in [json!({"message": "Unknown sport"}), json!({"data": 5}), json!(5), json!("x"), json!(null)] {
        assert_eq!(read_with(&other, None, None).unwrap_err(), PayloadError::OtherShape, "{other}");
    }
}

#[test]
fn an_event_without_bookmakers_is_an_event() {
    for bookmakers in [json!([]), json!(null)] {
        let payload = read_with(&json!([bout(bookmakers)]), None, None).unwrap();
        assert_eq!((payload.messages.len(), payload.events), (1, 1));
    }
}

#[test]
fn a_tournament_has_no_sides_and_its_title_without_the_word_winner() {
    let golf = |home: Value| {
        json!([{
            "id": "g1", "sport_key": "golf_us_open_winner", "sport_title": "US Open Winner",
            "commence_time": "2026-11-14T12:00:00Z", "home_team": home, "away_team": null,
            "bookmakers": [book(json!([
                {"key": "outrights", "outcomes": [{"name": "Cy Lane", "price": 2001.0}]},
                {"key": "top5", "outcomes": [{"name": "Cy Lane", "price": 401.0}]},
                {"key": "h2h", "outcomes": [{"name": "Cy Lane", "price": 401.0}]},
            ]))],
        }])
    };
    let payload = decimal(&golf(json!(null)));
    let event = event(&payload);
    assert_eq!(event.contest, Contest::Tournament { title: "US Open".into() });
    assert_eq!((&*event.competition, event.status), ("US Open", EventStatus::Live), "it has begun");
    let taken: Vec<Market> = odds(&payload).iter().map(|record| market_of(record)).collect();
    // Which markets a sport has is the writer's to say, for every way in.
    assert_eq!(taken, [Market::OUTRIGHT, Market::TOP5, Market::MONEYLINE]);
    assert_eq!(reasons(&payload.rejected), []);
    assert!(decimal(&golf(json!("Cy Lane"))).is_unreadable());
}

#[test]
fn format_is_inferred_from_negative_or_fractional_prices_only() {
    let payload = |prices: &[Value]| json!([bout(json!([])), bout(json!([book(json!([h2h(prices)]))]))]);
    let shown = |prices: &[Value]| {
        read_with(&payload(prices), None, None).map(|payload| {
            odds(&payload)[0].outcomes.iter().map(|outcome| outcome.price.american()).collect::<Vec<_>>()
        })
    };
    assert_eq!(shown(&[json!(-110), json!(150)]), Ok(vec![-110, 150]));
    assert_eq!(shown(&[json!(1.5), json!(3)]), Ok(vec![-200, 200]));
    assert_eq!(shown(&[json!(150), json!(200.0)]), Err(PayloadError::FormatUnknown));
    assert_eq!(shown(&[json!(-110), json!(1.5)]), Err(PayloadError::FormatMixed));
    assert!(PayloadError::FormatUnknown.to_string().contains("--odds-format"));
}

#[test]
fn a_payload_of_another_sport_is_not_taken_for_this_one() {
    let mut event = bout(json!([]));
    let payload = read_with(&json!([event]), Some("tennis"), None).unwrap();
    assert_eq!(reasons(&payload.rejected), [("unknown_sport", 1)]);
    event["sport_key"] = json!("icehockey_nhl");
    assert!(read_with(&json!([event]), None, None).unwrap().is_unreadable());
    event["sport_key"] = json!(null);
    assert_eq!(reasons(&read_with(&json!([event]), None, None).unwrap().rejected), [("missing_field", 1)]);
    assert_eq!(read_with(&json!([event]), Some("mma"), None).unwrap().messages.len(), 1);
}

fn game(completed: Value, scores: Value) -> Payload {
    decimal(&json!([{
        "id": "t1", "sport_key": "tennis_atp_wimbledon", "sport_title": "ATP Wimbledon",
        "commence_time": "2026-11-14T20:00:00Z", "home_team": "Ada Stone", "away_team": "Bo Reed",
        "completed": completed, "scores": scores, "last_update": "2026-11-14T23:30:00Z",
    }]))
}

#[test]
fn scores_are_read_by_name_from_strings_and_numbers() {
    let sides = json!([{"name": "Bo Reed", "score": "2"}, {"name": "Ada Stone", "score": 1}]);
    for (completed, status) in [(false, ScoreStatus::Live), (true, ScoreStatus::Final)] {
        let payload = game(json!(completed), sides.clone());
        let score = &score(&payload).unwrap().score;
        assert_eq!((score.status, score.points), (status, Some((1, 2))));
        assert_eq!(score.updated, at("2026-11-14T23:30:00Z"));
        assert_eq!(event(&payload).status, status.event_status());
    }
}

#[test]
fn an_event_without_a_score_may_be_over_all_the_same() {
    let unknown = json!([{"name": "Bo Reed", "score": null}, {"name": "Ada Stone", "score": null}]);
    for scores in [json!(null), unknown] {
        let payload = game(json!(true), scores.clone());
        assert_eq!((score(&payload), event(&payload).status), (None, EventStatus::Final));
        let payload = game(json!(false), scores);
        assert_eq!((score(&payload), event(&payload).status), (None, EventStatus::Live));
    }
}

#[test]
fn a_score_that_cannot_be_read_leaves_the_event() {
    for (scores, reason) in [
        (json!([{"name": "Bo Reed", "score": "2"}]), "missing_field"),
        (json!([{"name": "Nobody", "score": "2"}]), "bad_field"),
        (json!([{"name": "Bo Reed", "score": "6-4"}]), "bad_field"),
        (json!("2-1"), "bad_field"),
    ] {
        let payload = game(json!(false), scores);
        assert_eq!((payload.messages.len(), reasons(&payload.rejected)), (1, vec![(reason, 1)]));
    }
}

#[test]
fn unknown_bookmakers_and_other_titles_are_news() {
    let payload = decimal(&json!([bout(json!([book(json!([])), {"key": "newbook", "markets": []}]))]));
    let mut known = Bookmakers::default();
    let betmgm = Bookmaker { key: "betmgm".into(), title: "BetMGM".into(), regions: Regions::only(Region::Us) };
    known.put(known.next_id().unwrap(), std::sync::Arc::new(betmgm));
    let regions = Regions::only(Region::Uk).with(Region::Eu);
    let newbook = Bookmaker { key: "newbook".into(), title: "newbook".into(), regions };
    assert_eq!(payload.listed(&known, regions), [News::Listed(newbook)]);
    assert_eq!(payload.listed(&known, Regions::NONE), []);

    // Of two titles in one payload the last counts, and one that is missing changes nothing.
    let titled = |title: &str| json!({"key": "betmgm", "title": title, "markets": []});
    let books = json!([titled("One"), titled("Two"), {"key": "betmgm", "markets": []}]);
    let two = Bookmaker { key: "betmgm".into(), title: "Two".into(), regions: Regions::NONE };
    assert_eq!(decimal(&json!([bout(books)])).listed(&known, Regions::NONE), [News::Listed(two)]);
    let untitled = json!([{"key": "betmgm", "markets": []}]);
    assert_eq!(decimal(&json!([bout(untitled)])).listed(&known, regions), []);
}

#[test]
fn payload_that_is_not_json_is_an_error() {
    let catalogue = catalogue();
    let ask = PayloadTerms { catalogue: &catalogue, sport: None, odds_format: None, now: NOW };
    for text in ["", "[", "[{\"id\":", "nothing", "{\"timestamp\":1,\"data\":[", "\u{0}"] {
        assert!(matches!(read(text.as_bytes(), ask), Err(PayloadError::BadJson(_))), "{text}");
    }
    assert!(matches!(read(&[0xff, 0xfe], ask), Err(PayloadError::BadJson(_))));
}

/// Any JSON that is near a payload.
fn near() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(|value| json!(value)),
        (-300..3000_i32).prop_map(|value| json!(value)),
        (0..4000_u32).prop_map(|value| json!(f64::from(value) / 1000.0)),
        "[a-z0-9:TZ-]{0,12}".prop_map(|value| json!(value)),
        Just(json!("mma_mixed_martial_arts")),
        Just(json!("2026-11-14T20:00:00Z")),
        Just(json!("h2h")),
    ];
    let name = prop::sample::select(vec![
        "id",
        "sport_key",
        "sport_title",
        "commence_time",
        "home_team",
        "away_team",
        "bookmakers",
        "key",
        "title",
        "markets",
        "outcomes",
        "name",
        "price",
        "point",
        "completed",
        "scores",
        "score",
        "last_update",
        "timestamp",
        "data",
    ]);
    leaf.prop_recursive(6, 120, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|list| json!(list)),
            prop::collection::hash_map(name.clone(), inner, 0..8).prop_map(|map| json!(map)),
        ]
    })
}

/// A payload in which something stands that should not.
fn damaged() -> impl Strategy<Value = Value> {
    let pointers = vec![
        "/0/id",
        "/0/sport_key",
        "/0/commence_time",
        "/0/home_team",
        "/0/bookmakers",
        "/0/bookmakers/0",
        "/0/bookmakers/0/key",
        "/0/bookmakers/0/markets",
        "/0/bookmakers/0/markets/0/key",
        "/0/bookmakers/0/markets/0/last_update",
        "/0/bookmakers/0/markets/0/outcomes",
        "/0/bookmakers/0/markets/0/outcomes/0",
        "/0/bookmakers/0/markets/0/outcomes/0/price",
    ];
    (prop::sample::select(pointers), near()).prop_map(|(pointer, value)| {
        let mut payload = json!([bout(json!([book(json!([h2h(&[json!(1.91), json!(2)])]))])), bout(json!([]))]);
        *payload.pointer_mut(pointer).unwrap() = value;
        payload
    })
}

proptest! {
    #[test]
    fn no_input_panics_and_every_event_is_taken_or_counted(payload in prop_oneof![near(), damaged()]) {
        if let Ok(read) = read_with(&payload, None, Some(OddsFormat::Decimal)) {
            let events = read.messages.iter().filter(|message| matches!(message.news, News::Event(_))).count() as u64;
            let rejected: u64 = read.rejected.total();
            prop_assert!(events <= read.events && events + rejected >= read.events);
            let priced = |message: &Message| matches!(&message.news, News::Odds(odds) if !odds.outcomes.is_empty());
            let all_dropped = read.dropped.total();
            prop_assert!(all_dropped == 0 || read.messages.iter().any(priced));
        }
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let catalogue = catalogue();
        let _ = read(&bytes, PayloadTerms { catalogue: &catalogue, sport: None, odds_format: None, now: NOW });
    }
}
