//! Keeps a simulated world going: fills it at the start, then tells the writer each second what changed.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::board::{Boards, EventNode};
use crate::clock::Clock;
use crate::ingest::{FeedKind, Ledger, Simulator};
use crate::model::{News, SportId, Timestamp, World};
use crate::writer::{WriteError, WriterHandle};

/// As many messages as go into one commit.
const BATCH: usize = 2_000;
const STEP: Duration = Duration::from_secs(1);
/// A clock that is set back by no more than this is waited for.
const SET_BACK_WAITED_S: u32 = 10;

/// A simulator at work on a world.
#[derive(Debug)]
pub(super) struct Simulation {
    world: World,
    simulator: Simulator,
    writer: WriterHandle,
    boards: Arc<Boards>,
    ledger: Arc<Ledger>,
    clock: Clock,
    /// Up to when the world has been told; `None` when it must be told everything.
    told: Option<Timestamp>,
}

impl Simulation {
    pub(super) fn new(
        world: World,
        simulator: Simulator,
        writer: WriterHandle,
        boards: Arc<Boards>,
        ledger: Arc<Ledger>,
        clock: Clock,
    ) -> Self {
        Simulation { world, simulator, writer, boards, ledger, clock, told: None }
    }

    /// Brings the whole world up to date, whatever the file held and however long ago: away with what is not yet true,
    /// then what happened since the last read, then everything as it is now, then an end for what another seed may
    /// have left.
    pub(super) async fn fill(&mut self) -> Result<(), WriteError> {
        let now = self.clock.now().timestamp();
        let opening = self.simulator.opening(now);
        let not_yet = self.not_yet(now);
        let left_behind = self.left_behind(&opening, now);
        let missed = self.last_read().map(|told| self.simulator.between(told, now)).unwrap_or_default();
        self.tell(not_yet.into_iter().chain(missed).chain(opening).chain(left_behind).collect()).await?;
        self.writer.publish_now(self.world).await?;
        self.told = Some(now);
        Ok(())
    }

    /// Events of which something is known from after `now`: the clock was set back since, and nothing that is told now
    /// would be news to them.
    fn not_yet(&self, now: Timestamp) -> Vec<News> {
        let world = self.boards.load_full(self.world);
        let is_ahead = |node: &EventNode| {
            let scored = node.score().map(|score| score.updated);
            let priced = node.records().iter().map(|record| record.last_update);
            let closed = node.closed().iter().map(|mark| mark.at);
            scored.into_iter().chain(priced).chain(closed).any(|at| at > now) || node.event().changed > now
        };
        let mut ahead = Vec::new();
        for sport in self.boards.catalogue().sport_ids() {
            let nodes = world.sport(sport).current().iter().filter(|node| is_ahead(node));
            ahead.extend(nodes.map(|node| News::Remove { sport, event: node.event().id.clone() }));
        }
        ahead
    }

    /// Up to when the world in the file was told everything: each step ends with its reads.
    fn last_read(&self) -> Option<Timestamp> {
        let world = self.boards.load_full(self.world);
        world.sports().iter().flat_map(|sport| sport.sources().iter()).map(|state| state.source.last_read).max()
    }

    /// Events that began while nobody simulated them and that the simulator has long finished with: they would never
    /// end by themselves.
    fn left_behind(&self, opening: &[News], now: Timestamp) -> Vec<News> {
        let announced: HashSet<(SportId, &str)> = opening.iter().filter_map(as_event).collect();
        let world = self.boards.load_full(self.world);
        let mut gone = Vec::new();
        for sport in self.boards.catalogue().sport_ids() {
            let events = world.sport(sport).current().iter().map(|node| node.event());
            let begun = events.filter(|event| !event.status.is_over() && event.commence <= now);
            let unknown = begun.filter(|event| !announced.contains(&(sport, event.id.as_str())));
            gone.extend(unknown.map(|event| News::Remove { sport, event: event.id.clone() }));
        }
        gone
    }

    /// Goes on until it is dropped. After a failed write everything is told again: the world may have missed a part.
    pub(super) async fn run(mut self) {
        // Half a second off the ticks of the refresh, so that a publication holds the whole of the second before it.
        let into_second_ms = self.clock.now().unix_ms.rem_euclid(1_000).unsigned_abs();
        let first = Instant::now() + Duration::from_millis((1_500 - into_second_ms) % 1_000);
        let mut steps = interval_at(first, STEP);
        steps.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            steps.tick().await;
            match self.step(self.clock.now().timestamp()).await {
                Ok(()) => {}
                Err(WriteError::Stopped | WriteError::Died) => return,
                Err(WriteError::Store(_)) => self.told = None,
            }
        }
    }

    async fn step(&mut self, now: Timestamp) -> Result<(), WriteError> {
        let news = match self.told {
            Some(told) if told.seconds_since(now) > SET_BACK_WAITED_S => return self.fill().await,
            Some(told) if told >= now => return Ok(()),
            Some(told) => self.simulator.between(told, now),
            None => self.simulator.opening(now),
        };
        self.tell(news).await?;
        self.told = Some(now);
        Ok(())
    }

    async fn tell(&self, news: Vec<News>) -> Result<(), WriteError> {
        let mut news = news.into_iter().peekable();
        while news.peek().is_some() {
            let batch: Vec<News> = news.by_ref().take(BATCH).collect();
            let report = match self.writer.ingest(self.world, batch, false).await {
                Ok(report) => report,
                Err(error) => {
                    self.ledger.failed(self.feed(), self.clock.now().timestamp(), &error.to_string());
                    return Err(error);
                }
            };
            self.ledger.count(self.feed(), self.clock.now().timestamp(), report.accepted(), report.reasons());
            for (reason, count) in report.reasons() {
                tracing::debug!(world = %self.world, %reason, count, "the simulator's news was not taken");
            }
        }
        Ok(())
    }

    const fn feed(&self) -> (&'static str, FeedKind, World) {
        let name = match self.world {
            World::Sandbox => "simulator",
            World::Live => "simulator-live",
        };
        (name, FeedKind::Simulator, self.world)
    }
}

/// The sport and the id of an event that is announced.
fn as_event(news: &News) -> Option<(SportId, &str)> {
    match news {
        News::AsOf(_, news) => as_event(news),
        News::Event(event) => Some((event.sport, event.id.as_str())),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
