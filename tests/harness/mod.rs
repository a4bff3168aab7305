//! A whole service in the test's own process, with its own directory, port and clock.
#![allow(dead_code, reason = "each module uses the part that it needs")]

mod answer;
mod figures;
pub mod follower;
pub mod schema;
pub mod tls;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use oddsbox::admin::{ConsoleSessions, DataDir, Setup};
use oddsbox::clock::Clock;
use oddsbox::config::{Config, FeedConfig, SETTINGS, Settings, catalogue};
use oddsbox::ingest::{Ledger, wire};
use oddsbox::keys::issue::NewKey;
use oddsbox::keys::{KeyKind, Limits};
use oddsbox::model::World;
use oddsbox::server::{ServeError, ServeOptions, Server, SimulatedWorlds};
use oddsbox::writer::{IngestReport, Issued, WriterHandle};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub use answer::Answer;
pub use figures::Figures;

/// The start time of every test: Saturday, 2026-11-14, 23:39:00 UTC, on a tick of the refresh.
pub const START: &str = "2026-11-14T23:39:00Z";
pub const START_MS: i64 = 1_794_699_540_000;

/// What every server is given for its documentation to offer, the sandbox key first. Only a demo may use it.
pub const OFFERED_KEYS: (&str, &str) = ("sk_test_offered", "sk_live_offered");

/// A running service with a production and a sandbox key.
pub struct Service {
    pub address: SocketAddr,
    pub clock: Clock,
    /// `None` once the service has stopped.
    writer: Option<WriterHandle>,
    pub ledger: Arc<Ledger>,
    pub live: String,
    pub sandbox: String,
    simulated: SimulatedWorlds,
    directory: tempfile::TempDir,
    stop: Option<oneshot::Sender<()>>,
    served: Option<JoinHandle<Result<(), ServeError>>>,
}

impl Service {
    /// Without a simulated sandbox, which takes a second to fill.
    pub async fn start() -> Service {
        Service::start_with(&[]).await
    }

    pub async fn start_with_sandbox() -> Service {
        let directory = tempfile::tempdir().expect("a directory");
        Service::start_as(directory, &[], SimulatedWorlds::Sandbox).await
    }

    /// With settings other than the defaults.
    pub async fn start_with(settings: &[(&'static str, &str)]) -> Service {
        let directory = tempfile::tempdir().expect("a directory");
        Service::start_as(directory, settings, SimulatedWorlds::Neither).await
    }

    /// With both worlds simulated, as in a demo.
    pub async fn start_demo() -> Service {
        Service::start_demo_with(&[]).await
    }

    pub async fn start_demo_with(settings: &[(&'static str, &str)]) -> Service {
        let directory = tempfile::tempdir().expect("a directory");
        Service::start_as(directory, settings, SimulatedWorlds::Both).await
    }

    async fn start_as(
        directory: tempfile::TempDir,
        settings: &[(&'static str, &str)],
        simulated: SimulatedWorlds,
    ) -> Service {
        Service::start_configured(directory, config(settings), simulated).await
    }

    /// With polled feeds.
    pub async fn start_polling(feeds: Vec<FeedConfig>) -> Service {
        let directory = tempfile::tempdir().expect("a directory");
        Service::start_configured(directory, Config { feeds, ..config(&[]) }, SimulatedWorlds::Neither).await
    }

    /// Stops gracefully and restarts on the same directory with these feeds.
    pub async fn restart_polling(mut self, feeds: Vec<FeedConfig>) -> Service {
        self.stop().await;
        let Service { directory, .. } = self;
        Service::start_configured(directory, Config { feeds, ..config(&[]) }, SimulatedWorlds::Neither).await
    }

    /// The same, with a clock that continues from the old one.
    pub async fn restart_polling_now(mut self, feeds: Vec<FeedConfig>) -> Service {
        self.stop().await;
        let Service { directory, clock, .. } = self;
        let config = Config { feeds, ..config(&[]) };
        Service::start_at(clock.now().unix_ms, directory, config, SimulatedWorlds::Neither).await
    }

    async fn start_configured(directory: tempfile::TempDir, config: Config, simulated: SimulatedWorlds) -> Service {
        Service::start_at(START_MS, directory, config, simulated).await
    }

    async fn start_at(
        unix_ms: i64,
        directory: tempfile::TempDir,
        config: Config,
        simulated: SimulatedWorlds,
    ) -> Service {
        let clock = Clock::manual(unix_ms);
        let setup = Setup { clock: clock.clone(), ..Setup::of(&config).expect("a setup") };
        let server = Server::open(DataDir::new(directory.path()), config, setup).expect("a server");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (writer, ledger) = (server.writer().clone(), Arc::clone(server.ledger()));
        let (stop, stopped) = oneshot::channel();
        let (ready, is_ready) = oneshot::channel();
        let running = tokio::spawn(async move {
            let announce = async |server: &Server, _: Option<&ConsoleSessions>| {
                server.offer_demo_keys(OFFERED_KEYS.0, OFFERED_KEYS.1);
                ready.send(()).expect("somebody waits");
            };
            let stopped = async { drop(stopped.await) };
            server
                .serve(
                    listener,
                    ServeOptions { simulated, ..ServeOptions::default() },
                    announce,
                    stopped,
                    std::future::pending(),
                )
                .await
        });
        is_ready.await.expect("the server is ready");
        let mut service = Service {
            address,
            clock,
            writer: Some(writer),
            ledger,
            live: String::new(),
            sandbox: String::new(),
            simulated,
            directory,
            stop: Some(stop),
            served: Some(running),
        };
        let (live, sandbox) =
            (service.issue(KeyKind::Production, |_| {}).await, service.issue(KeyKind::Sandbox, |_| {}).await);
        service.live.push_str(live.secret.expose());
        service.sandbox.push_str(sandbox.secret.expose());
        service
    }

    pub fn writer(&self) -> &WriterHandle {
        self.writer.as_ref().expect("a running service")
    }

    pub fn data(&self) -> &Path {
        self.directory.path()
    }

    /// Issues a key; `change` modifies the defaults of its kind.
    pub async fn issue(&self, kind: KeyKind, change: impl FnOnce(&mut NewKey)) -> Issued {
        let approved_by = (kind == KeyKind::Production).then(|| "the harness".into());
        let limits = Limits::default_of(kind);
        let mut new = NewKey {
            kind,
            name: "test".into(),
            groups: Vec::new(),
            limits,
            expires: None,
            approved_by,
            self_service: false,
        };
        change(&mut new);
        self.writer().issue_key(new, "test").await.expect("a key")
    }

    /// Ingests feed lines into the live world; every line must be accepted.
    pub async fn ingest(&self, lines: &str) {
        let report = self.ingest_report(World::Live, lines).await;
        assert_eq!(report.reasons().collect::<Vec<_>>(), [], "{lines}");
    }

    /// Ingests feed lines into a world, as the end of an ingest.
    pub async fn ingest_report(&self, world: World, lines: &str) -> IngestReport {
        let catalogue = catalogue::builtin();
        let read =
            |line: &str| wire::read(line.as_bytes(), &catalogue).unwrap_or_else(|why| panic!("{line}: {why:?}")).news;
        let news = lines.lines().filter(|line| !line.trim().is_empty()).map(read).collect();
        self.writer().ingest(world, news, true).await.expect("a commit")
    }

    /// Advances the clock, including the ticks of the refresh.
    pub async fn advance(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
        self.writer().tick().await.expect("a writer");
    }

    /// Goes on to so many seconds after the start, tick by tick, as a service that runs.
    pub async fn go_to(&self, seconds: u32) {
        let passed = (self.clock.now().unix_ms - START_MS) / 1000;
        let left = u64::try_from(i64::from(seconds) - passed).expect("time only goes on");
        for _ in 0..left / 30 {
            self.advance(30).await;
        }
        self.advance(left % 30).await;
    }

    /// Advances the clock without waking the writer.
    pub fn pass(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    /// GET with the production key.
    pub async fn get(&self, path: &str) -> Answer {
        self.get_as(&self.live, path).await
    }

    pub async fn get_as(&self, key: &str, path: &str) -> Answer {
        self.send("GET", path, &[("x-api-key", key)]).await
    }

    /// GET with the production key and additional headers.
    pub async fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        let mut all = vec![("x-api-key", self.live.as_str())];
        all.extend(headers);
        self.send("GET", path, &all).await
    }

    /// One request on a new connection.
    pub async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
        let mut text = format!("{method} {path} HTTP/1.1\r\nhost: oddsbox\r\nconnection: close\r\n");
        for (name, value) in headers {
            text.extend([name, ": ", value, "\r\n"]);
        }
        text.push_str("\r\n");
        Answer::parse(&self.exchange(text.as_bytes()).await)
    }

    /// Sends bytes and reads until the server closes.
    pub async fn exchange(&self, bytes: &[u8]) -> Vec<u8> {
        let mut stream = TcpStream::connect(self.address).await.expect("a connection");
        stream.write_all(bytes).await.expect("a request");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.expect("an answer");
        answer
    }

    /// Stops gracefully and restarts on the same directory, with a new clock at the start time.
    pub async fn restart(mut self) -> Service {
        self.stop().await;
        let Service { directory, simulated, .. } = self;
        Service::start_as(directory, &[], simulated).await
    }

    /// Stops gracefully and restarts on the same directory with some settings changed.
    pub async fn restart_with(mut self, settings: &[(&'static str, &str)]) -> Service {
        self.stop().await;
        let Service { directory, simulated, .. } = self;
        Service::start_as(directory, settings, simulated).await
    }

    /// Stops gracefully and restarts on the same directory, with a clock that continues from the old one.
    pub async fn restart_now(mut self) -> Service {
        self.stop().await;
        let Service { directory, clock, simulated, .. } = self;
        Service::start_at(clock.now().unix_ms, directory, config(&[]), simulated).await
    }

    /// The same with some settings changed.
    pub async fn restart_now_with(mut self, settings: &[(&'static str, &str)]) -> Service {
        self.stop().await;
        let Service { directory, clock, simulated, .. } = self;
        Service::start_at(clock.now().unix_ms, directory, config(settings), simulated).await
    }

    /// Stops gracefully.
    pub async fn stop(&mut self) {
        if let (Some(stop), Some(served)) = (self.stop.take(), self.served.take()) {
            let _ = stop.send(());
            // The harness's own handle would keep the writer running.
            self.writer = None;
            served.await.expect("an end").expect("an orderly end");
        }
    }

    /// Waits until the service ends by itself; returns why.
    pub async fn failed(&mut self) -> ServeError {
        let served = self.served.take().expect("a running service");
        served.await.expect("an end").expect_err("it had no reason to end")
    }
}

/// The default configuration with some settings changed.
pub fn config(settings: &[(&'static str, &str)]) -> Config {
    let defaults = Settings::defaults(SETTINGS);
    let changed =
        settings.iter().fold(defaults, |all, (name, value)| all.with_flag(name, "test", Some((*value).to_owned())));
    changed.read().expect("a valid configuration")
}
