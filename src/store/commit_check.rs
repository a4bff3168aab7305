//! Whether a commit that returned an error is in the file.
//!
//! An I/O error can come after the last byte was written: the commit then failed for the caller and is in the file
//! nevertheless. Once the file is open again, the rows that the batch would have left are compared with the stored ones.
//! A transaction is in the file as a whole or not at all, so one row that differs means that it was not committed.
//!
//! A wrong "committed" loses an acknowledged change, a wrong "not committed" only writes the same rows again. So the rows
//! of every table are compared, and a batch without anything to compare counts as not committed. Indexes that are derived
//! from rows in the same transaction (the coverage, the order of the keys) add nothing and are left out.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use redb::{Key, ReadTransaction, TableDefinition, Value};

use super::error::StoreError;
use super::row_batch::RowBatch;
use super::rows::StoredRow;
use super::table_keys::{BookKey, EventKey, OddsKey, TableKey, coverage_of, odds_of_event};
use super::tables::{COVERAGE, LINE_DAYS, LINE_EVENTS, LOG, ODDS, PendingRows, RowsVisitor, SCHEDULE, TICKS, Table};

impl RowBatch {
    /// Whether the file has every row as this batch leaves it. `sports` are the numbers of all sports in the file.
    pub(super) fn is_stored(&self, txn: &ReadTransaction, sports: &[u16]) -> Result<bool, StoreError> {
        // `keys_put` is the order of keys whose rows are compared.
        let RowBatch {
            rows,
            schedule,
            keys_put: _,
            gone_events,
            gone_books,
            ticks,
            line_events,
            line_days,
            reverts,
            cleared_logs,
        } = self;
        let mut check = CommitCheck { txn, compared: 0, differs: false };
        rows.visit(&mut check)?;
        check.compare(SCHEDULE.definition, schedule.iter().map(|(key, is_there)| (*key, is_there.then_some(()))))?;
        check.compare(TICKS.definition, ticks.iter().map(|(key, sequence)| (*key, Some(*sequence))))?;
        check.compare(LINE_EVENTS.definition, line_events.iter().map(|key| (*key, Some(()))))?;
        check.compare(LINE_DAYS.definition, line_days.iter().map(|(key, is_there)| (*key, is_there.then_some(()))))?;
        for world in cleared_logs {
            check.only(LOG.definition, (*world, 0)..=(*world, u64::MAX), |key| rows.log.contains_key(key))?;
        }
        for (world, first) in reverts {
            check.only(LOG.definition, (*world, *first)..=(*world, u64::MAX), |key| rows.log.contains_key(key))?;
        }
        check.gone_events(gone_events, &rows.odds)?;
        check.gone_books(gone_books, sports, &rows.odds)?;
        Ok(check.compared > 0 && !check.differs)
    }
}

struct CommitCheck<'t> {
    txn: &'t ReadTransaction,
    compared: u64,
    differs: bool,
}

impl RowsVisitor for CommitCheck<'_> {
    type Error = StoreError;

    fn rows<K: TableKey, R: StoredRow<K>>(
        &mut self,
        table: &Table<K, R>,
        rows: &PendingRows<K>,
    ) -> Result<(), StoreError> {
        self.compare(table.definition, rows.iter().map(|(key, row)| (K::borrowed(key), row.as_deref())))
    }
}

impl CommitCheck<'_> {
    /// Compares each row with the stored one; `None` stands for a row that must not exist.
    fn compare<'a, K: Key + 'static, V: Value + 'static>(
        &mut self,
        table: TableDefinition<'static, K, V>,
        rows: impl Iterator<Item = (K::SelfType<'a>, Option<V::SelfType<'a>>)>,
    ) -> Result<(), StoreError>
    where
        for<'v> V::SelfType<'v>: PartialEq,
    {
        let mut rows = rows.peekable();
        if self.differs || rows.peek().is_none() {
            return Ok(());
        }
        let table = self.txn.open_table(table)?;
        for (key, row) in rows {
            let stored = table.get(key)?;
            self.compared += 1;
            let is_same = match (&stored, &row) {
                (Some(stored), Some(row)) => V::as_bytes(&stored.value()).as_ref() == V::as_bytes(row).as_ref(),
                (None, None) => true,
                _ => false,
            };
            self.differs |= !is_same;
        }
        Ok(())
    }

    /// A removed event has only those records that the same batch put after its removal.
    fn gone_events(&mut self, gone: &BTreeSet<EventKey>, odds: &PendingRows<OddsKey>) -> Result<(), StoreError> {
        for event in gone {
            self.only(ODDS.definition, odds_of_event(*event), |key| odds.contains_key(key))?;
        }
        Ok(())
    }

    /// A removed bookmaker has only those prices that the same batch put after its removal.
    fn gone_books(
        &mut self,
        gone: &BTreeSet<BookKey>,
        sports: &[u16],
        odds: &PendingRows<OddsKey>,
    ) -> Result<(), StoreError> {
        for (world, book) in gone {
            for sport in sports {
                let range = coverage_of(*world, *sport, *book);
                self.only(COVERAGE.definition, range, |(world, sport, book, event, market)| {
                    odds.contains_key(&(*world, *sport, *event, *book, *market))
                })?;
            }
        }
        Ok(())
    }

    /// Every row of a range must be one that the batch itself put.
    fn only<K, V: Value + 'static>(
        &mut self,
        table: TableDefinition<'static, K, V>,
        range: RangeInclusive<K>,
        is_put: impl Fn(&K) -> bool,
    ) -> Result<(), StoreError>
    where
        K: for<'k> Key<SelfType<'k> = K> + 'static,
    {
        if self.differs {
            return Ok(());
        }
        let table = self.txn.open_table(table)?;
        self.compared += 1;
        for row in table.range::<K>(range)? {
            self.differs |= !is_put(&row?.0.value());
        }
        Ok(())
    }
}
