//! Whether a commit that returned an error is in the file.
//!
//! An I/O error can come after the last byte was written: the commit then failed for the caller and is in the file all
//! the same. Once the file is open again, the rows that the batch would have left are compared with the rows that are
//! there. A transaction is in the file as a whole or not at all, so one row that differs means that it was not kept.
//!
//! A wrong "kept" loses an acknowledged change, a wrong "not kept" only writes the same rows again. So every table that
//! a batch writes is compared, and a batch without anything to compare counts as not kept. Tables that are derived from
//! others in the same transaction (the index of open records, the order of the keys) say nothing more and are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use redb::{Key, ReadTransaction, TableDefinition, Value};

use super::batch::Batch;
use super::error::StoreError;
use super::tables::{
    AUDIT, BOOKS, BUDGETS, BookKey, COVERAGE, EVENTS, EventKey, FEEDERS, KEYS, META, NAMES, ODDS, OddsKey, POLLS,
    SCHEDULE, SCORES, SOURCES, SourceKey, USAGE, coverage_of, odds_of_event,
};

impl Batch {
    /// Whether the file has every row as this batch leaves it. `sports` are the numbers of all sports in the file.
    pub(super) fn is_stored(&self, txn: &ReadTransaction, sports: &[u16]) -> Result<bool, StoreError> {
        let Batch {
            meta,
            names,
            books,
            events,
            schedule,
            scores,
            odds,
            sources,
            polls,
            keys,
            // The order of `keys`, which are compared.
            keys_put: _,
            gone_keys,
            usage,
            feeders,
            budgets,
            audit,
            gone_events,
            gone_books,
        } = self;
        let mut check = CommitCheck { txn, compared: 0, differs: false };
        check.rows(AUDIT.definition, audit.iter().map(|(key, row)| (*key, Some(&**row))))?;
        check.rows(META.definition, meta.iter().map(|(key, row)| (&**key, row.as_deref())))?;
        check.rows(KEYS.definition, keys.iter().map(|(key, row)| (&**key, Some(&**row))))?;
        check.rows(KEYS.definition, gone_keys.iter().map(|key| (&**key, None)))?;
        check.rows(USAGE.definition, usage.iter().map(|(key, row)| (&**key, Some(&**row))))?;
        check.rows(USAGE.definition, gone_keys.iter().map(|key| (&**key, None)))?;
        check.rows(FEEDERS.definition, feeders.iter().map(|(key, row)| (&**key, Some(&**row))))?;
        check.rows(BUDGETS.definition, budgets.iter().map(|(key, row)| (&**key, row.as_deref())))?;
        check.rows(NAMES.definition, names.iter().map(|(key, row)| (*key, Some(&**row))))?;
        check.rows(BOOKS.definition, books.iter().map(|(key, row)| (*key, Some(&**row))))?;
        check.rows(EVENTS.definition, events.iter().map(|(key, row)| (*key, Some(&**row))))?;
        check.rows(SCHEDULE, schedule.iter().map(|(key, is_there)| (*key, is_there.then_some(()))))?;
        check.rows(SCORES.definition, scores.iter().map(|(key, row)| (*key, Some(&**row))))?;
        check.rows(SOURCES.definition, sources.iter().map(|(key, row)| (*key, row.as_deref())))?;
        let polls = polls.iter().map(|((world, scope, event), row)| ((*world, &**scope, &**event), row.as_deref()));
        check.rows(POLLS.definition, polls)?;
        check.rows(ODDS.definition, odds.iter().map(|(key, row)| (*key, row.as_deref())))?;
        check.gone_events(gone_events, events, scores, odds)?;
        check.gone_books(gone_books, sports, sources, odds)?;
        Ok(check.compared > 0 && !check.differs)
    }
}

struct CommitCheck<'t> {
    txn: &'t ReadTransaction,
    compared: u64,
    differs: bool,
}

impl CommitCheck<'_> {
    /// Compares each row with the one in the table; `None` stands for a row that must not be there.
    fn rows<'a, K: Key + 'static, V: Value + 'static>(
        &mut self,
        table: TableDefinition<'static, K, V>,
        rows: impl Iterator<Item = (K::SelfType<'a>, Option<V::SelfType<'a>>)>,
    ) -> Result<(), StoreError>
    where
        for<'v> V::SelfType<'v>: PartialEq,
    {
        if self.differs {
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

    /// A removed event has only those rows that the same batch put after its removal.
    fn gone_events(
        &mut self,
        gone: &BTreeSet<EventKey>,
        events: &BTreeMap<EventKey, Vec<u8>>,
        scores: &BTreeMap<EventKey, Vec<u8>>,
        odds: &BTreeMap<OddsKey, Option<Vec<u8>>>,
    ) -> Result<(), StoreError> {
        let without = |put: &BTreeMap<EventKey, Vec<u8>>| {
            let gone: Vec<_> = gone.iter().filter(|event| !put.contains_key(event)).collect();
            gone.into_iter().map(|event| (*event, None))
        };
        self.rows(EVENTS.definition, without(events))?;
        self.rows(SCORES.definition, without(scores))?;
        for event in gone {
            self.only(ODDS.definition, odds_of_event(*event), |key| odds.contains_key(key))?;
        }
        Ok(())
    }

    /// A removed bookmaker has only those sources and prices that the same batch put after its removal.
    fn gone_books(
        &mut self,
        gone: &BTreeSet<BookKey>,
        sports: &[u16],
        sources: &BTreeMap<SourceKey, Option<Vec<u8>>>,
        odds: &BTreeMap<OddsKey, Option<Vec<u8>>>,
    ) -> Result<(), StoreError> {
        for (world, book) in gone {
            for sport in sports {
                let source = (*world, *sport, *book);
                self.only(SOURCES.definition, source..=source, |key| sources.contains_key(key))?;
                self.only(COVERAGE, coverage_of(*world, *sport, *book), |(world, sport, book, event, market)| {
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
