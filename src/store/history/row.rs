//! The rows of the log's tables.
//!
//! A row of the log is one entry, or a pack of entries that follow each other. An entry is its second, how much it changes, and a section for each sport, in the order of the
//! sports' keys. The header of a section has the sport, the time of its tick and its length, so that a reader of one sport
//! skips the others.
//!
//! A row of the keyframes is the second of the entry that it follows, and the state of the sport after that entry. If
//! the state is the same as in an earlier row, the row only says which.

use std::borrow::Cow;
use std::cell::RefCell;

use zstd::bulk::Decompressor;

use super::encode::Section;
use super::events::{put_time, read_time};
use super::varint::{Cursor, put};
use crate::model::Timestamp;
use crate::store::codec::Flaw;

/// One entry under its number, or a pack of consecutive entries under the number of the first.
#[derive(Debug)]
pub(in crate::store) struct LogRow(pub(in crate::store) Vec<u8>);

/// The bytes of an entry.
#[derive(Clone, Debug)]
pub(in crate::store) struct EntryBytes(Vec<u8>);

const LOOSE: u8 = 0;
const PACK: u8 = 1;

/// The most that a pack may decompress to: a bound on hostile lengths.
const PACK_BYTES_MAX: usize = 1 << 28;
const PACK_LEVEL: i32 = 9;

impl LogRow {
    pub(in crate::store) fn loose(entry: &EntryBytes) -> Self {
        let mut out = Vec::with_capacity(entry.0.len() + 1);
        out.push(LOOSE);
        out.extend_from_slice(&entry.0);
        LogRow(out)
    }

    /// Consecutive entries, compressed together: they have much in common.
    pub(in crate::store) fn pack(entries: &[EntryBytes]) -> Result<Self, Flaw> {
        let mut bytes = Vec::new();
        for entry in entries {
            put(&mut bytes, entry.0.len() as u64);
            bytes.extend_from_slice(&entry.0);
        }
        let mut out = vec![PACK];
        put(&mut out, entries.len() as u64);
        out.extend(zstd::bulk::compress(&bytes, PACK_LEVEL).map_err(|_| Flaw::Malformed)?);
        Ok(LogRow(out))
    }

    /// Whether its entries are compressed together.
    pub(super) fn is_pack(&self) -> bool {
        self.0.first() == Some(&PACK)
    }

    /// How many entries the row has.
    pub(in crate::store) fn count(&self) -> Result<u64, Flaw> {
        match self.0.split_first().ok_or(Flaw::Short)? {
            (&LOOSE, _) => Ok(1),
            (&PACK, rest) => Cursor::new(rest).number(),
            _ => Err(Flaw::Malformed),
        }
    }

    /// The entries in their order.
    pub(in crate::store) fn entries(&self) -> Result<Vec<EntryBytes>, Flaw> {
        match self.0.split_first().ok_or(Flaw::Short)? {
            (&LOOSE, bytes) => Ok(vec![EntryBytes(bytes.to_vec())]),
            (&PACK, rest) => {
                let mut cursor = Cursor::new(rest);
                let count = cursor.number()?;
                let bytes = decompress(cursor.rest(), PACK_BYTES_MAX)?;
                let (mut cursor, mut entries) = (Cursor::new(&bytes), Vec::new());
                while !cursor.is_empty() {
                    let len = cursor.count()?;
                    entries.push(EntryBytes(cursor.take(len)?.to_vec()));
                }
                if entries.len() as u64 == count { Ok(entries) } else { Err(Flaw::Malformed) }
            }
            _ => Err(Flaw::Malformed),
        }
    }
}

/// Decompresses what is not longer than `bytes_max`.
pub(super) fn decompress(bytes: &[u8], bytes_max: usize) -> Result<Vec<u8>, Flaw> {
    let size = zstd::zstd_safe::get_frame_content_size(bytes).ok().flatten().ok_or(Flaw::Malformed)?;
    let size = usize::try_from(size).ok().filter(|size| *size <= bytes_max).ok_or(Flaw::Malformed)?;
    DECOMPRESSOR.with_borrow_mut(|decompressor| decompressor.decompress(bytes, size)).map_err(|_| Flaw::Malformed)
}

thread_local! {
    /// Rows are short, and a decompressor of its own would cost each of them more than its bytes do.
    static DECOMPRESSOR: RefCell<Decompressor<'static>> = RefCell::default();
}

const PLAIN: u8 = 0;
const COMPRESSED: u8 = 1;
/// Less than this is not worth compressing.
const COMPRESSED_MIN: usize = 128;

/// How much time compression may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effort {
    /// For what will be written again.
    Little,
    /// For what stays.
    Much,
}

/// The bytes compressed, if that makes them shorter by an eighth at least, behind a byte that says so.
pub(super) fn compress_if_shorter(bytes: &[u8], effort: Effort) -> Result<Vec<u8>, Flaw> {
    let mut out = vec![PLAIN];
    if bytes.len() >= COMPRESSED_MIN {
        let level = match effort {
            Effort::Little => 3,
            Effort::Much => 12,
        };
        let compressed = zstd::bulk::compress(bytes, level).map_err(|_| Flaw::Malformed)?;
        if compressed.len() <= bytes.len() - bytes.len() / 8 {
            out[0] = COMPRESSED;
            out.extend(compressed);
            return Ok(out);
        }
    }
    out.extend_from_slice(bytes);
    Ok(out)
}

pub(super) fn decompress_if_compressed(bytes: &[u8], bytes_max: usize) -> Result<Cow<'_, [u8]>, Flaw> {
    match bytes.split_first().ok_or(Flaw::Short)? {
        (&PLAIN, bytes) => Ok(Cow::Borrowed(bytes)),
        (&COMPRESSED, bytes) => decompress(bytes, bytes_max).map(Cow::Owned),
        _ => Err(Flaw::Malformed),
    }
}

/// What an entry says of one sport, not decoded yet.
#[derive(Clone, Copy, Debug)]
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
    /// Its size.
    pub(in crate::store) bytes: u64,
    pub(in crate::store) sections: Vec<SectionView<'r>>,
}

impl EntryBytes {
    /// The size of its row, if it has one of its own: with tag, version and checksum.
    pub(in crate::store) fn row_bytes(&self) -> u64 {
        self.0.len() as u64 + 6
    }

    pub(in crate::store) fn new(at: Timestamp, changes: u64, sections: &[(u16, Section)]) -> Self {
        let views = sections.iter().map(|(sport, section)| {
            let Section { bytes, tick, is_first } = section;
            SectionView { sport: *sport, tick: *tick, is_first: *is_first, bytes }
        });
        EntryBytes::of_sections(at, changes, views)
    }

    pub(super) fn of_sections<'s>(
        at: Timestamp,
        changes: u64,
        sections: impl Iterator<Item = SectionView<'s>>,
    ) -> Self {
        let mut out = at.unix().to_le_bytes().to_vec();
        put(&mut out, changes);
        for SectionView { sport, tick, is_first, bytes } in sections {
            put(&mut out, u64::from(sport) << 2 | u64::from(is_first) << 1 | u64::from(tick.is_some()));
            if let Some(tick) = tick {
                put_time(tick, at, &mut out);
            }
            put(&mut out, bytes.len() as u64);
            out.extend_from_slice(bytes);
        }
        EntryBytes(out)
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
        Ok(EntryView { at, changes, bytes: self.0.len() as u64, sections })
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
