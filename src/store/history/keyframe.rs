//! Keyframes: the whole state of a sport after an entry, from which the entries that follow can be read.

use std::sync::Arc;

use super::events::{SharedTexts, put_event, put_score, put_time, read_event, read_score, read_time};
use super::fold::{FoldedEvent, SportFold, market_of};
use super::forget::contains;
use super::prices::{put_outcomes, read_outcomes};
use super::row::decompress;
use super::texts::{Sides, TextNumbers};
use super::varint::{Cursor, put, put_text};
use crate::model::{LoggedPrice, Timestamp};
use crate::store::codec::Flaw;

const ZSTD_LEVEL: i32 = 3;
/// The most that a keyframe may decompress to: a bound on hostile lengths, far above a board of a million records.
const DECOMPRESSED_MAX: usize = 1 << 30;

impl SportFold {
    /// The state as of second `at`, compressed.
    pub(in crate::store) fn to_keyframe(&self, at: Timestamp) -> Result<Vec<u8>, Flaw> {
        let mut out = Vec::new();
        out.extend_from_slice(&at.unix().to_le_bytes());
        put(&mut out, u64::from(self.last_tick.is_some()));
        if let Some(tick) = self.last_tick {
            put_time(tick, at, &mut out);
        }
        put_texts(&self.books, &mut out);
        put(&mut out, self.markets.len() as u64);
        self.markets.iter().for_each(|market| put_text(&mut out, market.key()));
        put_texts(&self.texts, &mut out);
        put(&mut out, self.stale.len() as u64);
        self.stale.iter().for_each(|book| put(&mut out, (*book).into()));
        put(&mut out, self.next_event.into());
        put(&mut out, self.events.len() as u64);
        let mut texts = SharedTexts::of(&self.texts);
        for (number, event) in &self.events {
            put(&mut out, (*number).into());
            event.put(at, &mut texts, &mut out);
        }
        zstd::bulk::compress(&out, ZSTD_LEVEL).map_err(|_| Flaw::Malformed)
    }

    pub(in crate::store) fn from_keyframe(bytes: &[u8]) -> Result<Self, Flaw> {
        let bytes = decompress(bytes, DECOMPRESSED_MAX)?;
        let (at, rest) = bytes.split_first_chunk::<4>().ok_or(Flaw::Short)?;
        let (at, mut cursor) = (Timestamp::from_unix(u32::from_le_bytes(*at)), Cursor::new(rest));
        let cursor = &mut cursor;
        let last_tick = if cursor.number()? == 1 { Some(read_time(at, cursor)?) } else { None };
        let books = read_texts(cursor)?;
        let markets = read_all(cursor, |cursor| market_of(cursor.text()?))?;
        let mut texts = read_texts(cursor)?;
        let stale = read_all(cursor, Cursor::small)?.into_iter().collect();
        let next_event = cursor.small()?;
        let events = read_all(cursor, |cursor| Ok((cursor.small()?, FoldedEvent::read(at, &mut texts, cursor)?)))?;
        if !cursor.is_empty() {
            return Err(Flaw::Malformed);
        }
        let events = events.into_iter().collect();
        Ok(SportFold { books, markets, texts, events, next_event, stale, last_tick })
    }
}

/// Whether a keyframe has a text in it.
pub(super) fn mentions(bytes: &[u8], text: &[u8]) -> Result<bool, Flaw> {
    Ok(contains(&decompress(bytes, DECOMPRESSED_MAX)?, text))
}

impl FoldedEvent {
    fn put(&self, at: Timestamp, shared: &mut SharedTexts, out: &mut Vec<u8>) {
        put_event(&self.event, at, shared, out);
        put_time(self.event.changed, at, out);
        out.push(u8::from(self.score.is_some()));
        if let Some(score) = &self.score {
            put_score(&self.event, score, at, out);
        }
        put_texts(&self.texts, out);
        let mut texts = TextNumbers::of(&self.texts);
        put(out, self.records.len() as u64);
        for ((book, market), price) in &self.records {
            put(out, (*book).into());
            put(out, (*market).into());
            put_time(price.last_update, at, out);
            put_outcomes(Sides::of(&self.event), &price.outcomes, &mut texts, out);
        }
    }

    fn read(at: Timestamp, shared: &mut Vec<Arc<str>>, cursor: &mut Cursor<'_>) -> Result<Self, Flaw> {
        let mut event = read_event(at, shared, cursor)?;
        event.changed = read_time(at, cursor)?;
        let score = if cursor.byte()? == 1 { Some(Arc::new(read_score(&event, at, cursor)?)) } else { None };
        let mut texts = read_texts(cursor)?;
        let known = texts.len();
        let records = read_all(cursor, |cursor| {
            let key = (cursor.small()?, cursor.small()?);
            let last_update = read_time(at, cursor)?;
            let outcomes = read_outcomes(Sides::of(&event), &mut texts, cursor)?;
            Ok((key, LoggedPrice { last_update, outcomes }))
        })?;
        // A side that was renamed is a text in the keyframe alone: the entries that follow do not number it.
        texts.truncate(known);
        // In their order, as they are: a map is built at once from these.
        Ok(FoldedEvent { event: Arc::new(event), score, texts, records: records.into_iter().collect() })
    }
}

fn put_texts(texts: &[Arc<str>], out: &mut Vec<u8>) {
    put(out, texts.len() as u64);
    for text in texts {
        put_text(out, text);
    }
}

fn read_texts(cursor: &mut Cursor<'_>) -> Result<Vec<Arc<str>>, Flaw> {
    read_all(cursor, |cursor| Ok(cursor.text()?.into()))
}

fn read_all<'b, T>(
    cursor: &mut Cursor<'b>,
    mut one: impl FnMut(&mut Cursor<'b>) -> Result<T, Flaw>,
) -> Result<Vec<T>, Flaw> {
    (0..cursor.count()?).map(|_| one(cursor)).collect()
}
