//! Upkeep of the keyframes: a new one when what a reader has to go through since the last one has become too much.

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

/// The changes of a sport since its keyframe take at most so many times the bytes of the keyframe.
const OUTGROWN: u64 = 4;
/// A reader of one sport skips at most so many bytes of the others.
const LOG_BYTES_MAX: u64 = 4 << 20;
/// Old history is removed up to a keyframe, so there is one in every piece of this length.
const EVERY_S: u32 = 6 * 3600;
/// A keyframe that others refer to keeps the log of all sports from being trimmed beyond it: after so long they have the state again.
const WHOLE_EVERY_S: u32 = 86_400;

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
        let Some(due) = due_frame(&logs, self.options().frame_bytes_min, now) else {
            self.put_logs(logs);
            return Ok(false);
        };
        self.writing(|store| {
            let world = world_number(due.world);
            let key: KeyframeKey = (world, due.sport, due.last);
            let log = &mut logs[due.world.index()];
            let sealed = seal_frame(key, &store.frame(due, now)?)?;
            let mut batch = RowBatch::default();
            log.head.frame_bytes += sealed.len() as u64;
            if let Some(sport) = log.sports.get_mut(&due.sport) {
                let before = sport.frame;
                // One that only refers to another is of no use once the next one does.
                if due.same_as.is_some() && before.whole != before.sequence {
                    batch.rows.keyframes.insert((world, due.sport, before.sequence), None);
                    // It was as long as its successor, give or take a byte.
                    log.head.frame_bytes = log.head.frame_bytes.saturating_sub(sealed.len() as u64);
                }
                let sequence = due.last;
                let after = LastFrame { sequence, at: now, bytes_since: 0, log_bytes_since: 0, ..before };
                sport.frame = match due.same_as {
                    Some(_) => after,
                    None => LastFrame { whole: sequence, whole_at: now, bytes: sealed.len() as u64, ..after },
                };
            }
            batch.rows.keyframes.insert(key, Some(sealed));
            let (key, head) = log.head.seal(world)?;
            batch.rows.meta.insert(key, Some(head));
            let sports: Vec<u16> = store.sports.all().collect();
            batch.commit(&store.file()?.db, &sports)
        })?;
        self.put_logs(logs);
        Ok(true)
    }
}

impl Store {
    /// The keyframe that is due: read from the file, so that it is what readers of the log would get.
    fn frame(&self, due: DueFrame, now: Timestamp) -> Result<KeyframeRow, StoreError> {
        if let Some(whole) = due.same_as {
            return Ok(KeyframeRow::new(now, Frame::SameAs(whole)));
        }
        let sport = (world_number(due.world), due.sport);
        let folded = self
            .reading(|_, file| fold_to(&file.db.begin_read()?, sport, due.last).map_err(LogError::into_store))?
            .ok_or_else(|| StoreError::Refused("the log has no keyframe to go on from".to_owned()))?;
        Ok(KeyframeRow::new(now, Frame::Whole(&folded.to_keyframe(now).map_err(refused)?)))
    }
}

/// Whether changes of so many bytes are worth another keyframe, after one of so many.
pub(super) fn is_outgrown(bytes_since: u64, bytes: u64, bytes_min: u64) -> bool {
    bytes_since > OUTGROWN * bytes.max(bytes_min)
}

fn due_frame(logs: &super::Logs, bytes_min: u64, now: Timestamp) -> Option<DueFrame> {
    World::ALL.into_iter().find_map(|world| {
        let log = &logs[world.index()];
        let last = log.head.next - 1;
        log.sports.iter().find_map(|(sport, known)| {
            let LastFrame { sequence, whole, whole_at, at, bytes, bytes_since, log_bytes_since } = known.frame;
            let has_outgrown = is_outgrown(bytes_since, bytes, bytes_min) || log_bytes_since > LOG_BYTES_MAX;
            // A clock that was set back must not postpone it for ever.
            let is_old = now.seconds_since(at) >= EVERY_S || at > now.plus_seconds(EVERY_S);
            let is_due = sequence < last && (has_outgrown || is_old);
            let is_same = bytes_since == 0 && now.seconds_since(whole_at) < WHOLE_EVERY_S;
            let same_as = is_same.then_some(whole);
            is_due.then_some(DueFrame { world, sport: *sport, last, same_as })
        })
    })
}
