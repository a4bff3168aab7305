//! Reading the audit log.

use redb::{AccessGuard, ReadableDatabase};

use super::change::AuditEntry;
use super::error::StoreError;
use super::handle::Store;
use super::tables::AUDIT;

impl Store {
    /// Up to `limit` entries in their order, from the first after `after` on. A damaged entry is left out, which
    /// shows as a gap in the sequence.
    pub fn audit(&self, after: Option<u64>, limit: usize) -> Result<Vec<AuditEntry>, StoreError> {
        let Some(first) = after.map_or(Some(0), |after| after.checked_add(1)) else { return Ok(Vec::new()) };
        self.reading(|_, file| {
            let table = file.db.begin_read()?.open_table(AUDIT.definition)?;
            let rows = table.range::<u64>(first..)?.take(limit);
            rows.filter_map(|row| row.map_err(StoreError::from).map(entry).transpose()).collect()
        })
    }

    /// The last `limit` entries in their order.
    pub fn audit_tail(&self, limit: usize) -> Result<Vec<AuditEntry>, StoreError> {
        self.reading(|_, file| {
            let table = file.db.begin_read()?.open_table(AUDIT.definition)?;
            let rows = table.range::<u64>(..)?.rev().take(limit);
            let newest_first = rows.filter_map(|row| row.map_err(StoreError::from).map(entry).transpose());
            let mut entries = newest_first.collect::<Result<Vec<_>, _>>()?;
            entries.reverse();
            Ok(entries)
        })
    }
}

fn entry((key, row): (AccessGuard<'_, u64>, AccessGuard<'_, &'static [u8]>)) -> Option<AuditEntry> {
    let sequence = key.value();
    match AUDIT.unseal(&sequence, row.value()) {
        Ok(row) => Some(AuditEntry { sequence, note: row.note() }),
        Err(flaw) => {
            tracing::warn!(sequence, %flaw, "an audit entry is damaged");
            None
        }
    }
}
