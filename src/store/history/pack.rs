//! Packing: consecutive entries that are no longer new are compressed into one row, in upkeep. A pack takes a fraction of
//! the bytes of its entries, and fills its page of the file.

use redb::ReadableDatabase;

use super::row::{EntryBytes, LogRow};
use super::write::refused;
use crate::model::World;
use crate::store::error::StoreError;
use crate::store::handle::Store;
use crate::store::row_batch::RowBatch;
use crate::store::table_keys::world_number;
use crate::store::tables::LOG;

/// The most bytes of entries in a pack, unless one entry alone has more.
pub(super) const PACKED_BYTES_MAX: usize = 384 << 10;
/// A row in the file takes a page of a power of two: this fits 64 KiB.
const PACK_BYTES_TARGET: usize = 65_000;
/// The newest entries stay as they are: they may have to be taken back.
const LOOSE_MIN: usize = 16;

impl Store {
    /// Packs the oldest loose entries of a world, if there are enough; whether it did.
    pub fn pack_log(&mut self, world: World) -> Result<bool, StoreError> {
        let mut logs = self.take_logs()?;
        let log = &mut logs[world.index()];
        if log.loose_bytes < self.options().loose_bytes_max {
            self.put_logs(logs);
            return Ok(false);
        }
        let number = world_number(world);
        let is_packed = self.writing(|store| {
            let (first, entries) = store.loose_entries(number, log.head.packed + 1)?;
            let Some((row, count)) = pack(&entries)? else { return Ok(false) };
            let sealed = LOG.seal(&(number, first), &row);
            let sealed = sealed.map_err(|error| StoreError::Refused(error.to_string()))?;
            let mut batch = RowBatch::default();
            for sequence in first + 1..first + count as u64 {
                batch.rows.log.insert((number, sequence), None);
            }
            let before: u64 = entries[..count].iter().map(EntryBytes::row_bytes).sum();
            log.head.entry_bytes = log.head.entry_bytes.saturating_sub(before) + sealed.len() as u64;
            log.head.packed = first + count as u64 - 1;
            log.loose_bytes = log.loose_bytes.saturating_sub(before);
            batch.rows.log.insert((number, first), Some(sealed));
            let (key, head) = log.head.seal(number)?;
            batch.rows.meta.insert(key, Some(head));
            let sports: Vec<u16> = store.sports.all().collect();
            batch.commit(&store.file()?.db, &sports)?;
            Ok(true)
        })?;
        self.put_logs(logs);
        Ok(is_packed)
    }

    /// The oldest loose entries, as many as may be packed, and the number of the first.
    fn loose_entries(&self, world: u8, from: u64) -> Result<(u64, Vec<EntryBytes>), StoreError> {
        self.reading(|_, file| {
            let log = file.db.begin_read()?.open_table(LOG.definition)?;
            let (mut first, mut entries, mut bytes) = (from, Vec::new(), 0);
            let mut rows = log.range((world, from)..=(world, u64::MAX))?;
            // The newest ones are at the end.
            for _ in 0..LOOSE_MIN {
                if rows.next_back().transpose()?.is_none() {
                    return Ok((first, Vec::new()));
                }
            }
            for row in rows {
                let (key, value) = row?;
                let (key, stored) = (key.value(), value.value());
                // Packing ends before a row that cannot be read, and goes on after it once it is gone.
                let Ok(row) = LOG.unseal(&key, stored).and_then(|row| row.entries()) else { break };
                if entries.is_empty() {
                    first = key.1;
                }
                bytes += stored.len();
                if key.1 != first + entries.len() as u64 || (bytes > PACKED_BYTES_MAX && !entries.is_empty()) {
                    break;
                }
                entries.extend(row);
            }
            Ok((first, entries))
        })
    }
}

/// A row of the first entries that fill a page, and how many these are.
pub(super) fn pack(entries: &[EntryBytes]) -> Result<Option<(LogRow, usize)>, StoreError> {
    let mut count = entries.len();
    while count > 0 {
        let row = LogRow::pack(&entries[..count]).map_err(refused)?;
        if row.0.len() <= PACK_BYTES_TARGET || count == 1 {
            return Ok(Some((row, count)));
        }
        // A little fewer than would fit, as entries differ.
        count = (count * PACK_BYTES_TARGET / row.0.len() * 31 / 32).clamp(1, count - 1);
    }
    Ok(None)
}
