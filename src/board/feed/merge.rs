//! Several entries as one change: of every record, event and score the last state only.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use super::entry::{ChangeEntry, ListChange, SportEntry, TickEntry};
use super::filter::ChangeFilter;
use super::frames::{FrameWriter, begin_odds, write_id, write_list_change, write_removed, write_source};
use crate::board::register::Register;
use crate::board::render::{self, json};
use crate::model::{Event, EventId, Market, Position, RecordId, Score, Timestamp};

/// What entries changed together, as far as it passes a filter.
#[derive(Debug)]
pub struct MergedChanges<'f> {
    filter: &'f ChangeFilter,
    register: &'f Register,
    /// By the keys of the sports.
    sports: BTreeMap<Arc<str>, MergedSport>,
    rows: usize,
}

#[derive(Debug, Default)]
struct MergedSport {
    /// Removed, and perhaps added again.
    removed: BTreeMap<EventId, Arc<Event>>,
    events: BTreeMap<EventId, (Arc<Event>, Box<[Market]>)>,
    scores: BTreeMap<EventId, (Arc<Event>, Arc<Score>)>,
    sources: BTreeMap<Arc<str>, (bool, Timestamp)>,
    records: BTreeMap<(EventId, Arc<str>, &'static str), MergedRecord>,
    last_tick: Timestamp,
}

#[derive(Debug)]
struct MergedRecord {
    id: RecordId,
    /// Its JSON; `None` if it closed.
    json: Option<Box<[u8]>>,
}

impl<'f> MergedChanges<'f> {
    pub fn new(filter: &'f ChangeFilter, register: &'f Register) -> Self {
        MergedChanges { filter, register, sports: BTreeMap::new(), rows: 0 }
    }

    /// How many records, events and scores it has.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Adds the events of an entry from `offset` on, as long as there are fewer than `rows_max` rows. Returns where it stopped:
    /// the number of the next event, or `None` at the end of the entry.
    pub fn add(&mut self, entry: &ChangeEntry, offset: u32, rows_max: usize) -> Option<u32> {
        let mut number = 0;
        for sport in &entry.sports {
            for change in &sport.lists {
                if number >= offset {
                    if self.rows >= rows_max {
                        return Some(number);
                    }
                    self.add_list_change(sport, change);
                }
                number += 1;
            }
            let Some(tick) = &sport.tick else { continue };
            let is_followed = self.filter.spec.sports.contains(sport.sport);
            for (key, is_stale) in &tick.sources {
                if number >= offset && is_followed && self.filter.accepts_book(key, self.register) {
                    let merged = self.sports.entry(Arc::clone(&sport.key)).or_default();
                    merged.sources.insert(Arc::clone(key), (*is_stale, tick.at));
                }
                number += 1;
            }
            if !tick.records.is_empty() {
                if number >= offset {
                    if self.rows >= rows_max {
                        return Some(number);
                    }
                    self.add_prices(sport, tick);
                }
                number += 1;
            }
        }
        None
    }

    fn add_list_change(&mut self, sport: &SportEntry, change: &ListChange) {
        if let Some(tick) = self.filter.moved(sport.sport, change) {
            self.add_prices(sport, tick);
        }
        if !self.filter.accepts_event(sport.sport, change.event()) {
            return;
        }
        let merged = self.sports.entry(Arc::clone(&sport.key)).or_default();
        let rows = merged.rows();
        let id = change.event().id.clone();
        match change {
            ListChange::Event(event, markets, _) => {
                merged.events.insert(id, (Arc::clone(event), markets.clone()));
            }
            ListChange::Score(event, score) => {
                merged.scores.insert(id, (Arc::clone(event), Arc::clone(score)));
            }
            ListChange::Removed(event) => {
                merged.events.remove(&id);
                merged.scores.remove(&id);
                merged.records.retain(|(of, ..), _| *of != id);
                merged.removed.insert(id, Arc::clone(event));
            }
        }
        self.rows = self.rows + merged.rows() - rows;
    }

    fn add_prices(&mut self, sport: &SportEntry, tick: &TickEntry) {
        if !self.filter.spec.sports.contains(sport.sport) {
            return;
        }
        let merged = self.sports.entry(Arc::clone(&sport.key)).or_default();
        let rows = merged.rows();
        let style = self.filter.spec.style();
        merged.last_tick = merged.last_tick.max(tick.at);
        for at in self.filter.records(sport, tick, self.register) {
            let change = &tick.records[at];
            let book = Arc::clone(&tick.books[usize::from(change.book)]);
            let json = change.record.is_some().then(|| tick.rendered(&sport.key, style, at).into());
            merged
                .records
                .insert((change.event.id.clone(), book, change.market.key()), MergedRecord { id: change.id, json });
        }
        self.rows = self.rows + merged.rows() - rows;
    }

    /// As server-sent events, of which the last has the position; empty if nothing passes the filter.
    pub fn frames(self, position: Position) -> Bytes {
        let mut out = FrameWriter::default();
        for (key, sport) in &self.sports {
            sport.write_lists(key, &mut out);
            for (bookmaker, (is_stale, at)) in &sport.sources {
                out.event("source", None, |out| write_source(key, bookmaker, *is_stale, *at, out));
            }
            if !sport.records.is_empty() {
                out.event("odds", None, |out| {
                    begin_odds(sport.last_tick, key, out);
                    sport.write_records(out);
                    out.extend_from_slice(b",\"closed\":");
                    sport.write_closed(out);
                    out.extend_from_slice(b",\"conflated\":true}");
                });
            }
        }
        out.mark_last(position);
        out.finish().bytes
    }

    /// As the answer to a request for changes.
    pub fn json(self, position: Position, has_more: bool) -> Vec<u8> {
        let mut out = Vec::with_capacity(256 + self.rows * 256);
        out.extend_from_slice(b"{\"position\":");
        json::string(&position.to_string(), &mut out);
        out.extend_from_slice(b",\"records\":");
        let sports: Vec<(&Arc<str>, &MergedSport)> = self.sports.iter().collect();
        let records = sports.iter().flat_map(|(_, sport)| sport.records.values());
        json::array(records.clone().filter_map(|record| record.json.as_ref()), &mut out, |record, out| {
            out.extend_from_slice(record);
        });
        out.extend_from_slice(b",\"closed\":");
        json::array(records.filter(|record| record.json.is_none()), &mut out, |record, out| {
            write_id(&record.id.text(), out);
        });
        out.extend_from_slice(b",\"events\":");
        let events = sports.iter().flat_map(|(key, sport)| sport.events.values().map(move |event| (key, event)));
        json::array(events, &mut out, |(key, (event, markets)), out| {
            render::write_event(event, markets.iter().copied(), key, out);
        });
        out.extend_from_slice(b",\"scores\":");
        let scores = sports.iter().flat_map(|(key, sport)| sport.scores.values().map(move |score| (key, score)));
        json::array(scores, &mut out, |(key, (event, score)), out| render::write_score(event, Some(score), key, out));
        out.extend_from_slice(b",\"removed\":");
        let removed = sports.iter().flat_map(|(key, sport)| sport.removed.keys().map(move |id| (key, id)));
        json::array(removed, &mut out, |(key, id), out| write_removed(id.as_str(), key, out));
        out.extend_from_slice(if has_more { b",\"more\":true}" } else { b",\"more\":false}" });
        out
    }
}

impl MergedSport {
    fn rows(&self) -> usize {
        self.removed.len() + self.events.len() + self.scores.len() + self.records.len()
    }

    fn write_lists(&self, key: &str, out: &mut FrameWriter) {
        for event in self.removed.values() {
            write_list_change(&ListChange::Removed(Arc::clone(event)), key, None, out);
        }
        for (event, markets) in self.events.values() {
            write_list_change(&ListChange::Event(Arc::clone(event), markets.clone(), None), key, None, out);
        }
        for (event, score) in self.scores.values() {
            write_list_change(&ListChange::Score(Arc::clone(event), Arc::clone(score)), key, None, out);
        }
    }

    fn write_records(&self, out: &mut Vec<u8>) {
        json::array(self.records.values().filter_map(|record| record.json.as_ref()), out, |record, out| {
            out.extend_from_slice(record);
        });
    }

    fn write_closed(&self, out: &mut Vec<u8>) {
        json::array(self.records.values().filter(|record| record.json.is_none()), out, |record, out| {
            write_id(&record.id.text(), out);
        });
    }
}
