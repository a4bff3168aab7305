//! A real server for tests.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use redis::Client;
use tempfile::TempDir;

use super::engines::LOG;
use crate::cluster::engine::Engine;
use crate::cluster::engine::redis::RedisEngine;

/// Set where the tests must not be left out.
const REQUIRED: &str = "ODDSBOX_REQUIRE_REDIS";
const PATIENCE: Duration = Duration::from_secs(30);

/// A server that ends with this value.
#[derive(Debug)]
pub(super) struct RedisServer {
    child: Child,
    dir: TempDir,
}

impl RedisServer {
    /// Starts a server. `None` if there is none on this machine: the test is left out, and says so.
    pub(super) fn start(test: &str) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        match spawn(&dir) {
            Ok(child) => Some(RedisServer { child, dir }),
            Err(error) => {
                assert!(std::env::var_os(REQUIRED).is_none(), "redis-server: {error}");
                // Not captured, unlike what the macros print.
                let _ = writeln!(std::io::stderr(), "left out, because there is no redis-server: {test}");
                None
            }
        }
    }

    pub(super) fn client(&self) -> Client {
        Client::open(format!("redis+unix://{}", socket(&self.dir).display())).unwrap()
    }

    /// The engine of a cluster whose log has been begun.
    pub(super) async fn created(&self) -> Arc<RedisEngine> {
        let engine = Arc::new(RedisEngine::new(self.client(), "test"));
        let begun = Instant::now();
        while engine.create(LOG).await.is_err() {
            assert!(begun.elapsed() < PATIENCE, "the server does not answer");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        engine
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn socket(dir: &TempDir) -> PathBuf {
    dir.path().join("redis.sock")
}

fn spawn(dir: &TempDir) -> std::io::Result<Child> {
    Command::new("redis-server")
        .args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket"])
        .arg(socket(dir))
        .arg("--dir")
        .arg(dir.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}
