//! Publication: events and scores with every commit, prices on the ticks of the refresh.
//!
//! Ticks are aligned to the wall clock. Between two of them a sport's published prices do not change, with two exceptions:
//! - An event that is removed, or moved to another competition, leaves at once: the stream reports it at once.
//! - A sport that published nothing during the last refresh does not wait for the tick. Its first prices are published
//!   within a second.
//!
//! A feed's round of polls, one for each competition, counts as one stream: it is published at its end, or one second
//! after its first change. A sport that has never published prices waits for the end of a longer round, until the tick
//! at most: else its first competition would be published alone and the others only on the tick.

use std::sync::Arc;
use std::time::Instant;

use tracing::Level;

use super::batch::{SportUpdate, WorldUpdate};
use super::log::{due_time, entry};
use super::state::{Unpublished, published, published_sources, source_states};
use super::{WriteError, Writer, poll};
use crate::board::SportBoard;
use crate::clock::Moment;
use crate::log::{LineKind, limited};
use crate::model::{SportId, Timestamp, World};
use crate::store::{Change, SportChanges, StoreError};

/// How long the changes of a stream gather before a quiet sport publishes them.
const AT_ONCE_AFTER_MS: i64 = 1000;

/// A sport that is to be published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueSport {
    pub world: World,
    pub sport: SportId,
    /// Whether its prices may have changed, and not only its events.
    pub has_prices: bool,
    /// Whether it counts as another publication even if nothing has changed.
    pub is_forced: bool,
}

/// A publication: whoever decides that one is due says of which sports, and in which second their prices become visible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publication {
    pub sports: Vec<DueSport>,
    pub at: Timestamp,
    /// Whether it is one of the ticks, which are also marked for whoever follows the changes.
    pub is_tick: bool,
}

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
        // The next tick is another one, although it may have no other price.
        sport.has_moved_prices |= update.relisted;
        let mut shown = Arc::clone(sport.board.published());
        let at_once = [update.removed, update.moved].concat();
        if !at_once.is_empty() {
            let has_prices = |id: &str| shown.index().get(id).is_some_and(|node| !node.records().is_empty());
            if at_once.iter().any(|edit| has_prices(edit.id.as_str())) {
                sport.has_moved_prices = true;
                sport.unpublished.get_or_insert(Unpublished { since_ms: now_ms });
            }
            shown = Arc::new(shown.with_index(shown.index().apply(&at_once)));
        }
        sport.current = index;
        sport.board = SportBoard::new(sport.current.clone(), shown, sources);
    }

    /// What is due: everything unpublished when a tick has passed, a quiet sport's changes after a second, and what could
    /// not be published at once.
    pub(super) fn plan_publication(&mut self, now_ms: i64) -> Option<Publication> {
        let tick = now_ms.div_euclid(self.options.refresh_ms);
        // Any other tick than the last one seen counts: a clock that was set back must not silence the board.
        let ticked = tick != std::mem::replace(&mut self.last_tick, tick);
        let mut due = Vec::new();
        for world in World::ALL {
            for sport in self.catalogue.sport_ids() {
                let has_news = if ticked {
                    self.has_news(world, sport, now_ms)
                } else {
                    self.is_quiet_sport_due(world, sport, now_ms)
                };
                if has_news {
                    due.push(self.due(world, sport));
                } else if ticked && self.is_listed_anew(world, sport) {
                    due.push(DueSport { has_prices: false, ..self.due(world, sport) });
                }
            }
        }
        let at = if ticked { Timestamp::from_unix_ms(tick * self.options.refresh_ms) } else { due_time(now_ms) };
        (ticked || !due.is_empty()).then_some(Publication { sports: due, at, is_tick: ticked })
    }

    /// All sports, tick or not.
    pub fn plan_full_publication(&self, now: Moment) -> Publication {
        let sports = World::ALL
            .into_iter()
            .flat_map(|world| self.catalogue.sport_ids().map(move |sport| self.due(world, sport)))
            .collect();
        Publication { sports, at: due_time(now.unix_ms), is_tick: false }
    }

    fn due(&self, world: World, sport: SportId) -> DueSport {
        let is_forced = self.worlds[world.index()].sports[sport.index()].has_moved_prices;
        DueSport { world, sport, has_prices: true, is_forced }
    }

    /// Publishes sports: what that changes is in the log before anyone sees it. If it cannot be logged, the prices that
    /// readers see stay as they are, except that sources go stale in time.
    pub fn publish(&mut self, publication: &Publication) -> Result<(), WriteError> {
        let Publication { sports, at, is_tick } = publication;
        let now_ms = self.clock.now().unix_ms;
        let published = self.publish_unnoticed(sports, *at, now_ms);
        if *is_tick {
            // Also on a node that did not plan it: it must not publish the same tick again when it plans the next ones. Rounded up, as
            // `at` has whole seconds.
            let refresh_ms = self.options.refresh_ms;
            self.last_tick = (at.unix_ms() + refresh_ms - 1).div_euclid(refresh_ms);
            // The beat wakes everybody: who follows gets the changes and the beat at once, and not each with a write of
            // its own.
            self.beat(Timestamp::from_unix_ms(now_ms));
        }
        for world in published? {
            self.boards.feed(world).wake_all();
        }
        Ok(())
    }

    /// Publishes at the end of an ingest whatever does not have to wait for the tick.
    pub(super) fn publish_quiet(&mut self, world: World, now_ms: i64) {
        let sports = self.catalogue.sport_ids();
        let due: Vec<DueSport> = sports.filter_map(|sport| self.due_if_quiet(world, sport, now_ms)).collect();
        self.publish_at_once(due, now_ms);
    }

    fn due_if_quiet(&self, world: World, sport: SportId, now_ms: i64) -> Option<DueSport> {
        let state = &self.worlds[world.index()].sports[sport.index()];
        let is_due = state.unpublished.is_some() && self.is_quiet(world, sport, now_ms);
        is_due.then(|| self.due(world, sport))
    }

    /// Publishes sports with the operation that changed them. In a cluster a publication is an operation of its own, which is
    /// planned next.
    fn publish_at_once(&mut self, sports: Vec<DueSport>, now_ms: i64) {
        if self.is_member() {
            for DueSport { world, sport, .. } in sports {
                Arc::make_mut(&mut self.worlds[world.index()]).sports[sport.index()].is_due = true;
            }
        } else {
            // A failure is logged, and the next tick tries again.
            let _ = self.publish(&Publication { sports, at: due_time(now_ms), is_tick: false });
        }
    }

    /// Records that a feed goes on to poll more of a sport, or that its round has ended.
    pub(super) fn set_in_round(&mut self, world: World, id: SportId, has_more: bool, now_ms: i64) {
        Arc::make_mut(&mut self.worlds[world.index()]).sports[id.index()].is_in_round = has_more;
        if !has_more {
            let due: Vec<DueSport> = self.due_if_quiet(world, id, now_ms).into_iter().collect();
            self.publish_at_once(due, now_ms);
        }
    }

    /// Publishes whatever is unpublished, tick or not: for a start, before anyone has seen the board.
    pub fn publish_now(&mut self, world: World) {
        let plan = self.plan_unpublished(world);
        self.publish_at_once(plan.sports, self.clock.now().unix_ms);
    }

    pub(super) fn plan_unpublished(&self, world: World) -> Publication {
        let is_unpublished = |sport: &SportId| self.worlds[world.index()].sports[sport.index()].unpublished.is_some();
        let sports = self.catalogue.sport_ids().filter(is_unpublished).map(|sport| self.due(world, sport)).collect();
        Publication { sports, at: due_time(self.clock.now().unix_ms), is_tick: false }
    }

    /// Without waking anybody who waits for changes. Returns the worlds that have some.
    fn publish_unnoticed(&mut self, due: &[DueSport], at: Timestamp, now_ms: i64) -> Result<Vec<World>, WriteError> {
        if due.is_empty() {
            return Ok(Vec::new());
        }
        let logged = self.log_publication(due, at, now_ms);
        if let Err(error) = &logged {
            limited!(LineKind::Commit, Level::WARN, %error, "failed to log a publication; readers still get the last prices");
        }
        for DueSport { world, sport, has_prices, .. } in due.iter().copied() {
            if logged.is_err() {
                self.publish_sources(world, sport, now_ms);
            } else if has_prices {
                self.publish_sport(world, sport, now_ms);
            } else {
                self.publish_events(world, sport, now_ms);
            }
        }
        let worlds = World::ALL.into_iter().filter(|world| due.iter().any(|due| due.world == *world));
        let changed = worlds.filter(|world| self.show_unnoticed(*world)).collect();
        logged.map(|()| changed)
    }

    /// Commits one entry for each world.
    fn log_publication(&mut self, due: &[DueSport], at: Timestamp, now_ms: i64) -> Result<(), WriteError> {
        self.catch_up()?;
        let now = Timestamp::from_unix_ms(now_ms);
        let changes = World::ALL.into_iter().filter_map(|world| {
            let sports = due.iter().filter(|due| due.world == world).filter_map(|due| {
                let tick = Some(self.tick_changes(world, due.sport, due.is_forced, (at, now_ms))?);
                Some(SportChanges { sport: due.sport, events: Vec::new(), tick })
            });
            entry(world, now, sports.collect())
        });
        let changes: Vec<Change> = changes.collect();
        // While the file takes no writes, recovery tries it again; a publication need not.
        if self.is_unwritable() && !changes.is_empty() {
            return Err(StoreError::NeedsReopen.into());
        }
        self.commit(&changes)?;
        for due in due {
            self.note_logged(due.world, due.sport, due.is_forced, now_ms);
        }
        Ok(())
    }

    /// Whether prices changed, or a source was read or went stale, since the last publication.
    fn has_news(&self, world: World, id: SportId, now_ms: i64) -> bool {
        let sport = &self.worlds[world.index()].sports[id.index()];
        let now = Timestamp::from_unix_ms(now_ms);
        sport.unpublished.is_some()
            || *published_sources(sport.board.sources(), now) != *sport.board.published().sources()
    }

    /// Whether events changed since the last publication: one that lists them without prices waits for the tick too.
    fn is_listed_anew(&self, world: World, id: SportId) -> bool {
        let sport = &self.worlds[world.index()].sports[id.index()];
        !sport.current.is(sport.board.published().index())
    }

    /// Publishes the prices that readers see once more, as of sources now.
    fn publish_sources(&mut self, world: World, id: SportId, now_ms: i64) {
        let state = Arc::make_mut(&mut self.worlds[world.index()]);
        let sport = &mut state.sports[id.index()];
        let sources = sport.board.sources();
        let publication = published(sport.board.published().index().clone(), &state.register, sources, now_ms);
        sport.board = SportBoard::new(sport.current.clone(), Arc::new(publication), Arc::clone(sources));
    }

    /// Publishes events whose prices did not change. Prices that follow them still find the sport quiet.
    pub(super) fn publish_events(&mut self, world: World, id: SportId, now_ms: i64) {
        let published_ms = self.worlds[world.index()].sports[id.index()].published_ms;
        self.publish_sport(world, id, now_ms);
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
        sport.is_due
            || !is_first_round
                && sport.unpublished.is_some_and(|news| waited(news.since_ms))
                && self.is_quiet(world, id, now_ms)
    }

    fn publish_sport(&mut self, world: World, id: SportId, now_ms: i64) {
        let began = Instant::now();
        let state = Arc::make_mut(&mut self.worlds[world.index()]);
        let sport = &mut state.sports[id.index()];
        let default_s = self.options.stale_after_s;
        let stale_after_s = |book| poll::stale_after_s(&state.polls, id, book, default_s);
        let sources = source_states(&sport.sources, state.register.bookmakers(), stale_after_s);
        let publication = published(sport.current.clone(), &state.register, &sources, now_ms);
        sport.board = SportBoard::new(sport.current.clone(), Arc::new(publication), sources);
        sport.unpublished = None;
        sport.is_due = false;
        sport.published_ms = Some(now_ms);
        self.writing.publications.record(began.elapsed());
    }

    /// Publishes the world as the boards of its sports have it.
    pub(super) fn show(&mut self, world: World) {
        if self.show_unnoticed(world) {
            self.boards.feed(world).wake_all();
        }
    }

    /// The same, without waking anybody who waits for changes. Whether there are some.
    fn show_unnoticed(&mut self, world: World) -> bool {
        let has_changes = !self.unannounced[world.index()].is_empty();
        self.announce(world);
        self.boards.publish(world, self.worlds[world.index()].board().at(self.position(world)));
        has_changes
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
