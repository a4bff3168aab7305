//! Writing imported histories into the file, and deleting those that are not listed.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use redb::{Key, ReadTransaction, ReadableDatabase, ReadableTable, TableDefinition, Value, WriteTransaction};

use super::builder::{ImportBuilder, PreparedImport};
use super::list::{ImportedLog, Imports};
use crate::model::{SportId, Timestamp, World};
use crate::store::error::StoreError;
use crate::store::handle::Store;
use crate::store::history::lines::LinesHead;
use crate::store::history::read::{LogError, first_logged, last_tick};
use crate::store::history::state::{WorldLog, read_head};
use crate::store::row_batch::begin;
use crate::store::table_keys::{LogNumber, world_number};
use crate::store::tables::{
    ENDS, KEYFRAMES, LINE_DAYS, LINE_EVENTS, LINES, LOG, META, TICKS, meta_lines_key, meta_log_key,
};

/// The most rows of each table that one call deletes.
const ROWS_MAX: usize = 256;
/// How far the beginning of the kept history must move before an import that is trimmed up to there is looked at again.
const TRIM_EVERY_S: u32 = 3600;

/// How far an imported history has been trimmed.
#[derive(Clone, Debug, Default)]
pub(in crate::store) struct ImportTrim {
    /// See [`WorldLog::trimmed_lines`].
    lines: BTreeMap<u16, u32>,
    /// Up to when it was trimmed when nothing was left to remove.
    done: Timestamp,
}

impl Store {
    /// Begins an imported history of a sport beside those of other imports that are under way, and returns the one that
    /// there is.
    pub fn begin_import(
        &self,
        world: World,
        sport: SportId,
        active: &[ImportedLog],
    ) -> Result<(ImportBuilder, Option<ImportedLog>), StoreError> {
        let refused = |reason: &str| StoreError::Refused(reason.to_owned());
        let number_of_sport = self.sports.number(sport).ok_or_else(|| refused("the sport is of another catalogue"))?;
        let number = self.reading(|_, file| free_number(&file.db.begin_read()?, active))?;
        let number = number.ok_or_else(|| refused("there is no room for another imported history"))?;
        let log = ImportedLog { number, world: world_number(world), sport: number_of_sport };
        let key = self.sports.key(number_of_sport).unwrap_or_default();
        let before = self.imports()?.of(world, number_of_sport);
        Ok((ImportBuilder::new(log, (sport, key), self.options().frame_bytes_min)?, before))
    }

    /// Commits a piece of an imported history.
    pub fn write_import(&mut self, prepared: &PreparedImport) -> Result<(), StoreError> {
        self.writing(|store| {
            let sports: Vec<u16> = store.sports.all().collect();
            prepared.0.commit(&store.file()?.db, &sports)
        })
    }

    /// Lists a history that is complete, unless another one than `before` is listed by now; returns whether it did.
    pub fn finish_import(&mut self, log: ImportedLog, before: Option<ImportedLog>) -> Result<bool, StoreError> {
        let is_listed = self.writing(|store| {
            let txn = begin(&store.file()?.db)?;
            {
                let mut meta = txn.open_table(META.definition)?;
                let mut imports = Imports::read_from(&meta)?;
                if imports.of_number(log.world, log.sport) != before {
                    return Ok(false);
                }
                imports.put(log);
                let (key, row) = imports.seal()?;
                meta.insert(&*key, &*row)?;
            }
            txn.commit()?;
            Ok(true)
        })?;
        // The number may have been that of another import.
        self.import_trims.remove(&log.number);
        self.history().note_rewrite();
        Ok(is_listed)
    }

    /// Deletes a piece of a history that is neither listed nor being written; returns whether there was one.
    pub fn delete_unlisted_history(&mut self, active: &[ImportedLog]) -> Result<bool, StoreError> {
        let unlisted = self.reading(|_, file| unlisted_number(&file.db.begin_read()?, active))?;
        let Some(number) = unlisted else { return Ok(false) };
        self.writing(|store| {
            let txn = begin(&store.file()?.db)?;
            delete_rows(&txn, LOG.definition, (number, 0)..=(number, u64::MAX))?;
            delete_rows(&txn, KEYFRAMES.definition, (number, 0, 0)..=(number, u16::MAX, u64::MAX))?;
            delete_rows(&txn, TICKS.definition, (number, 0, 0)..=(number, u16::MAX, u32::MAX))?;
            delete_rows(&txn, ENDS.definition, (number, 0, 0)..=(number, u16::MAX, u32::MAX))?;
            delete_rows(&txn, LINES.definition, (number, 0, 0, 0)..=(number, u16::MAX, u32::MAX, u32::MAX))?;
            delete_rows(&txn, LINE_EVENTS.definition, (number, 0, 0, 0)..=(number, u16::MAX, u64::MAX, u32::MAX))?;
            delete_rows(&txn, LINE_DAYS.definition, (number, 0, 0, 0)..=(number, u16::MAX, u32::MAX, u32::MAX))?;
            {
                let mut meta = txn.open_table(META.definition)?;
                meta.remove(&*meta_log_key(number))?;
                meta.remove(&*meta_lines_key(number))?;
            }
            Ok(txn.commit()?)
        })?;
        Ok(true)
    }

    /// Removes what is older than a time from the imported histories of a world, as far as one bounded step goes; returns whether
    /// it removed anything.
    pub fn trim_imports(&mut self, world: World, keep_from: Timestamp) -> Result<bool, StoreError> {
        for log in self.imports()?.iter().filter(|log| log.world == world_number(world)) {
            let (first, last, head) = self.reading(|_, file| {
                let txn = file.db.begin_read()?;
                let last = last_tick(&txn, (log.number, log.sport)).map_err(LogError::into_store)?;
                Ok((first_logged(&txn, log.number)?, last, read_head(&txn, log.number)?))
            })?;
            let (Some(head), true) = (head, first.is_some_and(|first| first < keep_from)) else { continue };
            // Its last prices must not be taken for those of a part of the own log that is removed next.
            if last.is_none_or(|last| last < keep_from) {
                return self.unlist_import(log);
            }
            let mut progress = self.import_trims.get(&log.number).cloned().unwrap_or_default();
            if keep_from.seconds_since(progress.done) < TRIM_EVERY_S {
                continue;
            }
            let mut trimmed = WorldLog { head, trimmed_lines: progress.lines, ..WorldLog::default() };
            let has_more = self.trim_log(log.number, keep_from, &mut trimmed)?.anything;
            progress.lines = trimmed.trimmed_lines;
            if !has_more {
                progress.done = keep_from;
            }
            self.import_trims.insert(log.number, progress);
            if has_more {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The second of the first entry that a world has imported.
    pub fn first_imported(&self, world: World) -> Result<Option<Timestamp>, StoreError> {
        self.reading(|_, file| {
            let txn = file.db.begin_read()?;
            let mut first = None;
            for log in Imports::read(&txn)?.iter().filter(|log| log.world == world_number(world)) {
                first = [first, first_logged(&txn, log.number)?].into_iter().flatten().min();
            }
            Ok(first)
        })
    }

    /// The bytes of a world's lines, and of its imported histories.
    pub fn bytes_beside_log(&self, world: World) -> Result<u64, StoreError> {
        self.reading(|_, file| {
            let txn = file.db.begin_read()?;
            let mut bytes = LinesHead::read(&txn, world_number(world))?.size.total();
            for log in Imports::read(&txn)?.iter().filter(|log| log.world == world_number(world)) {
                bytes += read_head(&txn, log.number)?.unwrap_or_default().bytes();
                bytes += LinesHead::read(&txn, log.number)?.size.total();
            }
            Ok(bytes)
        })
    }

    /// Takes a history from the list; returns whether it was listed.
    pub fn unlist_import(&mut self, log: ImportedLog) -> Result<bool, StoreError> {
        let was_listed = self.writing(|store| {
            let txn = begin(&store.file()?.db)?;
            {
                let mut meta = txn.open_table(META.definition)?;
                let imports = Imports::read_from(&meta)?;
                if !imports.iter().any(|listed| listed == log) {
                    return Ok(false);
                }
                let (key, row) = imports.without(log.number).seal()?;
                meta.insert(&*key, &*row)?;
            }
            txn.commit()?;
            Ok(true)
        })?;
        self.import_trims.remove(&log.number);
        self.history().note_rewrite();
        Ok(was_listed)
    }

    fn imports(&self) -> Result<Imports, StoreError> {
        self.reading(|_, file| Imports::read(&file.db.begin_read()?))
    }
}

/// A number that no log has, not even one that is to be deleted.
fn free_number(txn: &ReadTransaction, active: &[ImportedLog]) -> Result<Option<LogNumber>, StoreError> {
    let imports = Imports::read(txn)?;
    for number in imported_numbers() {
        let is_taken = imports.has(number) || active.iter().any(|log| log.number == number);
        if !is_taken && first_with_rows(txn, number)? != Some(number) {
            return Ok(Some(number));
        }
    }
    Ok(None)
}

fn unlisted_number(txn: &ReadTransaction, active: &[ImportedLog]) -> Result<Option<LogNumber>, StoreError> {
    let imports = Imports::read(txn)?;
    let mut from = Some(*imported_numbers().start());
    while let Some(number) = from.map(|from| first_with_rows(txn, from)).transpose()?.flatten() {
        if !imports.has(number) && !active.iter().any(|log| log.number == number) {
            return Ok(Some(number));
        }
        from = number.checked_add(1);
    }
    Ok(None)
}

/// The numbers after those of the worlds.
fn imported_numbers() -> RangeInclusive<LogNumber> {
    let worlds = World::ALL.map(world_number).into_iter().max().unwrap_or(0);
    worlds + 1..=LogNumber::MAX
}

/// The first number from one on that has rows.
fn first_with_rows(txn: &ReadTransaction, from: LogNumber) -> Result<Option<LogNumber>, StoreError> {
    let (log, frames) = (txn.open_table(LOG.definition)?, txn.open_table(KEYFRAMES.definition)?);
    let (ends, lines) = (txn.open_table(ENDS.definition)?, txn.open_table(LINES.definition)?);
    let (ticks, events) = (txn.open_table(TICKS.definition)?, txn.open_table(LINE_EVENTS.definition)?);
    let first = [
        log.range((from, 0)..)?.next().transpose()?.map(|(key, _)| key.value().0),
        frames.range((from, 0, 0)..)?.next().transpose()?.map(|(key, _)| key.value().0),
        ticks.range((from, 0, 0)..)?.next().transpose()?.map(|(key, _)| key.value().0),
        ends.range((from, 0, 0)..)?.next().transpose()?.map(|(key, _)| key.value().0),
        lines.range((from, 0, 0, 0)..)?.next().transpose()?.map(|(key, _)| key.value().0),
        events.range((from, 0, 0, 0)..)?.next().transpose()?.map(|(key, _)| key.value().0),
    ];
    Ok(first.into_iter().flatten().min())
}

fn delete_rows<K, V: Value + 'static>(
    txn: &WriteTransaction,
    table: TableDefinition<'static, K, V>,
    range: RangeInclusive<K>,
) -> Result<(), StoreError>
where
    K: for<'k> Key<SelfType<'k> = K> + Clone + 'static,
{
    let mut table = txn.open_table(table)?;
    let mut gone: Vec<K> = Vec::new();
    for row in table.range::<K>(range)?.take(ROWS_MAX) {
        gone.push(row?.0.value());
    }
    for key in gone {
        table.remove(key)?;
    }
    Ok(())
}
