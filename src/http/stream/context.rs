//! What all streams share.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use foldhash::HashMap;
use tokio::sync::Semaphore;

use crate::board::{Boards, ChangeEntry, ChangeFilter, FilterSpec, NextChange};
use crate::clock::Clock;
use crate::http::exchange::history::{EntriesRead, History, HistoryFailure};
use crate::http::transport::{AddressCount, Addresses};
use crate::keys::Keyring;
use crate::metrics::{StreamCounts, Traffic};
use crate::model::{Position, Timestamp, World};

/// Readings of the log for streams at a time.
const READS_MAX: usize = 2;
/// Filters that nobody uses any more are forgotten beyond this number.
const FILTERS_MAX: usize = 1024;

/// How streams behave where the operator may choose.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamSettings {
    /// Between two publications of prices, in milliseconds.
    pub refresh_ms: i64,
    /// How far back a stream can resume.
    pub resume_s: u32,
    /// The most streams of all keys.
    pub streams_max: u64,
    /// The most streams of one address; `None` for any number.
    pub streams_per_address_max: Option<u32>,
}

/// What streams are made of, shared by all of them.
#[derive(Debug)]
pub(crate) struct StreamContext {
    pub boards: Arc<Boards>,
    pub keyring: Arc<Keyring>,
    pub clock: Clock,
    pub settings: StreamSettings,
    history: Arc<dyn History>,
    reads: Semaphore,
    filters: Mutex<HashMap<FilterSpec, Weak<ChangeFilter>>>,
    addresses: Addresses,
    traffic: Arc<Traffic>,
    is_stopping: AtomicBool,
}

impl StreamContext {
    pub(crate) fn new(
        boards: Arc<Boards>,
        keyring: Arc<Keyring>,
        clock: Clock,
        settings: StreamSettings,
        history: Arc<dyn History>,
        traffic: Arc<Traffic>,
    ) -> Self {
        StreamContext {
            boards,
            keyring,
            clock,
            settings,
            history,
            reads: Semaphore::new(READS_MAX),
            filters: Mutex::default(),
            addresses: Addresses::default(),
            traffic,
            is_stopping: AtomicBool::new(false),
        }
    }

    /// The filter with a specification: one for all clients that follow the same, so that they share what is rendered.
    pub(crate) fn filter(&self, spec: FilterSpec) -> Arc<ChangeFilter> {
        let mut filters = self.filters.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(filter) = filters.get(&spec).and_then(Weak::upgrade) {
            return filter;
        }
        if filters.len() >= FILTERS_MAX {
            filters.retain(|_, filter| filter.strong_count() > 0);
        }
        let filter = Arc::new(ChangeFilter::new(spec.clone()));
        filters.insert(spec, Arc::downgrade(&filter));
        filter
    }

    /// Takes one of the places for streams of all keys, and one of those of an address. Without one, the message to the client.
    pub(super) fn take_place(self: &Arc<Self>, address: Option<IpAddr>) -> Result<StreamPlace, String> {
        let of_address = match address {
            Some(address) => self.addresses.enter(address, self.settings.streams_per_address_max),
            None => Some(AddressCount::default()),
        };
        let Some(of_address) = of_address else {
            return Err("Your address has as many streams open as it may have. Close one of them first.".to_owned());
        };
        if !self.counts().try_open(self.settings.streams_max) {
            return Err("The service has as many streams open as it can have. Try again later.".to_owned());
        }
        Ok(StreamPlace { context: Arc::clone(self), _of_address: of_address })
    }

    pub(super) fn counts(&self) -> &StreamCounts {
        self.traffic.streams()
    }

    /// Ends every stream: the service is about to stop.
    pub(crate) fn stop(&self) {
        self.is_stopping.store(true, Ordering::Release);
        self.boards.wake_followers();
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Acquire)
    }

    /// The oldest entry that a stream may resume from.
    pub(crate) fn oldest(&self, now: Timestamp) -> Timestamp {
        Timestamp::from_unix(now.unix().saturating_sub(self.settings.resume_s))
    }

    /// Reads some entries of the log from a position on, at most up to `end`, on a thread of its own.
    pub(super) async fn entries(
        self: Arc<Self>,
        world: World,
        from: Position,
        end: Position,
    ) -> Result<Arc<[Arc<ChangeEntry>]>, HistoryFailure> {
        let Ok(_turn) = self.reads.acquire().await else { return Err(HistoryFailure::Unavailable) };
        let history = Arc::clone(&self.history);
        let oldest = self.oldest(self.clock.now().timestamp());
        let read = EntriesRead { world, epoch: from.epoch, from: from.sequence, to: end.sequence, oldest };
        let reading = tokio::task::spawn_blocking(move || history.entries(read));
        reading.await.unwrap_or(Err(HistoryFailure::Unavailable))
    }

    /// What a stream finds that continues after a position: what it says itself is not to be relied on.
    pub(super) async fn following(self: &Arc<Self>, world: World, since: Position, end: Position) -> Following {
        if since.epoch != end.epoch || since.is_after(end) {
            return Following::Gone;
        }
        let is_in_memory = || matches!(self.boards.feed(world).next(since, u64::MAX), NextChange::Entry(..));
        if since.sequence >= end.sequence || is_in_memory() {
            return Following::Kept;
        }
        match Arc::clone(self).entries(world, since, end).await {
            Ok(entries) if entries.iter().any(|entry| entry.sequence == since.sequence) => Following::Read(entries),
            // The stream tries again, and has no snapshot if that fails.
            Err(HistoryFailure::Unavailable) => Following::Kept,
            Ok(_) | Err(_) => Following::Gone,
        }
    }
}

/// What follows a position.
#[derive(Debug)]
pub(super) enum Following {
    /// In memory, if there is anything.
    Kept,
    /// These entries of the log.
    Read(Arc<[Arc<ChangeEntry>]>),
    /// The log does not have it: the stream begins anew.
    Gone,
}

/// One of the places for streams, until it is dropped.
#[derive(Debug)]
pub(super) struct StreamPlace {
    context: Arc<StreamContext>,
    _of_address: AddressCount,
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        self.context.counts().close();
    }
}
