//! The encoding of a row: one version byte, the row in bincode, and a CRC-32 over the row's key and all of that, so
//! that a row under the wrong key is detected as well. The only module that uses bincode.
//!
//! Each kind of row has its own version. One that gains a field gets the next version and still reads the one before
//! (see [`Row`]): rows are then rewritten as they change, and a file need not be rewritten as a whole.
//!
//! bincode 2.0.1 is the last release of its maintainers (3.0.0 is an empty stub that does not compile), so the rows
//! are plain enough that another encoder of the same varint format can replace it. The tests pin the bytes.

use bincode::config::{Configuration, Limit, LittleEndian, Varint};
use bincode::{Decode, Encode};
use redb::{Key, Value};

use super::history::{EndsRow, KeyframeRow, LineRow, LogRow};
use super::table_keys::TableKey;
use super::tables::Table;

/// The most memory that a decoded row may take: a bound on hostile lengths.
const DECODED_BYTES_MAX: usize = 1 << 20;

/// The most bytes that a row may take on disk: small enough that every row can be decoded within the bound above.
const ENCODED_BYTES_MAX: usize = 1 << 16;

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

impl BincodeRow for MetaRow {}
impl BincodeRow for CatalogueRow {}
impl BincodeRow for SportRow {}
impl BincodeRow for BookRow {}
impl BincodeRow for NameRow {}
impl BincodeRow for LineKeyRow {}
impl BincodeRow for CompetitionRow {}
impl BincodeRow for MarketRow {}
impl BincodeRow for EventRow {
    const VERSION: u8 = 3;

    fn from_earlier(version: u8, row: &[u8]) -> Result<Self, Flaw> {
        /// Format 3.
        #[derive(Decode)]
        struct EventRowV2 {
            id: String,
            competition: u32,
            commence: u32,
            contest: ContestRow,
            status: u8,
            changed: u32,
            owner: OwnerRow,
        }
        /// Format 2 and before.
        #[derive(Decode)]
        struct EventRowV1 {
            id: String,
            competition: u32,
            commence: u32,
            contest: ContestRow,
            status: u8,
            changed: u32,
        }
        let EventRowV2 { id, competition, commence, contest, status, changed, owner } = match version {
            2 => decode(row)?,
            1 => {
                let EventRowV1 { id, competition, commence, contest, status, changed } = decode(row)?;
                EventRowV2 { id, competition, commence, contest, status, changed, owner: OwnerRow::Unknown }
            }
            _ => return Err(Flaw::Version(version)),
        };
        Ok(EventRow { id, competition, competition_key: None, commence, contest, status, changed, owner })
    }
}
impl BincodeRow for ScoreRow {}
impl BincodeRow for OddsRow {
    const VERSION: u8 = 2;

    fn from_earlier(version: u8, row: &[u8]) -> Result<Self, Flaw> {
        /// Format 2 and before.
        #[derive(Decode)]
        struct OddsRowV1 {
            outcomes: Vec<OutcomeRow>,
            last_update: [u8; 4],
            quoted: QuotedRow,
            points: PointsRow,
        }
        if version != 1 {
            return Err(Flaw::Version(version));
        }
        let OddsRowV1 { outcomes, last_update, quoted, points } = decode(row)?;
        Ok(OddsRow { outcomes, last_update, quoted, points, bookmaker_later_s: 0 })
    }
}
impl BincodeRow for SourceRow {}
impl BincodeRow for PollRow {
    const VERSION: u8 = 2;
}
impl BincodeRow for KeyRow {}
impl BincodeRow for UsageRow {}
impl BincodeRow for FeederRow {
    /// Written since 0.2.0, whose file format 0.1.0 refuses.
    const VERSION: u8 = 2;

    fn from_earlier(version: u8, row: &[u8]) -> Result<Self, Flaw> {
        #[derive(Decode)]
        struct FeederRowV1 {
            world: u8,
            created: u32,
            revoked: Option<u32>,
            hash: [u8; 32],
            last_four: String,
        }
        if version != 1 {
            return Err(Flaw::Version(version));
        }
        let FeederRowV1 { world, created, revoked, hash, last_four } = decode(row)?;
        Ok(FeederRow { world, created, revoked, hash, last_four, retired: Vec::new() })
    }
}
impl BincodeRow for BudgetRow {}
impl BincodeRow for AuditRow {}
plain_row!(LogRow);
plain_row!(KeyframeRow);
plain_row!(EndsRow);
plain_row!(LineRow);

#[derive(Debug, Encode, Decode)]
pub(super) enum MetaRow {
    /// The next free numbers. They only grow, so that none is used twice.
    Counters {
        next_name: u32,
        next_event: u32,
        next_audit: u64,
    },
    Maintenance {
        since: u32,
        until: Option<u32>,
    },
    /// The live world was filled by the simulator.
    Simulated,
    /// What a feeder has added in a world, of which the row's key has the names.
    FeederUse {
        day: u32,
        bookmakers_today: u32,
        bookmakers: u32,
        events_today: u32,
    },
    /// The same with competitions and markets, which format 3 did not count.
    FeederUseWithNames {
        day: u32,
        bookmakers_today: u32,
        bookmakers: u32,
        events_today: u32,
        names_today: u32,
        names: u32,
    },
    /// The log of the world that the row's key names.
    Log {
        epoch: u64,
        /// The first entry that can be read without those before it.
        start: u64,
        /// The last entry that is in a pack.
        packed: u64,
        /// The number of its next entry.
        next: u64,
        /// The sizes of its entries and of its keyframes.
        entry_bytes: u64,
        frame_bytes: u64,
        /// The changes in its entries.
        changes: u64,
    },
    /// The lines of the world that the row's key names.
    Lines {
        /// For each sport, the entry up to which they are complete.
        through: Vec<(u16, u64)>,
        /// The sizes of the changes and of the events.
        line_bytes: u64,
        end_bytes: u64,
    },
}

/// A piece of the catalogue's text.
#[derive(Debug, Encode, Decode)]
pub(super) struct CatalogueRow(pub(super) String);

#[derive(Debug, Encode, Decode)]
pub(super) struct SportRow {
    pub(super) key: String,
}

#[derive(Debug, Encode, Decode)]
pub(super) struct BookRow {
    pub(super) key: String,
    pub(super) title: String,
    /// Format 3 wrote four of the bits as one byte, which a small number still takes.
    pub(super) regions: u16,
    pub(super) standing: BookStanding,
}

/// The origin of a bookmaker, or that only its number is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub(super) enum BookStanding {
    Catalogue,
    Declared,
    Gone,
    /// Of the catalogue, with the title that a payload gave it.
    Titled,
}

/// The key of a bookmaker or of a market in the lines.
#[derive(Debug, Encode, Decode)]
pub(super) struct LineKeyRow(pub String);

#[derive(Debug, Encode, Decode)]
pub(super) struct NameRow(pub(super) String);

/// A competition that the world has had an event of.
#[derive(Debug, Encode, Decode)]
pub(super) struct CompetitionRow {
    pub(super) sport: u16,
    pub(super) title: String,
}

/// A market that the world has had a price of.
#[derive(Debug, Encode, Decode)]
pub(super) struct MarketRow;

#[derive(Debug, Encode, Decode)]
pub(super) struct EventRow {
    pub(super) id: String,
    pub(super) competition: u32,
    /// `None` in a row of an earlier format, until the file is opened with a catalogue.
    pub(super) competition_key: Option<u32>,
    pub(super) commence: u32,
    pub(super) contest: ContestRow,
    pub(super) status: u8,
    pub(super) changed: u32,
    pub(super) owner: OwnerRow,
}

#[derive(Debug, Encode, Decode)]
pub(super) enum OwnerRow {
    Unknown,
    Operator,
    Feeder { name: u32 },
}

#[derive(Debug, Encode, Decode)]
pub(super) enum ContestRow {
    Sides { home: u32, away: u32 },
    Tournament { title: u32 },
}

#[derive(Debug, Encode, Decode)]
pub(super) struct ScoreRow {
    pub(super) status: u8,
    pub(super) points: Option<(i32, i32)>,
    pub(super) periods: Vec<(u16, i32, i32)>,
    pub(super) winner: Option<u32>,
    pub(super) updated: u32,
}

/// A record, or with no outcomes the mark of a closed market. The outcomes come first: see [`is_closed_mark`].
#[derive(Debug, Encode, Decode)]
pub(super) struct OddsRow {
    pub(super) outcomes: Vec<OutcomeRow>,
    /// Little-endian seconds: as a varint they would take five bytes.
    pub(super) last_update: [u8; 4],
    pub(super) quoted: QuotedRow,
    pub(super) points: PointsRow,
    /// By how many seconds the bookmaker's own time is later: nearly always none, which takes one byte.
    pub(super) bookmaker_later_s: i64,
}

#[derive(Debug, Encode, Decode)]
pub(super) struct OutcomeRow {
    pub(super) name: u32,
    pub(super) profit: u32,
    pub(super) stake: u32,
}

/// The formats of a record's prices: one byte where they are all the same, as they nearly always are.
#[derive(Debug, Encode, Decode)]
pub(super) enum QuotedRow {
    American,
    Decimal,
    Fractional,
    Each(Vec<u8>),
}

/// The points of a record's outcomes in thousandths.
#[derive(Debug, Encode, Decode)]
pub(super) enum PointsRow {
    None,
    All(Vec<i32>),
    Some(Vec<Option<i32>>),
}

#[derive(Debug, Encode, Decode)]
pub(super) struct SourceRow {
    pub(super) last_read: u32,
    pub(super) latency_ms: u32,
    pub(super) empty_since: Option<u32>,
}

/// What the last complete poll of a scope brought: one row for the scope, one for each event.
#[derive(Debug, Encode, Decode)]
pub(super) enum PollRow {
    Scope {
        sport: u16,
        stale_after_s: u32,
        books: Vec<u16>,
    },
    /// Bookmakers and the numbers of their markets' names.
    Event {
        records: Vec<(u16, u32)>,
    },
}

/// [`PollRow`] in format 3 and before.
#[derive(Debug, Encode, Decode)]
pub(super) enum PollRowBefore {
    Scope { sport: u16, stale_after_s: u32, books: Vec<u16> },
    Event { records: Vec<(u16, u8)> },
}
impl BincodeRow for PollRowBefore {}

#[derive(Debug, Encode, Decode)]
pub(super) struct KeyRow {
    pub(super) kind: u8,
    pub(super) name: String,
    pub(super) groups: Vec<String>,
    pub(super) burst_per_minute: u32,
    pub(super) per_day: Option<u64>,
    pub(super) per_month: Option<u64>,
    pub(super) created: u32,
    pub(super) expires: Option<u32>,
    pub(super) approved_by: Option<String>,
    pub(super) revoked: Option<u32>,
    pub(super) hash: [u8; 32],
    pub(super) last_four: String,
    pub(super) retired: Vec<([u8; 32], u32)>,
    pub(super) last_used: Option<u32>,
}

#[derive(Debug, Encode, Decode)]
pub(super) struct UsageRow {
    pub(super) day: u32,
    pub(super) day_used: u64,
    pub(super) month: u32,
    pub(super) month_used: u64,
    pub(super) last_used: Option<u32>,
}

#[derive(Debug, Encode, Decode)]
pub(super) struct FeederRow {
    pub(super) world: u8,
    pub(super) created: u32,
    pub(super) revoked: Option<u32>,
    pub(super) hash: [u8; 32],
    pub(super) last_four: String,
    pub(super) retired: Vec<([u8; 32], u32)>,
}

/// What a polled feed spent on a day, and what its upstream last reported: credits left, and when. Checksums say which
/// account that is of, and what was asked for.
#[derive(Debug, Encode, Decode)]
pub(super) struct BudgetRow {
    pub(super) day: u32,
    pub(super) spent: u64,
    pub(super) reported: Option<(u64, u32)>,
    pub(super) polled: Option<u32>,
    pub(super) account: u32,
    pub(super) scope: u32,
}

#[derive(Debug, Encode, Decode)]
pub(super) struct AuditRow {
    pub(super) at: u32,
    pub(super) who: String,
    pub(super) action: String,
    pub(super) subject: String,
    pub(super) detail: String,
}
