//! Which imported histories there are.

use redb::{ReadTransaction, ReadableTable};

use crate::model::World;
use crate::store::codec::{Flaw, MetaRow};
use crate::store::error::StoreError;
use crate::store::history::reader::LogId;
use crate::store::history::state::seal_meta;
use crate::store::table_keys::{LogNumber, world_number};
use crate::store::tables::{META, META_IMPORTS};

/// An imported history: the log of one sport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImportedLog {
    pub(in crate::store) number: LogNumber,
    pub(in crate::store) world: u8,
    /// The number of the sport.
    pub(in crate::store) sport: u16,
}

impl ImportedLog {
    pub fn id(self) -> LogId {
        LogId(self.number)
    }
}

/// The imported histories that are complete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::store) struct Imports(Vec<ImportedLog>);

impl Imports {
    pub(in crate::store) fn read(txn: &ReadTransaction) -> Result<Self, StoreError> {
        Imports::read_from(&txn.open_table(META.definition)?)
    }

    /// Without the row there are none; one that is damaged was reported when the file was loaded.
    pub(in crate::store) fn read_from(
        meta: &impl ReadableTable<&'static str, &'static [u8]>,
    ) -> Result<Self, StoreError> {
        let row = meta.get(META_IMPORTS)?.and_then(|row| META.unseal(&META_IMPORTS, row.value()).ok());
        Ok(row.and_then(|row| row.imports().ok()).unwrap_or_default())
    }

    pub(in crate::store) fn of(&self, world: World, sport: u16) -> Option<ImportedLog> {
        self.of_number(world_number(world), sport)
    }

    pub(in crate::store) fn of_number(&self, world: u8, sport: u16) -> Option<ImportedLog> {
        self.iter().find(|log| (log.world, log.sport) == (world, sport))
    }

    pub(in crate::store) fn iter(&self) -> impl Iterator<Item = ImportedLog> + '_ {
        self.0.iter().copied()
    }

    pub(in crate::store) fn has(&self, number: LogNumber) -> bool {
        self.iter().any(|log| log.number == number)
    }

    /// Lists a history, in the place of that of the same world and sport.
    pub(in crate::store) fn put(&mut self, log: ImportedLog) {
        self.0.retain(|other| (other.world, other.sport) != (log.world, log.sport));
        self.0.push(log);
    }

    pub(in crate::store) fn without(mut self, number: LogNumber) -> Self {
        self.0.retain(|log| log.number != number);
        self
    }

    /// The row of this list, with its key.
    pub(in crate::store) fn seal(&self) -> Result<(String, Vec<u8>), StoreError> {
        let logs = self.iter().map(|ImportedLog { number, world, sport }| (number, world, sport)).collect();
        seal_meta(META_IMPORTS.to_owned(), &MetaRow::Imports { logs })
    }
}

impl MetaRow {
    pub(in crate::store) fn imports(&self) -> Result<Imports, Flaw> {
        let MetaRow::Imports { logs } = self else { return Err(Flaw::Malformed) };
        let logs =
            logs.iter().map(|(number, world, sport)| ImportedLog { number: *number, world: *world, sport: *sport });
        Ok(Imports(logs.collect()))
    }
}
