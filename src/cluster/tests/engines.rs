//! The engines that tests run on: each test of what an engine decides runs on all of them.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::Clock;
use crate::cluster::engine::memory::MemoryEngine;
use crate::cluster::engine::{Engine, Heartbeat, LogIdentity};
use crate::cluster::lease::{NodeDetails, SharedSettings, WhenCutOff};
use crate::cluster::member::MemberOptions;
use crate::model::EntryId;

pub(super) const LEASE: Duration = Duration::from_secs(10);
pub(super) const LOG: LogIdentity = LogIdentity { cluster: 7, epoch: 1 };

/// Runs tests on an engine in memory, and on a real server if there is one.
macro_rules! on_every_engine {
    ($($name:ident)*) => {
        mod on_memory {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let engine = $crate::cluster::tests::engines::memory().await;
                super::$name(engine).await;
            })*
        }

        #[cfg(feature = "cluster")]
        mod on_redis {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let test = concat!(module_path!(), "::", stringify!($name));
                let Some(server) = $crate::cluster::tests::redis::RedisServer::start(test) else { return };
                let engine = server.created().await;
                super::$name(engine).await;
            })*
        }
    };
}
pub(super) use on_every_engine;

pub(super) async fn memory() -> Arc<MemoryEngine> {
    let engine = Arc::new(MemoryEngine::new(Clock::system()));
    engine.create(LOG).await.unwrap();
    engine
}

/// A report of a node that has applied so much.
pub(super) fn beat(node: &str, applied: EntryId, lease_ms: u64) -> Heartbeat<'_> {
    Heartbeat { node, file: 1, applied, details: "{}", settings: "", lease: Duration::from_millis(lease_ms) }
}

/// A node of a name with the usual lease.
pub(super) fn member_options(name: &str) -> MemberOptions {
    let (when_cut_off, version) = (WhenCutOff::Refuse, "test".to_owned());
    let details = NodeDetails { version, address: None, when_cut_off, started: 0, settings: SharedSettings::new() };
    MemberOptions { name: name.into(), lease: LEASE, details }
}
