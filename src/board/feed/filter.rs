//! Which changes a client follows. Names are resolved once, or once for each bookmaker of a publication: what is looked at for
//! each record are bits and numbers.

use std::collections::BTreeSet;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::entry::{ListChange, SportEntry, TickEntry};
use crate::board::query::{CompetitionKeys, EventIds, EventScope, Limit, OddsQuery};
use crate::board::register::Register;
use crate::board::render::json;
use crate::board::select::{Pick, Scope, visit_events};
use crate::board::snapshot::{Published, WorldBoard};
use crate::model::{Catalogue, Event, EventId, Market, MarketFilter, OddsFormat, Region, Regions, SportId, SportSet};

/// What a client follows. Equal specifications have equal bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FilterSpec {
    pub sports: SportSet,
    /// Those of them whose events with a field are left out.
    pub sides_only: SportSet,
    pub competitions: Option<CompetitionKeys>,
    pub events: Option<EventIds>,
    /// For each sport of the catalogue: names of markets differ between them.
    pub markets: Box<[MarketFilter]>,
    /// Keys of markets that have not had a price yet.
    pub markets_to_come: Box<[Box<str>]>,
    /// By their keys: one that is unknown now may come.
    pub bookmakers: Option<Box<[Box<str>]>>,
    pub regions: Option<Regions>,
    pub format: OddsFormat,
    /// Whether records come with their events.
    pub with_event: bool,
}

impl FilterSpec {
    /// Writes what is followed, as JSON: `null` where nothing is left out.
    pub(crate) fn write(&self, catalogue: &Catalogue, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"sports\":");
        let sports = catalogue.sports().filter(|(id, _)| self.sports.contains(*id));
        json::array(sports, out, |(_, sport), out| json::string(&sport.key, out));
        out.extend_from_slice(b",\"competition\":");
        write_keys(self.competitions.as_ref().map(CompetitionKeys::iter), out);
        out.extend_from_slice(b",\"market\":");
        self.write_markets(out);
        out.extend_from_slice(b",\"bookmaker\":");
        write_keys(self.bookmakers.as_ref().map(|keys| keys.iter().map(|key| &**key)), out);
        out.extend_from_slice(b",\"regions\":");
        write_keys(self.regions.map(|regions| regions.iter().map(Region::key)), out);
        out.extend_from_slice(b",\"event_ids\":");
        write_keys(self.events.as_ref().map(|ids| ids.iter().map(EventId::as_str)), out);
        out.extend_from_slice(b",\"odds_format\":");
        json::string(self.format.key(), out);
        out.extend_from_slice(b",\"include\":");
        write_keys(Some(self.with_event.then_some("event").into_iter()), out);
        out.push(b'}');
    }

    /// The keys that are named, in any sport; `null` for the featured markets, which are followed if none is.
    fn write_markets(&self, out: &mut Vec<u8>) {
        let mut named: BTreeSet<&str> = self.markets_to_come.iter().map(|key| &**key).collect();
        for markets in &self.markets {
            match markets {
                MarketFilter::Featured => {}
                MarketFilter::All => drop(named.insert("all")),
                MarketFilter::Only(markets) => named.extend(markets.iter().map(|market| market.key())),
            }
        }
        write_keys((!named.is_empty()).then_some(named.into_iter()), out);
    }

    /// How records are rendered: their format, and whether with their events.
    pub(super) fn style(&self) -> (OddsFormat, bool) {
        (self.format, self.with_event)
    }
}

fn write_keys<'k>(keys: Option<impl Iterator<Item = &'k str>>, out: &mut Vec<u8>) {
    match keys {
        Some(keys) => json::array(keys, out, json::string),
        None => out.extend_from_slice(b"null"),
    }
}

/// A specification that is in use, with a number of its own.
#[derive(Debug)]
pub struct ChangeFilter {
    pub(super) id: u64,
    pub spec: FilterSpec,
}

impl ChangeFilter {
    pub fn new(spec: FilterSpec) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        ChangeFilter { id: NEXT.fetch_add(1, Ordering::Relaxed), spec }
    }

    pub(super) fn accepts_event(&self, sport: SportId, event: &Event) -> bool {
        let spec = &self.spec;
        spec.sports.contains(sport)
            && spec.competitions.as_ref().is_none_or(|keys| keys.contains(&event.competition_key))
            && spec.events.as_ref().is_none_or(|ids| ids.contains(&event.id))
            && !(spec.sides_only.contains(sport) && event.title().is_some())
    }

    /// What a client gets or loses of an event that went to another competition.
    pub(super) fn moved<'c>(&self, sport: SportId, change: &'c ListChange) -> Option<&'c TickEntry> {
        let ListChange::Event(event, _, Some(moved)) = change else { return None };
        match (self.accepts_event(sport, &moved.from), self.accepts_event(sport, event)) {
            (true, false) => Some(&moved.left),
            (false, true) => Some(&moved.arrived),
            _ => None,
        }
    }

    fn accepts_market(&self, sport: SportId, market: Market) -> bool {
        let is_wanted = self.spec.markets.get(sport.index()).is_some_and(|markets| markets.accepts(market));
        is_wanted || self.spec.markets_to_come.iter().any(|key| **key == *market.key())
    }

    /// Whether the prices of a bookmaker are wanted.
    pub(super) fn accepts_book(&self, key: &str, register: &Register) -> bool {
        let is_offered = |regions: Regions| {
            let book = register.bookmakers().find(key);
            book.is_some_and(|book| register.offered_in(regions).contains(book))
        };
        self.names_book(key) && self.spec.regions.is_none_or(is_offered)
    }

    fn names_book(&self, key: &str) -> bool {
        self.spec.bookmakers.as_ref().is_none_or(|keys| keys.iter().any(|named| **named == *key))
    }

    fn named_removed(&self, key: &str, register: &Register) -> bool {
        self.names_book(key) && register.bookmakers().find(key).is_none()
    }

    /// The positions of the records of a publication that are wanted.
    pub(super) fn records<'t>(
        &'t self,
        sport: &'t SportEntry,
        tick: &'t TickEntry,
        register: &Register,
    ) -> impl Iterator<Item = usize> + 't {
        self.records_within(sport, tick, register, 0..tick.records.len())
    }

    /// Those of them that lie within a range.
    pub(super) fn records_within<'t>(
        &'t self,
        sport: &'t SportEntry,
        tick: &'t TickEntry,
        register: &Register,
        range: Range<usize>,
    ) -> impl Iterator<Item = usize> + 't {
        let books: Vec<bool> = tick.books.iter().map(|key| self.accepts_book(key, register)).collect();
        // Of a bookmaker that has been removed nobody knows the regions any more. A client may close what it does not have.
        let closing: Vec<bool> = tick
            .books
            .iter()
            .zip(&books)
            .map(|(key, is_wanted)| *is_wanted || self.named_removed(key, register))
            .collect();
        let mut last: Option<(&Arc<Event>, bool)> = None;
        let is_wanted = move |at: &usize| {
            let change = &tick.records[*at];
            let books = if change.record.is_some() { &books } else { &closing };
            if !books[usize::from(change.book)] || !self.accepts_market(sport.sport, change.market) {
                return false;
            }
            match last {
                Some((event, is_wanted)) if Arc::ptr_eq(event, &change.event) => is_wanted,
                _ => {
                    let is_wanted = self.accepts_event(sport.sport, &change.event);
                    last = Some((&change.event, is_wanted));
                    is_wanted
                }
            }
        };
        range.filter(is_wanted)
    }

    /// The current records of a sport that are wanted, as a query of its board.
    pub fn query(&self, sport: SportId, register: &Register) -> OddsQuery {
        let FilterSpec { competitions, events, bookmakers, regions, format, .. } = &self.spec;
        let books = register.bookmakers();
        let bookmakers = bookmakers.as_ref().map(|keys| keys.iter().filter_map(|key| books.find(key)).collect());
        OddsQuery {
            markets: self.markets_of(sport),
            bookmakers,
            regions: *regions,
            format: *format,
            scope: EventScope {
                events: events.clone(),
                competitions: competitions.clone(),
                sides_only: self.spec.sides_only.contains(sport),
                ..EventScope::default()
            },
            with_event: self.spec.with_event,
            limit: Limit::LONGEST,
            after: None,
            by_bout: false,
        }
    }

    /// How many current records of a world are wanted.
    pub fn count(&self, world: &WorldBoard) -> usize {
        let wanted = world.iter().filter(|(id, _)| self.spec.sports.contains(*id));
        wanted.map(|(id, board)| self.count_of(id, board.published())).sum()
    }

    fn count_of(&self, sport: SportId, board: &Published) -> usize {
        let query = self.query(sport, board.register());
        let books = board.books_of(query.bookmakers.as_deref(), query.regions);
        let pick = Pick { markets: &query.markets, books: books.as_deref() };
        let mut count = 0;
        visit_events(board.index(), &Scope::new(pick.filter(), &query.scope, None), |node| {
            count += pick.records(node).count();
            ControlFlow::Continue(())
        });
        count
    }

    fn markets_of(&self, sport: SportId) -> MarketFilter {
        let markets = self.spec.markets.get(sport.index()).cloned().unwrap_or_default();
        let come: Vec<Market> = self.spec.markets_to_come.iter().filter_map(|key| Market::find(key)).collect();
        match markets {
            MarketFilter::Only(named) if !come.is_empty() => MarketFilter::only([named.into_vec(), come].concat()),
            markets => markets,
        }
    }
}
