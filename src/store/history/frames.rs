//! Upkeep of the keyframes: a new one when the entries since the last have outgrown it, and every hour.

use redb::ReadableDatabase;

use super::read::{LogError, fold_to};
use super::row::{Frame, KeyframeRow};
use super::state::LastFrame;
use super::write::{refused, seal_frame};
use crate::model::{Timestamp, World};
use crate::store::error::StoreError;
use crate::store::handle::Store;
use crate::store::row_batch::RowBatch;
use crate::store::table_keys::{KeyframeKey, world_number};
use crate::store::tables::{META, meta_log_key};

/// A reading of a sport goes through at most so much time of the log.
const EVERY_S: u32 = 3600;
/// A keyframe is not worth its row for less than this.
const BYTES_MIN: u64 = 4096;

/// A keyframe that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DueFrame {
    world: World,
    sport: u16,
    last: u64,
    /// The entry whose keyframe has the same state.
    same_as: Option<u64>,
}

impl Store {
    /// Writes the keyframe that is most overdue, and returns whether there was one.
    pub fn write_due_keyframe(&mut self, now: Timestamp) -> Result<bool, StoreError> {
        let mut logs = self.take_logs()?;
        let Some(due) = due_frame(&logs, now) else {
            self.put_logs(logs);
            return Ok(false);
        };
        self.writing(|store| {
            let world = world_number(due.world);
            let key: KeyframeKey = (world, due.sport, due.last);
            let log = &mut logs[due.world.index()];
            let row = match due.same_as {
                Some(whole) => KeyframeRow::new(now, Frame::SameAs(whole)),
                None => {
                    let folded = store.reading(|_, file| {
                        fold_to(&file.db.begin_read()?, (world, due.sport), due.last).map_err(LogError::into_store)
                    })?;
                    let bytes = folded.unwrap_or_default().to_keyframe(now).map_err(refused)?;
                    KeyframeRow::new(now, Frame::Whole(&bytes))
                }
            };
            let mut batch = RowBatch::default();
            let sealed = seal_frame(key, &row)?;
            log.head.bytes += sealed.len() as u64;
            if let Some(sport) = log.sports.get_mut(&due.sport) {
                let before = sport.frame;
                // One that only refers to another is of no use once the next one does.
                if due.same_as.is_some() && before.whole != before.sequence {
                    batch.rows.keyframes.insert((world, due.sport, before.sequence), None);
                }
                let (whole, bytes) = match due.same_as {
                    Some(whole) => (whole, before.bytes),
                    None => (due.last, sealed.len() as u64),
                };
                sport.frame = LastFrame { sequence: due.last, whole, at: now, bytes, bytes_since: 0 };
            }
            batch.rows.keyframes.insert(key, Some(sealed));
            let head = META.seal(&meta_log_key(due.world), &log.head.row());
            let head = head.map_err(|error| StoreError::Refused(error.to_string()))?;
            batch.rows.meta.insert(meta_log_key(due.world).to_owned(), Some(head));
            let sports: Vec<u16> = store.sports.all().collect();
            batch.commit(&store.file()?.db, &sports)
        })?;
        self.put_logs(logs);
        Ok(true)
    }
}

fn due_frame(logs: &super::Logs, now: Timestamp) -> Option<DueFrame> {
    World::ALL.into_iter().find_map(|world| {
        let log = &logs[world.index()];
        let last = log.head.next - 1;
        log.sports.iter().find_map(|(sport, known)| {
            let LastFrame { sequence, whole, at, bytes, bytes_since } = known.frame;
            let has_outgrown = bytes_since > bytes.max(BYTES_MIN);
            // A clock that was set back must not postpone it for ever.
            let is_old = now.seconds_since(at) >= EVERY_S || at > now.plus_seconds(EVERY_S);
            let is_due = sequence < last && (has_outgrown || is_old);
            let same_as = (bytes_since == 0).then_some(whole);
            is_due.then_some(DueFrame { world, sport: *sport, last, same_as })
        })
    })
}
