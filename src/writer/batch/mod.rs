//! A batch of news: applied to drafts, turned into changes of the file, and only after these are committed into the next
//! state. Dropping a batch discards it.

mod bookmakers;
mod events;
mod names;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use foldhash::HashMap;

pub(super) use bookmakers::origin_of;
use bookmakers::store_sources;

use super::event_edit::{EventEdit, RecordRef, Touched};
use super::future;
use super::owners::{Additions, Sender};
use super::poll::Polls;
use super::report::IngestReport;
use super::state::{SourceEntry, SportState, WorldState};
use crate::board::{Applied, Draft, Edit, Index, Register};
use crate::model::{
    BookId, Bookmakers, Catalogue, Competitions, EventId, FeederQuota, Market, News, Reason, Source, SportId,
    Timestamp, World,
};
use crate::store::Change;

const SECONDS_PER_DAY: u32 = 86_400;

/// What a batch changes in one sport.
#[derive(Debug)]
pub(super) struct SportUpdate {
    pub sport: SportId,
    pub index: Option<Index>,
    pub sources: BTreeMap<BookId, SourceEntry>,
    /// Whether any price changed.
    pub repriced: bool,
    /// Whether an event changed of which readers see prices.
    pub relisted: bool,
    /// Removed events: they leave the published board at once.
    pub removed: Vec<Edit>,
    /// Events in another competition, with the prices that are published: the published board shows them there at once.
    pub moved: Vec<Edit>,
}

impl SportUpdate {
    /// An update that changes nothing yet.
    pub(super) const fn new(sport: SportId, sources: BTreeMap<BookId, SourceEntry>) -> Self {
        SportUpdate {
            sport,
            index: None,
            sources,
            repriced: false,
            relisted: false,
            removed: Vec::new(),
            moved: Vec::new(),
        }
    }
}

/// Everything that a committed batch changes.
#[derive(Debug)]
pub(super) struct WorldUpdate {
    pub register: Option<Arc<Register>>,
    /// Whether the register has other bookmakers.
    pub rebooked: bool,
    pub sports: Vec<SportUpdate>,
    /// The records that were put or closed, in a world that is polled.
    pub touched: Vec<RecordRef>,
    /// Events with their new owner, and what it has used of its quota.
    pub additions: Additions,
}

impl WorldUpdate {
    /// An update of sports alone, which no news caused.
    pub(super) fn of_sports(sports: Vec<SportUpdate>) -> Self {
        let additions = Additions::default();
        WorldUpdate { register: None, rebooked: false, sports, touched: Vec::new(), additions }
    }
}

/// The time of a batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct BatchTime {
    pub now: Timestamp,
    /// Whether our own clock is known to be wrong.
    pub is_clock_behind: bool,
    /// Whether reads are stored that change nothing else.
    pub stores_every_read: bool,
}

/// News being applied to a world.
#[derive(Debug)]
pub(super) struct NewsBatch<'w> {
    world: World,
    state: &'w WorldState,
    catalogue: &'w Catalogue,
    time: BatchTime,
    /// What the batch adds to the register, copied when it first adds something.
    bookmakers: Option<Bookmakers>,
    competitions: Option<Competitions>,
    markets: Option<BTreeSet<Market>>,
    edits: HashMap<(SportId, EventId), EventEdit>,
    reads: BTreeMap<(SportId, BookId), Source>,
    /// Sources that are written although their last read is not new.
    set_sources: BTreeSet<(SportId, BookId)>,
    changes: Vec<Change>,
    additions: Additions,
    report: IngestReport,
}

impl<'w> NewsBatch<'w> {
    pub(super) fn new(world: World, state: &'w WorldState, catalogue: &'w Catalogue, time: BatchTime) -> Self {
        NewsBatch {
            world,
            state,
            catalogue,
            time,
            bookmakers: None,
            competitions: None,
            markets: None,
            edits: HashMap::default(),
            reads: BTreeMap::new(),
            set_sources: BTreeSet::new(),
            changes: Vec::new(),
            additions: Additions::default(),
            report: IngestReport::default(),
        }
    }

    /// Applies the quota of the sender; `None` is one of the operator's own feeds.
    pub(super) fn sent_by(mut self, sender: Option<Sender>, quota: FeederQuota) -> Self {
        self.additions = self.state.owners.begin(sender, quota, self.time.now.unix() / SECONDS_PER_DAY);
        self
    }

    /// Applies a message, and counts the outcome.
    pub(super) fn apply(&mut self, mut news: News) -> Result<Applied, Reason> {
        let applied = future::admit(&mut news, self.time.now).and_then(|()| self.news(news));
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
                let now = std::mem::replace(&mut self.time.now, at);
                let applied = self.news(*news);
                self.time.now = now;
                applied
            }
            News::Closed(news) => self.closed(&news),
            News::Source(news) => self.set_source(&news),
            News::Competition(news) => self.seen_competition(news),
            News::Market(key) => self.seen_market(&key),
        }
    }

    pub(super) fn bookmakers(&self) -> &Bookmakers {
        self.bookmakers.as_ref().unwrap_or(self.state.register.bookmakers())
    }

    /// The register with what the batch adds; `None` if it adds nothing.
    fn finish_register(&mut self) -> Option<Arc<Register>> {
        let (bookmakers, competitions, markets) =
            (self.bookmakers.take(), self.competitions.take(), self.markets.take());
        if bookmakers.is_none() && competitions.is_none() && markets.is_none() {
            return None;
        }
        let mut register = (*self.state.register).clone();
        if let Some(bookmakers) = bookmakers {
            register = register.with_bookmakers(bookmakers);
        }
        if let Some(competitions) = competitions {
            register = register.with_competitions(Arc::new(competitions));
        }
        if let Some(markets) = markets {
            register = register.with_markets(Arc::new(markets));
        }
        Some(Arc::new(register))
    }

    /// The edit of an event; begun from the current state when the batch first meets the event.
    fn edit(&mut self, sport: SportId, id: &EventId) -> Option<&mut EventEdit> {
        let key = (sport, id.clone());
        if !self.edits.contains_key(&key) {
            let before = self.state.sports[sport.index()].current.get(id.as_str())?;
            let draft = Some(Draft::from(&**before));
            let edit =
                EventEdit { sport, draft, before: Some(Arc::clone(before)), removed: false, touched: Vec::new() };
            self.edits.insert(key.clone(), edit);
        }
        self.edits.get_mut(&key)
    }

    fn draft(&mut self, sport: SportId, id: &EventId) -> Result<(&mut Draft, &mut Touched), Reason> {
        let edit = self.edit(sport, id).ok_or(Reason::UnknownEvent)?;
        Ok((edit.draft.as_mut().ok_or(Reason::UnknownEvent)?, &mut edit.touched))
    }

    /// The changes to commit, the update to apply once they are, and the report.
    pub(super) fn finish(mut self) -> (Vec<Change>, WorldUpdate, IngestReport) {
        let rebooked = self.bookmakers.is_some();
        let register = self.finish_register();
        let names = register.as_ref().unwrap_or(&self.state.register).bookmakers();
        let mut sports: BTreeMap<SportId, SportUpdate> = BTreeMap::new();
        let mut index_edits: BTreeMap<SportId, Vec<Edit>> = BTreeMap::new();
        let mut touched = Vec::new();
        for ((sport, id), edit) in self.edits.drain() {
            if !self.state.polls.is_empty() {
                touched.extend(edit.touched_records(&id));
            }
            let owner = self.additions.owner_of(&self.state.owners, sport, &id);
            let is_unchanged = edit.is_unchanged();
            if !is_unchanged || owner.1 {
                edit.changes(self.world, &id, owner, &mut self.changes);
            }
            if is_unchanged {
                continue;
            }
            let update = update_of(&mut sports, self.state, sport);
            update.repriced |= !edit.touched.is_empty() || edit.moves_prices();
            let published = self.state.sports[sport.index()].board.published();
            update.relisted |= edit.relists(published.index());
            if edit.removed && edit.before.is_some() {
                update.removed.push(Edit { id: id.clone(), node: None });
            } else {
                update.moved.extend(edit.move_in(published.index(), names));
            }
            index_edits.entry(sport).or_default().extend(edit.index_edit(id, names));
        }
        for ((sport, book), source) in &self.reads {
            let (sport, book, source) = (*sport, *book, *source);
            let update = update_of(&mut sports, self.state, sport);
            let known = update.sources.get(&book).filter(|_| !self.set_sources.contains(&(sport, book)));
            let stored_read = known.map_or(Timestamp::default(), |entry| entry.stored_read);
            update.sources.insert(book, SourceEntry { source, stored_read });
        }
        for (sport, update) in &mut sports {
            let state = &self.state.sports[sport.index()];
            update.index = index_edits.get(sport).map(|edits| state.current.apply(edits));
            let index = update.index.as_ref().unwrap_or(&state.current);
            let sources = (&mut update.sources, |book| self.reads.contains_key(&(*sport, book)));
            store_sources(self.world, *sport, index, self.time, sources, &mut self.changes);
        }
        self.report.added = self.additions.used();
        self.changes.extend(self.additions.change(self.world));
        let additions = self.additions;
        let sports = sports.into_values().collect();
        (self.changes, WorldUpdate { register, rebooked, sports, touched, additions }, self.report)
    }
}

fn update_of<'s>(
    sports: &'s mut BTreeMap<SportId, SportUpdate>,
    state: &WorldState,
    sport: SportId,
) -> &'s mut SportUpdate {
    let SportState { sources, .. } = &state.sports[sport.index()];
    sports.entry(sport).or_insert_with(|| SportUpdate::new(sport, sources.clone()))
}
