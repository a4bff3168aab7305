//! The nine regions, in both interfaces, and the bookmakers that the catalogue has in them.

use super::fixture::{EVENING, bookmaker, error, event, fields, message, moneyline, strings};
use super::payload::{ingest_lines, reasons};
use crate::harness::Service;

const REGIONS: [&str; 9] = ["us", "us2", "us_dfs", "us_ex", "uk", "eu", "fr", "se", "au"];

/// A bookmaker of each region, with a price.
fn one_in_each() -> String {
    let of = |region: &str| {
        bookmaker(&format!("in_{region}"), "A Book", &format!(r#"["{region}"]"#))
            + &moneyline("mma", "m1", &format!("in_{region}"), -110, -110)
    };
    event("mma", "m1", EVENING) + &REGIONS.map(of).concat()
}

#[tokio::test]
async fn each_of_the_nine_regions_selects_its_bookmakers() {
    let service = Service::start().await;
    service.ingest(&one_in_each()).await;
    for region in REGIONS {
        let expected = [format!("in_{region}")];
        for name in ["region", "regions"] {
            let answer = service.get(&format!("/v1/sports/mma/odds?{name}={region}")).await;
            assert_eq!(fields(&answer, "bookmaker"), expected, "{region}");
        }
        let v4 = service.get(&format!("/v4/sports/mma_mixed_martial_arts/odds?regions={region}")).await.json();
        assert_eq!(strings(&v4[0]["bookmakers"], "key"), expected, "{region}");
    }
    assert_eq!(fields(&service.get("/v1/sports/mma/odds").await, "bookmaker"), ["in_us"], "the default is us");
    let two = service.get("/v1/sports/mma/odds?regions=us_ex,us2").await;
    assert_eq!(fields(&two, "bookmaker"), ["in_us2", "in_us_ex"]);
    let all = service.get(&format!("/v1/sports/mma/odds?regions={}", REGIONS.join(","))).await;
    assert_eq!(fields(&all, "bookmaker").len(), 9);
}

#[tokio::test]
async fn unknown_region_is_an_error_that_lists_the_nine() {
    let service = Service::start().await;
    service.ingest(&one_in_each()).await;
    for value in ["us3", "US", "us,mars", "us_"] {
        let answer = service.get(&format!("/v1/sports/mma/odds?regions={value}")).await;
        assert_eq!((error(&answer), answer.param()), ((400, "invalid_parameter".into()), "regions".into()), "{value}");
        assert!(REGIONS.iter().all(|region| message(&answer).contains(region)), "{answer:?}");
        assert_eq!(service.get(&format!("/v4/sports/mma_mixed_martial_arts/odds?regions={value}")).await.status, 422);
    }
    let report = ingest_lines(&service, &bookmaker("nowhere", "No Where", r#"["us","mars"]"#)).await;
    assert_eq!(report.rejected_by_reason, reasons([("bad_field", 1)]));
    assert!(REGIONS.iter().all(|region| report.examples[0].detail.contains(region)), "{report:?}");
}

#[tokio::test]
async fn books_lists_the_catalogue_with_every_region() {
    let service = Service::start().await;
    let books = service.get("/v1/books").await;
    let json = books.json();
    let regions: std::collections::BTreeSet<&str> = json
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|book| book["regions"].as_array().unwrap())
        .filter_map(|region| region.as_str())
        .collect();
    assert_eq!(regions, REGIONS.into_iter().collect());
    assert!(books.text().contains(r#"{"key":"ballybet","title":"Bally Bet","regions":["us2"]}"#), "{books:?}");
    assert!(json.as_array().unwrap().len() >= 94);
}
