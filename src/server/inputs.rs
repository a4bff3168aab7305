//! What only one node does at a time: the polled feeds and the simulated worlds. A server that is alone does it for as long as it
//! runs; a node of a cluster while it has its turn.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;

use super::{ServeError, SimulatedWorlds};
use crate::cluster::engine::Engine;
use crate::cluster::member::Member;
use crate::config::Config;
use crate::ingest::{IngestContext, PollSettings, Pollers, Simulation, Simulator};
use crate::model::{Catalogue, World};
use crate::supervise::{RESTART_AFTER, first_panic};
use crate::writer::WriterHandle;

/// How often it is checked whether the turn has ended.
const TURN_CHECK: Duration = Duration::from_millis(50);

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Inputs {
    pub(super) context: IngestContext,
    pub(super) settings: PollSettings,
    pub(super) config: watch::Receiver<Arc<Config>>,
    pub(super) catalogue: Arc<Catalogue>,
    pub(super) simulated: SimulatedWorlds,
}

impl Inputs {
    /// Fills the simulated worlds, which go on; returns the feeds, which wait.
    pub(super) async fn start(&self, tasks: &mut JoinSet<()>) -> Result<Pollers, ServeError> {
        let pollers = Pollers::open(self.context.clone(), self.settings, self.config.clone())?;
        let worlds: &[World] = match self.simulated {
            SimulatedWorlds::Sandbox => &[World::Sandbox],
            SimulatedWorlds::Both => &[World::Sandbox, World::Live],
            SimulatedWorlds::Neither => &[],
        };
        for world in worlds {
            let mut simulation = self.simulation(*world);
            simulation.fill().await?;
            tasks.spawn(self.clone().simulate(*world, simulation.run()));
        }
        Ok(pollers)
    }

    fn simulation(&self, world: World) -> Simulation {
        let seed = self.config.borrow().simulator_seed;
        let seed = if world == World::Live { seed.wrapping_add(1) } else { seed };
        Simulation::new(world, Simulator::new(seed, &self.catalogue), self.context.clone())
    }

    /// Goes on with a simulation. If it panics, another one takes its place, and feeds and the other world go on meanwhile.
    async fn simulate(self, world: World, first: impl Future<Output = ()> + Send + 'static) {
        let mut running = JoinSet::new();
        running.spawn(first);
        loop {
            first_panic(&mut running).await;
            tracing::error!(%world, "the simulation panicked; it is started again in a minute");
            tokio::time::sleep(RESTART_AFTER).await;
            running.spawn(self.simulation(world).run());
        }
    }

    /// The same in every turn of a node.
    pub(super) async fn take_turns<E: Engine>(self, member: Arc<Member<E>>) {
        let mut turns = member.duty().turns();
        loop {
            let Some(fence) = member.duty().fence() else {
                if turns.changed().await.is_err() {
                    return;
                }
                continue;
            };
            let ended = async {
                while member.duty().fence() == Some(fence) {
                    tokio::time::sleep(TURN_CHECK).await;
                }
            };
            tokio::select! {
                () = self.take_turn(member.writer_of_turn(fence)) => {}
                () = ended => {}
            }
        }
    }

    /// Goes on until it is dropped.
    async fn take_turn(&self, writer: WriterHandle) {
        let inputs = Inputs { context: IngestContext { writer, ..self.context.clone() }, ..self.clone() };
        // Dropped with this future.
        let mut tasks = JoinSet::new();
        match inputs.start(&mut tasks).await {
            Ok(pollers) => {
                tasks.spawn(pollers.run());
                first_panic(&mut tasks).await;
                tracing::error!("feeds and simulated worlds ended by a panic; starting them again in a minute");
                tokio::time::sleep(RESTART_AFTER).await;
            }
            Err(error) => {
                tracing::warn!(%error, "feeds and simulated worlds could not be started; trying again");
                tokio::time::sleep(TURN_CHECK * 20).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{SETTINGS, Settings};
    use crate::ingest::tests::Fixture;

    #[tokio::test(start_paused = true)]
    async fn simulation_that_panics_is_started_again() {
        let fixture = Fixture::new();
        let context = fixture.context.clone();
        let (_running, config) = watch::channel(Arc::new(Settings::defaults(SETTINGS).read().unwrap()));
        let (boards, catalogue) = (Arc::clone(&context.boards), Arc::clone(context.boards.catalogue()));
        let settings = PollSettings { stale_after_s: 120, random: || 0 };
        let inputs = Inputs { context, settings, config, catalogue, simulated: SimulatedWorlds::Sandbox };
        let first = async { panic!("a fault in the simulation") };
        let task = tokio::spawn(inputs.simulate(World::Sandbox, first));
        let has_events = || {
            let world = boards.load_full(World::Sandbox);
            world.sports().iter().any(|sport| sport.current().event_count() > 0)
        };
        while !has_events() {
            tokio::time::sleep(TURN_CHECK).await;
        }
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled(), "the other world goes on");
        fixture.end().await;
    }
}
