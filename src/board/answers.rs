//! The answers that a board gives: rendered on the first request, then served from the snapshot that they belong to.

use std::sync::Arc;

use super::body::Body;
use super::derived::{DerivedQuery, RankedQuery, RankedRows};
use super::node::EventNode;
use super::query::{EventsQuery, OddsQuery, ScoresQuery};
use super::render;
use super::snapshot::{Published, SportBoard, WorldBoard};
use super::v4::{CompetitionView, ListQuery, Listed, Priced, PricedQuery, Shown, UpcomingQuery};
use crate::model::{Catalogue, Competitions, EventId, MarketFamilies, Sport};

impl SportBoard {
    pub fn odds(&self, sport_key: &str, query: &OddsQuery) -> Arc<Body> {
        let board = &**self.published();
        let render = if query.by_bout { render::bouts } else { render::odds };
        board.bodies.get_or_render(query, || render(board, sport_key, query))
    }

    pub fn events(&self, sport_key: &str, query: &EventsQuery) -> Arc<Body> {
        self.listing.event_bodies.get_or_render(query, || render::events(self, sport_key, query))
    }

    pub fn scores(&self, sport_key: &str, query: &ScoresQuery) -> Arc<Body> {
        self.listing.score_bodies.get_or_render(query, || render::scores(self, sport_key, query))
    }

    /// One event; `None` if it is unknown or removed.
    pub fn event(&self, sport_key: &str, id: &str) -> Option<Arc<Body>> {
        let node = self.current().get(id)?;
        Some(self.listing.one_event_bodies.get_or_render(&node.event().id, || render::event(self, node, sport_key)))
    }
}

/// Derived prices. They take longer than a thread that answers requests may: it looks for a kept answer only.
impl Published {
    pub fn kept_derived(&self, query: &DerivedQuery) -> Option<Arc<Body>> {
        self.derived_answers().bodies.get(query)
    }

    pub fn derived(&self, sport_key: &str, families: &MarketFamilies, query: &DerivedQuery) -> Arc<Body> {
        let answers = self.derived_answers();
        answers.bodies.get_or_render(query, || {
            let ranked = query.what.is_ranked().then(|| {
                let of = RankedQuery::of(query);
                answers.ranked.get_or_render(&of, || RankedRows::find(self, families, &of))
            });
            render::derived(self, sport_key, families, query, ranked.as_deref())
        })
    }
}

/// Answers in the shape of The Odds API.
impl SportBoard {
    /// Prices under a key; `None` for one event that is unknown, over or of another key.
    pub fn v4_priced(&self, sport: &Sport, seen: &Competitions, query: &PricedQuery) -> Option<Arc<Body>> {
        let (published, kind) = (&**self.published(), sport.kind);
        let answers = published.v4();
        let competition = answers.competitions.get(&query.key);
        let (id, shown) = match &query.what {
            Priced::Events { prices, scope } => {
                let render = || render::v4::odds(published, competition, kind, prices, scope);
                return Some(answers.bodies.get_or_render(query, render));
            }
            Priced::OneEvent { id, shown } => (id, shown),
        };
        let render = |competition: &CompetitionView, node: &EventNode, is_published| match shown {
            Shown::Odds(prices) => render::v4::event_odds(published, competition, node, kind, prices, is_published),
            Shown::Markets { books, dates } => {
                render::v4::event_markets(published, competition, node, kind, (books, *dates), is_published)
            }
        };
        if let Some((competition, node)) = open_event(competition, id) {
            return Some(answers.bodies.get_or_render(query, || render(competition, node, true)));
        }
        // The event arrived after the last publication: it is known, and its prices follow with the next.
        let (competition, node) = open_event(self.v4(seen).competitions.get(&query.key), id)?;
        Some(Arc::new(render(competition, node, false)))
    }

    /// Events and scores under a key.
    pub fn v4_listed(&self, sport: &Sport, seen: &Competitions, query: &ListQuery) -> Arc<Body> {
        let answers = self.v4(seen);
        let competition = answers.competitions.get(&query.key);
        answers.bodies.get_or_render(query, || match &query.what {
            Listed::Events { dates, scope, rotation_numbers } => {
                render::v4::events(competition, *dates, scope, *rotation_numbers)
            }
            Listed::Scores { dates, scope, ended_since } => {
                render::v4::scores(competition, *dates, scope, *ended_since)
            }
            Listed::Participants => {
                let published = self.published().v4().competitions.get(&query.key);
                render::v4::participants(competition, published, sport)
            }
        })
    }
}

/// An event of a competition that is not over.
fn open_event<'a>(
    competition: Option<&'a CompetitionView>,
    id: &EventId,
) -> Option<(&'a CompetitionView, &'a EventNode)> {
    let node = competition?.index.get(id.as_str()).filter(|node| !node.event().status.is_over())?;
    Some((competition?, node))
}

impl WorldBoard {
    /// Events live now and next in the sports of the query.
    pub fn v4_upcoming(&self, catalogue: &Catalogue, query: &UpcomingQuery) -> Arc<Body> {
        self.upcoming.get_or_render(query, || render::v4::upcoming(self, catalogue, query))
    }
}
