//! Names by number, and numbers by name. Equal names share one `Arc<str>` wherever they are read.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use foldhash::fast::RandomState;
use redb::ReadTransaction;

use super::codec::Flaw;
use super::error::{DamageList, StoreError};
use super::scan::scan;
use super::tables::NAMES;

pub(super) type FastMap<K, V> = HashMap<K, V, RandomState>;

/// The names of a file as its rows refer to them.
#[derive(Debug, Default)]
pub(super) struct NamesByNumber(FastMap<u32, Arc<str>>);

/// The names of a file as a commit looks for them.
pub(super) type NumbersByName = FastMap<Arc<str>, u32>;

impl NamesByNumber {
    pub(super) fn read(txn: &ReadTransaction, damage: &mut DamageList) -> Result<Self, StoreError> {
        let mut names = FastMap::default();
        scan(&NAMES, txn, .., damage, |number, row| {
            names.insert(number, Arc::from(row.0));
            Ok(())
        })?;
        Ok(NamesByNumber(names))
    }

    pub(super) fn insert(&mut self, number: u32, text: String) {
        self.0.insert(number, Arc::from(text));
    }

    pub(super) fn get(&self, number: u32) -> Result<Arc<str>, Flaw> {
        self.0.get(&number).cloned().ok_or(Flaw::Name(number))
    }

    /// The numbers of the names that nothing but this table holds.
    pub(super) fn unshared(&self) -> Vec<u32> {
        let alone = self.0.iter().filter(|(_, text)| Arc::strong_count(text) == 1);
        alone.map(|(number, _)| *number).collect()
    }

    pub(super) fn forget(&mut self, numbers: &[u32]) {
        for number in numbers {
            self.0.remove(number);
        }
    }

    /// The same names by text. Where a text has two numbers, both stay readable and the lower is used from now on.
    pub(super) fn by_name(self) -> NumbersByName {
        let mut numbers = NumbersByName::default();
        for (number, text) in self.0 {
            match numbers.entry(text) {
                Entry::Vacant(free) => {
                    free.insert(number);
                }
                Entry::Occupied(mut taken) => *taken.get_mut() = number.min(*taken.get()),
            }
        }
        numbers
    }
}
