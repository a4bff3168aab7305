//! Changes as server-sent events, or as lines of JSON.
//!
//! A record is rendered once for each format, and an entry is put together once for each filter, as far as there is room to keep it:
//! clients that follow the same share the same bytes.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use foldhash::fast::RandomState;

use super::entry::{ChangeEntry, ListChange, PART_RECORDS, PriceChange, RenderedRecords, SportEntry, TickEntry};
use super::filter::ChangeFilter;
use crate::board::register::Register;
use crate::board::render::{self, json};
use crate::model::{OddsFormat, Position, Timestamp};

/// How many bytes are kept for all filters together, unless something else is asked for.
const KEPT_BYTES_MAX: usize = 2 << 20;
/// About how many bytes it takes to keep the frames of a filter, without their bytes.
pub(super) const KEPT_FILTER: usize = 128;

/// The bytes of something for the filters that it was last rendered for.
#[derive(Debug)]
pub(super) struct FrameCache {
    kept: Mutex<KeptFrames>,
}

#[derive(Debug)]
struct KeptFrames {
    by_filter: HashMap<u64, Frames, RandomState>,
    /// Of all of them.
    bytes: usize,
    /// How many bytes are kept, if they are for more than one filter.
    bytes_max: usize,
}

/// Server-sent events, one after the other.
#[derive(Debug, Default)]
pub(super) struct Frames {
    pub bytes: Bytes,
    /// For each of them its number within the entry, and where it begins.
    starts: Box<[(u32, usize)]>,
}

impl Default for FrameCache {
    fn default() -> Self {
        FrameCache::within(KEPT_BYTES_MAX)
    }
}

impl FrameCache {
    pub(super) fn within(bytes_max: usize) -> Self {
        FrameCache { kept: Mutex::new(KeptFrames::within(bytes_max)) }
    }

    /// The bytes for a filter, from the event with this number on.
    pub(super) fn get_or_render(&self, filter: &ChangeFilter, offset: u32, render: impl FnOnce() -> Frames) -> Bytes {
        if let Some(frames) = self.kept().by_filter.get(&filter.id) {
            return frames.from(offset);
        }
        let frames = render();
        let wanted = frames.from(offset);
        self.keep(filter, frames);
        wanted
    }

    /// The bytes of `parts` one after the other, for a filter that they are the same for. `None` if there is no room to keep
    /// them: without that every client would have a copy of its own.
    pub(super) fn get_or_join(&self, filter: &ChangeFilter, parts: impl FnOnce() -> [Bytes; 2]) -> Option<Bytes> {
        if let Some(frames) = self.kept().by_filter.get(&filter.id) {
            return Some(frames.bytes.clone());
        }
        let bytes = Bytes::from(parts().concat());
        self.keep(filter, Frames { bytes: bytes.clone(), starts: Box::default() }).then_some(bytes)
    }

    fn has(&self, filter: &ChangeFilter) -> bool {
        self.kept().by_filter.contains_key(&filter.id)
    }

    fn keep(&self, filter: &ChangeFilter, frames: Frames) -> bool {
        let kept = &mut *self.kept();
        let bytes = kept.bytes + frames.weight();
        let has_room = kept.by_filter.is_empty() || bytes <= kept.bytes_max;
        // Another client with the filter may have been as fast.
        if has_room && let Entry::Vacant(vacant) = kept.by_filter.entry(filter.id) {
            vacant.insert(frames);
            kept.bytes = bytes;
        }
        has_room
    }

    /// How many bytes are kept, and for how many filters.
    #[cfg(test)]
    pub(super) fn size(&self) -> (usize, usize) {
        let kept = self.kept();
        (kept.bytes, kept.by_filter.len())
    }

    /// Forgets what is kept, and keeps so many bytes from now on.
    pub(super) fn clear_within(&self, bytes_max: usize) {
        *self.kept() = KeptFrames::within(bytes_max);
    }

    fn kept(&self) -> MutexGuard<'_, KeptFrames> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeptFrames {
    fn within(bytes_max: usize) -> Self {
        KeptFrames { by_filter: HashMap::default(), bytes: 0, bytes_max }
    }
}

impl Frames {
    fn weight(&self) -> usize {
        KEPT_FILTER + self.bytes.len() + size_of_val(&*self.starts)
    }

    /// Those from the event with this number on.
    fn from(&self, offset: u32) -> Bytes {
        if offset == 0 {
            return self.bytes.clone();
        }
        match self.starts.iter().find(|(number, _)| *number >= offset) {
            Some((_, start)) => self.bytes.slice(start..),
            None => Bytes::new(),
        }
    }
}

/// How events are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum EventStyle {
    #[default]
    ServerSent,
    /// A JSON object on a line of its own, with prices as they were quoted.
    Line,
}

/// What lines have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineCounts {
    /// Changes of records.
    pub records: usize,
    /// Changes of events and scores.
    pub lists: usize,
}

/// What events are written into.
#[derive(Debug, Default)]
pub(super) struct FrameWriter {
    pub bytes: Vec<u8>,
    style: EventStyle,
    counts: LineCounts,
    starts: Vec<(u32, usize)>,
    /// Where the last event begins.
    last: Option<usize>,
}

impl FrameWriter {
    /// Writes an event with its data, and with the position after it unless the client must not resume there.
    pub(super) fn event(&mut self, kind: &str, position: Option<Position>, data: impl FnOnce(&mut Vec<u8>)) {
        if self.style == EventStyle::Line {
            self.line(kind, position, data);
            return;
        }
        self.last = Some(self.bytes.len());
        self.bytes.extend_from_slice(b"event: ");
        self.bytes.extend_from_slice(kind.as_bytes());
        if let Some(position) = position {
            self.bytes.extend_from_slice(b"\nid: ");
            self.bytes.extend_from_slice(position.to_string().as_bytes());
        }
        self.bytes.extend_from_slice(b"\ndata: ");
        // JSON has no line breaks of its own.
        data(&mut self.bytes);
        self.bytes.extend_from_slice(b"\n\n");
    }

    /// `{"type":"…","position":"…",…}`
    fn line(&mut self, kind: &str, position: Option<Position>, data: impl FnOnce(&mut Vec<u8>)) {
        self.bytes.extend_from_slice(b"{\"type\":");
        json::string(kind, &mut self.bytes);
        if let Some(position) = position {
            self.bytes.extend_from_slice(b",\"position\":");
            json::string(&position.to_string(), &mut self.bytes);
        }
        let at = self.bytes.len();
        data(&mut self.bytes);
        // The data is an object with at least one field: its brace is in the place of the comma.
        self.bytes[at] = b',';
        self.bytes.push(b'\n');
    }

    /// Gives the last event a position, if there is an event.
    pub(super) fn mark_last(&mut self, position: Position) {
        if let Some(last) = self.last {
            self.bytes.splice(last..last, format!("id: {position}\n").into_bytes());
        }
    }

    pub(super) fn finish(self) -> Frames {
        Frames { bytes: self.bytes.into(), starts: self.starts.into() }
    }
}

impl ChangeEntry {
    /// Renders a part of the records that the frames for a filter need, if one is missing. Returns whether none was.
    pub fn prepare(&self, filter: &ChangeFilter, register: &Register) -> bool {
        let wanted = self.sports.iter().filter(|sport| filter.spec.sports.contains(sport.sport));
        let mut long = wanted.filter_map(|sport| {
            let tick = sport.tick.as_ref().filter(|tick| tick.rendered.len() > 1)?;
            Some((sport, tick))
        });
        let is_ready = |(sport, tick): (&SportEntry, &TickEntry)| {
            let mut missing = tick.missing(filter.spec.style());
            let wanted = missing.find_map(|part| filter.records_within(sport, tick, register, part).next());
            wanted.map(|at| tick.rendered(&sport.key, filter.spec.style(), at)).is_none()
        };
        long.next().is_none_or(|first| self.frames.has(filter) || is_ready(first) && long.all(is_ready))
    }

    /// The events of this entry that pass a filter, from one of its events on.
    pub fn frames(&self, filter: &ChangeFilter, register: &Register, from: Position) -> Bytes {
        self.frames.get_or_render(filter, from.offset, || self.render(filter, register, from.epoch))
    }

    /// The same as lines of JSON, with all prices as they were quoted. Appends them, and returns what they have.
    pub fn write_lines(&self, filter: &ChangeFilter, register: &Register, epoch: u64, out: &mut Vec<u8>) -> LineCounts {
        let mut writer = FrameWriter { bytes: std::mem::take(out), style: EventStyle::Line, ..FrameWriter::default() };
        self.write(filter, register, epoch, &mut writer);
        *out = writer.bytes;
        writer.counts
    }

    fn render(&self, filter: &ChangeFilter, register: &Register, epoch: u64) -> Frames {
        let mut out = FrameWriter::default();
        self.write(filter, register, epoch, &mut out);
        out.finish()
    }

    fn write(&self, filter: &ChangeFilter, register: &Register, epoch: u64, out: &mut FrameWriter) {
        let (mut number, count) = (0, self.event_count());
        // The last event leads to the beginning of the next entry.
        let after = |number: u32| {
            let is_last = number + 1 == count;
            let (sequence, offset) = if is_last { (self.sequence + 1, 0) } else { (self.sequence, number + 1) };
            Some(Position { epoch, sequence, offset })
        };
        for sport in &self.sports {
            for change in &sport.lists {
                let has_any = |tick: &&TickEntry| filter.records(sport, tick, register).next().is_some();
                let moved = filter.moved(sport.sport, change).filter(has_any);
                if filter.accepts_event(sport.sport, change.event()) {
                    out.starts.push((number, out.bytes.len()));
                    // Of two events under one number the last has the position.
                    write_list_change(change, &sport.key, after(number).filter(|_| moved.is_none()), out);
                } else if moved.is_some() {
                    out.starts.push((number, out.bytes.len()));
                }
                if let Some(tick) = moved {
                    write_prices((sport, tick), filter, register, after(number), out);
                }
                number += 1;
            }
            let Some(tick) = &sport.tick else { continue };
            for (key, is_stale) in &tick.sources {
                if filter.spec.sports.contains(sport.sport) && filter.accepts_book(key, register) {
                    out.starts.push((number, out.bytes.len()));
                    out.event("source", after(number), |out| write_source(&sport.key, key, *is_stale, tick.at, out));
                }
                number += 1;
            }
            if !tick.records.is_empty() {
                if filter.records(sport, tick, register).next().is_some() {
                    out.starts.push((number, out.bytes.len()));
                    write_prices((sport, tick), filter, register, after(number), out);
                }
                number += 1;
            }
        }
    }
}

impl TickEntry {
    /// A record as JSON. One that closed is empty.
    pub(super) fn rendered(&self, sport_key: &str, style: (OddsFormat, bool), at: usize) -> &[u8] {
        self.part(sport_key, style, at / PART_RECORDS).get(at % PART_RECORDS)
    }

    /// The ranges of records that have not been rendered.
    fn missing(&self, style: (OddsFormat, bool)) -> impl Iterator<Item = Range<usize>> {
        let is_missing = move |at: &usize| self.rendered[at / PART_RECORDS][form(style)].get().is_none();
        let begins = (0..self.records.len()).step_by(PART_RECORDS).filter(is_missing);
        begins.map(|at| at..self.records.len().min(at + PART_RECORDS))
    }

    fn part(&self, sport_key: &str, style: (OddsFormat, bool), part: usize) -> &RenderedRecords {
        self.rendered[part][form(style)].get_or_init(|| {
            let records = self.records.chunks(PART_RECORDS).nth(part).unwrap_or_default();
            self.render(sport_key, (Some(style.0), style.1), records)
        })
    }

    /// Without a format, each record is in the one that it was quoted in.
    fn render(&self, sport_key: &str, style: (Option<OddsFormat>, bool), records: &[PriceChange]) -> RenderedRecords {
        let records = records.iter().map(|change| {
            let key = &*self.books[usize::from(change.book)];
            (&*change.event, key, change.record.as_deref())
        });
        let (json, ends) = render::records(sport_key, style, records);
        RenderedRecords { json: json.into(), ends: ends.into() }
    }
}

/// The position of a format among the forms of a part.
fn form((format, with_event): (OddsFormat, bool)) -> usize {
    format as usize + if with_event { OddsFormat::ALL.len() } else { 0 }
}

pub(super) fn write_list_change(change: &ListChange, sport_key: &str, after: Option<Position>, out: &mut FrameWriter) {
    out.counts.lists += 1;
    match change {
        ListChange::Event(event, markets, _) => {
            out.event("event", after, |out| render::write_event(event, markets.iter().copied(), sport_key, out));
        }
        ListChange::Score(event, score) => {
            out.event("score", after, |out| render::write_score(event, Some(score), sport_key, out));
        }
        ListChange::Removed(event) => {
            out.event("event", after, |out| write_removed(event.id.as_str(), sport_key, out));
        }
    }
}

/// `{"id":"…","sport_key":"…","status":"removed"}`
pub(super) fn write_removed(id: &str, sport_key: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"id\":");
    json::string(id, out);
    out.extend_from_slice(b",\"sport_key\":");
    json::string(sport_key, out);
    out.extend_from_slice(b",\"status\":\"removed\"}");
}

pub(super) fn write_source(sport_key: &str, bookmaker: &str, is_stale: bool, at: Timestamp, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"at\":\"");
    at.write(out);
    out.extend_from_slice(b"\",\"sport_key\":");
    json::string(sport_key, out);
    out.extend_from_slice(b",\"bookmaker\":");
    json::string(bookmaker, out);
    out.extend_from_slice(if is_stale { b",\"stale\":true}" } else { b",\"stale\":false}" });
}

/// The records of a publication that pass a filter.
fn write_prices(
    (sport, tick): (&SportEntry, &TickEntry),
    filter: &ChangeFilter,
    register: &Register,
    after: Option<Position>,
    out: &mut FrameWriter,
) {
    let wanted: Vec<usize> = filter.records(sport, tick, register).collect();
    out.counts.records += wanted.len();
    if out.style == EventStyle::Line {
        let rendered = tick.render(&sport.key, (None, filter.spec.with_event), &tick.records);
        out.event("odds", after, |out| write_odds(sport, tick, |at| rendered.get(at), &wanted, out));
    } else {
        let rendered = |at| tick.rendered(&sport.key, filter.spec.style(), at);
        out.event("odds", after, |out| write_odds(sport, tick, rendered, &wanted, out));
    }
}

fn write_odds<'r>(
    sport: &SportEntry,
    tick: &TickEntry,
    rendered: impl Fn(usize) -> &'r [u8],
    wanted: &[usize],
    out: &mut Vec<u8>,
) {
    let (open, closed): (Vec<usize>, Vec<usize>) = wanted.iter().partition(|at| tick.records[**at].record.is_some());
    out.reserve(open.iter().map(|at| rendered(*at).len() + 1).sum());
    begin_odds(tick.at, &sport.key, out);
    json::array(open, out, |at, out| out.extend_from_slice(rendered(at)));
    out.extend_from_slice(b",\"closed\":");
    json::array(closed, out, |at, out| write_id(&tick.records[at].id.text(), out));
    out.push(b'}');
}

/// `{"at":"…","sport_key":"…","records":`
pub(super) fn begin_odds(at: Timestamp, sport_key: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"at\":\"");
    at.write(out);
    out.extend_from_slice(b"\",\"sport_key\":");
    json::string(sport_key, out);
    out.extend_from_slice(b",\"records\":");
}

pub(super) fn write_id(id: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    out.extend_from_slice(id);
    out.push(b'"');
}
