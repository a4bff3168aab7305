//! Composition: everything that a server does, in order:
//!
//! 1. open the file and load everything from it,
//! 2. open the admin interface and the console,
//! 3. in a cluster, catch up with the other nodes,
//! 4. fill the simulated worlds, poll the feeds and serve, until a signal,
//! 5. stop accepting and finish the responses in flight,
//! 6. stop the feeds, then write the last counters and close the file.

mod bounds;
mod cluster;
mod ending;
mod error;
mod facts;
mod history;
mod inputs;
mod intakes;
mod interfaces;
mod logging;
mod notify;
mod reload;
mod rotations;
mod signals;
mod validate;
mod writer_watch;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::admin::{self, ConsoleSessions, DataDir, Setup};
use crate::board::Boards;
use crate::clock::Clock;
use crate::cluster::copies;
use crate::cluster::member::{Member, MemberParts};
use crate::config::{Config, TlsFiles};
use crate::http;
use crate::ingest::{Feed, IngestContext, Ledger, PollSettings, Pollers};
use crate::keys::{Feeders, Keyring, LeaseRequests, leases};
use crate::metrics::Traffic;
use crate::model::{Catalogue, World};
use crate::store::{HistoryReader, Store};
use crate::tls;
use crate::writer::{self, Stopped, WriteError, Writer, WriterHandle};

pub use error::{ListenError, ServeError};
pub use logging::{LogError, LogFilter, LogFilterError, init as init_logging};
pub use reload::Reload;
pub use signals::{hang_ups, signals};
pub use validate::{InvalidConfig, validate};

use bounds::Bounds;
use cluster::ServedMember;
use ending::{closed, drain, ended, or_ended, unless};
use facts::{Facts, Phase};
use history::LogHistory;
use inputs::Inputs;
use intakes::Intakes;
use reload::Reloading;
use rotations::WriterRotations;
use writer_watch::WriterWatch;

/// Who simulates the live world and issues the keys of a demo, as the audit log has it.
pub const DEMO: &str = "oddsbox demo";

/// When to try again to write the start to the audit log.
const AUDIT_RETRY: Duration = Duration::from_secs(1);

/// A service with its data loaded, not yet serving.
#[derive(Debug)]
pub struct Server {
    data: DataDir,
    config: watch::Sender<Arc<Config>>,
    tls: Option<Arc<tls::Acceptor>>,
    clock: Clock,
    catalogue: Arc<Catalogue>,
    boards: Arc<Boards>,
    keyring: Arc<Keyring>,
    history: HistoryReader,
    feeders: Arc<Feeders>,
    ledger: Arc<Ledger>,
    writer: WriterHandle,
    stopped: Stopped,
    lease_requests: LeaseRequests,
    stale_after_s: u32,
    demo_keys: http::DemoKeys,
    /// `None` for a single node.
    member: Option<Arc<ServedMember>>,
}

impl Server {
    /// Opens the data directory and loads everything that it holds.
    pub fn open(data: DataDir, config: Config, setup: Setup) -> Result<Server, ServeError> {
        let tls = config.tls.as_ref().map(acceptor).transpose()?;
        let Setup { catalogue, origin, store, writer: options, clock } = setup;
        let stale_after_s = options.stale_after_s;
        let mut store = Store::open(&data.file(), Arc::clone(&catalogue), store)?;
        store.store_catalogue(&origin.text)?;
        let opened = Writer::open(store, Arc::clone(&catalogue), clock.clone(), options)?;
        for damage in opened.damage.listed() {
            tracing::error!(%damage, "a damaged record is left out; `oddsbox check` lists them all");
        }
        let (boards, keyring) = (Arc::clone(opened.writer.boards()), Arc::clone(opened.writer.keyring()));
        let history = opened.writer.history();
        let feeders = Arc::clone(opened.writer.feeders());
        let ledger = Arc::default();
        Feed::open_accounts(&opened.writer, &ledger);
        let membership = opened.writer.membership();
        let (writer, stopped) = writer::spawn(opened.writer)?;
        let parts = MemberParts {
            catalogue: Arc::clone(&catalogue),
            writer: writer.clone(),
            boards: Arc::clone(&boards),
            keyring: Arc::clone(&keyring),
            clock: clock.clone(),
        };
        let settings = |config: &_| cluster::shared_settings(config, &options, &origin.text);
        let member = cluster::member(config.cluster.as_ref(), membership, parts, data.path(), settings)?;
        let writer = member.as_ref().map_or(writer, Member::writer);
        let lease_requests = opened.lease_requests;
        let config = watch::Sender::new(Arc::new(config));
        Ok(Server {
            data,
            config,
            tls,
            clock,
            catalogue,
            boards,
            keyring,
            history,
            feeders,
            ledger,
            writer,
            stopped,
            lease_requests,
            stale_after_s,
            demo_keys: http::DemoKeys::default(),
            member,
        })
    }

    pub fn writer(&self) -> &WriterHandle {
        &self.writer
    }

    /// The configuration in force, and each that takes its place while the server runs.
    pub fn config(&self) -> watch::Receiver<Arc<Config>> {
        self.config.subscribe()
    }

    /// What each feed has brought.
    pub fn ledger(&self) -> &Arc<Ledger> {
        &self.ledger
    }

    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    pub fn keyring(&self) -> &Arc<Keyring> {
        &self.keyring
    }

    /// Lets the documentation of a demo offer its two keys. Without effect on a server whose live world is not simulated.
    pub fn offer_demo_keys(&self, sandbox: &str, live: &str) {
        self.demo_keys.offer(sandbox, live);
    }

    /// Serves on a listener until `stop` is ready, then drains; `hurry` ends the draining.
    ///
    /// `ready` is called when the next request can be answered from full boards, with the console's sessions if it is served.
    pub async fn serve(
        self,
        listener: TcpListener,
        extras: ServeOptions,
        ready: impl AsyncFnOnce(&Server, Option<&ConsoleSessions>),
        stop: impl Future<Output = ()>,
        hurry: impl Future<Output = ()>,
    ) -> Result<(), ServeError> {
        let opened = Arc::clone(&self.config.borrow());
        let intakes = Intakes::open(&opened)?;
        Pollers::validate(&opened.feeds, &self.catalogue)?;
        let mut tasks = JoinSet::new();
        let service = Arc::new(self.service(extras.is_demo()));
        tasks.spawn(count_seconds(Arc::clone(service.traffic()), self.clock.clone()));
        let (phase, phases) = watch::channel(Phase::Starting);
        let address = listener.local_addr()?;
        let writer_watch = Arc::new(WriterWatch::new(self.writer.clone()));
        let bounds = Bounds::new(&self.config.borrow(), self.tls.clone());
        let counted = (service.traffic(), &bounds.heads);
        let facts = self.facts((address, intakes.address()), counted, phases.clone(), &writer_watch);
        let interfaces = self.open_interfaces(facts, &bounds, extras.console_any_port, &phases).await?;
        let mut stop = std::pin::pin!(stop);
        let begun = unless(stop.as_mut(), self.begin(address, extras.simulated, &mut tasks)).await;
        if !matches!(begun, Some(Ok(()))) {
            let _ = phase.send(Phase::Closed);
            interfaces.closed().await;
            tasks.shutdown().await;
            return begun.unwrap_or(Ok(()));
        }
        let push = intakes.start(self.ingest_context(), bounds.ingest.subscribe(), phases.clone(), &mut tasks);
        let _ = phase.send(Phase::Serving);
        ready(&self, interfaces.sessions.as_deref()).await;
        let status = notify::ready_on(&base_url(&self.config.borrow(), address));
        tasks.spawn(notify::watchdog(Arc::clone(service.traffic()), Arc::clone(&writer_watch)));
        tasks.spawn(async move { writer_watch.run().await });

        let Server { config, tls, clock, keyring, writer, stopped, lease_requests, member, .. } = self;
        let mut leases = JoinSet::new();
        match member.clone() {
            Some(member) => leases.spawn(member.hand_out_shares(lease_requests, closed(phases))),
            None => leases.spawn(hand_out_leases(lease_requests, keyring, clock, writer.clone())),
        };
        let (end, streams, options) = (stopped.end(), Arc::clone(&service), bounds.public.subscribe());
        match extras.reload {
            Some(reload) => {
                let service = Arc::clone(&service);
                tasks.spawn(Reloading { reload, config, bounds, service, tls, writer, status }.run());
            }
            // A handle that is kept here would keep the writer running.
            None => drop(writer),
        }
        let mut failure = None;
        let stop = async {
            let stop = or_ended(stop, end.clone());
            failure = ended(cluster::must_restart(member.clone(), stop), [&mut tasks, &mut leases]).await;
            drain(&streams, &phase);
        };
        let hurry = async {
            or_ended(hurry, end.clone()).await;
            tracing::warn!("stopped at once: responses in flight are cut off");
            push.iter().for_each(JoinHandle::abort);
        };
        let summary = http::run(listener, service, options, stop, hurry).await;
        let has_died = end.is_reached();
        tracing::info!(connections = summary.accepted, dropped = summary.dropped, "stopped listening");
        if let Some(push) = push {
            // It drains beside the public interface, and within the same time.
            let _ = push.await;
        }
        // The writer ends with its last handle, after it has written the counters: no request can change them now.
        let _ = phase.send(Phase::Closed);
        interfaces.closed().await;
        cluster::leave(member, leases).await;
        tasks.shutdown().await;
        tokio::task::spawn_blocking(|| stopped.join()).await.map_err(io::Error::from)??;
        match failure {
            // While there were handles, the writer had no reason to end.
            _ if has_died => Err(WriteError::Died.into()),
            Some(failure) => Err(failure),
            None => Ok(()),
        }
    }

    /// Catches up with the other nodes, if there are any, and begins to poll and to simulate.
    async fn begin(
        &self,
        address: SocketAddr,
        simulated: SimulatedWorlds,
        tasks: &mut JoinSet<()>,
    ) -> Result<(), ServeError> {
        let inputs = Inputs {
            context: self.ingest_context(),
            settings: PollSettings { stale_after_s: self.stale_after_s, random },
            config: self.config(),
            catalogue: Arc::clone(&self.catalogue),
            simulated,
        };
        if let Some(member) = &self.member {
            member.lease().set_address(address);
            member.start(tasks).await?;
            cluster::warn_of_engine(member).await;
            tasks.spawn(copies::send_all(Arc::clone(member), self.data.path().to_owned()));
        }
        self.claim_live_world(simulated == SimulatedWorlds::Both).await?;
        if let Some(member) = &self.member {
            tasks.spawn(inputs.take_turns(Arc::clone(member)));
        } else {
            let pollers = inputs.start(tasks).await?;
            tasks.spawn(pollers.run());
        }
        Ok(self.audit_start().await?)
    }

    /// Writes the start to the audit log. An engine that does not answer in time is asked again, and may then have it twice.
    async fn audit_start(&self) -> Result<(), WriteError> {
        let summary = self.config.borrow().summary();
        let summary = match &self.member {
            Some(member) => format!("node {}, {summary}", member.node().name()),
            None => summary,
        };
        loop {
            match self.writer.audit("oddsbox", "start", "service", summary.clone()).await {
                Err(error @ WriteError::Unconfirmed(_)) => {
                    tracing::warn!(%error, "the start of this node is not in the audit log yet; trying again");
                    tokio::time::sleep(AUDIT_RETRY).await;
                }
                done => return done,
            }
        }
    }

    /// What the admin interface can say of this server. `addresses` are those of the public interface and for feeders.
    fn facts(
        &self,
        addresses: (SocketAddr, Option<SocketAddr>),
        (traffic, heads): (&Arc<Traffic>, &Arc<http::Heads>),
        phase: watch::Receiver<Phase>,
        writer: &Arc<WriterWatch>,
    ) -> Facts {
        Facts {
            started: self.clock.now(),
            address: addresses.0,
            ingest_address: addresses.1,
            is_tls: self.tls.is_some(),
            traffic: Arc::clone(traffic),
            heads: Arc::clone(heads),
            phase,
            writer: Arc::clone(writer),
            boards: Arc::clone(&self.boards),
            clock: self.clock.clone(),
            member: self.member.clone(),
        }
    }

    /// Refuses to serve simulated prices to production keys, and to simulate beside real ones.
    async fn claim_live_world(&self, simulate: bool) -> Result<(), ServeError> {
        let is_simulated = self.boards.condition().is_simulated(World::Live);
        let data = || self.data.path().to_owned();
        if is_simulated && !simulate {
            return Err(ServeError::Simulated(data()));
        }
        if simulate && !is_simulated {
            let live = self.boards.load_full(World::Live);
            if live.sports().iter().any(|sport| sport.current().event_count() > 0 || !sport.sources().is_empty()) {
                return Err(ServeError::NotSimulated(data()));
            }
            self.writer.mark_simulated(DEMO).await?;
        }
        Ok(())
    }

    /// What the public interface answers from. Only the documentation of a demo can offer keys.
    fn service(&self, is_demo: bool) -> http::Service {
        let (boards, keyring) = (Arc::clone(&self.boards), Arc::clone(&self.keyring));
        let settings = interface_settings(&self.config.borrow());
        let history = Arc::new(LogHistory::new(self.history.clone(), Arc::clone(&boards)));
        let service = http::Service::new(boards, keyring, self.clock.clone(), settings)
            .with_history(history)
            .with_rotations(Arc::new(WriterRotations(self.writer.rotations())));
        if is_demo { service.with_demo_keys(self.demo_keys.clone()) } else { service }
    }

    /// What every input is taken in with.
    fn ingest_context(&self) -> IngestContext {
        IngestContext {
            writer: self.writer.clone(),
            boards: Arc::clone(&self.boards),
            ledger: Arc::clone(&self.ledger),
            feeders: Arc::clone(&self.feeders),
            clock: self.clock.clone(),
            data: self.data.path().to_owned(),
        }
    }

    /// What commands work on.
    fn context(&self, facts: Facts, console: Option<Arc<ConsoleSessions>>) -> admin::Context {
        admin::Context {
            writer: self.writer.clone(),
            keyring: Arc::clone(&self.keyring),
            feeders: Arc::clone(&self.feeders),
            boards: Arc::clone(&self.boards),
            history: self.history.clone(),
            clock: self.clock.clone(),
            data: self.data.clone(),
            ledger: Arc::clone(&self.ledger),
            server: Some(Arc::new(facts)),
            console,
        }
    }
}

/// Any number; 0 if the system has no randomness.
fn random() -> u32 {
    let mut bytes = [0; 4];
    let _ = getrandom::fill(&mut bytes);
    u32::from_ne_bytes(bytes)
}

/// Which worlds are simulated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SimulatedWorlds {
    #[default]
    Sandbox,
    /// As in a demo.
    Both,
    /// For tests of the live world, which need not wait for another.
    Neither,
}

/// What is served beside the data itself.
#[derive(Debug, Default)]
pub struct ServeOptions {
    pub simulated: SimulatedWorlds,
    /// Take any free port for the console if its own is in use.
    pub console_any_port: bool,
    /// Read the configuration again when asked to.
    pub reload: Option<Reload>,
}

impl ServeOptions {
    /// Whether the live world is simulated.
    pub(crate) fn is_demo(&self) -> bool {
        self.simulated == SimulatedWorlds::Both
    }
}

/// The address of the public interface, as clients write it.
pub fn base_url(config: &Config, address: SocketAddr) -> String {
    format!("{}://{address}", config.scheme())
}

/// Binds the address of the public interface.
pub fn bind(address: SocketAddr) -> Result<TcpListener, ListenError> {
    http::listen(address).map_err(|error| ListenError { address, error, setting: "--listen" })
}

/// Stores the leases of meters ahead of use, for as long as the server runs.
async fn hand_out_leases(requests: LeaseRequests, keyring: Arc<Keyring>, clock: Clock, writer: WriterHandle) {
    leases::serve(requests, &keyring, &clock, &writer).await;
}

async fn count_seconds(traffic: Arc<Traffic>, clock: Clock) {
    let mut seconds = tokio::time::interval(Duration::from_secs(1));
    loop {
        seconds.tick().await;
        traffic.tick(clock.now().unix_ms.div_euclid(1000));
    }
}

/// TLS for a listener.
fn acceptor(files: &TlsFiles) -> Result<Arc<tls::Acceptor>, ServeError> {
    let certificate = tls::Certificate::read(&files.certificate, &files.key)?;
    Ok(Arc::new(tls::Acceptor::new(certificate, tls::Alpn::Http)?))
}

fn interface_settings(config: &Config) -> http::ServiceSettings {
    http::ServiceSettings {
        allow_query_key: config.allow_query_key,
        refresh_ms: i64::try_from(config.refresh.as_millis()).unwrap_or(i64::MAX),
        resume_s: u32::try_from(config.history_resume.as_secs()).unwrap_or(u32::MAX),
        streams_per_address_max: config.connections_per_address.map(|max| u32::try_from(max).unwrap_or(u32::MAX)),
        ..http::ServiceSettings::default()
    }
}
