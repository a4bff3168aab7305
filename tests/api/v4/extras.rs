//! Optional fields, whose values are never known here.

use serde_json::Value;

use super::MMA;
use crate::api::fixture::every_sport;
use crate::harness::Service;

/// The names are those of The Odds API, also in the list of events without prices.
#[tokio::test]
async fn rotation_numbers_are_null_wherever_they_are_asked_for() {
    let service = Service::start().await;
    service.ingest(&every_sport()).await;
    for list in ["odds?regions=us", "events/m1/odds?regions=us", "events?dateFormat=iso"] {
        let plain = service.get(&format!("{MMA}/{list}&includeRotationNumbers=false")).await;
        assert!(!plain.text().contains("rotation"), "{list}");
        let json = service.get(&format!("{MMA}/{list}&includeRotationNumbers=true")).await.json();
        let event = json.get(0).unwrap_or(&json);
        for field in ["home_rotation", "away_rotation"] {
            assert_eq!(event.get(field), Some(&Value::Null), "{list}: {field}");
        }
    }
}

#[tokio::test]
async fn multipliers_are_null_in_outcomes() {
    let service = Service::start().await;
    service.ingest(&every_sport()).await;
    for list in ["odds?regions=us", "events/m1/odds?regions=us"] {
        let json = service.get(&format!("{MMA}/{list}&includeMultipliers=true")).await.json();
        let event = json.get(0).unwrap_or(&json);
        let outcome = &event["bookmakers"][0]["markets"][0]["outcomes"][0];
        assert_eq!(outcome.get("multiplier"), Some(&Value::Null), "{list}");
    }
}
