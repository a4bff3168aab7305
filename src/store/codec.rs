//! The encoding of a row: one version byte, the row in bincode, and a CRC-32 over the row's key and all of that, so
//! that a row under the wrong key is detected as well. The only module that uses bincode; `row_types` has the rows.
//!
//! Each kind of row has its own version. One that gains a field gets the next version and still reads the one before
//! (see [`Row`]): rows are then rewritten as they change, and a file need not be rewritten as a whole.
//!
//! bincode 2.0.1 is the last release of its maintainers (3.0.0 is an empty stub that does not compile), so the rows
//! are plain enough that another encoder of the same varint format can replace it. The tests have that other one: a
//! decoder and an encoder of every version of every row without bincode (`tests/own_decoder`), held against bincode and
//! against golden bytes. A file therefore outlives bincode.

mod row_types;

use bincode::config::{Configuration, Limit, LittleEndian, Varint};
use bincode::{Decode, Encode};
use redb::{Key, Value};

use super::history::{EndsRow, KeyframeRow, LineRow, LogRow};
use super::table_keys::TableKey;
use super::tables::Table;

pub(super) use row_types::{
    AuditRow, BookRow, BookStanding, BudgetRow, CatalogueRow, CompetitionRow, ContestRow, EventRow, FeederRow, KeyRow,
    LineKeyRow, MarketRow, MetaRow, NameRow, OddsRow, OutcomeRow, OwnerRow, PointsRow, PollRow, PollRowBefore,
    QuotedRow, RecentUseRow, ScoreRow, SourceRow, SportRow, UsageRow,
};

/// The most memory that a decoded row may take: a bound on hostile lengths.
const DECODED_BYTES_MAX: usize = 1 << 21;

/// The most bytes that a row may take on disk: small enough that every row can be decoded within the bound above. The
/// most memory for a byte is that of an empty text in a list: 24.
pub(super) const ENCODED_BYTES_MAX: usize = 1 << 16;

/// The most bytes that an entry of the log or a keyframe may take: one that opens every record of a large board.
const PLAIN_BYTES_MAX: usize = 1 << 28;

const CHECKSUM_BYTES: usize = 4;

const CONFIG: Configuration<LittleEndian, Varint, Limit<DECODED_BYTES_MAX>> =
    bincode::config::standard().with_limit::<DECODED_BYTES_MAX>();

/// Why a row cannot be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Flaw {
    #[error("it is cut short")]
    Short,
    #[error("its checksum does not match")]
    Checksum,
    #[error("it has version {0}, which this oddsbox does not know")]
    Version(u8),
    #[error("it cannot be decoded")]
    Malformed,
    #[error("{0}")]
    Invalid(&'static str),
    #[error("its name {0} is missing")]
    Name(u32),
}

/// A row that exceeds its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is longer than a row of its kind may be")]
pub(super) struct TooLong;

/// A type of row.
pub(super) trait Row: Sized {
    /// The version that is written. Raise it together with the file's format, so that an older program refuses the file
    /// instead of reporting the row as damaged.
    const VERSION: u8;

    /// Appends the row.
    fn encode_to(&self, out: &mut Vec<u8>) -> Result<(), TooLong>;

    /// Reads a row of a version, which takes all of the bytes.
    fn decode_from(version: u8, row: &[u8]) -> Result<Self, Flaw>;
}

/// A row in bincode, within the bounds above.
pub(super) trait BincodeRow: Encode + Decode<()> {
    /// See [`Row::VERSION`].
    const VERSION: u8 = 1;

    /// Converts a row of an earlier version, which [`decode`] reads.
    fn from_earlier(version: u8, _row: &[u8]) -> Result<Self, Flaw> {
        Err(Flaw::Version(version))
    }
}

impl<T: BincodeRow> Row for T {
    const VERSION: u8 = <T as BincodeRow>::VERSION;

    fn encode_to(&self, out: &mut Vec<u8>) -> Result<(), TooLong> {
        let before = out.len();
        bincode::encode_into_std_write(self, out, CONFIG).map_err(|_| TooLong)?;
        if out.len() - before < ENCODED_BYTES_MAX { Ok(()) } else { Err(TooLong) }
    }

    fn decode_from(version: u8, row: &[u8]) -> Result<Self, Flaw> {
        match version {
            version if version == <T as BincodeRow>::VERSION => decode(row),
            version if version < <T as BincodeRow>::VERSION => T::from_earlier(version, row),
            version => Err(Flaw::Version(version)),
        }
    }
}

/// Implements [`Row`] for bytes that their own module reads.
macro_rules! plain_row {
    ($row:ident) => {
        impl Row for $row {
            const VERSION: u8 = 1;

            fn encode_to(&self, out: &mut Vec<u8>) -> Result<(), TooLong> {
                out.extend_from_slice(&self.0);
                if self.0.len() <= PLAIN_BYTES_MAX { Ok(()) } else { Err(TooLong) }
            }

            fn decode_from(version: u8, row: &[u8]) -> Result<Self, Flaw> {
                if version == Self::VERSION { Ok($row(row.to_vec())) } else { Err(Flaw::Version(version)) }
            }
        }
    };
}

plain_row!(LogRow);
plain_row!(KeyframeRow);
plain_row!(EndsRow);
plain_row!(LineRow);

/// Decodes a row, which must take all of the bytes.
pub(super) fn decode<T: Decode<()>>(row: &[u8]) -> Result<T, Flaw> {
    match bincode::decode_from_slice(row, CONFIG) {
        Ok((decoded, used)) if used == row.len() => Ok(decoded),
        _ => Err(Flaw::Malformed),
    }
}

impl<K: TableKey, R: Row> Table<K, R> {
    /// The bytes of a row under its key.
    // The table determines which types of key and row belong together.
    #[allow(clippy::unused_self)]
    pub(super) fn seal(&self, key: &K::SelfType<'_>, row: &R) -> Result<Vec<u8>, TooLong> {
        let mut bytes = Vec::with_capacity(48);
        bytes.push(R::VERSION);
        row.encode_to(&mut bytes)?;
        let checksum = checksum::<K>(key, &bytes);
        bytes.extend_from_slice(&checksum.to_le_bytes());
        Ok(bytes)
    }

    /// The row that [`Table::seal`] wrote, or what is wrong with it.
    // As for `seal`.
    #[allow(clippy::unused_self)]
    pub(super) fn unseal(&self, key: &K::SelfType<'_>, bytes: &[u8]) -> Result<R, Flaw> {
        unseal_as::<K, R>(key, bytes)
    }
}

impl<K: TableKey, R> Table<K, R> {
    /// Whether the checksum matches; the row itself is not decoded.
    // As for `seal`.
    #[allow(clippy::unused_self)]
    pub(super) fn is_sound(&self, key: &K::SelfType<'_>, bytes: &[u8]) -> bool {
        verified::<K>(key, bytes).is_ok()
    }
}

/// A row under a key of a table that an earlier format had.
pub(super) fn unseal_as<K: Key + 'static, R: Row>(key: &K::SelfType<'_>, bytes: &[u8]) -> Result<R, Flaw> {
    match verified::<K>(key, bytes)?.split_first() {
        Some((version, row)) => R::decode_from(*version, row),
        None => Err(Flaw::Short),
    }
}

/// The bytes without their checksum, which matches.
fn verified<'b, K: Key + 'static>(key: &K::SelfType<'_>, bytes: &'b [u8]) -> Result<&'b [u8], Flaw> {
    let (bytes, stored) = bytes.split_last_chunk::<CHECKSUM_BYTES>().ok_or(Flaw::Short)?;
    if checksum::<K>(key, bytes) == u32::from_le_bytes(*stored) { Ok(bytes) } else { Err(Flaw::Checksum) }
}

fn checksum<K: Key + 'static>(key: &K::SelfType<'_>, bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(<K as Value>::as_bytes(key).as_ref());
    hasher.update(bytes);
    hasher.finalize()
}

/// Whether an encoded odds row is a closed mark: the number of outcomes follows the version.
pub(super) fn is_closed_mark(bytes: &[u8]) -> bool {
    bytes.get(1) == Some(&0)
}
