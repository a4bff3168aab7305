//! What the store knows of each world's log between two commits: where it ends, and what it has mentioned.

use std::collections::BTreeMap;

use redb::{Database, ReadTransaction};

use super::encode::Dictionary;
use super::read::{Base, LogError, base_of, for_each_entry, pass_sport};
use crate::model::{Timestamp, World};
use crate::store::codec::{Flaw, MetaRow};
use crate::store::error::{DamageList, StoreError};
use crate::store::numbers::SportNumbers;
use crate::store::row_batch::begin;
use crate::store::scan::scan;
use crate::store::table_keys::{LogNumber, world_number};
use crate::store::tables::{KEYFRAMES, LOG, META, meta_log_key};

/// The logs of both worlds, by the number of [`World::index`].
pub(in crate::store) type Logs = [WorldLog; World::ALL.len()];

#[derive(Clone, Debug, Default)]
pub(in crate::store) struct WorldLog {
    pub(in crate::store) head: LogHead,
    /// The size of the entries that are not packed.
    pub(in crate::store) loose_bytes: u64,
    /// By the number of the sport.
    pub(in crate::store) sports: BTreeMap<u16, SportLog>,
    /// By the number of the sport: the event in the lines from which trimming goes on.
    pub(in crate::store) trimmed_lines: BTreeMap<u16, u32>,
}

/// Where a log ends, and how large it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogHead {
    /// Random. Another one means that entries were lost, or that the file was restored.
    pub epoch: u64,
    /// The first entry after the last loss of entries: it and those that follow are read without any before it.
    pub start: u64,
    /// The last entry that is in a pack; 0 if none is.
    pub packed: u64,
    /// The number of the next entry, from 1 on.
    pub next: u64,
    /// The sizes of the entries and of the keyframes.
    pub entry_bytes: u64,
    pub frame_bytes: u64,
    /// The changes in the entries.
    pub changes: u64,
}

/// A sport that the log mentions.
#[derive(Clone, Debug)]
pub(in crate::store) struct SportLog {
    pub(in crate::store) dictionary: Dictionary,
    pub(in crate::store) frame: LastFrame,
}

/// The last keyframe of a sport, and what came after it.
#[derive(Clone, Copy, Debug)]
pub(in crate::store) struct LastFrame {
    pub(in crate::store) sequence: u64,
    /// The keyframe that has the state, if this one only refers to it.
    pub(in crate::store) whole: u64,
    pub(in crate::store) whole_at: Timestamp,
    pub(in crate::store) at: Timestamp,
    pub(in crate::store) bytes: u64,
    /// The size of the sport's sections since.
    pub(in crate::store) bytes_since: u64,
    /// The size of all entries since, which a reader of the sport goes through.
    pub(in crate::store) log_bytes_since: u64,
}

impl LogHead {
    pub const fn bytes(&self) -> u64 {
        self.entry_bytes + self.frame_bytes
    }

    /// The row of a log that ends so, with its key.
    pub(in crate::store) fn seal(self, log: LogNumber) -> Result<(String, Vec<u8>), StoreError> {
        let LogHead { epoch, start, packed, next, entry_bytes, frame_bytes, changes } = self;
        let row = MetaRow::Log { epoch, start, packed, next, entry_bytes, frame_bytes, changes };
        seal_meta(meta_log_key(log), &row)
    }
}

pub(super) fn seal_meta(key: String, row: &MetaRow) -> Result<(String, Vec<u8>), StoreError> {
    let row = META.seal(&&*key, row).map_err(|error| StoreError::Refused(error.to_string()))?;
    Ok((key, row))
}

impl MetaRow {
    pub(in crate::store) fn log(&self) -> Result<LogHead, Flaw> {
        match *self {
            MetaRow::Log { epoch, start, packed, next, entry_bytes, frame_bytes, changes }
                if (1..=next).contains(&start) && packed < next =>
            {
                Ok(LogHead { epoch, start, packed, next, entry_bytes, frame_bytes, changes })
            }
            _ => Err(Flaw::Malformed),
        }
    }
}

/// Reads where the logs end. `None` for a world whose log must begin a new epoch: it has none yet, or rows of it that the
/// next entry depends on are damaged, which is reported.
pub(in crate::store) fn read_logs(
    txn: &ReadTransaction,
    sports: &SportNumbers,
    damage: &mut DamageList,
) -> Result<[Option<WorldLog>; World::ALL.len()], StoreError> {
    let mut logs = [None, None];
    for world in World::ALL {
        let Some(head) = read_head(txn, world_number(world))? else { continue };
        match read_log(txn, sports, world_number(world), head) {
            Ok(log) => logs[world.index()] = Some(log),
            Err(LogError::Damaged { table, row, flaw }) => damage.add(table, row, flaw),
            Err(other) => return Err(other.into_store()),
        }
    }
    Ok(logs)
}

/// Where a log ends by the row that says so, if that is sound.
pub(in crate::store) fn read_head(txn: &ReadTransaction, log: LogNumber) -> Result<Option<LogHead>, StoreError> {
    let key = meta_log_key(log);
    let mut head = None;
    // Loading reports damage.
    scan(&META, txn, &*key..=&*key, &mut DamageList::default(), |_, row| {
        head = Some(row.log()?);
        Ok(())
    })?;
    Ok(head)
}

/// The number that no entry of a world has had, whatever is damaged.
pub(in crate::store) fn next_free(txn: &ReadTransaction, world: World) -> Result<u64, StoreError> {
    let number = world_number(world);
    let last = txn.open_table(LOG.definition)?.range((number, 0)..=(number, u64::MAX))?.next_back();
    // A damaged row may be a pack of any number of entries; the head then says how many there were.
    let last = last.transpose()?.map_or(0, |(key, value)| {
        let count = LOG.unseal(&key.value(), value.value()).and_then(|row| row.count());
        key.value().1 + count.unwrap_or(1).max(1) - 1
    });
    let head = read_head(txn, number)?.map_or(1, |head| head.next);
    Ok(head.max(last.saturating_add(1)))
}

fn read_log(txn: &ReadTransaction, sports: &SportNumbers, world: u8, head: LogHead) -> Result<WorldLog, LogError> {
    let loose_bytes = loose_bytes(txn, world, head.packed)?;
    let mut log = WorldLog { head, loose_bytes, ..WorldLog::default() };
    for sport in sports.all() {
        if let Some(known) = read_sport_log(txn, (world, sport), head)? {
            log.sports.insert(sport, known);
        }
    }
    let first = log.sports.values().map(|sport| sport.frame.sequence).min().unwrap_or(head.next - 1);
    for_each_entry(txn, world, (first, head.next - 1), |_, entry| {
        if entry.sections.iter().all(|section| log.sports.contains_key(&section.sport)) {
            Ok(())
        } else {
            Err(Flaw::Invalid("it mentions a sport without a keyframe"))
        }
    })?;
    Ok(log)
}

/// What the next entry needs to know of a sport. The sports are read one after the other, although each reads the same
/// entries: the states of all of them at once would take the memory of the whole board again.
fn read_sport_log(txn: &ReadTransaction, sport: (u8, u16), head: LogHead) -> Result<Option<SportLog>, LogError> {
    let last = head.next - 1;
    let base = base_of(txn, sport, last)?.filter(|base| base.sequence + 1 >= head.start);
    let Some(Base { sequence, at, whole, whole_at, bytes, mut fold }) = base else { return Ok(None) };
    let (mut bytes_since, mut log_bytes_since) = (0, 0);
    for_each_entry(txn, sport.0, (sequence, last), |_, entry| {
        bytes_since += pass_sport(&mut fold, sport.1, entry)?;
        log_bytes_since += entry.bytes;
        Ok(())
    })?;
    let frame = LastFrame { sequence, whole, whole_at, at, bytes, bytes_since, log_bytes_since };
    Ok(Some(SportLog { dictionary: fold.dictionary(), frame }))
}

/// The size of the rows after the packs.
fn loose_bytes(txn: &ReadTransaction, world: u8, packed: u64) -> Result<u64, LogError> {
    let mut bytes = 0;
    for row in txn.open_table(LOG.definition)?.range((world, packed + 1)..=(world, u64::MAX))? {
        bytes += row?.1.value().len() as u64;
    }
    Ok(bytes)
}

/// Both logs: where one has no state, it begins a new epoch after every entry that the file has.
pub(in crate::store) fn fresh_logs(
    txn: &ReadTransaction,
    logs: [Option<WorldLog>; World::ALL.len()],
) -> Result<Logs, StoreError> {
    let mut fresh = Logs::default();
    for (world, log) in World::ALL.into_iter().zip(logs) {
        fresh[world.index()] = if let Some(log) = log {
            log
        } else {
            let (entry_bytes, frame_bytes, changes) = count_rows(txn, world_number(world))?;
            let (epoch, next) = (new_epoch()?, next_free(txn, world)?);
            let head = LogHead { epoch, start: next, packed: next - 1, next, entry_bytes, frame_bytes, changes };
            WorldLog { head, ..WorldLog::default() }
        };
    }
    Ok(fresh)
}

/// The sizes of a world's entries and keyframes, and how many changes they have.
fn count_rows(txn: &ReadTransaction, world: u8) -> Result<(u64, u64, u64), StoreError> {
    let (mut entry_bytes, mut frame_bytes, mut changes) = (0, 0, 0);
    for row in txn.open_table(LOG.definition)?.range((world, 0)..=(world, u64::MAX))? {
        let (key, value) = row?;
        entry_bytes += value.value().len() as u64;
        let row = LOG.unseal(&key.value(), value.value()).ok();
        let entries = row.and_then(|row| row.entries().ok()).unwrap_or_default();
        changes += entries.iter().filter_map(|entry| entry.view().ok()).map(|entry| entry.changes).sum::<u64>();
    }
    for row in txn.open_table(KEYFRAMES.definition)?.range((world, 0, 0)..=(world, u16::MAX, u64::MAX))? {
        frame_bytes += row?.1.value().len() as u64;
    }
    Ok((entry_bytes, frame_bytes, changes))
}

/// A random number that no earlier log of the file has had.
pub fn new_epoch() -> Result<u64, StoreError> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| StoreError::Io(std::io::Error::other(error)))?;
    Ok(u64::from_le_bytes(bytes))
}

/// Stores where the logs end.
pub(in crate::store) fn write_heads(db: &Database, heads: [LogHead; World::ALL.len()]) -> Result<(), StoreError> {
    let txn = begin(db)?;
    {
        let mut meta = txn.open_table(META.definition)?;
        for world in World::ALL {
            let (key, row) = heads[world.index()].seal(world_number(world))?;
            meta.insert(&*key, &*row)?;
        }
    }
    Ok(txn.commit()?)
}
