//! Publication: events and scores with every commit, prices on the ticks of the refresh.
//!
//! Ticks are aligned to the wall clock. Between two of them a sport's published prices do not change, with two
//! exceptions: a removed event leaves at once, and a sport that published nothing for a whole refresh does not wait
//! for the tick, so that the first prices of a quiet sport are seen within a second.
//!
//! A feed's round of polls, one for each competition, counts as one stream: it is published at its end, or one second
//! after its first change. A sport that has never published prices waits for the end of a longer round, until the tick
//! at most: else its first competition would be published alone and the others only on the tick.

use std::sync::Arc;
use std::time::Instant;

use super::Writer;
use super::batch::{SportUpdate, WorldUpdate};
use super::poll;
use super::state::{Unpublished, published, published_sources, source_states};
use crate::board::SportBoard;
use crate::model::{SportId, Timestamp, World};

/// How long the changes of a stream gather before a quiet sport publishes them.
const AT_ONCE_AFTER_MS: i64 = 1000;

impl Writer {
    /// Applies a committed update to the state, and publishes what readers may see of it now.
    pub(super) fn apply_update(&mut self, world: World, update: WorldUpdate, now_ms: i64) {
        if let Some(register) = update.register {
            let state = Arc::make_mut(&mut self.worlds[world.index()]);
            state.register = register;
            // A bookmaker's regions decide which prices a query sees, so they wait for the tick as prices do. A sport
            // without prices has nothing to publish: it must still count as quiet when its first prices come.
            for sport in state.sports.iter_mut().filter(|sport| update.rebooked && sport.has_prices()) {
                sport.unpublished.get_or_insert(Unpublished { since_ms: now_ms });
            }
        }
        let owners = &mut Arc::make_mut(&mut self.worlds[world.index()]).owners;
        for sport in &update.sports {
            for removed in &sport.removed {
                owners.forget(sport.sport, &removed.id);
            }
        }
        owners.take(update.additions);
        for sport in update.sports {
            self.apply_sport_update(world, sport, now_ms);
        }
        self.changes.push(world, Timestamp::from_unix_ms(now_ms), update.price_changes);
        self.show(world);
    }

    fn apply_sport_update(&mut self, world: World, update: SportUpdate, now_ms: i64) {
        let default_s = self.options.stale_after_s;
        let state = Arc::make_mut(&mut self.worlds[world.index()]);
        let stale_after_s = |book| poll::stale_after_s(&state.polls, update.sport, book, default_s);
        let sport = &mut state.sports[update.sport.index()];
        sport.sources = update.sources;
        let sources = source_states(&sport.sources, state.register.bookmakers(), stale_after_s);
        if update.repriced {
            sport.unpublished.get_or_insert(Unpublished { since_ms: now_ms });
        }
        let Some(index) = update.index else {
            sport.board = sport.board.with_sources(sources);
            return;
        };
        let mut shown = Arc::clone(sport.board.published());
        if !update.removed.is_empty() {
            shown = Arc::new(shown.without(shown.index().apply(&update.removed)));
        }
        sport.current = index;
        sport.board = SportBoard::new(sport.current.clone(), shown, sources);
    }

    /// Publishes what is due: everything unpublished when a tick has passed, a quiet sport's changes after a second.
    pub(super) fn publish_due(&mut self, now_ms: i64) {
        let tick = now_ms.div_euclid(self.options.refresh_ms);
        // Any other tick than the last one seen counts: a clock that was set back must not silence the board.
        let ticked = tick != std::mem::replace(&mut self.last_tick, tick);
        for world in World::ALL {
            let mut any = false;
            for id in self.catalogue.sport_ids() {
                let has_news =
                    if ticked { self.has_news(world, id, now_ms) } else { self.is_quiet_sport_due(world, id, now_ms) };
                if has_news {
                    self.publish(world, id, now_ms);
                } else if ticked && self.is_relisted(world, id) {
                    self.publish_events(world, id, now_ms);
                } else {
                    continue;
                }
                any = true;
            }
            if any {
                self.show(world);
            }
        }
    }

    /// Publishes at the end of an ingest whatever does not have to wait for the tick.
    pub(super) fn publish_quiet(&mut self, world: World, now_ms: i64) {
        for id in self.catalogue.sport_ids() {
            self.publish_if_quiet(world, id, now_ms);
        }
        self.show(world);
    }

    fn publish_if_quiet(&mut self, world: World, id: SportId, now_ms: i64) {
        let sport = &self.worlds[world.index()].sports[id.index()];
        if sport.unpublished.is_some() && self.is_quiet(world, id, now_ms) {
            self.publish(world, id, now_ms);
        }
    }

    /// Records that a feed goes on to poll more of a sport, or that its round has ended.
    pub(super) fn set_in_round(&mut self, world: World, id: SportId, has_more: bool, now_ms: i64) {
        Arc::make_mut(&mut self.worlds[world.index()]).sports[id.index()].is_in_round = has_more;
        if !has_more {
            self.publish_if_quiet(world, id, now_ms);
            self.show(world);
        }
    }

    /// Publishes whatever is unpublished, tick or not: for a start, before anyone has seen the board.
    pub fn publish_now(&mut self, world: World) {
        let now_ms = self.clock.now().unix_ms;
        for id in self.catalogue.sport_ids() {
            if self.worlds[world.index()].sports[id.index()].unpublished.is_some() {
                self.publish(world, id, now_ms);
            }
        }
        self.show(world);
    }

    /// Whether prices changed, or a source was read or went stale, since the last publication.
    fn has_news(&self, world: World, id: SportId, now_ms: i64) -> bool {
        let sport = &self.worlds[world.index()].sports[id.index()];
        let now = Timestamp::from_unix_ms(now_ms);
        sport.unpublished.is_some()
            || *published_sources(sport.board.sources(), now) != *sport.board.published().sources()
    }

    /// Whether events changed since the last publication: one that lists them without prices waits for the tick too.
    fn is_relisted(&self, world: World, id: SportId) -> bool {
        let sport = &self.worlds[world.index()].sports[id.index()];
        !sport.current.is(sport.board.published().index())
    }

    /// Publishes events whose prices did not change. Prices that follow them still find the sport quiet.
    fn publish_events(&mut self, world: World, id: SportId, now_ms: i64) {
        let published_ms = self.worlds[world.index()].sports[id.index()].published_ms;
        self.publish(world, id, now_ms);
        Arc::make_mut(&mut self.worlds[world.index()]).sports[id.index()].published_ms = published_ms;
    }

    /// Whether the sport published nothing for a whole refresh.
    fn is_quiet(&self, world: World, id: SportId, now_ms: i64) -> bool {
        let sport = &self.worlds[world.index()].sports[id.index()];
        // A publication in the future is one before the clock was set back: long enough ago.
        sport.published_ms.is_none_or(|at| now_ms < at || now_ms - at >= self.options.refresh_ms)
    }

    fn is_quiet_sport_due(&self, world: World, id: SportId, now_ms: i64) -> bool {
        let sport = &self.worlds[world.index()].sports[id.index()];
        let waited = |since_ms: i64| now_ms < since_ms || now_ms - since_ms >= AT_ONCE_AFTER_MS;
        let is_first_round = sport.is_in_round && sport.published_ms.is_none();
        !is_first_round
            && sport.unpublished.is_some_and(|news| waited(news.since_ms))
            && self.is_quiet(world, id, now_ms)
    }

    fn publish(&mut self, world: World, id: SportId, now_ms: i64) {
        let began = Instant::now();
        let state = Arc::make_mut(&mut self.worlds[world.index()]);
        let sport = &mut state.sports[id.index()];
        let default_s = self.options.stale_after_s;
        let stale_after_s = |book| poll::stale_after_s(&state.polls, id, book, default_s);
        let sources = source_states(&sport.sources, state.register.bookmakers(), stale_after_s);
        let publication = published(sport.current.clone(), &state.register, &sources, now_ms);
        sport.board = SportBoard::new(sport.current.clone(), Arc::new(publication), sources);
        sport.unpublished = None;
        sport.published_ms = Some(now_ms);
        self.writing.publications.record(began.elapsed());
    }

    /// Publishes the world as the boards of its sports have it.
    pub(super) fn show(&self, world: World) {
        self.boards.publish(world, self.worlds[world.index()].board());
    }

    /// How long until something is due, if no operation comes.
    pub(super) fn next_due_ms(&self, now_ms: i64) -> i64 {
        let next_tick = (now_ms.div_euclid(self.options.refresh_ms) + 1) * self.options.refresh_ms;
        let gathering =
            |sport: &super::state::SportState| sport.unpublished.map(|news| news.since_ms + AT_ONCE_AFTER_MS);
        let sports = self.worlds.iter().flat_map(|world| &world.sports);
        let soonest = sports.filter_map(gathering).filter(|due| *due > now_ms).min();
        soonest.map_or(next_tick, |due| due.min(next_tick)) - now_ms
    }
}
