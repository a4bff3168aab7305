//! The text of the catalogue that the file was last served with, so that a command that opens the file without being
//! told of one does not bring it up to another.

use std::path::Path;

use redb::{ReadTransaction, ReadableDatabase, TableError};

use super::batch::begin;
use super::codec::CatalogueRow;
use super::error::{DamageList, OpenError, StoreError};
use super::handle::{Store, StoreOptions};
use super::place::{Place, Purpose};
use super::scan::{guarded, scan};
use super::tables::CATALOGUE;

/// A row takes 64 KiB at most.
const PIECE_BYTES: usize = 32 << 10;

impl Store {
    /// The text that the file at `path` keeps; `None` if it keeps none or is not there.
    pub fn kept_catalogue(path: &Path, options: StoreOptions) -> Result<Option<String>, OpenError> {
        let place = Place::Path(path.to_owned());
        let file = match place.open(&options, Purpose::Look) {
            Err(OpenError::Gone { .. }) => return Ok(None),
            opened => opened?,
        };
        let text = guarded(|| {
            let txn = file.db.begin_read()?;
            // The first format had no such table.
            match txn.open_table(CATALOGUE.definition) {
                Err(TableError::TableDoesNotExist(_)) => Ok(None),
                _ => read(&txn),
            }
        });
        file.close();
        text.map_err(|error| OpenError::from_store(&place.to_string(), error))
    }

    /// Keeps the text in place of the one before.
    pub fn keep_catalogue(&mut self, text: &str) -> Result<(), StoreError> {
        self.writing(|store| {
            let db = &store.file()?.db;
            if read(&db.begin_read()?)?.as_deref() == Some(text) {
                return Ok(());
            }
            let txn = begin(db)?;
            {
                let mut table = txn.open_table(CATALOGUE.definition)?;
                table.retain(|_, _| false)?;
                for (number, piece) in (0_u16..).zip(pieces(text)) {
                    let row = CATALOGUE.seal(&number, &CatalogueRow(piece.to_owned()));
                    let row = row.map_err(|error| StoreError::Refused(format!("the catalogue: {error}")))?;
                    table.insert(number, &*row)?;
                }
            }
            Ok(txn.commit()?)
        })
    }
}

/// A text that is damaged is as good as none: `check` tells of it, and the next server writes it anew.
fn read(txn: &ReadTransaction) -> Result<Option<String>, StoreError> {
    let (mut text, mut damage) = (String::new(), DamageList::default());
    let count = scan(&CATALOGUE, txn, .., &mut damage, |_, row| {
        text.push_str(&row.0);
        Ok(())
    })?;
    Ok((count > 0 && damage.is_empty()).then_some(text))
}

fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE_BYTES));
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}
