//! News about bookmakers and their sources.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::state::SourceEntry;
use super::{BatchTime, NewsBatch};
use crate::board::{Applied, Index};
use crate::model::{BookId, Bookmaker, Catalogue, ReadNews, Reason, Source, SourceNews, SportId, Timestamp, World};
use crate::store::{BookOrigin, Change};

/// A read is written to the file when it is this much newer than the stored one, so that a quiet feed costs no commits.
const READ_STORED_EVERY_S: u32 = 15;

impl NewsBatch<'_> {
    pub(super) fn bookmaker(&mut self, bookmaker: Bookmaker) -> Result<Applied, Reason> {
        let known = self.bookmakers().find(&bookmaker.key);
        if known.and_then(|id| self.bookmakers().get(id)).is_some_and(|known| **known == bookmaker) {
            return Ok(Applied::Unchanged);
        }
        let id = known.or_else(|| self.bookmakers().next_id()).ok_or(Reason::TooManyBookmakers)?;
        if known.is_none() {
            self.additions.bookmaker()?;
        }
        let bookmaker = Arc::new(bookmaker);
        let state = self.state;
        self.bookmakers.get_or_insert_with(|| state.register.bookmakers().clone()).put(id, Arc::clone(&bookmaker));
        let origin = BookOrigin::Declared;
        self.changes.push(Change::PutBookmaker { world: self.world, id, bookmaker, origin });
        Ok(Applied::Changed)
    }

    /// A bookmaker as a payload lists it: a known one takes its title, and keeps its regions.
    pub(super) fn listed(&mut self, bookmaker: Bookmaker) -> Result<Applied, Reason> {
        let Some(id) = self.bookmakers().find(&bookmaker.key) else { return self.bookmaker(bookmaker) };
        let Some(known) = self.bookmakers().get(id).filter(|known| known.title != bookmaker.title) else {
            return Ok(Applied::Unchanged);
        };
        let bookmaker = Arc::new(Bookmaker { regions: known.regions, ..bookmaker });
        let (world, origin, state) = (self.world, origin_of(&bookmaker, self.catalogue), self.state);
        self.bookmakers.get_or_insert_with(|| state.register.bookmakers().clone()).put(id, Arc::clone(&bookmaker));
        self.changes.push(Change::PutBookmaker { world, id, bookmaker, origin });
        Ok(Applied::Changed)
    }

    /// Replaces what is known of a source.
    pub(super) fn set_source(&mut self, news: &SourceNews) -> Result<Applied, Reason> {
        let bookmaker = self.bookmakers().find(&news.bookmaker).ok_or(Reason::UnknownBookmaker)?;
        let new = news.source;
        match self.source(news.sport, bookmaker) {
            Some(current) if new.last_read < current.last_read => return Ok(Applied::Late),
            Some(current) if new == current => return Ok(Applied::Unchanged),
            _ => {}
        }
        self.reads.insert((news.sport, bookmaker), new);
        self.set_sources.insert((news.sport, bookmaker));
        Ok(Applied::Changed)
    }

    pub(super) fn read(&mut self, news: &ReadNews) -> Result<Applied, Reason> {
        let bookmaker = self.bookmakers().find(&news.bookmaker).ok_or(Reason::UnknownBookmaker)?;
        let last_read = self.source(news.sport, bookmaker).map(|source| source.last_read);
        // A read in the future is from before the clock was set back: it makes nothing late.
        if last_read.is_some_and(|last_read| news.at < last_read && last_read <= self.time.now) {
            return Ok(Applied::Late);
        }
        self.advance_read(news.sport, bookmaker, news.at, Some(news.latency_ms));
        Ok(Applied::Changed)
    }

    fn source(&self, sport: SportId, book: BookId) -> Option<Source> {
        let current = || self.state.sports[sport.index()].sources.get(&book).map(|entry| entry.source);
        self.reads.get(&(sport, book)).copied().or_else(current)
    }

    /// A good read as of `at`. A feed whose clock is ahead does not stay fresh for longer.
    pub(in crate::writer) fn advance_read(
        &mut self,
        sport: SportId,
        book: BookId,
        at: Timestamp,
        latency_ms: Option<u32>,
    ) {
        let at = at.min(self.time.now);
        let mut source = self.source(sport, book).unwrap_or(Source {
            last_read: at,
            latency_ms: 0,
            empty_since: Some(self.time.now),
        });
        source.last_read = if source.last_read > self.time.now { at } else { source.last_read.max(at) };
        source.latency_ms = latency_ms.unwrap_or(source.latency_ms);
        self.reads.insert((sport, book), source);
    }
}

/// The origin of a bookmaker as it is now: as the catalogue lists it, with another title, or declared by a feed.
pub(in crate::writer) fn origin_of(book: &Bookmaker, catalogue: &Catalogue) -> BookOrigin {
    match catalogue.bookmakers().iter().find(|listed| listed.key == book.key) {
        Some(listed) if listed == book => BookOrigin::Catalogue,
        Some(listed) if listed.regions == book.regions => BookOrigin::Titled,
        _ => BookOrigin::Declared,
    }
}

/// Marks the sources that have no price any more, and writes those that changed enough to matter.
pub(super) fn store_sources(
    world: World,
    sport: SportId,
    index: &Index,
    time: BatchTime,
    (sources, is_read): (&mut BTreeMap<BookId, SourceEntry>, impl Fn(BookId) -> bool),
    changes: &mut Vec<Change>,
) {
    for (bookmaker, entry) in sources {
        let has_price = index.has_prices_of(*bookmaker);
        let was_empty = entry.source.empty_since.is_some();
        if has_price == was_empty {
            entry.source.empty_since = (!has_price).then_some(time.now);
        }
        let last_read = entry.read_to_store(time.is_clock_behind);
        let age_s = last_read.seconds_since(entry.stored_read);
        let went_back = last_read < entry.stored_read;
        let is_stored = time.stores_every_read && is_read(*bookmaker);
        if has_price == was_empty || age_s >= READ_STORED_EVERY_S || went_back || is_stored {
            entry.stored_read = last_read;
            let source = Source { last_read, ..entry.source };
            changes.push(Change::PutSource { world, sport, bookmaker: *bookmaker, source });
        }
    }
}
