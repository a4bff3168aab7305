//! Which endpoint a path names.
//!
//! A path that names nothing is a route too: it has an answer of its own, and whether that answer needs a key is
//! decided by where the path stands.

use std::borrow::Cow;

use super::percent::{self, Plus};

/// A path, understood. Borrowed from the request where nothing is encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Route<'p> {
    Root,
    Docs,
    DocsStyle,
    OpenApi,
    Healthz,
    Sports,
    Books,
    Status,
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
    /// Nothing that the service has.
    Unknown {
        /// Below a version's prefix, where even "there is no such thing" is told only to those who hold a key.
        versioned: bool,
    },
}

/// The prefixes below which everything needs a key. The second one is taken and not yet served.
const VERSIONS: [&str; 2] = ["v1", "v4"];

/// `v1`, `sports`, the sport, `events`, the event.
const SEGMENTS_MAX: usize = 5;

impl<'p> Route<'p> {
    /// Understands a path, with or without one trailing slash.
    pub(super) fn of(path: &'p str) -> Self {
        let Some(inner) = path.strip_prefix('/') else { return Route::Unknown { versioned: false } };
        let inner = inner.strip_suffix('/').unwrap_or(inner);
        let mut segments: [Cow<'p, str>; SEGMENTS_MAX] = Default::default();
        let mut count = 0;
        let mut is_readable = true;
        for raw in inner.split('/') {
            if let (Some(segment), Some(slot)) = (percent::decode(raw, Plus::Itself), segments.get_mut(count)) {
                *slot = segment;
                count += 1;
            } else {
                is_readable = false;
                break;
            }
        }
        let unknown = Route::Unknown { versioned: VERSIONS.contains(&&*segments[0]) };
        if is_readable { Self::of_segments(segments, count).unwrap_or(unknown) } else { unknown }
    }

    fn of_segments(segments: [Cow<'p, str>; SEGMENTS_MAX], count: usize) -> Option<Self> {
        let [first, second, sport, list, id] = segments;
        Some(match (count, &*first, &*second, &*list) {
            (1, "", ..) => Route::Root,
            (1, "docs", ..) => Route::Docs,
            (2, "docs", "style.css", _) => Route::DocsStyle,
            (1, "openapi.json", ..) => Route::OpenApi,
            (1, "healthz", ..) => Route::Healthz,
            (2, "v1", "sports", _) => Route::Sports,
            (2, "v1", "books", _) => Route::Books,
            (2, "v1", "status", _) => Route::Status,
            (4, "v1", "sports", "odds") => Route::Odds { sport },
            (4, "v1", "sports", "scores") => Route::Scores { sport },
            (4, "v1", "sports", "events") => Route::Events { sport },
            (5, "v1", "sports", "events") => Route::Event { sport, id },
            _ => return None,
        })
    }

    pub(super) fn needs_key(&self) -> bool {
        match self {
            Route::Root | Route::Docs | Route::DocsStyle | Route::OpenApi | Route::Healthz => false,
            Route::Unknown { versioned } => *versioned,
            _ => true,
        }
    }

    /// The path with its variables named: what a log or a counter may hold without growing with the data.
    pub(super) const fn template(&self) -> &'static str {
        match self {
            Route::Root => "/",
            Route::Docs => "/docs",
            Route::DocsStyle => "/docs/style.css",
            Route::OpenApi => "/openapi.json",
            Route::Healthz => "/healthz",
            Route::Sports => "/v1/sports",
            Route::Books => "/v1/books",
            Route::Status => "/v1/status",
            Route::Odds { .. } => "/v1/sports/{sport_key}/odds",
            Route::Scores { .. } => "/v1/sports/{sport_key}/scores",
            Route::Events { .. } => "/v1/sports/{sport_key}/events",
            Route::Event { .. } => "/v1/sports/{sport_key}/events/{event_id}",
            Route::Unknown { .. } => UNKNOWN_TEMPLATE,
        }
    }

    /// The template of every route that exists, for the documentation and for counters.
    pub(super) const TEMPLATES: [&'static str; 12] = [
        "/",
        "/docs",
        "/docs/style.css",
        "/openapi.json",
        "/healthz",
        "/v1/sports",
        "/v1/books",
        "/v1/status",
        "/v1/sports/{sport_key}/odds",
        "/v1/sports/{sport_key}/scores",
        "/v1/sports/{sport_key}/events",
        "/v1/sports/{sport_key}/events/{event_id}",
    ];
}

pub(super) const UNKNOWN_TEMPLATE: &str = "unknown";

/// What requests are counted under: every template, and last what is no route.
pub(super) static COUNTED: [&str; Route::TEMPLATES.len() + 1] = {
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

    const NOWHERE: Route<'static> = Route::Unknown { versioned: false };
    const NOWHERE_VERSIONED: Route<'static> = Route::Unknown { versioned: true };

    #[test]
    fn paths_are_understood() {
        let sport = |key: &'static str| Cow::Borrowed(key);
        for (path, route) in [
            ("/", Route::Root),
            ("/docs", Route::Docs),
            ("/docs/", Route::Docs),
            ("/docs/style.css", Route::DocsStyle),
            ("/openapi.json", Route::OpenApi),
            ("/healthz", Route::Healthz),
            ("/v1/sports", Route::Sports),
            ("/v1/sports/", Route::Sports),
            ("/v1/books", Route::Books),
            ("/v1/status", Route::Status),
            ("/v1/sports/mma/odds", Route::Odds { sport: sport("mma") }),
            ("/v1/sports/mma/odds/", Route::Odds { sport: sport("mma") }),
            ("/v1/sports/m%6Da/scores", Route::Scores { sport: sport("mma") }),
            ("/v1/sports/curling/events", Route::Events { sport: sport("curling") }),
            ("/v1/sports/mma/events/a%2Fb", Route::Event { sport: sport("mma"), id: "a/b".into() }),
            ("/v1/sports/mma/events/r%C3%A9/", Route::Event { sport: sport("mma"), id: "ré".into() }),
            ("/v1/sports/mma/events/a+b", Route::Event { sport: sport("mma"), id: "a+b".into() }),
        ] {
            assert_eq!(Route::of(path), route, "{path}");
            assert!(Route::TEMPLATES.contains(&route.template()));
        }
    }

    #[test]
    fn what_is_nowhere_is_a_route_too() {
        for path in
            ["", "*", "///", "/v2/sports", "/V1/sports", "/v1x", "/docs//", "/healthz/x", "/%zz", "/v%FF/sports"]
        {
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
            "/v1/sports/%ff/odds",
            "/v1/sports/mma/events/%",
            "/v4",
            "/v4/sports/mma/odds",
            "/v4/a/b/c/d/e/f",
        ] {
            assert_eq!(Route::of(path), NOWHERE_VERSIONED, "{path}");
        }
    }

    proptest! {
        #[test]
        fn no_path_panics(path in "\\PC{0,60}", near in "/v1(/[a-z%0-9]{0,6}){0,6}") {
            let _ = Route::of(&path);
            let _ = Route::of(&near);
        }
    }
}
