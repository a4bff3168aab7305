//! Writing lines: what the log has of a sport, once more in the order of events.
//!
//! A step goes from one keyframe of a sport to the next, so its size is bounded. It is prepared from a read transaction,
//! beside the writer, and committed in one transaction together with how far the lines go: killed at any time, they are
//! complete up to there, and the step is prepared again. Lines hold nothing that the log does not: if they are damaged
//! they are deleted, and written again.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use redb::{ReadTransaction, ReadableDatabase, ReadableTable, ReadableTableMetadata, WriteTransaction};

use super::event::id_hash;
use super::follow::{Follower, PartStart};
use super::keys::LineKeys;
use super::pieces::put_block;
use crate::model::{Timestamp, World};
use crate::store::codec::{Flaw, MetaRow, TooLong};
use crate::store::error::StoreError;
use crate::store::handle::Store;
use crate::store::history::fold::SportFold;
use crate::store::history::import::Imports;
use crate::store::history::read::{LogError, base_of, first_frame, fold_from, next_frame};
use crate::store::history::reader::LogId;
use crate::store::history::state::{read_head, seal_meta};
use crate::store::row_batch::{RowBatch, begin};
use crate::store::table_keys::{LogNumber, world_number};
use crate::store::tables::{
    ENDS, KEYFRAMES, LINE_DAYS, LINE_EVENTS, LINE_KEYS, LINES, LOG, META, is_meta_lines, meta_lines_key,
};

/// How large the lines of a world are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineBytes {
    /// The changes of records.
    pub lines: u64,
    /// The events, with their openings and closing prices.
    pub ends: u64,
}

impl LineBytes {
    pub const fn total(self) -> u64 {
        self.lines + self.ends
    }

    /// Replaces one size by another.
    pub(super) fn replace(&mut self, old: LineBytes, new: LineBytes) {
        self.lines = self.lines.saturating_sub(old.lines) + new.lines;
        self.ends = self.ends.saturating_sub(old.ends) + new.ends;
    }
}

/// How far the lines of a world go, and how large they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::store) struct LinesHead {
    /// By the number of the sport: the entry up to which its lines are complete.
    pub(in crate::store) through: BTreeMap<u16, u64>,
    pub(in crate::store) size: LineBytes,
}

impl LinesHead {
    /// The row of lines that go so far, with its key.
    pub(in crate::store) fn seal(&self, log: LogNumber) -> Result<(String, Vec<u8>), StoreError> {
        let through = self.through.iter().map(|(sport, sequence)| (*sport, *sequence)).collect();
        let row = MetaRow::Lines { through, line_bytes: self.size.lines, end_bytes: self.size.ends };
        seal_meta(meta_lines_key(log), &row)
    }

    /// Without the row, or with one that is damaged, all lines are written again.
    pub(in crate::store) fn read(txn: &ReadTransaction, log: LogNumber) -> Result<Self, StoreError> {
        LinesHead::read_from(&txn.open_table(META.definition)?, log)
    }

    pub(in crate::store) fn read_from(
        meta: &impl ReadableTable<&'static str, &'static [u8]>,
        log: LogNumber,
    ) -> Result<Self, StoreError> {
        let key = meta_lines_key(log);
        let row = meta.get(&*key)?.and_then(|row| META.unseal(&&*key, row.value()).ok());
        Ok(match row {
            Some(MetaRow::Lines { through, line_bytes, end_bytes }) => {
                let size = LineBytes { lines: line_bytes, ends: end_bytes };
                LinesHead { through: through.into_iter().collect(), size }
            }
            _ => LinesHead::default(),
        })
    }
}

/// A part of a sport's log.
#[derive(Debug)]
pub(super) struct Part {
    /// It has the entries after this one, up to another.
    pub(super) after: u64,
    pub(super) to: u64,
    /// The sport before the first of them, and as of when.
    pub(super) start: SportFold,
    pub(super) at: Timestamp,
    /// Whether the lines lack something before it, which the log no longer has.
    pub(super) is_after_gap: bool,
}

impl Part {
    pub(super) fn read(
        txn: &ReadTransaction,
        sport: (u8, u16),
        (after, to): (u64, u64),
        is_after_gap: bool,
    ) -> Result<Self, LogError> {
        let (at, start) = match base_of(txn, sport, after)? {
            Some(base) => (base.at, fold_from(txn, sport, base, after)?),
            None => Default::default(),
        };
        Ok(Part { after, to, start, at, is_after_gap })
    }
}

/// The entry from which the lines of a sport go on, and whether they lack something before it. `None` if the log does not
/// mention the sport.
pub(super) fn end_of_lines(
    txn: &ReadTransaction,
    sport: (u8, u16),
    lines: &LinesHead,
) -> Result<Option<(u64, bool)>, LogError> {
    let first = first_frame(txn, sport)?;
    let through = lines.through.get(&sport.1);
    Ok(first.map(|first| through.map_or((first, false), |through| (first.max(*through), *through < first))))
}

/// A step that only has to be committed: see [`Store::write_lines`].
#[derive(Debug)]
pub struct PreparedLines {
    log: LogNumber,
    before: Version,
    outcome: Outcome,
}

#[derive(Debug)]
enum Outcome {
    Rows(Box<RowBatch>),
    /// Rows of the lines are damaged.
    Damaged(String),
}

/// Prepares a step for a sport that has one, out of the sports of these numbers.
pub(in crate::store) fn prepare_lines(
    txn: &ReadTransaction,
    log: LogNumber,
    sports: impl Iterator<Item = u16>,
    is_closing: &AtomicBool,
) -> Result<Option<PreparedLines>, LogError> {
    let before = version(txn, log)?;
    let prepared = |outcome| Ok(Some(PreparedLines { log, before: before.clone(), outcome }));
    if before.lines == LinesHead::default() && has_lines(txn, log)? {
        return prepared(Outcome::Damaged("how far they go is not known".to_owned()));
    }
    for sport in sports {
        let key = (log, sport);
        let Some((after, is_after_gap)) = end_of_lines(txn, key, &before.lines)? else { continue };
        let Some(to) = next_frame(txn, key, after)? else { continue };
        let step = |range, is_after_gap| {
            let part = Part::read(txn, key, range, is_after_gap)?;
            rows_of(txn, key, part, before.lines.clone(), is_closing)
        };
        let rows = step((after, to), is_after_gap).or_else(|error| {
            let LogError::Damaged { table, row, flaw } = &error else { return Err(error) };
            if !is_of_log(table) {
                return Err(error);
            }
            tracing::warn!("{table} {row} is damaged ({flaw}): the lines of events lack what it says");
            // They go on from the keyframe after it; if that is damaged too, the next step finds it so, and goes on from a later one.
            step((to, to), true).or_else(|error| match error {
                LogError::Damaged { table, .. } if is_of_log(table) => passed(key, to, before.lines.clone()),
                error => Err(error),
            })
        });
        return match rows {
            Ok(rows) => prepared(Outcome::Rows(Box::new(rows))),
            Err(damaged @ LogError::Damaged { .. }) => prepared(Outcome::Damaged(damaged.to_string())),
            Err(other) => Err(other),
        };
    }
    Ok(None)
}

/// Whether it is a table that lines are written from.
fn is_of_log(table: &str) -> bool {
    [LOG.name, KEYFRAMES.name].contains(&table)
}

/// The row that says that the lines of a sport go up to a keyframe.
fn passed(sport: (LogNumber, u16), to: u64, mut head: LinesHead) -> Result<RowBatch, LogError> {
    head.through.insert(sport.1, to);
    let mut batch = RowBatch::default();
    let (key, row) = head.seal(sport.0)?;
    batch.rows.meta.insert(key, Some(row));
    Ok(batch)
}

/// What a step depends on: the epoch of the log, how far the lines go, and how many keys they have in all logs.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Version {
    epoch: u64,
    lines: LinesHead,
    keys: u64,
}

fn version(txn: &ReadTransaction, log: LogNumber) -> Result<Version, StoreError> {
    let epoch = read_head(txn, log)?.map_or(0, |head| head.epoch);
    let keys = txn.open_table(LINE_KEYS.definition)?.len()?;
    Ok(Version { epoch, lines: LinesHead::read(txn, log)?, keys })
}

fn has_lines(txn: &ReadTransaction, log: LogNumber) -> Result<bool, LogError> {
    let mut all = txn.open_table(ENDS.definition)?.range((log, 0, 0)..=(log, u16::MAX, u32::MAX))?;
    Ok(all.next().transpose()?.is_some())
}

/// The rows that a part of the log adds to the lines.
fn rows_of(
    txn: &ReadTransaction,
    sport: (LogNumber, u16),
    part: Part,
    mut head: LinesHead,
    is_closing: &AtomicBool,
) -> Result<RowBatch, LogError> {
    head.through.insert(sport.1, part.to);
    let (start, keys) = (PartStart::new(part), LineKeys::read(txn)?);
    let mut follower = Follower::new(txn, sport, (&start, &keys), is_closing);
    follower.follow()?;
    let refused = |flaw: Flaw| StoreError::Refused(format!("the lines of an event cannot be written: {flaw}"));
    let too_long = |error: TooLong| StoreError::Refused(error.to_string());
    let mut batch = RowBatch::default();
    batch.rows.line_keys = follower.keys.new_rows()?;
    for event in follower.events.values_mut().filter(|event| event.has_changed()) {
        let blocks = event.changed_blocks().map_err(refused)?;
        let mut size = LineBytes::default();
        let key = (sport.0, sport.1, event.number);
        for (number, bytes) in &blocks {
            let before = event.stored_block.filter(|(stored, _)| stored == number).map_or(0, |(_, pieces)| pieces);
            size.lines += put_block(key, (*number, bytes), before, &mut batch).map_err(too_long)?.bytes;
        }
        let row = ENDS.seal(&key, &event.ends.encode().map_err(refused)?).map_err(too_long)?;
        size.ends += row.len() as u64;
        head.size.replace(event.stored, size);
        batch.rows.ends.insert(key, Some(row));
        let day = event.ends.day();
        for (day, is_there) in [(event.stored_day, false), (Some(day), true)] {
            batch.line_days.extend(day.map(|day| ((sport.0, sport.1, day, event.number), is_there)));
        }
        if event.is_new {
            batch.line_events.insert((sport.0, sport.1, id_hash(event.ends.event.id.as_str()), event.number));
        }
    }
    let (key, row) = head.seal(sport.0)?;
    batch.rows.meta.insert(key, Some(row));
    Ok(batch)
}

impl Store {
    /// A log whose lines lack something that it has up to a keyframe.
    pub fn log_without_lines(&self) -> Result<Option<LogId>, StoreError> {
        self.reading(|store, file| {
            let txn = file.db.begin_read()?;
            let imported: Vec<LogNumber> = Imports::read(&txn)?.iter().map(|log| log.number).collect();
            for log in World::ALL.map(world_number).into_iter().chain(imported) {
                let lines = LinesHead::read(&txn, log)?;
                for (_, sport) in store.sports.served() {
                    let key = (log, sport);
                    let end = end_of_lines(&txn, key, &lines).map_err(LogError::into_store)?;
                    let next =
                        end.map(|(after, _)| next_frame(&txn, key, after)).transpose().map_err(LogError::into_store)?;
                    if next.flatten().is_some() {
                        return Ok(Some(LogId(log)));
                    }
                }
            }
            Ok(None)
        })
    }

    /// Commits a step that `HistoryReader::prepare_lines` prepared.
    pub fn write_lines(&mut self, prepared: &PreparedLines) -> Result<(), StoreError> {
        self.writing(|store| {
            let now = store.reading(|_, file| version(&file.db.begin_read()?, prepared.log))?;
            // Something was removed since: the step is prepared again.
            if now != prepared.before {
                return Ok(());
            }
            match &prepared.outcome {
                Outcome::Rows(batch) => {
                    let sports: Vec<u16> = store.sports.all().collect();
                    batch.commit(&store.file()?.db, &sports)
                }
                Outcome::Damaged(reason) => {
                    tracing::warn!(reason, "the lines of events are damaged: writing them again from the log");
                    let txn = begin(&store.file()?.db)?;
                    delete_lines(&txn)?;
                    txn.commit()?;
                    store.history().note_rewrite();
                    Ok(())
                }
            }
        })
    }

    /// The size of a world's lines.
    pub fn line_bytes(&self, world: World) -> Result<LineBytes, StoreError> {
        self.reading(|_, file| Ok(LinesHead::read(&file.db.begin_read()?, world_number(world))?.size))
    }
}

/// Deletes the lines of every log: they are written again from it.
pub(in crate::store) fn delete_lines(txn: &WriteTransaction) -> Result<(), StoreError> {
    for log in 0..=LogNumber::MAX {
        delete_lines_of(txn, log)?;
    }
    txn.open_table(META.definition)?.retain(|key, _| !is_meta_lines(key))?;
    txn.open_table(LINE_KEYS.definition)?.retain(|_, _| false)?;
    Ok(())
}

/// Deletes the lines of a world.
pub(in crate::store) fn delete_lines_of(txn: &WriteTransaction, world: u8) -> Result<(), StoreError> {
    let all = (world, 0, 0, 0)..=(world, u16::MAX, u32::MAX, u32::MAX);
    txn.open_table(LINES.definition)?.retain_in(all, |_, _| false)?;
    txn.open_table(ENDS.definition)?.retain_in((world, 0, 0)..=(world, u16::MAX, u32::MAX), |_, _| false)?;
    let all = (world, 0, 0, 0)..=(world, u16::MAX, u64::MAX, u32::MAX);
    txn.open_table(LINE_EVENTS.definition)?.retain_in(all, |_, ()| false)?;
    let all = (world, 0, 0, 0)..=(world, u16::MAX, u32::MAX, u32::MAX);
    txn.open_table(LINE_DAYS.definition)?.retain_in(all, |_, ()| false)?;
    Ok(())
}
