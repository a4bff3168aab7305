//! The keys of bookmakers and markets in lines. They are numbered once and never renumbered, in a table of their own: an
//! event's rows would repeat them.

use std::sync::Arc;

use foldhash::HashMap;
use redb::ReadTransaction;

use crate::model::Market;
use crate::store::codec::{Flaw, LineKeyRow};
use crate::store::error::StoreError;
use crate::store::history::fold::market_of;
use crate::store::history::read::LogError;
use crate::store::table_keys::TableKey;
use crate::store::tables::{LINE_KEYS, PendingRows};

#[derive(Clone, Debug, Default)]
pub(super) struct LineKeys {
    /// Each with the market that is known to have it.
    keys: Vec<(Arc<str>, Option<Market>)>,
    numbers: HashMap<Arc<str>, u32>,
    stored: usize,
}

impl LineKeys {
    pub(super) fn read(txn: &ReadTransaction) -> Result<Self, LogError> {
        let mut keys = LineKeys::default();
        for row in txn.open_table(LINE_KEYS.definition)?.range::<u32>(..)? {
            let (number, row) = row?;
            let damaged = |flaw| LogError::Damaged { table: LINE_KEYS.name, row: number.value().to_string(), flaw };
            let key = LINE_KEYS.unseal(&number.value(), row.value()).map_err(damaged)?;
            if keys.number(&Arc::from(key.0)) != number.value() {
                return Err(damaged(Flaw::Invalid("it is out of its order")));
            }
        }
        keys.stored = keys.keys.len();
        Ok(keys)
    }

    /// The number that a key has already.
    pub(super) fn known(&self, key: &str) -> Option<u32> {
        self.numbers.get(key).copied()
    }

    pub(super) fn number(&mut self, key: &Arc<str>) -> u32 {
        if let Some(number) = self.numbers.get(key) {
            return *number;
        }
        let number = u32::try_from(self.keys.len()).unwrap_or(u32::MAX);
        self.keys.push((Arc::clone(key), Market::find(key)));
        self.numbers.insert(Arc::clone(key), number);
        number
    }

    /// The same for a key that is not shared.
    pub(super) fn number_of(&mut self, key: &str) -> u32 {
        match self.numbers.get(key) {
            Some(number) => *number,
            None => self.number(&Arc::from(key)),
        }
    }

    pub(super) fn key(&self, number: u32) -> Option<&Arc<str>> {
        self.keys.get(number as usize).map(|(key, _)| key)
    }

    /// The market that has a key.
    pub(super) fn market(&self, number: u32) -> Option<Market> {
        let (key, market) = self.keys.get(number as usize)?;
        market.or_else(|| market_of(key).ok())
    }

    /// The rows of keys that were not in the table.
    pub(super) fn new_rows(&self) -> Result<PendingRows<u32>, StoreError> {
        let new = self.keys.iter().zip(0_u32..).skip(self.stored);
        let row = |((key, _), number): (&(Arc<str>, Option<Market>), u32)| {
            let row = LINE_KEYS.seal(&number, &LineKeyRow(key.to_string()));
            Ok((u32::borrowed(&number), Some(row.map_err(|error| StoreError::Refused(error.to_string()))?)))
        };
        new.map(row).collect()
    }
}
