//! The rows of the log's tables.
//!
//! A row of the log is one entry: its second, how much it changes, and a section for each sport, in the order of the
//! sports' keys. The header of a section has the sport, the time of its tick and its length, so that a reader of one sport
//! skips the others.
//!
//! A row of the keyframes is the second of the entry that it follows, and the state of the sport after that entry. If
//! the state is the same as in an earlier row, the row only says which.

use super::encode::Section;
use super::events::{put_time, read_time};
use super::varint::{Cursor, put};
use crate::model::Timestamp;
use crate::store::codec::Flaw;

/// An entry as it is stored.
#[derive(Debug)]
pub(in crate::store) struct LogRow(pub(in crate::store) Vec<u8>);

/// What an entry says of one sport, not decoded yet.
#[derive(Debug)]
pub(in crate::store) struct SectionView<'r> {
    pub(in crate::store) sport: u16,
    pub(in crate::store) tick: Option<Timestamp>,
    /// Whether the log mentions the sport for the first time, or again after a loss.
    pub(super) is_first: bool,
    pub(super) bytes: &'r [u8],
}

/// The parts of a stored entry.
#[derive(Debug)]
pub(in crate::store) struct EntryView<'r> {
    /// The second of the commit.
    pub(in crate::store) at: Timestamp,
    /// How many events, scores and records it changes.
    pub(in crate::store) changes: u64,
    pub(in crate::store) sections: Vec<SectionView<'r>>,
}

impl LogRow {
    pub(in crate::store) fn new(at: Timestamp, changes: u64, sections: &[(u16, Section)]) -> Self {
        let mut out = at.unix().to_le_bytes().to_vec();
        put(&mut out, changes);
        for (sport, section) in sections {
            put(
                &mut out,
                u64::from(*sport) << 2 | u64::from(section.is_first) << 1 | u64::from(section.tick.is_some()),
            );
            if let Some(tick) = section.tick {
                put_time(tick, at, &mut out);
            }
            put(&mut out, section.bytes.len() as u64);
            out.extend_from_slice(&section.bytes);
        }
        LogRow(out)
    }

    pub(in crate::store) fn view(&self) -> Result<EntryView<'_>, Flaw> {
        let (at, rest) = self.0.split_first_chunk::<4>().ok_or(Flaw::Short)?;
        let at = Timestamp::from_unix(u32::from_le_bytes(*at));
        let (mut cursor, mut sections) = (Cursor::new(rest), Vec::new());
        let changes = cursor.number()?;
        while !cursor.is_empty() {
            let head = cursor.number()?;
            let sport = u16::try_from(head >> 2).map_err(|_| Flaw::Malformed)?;
            let tick = if head & 1 == 1 { Some(read_time(at, &mut cursor)?) } else { None };
            let len = cursor.count()?;
            sections.push(SectionView { sport, tick, is_first: head & 2 != 0, bytes: cursor.take(len)? });
        }
        Ok(EntryView { at, changes, sections })
    }
}

/// A keyframe as it is stored.
#[derive(Debug)]
pub(in crate::store) struct KeyframeRow(pub(in crate::store) Vec<u8>);

/// The content of a keyframe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) enum Frame<'r> {
    /// See `SportFold::to_keyframe`.
    Whole(&'r [u8]),
    /// The state is that of the keyframe after this entry.
    SameAs(u64),
}

const WHOLE: u8 = 0;
const SAME_AS: u8 = 1;

impl KeyframeRow {
    pub(in crate::store) fn new(at: Timestamp, frame: Frame<'_>) -> Self {
        let mut out = at.unix().to_le_bytes().to_vec();
        match frame {
            Frame::Whole(bytes) => {
                out.push(WHOLE);
                out.extend_from_slice(bytes);
            }
            Frame::SameAs(sequence) => {
                out.push(SAME_AS);
                put(&mut out, sequence);
            }
        }
        KeyframeRow(out)
    }

    /// The second of the entry that it follows, and the content.
    pub(in crate::store) fn view(&self) -> Result<(Timestamp, Frame<'_>), Flaw> {
        let (at, rest) = self.0.split_first_chunk::<4>().ok_or(Flaw::Short)?;
        let at = Timestamp::from_unix(u32::from_le_bytes(*at));
        match rest.split_first().ok_or(Flaw::Short)? {
            (&WHOLE, bytes) => Ok((at, Frame::Whole(bytes))),
            (&SAME_AS, rest) => Ok((at, Frame::SameAs(Cursor::new(rest).number()?))),
            _ => Err(Flaw::Malformed),
        }
    }
}
