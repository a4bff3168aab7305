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
        for mut simulation in self.simulations() {
            simulation.fill().await?;
            tasks.spawn(simulation.run());
        }
        Ok(pollers)
    }

    fn simulations(&self) -> Vec<Simulation> {
        let seed = self.config.borrow().simulator_seed;
        let (sandbox, live) = ((World::Sandbox, seed), (World::Live, seed.wrapping_add(1)));
        let worlds = match self.simulated {
            SimulatedWorlds::Sandbox => vec![sandbox],
            SimulatedWorlds::Both => vec![sandbox, live],
            SimulatedWorlds::Neither => Vec::new(),
        };
        let simulation = |(world, seed)| {
            let simulator = Simulator::new(seed, &self.catalogue);
            Simulation::new(world, simulator, self.context.clone())
        };
        worlds.into_iter().map(simulation).collect()
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
                std::future::pending::<()>().await;
            }
            Err(error) => {
                tracing::warn!(%error, "feeds and simulated worlds could not be started; trying again");
                tokio::time::sleep(TURN_CHECK * 20).await;
            }
        }
    }
}
