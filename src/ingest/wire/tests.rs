//! Every rule of the line with an example, and two promises held by generated input: what is written reads back as the
//! same news, and no bytes panic.

mod generated;

use super::*;
use crate::model::{Catalogue, Contest, OddsFormat, Point, Price};

fn catalogue() -> Catalogue {
    crate::config::catalogue::builtin()
}

fn take(line: &str) -> ParsedLine {
    read(line.as_bytes(), &catalogue()).unwrap_or_else(|rejection| panic!("{rejection}\n{line}"))
}

fn refuse(line: &str) -> (Reason, String) {
    match read(line.as_bytes(), &catalogue()) {
        Ok(reading) => panic!("taken: {reading:?}"),
        Err(Rejection { reason, detail }) => (reason, detail.into()),
    }
}

#[track_caller]
fn refused(line: &str, reason: Reason, part: &str) {
    let (own, detail) = refuse(line);
    assert_eq!(own, reason, "{detail}\n{line}");
    assert!(detail.contains(part), "{part:?} in {detail:?}");
}

const ODDS: &str = r#"{"type":"odds","sport":"mma","event":"e1","bookmaker":"betmgm","market":"moneyline","last_update":"2026-11-14T23:39:00Z","format":"decimal","outcomes":[{"name":"A","price":1.91,"point":null},{"name":"B","price":"1.909"}]}"#;
const SCORE: &str = r#"{"type":"score","sport":"mma","event":"e1","status":"final","home_score":1,"away_score":0,"periods":[{"number":1,"home_score":10,"away_score":9}],"winner":"A","updated_at":"2026-11-14T23:39:00Z"}"#;
const EVENT: &str = r#"{"type":"event","sport":"mma","id":"e1","competition":" Night 1 ","commence_time":"2026-11-15T01:00:00+02:00","home":"Zo\u00eb \"Z\" A","away":"B","status":"scheduled","extra":{"x":[1]}}"#;
const GOLF: &str = r#"{"type":"event","sport":"golf","id":"g1","competition":"Tour","commence_time":"2026-11-15T01:00:00Z","title":"Open","home":null,"status":"live"}"#;

fn odds_of(reading: &ParsedLine) -> &crate::model::OddsNews {
    match &reading.news {
        News::Odds(odds) => odds,
        other => panic!("{other:?}"),
    }
}

/// An odds line of a market with the given outcomes, written as JSON.
fn odds_line(market: &str, format: &str, outcomes: &str) -> String {
    format!(
        r#"{{"type":"odds","sport":"golf","event":"g1","bookmaker":"betmgm","market":"{market}","last_update":"2026-11-14T23:39:00Z","format":"{format}","outcomes":[{outcomes}]}}"#
    )
}

fn names(reading: &ParsedLine) -> Vec<&str> {
    odds_of(reading).outcomes.iter().map(|outcome| &*outcome.name).collect()
}

#[test]
fn reads_prices_from_numbers_and_strings_exactly() {
    let reading = take(ODDS);
    let prices: Vec<Price> = odds_of(&reading).outcomes.iter().map(|outcome| outcome.price).collect();
    let decimal = |text| Price::parse(text, OddsFormat::Decimal).unwrap();
    assert_eq!(prices, [decimal("1.91"), decimal("1.909")]);
    assert!(reading.dropped.is_empty());

    let fractional = ODDS.replace("decimal", "fractional").replace("1.91", "\"10/11\"").replace("1.909", "5/6");
    let reading = take(&fractional);
    assert_eq!(odds_of(&reading).outcomes[0].price, Price::parse("10/11", OddsFormat::Fractional).unwrap());

    let american = ODDS.replace("decimal", "american").replace("1.91", "-110").replace("1.909", "+150");
    assert_eq!(odds_of(&take(&american)).outcomes[1].price, Price::from_american(150).unwrap());
}

#[test]
fn an_outcome_may_carry_its_own_format() {
    let line = ODDS.replace(r#""price":1.91,"#, r#""price":-110,"format":"american","#);
    let reading = take(&line);
    assert_eq!(odds_of(&reading).outcomes[0].price.quoted(), OddsFormat::American);
    assert_eq!(odds_of(&reading).outcomes[1].price.quoted(), OddsFormat::Decimal);
}

#[test]
fn a_bad_price_costs_its_outcome_only() {
    let reading = take(&ODDS.replace("1.91,", "1.0,"));
    assert_eq!(names(&reading), ["B"]);
    assert_eq!(reading.dropped, [DroppedOutcome { name: "A".into(), reason: Reason::PriceTooShort }]);
    let reading = take(&ODDS.replace("1.91,", "null,"));
    assert_eq!(reading.dropped[0].reason, Reason::MissingField);
}

#[test]
fn a_record_of_which_nothing_is_left_is_refused_and_closes_nothing() {
    refused(&ODDS.replace("1.91", "1.0").replace("1.909", "x"), Reason::PriceTooShort, "none of the 2 outcomes");
}

#[test]
fn a_bad_price_costs_its_group_where_the_market_has_groups() {
    let outcomes =
        r#"{"name":"A","price":2.5},{"name":"B","price":0.5},{"name":"C","price":1.5},{"name":"D","price":1.8}"#;
    let reading = take(&odds_line("matchup", "decimal", outcomes));
    assert_eq!(names(&reading), ["C", "D"]);
    let dropped: Vec<(&str, Reason)> = reading.dropped.iter().map(|d| (&*d.name, d.reason)).collect();
    assert_eq!(dropped, [("B", Reason::PriceTooShort), ("A", Reason::PriceTooShort)]);
    refused(&odds_line("three_ball", "decimal", outcomes), Reason::BadField, "a multiple of 3");
}

#[test]
fn only_an_explicit_empty_list_closes_a_market() {
    let closed = take(&odds_line("outright", "decimal", ""));
    assert!(odds_of(&closed).outcomes.is_empty());
    let list = &ODDS[ODDS.find(r#","outcomes""#).unwrap()..];
    refused(&ODDS.replace(list, "}"), Reason::MissingField, "\"outcomes\"");
    refused(&ODDS.replace(list, r#","outcomes":null}"#), Reason::MissingField, "\"outcomes\"");
    refused(&ODDS.replace(list, r#","outcomes":[["A",1.9]]}"#), Reason::BadField, "an object");
}

#[test]
fn points_stand_exactly_where_the_market_has_them() {
    let total = ODDS.replace("moneyline", "total_rounds").replace("null", "2.5");
    refused(&total, Reason::MissingField, "outcomes.point");
    let both = total.replace(r#""1.909""#, r#"1.9,"point":2.5"#);
    assert_eq!(odds_of(&take(&both)).outcomes[0].point, Point::parse("2.5"));
    refused(&both.replace("2.5", "2.5001"), Reason::BadField, "three decimals");
    refused(&ODDS.replace("null", "0"), Reason::BadField, "absent or null");
}

#[test]
fn odds_lines_are_checked_field_by_field() {
    refused(&ODDS.replace("\"format\":\"decimal\",", ""), Reason::MissingField, "\"format\"");
    refused(&ODDS.replace("\"decimal\"", "\"dec\""), Reason::BadField, "american, decimal, fractional");
    assert_eq!(take(&ODDS.replace("moneyline", "h2h")).news, take(ODDS).news, "both names are understood");
    refused(&ODDS.replace("moneyline", "moneylines"), Reason::UnknownMarket, "moneyline");
    refused(&ODDS.replace("\"mma\"", "\"chess\""), Reason::UnknownSport, "chess");
    refused(&ODDS.replace("betmgm", "BetMGM"), Reason::BadField, "\"bookmaker\"");
    refused(&ODDS.replace("\"e1\"", "\"e 1\""), Reason::BadField, "\"event\"");
    refused(&ODDS.replace("\"e1\"", "7"), Reason::BadField, "a string");
    refused(&ODDS.replace("2026-11-14T", "1926-11-14T"), Reason::BadTime, "\"last_update\"");
    refused(&ODDS.replace(r#""name":"A""#, r#""name":"\u0007""#), Reason::BadField, "outcomes.name");
    refused(&ODDS.replace(r#""name":"A""#, r#""name":"  ""#), Reason::BadField, "outcomes.name");
    let many = vec![r#"{"name":"A","price":2}"#; 501].join(",");
    refused(&odds_line("outright", "decimal", &many), Reason::BadField, "at most 500");
}

#[test]
fn an_event_has_two_sides_or_a_title() {
    let News::Event(event) = take(EVENT).news else { panic!() };
    assert_eq!(event.contest, Contest::Sides { home: "Zoë \"Z\" A".into(), away: "B".into() });
    assert_eq!((&*event.competition, event.commence.to_string().as_str()), (" Night 1 ", "2026-11-14T23:00:00Z"));
    let News::Event(event) = take(GOLF).news else { panic!() };
    assert_eq!(event.contest, Contest::Tournament { title: "Open".into() });

    for (line, sport, other) in [(EVENT, "mma", "golf"), (GOLF, "golf", "mma")] {
        let News::Event(event) = take(&line.replace(&format!("\"{sport}\""), &format!("\"{other}\""))).news else {
            panic!()
        };
        assert_eq!(matches!(event.contest, Contest::Tournament { .. }), sport == "golf", "in any sport");
    }
    refused(&GOLF.replace("\"home\":null", "\"home\":\"A\""), Reason::BadField, "\"home\"");
    refused(&GOLF.replace("\"title\":\"Open\",", ""), Reason::MissingField, "\"title\"");
    refused(&EVENT.replace("scheduled", "postponed"), Reason::BadField, "scheduled, live, final, cancelled");
    refused(&EVENT.replace("\"B\"", &format!("\"{}\"", "x".repeat(201))), Reason::BadField, "\"away\"");
}

#[test]
fn a_score_has_the_shape_of_its_sport() {
    assert!(matches!(take(SCORE).news, News::Score(_)));
    refused(&SCORE.replace(r#""home_score":1,"#, ""), Reason::MissingField, "\"home_score\"");
    refused(&SCORE.replace(r#""home_score":1,"#, r#""home_score":-1,"#), Reason::BadField, "from 0 to 1000000");
    refused(&SCORE.replace("\"mma\"", "\"tennis\""), Reason::BadField, "\"winner\"");
    refused(&SCORE.replace("final", "live"), Reason::BadField, "\"winner\"");
    refused(&SCORE.replace("final", "cancelled"), Reason::BadField, "\"status\"");
    refused(&SCORE.replace(r#""number":1"#, r#""number":0"#), Reason::BadField, "periods.number");
    let twice = r#"{"number":1,"home_score":10,"away_score":9}"#;
    refused(&SCORE.replace(twice, &format!("{twice},{twice}")), Reason::BadField, "order");
    refused(&SCORE.replace("\"mma\"", "\"golf\""), Reason::BadField, "\"winner\"");
    let News::Score(news) = take(&SCORE.replace(r#""home_score":1,"away_score":0,"periods""#, r#""periods""#)).news
    else {
        panic!()
    };
    assert_eq!(news.score.points, None, "whether it has sides is for the event to say");
}

#[test]
fn bookmakers_removals_and_reads() {
    let book = r#"{"type":"bookmaker","key":"new_book","title":"New","regions":["au","us"]}"#;
    let News::Bookmaker(declared) = take(book).news else { panic!() };
    assert_eq!(declared.regions.iter().map(crate::model::Region::key).collect::<Vec<_>>(), ["us", "au"]);
    refused(&book.replace(r#""au","us""#, ""), Reason::BadField, "\"regions\"");
    refused(&book.replace("\"us\"", "\"usa\""), Reason::BadField, "us, us2, us_dfs, us_ex, uk, eu, fr, se, au");
    assert!(matches!(take(r#"{"type":"remove","sport":"mma","event":"e1"}"#).news, News::Remove { .. }));
    let good = r#"{"type":"read","sport":"mma","bookmaker":"betmgm","at":"2026-11-14T23:39:00Z"}"#;
    let News::Read(own) = take(good).news else { panic!() };
    assert_eq!(own.latency_ms, 0);
    refused(&good.replace('}', ",\"latency_ms\":3600001}"), Reason::BadField, "\"latency_ms\"");
}

#[test]
fn what_is_no_line_is_refused() {
    for line in ["", "\n", "null", "[]", "[\"odds\"]", "{", "{\"type\":\"odds\",}", "{} {}"] {
        refused(line, Reason::BadJson, "");
    }
    refused("{}", Reason::MissingField, "\"type\"");
    refused("{\"type\":\"bet\"}", Reason::UnknownType, "\"bet\"");
    refused("{\"type\":\"odds\",\"type\":\"odds\"}", Reason::BadField, "duplicate field `type`");
    assert_eq!(read(b"{\"type\":\"\xff\"}", &catalogue()).unwrap_err().reason, Reason::BadJson);
    let long = vec![b' '; LINE_BYTES_MAX + 1];
    assert_eq!(read(&long, &catalogue()).unwrap_err().reason, Reason::LineTooLong);
}

/// Run by hand: `cargo test --release --lib wire::tests::speed -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn speed() {
    let catalogue = catalogue();
    for line in [ODDS, SCORE, EVENT] {
        let rounds = 300_000;
        let start = std::time::Instant::now();
        for _ in 0..rounds {
            std::hint::black_box(read(std::hint::black_box(line.as_bytes()), &catalogue)).unwrap();
        }
        println!("{:?} a line: {}…", start.elapsed() / rounds, &line[..24]);
    }
}
