//! Which endpoint a path names.
//!
//! A path that names nothing is a route too: it has an answer of its own, and whether that answer needs a key is
//! decided by where the path stands.

use std::borrow::Cow;

use super::percent::{self, Plus};

/// A path, understood. Borrowed from the request where nothing is encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route<'p> {
    Root,
    /// A file below `/docs`; the start page is the empty path.
    Docs {
        page: Cow<'p, str>,
    },
    OpenApi,
    Healthz,
    /// A file below `/account`; the page itself is the empty path.
    Account {
        page: Cow<'p, str>,
    },
    /// Where a key's holder rotates it.
    AccountRotate,
    /// The Model Context Protocol.
    Mcp,
    Sports,
    Books,
    Markets,
    Status,
    Usage,
    Stream,
    Changes,
    Competitions {
        sport: Cow<'p, str>,
    },
    Closing {
        sport: Cow<'p, str>,
    },
    Best {
        sport: Cow<'p, str>,
    },
    Fair {
        sport: Cow<'p, str>,
    },
    Edges {
        sport: Cow<'p, str>,
    },
    Odds {
        sport: Cow<'p, str>,
    },
    Scores {
        sport: Cow<'p, str>,
    },
    Events {
        sport: Cow<'p, str>,
    },
    Event {
        sport: Cow<'p, str>,
        id: Cow<'p, str>,
    },
    Lines {
        sport: Cow<'p, str>,
        id: Cow<'p, str>,
    },
    Archive {
        sport: Cow<'p, str>,
        hour: Cow<'p, str>,
    },
    V4(V4Route<'p>),
    /// Nothing that the service has.
    Unknown {
        /// Below a version's prefix, where even "not found" is only for requests with a valid key.
        version: Option<Version>,
    },
    /// A path that is not UTF-8 in percent-encoding.
    Malformed {
        version: Option<Version>,
    },
}

/// A path in the shape of The Odds API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum V4Route<'p> {
    Sports,
    /// What is on now and next in every sport.
    Upcoming,
    Odds {
        sport: Cow<'p, str>,
    },
    Scores {
        sport: Cow<'p, str>,
    },
    Events {
        sport: Cow<'p, str>,
    },
    Participants {
        sport: Cow<'p, str>,
    },
    EventOdds {
        sport: Cow<'p, str>,
        id: Cow<'p, str>,
    },
    EventMarkets {
        sport: Cow<'p, str>,
        id: Cow<'p, str>,
    },
    /// The same as of a date.
    PastOdds {
        sport: Cow<'p, str>,
        /// Whether it is `/v4/sports/{sport}/odds-history`.
        is_old_path: bool,
    },
    PastEvents {
        sport: Cow<'p, str>,
    },
    PastEventOdds {
        sport: Cow<'p, str>,
        id: Cow<'p, str>,
    },
}

/// The API version: it decides how keys are sent and what errors look like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Version {
    /// Our own, also used for paths outside of any version.
    #[default]
    V1,
    /// That of The Odds API.
    V4,
}

impl Version {
    /// The version whose prefix a path has.
    pub(crate) fn of(path: &str) -> Option<Self> {
        if path.starts_with("/v1/") {
            return Some(Version::V1);
        }
        let first = path.strip_prefix('/')?.split('/').next()?;
        match &*percent::decode(first, Plus::Itself)? {
            "v1" => Some(Version::V1),
            "v4" => Some(Version::V4),
            _ => None,
        }
    }
}

/// `v4`, `historical`, `sports`, the sport, `events`, the event, `odds`.
const SEGMENTS_MAX: usize = 7;

/// Puts the parts of a path in their places and says how many there are, unless there are too many or one cannot be
/// read.
fn split<'p>(path: &'p str, segments: &mut [Cow<'p, str>; SEGMENTS_MAX]) -> Option<usize> {
    let mut count = 0;
    for raw in path.split('/') {
        *segments.get_mut(count)? = percent::decode(raw, Plus::Itself)?;
        count += 1;
    }
    Some(count)
}

impl<'p> Route<'p> {
    /// Understands a path, with or without one trailing slash.
    pub(crate) fn of(path: &'p str) -> Self {
        if let Some(list) = Self::of_list(path) {
            return list;
        }
        let Some(inner) = path.strip_prefix('/') else { return Route::Unknown { version: None } };
        let inner = inner.strip_suffix('/').unwrap_or(inner);
        let mut segments: [Cow<'p, str>; SEGMENTS_MAX] = Default::default();
        let found = split(inner, &mut segments).and_then(|count| Self::of_segments(segments, count));
        found.unwrap_or_else(|| {
            let version = Version::of(path);
            let is_decodable = inner.split('/').all(|segment| percent::decode(segment, Plus::Itself).is_some());
            if is_decodable { Route::Unknown { version } } else { Route::Malformed { version } }
        })
    }

    /// A list of a sport in its plain form, which is what nearly every request asks for.
    fn of_list(path: &'p str) -> Option<Self> {
        let rest = path.strip_prefix("/v1/sports/")?;
        let (sport, list) = rest.split_at(rest.bytes().position(|byte| byte == b'/' || byte == b'%')?);
        let sport = Cow::Borrowed(sport);
        match list {
            "/odds" => Some(Route::Odds { sport }),
            "/scores" => Some(Route::Scores { sport }),
            "/events" => Some(Route::Events { sport }),
            _ => None,
        }
    }

    fn of_segments(segments: [Cow<'p, str>; SEGMENTS_MAX], count: usize) -> Option<Self> {
        if &*segments[0] == "v4" {
            return V4Route::of_segments(segments, count).map(Route::V4);
        }
        let [first, second, sport, list, id, of_event, _] = segments;
        Some(match (count, &*first, &*second, &*list) {
            (1, "", ..) => Route::Root,
            (1, "docs", ..) => Route::Docs { page: Cow::Borrowed("") },
            (2, "docs", page, _) if !page.is_empty() => Route::Docs { page: second },
            (3, "docs", "guide", _) => Route::Docs { page: Cow::Owned(format!("guide/{sport}")) },
            (1, "openapi.json", ..) => Route::OpenApi,
            (1, "healthz", ..) => Route::Healthz,
            (1, "account", ..) => Route::Account { page: Cow::Borrowed("") },
            (2, "account", "rotate", _) => Route::AccountRotate,
            (2, "account", page, _) if !page.is_empty() => Route::Account { page: second },
            (1, "mcp", ..) => Route::Mcp,
            (2, "v1", "sports", _) => Route::Sports,
            (2, "v1", "books", _) => Route::Books,
            (2, "v1", "markets", _) => Route::Markets,
            (2, "v1", "status", _) => Route::Status,
            (2, "v1", "usage", _) => Route::Usage,
            (2, "v1", "stream", _) => Route::Stream,
            (2, "v1", "changes", _) => Route::Changes,
            (4, "v1", "sports", "odds") => Route::Odds { sport },
            (4, "v1", "sports", "scores") => Route::Scores { sport },
            (4, "v1", "sports", "events") => Route::Events { sport },
            (4, "v1", "sports", "closing") => Route::Closing { sport },
            (4, "v1", "sports", "best") => Route::Best { sport },
            (4, "v1", "sports", "fair") => Route::Fair { sport },
            (4, "v1", "sports", "edges") => Route::Edges { sport },
            (4, "v1", "sports", "competitions") => Route::Competitions { sport },
            (5, "v1", "sports", "events") => Route::Event { sport, id },
            (5, "v1", "sports", "archive") => Route::Archive { sport, hour: id },
            (6, "v1", "sports", "events") if of_event == "lines" => Route::Lines { sport, id },
            _ => return None,
        })
    }

    pub(crate) fn needs_key(&self) -> bool {
        match self {
            Route::Root | Route::Docs { .. } | Route::OpenApi | Route::Healthz | Route::Account { .. } => false,
            Route::Unknown { version } | Route::Malformed { version } => version.is_some(),
            _ => true,
        }
    }

    /// Whether a request counts for the minute only, so that health checks use no quota.
    pub(crate) fn is_free(&self) -> bool {
        match self {
            // Calls of tools are charged once it is known that they are some.
            Route::Status | Route::Usage | Route::AccountRotate | Route::Mcp => true,
            Route::V4(route) => route.is_free(),
            _ => false,
        }
    }

    /// Whether it is for POST alone. Its key is taken from a header, never from the query.
    pub(crate) const fn is_post(&self) -> bool {
        matches!(self, Route::AccountRotate | Route::Mcp)
    }

    /// The path with its variables named: what a log or a counter may hold without growing with the data.
    pub(crate) const fn template(&self) -> &'static str {
        match self {
            Route::Root => "/",
            Route::Docs { .. } => "/docs",
            Route::OpenApi => "/openapi.json",
            Route::Healthz => "/healthz",
            Route::Account { .. } => "/account",
            Route::AccountRotate => "/account/rotate",
            Route::Mcp => "/mcp",
            Route::Sports => "/v1/sports",
            Route::Books => "/v1/books",
            Route::Markets => "/v1/markets",
            Route::Status => "/v1/status",
            Route::Usage => "/v1/usage",
            Route::Stream => "/v1/stream",
            Route::Changes => "/v1/changes",
            Route::Competitions { .. } => "/v1/sports/{sport_key}/competitions",
            Route::Closing { .. } => "/v1/sports/{sport_key}/closing",
            Route::Best { .. } => "/v1/sports/{sport_key}/best",
            Route::Fair { .. } => "/v1/sports/{sport_key}/fair",
            Route::Edges { .. } => "/v1/sports/{sport_key}/edges",
            Route::Odds { .. } => "/v1/sports/{sport_key}/odds",
            Route::Scores { .. } => "/v1/sports/{sport_key}/scores",
            Route::Events { .. } => "/v1/sports/{sport_key}/events",
            Route::Event { .. } => "/v1/sports/{sport_key}/events/{event_id}",
            Route::Lines { .. } => "/v1/sports/{sport_key}/events/{event_id}/lines",
            Route::Archive { .. } => "/v1/sports/{sport_key}/archive/{hour}",
            Route::V4(route) => route.template(),
            Route::Unknown { .. } | Route::Malformed { .. } => UNKNOWN_TEMPLATE,
        }
    }

    /// The template of every route that exists, for the documentation and for counters.
    pub(crate) const TEMPLATES: [&'static str; 37] = [
        "/",
        "/docs",
        "/openapi.json",
        "/healthz",
        "/account",
        "/account/rotate",
        "/mcp",
        "/v1/sports",
        "/v1/books",
        "/v1/markets",
        "/v1/status",
        "/v1/usage",
        "/v1/stream",
        "/v1/changes",
        "/v1/sports/{sport_key}/competitions",
        "/v1/sports/{sport_key}/closing",
        "/v1/sports/{sport_key}/best",
        "/v1/sports/{sport_key}/fair",
        "/v1/sports/{sport_key}/edges",
        "/v1/sports/{sport_key}/odds",
        "/v1/sports/{sport_key}/scores",
        "/v1/sports/{sport_key}/events",
        "/v1/sports/{sport_key}/events/{event_id}",
        "/v1/sports/{sport_key}/events/{event_id}/lines",
        "/v1/sports/{sport_key}/archive/{hour}",
        "/v4/sports",
        "/v4/sports/upcoming/odds",
        "/v4/sports/{sport}/odds",
        "/v4/sports/{sport}/scores",
        "/v4/sports/{sport}/events",
        "/v4/sports/{sport}/participants",
        "/v4/sports/{sport}/events/{event_id}/odds",
        "/v4/sports/{sport}/events/{event_id}/markets",
        "/v4/sports/{sport}/odds-history",
        "/v4/historical/sports/{sport}/odds",
        "/v4/historical/sports/{sport}/events",
        "/v4/historical/sports/{sport}/events/{event_id}/odds",
    ];
}

impl<'p> V4Route<'p> {
    /// The segments of a path whose first one is `v4`.
    fn of_segments(segments: [Cow<'p, str>; SEGMENTS_MAX], count: usize) -> Option<Self> {
        if segments[1] == "historical" {
            return V4Route::of_past(segments, count);
        }
        let [_, second, sport, list, id, of_event, _] = segments;
        Some(match (count, &*second, &*list, &*of_event) {
            (2, "sports", ..) => V4Route::Sports,
            (4, "sports", "odds", _) if sport == "upcoming" => V4Route::Upcoming,
            (4, "sports", "odds", _) => V4Route::Odds { sport },
            (4, "sports", "odds-history", _) => V4Route::PastOdds { sport, is_old_path: true },
            (4, "sports", "scores", _) => V4Route::Scores { sport },
            (4, "sports", "events", _) => V4Route::Events { sport },
            (4, "sports", "participants", _) => V4Route::Participants { sport },
            (6, "sports", "events", "odds") => V4Route::EventOdds { sport, id },
            (6, "sports", "events", "markets") => V4Route::EventMarkets { sport, id },
            _ => return None,
        })
    }

    /// The same for a path below `/v4/historical`.
    fn of_past(segments: [Cow<'p, str>; SEGMENTS_MAX], count: usize) -> Option<Self> {
        let [_, _, sports, sport, list, id, of_event] = segments;
        match (count, &*sports, &*list, &*of_event) {
            (5, "sports", "odds", _) => Some(V4Route::PastOdds { sport, is_old_path: false }),
            (5, "sports", "events", _) => Some(V4Route::PastEvents { sport }),
            (7, "sports", "events", "odds") => Some(V4Route::PastEventOdds { sport, id }),
            _ => None,
        }
    }

    /// Whether a request is free of charge, as the lists of sports and events are in The Odds API.
    const fn is_free(&self) -> bool {
        matches!(self, V4Route::Sports | V4Route::Events { .. })
    }

    const fn template(&self) -> &'static str {
        match self {
            V4Route::Sports => "/v4/sports",
            V4Route::Upcoming => "/v4/sports/upcoming/odds",
            V4Route::Odds { .. } => "/v4/sports/{sport}/odds",
            V4Route::Scores { .. } => "/v4/sports/{sport}/scores",
            V4Route::Events { .. } => "/v4/sports/{sport}/events",
            V4Route::Participants { .. } => "/v4/sports/{sport}/participants",
            V4Route::EventOdds { .. } => "/v4/sports/{sport}/events/{event_id}/odds",
            V4Route::EventMarkets { .. } => "/v4/sports/{sport}/events/{event_id}/markets",
            V4Route::PastOdds { is_old_path: true, .. } => "/v4/sports/{sport}/odds-history",
            V4Route::PastOdds { .. } => "/v4/historical/sports/{sport}/odds",
            V4Route::PastEvents { .. } => "/v4/historical/sports/{sport}/events",
            V4Route::PastEventOdds { .. } => "/v4/historical/sports/{sport}/events/{event_id}/odds",
        }
    }
}

pub(crate) const UNKNOWN_TEMPLATE: &str = "unknown";

/// What requests are counted under: every template, and last unknown paths.
pub(crate) static COUNTED: [&str; Route::TEMPLATES.len() + 1] = {
    let mut counted = [UNKNOWN_TEMPLATE; Route::TEMPLATES.len() + 1];
    let mut at = 0;
    while at < Route::TEMPLATES.len() {
        counted[at] = Route::TEMPLATES[at];
        at += 1;
    }
    counted
};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOWHERE: Route<'static> = Route::Unknown { version: None };
    const NOWHERE_V1: Route<'static> = Route::Unknown { version: Some(Version::V1) };
    const NOWHERE_V4: Route<'static> = Route::Unknown { version: Some(Version::V4) };

    #[test]
    fn paths_are_understood() {
        let sport = |key: &'static str| Cow::Borrowed(key);
        for (path, route) in [
            ("/", Route::Root),
            ("/docs", Route::Docs { page: sport("") }),
            ("/docs/", Route::Docs { page: sport("") }),
            ("/docs/style.css", Route::Docs { page: sport("style.css") }),
            ("/docs/guide", Route::Docs { page: sport("guide") }),
            ("/docs/guide/api", Route::Docs { page: sport("guide/api") }),
            ("/openapi.json", Route::OpenApi),
            ("/healthz", Route::Healthz),
            ("/account/", Route::Account { page: sport("") }),
            ("/account/account.js", Route::Account { page: sport("account.js") }),
            ("/account/rotate", Route::AccountRotate),
            ("/mcp", Route::Mcp),
            ("/v1/sports", Route::Sports),
            ("/v1/sports/", Route::Sports),
            ("/v1/books", Route::Books),
            ("/v1/status", Route::Status),
            ("/v1/usage", Route::Usage),
            ("/v1/stream", Route::Stream),
            ("/v1/changes/", Route::Changes),
            ("/v1/sports/mma/odds", Route::Odds { sport: sport("mma") }),
            ("/v1/sports/mma/odds/", Route::Odds { sport: sport("mma") }),
            ("/v1/sports//odds", Route::Odds { sport: sport("") }),
            ("/v1/sports/m%6Da/scores", Route::Scores { sport: sport("mma") }),
            ("/v1/sports/curling/events", Route::Events { sport: sport("curling") }),
            ("/v1/sports/mma/closing", Route::Closing { sport: sport("mma") }),
            ("/v1/sports/mma/best", Route::Best { sport: sport("mma") }),
            ("/v1/sports/mma/fair/", Route::Fair { sport: sport("mma") }),
            ("/v1/sports/mma/edges", Route::Edges { sport: sport("mma") }),
            ("/v1/sports/mma/events/x/lines/", Route::Lines { sport: sport("mma"), id: "x".into() }),
            ("/v1/sports/mma/events/a%2Fb", Route::Event { sport: sport("mma"), id: "a/b".into() }),
            ("/v1/sports/mma/events/r%C3%A9/", Route::Event { sport: sport("mma"), id: "ré".into() }),
            ("/v1/sports/mma/events/a+b", Route::Event { sport: sport("mma"), id: "a+b".into() }),
            ("/v4/sports", Route::V4(V4Route::Sports)),
            ("/v4/sports/", Route::V4(V4Route::Sports)),
            ("/v4/sports/upcoming/odds/", Route::V4(V4Route::Upcoming)),
            ("/v4/sports/boxing_boxing/odds", Route::V4(V4Route::Odds { sport: sport("boxing_boxing") })),
            ("/v4/sports/boxing_boxing/scores/", Route::V4(V4Route::Scores { sport: sport("boxing_boxing") })),
            ("/v4/sports/x/events", Route::V4(V4Route::Events { sport: sport("x") })),
            ("/v4/sports/x/participants", Route::V4(V4Route::Participants { sport: sport("x") })),
            ("/v4/sports/x/events/a%2Fb/odds", Route::V4(V4Route::EventOdds { sport: sport("x"), id: "a/b".into() })),
            ("/v4/sports/x/odds-history", Route::V4(V4Route::PastOdds { sport: sport("x"), is_old_path: true })),
            ("/v4/historical/sports/x/odds/", Route::V4(V4Route::PastOdds { sport: sport("x"), is_old_path: false })),
            ("/v4/historical/sports/x/events", Route::V4(V4Route::PastEvents { sport: sport("x") })),
            (
                "/v4/historical/sports/x/events/a%2Fb/odds",
                Route::V4(V4Route::PastEventOdds { sport: sport("x"), id: "a/b".into() }),
            ),
            ("/v4/sports/x/events/e/markets/", Route::V4(V4Route::EventMarkets { sport: sport("x"), id: "e".into() })),
        ] {
            assert_eq!(Route::of(path), route, "{path}");
            assert!(Route::TEMPLATES.contains(&route.template()));
        }
    }

    #[test]
    fn what_is_nowhere_is_a_route_too() {
        for path in ["", "*", "///", "/v2/sports", "/V1/sports", "/v1x", "/docs//", "/healthz/x", "/account/rotate/x"] {
            assert_eq!(Route::of(path), NOWHERE, "{path}");
        }
        for path in [
            "/v1",
            "/v1/",
            "/v1//",
            "/v1/odds",
            "/v1/sports/mma",
            "/v1/sports/mma/odds//",
            "/v1/sports/mma/odds/x",
            "/v1/sports/mma/events/a/b",
        ] {
            assert_eq!(Route::of(path), NOWHERE_V1, "{path}");
        }
        for path in [
            "/v4",
            "/v%34/",
            "/v4/sports/mma",
            "/v4/sports/mma/events/e",
            "/v4/sports/mma/events/e/odds/x",
            "/v4/historical/sports/mma/scores",
            "/v4/historical/sports/mma",
            "/v4/a/b/c/d/e/f",
        ] {
            assert_eq!(Route::of(path), NOWHERE_V4, "{path}");
        }
    }

    #[test]
    fn a_path_that_cannot_be_decoded_is_malformed_wherever_it_stands() {
        for (path, version) in [
            ("/%zz", None),
            ("/v%FF/sports", None),
            ("/docs/%", None),
            ("/v1/sports/%ff/odds", Some(Version::V1)),
            ("/v1/sports/mma/events/%", Some(Version::V1)),
            ("/v1/a/b/c/d/e/f/g/%2", Some(Version::V1)),
            ("/v4/sports/%ff/odds", Some(Version::V4)),
        ] {
            assert_eq!(Route::of(path), Route::Malformed { version }, "{path}");
        }
    }

    proptest! {
        #[test]
        fn no_path_panics(path in "\\PC{0,60}", near in "/v[14](/[a-z%0-9]{0,6}){0,7}") {
            let _ = (Route::of(&path), Version::of(&path));
            let _ = Route::of(&near);
        }
    }
}
