//! Loading: every row is read once, checked, and converted to the model.
//!
//! 1. names, keys and bookmakers;
//! 2. sport by sport the events in schedule order, their scores and records;
//! 3. the sports that the catalogue no longer lists, for the names that they still use;
//! 4. and from these, which names nothing uses.

mod loaded;
mod sport;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use redb::{ReadTransaction, ReadableDatabase, ReadableTableMetadata};

pub use loaded::{Loaded, LoadedEvent, LoadedPoll, LoadedSport, LoadedWorld, UnservedSport};
use sport::{RowCounts, SportLoader, SportPart};

use super::codec::{BookStanding, Flaw, PollRow};
use super::error::{DamageList, OpenError, StoreError};
use super::guard::guarded;
use super::handle::{Store, StoreOptions};
use super::id_maps::NamesByNumber;
use super::numbers::{SportNumbers, highest_book_numbers, scan_books};
use super::open::{Location, OpenMode};
use super::scan::scan;
use super::table_keys::{events_of, odds_of_sport, world_number, world_of};
use super::tables::{
    BUDGETS, COMPETITIONS, EVENTS, FEEDERS, KEY_ORDER, KEYS, MARKETS, META, META_MAINTENANCE, META_MEMBERSHIP,
    META_SIMULATED, ODDS, POLLS, RECENT_USE, SCORES, USAGE, meta_use_of,
};
use crate::keys::{Feeder, KeyId, KeyRecord, RecentUse, Usage};
use crate::model::market::KeyParts;
use crate::model::{
    BookId, Bookmaker, Bookmakers, Catalogue, EventId, FeedBudget, FeederUse, Maintenance, Market, MarketKey,
    Membership, Regions, SeenCompetition, SportId, World,
};

/// What was loaded, the names by number, and which of those nothing uses.
pub(super) struct Loading {
    pub(super) loaded: Loaded,
    pub(super) names: NamesByNumber,
    pub(super) unused_names: Vec<u32>,
}

/// What is common to all sports of a world.
pub(super) struct WorldContext {
    pub(super) world: World,
    pub(super) bookmakers: Bookmakers,
    /// The rank of each bookmaker in the order of keys, by number.
    pub(super) book_ranks: Vec<u16>,
}

pub(super) fn read(
    txn: &ReadTransaction,
    catalogue: &Catalogue,
    sports: &SportNumbers,
    mut damage: DamageList,
) -> Result<Loading, StoreError> {
    let names = NamesByNumber::read(txn, &mut damage)?;
    let (keys, damaged_usage) = read_keys(txn, &mut damage)?;
    let mut meta = Meta::read(txn, &mut damage)?;
    let mut loaded = Loaded {
        keys,
        damaged_usage,
        recent_use: read_recent_use(txn, &mut damage)?,
        feeders: read_feeders(txn, &mut damage)?,
        feed_budgets: read_budgets(txn, &mut damage)?,
        maintenance: meta.maintenance,
        simulated_live: meta.is_simulated,
        membership: meta.membership,
        ..Loaded::default()
    };
    let mut counts = RowCounts::default();
    let mut market_names = BTreeSet::new();
    let served = sports;
    for (world, bookmakers) in World::ALL.into_iter().zip(read_bookmakers(txn, &mut damage)?) {
        let context = WorldContext::new(world, bookmakers);
        let sports = read_sports(txn, catalogue, sports, &names, &context)?;
        let sports = sports.into_iter().map(|part| {
            damage.absorb(part.damage);
            counts.add(part.counts);
            market_names.extend(part.market_names);
            part.sport
        });
        let sports: Vec<LoadedSport> = sports.collect();
        let LoadedWorld { competitions, markets, .. } = read_register(txn, world, served, &mut damage)?;
        let bookmakers = context.bookmakers;
        let feeder_uses = std::mem::take(&mut meta.feeder_uses[world.index()]);
        loaded.worlds[world.index()] =
            LoadedWorld { bookmakers, competitions, markets, sports, polls: Vec::new(), feeder_uses };
    }
    read_polls(txn, sports, (&names, &mut market_names), &mut loaded, &mut damage)?;
    let mut still_used = Vec::new();
    for (number, key) in sports.unserved() {
        let (rows, records) = read_unserved(txn, number, (&names, &mut market_names), &mut still_used, &mut damage)?;
        loaded.unserved.push(UnservedSport { key: key.into(), events: rows.events, records });
        counts.add(rows);
    }
    report_strays(txn, counts, &mut damage)?;
    // A damaged row may use a name that nothing else uses: then every name stays until the damage is repaired.
    let unused_names = if damage.is_empty() { names.unshared(&market_names) } else { Vec::new() };
    loaded.damage = damage;
    Ok(Loading { loaded, names, unused_names })
}

/// Reads the sports of a world, on two threads: decoding takes longer than reading, and a restart waits for it.
fn read_sports(
    txn: &ReadTransaction,
    catalogue: &Catalogue,
    sports: &SportNumbers,
    names: &NamesByNumber,
    context: &WorldContext,
) -> Result<Vec<SportPart>, StoreError> {
    let todo: Vec<(SportId, u16)> = sports.served().collect();
    let next = AtomicUsize::new(0);
    let work = || {
        guarded(|| {
            let mut done = Vec::new();
            while let Some((at, (sport, number))) = claim(&next, &todo) {
                done.push((at, SportLoader::new(txn, names, context, number).load(&catalogue[sport].key)?));
            }
            Ok::<_, StoreError>(done)
        })
    };
    let mut parts = thread::scope(|scope| {
        // Without a second thread the first does all the work.
        let other = thread::Builder::new().name("load".to_owned()).spawn_scoped(scope, work).ok();
        let mut parts = work()?;
        if let Some(other) = other {
            parts.extend(other.join().unwrap_or(Err(StoreError::NeedsReopen))?);
        }
        Ok::<_, StoreError>(parts)
    })?;
    parts.sort_by_key(|(at, _)| *at);
    Ok(parts.into_iter().map(|(_, part)| part).collect())
}

/// The next piece of work that no thread has taken.
fn claim<T: Copy>(next: &AtomicUsize, todo: &[T]) -> Option<(usize, T)> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    todo.get(at).map(|piece| (at, *piece))
}

impl WorldContext {
    pub(super) fn new(world: World, bookmakers: Bookmakers) -> Self {
        let mut book_ranks = Vec::new();
        for (rank, (id, _)) in (0..).zip(bookmakers.iter()) {
            if book_ranks.len() <= id.index() {
                book_ranks.resize(id.index() + 1, u16::MAX);
            }
            book_ranks[id.index()] = rank;
        }
        WorldContext { world, bookmakers, book_ranks }
    }
}

/// The bookmakers of both worlds.
fn read_bookmakers(txn: &ReadTransaction, damage: &mut DamageList) -> Result<[Bookmakers; 2], StoreError> {
    let mut worlds = [Bookmakers::default(), Bookmakers::default()];
    // The highest number stays taken, also when its bookmaker is removed or its row is lost.
    for (books, highest) in worlds.iter_mut().zip(highest_book_numbers(txn)?) {
        let Some(id) = highest.map(BookId::from_number) else { continue };
        let placeholder = Bookmaker { key: "".into(), title: "".into(), regions: Regions::NONE };
        books.put(id, Arc::new(placeholder));
        books.remove(id);
    }
    scan_books(txn, damage, |world, id, row| {
        let books = &mut worlds[world.index()];
        let is_gone = row.standing == BookStanding::Gone;
        let book = row.bookmaker()?;
        match (is_gone, books.find(&book.key)) {
            (true, _) => Ok(()),
            (false, Some(_)) => Err(Flaw::Invalid("its key has a number already")),
            (false, None) => {
                books.put(id, Arc::new(book));
                Ok(())
            }
        }
    })?;
    Ok(worlds)
}

/// The polls of both worlds. In the order of keys a scope's own row comes before those of its events.
fn read_polls(
    txn: &ReadTransaction,
    sports: &SportNumbers,
    (names, market_names): (&NamesByNumber, &mut BTreeSet<u32>),
    loaded: &mut Loaded,
    damage: &mut DamageList,
) -> Result<(), StoreError> {
    scan(&POLLS, txn, .., damage, |(world, scope, event), row| {
        let world = world_of(world);
        let LoadedWorld { bookmakers, polls, .. } =
            &mut loaded.worlds[world.ok_or(Flaw::Invalid("its world is unknown"))?.index()];
        let known = |number: u16| Some(BookId::from_number(number)).filter(|id| bookmakers.get(*id).is_some());
        match row {
            PollRow::Scope { sport, stale_after_s, books } => {
                if let Some((sport, _)) = sports.served().find(|(_, number)| *number == sport) {
                    let books = books.into_iter().filter_map(known).collect();
                    polls.push(LoadedPoll { scope: scope.into(), sport, stale_after_s, books, events: Vec::new() });
                }
            }
            PollRow::Event { records } => {
                let id = EventId::new(event).ok_or(Flaw::Invalid("its event's id is invalid"))?;
                market_names.extend(records.iter().map(|(_, market)| *market));
                let record = |(book, market): (u16, u32)| Some((known(book)?, market_of(names, market).ok()?));
                // A scope whose sport is not served was skipped.
                if let Some(poll) = polls.last_mut().filter(|poll| *poll.scope == *scope) {
                    poll.events.push((id, records.into_iter().filter_map(record).collect()));
                }
            }
        }
        Ok(())
    })?;
    Ok(())
}

/// The market that prices refer to by the number of its name.
fn market_of(names: &NamesByNumber, number: u32) -> Result<Market, Flaw> {
    let key = names.market_key(number)?;
    let market = Market::find(key).or_else(|| Market::intern(&MarketKey::New(key.into())));
    market.ok_or(Flaw::Invalid("there is no room for its market"))
}

/// The competitions and markets of a world.
fn read_register(
    txn: &ReadTransaction,
    world: World,
    sports: &SportNumbers,
    damage: &mut DamageList,
) -> Result<LoadedWorld, StoreError> {
    let mut register = LoadedWorld::default();
    scan(&COMPETITIONS, txn, .., damage, |(number, key), row| {
        // One of a sport that is not served stays in the file.
        let sport = sports.served().find(|(_, number)| *number == row.sport);
        if let Some((sport, _)) = sport.filter(|_| number == world_number(world)) {
            register.competitions.put(key.into(), SeenCompetition { sport, title: row.title.into() });
        }
        Ok(())
    })?;
    scan(&MARKETS, txn, .., damage, |(number, key), _| {
        if number == world_number(world) {
            KeyParts::split(key).ok_or(Flaw::Invalid("its key is invalid"))?;
            register.markets.extend(Market::intern(&MarketKey::New(key.into())));
        }
        Ok(())
    })?;
    Ok(register)
}

/// The keys in the order of their issue with their usage, and those whose usage cannot be known.
fn read_keys(txn: &ReadTransaction, damage: &mut DamageList) -> Result<(Vec<KeyAndUsage>, Vec<KeyId>), StoreError> {
    let mut keys: BTreeMap<String, KeyAndUsage> = BTreeMap::new();
    scan(&KEYS, txn, .., damage, |id, row| {
        keys.insert(id.to_owned(), (row.key(id)?, Usage::default()));
        Ok(())
    })?;
    let mut unread: BTreeSet<String> = BTreeSet::new();
    for row in txn.open_table(USAGE.definition)?.range::<&str>(..)? {
        unread.insert(row?.0.value().to_owned());
    }
    let has_usage = unread.clone();
    scan(&USAGE, txn, .., damage, |id, row| {
        unread.remove(id);
        let (key, stored) = keys.get_mut(id).ok_or(Flaw::Invalid("its key is missing"))?;
        let (usage, last_used) = row.usage();
        *stored = usage;
        // A clock that was ahead may have left a later time in the key.
        key.last_used = last_used.or(key.last_used);
        Ok(())
    })?;
    // A damaged row under an id that no key has may belong to any key without a row, and so may one that is counted and
    // cannot be found.
    let is_missing = txn.open_table(USAGE.definition)?.len()? > has_usage.len() as u64;
    let may_be_any = is_missing || unread.iter().any(|id| !keys.contains_key(id));
    let is_lost = |id: &str| unread.contains(id) || (may_be_any && !has_usage.contains(id));
    let lost = keys.iter().filter(|(id, _)| is_lost(id)).map(|(_, (key, _))| key.id.clone()).collect();
    Ok((in_order_of_issue(txn, keys)?, lost))
}

type KeyAndUsage = (KeyRecord, Usage);

/// Keys that the order lacks come last, the oldest first.
fn in_order_of_issue(
    txn: &ReadTransaction,
    mut keys: BTreeMap<String, KeyAndUsage>,
) -> Result<Vec<KeyAndUsage>, StoreError> {
    let mut ordered = Vec::with_capacity(keys.len());
    for row in txn.open_table(KEY_ORDER.definition)?.range::<u64>(..)? {
        ordered.extend(keys.remove(row?.1.value()));
    }
    let mut rest: Vec<_> = keys.into_values().collect();
    rest.sort_by_key(|(key, _)| key.created);
    ordered.append(&mut rest);
    Ok(ordered)
}

fn read_recent_use(txn: &ReadTransaction, damage: &mut DamageList) -> Result<Vec<(KeyId, RecentUse)>, StoreError> {
    let mut all = Vec::new();
    scan(&RECENT_USE, txn, .., damage, |id, row| {
        let id = KeyId::new(id).ok_or(Flaw::Invalid("its key is invalid"))?;
        all.push((id, row.recent_use()?));
        Ok(())
    })?;
    Ok(all)
}

fn read_feeders(txn: &ReadTransaction, damage: &mut DamageList) -> Result<Vec<Feeder>, StoreError> {
    let mut feeders = Vec::new();
    scan(&FEEDERS, txn, .., damage, |name, row| {
        feeders.push(row.feeder(name)?);
        Ok(())
    })?;
    Ok(feeders)
}

fn read_budgets(txn: &ReadTransaction, damage: &mut DamageList) -> Result<Vec<(Box<str>, FeedBudget)>, StoreError> {
    let mut budgets = Vec::new();
    scan(&BUDGETS, txn, .., damage, |feed, row| {
        budgets.push((feed.into(), row.budget()));
        Ok(())
    })?;
    Ok(budgets)
}

/// The single values of the file, and what feeders have added in each world.
struct Meta {
    maintenance: Option<Maintenance>,
    is_simulated: bool,
    membership: Option<Membership>,
    feeder_uses: [Vec<(Box<str>, FeederUse)>; World::ALL.len()],
}

impl Meta {
    /// A damaged mark of the simulator still counts: a file that may hold simulated prices must not be served as real. A
    /// feeder whose row is damaged has used nothing.
    fn read(txn: &ReadTransaction, damage: &mut DamageList) -> Result<Self, StoreError> {
        let is_simulated = txn.open_table(META.definition)?.get(META_SIMULATED)?.is_some();
        let mut meta = Meta { maintenance: None, is_simulated, membership: None, feeder_uses: Default::default() };
        scan(&META, txn, .., damage, |key, row| {
            if key == META_MAINTENANCE {
                meta.maintenance = Some(row.maintenance()?);
            } else if key == META_MEMBERSHIP {
                meta.membership = Some(row.membership()?);
            } else if let Some(feeder) = meta_use_of(key) {
                let (world, feed) = feeder?;
                meta.feeder_uses[world.index()].push((feed.into(), row.feeder_use()?));
            }
            Ok(())
        })?;
        Ok(meta)
    }
}

impl Store {
    /// The membership stored in the file at `path`, if it has one. `None` if there is no file.
    pub fn stored_membership(path: &Path, options: StoreOptions) -> Result<Option<Option<Membership>>, OpenError> {
        let location = Location::Path(path.to_owned());
        let file = match location.open(&options, OpenMode::Inspect) {
            Err(OpenError::Gone { .. }) => return Ok(None),
            opened => opened?,
        };
        let meta = guarded(|| Meta::read(&file.db.begin_read()?, &mut DamageList::default()));
        file.close();
        let meta = meta.map_err(|error| OpenError::from_store(&location.to_string(), error))?;
        Ok(Some(meta.membership))
    }
}

/// Reads the rows of a sport that is not served for the names that they use, and counts its open records.
fn read_unserved(
    txn: &ReadTransaction,
    sport: u16,
    (names, market_names): (&NamesByNumber, &mut BTreeSet<u32>),
    used: &mut Vec<Arc<str>>,
    damage: &mut DamageList,
) -> Result<(RowCounts, u64), StoreError> {
    let (mut counts, mut records) = (RowCounts::default(), 0);
    for world in World::ALL.map(world_number) {
        counts.events += scan(&EVENTS, txn, events_of(world, sport), damage, |_, row| {
            row.name_numbers().into_iter().try_for_each(|number| names.get(number).map(|name| used.push(name)))
        })?;
        counts.scores += scan(&SCORES, txn, events_of(world, sport), damage, |_, row| {
            used.extend(row.winner.map(|number| names.get(number)).transpose()?);
            Ok(())
        })?;
        counts.odds += scan(&ODDS, txn, odds_of_sport(world, sport), damage, |key, row| {
            market_names.insert(key.4);
            records += u64::from(!row.outcomes.is_empty());
            row.outcomes.iter().try_for_each(|outcome| names.get(outcome.name).map(|name| used.push(name)))
        })?;
    }
    Ok((counts, records))
}

/// Reports rows whose sport is unknown: the row of that sport must be lost.
fn report_strays(txn: &ReadTransaction, counts: RowCounts, damage: &mut DamageList) -> Result<(), StoreError> {
    let stored = [
        (EVENTS.name, txn.open_table(EVENTS.definition)?.len()?, counts.events),
        (SCORES.name, txn.open_table(SCORES.definition)?.len()?, counts.scores),
        (ODDS.name, txn.open_table(ODDS.definition)?.len()?, counts.odds),
    ];
    for (table, stored, read) in stored {
        if stored != read {
            damage.add(table, format!("{} rows", stored.abs_diff(read)), "they belong to no known sport");
        }
    }
    Ok(())
}
