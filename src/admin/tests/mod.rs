//! The admin interface as a whole: a server on a temporary directory and commands that find it, or find only its file.

mod feeding;
mod keys;
mod running;
mod sockets;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::{
    Access, AdminAccess, AdminError, CatalogueOrigin, CheckOptions, Command, Context, DataDir, FieldSetting, IssueKey,
    Listener, ServerFacts, Setup,
};
use crate::clock::{Clock, Moment};
use crate::cluster::member::ClusterStanding;
use crate::config::catalogue;
use crate::http::Heads;
use crate::metrics::Traffic;
use crate::store::{Store, StoreOptions};
use crate::writer::{self, Stopped, Writer, WriterOptions};

/// 2026-11-14T12:00:00Z.
const NOON_MS: i64 = 1_794_657_600_000;

#[derive(Debug)]
struct Facts(Moment, Traffic, Heads);

impl ServerFacts for Facts {
    fn is_ready(&self) -> bool {
        true
    }
    fn started(&self) -> Moment {
        self.0
    }
    fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], 8080))
    }

    fn is_tls(&self) -> bool {
        false
    }
    fn ingest_address(&self) -> Option<SocketAddr> {
        None
    }

    fn traffic(&self) -> &Traffic {
        &self.1
    }
    fn heads(&self) -> &Heads {
        &self.2
    }
    fn cluster(&self) -> Option<ClusterStanding> {
        None
    }
    fn connections(&self) -> u64 {
        3
    }
    fn requests(&self) -> u64 {
        7
    }
    fn requests_per_second(&self) -> f64 {
        0.5
    }
}

/// A data directory and the clock of everything that opens it.
struct TestServer {
    _dir: TempDir,
    data: DataDir,
    setup: Setup,
}

impl TestServer {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let setup = Setup {
            catalogue: Arc::new(catalogue::builtin()),
            origin: CatalogueOrigin::builtin(),
            store: StoreOptions { cache_bytes: 1 << 20, wait_for_lock: Duration::ZERO, ..StoreOptions::default() },
            writer: WriterOptions::default(),
            clock: Clock::manual(NOON_MS),
        };
        TestServer { data: DataDir::new(dir.path().join("data")), _dir: dir, setup }
    }

    /// Everything that a server has behind its interfaces.
    fn open(&self) -> (Context, Stopped) {
        let Setup { catalogue, store, writer, clock, .. } = self.setup.clone();
        let store = Store::open(&self.data.file(), Arc::clone(&catalogue), store).unwrap();
        let opened = Writer::open(store, catalogue, clock.clone(), writer).unwrap();
        let (keyring, boards) = (Arc::clone(opened.writer.keyring()), Arc::clone(opened.writer.boards()));
        let feeders = Arc::clone(opened.writer.feeders());
        let history = opened.writer.history();
        let (writer, stopped) = writer::spawn(opened.writer).unwrap();
        let facts: Arc<dyn ServerFacts> =
            Arc::new(Facts(clock.now(), Traffic::new(&["unknown"], &[]), Heads::default()));
        let (data, ledger) = (self.data.clone(), Arc::default());
        let context = Context {
            writer,
            keyring,
            feeders,
            boards,
            history,
            clock,
            data,
            ledger,
            server: Some(facts),
            console: None,
        };
        (context, stopped)
    }

    async fn serve(&self) -> Server {
        let (context, stopped) = self.open();
        let listener = Listener::bind(&self.data).await.unwrap();
        let (stop, stopping) = oneshot::channel::<()>();
        let serving = listener.serve(context, async { drop(stopping.await) }, Duration::from_secs(5));
        Server { stop, serving: tokio::spawn(serving), stopped }
    }

    async fn find(&self, access: Access) -> Result<AdminAccess, AdminError> {
        let setup = self.setup.clone();
        AdminAccess::find(&self.data, access, move || Ok(setup)).await
    }

    /// Executes a command through the server, or without one; its answer as JSON.
    async fn ask(&self, command: Command) -> Result<serde_json::Value, AdminError> {
        let access = self.find(Access::Create).await.unwrap();
        let answer = access.ask(command).await;
        access.close().await.unwrap();
        answer
    }
}

struct Server {
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
    stopped: Stopped,
}

impl Server {
    async fn stop(self) {
        self.stop.send(()).unwrap();
        self.serving.await.unwrap();
        tokio::task::spawn_blocking(|| self.stopped.join()).await.unwrap().unwrap();
    }
}

fn sandbox_key(name: &str) -> Command {
    Command::KeysIssue(IssueKey {
        kind: "sandbox".into(),
        name: name.into(),
        approved_by: None,
        groups: Vec::new(),
        burst_per_minute: None,
        requests_per_day: FieldSetting::Keep,
        requests_per_month: FieldSetting::Keep,
        streams: None,
        expires_in_s: None,
        self_service: false,
    })
}

fn text<'a>(value: &'a serde_json::Value, field: &str) -> &'a str {
    value[field].as_str().unwrap()
}
