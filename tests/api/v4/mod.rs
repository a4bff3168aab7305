//! The API shape of The Odds API, over a real socket.

mod caching;
mod chain;
mod errors;
mod event;
mod events;
mod extras;
mod futures;
mod history;
mod keys;
mod odds;
mod scores;
mod sports;
mod upcoming;

use crate::harness::Answer;

pub const MMA: &str = "/v4/sports/mma_mixed_martial_arts";
pub const NFL: &str = "/v4/sports/americanfootball_nfl";
pub const TENNIS: &str = "/v4/sports/tennis_cup";
pub const GOLF: &str = "/v4/sports/golf_the_open_championship_winner";

/// Every path that returns 200 once every sport has an event, and its cost.
pub const ROUTES: [(&str, u64); 8] = [
    ("/v4/sports", 0),
    ("/v4/sports/upcoming/odds?regions=us", 1),
    ("/v4/sports/mma_mixed_martial_arts/odds?regions=us", 1),
    ("/v4/sports/mma_mixed_martial_arts/scores", 1),
    ("/v4/sports/mma_mixed_martial_arts/events", 0),
    ("/v4/sports/mma_mixed_martial_arts/participants", 1),
    ("/v4/sports/mma_mixed_martial_arts/events/m1/odds?regions=us", 1),
    ("/v4/sports/mma_mixed_martial_arts/events/m1/markets?regions=us", 1),
];

/// Status and code of an error, which must have the complete shape.
pub fn error(answer: &Answer) -> (u16, String) {
    let json = answer.json();
    let fields: Vec<&String> = json.as_object().expect("an object").keys().collect();
    assert_eq!(fields, ["details_url", "error_code", "message"], "{answer:?}");
    assert_eq!(json["details_url"], "/docs#shape-V4ErrorCode");
    assert!(answer.header("x-request-id").is_some());
    (answer.status, json["error_code"].as_str().expect("a code").to_owned())
}
