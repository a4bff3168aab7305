//! What every request is answered from: boards, keys, settings; and the views of a board that an endpoint may read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arc_swap::Guard;
use http::HeaderValue;

use super::error::{ApiError, Code, REFUSED};
use super::history::{AsOfRead, Finished, History, HistoryRead, HistoryReads, NoHistory, Shown, Stop};
use super::reply::{Content, position_header};
use super::request_headers::RequestParts;
use super::request_id::RequestIds;
use super::route::{COUNTED, Version};
use super::work::{BodyJob, Work};
use crate::board::{AsOf, Boards, Body, Register, SportBoard, WorldBoard};
use crate::clock::{Clock, Moment};
use crate::http::account::{KeyRotations, NoRotations};
use crate::http::docs::DemoKeys;
use crate::http::docs::pages::Pages;
use crate::http::stream::{StreamContext, StreamSettings};
use crate::http::v1::books::KeptLists;
use crate::keys::{Grant, Keyring, SportAccess};
use crate::metrics::Traffic;
use crate::model::{Bookmakers, Catalogue, Sport, SportId, SportSet, Timestamp};

/// How long a client waits before it checks whether a maintenance without an announced end is over.
const MAINTENANCE_RETRY_S: u32 = 60;

/// How the interface behaves where the operator may choose.
#[derive(Clone, Copy, Debug)]
pub struct ServiceSettings {
    /// Whether a key is accepted in the query as well.
    pub allow_query_key: bool,
    /// Between two publications of prices, in milliseconds.
    pub refresh_ms: i64,
    /// How long a request waits for its key's lease before it is answered with `overloaded`.
    pub lease_patience: Duration,
    /// How far back a stream can resume.
    pub resume_s: u32,
    /// The most streams of all keys.
    pub streams_max: u64,
    /// The most streams of one address; `None` for any number. Loopback addresses and trusted proxies are exempt.
    pub streams_per_address_max: Option<u32>,
}

impl Default for ServiceSettings {
    fn default() -> Self {
        ServiceSettings {
            allow_query_key: true,
            refresh_ms: 30_000,
            lease_patience: Duration::from_secs(2),
            resume_s: 86_400,
            streams_max: 10_000,
            streams_per_address_max: None,
        }
    }
}

/// The public interface: built once, shared by every connection.
#[derive(Debug)]
pub struct Service {
    pub(crate) boards: Arc<Boards>,
    pub(crate) keyring: Arc<Keyring>,
    pub(crate) clock: Clock,
    pub(crate) settings: ServiceSettings,
    allow_query_key: AtomicBool,
    pub(crate) request_ids: RequestIds,
    pub(crate) pages: Pages,
    pub(crate) kept_books: KeptLists,
    pub(crate) history: HistoryReads,
    pub(crate) streams: Arc<StreamContext>,
    pub(crate) work: Work,
    pub(crate) rotations: Arc<dyn KeyRotations>,
    traffic: Arc<Traffic>,
}

impl Service {
    pub fn new(boards: Arc<Boards>, keyring: Arc<Keyring>, clock: Clock, settings: ServiceSettings) -> Self {
        let traffic = Arc::new(Traffic::new(&COUNTED, &REFUSED));
        let sources = (&boards, &keyring, &clock, &traffic);
        let (history, streams) = with_log(sources, settings, Arc::new(NoHistory));
        Service {
            boards,
            keyring,
            clock,
            allow_query_key: AtomicBool::new(settings.allow_query_key),
            settings,
            request_ids: RequestIds::new(),
            pages: Pages::new(None),
            kept_books: KeptLists::default(),
            history,
            streams,
            work: Work::default(),
            rotations: Arc::new(NoRotations),
            traffic,
        }
    }

    /// The same service, whose documentation offers the keys of a demo once they are set.
    #[must_use]
    pub fn with_demo_keys(self, keys: DemoKeys) -> Self {
        Service { pages: Pages::new(Some(keys)), ..self }
    }

    /// The same service with a log to read.
    #[must_use]
    pub fn with_history(self, history: Arc<dyn History>) -> Self {
        let Service { boards, keyring, clock, traffic, settings, .. } = &self;
        let (history, streams) = with_log((boards, keyring, clock, traffic), *settings, history);
        Service { history, streams, ..self }
    }

    /// The same service with what rotates keys for their holders.
    #[must_use]
    pub fn with_rotations(self, rotations: Arc<dyn KeyRotations>) -> Self {
        Service { rotations, ..self }
    }

    /// Ends every stream, so that connections can be drained.
    pub fn stop_streams(&self) {
        self.streams.stop();
    }

    /// What passes through here, counted.
    pub fn traffic(&self) -> &Arc<Traffic> {
        &self.traffic
    }

    /// Whether a key is accepted in the query as well.
    pub(crate) fn allows_query_key(&self) -> bool {
        self.allow_query_key.load(Ordering::Relaxed)
    }

    /// Accepts keys in the query from now on, or no longer.
    pub fn allow_query_key(&self, allow: bool) {
        self.allow_query_key.store(allow, Ordering::Relaxed);
    }
}

/// What reads the log for requests, and for streams.
fn with_log(
    (boards, keyring, clock, traffic): (&Arc<Boards>, &Arc<Keyring>, &Clock, &Arc<Traffic>),
    settings: ServiceSettings,
    history: Arc<dyn History>,
) -> (HistoryReads, Arc<StreamContext>) {
    let ServiceSettings { refresh_ms, resume_s, streams_max, streams_per_address_max, .. } = settings;
    let (boards, keyring) = (Arc::clone(boards), Arc::clone(keyring));
    let settings = StreamSettings { refresh_ms, resume_s, streams_max, streams_per_address_max };
    let streams =
        StreamContext::new(boards, keyring, clock.clone(), settings, Arc::clone(&history), Arc::clone(traffic));
    (HistoryReads::new(history), Arc::new(streams))
}

/// An authenticated request as an endpoint sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Authorized<'a> {
    pub service: &'a Service,
    pub request: &'a RequestParts<'a>,
    pub grant: Grant<'a>,
    pub now: Timestamp,
    /// The same on all clocks.
    pub moment: Moment,
    pub version: Version,
    /// What was read of the log for this request.
    pub finished: Option<&'a Finished>,
    /// What was computed for it.
    pub computed: Option<&'a Arc<Body>>,
}

impl<'a> Authorized<'a> {
    /// The right to read a sport, if there is one by the name.
    pub(crate) fn access(&self, sport: Option<SportId>, name: &str) -> Result<SportAccess, ApiError> {
        let Some(sport) = sport else { return Err(self.sport_not_found(name)) };
        let refused = |_| ApiError::new(Code::Forbidden, "This key is restricted to other groups of sports.");
        self.grant.for_sport(sport).map_err(refused)
    }

    /// What the key may read of a sport, if there is one by the name in the path.
    pub(crate) fn view(&self, sport: Option<SportId>, name: &str) -> Result<SportView<'a>, ApiError> {
        let access = self.access(sport, name)?;
        self.check_open()?;
        Ok(SportView::new(&self.service.boards, access))
    }

    /// A view of the sport as of a time.
    pub(crate) fn as_of<'s>(&self, view: SportView<'s>, shown: Shown, time: Timestamp) -> Result<SportView<'s>, Stop> {
        let read = AsOfRead { access: view.access, time, shown };
        let as_of = match self.finished {
            Some(Finished::AsOf(read)) => read.clone().map_err(ApiError::from)?,
            _ => self.service.history.kept(read).ok_or(Stop::NeedsHistory(HistoryRead::AsOf(read)))?,
        };
        Ok(SportView { as_of: Some(as_of), ..view })
    }

    /// The content that a job makes of the log, once it has been done.
    pub(crate) fn history_content(
        &self,
        job: impl FnOnce(&dyn History) -> Result<Content, ApiError> + Send + 'static,
    ) -> Result<Content, Stop> {
        match self.finished {
            Some(Finished::Content(content)) => Ok(content.clone()?),
            _ => Err(Stop::NeedsHistory(HistoryRead::Content(Box::new(job)))),
        }
    }

    /// A body that takes long to compute, once that has been done.
    pub(crate) fn computed(&self, job: impl FnOnce() -> Arc<Body> + Send + 'static) -> Result<Arc<Body>, Stop> {
        self.computed.cloned().ok_or_else(|| Stop::NeedsWork(BodyJob::new(job)))
    }

    /// A competition in place of its sport gets the request that works, if that would find it.
    fn sport_not_found(&self, name: &str) -> ApiError {
        let catalogue = self.service.boards.catalogue();
        let world = self.service.boards.load(self.grant.world());
        let is_known = || catalogue.competition(name).is_some() || world.register().competitions().get(name).is_some();
        let sport = catalogue.find_v4(name).map(|(sport, _)| &catalogue[sport].key);
        let message = match (self.version, sport) {
            (Version::V1, Some(sport)) if is_known() => {
                format!("{name} is a competition, not a sport: use /v1/sports/{sport}/odds?competition={name}.")
            }
            (Version::V1, _) => "There is no such sport: /v1/sports lists those there are.".to_owned(),
            (Version::V4, _) => "There is no such sport: /v4/sports?all=true lists those there are.".to_owned(),
        };
        ApiError::new(Code::SportNotFound, message)
    }

    /// Fails during maintenance.
    pub(crate) fn check_open(&self) -> Result<(), ApiError> {
        let Some(maintenance) = self.service.boards.condition().maintenance(self.now) else { return Ok(()) };
        let retry_after_s = maintenance.until.map_or(MAINTENANCE_RETRY_S, |until| until.seconds_since(self.now));
        let message = format!("The service is closed for maintenance. Try again in {retry_after_s} seconds.");
        Err(ApiError::new(Code::Maintenance, message).retry_after(retry_after_s))
    }
}

/// A sport as the holder of an access sees it. Loads the world once, so that one request reads one snapshot.
#[derive(Debug)]
pub(crate) struct SportView<'s> {
    pub catalogue: &'s Catalogue,
    pub sport: &'s Sport,
    access: SportAccess,
    world: Guard<Arc<WorldBoard>>,
    /// The sport as it was, if that is what the request is about.
    as_of: Option<AsOf>,
}

impl<'s> SportView<'s> {
    pub(crate) fn new(boards: &'s Boards, access: SportAccess) -> Self {
        let catalogue = &**boards.catalogue();
        let world = boards.load(access.world());
        SportView { catalogue, sport: &catalogue[access.sport()], access, world, as_of: None }
    }

    pub(crate) fn board(&self) -> &SportBoard {
        match &self.as_of {
            Some(as_of) => &as_of.board,
            None => self.world.sport(self.access.sport()),
        }
    }

    pub(crate) fn as_of(&self) -> Option<&AsOf> {
        self.as_of.as_ref()
    }

    /// The place in the log that the board stands at, as a header.
    pub(crate) fn position(&self) -> HeaderValue {
        self.world.position_text(position_header)
    }

    pub(crate) fn access(&self) -> SportAccess {
        self.access
    }

    pub(crate) fn id(&self) -> SportId {
        self.access.sport()
    }

    pub(crate) fn register(&self) -> &Register {
        self.as_of.as_ref().map_or_else(|| self.world.register(), |as_of| &as_of.register)
    }

    pub(crate) fn bookmakers(&self) -> &Bookmakers {
        self.register().bookmakers()
    }
}

/// All sports that a key may read, as its holder sees them.
#[derive(Debug)]
pub(crate) struct WorldView<'s> {
    pub catalogue: &'s Catalogue,
    accesses: Vec<SportAccess>,
    world: Guard<Arc<WorldBoard>>,
}

impl<'s> WorldView<'s> {
    pub(crate) fn new(boards: &'s Boards, grant: Grant<'_>) -> Self {
        let catalogue = boards.catalogue();
        let accesses = catalogue.sport_ids().filter_map(|sport| grant.for_sport(sport).ok()).collect();
        WorldView { catalogue, accesses, world: boards.load(grant.world()) }
    }

    pub(crate) fn board(&self) -> &WorldBoard {
        &self.world
    }

    pub(crate) fn sports(&self) -> SportSet {
        self.accesses.iter().fold(SportSet::NONE, |sports, access| sports.with(access.sport()))
    }

    pub(crate) fn bookmakers(&self) -> &Bookmakers {
        self.world.register().bookmakers()
    }
}
