//! Turning an entry into rows, and taking back one that was refused.

use std::collections::{BTreeMap, BTreeSet};

use redb::{ReadableTable, WriteTransaction};

use super::encode::SectionEncoder;
use super::entry::{LogEntry, SportChanges};
use super::fold::SportFold;
use super::lines::delete_lines_of;
use super::row::{EntryBytes, Frame, KeyframeRow, LogRow};
use super::state::{LastFrame, SportLog, WorldLog};
use super::ticks::ticks_of;
use crate::store::codec::Flaw;
use crate::store::error::StoreError;
use crate::store::table_keys::{KeyframeKey, LogKey, TickKey};
use crate::store::tables::{KEYFRAMES, LOG, TICKS};

/// The rows of one entry.
#[derive(Debug)]
pub(in crate::store) struct LogWrite {
    pub(in crate::store) entry: (LogKey, Vec<u8>),
    pub(in crate::store) ticks: Vec<(TickKey, u64)>,
    /// The empty keyframes of sports that the log has not mentioned before.
    pub(in crate::store) keyframes: Vec<(KeyframeKey, Vec<u8>)>,
}

impl WorldLog {
    /// Appends an entry, whose sports come with their numbers and in the order of their keys. The log of a world that
    /// failed to commit it must be read again.
    pub(in crate::store) fn append(
        &mut self,
        world: u8,
        entry: &LogEntry,
        sports: &[(u16, &SportChanges)],
    ) -> Result<LogWrite, StoreError> {
        let (at, sequence) = (entry.at, self.head.next);
        let (mut sections, mut ticks, mut keyframes) = (Vec::new(), Vec::new(), Vec::new());
        let mut changes = 0;
        for (number, sport) in sports {
            if !self.sports.contains_key(number) {
                let key = (world, *number, sequence - 1);
                let row = seal_frame(key, &empty_frame(at)?)?;
                self.head.frame_bytes += row.len() as u64;
                keyframes.push((key, row));
                self.sports.insert(*number, SportLog::empty(key.2, at));
            }
            let Some(log) = self.sports.get_mut(number) else { continue };
            let section = SectionEncoder::new(&mut log.dictionary, at).encode(sport);
            let section = section.map_err(|error| StoreError::Refused(error.to_string()))?;
            log.frame.bytes_since += section.bytes.len() as u64;
            ticks.extend(section.tick.map(|tick| ((world, *number, tick.unix()), sequence)));
            changes += sport.events.len() as u64 + sport.tick.as_ref().map_or(0, |tick| tick.records.len() as u64);
            sections.push((*number, section));
        }
        let key = (world, sequence);
        let row = LOG.seal(&key, &LogRow::loose(&EntryBytes::new(at, changes, &sections)));
        let row = row.map_err(|error| StoreError::Refused(format!("the entry of the log is too long: {error}")))?;
        self.head.next += 1;
        self.head.entry_bytes += row.len() as u64;
        self.loose_bytes += row.len() as u64;
        for sport in self.sports.values_mut() {
            sport.frame.log_bytes_since += row.len() as u64;
        }
        self.head.changes += changes;
        Ok(LogWrite { entry: (key, row), ticks, keyframes })
    }
}

impl SportLog {
    pub(super) fn empty(sequence: u64, at: crate::model::Timestamp) -> Self {
        let (whole, whole_at) = (sequence, at);
        let frame = LastFrame { sequence, whole, whole_at, at, bytes: 0, bytes_since: 0, log_bytes_since: 0 };
        SportLog { dictionary: SportFold::default().dictionary(), frame }
    }
}

fn empty_frame(at: crate::model::Timestamp) -> Result<KeyframeRow, StoreError> {
    let bytes = SportFold::default().to_keyframe(at).map_err(refused)?;
    Ok(KeyframeRow::new(at, Frame::Whole(&bytes)))
}

pub(super) fn refused(flaw: Flaw) -> StoreError {
    StoreError::Refused(format!("the keyframe cannot be written: {flaw}"))
}

pub(super) fn seal_frame(key: KeyframeKey, row: &KeyframeRow) -> Result<Vec<u8>, StoreError> {
    let sealed = KEYFRAMES.seal(&key, row);
    sealed.map_err(|error| StoreError::Refused(format!("the keyframe is too long: {error}")))
}

/// Entries to take back: all of a world from a number on. They were refused, and are in the file nevertheless.
pub(in crate::store) type Revert = BTreeMap<u8, u64>;

pub(in crate::store) fn write_ticks(txn: &WriteTransaction, ticks: &BTreeMap<TickKey, u64>) -> Result<(), StoreError> {
    if ticks.is_empty() {
        return Ok(());
    }
    let mut table = txn.open_table(TICKS.definition)?;
    for (key, sequence) in ticks {
        table.insert(*key, *sequence)?;
    }
    Ok(())
}

pub(in crate::store) fn write_reverts(txn: &WriteTransaction, reverts: &Revert) -> Result<(), StoreError> {
    for (world, first) in reverts {
        let mut log = txn.open_table(LOG.definition)?;
        let mut ticks = txn.open_table(TICKS.definition)?;
        let mut gone = Vec::new();
        for row in log.range((*world, *first)..=(*world, u64::MAX))? {
            let (key, value) = row?;
            let key: LogKey = key.value();
            for (tick, _) in LOG.unseal(&key, value.value()).iter().flat_map(|row| ticks_of(key, row)) {
                ticks.remove(tick)?;
            }
            gone.push(key);
        }
        for key in gone {
            log.remove(key)?;
        }
    }
    Ok(())
}

/// Deletes the whole log of worlds.
pub(in crate::store) fn clear_logs(txn: &WriteTransaction, worlds: &BTreeSet<u8>) -> Result<(), StoreError> {
    for world in worlds {
        txn.open_table(LOG.definition)?.retain_in((*world, 0)..=(*world, u64::MAX), |_, _| false)?;
        txn.open_table(KEYFRAMES.definition)?.retain_in((*world, 0, 0)..=(*world, u16::MAX, u64::MAX), |_, _| false)?;
        txn.open_table(TICKS.definition)?.retain_in((*world, 0, 0)..=(*world, u16::MAX, u32::MAX), |_, _| false)?;
        delete_lines_of(txn, *world)?;
    }
    Ok(())
}
