//! Runs a simulated world: fills it at the start, then hands the writer each second what changed.

use std::collections::HashSet;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::Simulator;
use crate::board::EventNode;
use crate::ingest::delivery::{Delivery, DeliveryBatch};
use crate::ingest::options::IngestOptions;
use crate::ingest::{Feed, IngestContext};
use crate::model::{News, SportId, Timestamp, World};
use crate::writer::WriteError;

/// As many messages as go into one commit.
const BATCH: usize = 2_000;
const STEP: Duration = Duration::from_secs(1);
/// A clock that is set back by no more than this is waited for.
const SET_BACK_WAITED_S: u32 = 10;

/// A simulator that feeds a world.
#[derive(Debug)]
pub struct Simulation {
    world: World,
    simulator: Simulator,
    context: IngestContext,
    /// Up to when the world is written; `None` when all of it has to be written again.
    written: Option<Timestamp>,
}

impl Simulation {
    pub fn new(world: World, simulator: Simulator, context: IngestContext) -> Self {
        Simulation { world, simulator, context, written: None }
    }

    /// Brings the whole world up to date, whatever was stored and however long ago: removes what is dated in the future,
    /// then writes what happened since the last read, then everything as it is now, then ends what another seed may have
    /// left.
    pub async fn fill(&mut self) -> Result<(), WriteError> {
        let now = self.context.clock.now().timestamp();
        let opening = self.simulator.opening(now);
        let not_yet = self.not_yet(now);
        let left_behind = self.left_behind(&opening, now);
        let missed = self.last_read().map(|written| self.simulator.between(written, now)).unwrap_or_default();
        self.deliver(not_yet.into_iter().chain(missed).chain(opening).chain(left_behind).collect()).await?;
        self.context.writer.publish_now(self.world).await?;
        self.written = Some(now);
        Ok(())
    }

    /// Events with something dated after `now`: the clock was set back since, and anything written now would be late.
    fn not_yet(&self, now: Timestamp) -> Vec<News> {
        let world = self.context.boards.load_full(self.world);
        let is_ahead = |node: &EventNode| {
            let scored = node.score().map(|score| score.updated);
            let priced = node.records().iter().map(|record| record.last_update);
            let closed = node.closed().iter().map(|mark| mark.at);
            scored.into_iter().chain(priced).chain(closed).any(|at| at > now) || node.event().changed > now
        };
        let mut ahead = Vec::new();
        for sport in self.context.boards.catalogue().sport_ids() {
            let nodes = world.sport(sport).current().iter().filter(|node| is_ahead(node));
            ahead.extend(nodes.map(|node| News::Remove { sport, event: node.event().id.clone() }));
        }
        ahead
    }

    /// Up to when the stored world is complete: each step ends with its reads.
    fn last_read(&self) -> Option<Timestamp> {
        let world = self.context.boards.load_full(self.world);
        world.sports().iter().flat_map(|sport| sport.sources().iter()).map(|state| state.source.last_read).max()
    }

    /// Events that began while no simulation ran and that the simulator has long finished with: they would never
    /// end by themselves.
    fn left_behind(&self, opening: &[News], now: Timestamp) -> Vec<News> {
        let announced: HashSet<(SportId, &str)> = opening.iter().filter_map(as_event).collect();
        let world = self.context.boards.load_full(self.world);
        let mut gone = Vec::new();
        for sport in self.context.boards.catalogue().sport_ids() {
            let events = world.sport(sport).current().iter().map(|node| node.event());
            let begun = events.filter(|event| !event.status.is_over() && event.commence <= now);
            let unknown = begun.filter(|event| !announced.contains(&(sport, event.id.as_str())));
            gone.extend(unknown.map(|event| News::Remove { sport, event: event.id.clone() }));
        }
        gone
    }

    /// Runs until it is dropped. After a failed write the whole world is written again: a part may be missing.
    pub async fn run(mut self) {
        // Half a second off the ticks of the refresh, so that a publication has the whole of the second before it.
        let into_second_ms = self.context.clock.now().unix_ms.rem_euclid(1_000).unsigned_abs();
        let first = Instant::now() + Duration::from_millis((1_500 - into_second_ms) % 1_000);
        let mut steps = interval_at(first, STEP);
        steps.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            steps.tick().await;
            match self.step(self.context.clock.now().timestamp()).await {
                Ok(()) => {}
                Err(WriteError::Stopped | WriteError::Died) => return,
                Err(_) => self.written = None,
            }
        }
    }

    async fn step(&mut self, now: Timestamp) -> Result<(), WriteError> {
        let news = match self.written {
            Some(written) if written.seconds_since(now) > SET_BACK_WAITED_S => return self.fill().await,
            Some(written) if written >= now => return Ok(()),
            Some(written) => self.simulator.between(written, now),
            None => self.simulator.opening(now),
        };
        self.deliver(news).await?;
        self.written = Some(now);
        Ok(())
    }

    async fn deliver(&self, news: Vec<News>) -> Result<(), WriteError> {
        let options = IngestOptions::lenient(self.world);
        let mut delivery = Delivery::new(options, Feed::simulator(self.world), &self.context);
        for batch in DeliveryBatch::from(news).chunks(BATCH) {
            if let Err(error) = delivery.write(batch, false).await {
                delivery.fail(&error.clone().into());
                return Err(error);
            }
        }
        for (reason, count) in delivery.rejected_by_writer() {
            tracing::debug!(world = %self.world, %reason, count, "the writer rejected simulated news");
        }
        Ok(())
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
