//! The tools: what each takes, and the target of `/v1` that a call of it stands for.

use serde_json::{Map, Value, json};

use super::{bad_argument, invalid};
use crate::http::exchange::error::ApiError;
use crate::http::exchange::percent;

/// Rows of an answer, or points of each line: what an assistant can read.
const LIMIT_MAX: u64 = 100;
const LIMIT_DEFAULT: u64 = 25;

#[derive(Debug)]
pub(super) struct Tool {
    pub name: &'static str,
    title: &'static str,
    description: &'static str,
    /// The path, in which arguments stand in braces.
    path: &'static str,
    /// What every call sends.
    always: &'static [(&'static str, &'static str)],
    arguments: &'static [Argument],
}

#[derive(Debug)]
struct Argument {
    name: &'static str,
    takes: Takes,
    is_required: bool,
    description: &'static str,
}

#[derive(Clone, Copy, Debug)]
enum Takes {
    Text,
    /// Texts, or one with commas between them.
    List,
    Number,
    OneOf(&'static [&'static str]),
    Limit,
}

const fn optional(name: &'static str, takes: Takes, description: &'static str) -> Argument {
    Argument { name, takes, is_required: false, description }
}

const fn required(name: &'static str, takes: Takes, description: &'static str) -> Argument {
    Argument { is_required: true, ..optional(name, takes, description) }
}

const SPORT: Argument = required("sport", Takes::Text, "The key of a sport from list_sports, such as mma or soccer.");
const MARKET: Argument = optional(
    "market",
    Takes::List,
    "Keys of markets, such as moneyline, spread, total_points or outright, or all. Without it: the featured ones.",
);
const BOOKMAKER: Argument = optional("bookmaker", Takes::Text, "The key of one bookmaker, wherever it is offered.");
const REGIONS: Argument = optional(
    "regions",
    Takes::List,
    "Regions that bookmakers are offered in, such as us, uk, eu or au. Without it: us.",
);
const FORMAT: Argument =
    optional("odds_format", Takes::OneOf(&["american", "decimal", "fractional"]), "Without it: american.");
const EVENT_IDS: Argument = optional("event_ids", Takes::List, "Ids of events from find_events.");
const COMPETITION: Argument = optional("competition", Takes::List, "Keys of competitions, such as soccer_epl.");
const COMMENCE_FROM: Argument =
    optional("commence_from", Takes::Text, "Only events that begin at this time or later: 2026-11-14T00:00:00Z.");
const COMMENCE_TO: Argument = optional("commence_to", Takes::Text, "Only events that begin at this time or earlier.");
const AS_OF: Argument = optional("as_of", Takes::Text, "A time in the past: the answer is as it was then.");
const LIMIT: Argument = optional("limit", Takes::Limit, "How many rows at most, 1 to 100. Without it: 25.");
const AFTER: Argument = optional("after", Takes::Text, "The next of an earlier answer, for the rows that follow.");
const METHOD: Argument = optional(
    "method",
    Takes::OneOf(&["power", "shin", "multiplicative", "additive"]),
    "How the margin is taken out. Without it: power.",
);
const FROM: Argument = optional(
    "from",
    Takes::Text,
    "Whose prices are taken for fair: consensus, or the key of a bookmaker. Without it: consensus.",
);

const WITH_EVENT: &[(&str, &str)] = &[("include", "event")];

pub(super) static ALL: [Tool; 8] = [
    Tool {
        name: "list_sports",
        title: "List sports",
        description: "Every sport with its key, whether it is active, and how many events and bookmakers it has now.",
        path: "/v1/sports",
        always: &[],
        arguments: &[],
    },
    Tool {
        name: "find_events",
        title: "Find events",
        description: "Events of a sport with their ids, sides, competition, start, status and markets, in the order of their start.",
        path: "/v1/sports/{sport}/events",
        always: &[],
        arguments: &[
            SPORT,
            optional(
                "status",
                Takes::OneOf(&["scheduled", "live", "final", "cancelled"]),
                "Only events with this status.",
            ),
            EVENT_IDS,
            COMPETITION,
            COMMENCE_FROM,
            COMMENCE_TO,
            LIMIT,
            AFTER,
            AS_OF,
        ],
    },
    Tool {
        name: "get_odds",
        title: "Get odds",
        description: "Current prices of a sport: a row for each event, bookmaker and market.",
        path: "/v1/sports/{sport}/odds",
        always: WITH_EVENT,
        arguments: &[
            SPORT,
            MARKET,
            BOOKMAKER,
            REGIONS,
            FORMAT,
            EVENT_IDS,
            COMPETITION,
            COMMENCE_FROM,
            COMMENCE_TO,
            LIMIT,
            AFTER,
            AS_OF,
        ],
    },
    Tool {
        name: "best_prices",
        title: "Best prices",
        description: "The best price of each outcome over all bookmakers, with who offers it and the hold of all of them together.",
        path: "/v1/sports/{sport}/best",
        always: WITH_EVENT,
        arguments: &[
            SPORT,
            MARKET,
            BOOKMAKER,
            REGIONS,
            FORMAT,
            EVENT_IDS,
            COMPETITION,
            COMMENCE_FROM,
            COMMENCE_TO,
            optional("sort", Takes::OneOf(&["hold"]), "hold: the lowest hold first. Without it: by start."),
            LIMIT,
            AFTER,
            AS_OF,
        ],
    },
    Tool {
        name: "fair_odds",
        title: "Fair odds",
        description: "The probabilities that prices imply without the bookmaker's margin.",
        path: "/v1/sports/{sport}/fair",
        always: WITH_EVENT,
        arguments: &[
            SPORT,
            METHOD,
            FROM,
            MARKET,
            REGIONS,
            FORMAT,
            EVENT_IDS,
            COMPETITION,
            COMMENCE_FROM,
            COMMENCE_TO,
            LIMIT,
            AFTER,
            AS_OF,
        ],
    },
    Tool {
        name: "edges",
        title: "Edges",
        description: "Prices with a positive expected value (ev), or best prices that together leave a profit (arbitrage), the largest first.",
        path: "/v1/sports/{sport}/edges",
        always: WITH_EVENT,
        arguments: &[
            SPORT,
            required("kind", Takes::OneOf(&["ev", "arbitrage"]), "What to look for."),
            optional("min", Takes::Number, "The least edge as a fraction, such as 0.02 for 2 %. Without it: 0.01."),
            FROM,
            METHOD,
            MARKET,
            BOOKMAKER,
            REGIONS,
            FORMAT,
            EVENT_IDS,
            COMPETITION,
            COMMENCE_FROM,
            COMMENCE_TO,
            LIMIT,
            AFTER,
            AS_OF,
        ],
    },
    Tool {
        name: "line_history",
        title: "Line history",
        description: "What the prices of one event were: a line for each bookmaker and market with its changes, its opening and its closing price.",
        path: "/v1/sports/{sport}/events/{event_id}/lines",
        always: &[],
        arguments: &[
            SPORT,
            required("event_id", Takes::Text, "The id of an event from find_events."),
            MARKET,
            BOOKMAKER,
            REGIONS,
            FORMAT,
            optional("name", Takes::Text, "Only the outcome with this name."),
            optional("from", Takes::Text, "Only changes since this time."),
            optional("to", Takes::Text, "Only changes until this time."),
            optional(
                "every",
                Takes::Text,
                "Such as 5m or 1h: the price at each multiple of that time instead of every change.",
            ),
            optional("limit", Takes::Limit, "How many points of each line at most, 1 to 100. Without it: 25."),
        ],
    },
    Tool {
        name: "service_status",
        title: "Service status",
        description: "Whether the service works, the limits of the key, and since when there is history.",
        path: "/v1/status",
        always: &[],
        arguments: &[],
    },
];

pub(super) fn find(name: &str) -> Option<&'static Tool> {
    ALL.iter().find(|tool| tool.name == name)
}

impl Tool {
    /// As a client lists it.
    pub(super) fn described(&self) -> Value {
        let properties: Map<String, Value> =
            self.arguments.iter().map(|argument| (argument.name.to_owned(), argument.schema())).collect();
        let required: Vec<&str> =
            self.arguments.iter().filter(|argument| argument.is_required).map(|argument| argument.name).collect();
        json!({
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": { "type": "object", "properties": properties, "required": required, "additionalProperties": false },
            "outputSchema": {
                "type": "object",
                "properties": {
                    "as_of": { "type": "string", "description": "The time of the data, in UTC." },
                    "age_s": { "type": "integer", "description": "How old the data was when it was sent, in seconds." },
                    "data": { "description": "As the API has it." },
                    "next": { "type": "string", "description": "If there is more: send it as after." },
                },
                "required": ["as_of", "age_s", "data"],
            },
            "annotations": { "title": self.title, "readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false },
        })
    }

    pub(super) fn takes_after(&self) -> bool {
        self.arguments.iter().any(|argument| argument.name == AFTER.name)
    }

    /// The target of `/v1` that a call stands for.
    pub(super) fn target(&self, arguments: &Map<String, Value>) -> Result<String, ApiError> {
        if let Some(unknown) = arguments.keys().find(|name| self.argument(name).is_none()) {
            let names: Vec<&str> = self.arguments.iter().map(|argument| argument.name).collect();
            let takes = if names.is_empty() { "no arguments".to_owned() } else { names.join(", ") };
            return Err(invalid(format!("There is no argument {unknown:?}: {} takes {takes}.", self.name)));
        }
        let mut path = self.path.to_owned();
        let mut pairs: Vec<(&str, String)> =
            self.always.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        for argument in self.arguments {
            let given = arguments.get(argument.name).filter(|value| !value.is_null());
            let text = match given.map(|value| argument.text(value)).transpose()? {
                Some(text) => text,
                None if argument.is_required => {
                    return Err(invalid(format!("{} needs {:?}: {}", self.name, argument.name, argument.description)));
                }
                None if matches!(argument.takes, Takes::Limit) => LIMIT_DEFAULT.to_string(),
                None => continue,
            };
            let place = format!("{{{}}}", argument.name);
            if path.contains(&place) {
                path = path.replace(&place, &percent::encode(&text));
            } else {
                pairs.push((argument.name, text));
            }
        }
        let query: Vec<String> =
            pairs.iter().map(|(name, value)| format!("{name}={}", percent::encode(value))).collect();
        Ok(if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) })
    }

    fn argument(&self, name: &str) -> Option<&'static Argument> {
        find(self.name)?.arguments.iter().find(|argument| argument.name == name)
    }
}

impl Argument {
    fn schema(&self) -> Value {
        let mut schema = match self.takes {
            Takes::Text => json!({ "type": "string" }),
            Takes::List => json!({ "type": "array", "items": { "type": "string" } }),
            Takes::Number => json!({ "type": "number" }),
            Takes::OneOf(values) => json!({ "type": "string", "enum": values }),
            Takes::Limit => json!({ "type": "integer", "minimum": 1, "maximum": LIMIT_MAX }),
        };
        schema["description"] = self.description.into();
        schema
    }

    /// An argument as a parameter has it. What values a text may have is left to `/v1`.
    fn text(&self, value: &Value) -> Result<String, ApiError> {
        match (self.takes, value) {
            (Takes::Text | Takes::List | Takes::OneOf(_) | Takes::Number, Value::String(text)) => Ok(text.clone()),
            (Takes::List, Value::Array(items)) => {
                let texts: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
                texts.map(|texts| texts.join(",")).ok_or_else(|| bad_argument(self.name, "a list of texts"))
            }
            (Takes::Number, Value::Number(number)) => Ok(number.to_string()),
            (Takes::Limit, Value::Number(number)) => {
                let limit = number.as_u64().filter(|limit| (1..=LIMIT_MAX).contains(limit));
                limit.map(|limit| limit.to_string()).ok_or_else(|| self.refuse())
            }
            _ => Err(self.refuse()),
        }
    }

    fn refuse(&self) -> ApiError {
        let takes = match self.takes {
            Takes::Text => "a text".to_owned(),
            Takes::List => "a list of texts".to_owned(),
            Takes::Number => "a number".to_owned(),
            Takes::OneOf(values) => format!("one of {}", values.join(", ")),
            Takes::Limit => format!("an integer from 1 to {LIMIT_MAX}"),
        };
        bad_argument(self.name, &takes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::exchange::query::Parameter;
    use crate::http::exchange::route::Route;
    use crate::http::v1::{best, edges, events, fair, lines, odds};

    fn target(name: &str, arguments: Value) -> Result<String, String> {
        let Value::Object(arguments) = arguments else { panic!("{arguments}") };
        find(name).unwrap().target(&arguments).map_err(|error| error.message.into_owned())
    }

    #[test]
    fn calls_are_requests_of_the_api() {
        assert_eq!(target("list_sports", json!({})).unwrap(), "/v1/sports");
        assert_eq!(
            target("get_odds", json!({"sport": "mma", "market": ["moneyline", "spread"], "limit": 3, "after": null}))
                .unwrap(),
            "/v1/sports/mma/odds?include=event&market=moneyline%2Cspread&limit=3"
        );
        assert_eq!(
            target(
                "line_history",
                json!({"sport": "a/b", "event_id": "x?y&z=1 é", "from": "2026-11-14T00:00:00+01:00"})
            )
            .unwrap(),
            "/v1/sports/a%2Fb/events/x%3Fy%26z%3D1%20%C3%A9/lines?from=2026-11-14T00%3A00%3A00%2B01%3A00&limit=25"
        );
        assert_eq!(
            target("edges", json!({"sport": "mma", "kind": "ev", "min": 0.02})).unwrap(),
            "/v1/sports/mma/edges?include=event&kind=ev&min=0.02&limit=25"
        );
    }

    #[test]
    fn arguments_that_do_not_fit_are_refused_with_what_does() {
        for (name, arguments, message) in [
            ("get_odds", json!({}), "get_odds needs \"sport\""),
            ("get_odds", json!({"sport": 7}), "`sport` takes a text."),
            ("get_odds", json!({"sport": "mma", "limit": 101}), "`limit` takes an integer from 1 to 100."),
            ("get_odds", json!({"sport": "mma", "limit": "5"}), "`limit` takes an integer from 1 to 100."),
            ("get_odds", json!({"sport": "mma", "market": [1]}), "`market` takes a list of texts."),
            ("edges", json!({"sport": "mma"}), "edges needs \"kind\""),
            ("list_sports", json!({"sport": "mma"}), "There is no argument \"sport\": list_sports takes no arguments."),
        ] {
            let refused = target(name, arguments.clone()).unwrap_err();
            assert!(refused.starts_with(message), "{name} {arguments}: {refused}");
        }
    }

    #[test]
    fn every_tool_leads_to_a_route_and_takes_only_what_that_reads() {
        for tool in &ALL {
            let path = tool.path.replace("{sport}", "mma").replace("{event_id}", "e");
            let route = Route::of(&path);
            assert!(Route::TEMPLATES.contains(&route.template()), "{path}");
            let known: &[Parameter] = match route {
                Route::Events { .. } => events::PARAMETERS,
                Route::Odds { .. } => odds::PARAMETERS,
                Route::Best { .. } => best::PARAMETERS,
                Route::Fair { .. } => fair::PARAMETERS,
                Route::Edges { .. } => edges::PARAMETERS,
                Route::Lines { .. } => lines::PARAMETERS,
                _ => &[],
            };
            let in_query = tool.arguments.iter().map(|argument| argument.name);
            let in_query = in_query.filter(|name| !tool.path.contains(&format!("{{{name}}}")));
            for name in in_query.chain(tool.always.iter().map(|(name, _)| *name)) {
                assert!(known.iter().any(|parameter| parameter.name == name), "{} {name}", tool.name);
            }
            let described = tool.described();
            assert_eq!(described["annotations"]["readOnlyHint"], true);
            assert_eq!(described["inputSchema"]["type"], "object");
            assert!(tool.arguments.iter().all(|argument| !argument.description.is_empty()));
        }
    }
}
