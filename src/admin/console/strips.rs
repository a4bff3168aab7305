//! How old each source's last good read was, over the last hour: looked at every so often, a bounded number of times
//! for a bounded number of sources.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;

use crate::board::{Boards, SourceState};
use crate::clock::Clock;
use crate::model::{BookId, SportId, Timestamp, World};

const SAMPLE_EVERY: Duration = Duration::from_secs(30);
const SAMPLES_MAX: usize = 120;
/// Far more than there are bookmakers and sports; whatever comes after is shown without a strip.
const SOURCES_MAX: usize = 4_000;

type SourceKey = (World, SportId, BookId);

/// The ages seen, in seconds, the newest last.
#[derive(Debug, Default)]
pub(super) struct Strips(Mutex<BTreeMap<SourceKey, VecDeque<u16>>>);

/// One source as it is shown.
#[derive(Debug, Serialize)]
pub(super) struct SourceView<'b> {
    pub world: &'static str,
    pub sport: &'b str,
    bookmaker: &'b str,
    title: &'b str,
    last_read: String,
    age_s: u32,
    latency_ms: u32,
    stale: bool,
    stale_after_s: u32,
    /// Ages in seconds, one each `sample_s`, the newest last.
    ages_s: Vec<u16>,
}

/// Looks at every source each half minute, until it is dropped.
pub(super) async fn sample(strips: &Strips, boards: &Boards, clock: &Clock) {
    let mut looks = tokio::time::interval(SAMPLE_EVERY);
    loop {
        looks.tick().await;
        strips.look(boards, clock.now().timestamp());
    }
}

pub(super) fn sample_s() -> u64 {
    SAMPLE_EVERY.as_secs()
}

impl Strips {
    fn look(&self, boards: &Boards, now: Timestamp) {
        let mut strips = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut seen = BTreeMap::new();
        for (key, state) in sources(boards) {
            if seen.len() == SOURCES_MAX {
                break;
            }
            let mut ages = strips.remove(&key).unwrap_or_default();
            if ages.len() == SAMPLES_MAX {
                ages.pop_front();
            }
            ages.push_back(u16::try_from(now.seconds_since(state.source.last_read)).unwrap_or(u16::MAX));
            seen.insert(key, ages);
        }
        // What is not there any more is forgotten.
        *strips = seen;
    }

    /// Hands every source with its strip to `visit`.
    pub(super) fn visit(&self, boards: &Boards, now: Timestamp, mut visit: impl FnMut(SourceView<'_>)) {
        let strips = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (key @ (world, sport, book), state) in sources(boards) {
            let board = boards.load_full(world);
            let register = board.books().register();
            visit(SourceView {
                world: world.name(),
                sport: &boards.catalogue()[sport].key,
                bookmaker: register.key(book),
                title: register.get(book).map_or("", |book| &book.title),
                last_read: state.source.last_read.to_string(),
                age_s: now.seconds_since(state.source.last_read),
                latency_ms: state.source.latency_ms,
                stale: state.is_stale(now),
                stale_after_s: state.stale_after_s,
                ages_s: strips.get(&key).map(|ages| ages.iter().copied().collect()).unwrap_or_default(),
            });
        }
    }
}

fn sources(boards: &Boards) -> Vec<(SourceKey, SourceState)> {
    let mut found = Vec::new();
    for world in World::ALL {
        let board = boards.load_full(world);
        for sport in boards.catalogue().sport_ids() {
            found.extend(board.sport(sport).sources().iter().map(|state| ((world, sport, state.bookmaker), *state)));
        }
    }
    found
}
