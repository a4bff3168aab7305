//! Blocks in the file. A row of the file takes a page of a power of two, so a block that is longer than a page is cut into
//! pieces that fill one each.

use redb::ReadTransaction;

use super::block::Block;
use crate::store::codec::{Flaw, TooLong};
use crate::store::history::read::LogError;
use crate::store::row_batch::RowBatch;
use crate::store::table_keys::{EventKey, LineKey};
use crate::store::tables::LINES;

/// With its key, its version and its checksum, a piece of this length fills a page of 4 KiB.
const PIECE_BYTES: usize = 4064;
/// The bits of a row's number that count the pieces of a block.
const PIECE_BITS: u32 = 12;
const PIECES_MAX: usize = 1 << PIECE_BITS;

/// A piece of a block as it is stored.
#[derive(Debug)]
pub(in crate::store) struct LineRow(pub(in crate::store) Vec<u8>);

/// What a block takes in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct StoredSize {
    pub(super) pieces: usize,
    pub(super) bytes: u64,
}

/// The number of a block that a row belongs to.
pub(super) const fn block_of((.., number): LineKey) -> u32 {
    number >> PIECE_BITS
}

fn piece_key((world, sport, event): EventKey, block: u32, piece: usize) -> Result<LineKey, TooLong> {
    let piece = u32::try_from(piece).ok().filter(|_| piece < PIECES_MAX).ok_or(TooLong)?;
    let block = block.checked_mul(1 << PIECE_BITS).ok_or(TooLong)?;
    Ok((world, sport, event, block | piece))
}

/// Puts a block into a batch, in place of the pieces that it had.
pub(super) fn put_block(
    event: EventKey,
    (block, bytes): (u32, &[u8]),
    pieces_before: usize,
    batch: &mut RowBatch,
) -> Result<StoredSize, TooLong> {
    let mut size = StoredSize::default();
    for piece in bytes.chunks(PIECE_BYTES) {
        let key = piece_key(event, block, size.pieces)?;
        let row = LINES.seal(&key, &LineRow(piece.to_vec()))?;
        size.pieces += 1;
        size.bytes += row.len() as u64;
        batch.rows.lines.insert(key, Some(row));
    }
    for piece in size.pieces..pieces_before {
        batch.rows.lines.insert(piece_key(event, block, piece)?, None);
    }
    Ok(size)
}

/// A stored block, and what it takes.
pub(super) fn read_block(txn: &ReadTransaction, event: EventKey, block: u32) -> Result<(Block, StoredSize), LogError> {
    let damaged = |flaw| damaged_block(event, block, flaw);
    let too_long = |_: TooLong| damaged(Flaw::Malformed);
    let all =
        piece_key(event, block, 0).map_err(too_long)?..=piece_key(event, block, PIECES_MAX - 1).map_err(too_long)?;
    let (mut bytes, mut size) = (Vec::new(), StoredSize::default());
    for row in txn.open_table(LINES.definition)?.range::<LineKey>(all)? {
        let (key, stored) = row?;
        bytes.extend(LINES.unseal(&key.value(), stored.value()).map_err(damaged)?.0);
        size.pieces += 1;
        size.bytes += stored.value().len() as u64;
    }
    if size.pieces == 0 {
        return Err(damaged(Flaw::Invalid("it is missing")));
    }
    Ok((Block::read(&bytes).map_err(damaged)?, size))
}

pub(super) fn damaged_block((world, sport, event): EventKey, block: u32, flaw: Flaw) -> LogError {
    LogError::Damaged { table: LINES.name, row: format!("{world} {sport} {event} {block}"), flaw }
}
