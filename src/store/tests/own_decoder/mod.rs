//! The way out of bincode, which nobody maintains any more: a decoder and an encoder of every row of every version that
//! use none of it. Were bincode to go, these would move into `codec`.
//!
//! `wire` has the bytes of plain values, `layouts` the rows of today and `earlier` those of before. They are held
//! against bytes that were written long ago (`golden`) and against bincode itself (`against_bincode`).
//!
//! There is one difference: bincode refuses a row that would take more memory than `codec` allows. This decoder has no
//! such bound, because it takes no memory before it has read what goes there. No row that can be written comes near it:
//! see `row_of_the_most_memory_is_read`.

mod against_bincode;
mod earlier;
mod golden;
mod layouts;
mod sample;
mod wire;

use std::any::type_name;
use std::fmt::Debug;

use self::earlier::{v1, v2};
use self::sample::{Cases, Sample, Tape};
use self::wire::{Layout, decode, encode};
use crate::store::codec::{
    AuditRow, BookRow, BudgetRow, CatalogueRow, CompetitionRow, EventRow, FeederRow, KeyRow, LineKeyRow, MarketRow,
    MetaRow, NameRow, OddsRow, PollRow, PollRowBefore, RecentUseRow, Row, ScoreRow, SourceRow, SportRow, UsageRow,
};

/// Every row in bincode, with the layout of each of its versions.
macro_rules! rows {
    ($($row:ident: $($version:literal $layout:ty),+;)*) => {
        const ROWS: &[RowVersion] = &[$($(RowVersion::new::<$row, $layout>(stringify!($row), $version)),+),*];

        /// The versions that the program reads: it refuses any other before it looks at the bytes.
        fn versions_read() -> Vec<(&'static str, u8)> {
            let all = || 0..=u8::MAX;
            let mut read = Vec::new();
            $(read.extend(all().filter(|version| is_read::<$row>(*version)).map(|version| (stringify!($row), version)));)*
            read
        }
    };
}

rows! {
    MetaRow: 1 MetaRow;
    CatalogueRow: 1 CatalogueRow;
    SportRow: 1 SportRow;
    BookRow: 1 BookRow;
    NameRow: 1 NameRow;
    LineKeyRow: 1 LineKeyRow;
    CompetitionRow: 1 CompetitionRow;
    MarketRow: 1 MarketRow;
    EventRow: 1 v1::EventRow, 2 v2::EventRow, 3 EventRow;
    ScoreRow: 1 ScoreRow;
    OddsRow: 1 v1::OddsRow, 2 OddsRow;
    SourceRow: 1 SourceRow;
    // The upgrade of the file reads version 1, as the other row.
    PollRow: 2 PollRow;
    PollRowBefore: 1 PollRowBefore;
    KeyRow: 1 v1::KeyRow, 2 v2::KeyRow, 3 KeyRow;
    UsageRow: 1 UsageRow;
    RecentUseRow: 1 RecentUseRow;
    FeederRow: 1 v1::FeederRow, 2 FeederRow;
    BudgetRow: 1 BudgetRow;
    AuditRow: 1 AuditRow;
}

/// A version of a row, and what the tests do with its bytes. Those are without the version and the checksum.
struct RowVersion {
    name: &'static str,
    version: u8,
    /// The bytes of a row that is drawn, by bincode.
    draw: fn(&mut Tape<'_>) -> Vec<u8>,
    /// The row as text. Fails unless both encoders write it as these bytes.
    text: fn(&[u8]) -> Option<String>,
    /// Fails unless both decoders read the same row or none. Returns whether there is one.
    compare: fn(u8, &[u8]) -> bool,
    /// The cases that its golden bytes must have, and those that these bytes have.
    expected: fn() -> Cases,
    noted: fn(&[u8]) -> Cases,
}

impl RowVersion {
    const fn new<R, L>(name: &'static str, version: u8) -> Self
    where
        R: Row + Layout + Debug + PartialEq + From<L>,
        L: Layout + Sample + Debug + PartialEq + bincode::Encode,
    {
        RowVersion {
            name,
            version,
            draw: draw::<L>,
            text: text::<L>,
            compare: compare::<R, L>,
            expected: || {
                let mut cases = Cases::new();
                L::expect("", &mut cases);
                cases
            },
            noted: |bytes| {
                let mut cases = Cases::new();
                decode::<L>(bytes).unwrap().note("", &mut cases);
                cases
            },
        }
    }
}

fn is_read<R: Row>(version: u8) -> bool {
    !matches!(R::decode_from(version, &[]), Err(crate::store::codec::Flaw::Version(_)))
}

fn draw<L: Layout + Sample + Debug + PartialEq + bincode::Encode>(from: &mut Tape<'_>) -> Vec<u8> {
    let row = L::draw(from);
    let bytes = bincode::encode_to_vec(&row, bincode::config::standard()).unwrap();
    assert_eq!(encode(&row), bytes, "{row:?}");
    assert_eq!(decode(&bytes), Some(row));
    bytes
}

fn text<L: Layout + Debug + bincode::Encode>(bytes: &[u8]) -> Option<String> {
    let row = decode::<L>(bytes)?;
    assert_eq!(encode(&row), bytes, "{row:?}");
    assert_eq!(bincode::encode_to_vec(&row, bincode::config::standard()).unwrap(), bytes, "{row:?}");
    Some(format!("{row:?}"))
}

fn compare<R, L>(version: u8, bytes: &[u8]) -> bool
where
    R: Row + Layout + Debug + PartialEq + From<L>,
    L: Layout,
{
    let row = decode::<L>(bytes).map(R::from);
    assert_eq!(row, R::decode_from(version, bytes).ok(), "{} {version} {bytes:x?}", type_name::<R>());
    let Some(row) = row else { return false };
    let mut by_bincode = Vec::new();
    row.encode_to(&mut by_bincode).unwrap();
    assert_eq!(encode(&row), by_bincode, "{row:?}");
    true
}
