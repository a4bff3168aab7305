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

type StripKey = (World, SportId, BookId);

/// The ages seen, in seconds, the newest last.
#[derive(Debug, Default)]
pub(super) struct Strips(Mutex<BTreeMap<StripKey, VecDeque<u16>>>);

/// The strips as they are sent: by world, sport and bookmaker, as in `live/mma/betmgm`.
#[derive(Debug, Serialize)]
pub(super) struct Sent {
    /// How far apart two ages were taken.
    sample_s: u64,
    samples_max: usize,
    ages_s: BTreeMap<String, VecDeque<u16>>,
}

/// Looks at every source each half minute, until it is dropped.
pub(super) async fn sample(strips: &Strips, boards: &Boards, clock: &Clock) {
    let mut looks = tokio::time::interval(SAMPLE_EVERY);
    loop {
        looks.tick().await;
        strips.look(boards, clock.now().timestamp());
    }
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

    /// Every strip.
    pub(super) fn sent(&self, boards: &Boards) -> Sent {
        let strips = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let name = |(world, sport, book): StripKey| {
            let board = boards.load(world);
            format!("{world}/{}/{}", boards.catalogue()[sport].key, board.register().bookmakers().key(book))
        };
        let ages_s = strips.iter().map(|(key, ages)| (name(*key), ages.clone())).collect();
        Sent { sample_s: SAMPLE_EVERY.as_secs(), samples_max: SAMPLES_MAX, ages_s }
    }
}

fn sources(boards: &Boards) -> Vec<(StripKey, SourceState)> {
    let mut found = Vec::new();
    for world in World::ALL {
        let board = boards.load_full(world);
        for sport in boards.catalogue().sport_ids() {
            found.extend(board.sport(sport).sources().iter().map(|state| ((world, sport, state.bookmaker), *state)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{Index, Published, Register, SportBoard, WorldBoard};
    use crate::config::catalogue;
    use crate::model::{Bookmaker, Bookmakers, Regions, Source};
    use std::sync::Arc;

    /// Boards with one bookmaker, read at `read` in every sport of both worlds.
    fn boards(read: Timestamp) -> Boards {
        let catalogue = Arc::new(catalogue::builtin());
        let mut register = Bookmakers::default();
        let id = BookId::from_number(0);
        register.put(id, Arc::new(Bookmaker { key: "betmgm".into(), title: "BetMGM".into(), regions: Regions::ALL }));
        let books = Arc::new(Register::new(register));
        let source = Source { last_read: read, latency_ms: 5, empty_since: None };
        let world = || {
            let sport = |_| {
                let published = Published::new(Index::default(), Arc::clone(&books), Box::default(), 0);
                let sources = [SourceState { bookmaker: id, source, stale_after_s: 120 }];
                SportBoard::new(Index::default(), Arc::new(published), Arc::new(sources))
            };
            WorldBoard::new(catalogue.sport_ids().map(sport).collect(), Arc::clone(&books))
        };
        Boards::new(Arc::clone(&catalogue), [world(), world()])
    }

    #[test]
    fn ages_are_kept_for_an_hour_and_no_longer() {
        let (strips, read) = (Strips::default(), Timestamp::from_unix(1_000_000));
        let boards = boards(read);
        for sample in 0..SAMPLES_MAX + 5 {
            strips.look(&boards, read.plus_seconds(u32::try_from(sample).unwrap()));
        }
        let sent = strips.sent(&boards);
        let ages = &sent.ages_s["live/mma/betmgm"];
        assert_eq!((ages.len(), ages[0], ages[SAMPLES_MAX - 1]), (SAMPLES_MAX, 5, 124));
        strips.look(&self::boards(Timestamp::from_unix(1)), read);
        assert_eq!(strips.sent(&boards).ages_s["sandbox/golf/betmgm"].back(), Some(&u16::MAX));
    }
}
