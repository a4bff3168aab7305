//! Rendered answers: their bytes, their compressed forms and their validators, and the bounded cache of them that each
//! snapshot owns.

use std::any::Any;
use std::convert::Infallible;
use std::hash::Hash;
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use foldhash::fast::RandomState;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{Options, OptionsBuilder, Weighter};
use xxhash_rust::xxh3::xxh3_128;

use super::query::Cursor;
use crate::attachment::Attachment;

/// How a body is encoded on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encoding {
    Identity,
    Gzip,
    Zstd,
}

/// Smaller bodies are sent uncompressed: they would hardly shrink.
pub const COMPRESS_BYTES_MIN: usize = 512;
const GZIP_LEVEL: u32 = 4;
const ZSTD_LEVEL: i32 = 1;

/// The memory of a cached body apart from its content.
const ENTRY_BYTES: usize = 512;

/// A rendered answer. Each encoding is a representation of its own, with a strong validator of its own.
#[derive(Debug)]
pub struct Body {
    identity: Bytes,
    /// Of the content; the validators are derived from it.
    hash: u128,
    /// The validator of each encoding as its user keeps it, made on first use.
    etags: [Attachment; 3],
    gzip: OnceLock<Bytes>,
    zstd: OnceLock<Bytes>,
    next: Option<Cursor>,
    /// How many records it has, where that was counted.
    rows: usize,
}

impl Body {
    /// `next` is where the following page begins, if there is one.
    pub fn new(json: impl Into<Bytes>, next: Option<Cursor>) -> Self {
        let identity = json.into();
        let hash = xxh3_128(&identity);
        Body { identity, hash, etags: Default::default(), gzip: OnceLock::new(), zstd: OnceLock::new(), next, rows: 0 }
    }

    #[must_use]
    pub(crate) fn with_rows(self, rows: usize) -> Self {
        Body { rows, ..self }
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    pub fn next(&self) -> Option<&Cursor> {
        self.next.as_ref()
    }

    pub fn len(&self) -> usize {
        self.identity.len()
    }

    pub fn is_empty(&self) -> bool {
        self.identity.is_empty()
    }

    pub fn is_worth_compressing(&self) -> bool {
        self.identity.len() >= COMPRESS_BYTES_MIN
    }

    /// The validator of an encoding, quotes included, as what `make` makes of its text. `make` runs once for each body
    /// and encoding.
    pub(crate) fn etag<T: Any + Clone + Send + Sync>(&self, encoding: Encoding, make: impl FnOnce(String) -> T) -> T {
        let suffix = match encoding {
            Encoding::Identity => "",
            Encoding::Gzip => "-gzip",
            Encoding::Zstd => "-zstd",
        };
        self.etags[encoding as usize].get_or_make(|| make(format!("\"{:032x}{suffix}\"", self.hash)))
    }

    /// The bytes in an encoding; compressed at most once.
    pub fn bytes(&self, encoding: Encoding) -> &Bytes {
        match encoding {
            Encoding::Identity => &self.identity,
            Encoding::Gzip => self.gzip.get_or_init(|| gzip(&self.identity)),
            Encoding::Zstd => self.zstd.get_or_init(|| zstd(&self.identity)),
        }
    }
}

fn gzip(bytes: &[u8]) -> Bytes {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(GZIP_LEVEL));
    in_memory(encoder.write_all(bytes).and_then(|()| encoder.finish()))
}

fn zstd(bytes: &[u8]) -> Bytes {
    in_memory(zstd::bulk::compress(bytes, ZSTD_LEVEL))
}

/// Compressing in memory does not fail. If it ever does, an empty body with a strong validator would be a wrong answer
/// that caches keep, so the request is aborted instead.
#[expect(clippy::panic, reason = "no sound answer can be given, and the listener contains a panic to its connection")]
fn in_memory(result: std::io::Result<Vec<u8>>) -> Bytes {
    match result {
        Ok(bytes) => bytes.into(),
        Err(error) => panic!("compression in memory failed: {error}"),
    }
}

/// A cache of rendered answers, or of what several answers are rendered from, within a bound of bytes and within the bound of
/// all caches together.
#[derive(Debug)]
pub(crate) struct Bodies<Q, V = Body> {
    cache: Cache<Q, Arc<V>, Weigh, RandomState>,
    share: CacheShare,
}

/// What one cache adds to the memory of all.
#[derive(Debug)]
struct CacheShare {
    bytes: AtomicU64,
    all: &'static CachedBytes,
}

impl CacheShare {
    fn set(&self, bytes: u64) {
        let before = self.bytes.swap(bytes, Ordering::Relaxed);
        // Wraps to the right sum, whichever is larger.
        self.all.bytes.fetch_add(bytes.wrapping_sub(before), Ordering::Relaxed);
    }
}

impl Drop for CacheShare {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// The memory of several caches. Each snapshot of a sport has its own, so that a bound for each is none for all.
#[derive(Debug)]
pub(crate) struct CachedBytes {
    bytes: AtomicU64,
    max: u64,
}

/// Every cache of current boards in this process.
pub(crate) static ALL_CACHED: CachedBytes = CachedBytes::new(256 << 20);
/// Those of boards as of a time, so that history takes no room from current answers.
pub(crate) static PAST_CACHED: CachedBytes = CachedBytes::new(64 << 20);

impl CachedBytes {
    const fn new(max: u64) -> Self {
        CachedBytes { bytes: AtomicU64::new(0), max }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) >= self.max
    }
}

#[derive(Clone, Debug)]
struct Weigh;

impl<Q: HeapBytes, V: KeptBytes> Weighter<Q, Arc<V>> for Weigh {
    fn weight(&self, query: &Q, body: &Arc<V>) -> u64 {
        (body.kept_bytes() + size_of::<Q>() + query.heap_bytes()) as u64
    }
}

/// The memory of a cached value.
pub(crate) trait KeptBytes {
    fn kept_bytes(&self) -> usize;
}

impl KeptBytes for Body {
    /// Both compressed forms together stay well below half of the text.
    fn kept_bytes(&self) -> usize {
        self.identity.len() + self.identity.len() / 2 + ENTRY_BYTES + self.next.heap_bytes()
    }
}

/// The heap memory that a value owns. Clients decide how long a query is, so the bound must count it.
pub(crate) trait HeapBytes {
    fn heap_bytes(&self) -> usize;
}

impl<T: HeapBytes> HeapBytes for Option<T> {
    fn heap_bytes(&self) -> usize {
        self.as_ref().map_or(0, HeapBytes::heap_bytes)
    }
}

/// What a cached answer is expected to take at least.
const ENTRY_BYTES_EXPECTED: u64 = 4 << 10;
/// Each has its part of the bytes, in which the largest answers need room.
const SHARDS: usize = 2;

/// A full cache keeps an answer whose query comes again while it is remembered. As many queries are remembered as half of the
/// entries that are expected: with fewer than a client has in turn, none of their answers would ever be kept.
#[expect(clippy::expect_used, reason = "both values that it requires are set")]
fn cache_options(bytes_max: u64) -> Options {
    let entries = usize::try_from(bytes_max / ENTRY_BYTES_EXPECTED).unwrap_or(usize::MAX);
    let mut options = OptionsBuilder::new();
    options.shards(SHARDS).estimated_items_capacity(entries).weight_capacity(bytes_max);
    options.build().expect("a size and an estimate")
}

impl<Q: Eq + Hash + Clone + HeapBytes, V: KeptBytes> Bodies<Q, V> {
    pub(crate) fn new(bytes_max: u64) -> Self {
        Bodies::among(&ALL_CACHED, bytes_max)
    }

    pub(crate) fn among(all: &'static CachedBytes, bytes_max: u64) -> Self {
        let options = cache_options(bytes_max);
        let cache = Cache::with_options(options, Weigh, RandomState::default(), DefaultLifecycle::default());
        Bodies { cache, share: CacheShare { bytes: AtomicU64::new(0), all } }
    }

    /// The memory in use, queries included.
    pub(crate) fn kept_bytes(&self) -> u64 {
        self.cache.weight()
    }

    /// The answer to a query, if it is cached.
    pub(crate) fn get(&self, query: &Q) -> Option<Arc<V>> {
        self.cache.get(query)
    }

    /// The answer to a query, rendered if it is not cached. Concurrent requests for it wait for one rendering. While all
    /// caches together are full, the answer is not cached: the next publication frees the caches of its sport.
    pub(crate) fn get_or_render(&self, query: &Q, render: impl FnOnce() -> V) -> Arc<V> {
        if let Some(body) = self.get(query) {
            return body;
        }
        if self.share.all.is_full() {
            return Arc::new(render());
        }
        let body = match self.cache.get_or_insert_with(query, || Ok::<_, Infallible>(Arc::new(render()))) {
            Ok(body) => body,
            Err(never) => match never {},
        };
        self.share.set(self.kept_bytes());
        body
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::query::{EventIds, EventScope, Limit, OddsQuery};
    use crate::model::EventId;

    #[test]
    fn long_queries_count_toward_the_bound() {
        const BYTES_MAX: u64 = 1 << 20;
        let bodies = Bodies::new(BYTES_MAX);
        for query in 0..1000 {
            let ids = (0..EventIds::MAX).map(|id| EventId::new(&format!("{query:060}-{id:060}")).unwrap());
            let query = {
                let scope = EventScope { events: Some(EventIds::new(ids.collect())), ..EventScope::default() };
                OddsQuery { scope, ..OddsQuery::default() }
            };
            bodies.get_or_render(&query, || Body::new("[]", None));
        }
        let ids_bytes =
            |query: OddsQuery| query.scope.events.unwrap().iter().map(|id| id.as_str().len() as u64).sum::<u64>();
        let kept: u64 = bodies.cache.iter().map(|(query, _)| ids_bytes(query)).sum();
        assert!(bodies.cache.len() > 10, "{} are kept", bodies.cache.len());
        assert!(kept < bodies.kept_bytes() && bodies.kept_bytes() <= BYTES_MAX, "{kept} bytes of ids are kept");
    }

    #[test]
    fn answers_asked_for_in_turn_are_cached_however_many_were_asked_for_once() {
        let bodies = Bodies::new(4 << 20);
        let rendered = |query: usize| {
            let mut is_rendered = false;
            let from = EventId::new(&query.to_string()).unwrap();
            bodies.get_or_render(&from, || {
                is_rendered = true;
                Body::new(vec![b' '; 8 << 10], None)
            });
            usize::from(is_rendered)
        };
        assert_eq!((1_000..3_000).map(rendered).sum::<usize>(), 2_000);
        // About a quarter of what has room.
        let round = || (0..80).map(rendered).sum::<usize>();
        let (first, _) = (round(), round());
        assert_eq!((first, round()), (80, 0));
    }

    #[test]
    fn nothing_is_cached_while_all_caches_are_full() {
        static ALL: CachedBytes = CachedBytes::new(10_000);
        let of = |limit: u64| OddsQuery { limit: Limit::new(limit).unwrap(), ..OddsQuery::default() };
        let large = || Body::new(vec![b' '; 10_000], None);
        let (first, second) = (Bodies::among(&ALL, 1 << 20), Bodies::among(&ALL, 1 << 20));
        first.get_or_render(&of(1), large);
        assert!(ALL.is_full());
        second.get_or_render(&of(1), large);
        first.get_or_render(&of(2), large);
        assert_eq!((first.cache.len(), second.cache.len()), (1, 0));
        drop(first);
        assert_eq!(ALL.bytes.load(Ordering::Relaxed), 0);
        second.get_or_render(&of(1), large);
        assert_eq!(second.cache.len(), 1);
    }
}
