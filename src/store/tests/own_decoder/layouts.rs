//! The rows as they are today: the type and the place of each field, and the number of each variant. Written out a
//! second time, so that a row which changes without a new version does not compile here or has other bytes.

use super::sample::{Cases, Sample, Tape};
use super::wire::{Layout, Reader};
use crate::store::codec::{
    AuditRow, BookRow, BookStanding, BudgetRow, CatalogueRow, CompetitionRow, ContestRow, EventRow, FeederRow, KeyRow,
    LineKeyRow, MarketRow, MetaRow, NameRow, OddsRow, OutcomeRow, OwnerRow, PointsRow, PollRow, PollRowBefore,
    QuotedRow, RecentUseRow, ScoreRow, SourceRow, SportRow, UsageRow,
};

/// Implements [`Layout`] and [`Sample`] for a struct, whose fields follow each other, or for an enum, whose variant
/// comes first as a number. The fields of tuples are named here.
macro_rules! layout {
    (struct $name:ident $({ $($field:ident: $type:ty),* $(,)? })? $(( $($part:ident: $part_type:ty),* ))?) => {
        impl Layout for $name {
            fn read(_from: &mut Reader<'_>) -> Option<Self> {
                $($(let $field = <$type as Layout>::read(_from)?;)*)?
                $($(let $part = <$part_type as Layout>::read(_from)?;)*)?
                Some(Self $({ $($field),* })? $(( $($part),* ))?)
            }

            fn write(&self, _out: &mut Vec<u8>) {
                let Self $({ $($field),* })? $(( $($part),* ))? = self;
                $($(<$type as Layout>::write($field, _out);)*)?
                $($(<$part_type as Layout>::write($part, _out);)*)?
            }
        }

        impl Sample for $name {
            fn draw(_from: &mut Tape<'_>) -> Self {
                $($(let $field = <$type as Sample>::draw(_from);)*)?
                $($(let $part = <$part_type as Sample>::draw(_from);)*)?
                Self $({ $($field),* })? $(( $($part),* ))?
            }

            fn expect(at: &str, cases: &mut Cases) {
                cases.insert(at.to_owned());
                $($(<$type as Sample>::expect(&format!("{at}.{}", stringify!($field)), cases);)*)?
                $($(<$part_type as Sample>::expect(&format!("{at}.{}", stringify!($part)), cases);)*)?
            }

            fn note(&self, at: &str, cases: &mut Cases) {
                cases.insert(at.to_owned());
                let Self $({ $($field),* })? $(( $($part),* ))? = self;
                $($($field.note(&format!("{at}.{}", stringify!($field)), cases);)*)?
                $($($part.note(&format!("{at}.{}", stringify!($part)), cases);)*)?
            }
        }
    };
    (enum $name:ident {$(
        $number:literal $variant:ident $({ $($field:ident: $type:ty),* $(,)? })? $(( $($part:ident: $part_type:ty),* ))?,
    )*}) => {
        impl Layout for $name {
            fn read(from: &mut Reader<'_>) -> Option<Self> {
                match u32::read(from)? {
                    $($number => {
                        $($(let $field = <$type as Layout>::read(from)?;)*)?
                        $($(let $part = <$part_type as Layout>::read(from)?;)*)?
                        Some(Self::$variant $({ $($field),* })? $(( $($part),* ))?)
                    })*
                    _ => None,
                }
            }

            fn write(&self, out: &mut Vec<u8>) {
                match self {
                    $(Self::$variant $({ $($field),* })? $(( $($part),* ))? => {
                        <u32 as Layout>::write(&$number, out);
                        $($(<$type as Layout>::write($field, out);)*)?
                        $($(<$part_type as Layout>::write($part, out);)*)?
                    })*
                }
            }
        }

        impl Sample for $name {
            fn draw(from: &mut Tape<'_>) -> Self {
                let variants: &[fn(&mut Tape<'_>) -> Self] = &[$(|_from| {
                    $($(let $field = <$type as Sample>::draw(_from);)*)?
                    $($(let $part = <$part_type as Sample>::draw(_from);)*)?
                    Self::$variant $({ $($field),* })? $(( $($part),* ))?
                }),*];
                variants[from.pick(variants.len())](from)
            }

            fn expect(at: &str, cases: &mut Cases) {
                $(
                    let _at = format!("{at}::{}", stringify!($variant));
                    $($(<$type as Sample>::expect(&format!("{_at}.{}", stringify!($field)), cases);)*)?
                    $($(<$part_type as Sample>::expect(&format!("{_at}.{}", stringify!($part)), cases);)*)?
                    cases.insert(_at);
                )*
            }

            fn note(&self, at: &str, cases: &mut Cases) {
                match self {
                    $(Self::$variant $({ $($field),* })? $(( $($part),* ))? => {
                        let _at = format!("{at}::{}", stringify!($variant));
                        $($($field.note(&format!("{_at}.{}", stringify!($field)), cases);)*)?
                        $($($part.note(&format!("{_at}.{}", stringify!($part)), cases);)*)?
                        cases.insert(_at);
                    })*
                }
            }
        }
    };
}
pub(super) use layout;

layout! { enum MetaRow {
    0 Counters { next_name: u32, next_event: u32, next_audit: u64 },
    1 Maintenance { since: u32, until: Option<u32> },
    2 Simulated,
    3 FeederUse { day: u32, bookmakers_today: u32, bookmakers: u32, events_today: u32 },
    4 FeederUseWithNames {
        day: u32, bookmakers_today: u32, bookmakers: u32, events_today: u32, names_today: u32, names: u32
    },
    5 Log { epoch: u64, start: u64, packed: u64, next: u64, entry_bytes: u64, frame_bytes: u64, changes: u64 },
    6 Lines { through: Vec<(u16, u64)>, line_bytes: u64, end_bytes: u64 },
    7 Imports { logs: Vec<(u8, u8, u16)> },
    8 Membership { cluster: u64, epoch: u64, file: u64, applied: (u64, u64), fence: u64 },
} }

layout! { struct CatalogueRow(text: String) }

layout! { struct SportRow { key: String } }

layout! { struct BookRow { key: String, title: String, regions: u16, standing: BookStanding } }

layout! { enum BookStanding { 0 Catalogue, 1 Declared, 2 Gone, 3 Titled, } }

layout! { struct LineKeyRow(key: String) }

layout! { struct NameRow(name: String) }

layout! { struct CompetitionRow { sport: u16, title: String } }

layout! { struct MarketRow }

layout! { struct EventRow {
    id: String,
    competition: u32,
    competition_key: Option<u32>,
    commence: u32,
    contest: ContestRow,
    status: u8,
    changed: u32,
    owner: OwnerRow,
} }

layout! { enum OwnerRow { 0 Unknown, 1 Operator, 2 Feeder { name: u32 }, } }

layout! { enum ContestRow { 0 Sides { home: u32, away: u32 }, 1 Tournament { title: u32 }, } }

layout! { struct ScoreRow {
    status: u8,
    points: Option<(i32, i32)>,
    periods: Vec<(u16, i32, i32)>,
    winner: Option<u32>,
    updated: u32,
} }

layout! { struct OddsRow {
    outcomes: Vec<OutcomeRow>,
    last_update: [u8; 4],
    quoted: QuotedRow,
    points: PointsRow,
    bookmaker_later_s: i64,
} }

layout! { struct OutcomeRow { name: u32, profit: u32, stake: u32 } }

layout! { enum QuotedRow { 0 American, 1 Decimal, 2 Fractional, 3 Each(formats: Vec<u8>), } }

layout! { enum PointsRow { 0 None, 1 All(points: Vec<i32>), 2 Some(points: Vec<Option<i32>>), } }

layout! { struct SourceRow { last_read: u32, latency_ms: u32, empty_since: Option<u32> } }

layout! { enum PollRow {
    0 Scope { sport: u16, stale_after_s: u32, books: Vec<u16> },
    1 Event { records: Vec<(u16, u32)> },
} }

layout! { enum PollRowBefore {
    0 Scope { sport: u16, stale_after_s: u32, books: Vec<u16> },
    1 Event { records: Vec<(u16, u8)> },
} }

layout! { struct KeyRow {
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
    streams: Option<u32>,
    replaced_last_four: String,
    self_service: bool,
    self_rotated: Option<u32>,
} }

layout! { struct UsageRow { day: u32, day_used: u64, month: u32, month_used: u64, last_used: Option<u32> } }

layout! { struct RecentUseRow { last_hour: u32, hours: Vec<u32>, days: Vec<u32> } }

layout! { struct FeederRow {
    world: u8,
    created: u32,
    revoked: Option<u32>,
    hash: [u8; 32],
    last_four: String,
    retired: Vec<([u8; 32], u32)>,
} }

layout! { struct BudgetRow {
    day: u32,
    spent: u64,
    reported: Option<(u64, u32)>,
    polled: Option<u32>,
    account: u32,
    scope: u32,
} }

layout! { struct AuditRow { at: u32, who: String, action: String, subject: String, detail: String } }
