//! Reading history. The log is read on threads of its own, never on those that answer requests, and within bounds: so many
//! readings at a time in all, and so many for each key.
//!
//! An endpoint that needs something of the log stops with [`Stop::NeedsHistory`], unless it is in memory. The caller of
//! `handle` reads it and handles the request again, which then finds it.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use foldhash::HashMap;
use tokio::sync::Semaphore;

use super::error::{ApiError, Code};
use super::reply::Content;
use super::work::BodyJob;
use crate::board::{AsOf, ChangeEntry};
use crate::http::stream::StreamPlan;
use crate::keys::{KeyId, SportAccess};
use crate::model::{EventId, EventLines, MarketFilter, Permanence, Timestamp, World};

/// Readings at a time, over all keys.
const READS_MAX: usize = 4;
/// Readings at a time of one key.
const READS_OF_KEY_MAX: u8 = 2;
/// How long a reading waits for its turn.
const PATIENCE: Duration = Duration::from_secs(10);

/// Access to the log.
pub trait History: fmt::Debug + Send + Sync {
    /// What a reading would find, if it is in memory.
    fn kept(&self, read: AsOfRead) -> Option<AsOf>;

    /// Reads the file.
    fn as_of(&self, read: AsOfRead) -> Result<AsOf, HistoryFailure>;

    /// Reads the lines of an event from the file; `None` if the log does not know the event.
    fn lines(&self, read: &LinesRead) -> Result<Option<EventLines>, HistoryFailure>;

    /// Reads the opening and closing prices of events from the file: lines without points.
    fn closing(&self, read: &ClosingRead) -> Result<Vec<EventLines>, HistoryFailure>;

    /// Finds the entries of an hour.
    fn hour(&self, read: HourRead) -> Result<HourEntries, HistoryFailure>;

    /// Reads entries from one on: some of them, at least one.
    fn entries(&self, read: EntriesRead) -> Result<Arc<[Arc<ChangeEntry>]>, HistoryFailure>;
}

/// Entries of a world's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntriesRead {
    pub world: World,
    pub epoch: u64,
    pub from: u64,
    /// The first one that is not wanted.
    pub to: u64,
    /// What is older than this is gone.
    pub oldest: Timestamp,
}

/// The hour of a sport that begins at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HourRead {
    pub access: SportAccess,
    pub start: Timestamp,
}

/// The entries of an hour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HourEntries {
    /// In the order of time: an hour may begin in an imported history and end in the world's own.
    pub runs: Vec<HourRun>,
    pub permanence: Permanence,
}

/// Entries of one log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HourRun {
    /// Of the log.
    pub epoch: u64,
    pub first: u64,
    /// The first one that is not of the hour.
    pub end: u64,
}

/// A sport as of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AsOfRead {
    pub access: SportAccess,
    pub time: Timestamp,
    pub shown: Shown,
}

/// What of a sport is shown as of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shown {
    /// Its prices: as of a publication.
    Prices,
    /// Its events and scores, which change between publications too.
    Lists,
}

/// The lines of an event.
#[derive(Clone, Debug)]
pub struct LinesRead {
    pub access: SportAccess,
    pub event: EventId,
    pub bookmakers: BTreeSet<Box<str>>,
    pub markets: MarketFilter,
    /// The points that are needed at least: see [`LinesQuery::range`].
    ///
    /// [`LinesQuery::range`]: crate::board::LinesQuery::range
    pub range: (Option<Timestamp>, Option<Timestamp>),
}

/// The opening and closing prices of events.
#[derive(Clone, Debug)]
pub struct ClosingRead {
    pub access: SportAccess,
    pub of: ClosingOf,
    pub bookmakers: BTreeSet<Box<str>>,
    pub markets: MarketFilter,
    /// More than this is not read.
    pub rows_max: usize,
}

/// Which events the closing prices are read of.
#[derive(Clone, Debug)]
pub enum ClosingOf {
    Events(BTreeSet<EventId>),
    /// Those that start on a UTC day, counted from 1970.
    Day(u32),
}

/// Why history cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HistoryFailure {
    /// It is older than what is kept. What is kept begins here.
    Gone { since: Option<Timestamp> },
    /// The file cannot be read now.
    Unavailable,
    /// The log is damaged there.
    Damaged,
    /// More than is read at once.
    TooMuch,
}

impl From<HistoryFailure> for ApiError {
    fn from(failure: HistoryFailure) -> Self {
        match failure {
            HistoryFailure::Gone { since: Some(since) } => {
                let since = String::from_utf8_lossy(&since.iso()).into_owned();
                let message = format!("The history of this sport does not reach back to that: it begins at {since}.");
                ApiError::new(Code::HistoryGone, message)
            }
            HistoryFailure::Gone { since: None } => {
                ApiError::new(Code::HistoryGone, "No history of this sport is kept.")
            }
            HistoryFailure::Unavailable => ApiError::overloaded(),
            HistoryFailure::Damaged => ApiError::internal(),
            HistoryFailure::TooMuch => {
                let message = "This history is too much to be read at once: name fewer markets, or one bookmaker.";
                ApiError::new(Code::InvalidParameter, message)
            }
        }
    }
}

/// A service without a log.
#[derive(Debug)]
pub(crate) struct NoHistory;

impl History for NoHistory {
    fn kept(&self, _: AsOfRead) -> Option<AsOf> {
        None
    }

    fn as_of(&self, _: AsOfRead) -> Result<AsOf, HistoryFailure> {
        Err(HistoryFailure::Gone { since: None })
    }

    fn lines(&self, _: &LinesRead) -> Result<Option<EventLines>, HistoryFailure> {
        Ok(None)
    }

    fn closing(&self, _: &ClosingRead) -> Result<Vec<EventLines>, HistoryFailure> {
        Ok(Vec::new())
    }

    fn hour(&self, _: HourRead) -> Result<HourEntries, HistoryFailure> {
        Err(HistoryFailure::Gone { since: None })
    }

    fn entries(&self, _: EntriesRead) -> Result<Arc<[Arc<ChangeEntry>]>, HistoryFailure> {
        Err(HistoryFailure::Gone { since: None })
    }
}

/// What was read for a request.
#[derive(Debug)]
pub(crate) enum Finished {
    AsOf(Result<AsOf, HistoryFailure>),
    Content(Result<Content, ApiError>),
}

/// What has to be read for a request.
pub(crate) enum HistoryRead {
    AsOf(AsOfRead),
    /// The whole answer. What is long is also rendered away from the threads that answer requests.
    Content(ContentJob),
}

pub(crate) type ContentJob = Box<dyn FnOnce(&dyn History) -> Result<Content, ApiError> + Send>;

impl HistoryRead {
    fn read(self, history: &dyn History) -> Finished {
        match self {
            HistoryRead::AsOf(read) => Finished::AsOf(history.as_of(read)),
            HistoryRead::Content(job) => Finished::Content(job(history)),
        }
    }
}

impl fmt::Debug for HistoryRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HistoryRead::AsOf(read) => f.debug_tuple("AsOf").field(read).finish(),
            HistoryRead::Content(_) => f.write_str("Content(…)"),
        }
    }
}

/// Why an endpoint has no content.
#[derive(Debug)]
pub(crate) enum Stop {
    Failed(ApiError),
    NeedsHistory(HistoryRead),
    /// Its body has to be computed first.
    NeedsWork(BodyJob),
    /// It is answered with a stream.
    Opens(Box<StreamPlan>),
}

impl From<ApiError> for Stop {
    fn from(error: ApiError) -> Self {
        Stop::Failed(error)
    }
}

/// The log, and who is reading it.
#[derive(Debug)]
pub(crate) struct HistoryReads {
    history: Arc<dyn History>,
    turns: Arc<Semaphore>,
    by_key: Arc<Mutex<HashMap<KeyId, u8>>>,
}

impl HistoryReads {
    pub(crate) fn new(history: Arc<dyn History>) -> Self {
        HistoryReads { history, turns: Arc::new(Semaphore::new(READS_MAX)), by_key: Arc::default() }
    }

    pub(crate) fn kept(&self, read: AsOfRead) -> Option<AsOf> {
        self.history.kept(read)
    }

    /// Reads where it is called.
    #[cfg(test)]
    pub(crate) fn read_here(&self, read: HistoryRead) -> Finished {
        read.read(&*self.history)
    }

    /// Reads on a thread of its own, once it is this reading's turn. A client that leaves meanwhile still takes up its
    /// place until the reading has ended.
    pub(crate) async fn read(&self, key: &KeyId, read: HistoryRead) -> Result<Finished, ApiError> {
        let place = KeyPlace::take(&self.by_key, key).ok_or_else(too_many)?;
        let turn = tokio::time::timeout(PATIENCE, Arc::clone(&self.turns).acquire_owned()).await;
        let Ok(Ok(turn)) = turn else { return Err(ApiError::overloaded()) };
        let history = Arc::clone(&self.history);
        let reading = tokio::task::spawn_blocking(move || {
            let _held = (place, turn);
            read.read(&*history)
        });
        reading.await.map_err(|_| ApiError::internal())
    }
}

fn too_many() -> ApiError {
    let message =
        "This key already has two history requests in progress. Try again when one of them has been answered.";
    ApiError::new(Code::RateLimited, message).retry_after(1)
}

/// One of the readings of a key, until it is dropped.
#[derive(Debug)]
struct KeyPlace {
    by_key: Arc<Mutex<HashMap<KeyId, u8>>>,
    key: KeyId,
}

impl KeyPlace {
    fn take(by_key: &Arc<Mutex<HashMap<KeyId, u8>>>, key: &KeyId) -> Option<Self> {
        let mut places = by_key.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = places.entry(key.clone()).or_default();
        if *taken == READS_OF_KEY_MAX {
            return None;
        }
        *taken += 1;
        Some(KeyPlace { by_key: Arc::clone(by_key), key: key.clone() })
    }
}

impl Drop for KeyPlace {
    fn drop(&mut self) {
        let mut places = self.by_key.lock().unwrap_or_else(PoisonError::into_inner);
        match places.get_mut(&self.key) {
            Some(taken) if *taken > 1 => *taken -= 1,
            _ => {
                places.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// A log whose readings end when the test says so.
    #[derive(Debug)]
    struct SlowHistory(Mutex<mpsc::Receiver<()>>);

    impl History for SlowHistory {
        fn kept(&self, _: AsOfRead) -> Option<AsOf> {
            None
        }

        fn as_of(&self, _: AsOfRead) -> Result<AsOf, HistoryFailure> {
            self.0.lock().unwrap().recv().unwrap();
            Err(HistoryFailure::Gone { since: None })
        }

        fn lines(&self, _: &LinesRead) -> Result<Option<EventLines>, HistoryFailure> {
            Ok(None)
        }

        fn closing(&self, _: &ClosingRead) -> Result<Vec<EventLines>, HistoryFailure> {
            Ok(Vec::new())
        }

        fn hour(&self, _: HourRead) -> Result<HourEntries, HistoryFailure> {
            Err(HistoryFailure::Gone { since: None })
        }

        fn entries(&self, _: EntriesRead) -> Result<Arc<[Arc<ChangeEntry>]>, HistoryFailure> {
            Err(HistoryFailure::Gone { since: None })
        }
    }

    #[tokio::test]
    async fn third_reading_of_a_key_is_refused_until_one_ends() {
        let fixture = crate::http::testing::Fixture::new();
        let keys = fixture.service.keyring.load();
        let grant = keys.authenticate(Some(fixture.production.as_bytes()), fixture.clock.now()).unwrap();
        let sport = fixture.service.boards.catalogue().find("mma").unwrap();
        let access = grant.for_sport(sport).unwrap();
        let read = || HistoryRead::AsOf(AsOfRead { access, time: Timestamp::from_unix(0), shown: Shown::Prices });
        let (end, ends) = mpsc::channel();
        let reads = HistoryReads::new(Arc::new(SlowHistory(Mutex::new(ends))));
        let [one, other] = ["key_000000000001", "key_000000000002"].map(|id| KeyId::new(id).unwrap());
        let first = [reads.read(&one, read()), reads.read(&one, read())].map(Box::pin);
        let [mut first, mut second] = first;
        for reading in [&mut first, &mut second] {
            assert!(is_pending(reading).await, "it waits");
        }
        let refused = reads.read(&one, read()).await.unwrap_err();
        assert_eq!((refused.code, refused.retry_after_s), (Code::RateLimited, Some(1)));
        let mut others = Box::pin(reads.read(&other, read()));
        assert!(is_pending(&mut others).await, "another key has places of its own");
        // A client that leaves does not free the place of a reading that goes on.
        drop(first);
        assert_eq!(reads.read(&one, read()).await.unwrap_err().code, Code::RateLimited);
        (0..3).for_each(|_| end.send(()).unwrap());
        assert!(matches!(second.await, Ok(Finished::AsOf(Err(HistoryFailure::Gone { .. })))));
        assert!(others.await.is_ok());
        while !reads.by_key.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        end.send(()).unwrap();
        assert!(reads.read(&one, read()).await.is_ok(), "all places are free again");
    }

    /// Polls a reading once.
    async fn is_pending<T>(reading: &mut (impl Future<Output = T> + Unpin)) -> bool {
        std::future::poll_fn(|context| {
            let pending = std::pin::Pin::new(&mut *reading).poll(context).is_pending();
            std::task::Poll::Ready(pending)
        })
        .await
    }
}
