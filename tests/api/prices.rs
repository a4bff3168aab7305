//! Price conversions over the wire.

use super::fixture::{EVENING, UPDATED, event, odds_in};
use crate::harness::Service;
use oddsbox::config::catalogue;
use oddsbox::ingest::wire;
use oddsbox::model::{News, Reason};

/// A quote, and its American, decimal and fractional form.
const ROWS: [(&str, &str, &str, &str, &str); 44] = [
    ("american", "-110", "-110", "1.909", "10/11"),
    ("american", "-100", "100", "2.0", "1/1"),
    ("american", "100", "100", "2.0", "1/1"),
    ("american", "+100", "100", "2.0", "1/1"),
    ("american", "-101", "-101", "1.99", "100/101"),
    ("american", "101", "101", "2.01", "101/100"),
    ("american", "150", "150", "2.5", "3/2"),
    ("american", "137", "137", "2.37", "137/100"),
    ("american", "-200", "-200", "1.5", "1/2"),
    ("american", "100000", "100000", "1001.0", "1000/1"),
    ("american", "-100000", "-100000", "1.001", "1/1000"),
    ("american", "150.0", "150", "2.5", "3/2"),
    ("decimal", "2", "100", "2.0", "1/1"),
    ("decimal", "2.0", "100", "2.0", "1/1"),
    ("decimal", "1.91", "-110", "1.91", "10/11"),
    ("decimal", "1.909", "-110", "1.909", "10/11"),
    ("decimal", "1.9099", "-110", "1.91", "10/11"),
    ("decimal", "1.83", "-120", "1.83", "5/6"),
    ("decimal", "1.57", "-175", "1.57", "4/7"),
    ("decimal", "1.36", "-278", "1.36", "4/11"),
    ("decimal", "1.53", "-189", "1.53", "8/15"),
    ("decimal", "1.62", "-161", "1.62", "8/13"),
    ("decimal", "2.62", "162", "2.62", "13/8"),
    ("decimal", "2.38", "138", "2.38", "11/8"),
    ("decimal", "4.33", "333", "4.33", "10/3"),
    ("decimal", "1.05", "-2000", "1.05", "1/20"),
    ("decimal", "1.01", "-10000", "1.01", "1/100"),
    ("decimal", "3.75", "275", "3.75", "11/4"),
    ("decimal", "1.95", "-105", "1.95", "20/21"),
    ("decimal", "1.001", "-100000", "1.001", "1/1000"),
    ("decimal", "1.0005", "-100000", "1.001", "1/1000"),
    ("decimal", "1001", "100000", "1001.0", "1000/1"),
    ("decimal", "100000", "9999900", "100000.0", "99999/1"),
    // Half away from zero, above and below evens; never between -100 and 100.
    ("decimal", "2.005", "101", "2.005", "183/182"),
    ("decimal", "1.999", "100", "1.999", "666/667"),
    ("fractional", "200/201", "-101", "1.995", "200/201"),
    ("fractional", "10/11", "-110", "1.909", "10/11"),
    ("fractional", "6/4", "150", "2.5", "3/2"),
    ("fractional", "1/1", "100", "2.0", "1/1"),
    ("fractional", "2/3", "-150", "1.667", "2/3"),
    ("fractional", "1/3", "-300", "1.333", "1/3"),
    ("fractional", "137/100", "137", "2.37", "137/100"),
    ("fractional", "1/1000", "-100000", "1.001", "1/1000"),
    // Half up: exactly 1.0125.
    ("fractional", "1/80", "-8000", "1.013", "1/80"),
];

#[tokio::test]
async fn every_quote_converts_to_each_format() {
    let service = Service::start().await;
    let mut lines = String::new();
    for (number, (format, quoted, ..)) in ROWS.iter().enumerate() {
        let id = format!("t{number:02}");
        let price = if *format == "fractional" || quoted.starts_with('+') {
            format!("\"{quoted}\"")
        } else {
            (*quoted).to_owned()
        };
        let outcomes = format!(r#"[{{"name":"A","price":{price}}}]"#);
        lines += &event("tennis", &id, EVENING);
        lines += &odds_in(format, "tennis", &id, "betmgm", "moneyline", UPDATED, &outcomes);
    }
    service.ingest(&lines).await;
    for asked in ["american", "decimal", "fractional"] {
        let answer = service.get(&format!("/v1/sports/tennis/odds?odds_format={asked}")).await;
        let parts: Vec<&str> = answer.text().split(r#""name":"A","price":"#).skip(1).collect();
        assert_eq!(parts.len(), ROWS.len());
        for ((format, quoted, american, decimal, fractional), part) in ROWS.into_iter().zip(parts) {
            let expected = match asked {
                "american" => american.to_owned(),
                "decimal" => decimal.to_owned(),
                _ => format!("\"{fractional}\""),
            };
            let written = part.split_once(r#","point""#).unwrap().0;
            assert_eq!(written, expected, "{quoted} ({format}) as {asked}");
        }
    }
}

#[tokio::test]
async fn invalid_price_drops_its_outcome_only() {
    let service = Service::start().await;
    let mut lines = String::new();
    let cases = [
        ("decimal", "1.0", Reason::PriceTooShort),
        ("decimal", "1.0004", Reason::PriceTooShort),
        ("decimal", "0", Reason::PriceTooShort),
        ("decimal", "-2.5", Reason::PriceTooShort),
        ("decimal", "100000.5", Reason::PriceTooLong),
        ("decimal", "\"NaN\"", Reason::PriceNotANumber),
        ("decimal", "\"inf\"", Reason::PriceNotANumber),
        ("american", "99", Reason::PriceInsideHundred),
        ("american", "-99", Reason::PriceInsideHundred),
        ("american", "0", Reason::PriceInsideHundred),
        ("american", "110.5", Reason::PriceNotWhole),
        ("fractional", "\"0/1\"", Reason::PriceBadFraction),
        ("fractional", "\"1/0\"", Reason::PriceBadFraction),
        ("fractional", "\"-1/2\"", Reason::PriceBadFraction),
    ];
    for (number, (format, bad, reason)) in cases.into_iter().enumerate() {
        let id = format!("t{number:02}");
        let good = if format == "fractional" {
            "\"3/2\""
        } else if format == "decimal" {
            "2.5"
        } else {
            "150"
        };
        let outcomes = format!(r#"[{{"name":"Bad","price":{bad}}},{{"name":"Good","price":{good}}}]"#);
        let line = odds_in(format, "tennis", &id, "betmgm", "moneyline", UPDATED, &outcomes);
        let reading = wire::read(line.as_bytes(), &catalogue::builtin()).unwrap();
        assert!(matches!(&reading.news, News::Odds(odds) if odds.outcomes.len() == 1), "{bad}");
        assert_eq!(
            reading.dropped.iter().map(|dropped| (&*dropped.name, dropped.reason)).collect::<Vec<_>>(),
            [("Bad", reason)]
        );
        lines += &event("tennis", &id, EVENING);
        lines += &line;
    }
    service.ingest(&lines).await;
    let json = service.get("/v1/sports/tennis/odds").await.json();
    let records = json.as_array().unwrap();
    assert_eq!(records.len(), cases.len());
    for record in records {
        assert_eq!(record["outcomes"].to_string(), r#"[{"name":"Good","point":null,"price":150}]"#);
    }
}

#[tokio::test]
async fn formats_may_differ_from_one_outcome_to_the_next() {
    let service = Service::start().await;
    let outcomes = r#"[{"name":"A","price":-110},{"name":"B","price":"10/11","format":"fractional"}]"#;
    let lines =
        event("tennis", "t1", EVENING) + &odds_in("american", "tennis", "t1", "betmgm", "moneyline", UPDATED, outcomes);
    service.ingest(&lines).await;
    let json = service.get("/v1/sports/tennis/odds?odds_format=fractional").await.json();
    assert_eq!(super::fixture::strings(&json[0]["outcomes"], "price"), ["10/11", "10/11"]);
}
