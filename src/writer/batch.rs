//! A batch of news on its way in: applied to drafts, turned into changes of the file, and only after these are
//! committed into the next state. Dropping a batch undoes it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use foldhash::HashMap;

use super::changes::Moved;
use super::fight::{fight_score, renamed_winner};
use super::future;
use super::owners::{Additions, Sender};
use super::poll::Polls;
use super::report::IngestReport;
use super::slot::{Place, Slot, Touched};
use super::state::{SourceEntry, SportState, WorldState};
use crate::board::{Applied, Books, Draft, Edit, Index};
use crate::model::{
    BookId, Bookmaker, Bookmakers, Catalogue, Closed, ClosedNews, Event, EventId, EventNews, EventStatus, FeederQuota,
    Market, News, OddsNews, ReadNews, Reason, Record, RecordId, ScoreNews, Source, SourceNews, SportId, SportKind,
    Timestamp, World,
};
use crate::store::{BookOrigin, Change};

/// A read is written to the file when it is this much newer than the one there, so that a quiet feed costs no commits.
const READ_STORED_EVERY_S: u32 = 15;
const SECONDS_PER_DAY: u32 = 86_400;

/// What a batch does to one sport.
#[derive(Debug)]
pub(super) struct SportStep {
    pub sport: SportId,
    pub index: Option<Index>,
    pub sources: BTreeMap<BookId, SourceEntry>,
    /// Whether any price changed.
    pub repriced: bool,
    /// Removed events: they leave what is published at once.
    pub removed: Vec<Edit>,
}

/// Everything that a committed batch changes.
#[derive(Debug)]
pub(super) struct Step {
    pub books: Option<Arc<Books>>,
    pub sports: Vec<SportStep>,
    /// The records that were put or closed, in a world that is polled.
    pub places: Vec<Place>,
    /// The prices that changed, if anybody wants to know.
    pub moved: Vec<Moved>,
    /// Events with their new owner, and what it has used of its quota.
    pub additions: Additions,
}

/// News being applied to a world.
#[derive(Debug)]
pub(super) struct Batch<'w> {
    world: World,
    state: &'w WorldState,
    catalogue: &'w Catalogue,
    now: Timestamp,
    /// Whether our own clock is known to be wrong.
    is_clock_behind: bool,
    /// Whether it is remembered which prices changed.
    keeps_moved: bool,
    register: Option<Bookmakers>,
    slots: HashMap<(SportId, EventId), Slot>,
    reads: BTreeMap<(SportId, BookId), Source>,
    /// Sources that are written although no read of theirs is new.
    told_sources: BTreeSet<(SportId, BookId)>,
    changes: Vec<Change>,
    additions: Additions,
    report: IngestReport,
}

impl<'w> Batch<'w> {
    pub(super) fn new(
        world: World,
        state: &'w WorldState,
        catalogue: &'w Catalogue,
        (now, is_clock_behind): (Timestamp, bool),
        keeps_moved: bool,
    ) -> Self {
        Batch {
            world,
            state,
            catalogue,
            now,
            is_clock_behind,
            keeps_moved,
            register: None,
            slots: HashMap::default(),
            reads: BTreeMap::new(),
            told_sources: BTreeSet::new(),
            changes: Vec::new(),
            additions: Additions::default(),
            report: IngestReport::default(),
        }
    }

    /// The same batch, held to the quota of whoever sends it; `None` is one of the operator's own feeds.
    pub(super) fn sent_by(mut self, sender: Option<Sender>, quota: FeederQuota) -> Self {
        self.additions = self.state.owners.begin(sender, quota, self.now.unix() / SECONDS_PER_DAY);
        self
    }

    /// Applies a message, and counts what became of it.
    pub(super) fn apply(&mut self, mut news: News) -> Result<Applied, Reason> {
        let applied = future::admit(&mut news, self.now).and_then(|()| self.news(news));
        match applied {
            Ok(Applied::Changed) => self.report.changed += 1,
            Ok(Applied::Unchanged) => self.report.unchanged += 1,
            Ok(Applied::Late) => self.report.reject(Reason::Late),
            Err(reason) => self.report.reject(reason),
        }
        applied
    }

    pub(super) fn polls(&self) -> &'w Polls {
        &self.state.polls
    }

    fn news(&mut self, news: News) -> Result<Applied, Reason> {
        match news {
            News::Bookmaker(bookmaker) => self.bookmaker(bookmaker),
            News::Listed(bookmaker) => self.listed(bookmaker),
            News::Event(news) => self.event(news),
            News::Odds(news) => self.odds(news),
            News::Score(news) => self.score(news),
            News::Remove { sport, event } => self.remove(sport, &event),
            News::Read(news) => self.read(&news),
            News::AsOf(at, news) => {
                let now = self.now;
                self.now = at;
                let applied = self.news(*news);
                self.now = now;
                applied
            }
            News::Closed(news) => self.closed(&news),
            News::Source(news) => self.told_source(&news),
        }
    }

    pub(super) fn register(&self) -> &Bookmakers {
        self.register.as_ref().unwrap_or(self.state.books.register())
    }

    fn bookmaker(&mut self, bookmaker: Bookmaker) -> Result<Applied, Reason> {
        let held = self.register().find(&bookmaker.key);
        if held.and_then(|id| self.register().get(id)).is_some_and(|held| **held == bookmaker) {
            return Ok(Applied::Unchanged);
        }
        let id = held.or_else(|| self.register().next_id()).ok_or(Reason::TooManyBookmakers)?;
        if held.is_none() {
            self.additions.bookmaker()?;
        }
        let bookmaker = Arc::new(bookmaker);
        let state = self.state;
        self.register.get_or_insert_with(|| state.books.register().clone()).put(id, Arc::clone(&bookmaker));
        let origin = BookOrigin::Declared;
        self.changes.push(Change::PutBookmaker { world: self.world, id, bookmaker, origin });
        Ok(Applied::Changed)
    }

    /// A bookmaker as a payload lists it: a known one takes its title, and keeps its regions.
    fn listed(&mut self, bookmaker: Bookmaker) -> Result<Applied, Reason> {
        let Some(id) = self.register().find(&bookmaker.key) else { return self.bookmaker(bookmaker) };
        let Some(known) = self.register().get(id).filter(|known| known.title != bookmaker.title) else {
            return Ok(Applied::Unchanged);
        };
        let bookmaker = Arc::new(Bookmaker { regions: known.regions, ..bookmaker });
        let (world, origin, state) = (self.world, origin_of(&bookmaker, self.catalogue), self.state);
        self.register.get_or_insert_with(|| state.books.register().clone()).put(id, Arc::clone(&bookmaker));
        self.changes.push(Change::PutBookmaker { world, id, bookmaker, origin });
        Ok(Applied::Changed)
    }

    /// The event's slot; made from what is held when the batch first meets it.
    fn slot(&mut self, sport: SportId, id: &EventId) -> Option<&mut Slot> {
        let key = (sport, id.clone());
        if !self.slots.contains_key(&key) {
            let before = self.state.sports[sport.index()].current.get(id.as_str())?;
            let draft = Some(Draft::from(&**before));
            let slot = Slot { sport, draft, before: Some(Arc::clone(before)), removed: false, touched: Vec::new() };
            self.slots.insert(key.clone(), slot);
        }
        self.slots.get_mut(&key)
    }

    fn draft(&mut self, sport: SportId, id: &EventId) -> Result<(&mut Draft, &mut Touched), Reason> {
        let slot = self.slot(sport, id).ok_or(Reason::UnknownEvent)?;
        Ok((slot.draft.as_mut().ok_or(Reason::UnknownEvent)?, &mut slot.touched))
    }

    fn event(&mut self, news: EventNews) -> Result<Applied, Reason> {
        let now = self.now;
        let event = |status: EventStatus, changed: Timestamp| Event {
            id: news.id.clone(),
            competition: Arc::clone(&news.competition),
            commence: news.commence,
            contest: news.contest.clone(),
            status,
            changed,
        };
        if self.draft(news.sport, &news.id).is_err() {
            self.additions.event(news.sport, &news.id)?;
        } else {
            self.additions.again(&self.state.owners, news.sport, &news.id);
        }
        let Ok((draft, touched)) = self.draft(news.sport, &news.id) else {
            let new = Slot { sport: news.sport, draft: None, before: None, removed: false, touched: Vec::new() };
            let slot = self.slots.entry((news.sport, news.id.clone())).or_insert(new);
            slot.draft = Some(Draft::new(Arc::new(event(news.status, now))));
            return Ok(Applied::Changed);
        };
        // Once a score has come, the event's status is the score's; only a cancellation is news of its own.
        let status = match draft.score() {
            Some(score) if news.status != EventStatus::Cancelled => score.status.event_status(),
            _ => news.status,
        };
        if **draft.event() == event(status, draft.event().changed) {
            return Ok(Applied::Unchanged);
        }
        if let Some(score) = draft.score().and_then(|score| renamed_winner(score, draft.event(), &news.contest)) {
            draft.set_score(Arc::new(score));
        }
        draft.set_event(Arc::new(event(status, now)));
        close_if_over(draft, touched, now);
        Ok(Applied::Changed)
    }

    fn score(&mut self, news: ScoreNews) -> Result<Applied, Reason> {
        let (now, kind) = (self.now, self.catalogue[news.sport].kind);
        let (draft, touched) = self.draft(news.sport, &news.event)?;
        let score = if kind == SportKind::Fight { fight_score(news.score, draft.event())? } else { news.score };
        if let Some(held) = draft.score() {
            if score.updated < held.updated {
                return Ok(Applied::Late);
            }
            let is_cancelled = draft.event().status == EventStatus::Cancelled;
            if **held == score && !is_cancelled {
                return Ok(Applied::Unchanged);
            }
        }
        let status = score.status.event_status();
        draft.set_event(Arc::new(Event { status, changed: now, ..(**draft.event()).clone() }));
        draft.set_score(Arc::new(score));
        close_if_over(draft, touched, now);
        Ok(Applied::Changed)
    }

    fn odds(&mut self, news: OddsNews) -> Result<Applied, Reason> {
        let sport = &self.catalogue[news.sport];
        // A market that the sport does not have can still be closed: an older version may have stored prices of it.
        if !news.outcomes.is_empty() && !news.market.is_of(sport.kind) {
            return Err(Reason::MarketNotOfSport);
        }
        let bookmaker = self.register().find(&news.bookmaker).ok_or(Reason::UnknownBookmaker)?;
        let id = RecordId::new(&sport.key, &news.event, &news.bookmaker, news.market);
        let (draft, touched) = self.draft(news.sport, &news.event)?;
        let (market, last_update) = (news.market, news.last_update);
        let applied = if news.outcomes.is_empty() {
            draft.close(Closed { bookmaker, market, at: last_update })
        } else if draft.event().status.is_over() {
            return Err(Reason::EventOver);
        } else {
            let bookmaker_update = news.bookmaker_update.filter(|at| *at != last_update);
            let outcomes = news.outcomes;
            draft.put(Arc::new(Record { id, bookmaker, market, last_update, bookmaker_update, outcomes }))
        };
        if applied == Applied::Changed {
            touched.push((bookmaker, market));
        }
        if applied != Applied::Late {
            self.advance_read(news.sport, bookmaker, last_update, None);
        }
        Ok(applied)
    }

    /// Leaves the mark of a closed market. It is no read: whoever tells it tells of the sources as well.
    fn closed(&mut self, news: &ClosedNews) -> Result<Applied, Reason> {
        let bookmaker = self.register().find(&news.bookmaker).ok_or(Reason::UnknownBookmaker)?;
        let (draft, touched) = self.draft(news.sport, &news.event)?;
        let applied = draft.close(Closed { bookmaker, market: news.market, at: news.at });
        if applied == Applied::Changed {
            touched.push((bookmaker, news.market));
        }
        Ok(applied)
    }

    fn told_source(&mut self, news: &SourceNews) -> Result<Applied, Reason> {
        let bookmaker = self.register().find(&news.bookmaker).ok_or(Reason::UnknownBookmaker)?;
        let told = news.source;
        match self.source(news.sport, bookmaker) {
            Some(held) if told.last_read < held.last_read => return Ok(Applied::Late),
            Some(held) if told == held => return Ok(Applied::Unchanged),
            _ => {}
        }
        self.reads.insert((news.sport, bookmaker), told);
        self.told_sources.insert((news.sport, bookmaker));
        Ok(Applied::Changed)
    }

    /// Closes a record that nobody brings any more, if it is open. As of its own last update, so that it opens again
    /// as soon as it comes back, however long ago its bookmaker last changed it.
    pub(super) fn close(&mut self, sport: SportId, event: &EventId, (bookmaker, market): (BookId, Market)) -> bool {
        let Ok((draft, touched)) = self.draft(sport, event) else { return false };
        let Some(at) = draft.record(bookmaker, market).map(|record| record.last_update) else { return false };
        draft.close(Closed { bookmaker, market, at });
        touched.push((bookmaker, market));
        true
    }

    fn remove(&mut self, sport: SportId, id: &EventId) -> Result<Applied, Reason> {
        self.draft(sport, id)?;
        self.additions.remove(&self.state.owners, sport, id)?;
        let slot = self.slot(sport, id).ok_or(Reason::UnknownEvent)?;
        slot.draft.take().ok_or(Reason::UnknownEvent)?;
        slot.removed = true;
        slot.touched.clear();
        Ok(Applied::Changed)
    }

    fn read(&mut self, news: &ReadNews) -> Result<Applied, Reason> {
        let bookmaker = self.register().find(&news.bookmaker).ok_or(Reason::UnknownBookmaker)?;
        let held = self.source(news.sport, bookmaker).map(|source| source.last_read);
        // A read of the future is from before the clock was set back: it makes nothing late.
        if held.is_some_and(|held| news.at < held && held <= self.now) {
            return Ok(Applied::Late);
        }
        self.advance_read(news.sport, bookmaker, news.at, Some(news.latency_ms));
        Ok(Applied::Changed)
    }

    fn source(&self, sport: SportId, book: BookId) -> Option<Source> {
        let held = || self.state.sports[sport.index()].sources.get(&book).map(|entry| entry.source);
        self.reads.get(&(sport, book)).copied().or_else(held)
    }

    /// A good read as of `at`. A feed whose clock is ahead does not stay fresh for longer.
    pub(super) fn advance_read(&mut self, sport: SportId, book: BookId, at: Timestamp, latency_ms: Option<u32>) {
        let at = at.min(self.now);
        let mut source =
            self.source(sport, book).unwrap_or(Source { last_read: at, latency_ms: 0, empty_since: Some(self.now) });
        source.last_read = if source.last_read > self.now { at } else { source.last_read.max(at) };
        source.latency_ms = latency_ms.unwrap_or(source.latency_ms);
        self.reads.insert((sport, book), source);
    }

    /// The changes to commit, the step to take when they are, and the report.
    pub(super) fn finish(mut self) -> (Vec<Change>, Step, IngestReport) {
        let register = self.register.take();
        let names = register.as_ref().unwrap_or(self.state.books.register());
        let mut sports: BTreeMap<SportId, SportStep> = BTreeMap::new();
        let mut edits: BTreeMap<SportId, Vec<Edit>> = BTreeMap::new();
        let mut places = Vec::new();
        let mut moved = Vec::new();
        for ((sport, id), slot) in self.slots.drain() {
            if !self.state.polls.is_empty() {
                places.extend(slot.places(&id));
            }
            let owner = self.additions.owner_of(&self.state.owners, sport, &id);
            let is_unchanged = slot.is_unchanged();
            if !is_unchanged || owner.1 {
                slot.changes(self.world, &id, owner, &mut self.changes);
            }
            if is_unchanged {
                continue;
            }
            let step = step_of(&mut sports, self.state, sport);
            step.repriced |= !slot.touched.is_empty() || slot.is_moved_with_prices();
            if self.keeps_moved {
                slot.moved(&id, &mut moved);
            }
            if slot.removed && slot.before.is_some() {
                step.removed.push(Edit { id: id.clone(), node: None });
            }
            edits.entry(sport).or_default().extend(slot.edit(id, names));
        }
        for ((sport, book), source) in std::mem::take(&mut self.reads) {
            let step = step_of(&mut sports, self.state, sport);
            let known = step.sources.get(&book).filter(|_| !self.told_sources.contains(&(sport, book)));
            let stored_read = known.map_or(Timestamp::default(), |entry| entry.stored_read);
            step.sources.insert(book, SourceEntry { source, stored_read });
        }
        for (sport, step) in &mut sports {
            let state = &self.state.sports[sport.index()];
            step.index = edits.get(sport).map(|edits| state.current.apply(edits));
            let index = step.index.as_ref().unwrap_or(&state.current);
            let now = (self.now, self.is_clock_behind);
            store_sources(self.world, *sport, index, now, &mut step.sources, &mut self.changes);
        }
        let books = register.map(|register| Arc::new(Books::new(register)));
        self.report.added = self.additions.used();
        self.changes.extend(self.additions.change(self.world));
        let additions = self.additions;
        (self.changes, Step { books, sports: sports.into_values().collect(), places, moved, additions }, self.report)
    }
}

fn step_of<'s>(sports: &'s mut BTreeMap<SportId, SportStep>, state: &WorldState, sport: SportId) -> &'s mut SportStep {
    let SportState { sources, .. } = &state.sports[sport.index()];
    sports.entry(sport).or_insert_with(|| SportStep {
        sport,
        index: None,
        sources: sources.clone(),
        repriced: false,
        removed: Vec::new(),
    })
}

/// Where a bookmaker that is now so comes from: as the catalogue lists it, with another title, or declared by a feed.
pub(super) fn origin_of(book: &Bookmaker, catalogue: &Catalogue) -> BookOrigin {
    match catalogue.bookmakers().iter().find(|listed| listed.key == book.key) {
        Some(listed) if listed == book => BookOrigin::Catalogue,
        Some(listed) if listed.regions == book.regions => BookOrigin::Titled,
        _ => BookOrigin::Declared,
    }
}

/// An event that is over has no open market.
fn close_if_over(draft: &mut Draft, touched: &mut Touched, now: Timestamp) {
    if draft.event().status.is_over() {
        touched.extend(draft.close_all(now).iter().map(|mark| (mark.bookmaker, mark.market)));
    }
}

/// Notes which sources hold no price any more, and writes those that changed enough to matter.
fn store_sources(
    world: World,
    sport: SportId,
    index: &Index,
    (now, is_clock_behind): (Timestamp, bool),
    sources: &mut BTreeMap<BookId, SourceEntry>,
    changes: &mut Vec<Change>,
) {
    for (bookmaker, entry) in sources {
        let holds_price = index.has_prices_of(*bookmaker);
        let was_empty = entry.source.empty_since.is_some();
        if holds_price == was_empty {
            entry.source.empty_since = (!holds_price).then_some(now);
        }
        let last_read = entry.read_to_store(is_clock_behind);
        let age_s = last_read.seconds_since(entry.stored_read);
        let went_back = last_read < entry.stored_read;
        if holds_price == was_empty || age_s >= READ_STORED_EVERY_S || went_back {
            entry.stored_read = last_read;
            let source = Source { last_read, ..entry.source };
            changes.push(Change::PutSource { world, sport, bookmaker: *bookmaker, source });
        }
    }
}
