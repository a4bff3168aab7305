//! The rows that are encoded with bincode, and their earlier versions.

use bincode::{Decode, Encode};

use super::{BincodeRow, Flaw, decode};

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
impl BincodeRow for KeyRow {
    const VERSION: u8 = 3;

    fn from_earlier(version: u8, row: &[u8]) -> Result<Self, Flaw> {
        #[derive(Decode)]
        struct KeyRowV1 {
            kind: u8,
            name: String,
            groups: Vec<String>,
            burst_per_minute: u32,
            per_day: Option<u64>,
            per_month: Option<u64>,
            created: u32,
            expires: Option<u32>,
            approved_by: Option<String>,
            revoked: Option<u32>,
            hash: [u8; 32],
            last_four: String,
            retired: Vec<([u8; 32], u32)>,
            last_used: Option<u32>,
        }
        #[derive(Decode)]
        struct KeyRowV2 {
            row: KeyRowV1,
            streams: Option<u32>,
        }
        let KeyRowV2 { row, streams } = match version {
            1 => KeyRowV2 { row: decode(row)?, streams: None },
            2 => decode(row)?,
            version => return Err(Flaw::Version(version)),
        };
        Ok(KeyRow {
            kind: row.kind,
            name: row.name,
            groups: row.groups,
            burst_per_minute: row.burst_per_minute,
            per_day: row.per_day,
            per_month: row.per_month,
            created: row.created,
            expires: row.expires,
            approved_by: row.approved_by,
            revoked: row.revoked,
            hash: row.hash,
            last_four: row.last_four,
            retired: row.retired,
            last_used: row.last_used,
            streams,
            replaced_last_four: String::new(),
            self_service: false,
            self_rotated: None,
        })
    }
}
impl BincodeRow for UsageRow {}
impl BincodeRow for RecentUseRow {}
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

#[derive(Debug, PartialEq, Encode, Decode)]
pub(in crate::store) enum MetaRow {
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
    /// The imported histories: the number of the log, the world and the number of the sport.
    Imports {
        logs: Vec<(u8, u8, u16)>,
    },
    /// The log that the nodes of a cluster share, and the last entry of it that is in the file.
    Membership {
        cluster: u64,
        epoch: u64,
        file: u64,
        applied: (u64, u64),
        fence: u64,
    },
}

/// A piece of the catalogue's text.
#[derive(Debug, PartialEq, Encode, Decode)]
pub(in crate::store) struct CatalogueRow(pub(in crate::store) String);

#[derive(Debug, PartialEq, Encode, Decode)]
pub(in crate::store) struct SportRow {
    pub(in crate::store) key: String,
}

#[derive(Debug, PartialEq, Encode, Decode)]
pub(in crate::store) struct BookRow {
    pub(in crate::store) key: String,
    pub(in crate::store) title: String,
    /// Format 3 wrote four of the bits as one byte, which a small number still takes.
    pub(in crate::store) regions: u16,
    pub(in crate::store) standing: BookStanding,
}

/// The origin of a bookmaker, or that only its number is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub(in crate::store) enum BookStanding {
    Catalogue,
    Declared,
    Gone,
    /// Of the catalogue, with the title that a payload gave it.
    Titled,
}

/// The key of a bookmaker or of a market in the lines.
#[derive(Debug, PartialEq, Encode, Decode)]
pub(in crate::store) struct LineKeyRow(pub(in crate::store) String);

#[derive(Debug, PartialEq, Encode, Decode)]
pub(in crate::store) struct NameRow(pub(in crate::store) String);

/// A competition that the world has had an event of.
#[derive(Debug, PartialEq, Encode, Decode)]
pub(in crate::store) struct CompetitionRow {
    pub(in crate::store) sport: u16,
    pub(in crate::store) title: String,
}

/// A market that the world has had a price of.
#[derive(Debug, PartialEq, Encode, Decode)]
pub(in crate::store) struct MarketRow;

#[derive(Debug, PartialEq, Encode, Decode)]
pub(in crate::store) struct EventRow {
    pub(in crate::store) id: String,
    pub(in crate::store) competition: u32,
    /// `None` in a row of an earlier format, until the file is opened with a catalogue.
    pub(in crate::store) competition_key: Option<u32>,
    pub(in crate::store) commence: u32,
    pub(in crate::store) contest: ContestRow,
    pub(in crate::store) status: u8,
    pub(in crate::store) changed: u32,
    pub(in crate::store) owner: OwnerRow,
}

#[derive(Debug, PartialEq, Encode, Decode)]
pub(in crate::store) enum OwnerRow {
    Unknown,
    Operator,
    Feeder { name: u32 },
}

#[derive(Debug, PartialEq, Encode, Decode)]
pub(in crate::store) enum ContestRow {
    Sides { home: u32, away: u32 },
    Tournament { title: u32 },
}

#[derive(Debug, PartialEq, Encode, Decode)]
pub(in crate::store) struct ScoreRow {
    pub(in crate::store) status: u8,
    pub(in crate::store) points: Option<(i32, i32)>,
    pub(in crate::store) periods: Vec<(u16, i32, i32)>,
    pub(in crate::store) winner: Option<u32>,
    pub(in crate::store) updated: u32,
}

/// A record, or with no outcomes the mark of a closed market. The outcomes come first: see [`super::is_closed_mark`].
#[derive(Debug, PartialEq, Encode, Decode)]
pub(in crate::store) struct OddsRow {
    pub(in crate::store) outcomes: Vec<OutcomeRow>,
    /// Little-endian seconds: as a varint they would take five bytes.
    pub(in crate::store) last_update: [u8; 4],
    pub(in crate::store) quoted: QuotedRow,
    pub(in crate::store) points: PointsRow,
    /// By how many seconds the bookmaker's own time is later: nearly always none, which takes one byte.
    pub(in crate::store) bookmaker_later_s: i64,
}

#[derive(Debug, PartialEq, Encode, Decode)]
pub(in crate::store) struct OutcomeRow {
    pub(in crate::store) name: u32,
    pub(in crate::store) profit: u32,
    pub(in crate::store) stake: u32,
}

/// The formats of a record's prices: one byte where they are all the same, as they nearly always are.
#[derive(Debug, PartialEq, Encode, Decode)]
pub(in crate::store) enum QuotedRow {
    American,
    Decimal,
    Fractional,
    Each(Vec<u8>),
}

/// The points of a record's outcomes in thousandths.
#[derive(Debug, PartialEq, Encode, Decode)]
pub(in crate::store) enum PointsRow {
    None,
    All(Vec<i32>),
    Some(Vec<Option<i32>>),
}

#[derive(Debug, PartialEq, Encode, Decode)]
pub(in crate::store) struct SourceRow {
    pub(in crate::store) last_read: u32,
    pub(in crate::store) latency_ms: u32,
    pub(in crate::store) empty_since: Option<u32>,
}

/// What the last complete poll of a scope brought: one row for the scope, one for each event.
#[derive(Debug, PartialEq, Encode, Decode)]
pub(in crate::store) enum PollRow {
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
#[derive(Debug, PartialEq, Encode, Decode)]
pub(in crate::store) enum PollRowBefore {
    Scope { sport: u16, stale_after_s: u32, books: Vec<u16> },
    Event { records: Vec<(u16, u8)> },
}
impl BincodeRow for PollRowBefore {}

#[derive(Debug, PartialEq, Encode, Decode)]
pub(in crate::store) struct KeyRow {
    pub(in crate::store) kind: u8,
    pub(in crate::store) name: String,
    pub(in crate::store) groups: Vec<String>,
    pub(in crate::store) burst_per_minute: u32,
    pub(in crate::store) per_day: Option<u64>,
    pub(in crate::store) per_month: Option<u64>,
    pub(in crate::store) created: u32,
    pub(in crate::store) expires: Option<u32>,
    pub(in crate::store) approved_by: Option<String>,
    pub(in crate::store) revoked: Option<u32>,
    pub(in crate::store) hash: [u8; 32],
    pub(in crate::store) last_four: String,
    pub(in crate::store) retired: Vec<([u8; 32], u32)>,
    pub(in crate::store) last_used: Option<u32>,
    /// `None` in a row of an earlier version: the default of its kind.
    pub(in crate::store) streams: Option<u32>,
    pub(in crate::store) replaced_last_four: String,
    pub(in crate::store) self_service: bool,
    pub(in crate::store) self_rotated: Option<u32>,
}

#[derive(Debug, PartialEq, Encode, Decode)]
pub(in crate::store) struct UsageRow {
    pub(in crate::store) day: u32,
    pub(in crate::store) day_used: u64,
    pub(in crate::store) month: u32,
    pub(in crate::store) month_used: u64,
    pub(in crate::store) last_used: Option<u32>,
}

#[derive(Debug, PartialEq, Encode, Decode)]
pub(in crate::store) struct RecentUseRow {
    /// Counted from 1970.
    pub(in crate::store) last_hour: u32,
    pub(in crate::store) hours: Vec<u32>,
    pub(in crate::store) days: Vec<u32>,
}

#[derive(Debug, PartialEq, Encode, Decode)]
pub(in crate::store) struct FeederRow {
    pub(in crate::store) world: u8,
    pub(in crate::store) created: u32,
    pub(in crate::store) revoked: Option<u32>,
    pub(in crate::store) hash: [u8; 32],
    pub(in crate::store) last_four: String,
    pub(in crate::store) retired: Vec<([u8; 32], u32)>,
}

/// What a polled feed spent on a day, and what its upstream last reported: credits left, and when. Checksums say which
/// account that is of, and what was asked for.
#[derive(Debug, PartialEq, Encode, Decode)]
pub(in crate::store) struct BudgetRow {
    pub(in crate::store) day: u32,
    pub(in crate::store) spent: u64,
    pub(in crate::store) reported: Option<(u64, u32)>,
    pub(in crate::store) polled: Option<u32>,
    pub(in crate::store) account: u32,
    pub(in crate::store) scope: u32,
}

#[derive(Debug, PartialEq, Encode, Decode)]
pub(in crate::store) struct AuditRow {
    pub(in crate::store) at: u32,
    pub(in crate::store) who: String,
    pub(in crate::store) action: String,
    pub(in crate::store) subject: String,
    pub(in crate::store) detail: String,
}
