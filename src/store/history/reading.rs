//! One read transaction, and what is found in it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use redb::ReadTransaction;

use super::fold::SportFold;
use super::import::Imports;
use super::lines::{KeptTails, Tails};
use super::read::{
    LogError, apply_sport, base_of, first_entry, first_frame, first_tick, fold_to, for_each_entry, last_entry_at,
    next_frame, tick_after, tick_at,
};
use super::reader::{Entries, EntryAt, HistoryError, LogId, LoggedEntry};
use crate::model::{Permanence, SportId, Timestamp, World};
use crate::store::error::StoreError;
use crate::store::table_keys::{LogNumber, world_number};

/// One transaction.
pub(super) struct Reading {
    pub(super) txn: ReadTransaction,
    pub(super) sports: Arc<[(SportId, u16)]>,
    pub(super) is_closing: Arc<AtomicBool>,
    pub(super) tails: Arc<Tails>,
    pub(super) rewrites: u64,
}

impl Reading {
    pub(super) fn kept_tails(&self) -> KeptTails<'_> {
        KeptTails { tails: &self.tails, rewrites: self.rewrites, is_closing: &self.is_closing }
    }

    pub(super) fn number(&self, sport: SportId) -> Result<u16, HistoryError> {
        let found = self.sports.iter().find(|(id, _)| *id == sport);
        found.map(|(_, number)| *number).ok_or(HistoryError::Gone)
    }

    /// The state of a sport in the first keyframe that is kept.
    fn first_state(&self, key: (u8, u16)) -> Result<SportFold, HistoryError> {
        let first = first_frame(&self.txn, key)?.ok_or(HistoryError::Gone)?;
        Ok(base_of(&self.txn, key, first)?.ok_or(HistoryError::Gone)?.fold)
    }

    /// The state of a sport after an entry that was found in an earlier transaction: it may have been removed since.
    pub(super) fn state_at(&self, key: (LogNumber, u16), entry: EntryAt) -> Result<SportFold, HistoryError> {
        match fold_to(&self.txn, key, entry.sequence)? {
            Some(state) => Ok(state),
            None if tick_at(&self.txn, key, entry.at)? == Some((entry.at, entry.sequence)) => self.first_state(key),
            None => Err(HistoryError::Gone),
        }
    }

    /// The state of a sport after an entry. The first keyframe that is kept stands for the tick before it: no price changed
    /// in between.
    pub(super) fn state_after(&self, key: (u8, u16), sequence: u64) -> Result<SportFold, HistoryError> {
        match fold_to(&self.txn, key, sequence)? {
            Some(state) => Ok(state),
            None => self.first_state(key),
        }
    }

    /// The log of a sport that a reading as of a time is about, and the entry in it.
    pub(super) fn entry_as_of(
        &self,
        (world, sport): (World, u16),
        entries: Entries,
        time: Timestamp,
    ) -> Result<EntryAt, HistoryError> {
        let (own, imported) = ((world_number(world), sport), self.imported(world, sport)?);
        let find = |key| self.entry_in(key, entries, time);
        match (find(own), imported) {
            (Ok(entry), imported) if entry.previous.is_none() => {
                let previous = imported.map(|imported| self.ticks_beside(imported, entry.at)).transpose()?;
                let previous = previous.and_then(|(previous, _)| previous);
                // An import may bring another one.
                let permanence = entry.permanence.min(Permanence::Imported);
                Ok(EntryAt { previous, permanence, ..entry })
            }
            (Err(HistoryError::Gone), Some(imported)) => {
                let entry = find(imported)?;
                let next = entry.next.map_or_else(|| first_tick(&self.txn, own), |next| Ok(Some(next)))?;
                // Where the own log begins is not known before it has begun.
                let permanence = if next.is_some() { Permanence::Imported } else { Permanence::Current };
                Ok(EntryAt { next, permanence, ..entry })
            }
            (found, _) => found,
        }
    }

    /// The last entry of a log at or before a time.
    pub(super) fn entry_in(
        &self,
        key: (LogNumber, u16),
        entries: Entries,
        time: Timestamp,
    ) -> Result<EntryAt, HistoryError> {
        match entries {
            Entries::Ticks => self.tick_at(key, time),
            Entries::All => self.entry_at(key, time),
        }
    }

    /// The imported history of a sport.
    pub(super) fn imported(&self, world: World, sport: u16) -> Result<Option<(LogNumber, u16)>, HistoryError> {
        Ok(Imports::read(&self.txn)?.of(world, sport).map(|log| (log.number, sport)))
    }

    /// The logs of a sport, in the order of time.
    pub(super) fn logs(&self, world: World, sport: u16) -> Result<Vec<(LogNumber, u16)>, HistoryError> {
        Ok(self.imported(world, sport)?.into_iter().chain([(world_number(world), sport)]).collect())
    }

    fn tick_at(&self, key: (LogNumber, u16), time: Timestamp) -> Result<EntryAt, HistoryError> {
        let (at, sequence) = tick_at(&self.txn, key, time)?.ok_or(HistoryError::Gone)?;
        let (previous, next) = self.ticks_beside(key, at)?;
        let permanence = if next.is_some() { Permanence::Final } else { Permanence::Current };
        Ok(EntryAt { log: LogId(key.0), sequence, at, previous, next, permanence })
    }

    /// The last entry of any sport at or before a time.
    fn entry_at(&self, key: (LogNumber, u16), time: Timestamp) -> Result<EntryAt, HistoryError> {
        let first = first_frame(&self.txn, key)?.ok_or(HistoryError::Gone)?;
        // Ticks are found by their time, and from the last one on, of whatever sport, it is not far.
        let mut last_tick = None;
        for (_, sport) in self.sports.iter() {
            let tick = tick_at(&self.txn, (key.0, *sport), time)?.map(|(at, sequence)| (sequence, at));
            last_tick = last_tick.max(tick);
        }
        let (from, _) = last_tick.unwrap_or_default();
        let from = from.max(first_entry(&self.txn, key.0)?.unwrap_or(0).saturating_sub(1));
        let (found, is_followed) = last_entry_at(&self.txn, key.0, from, time)?;
        let found = found.or(last_tick).filter(|(sequence, _)| *sequence >= first);
        let (sequence, at) = found.ok_or(HistoryError::Gone)?;
        let (previous, next) = self.ticks_beside(key, at)?;
        let permanence = if is_followed && next.is_some() { Permanence::Final } else { Permanence::Current };
        Ok(EntryAt { log: LogId(key.0), sequence, at, previous, next, permanence })
    }

    /// The last tick of a sport before a second, and the first one after it.
    fn ticks_beside(
        &self,
        key: (u8, u16),
        at: Timestamp,
    ) -> Result<(Option<Timestamp>, Option<Timestamp>), HistoryError> {
        let before = at.unix().checked_sub(1).map(Timestamp::from_unix);
        let previous = before.map(|before| tick_at(&self.txn, key, before)).transpose()?.flatten();
        Ok((previous.map(|(tick, _)| tick), tick_after(&self.txn, key, at)?))
    }

    pub(super) fn entries(
        &self,
        world: u8,
        start: u64,
        (after, to): (u64, u64),
    ) -> Result<Vec<LoggedEntry>, HistoryError> {
        // Each sport is read from its own keyframe on, and all of them in one pass.
        let mut states = Vec::new();
        for (sport, number) in self.sports.iter().copied() {
            let (from, state) = self.base_for((world, number), start, after)?;
            states.push((sport, number, from, state));
        }
        let first = states.iter().map(|(_, _, from, _)| *from).fold(after, u64::min);
        let (mut entries, mut is_cut) = (Vec::new(), false);
        for_each_entry(&self.txn, world, (first, to), |sequence, entry| {
            let mut sports = Vec::new();
            for section in &entry.sections {
                let Some((sport, _, from, state)) =
                    states.iter_mut().find(|(_, number, _, _)| *number == section.sport)
                else {
                    continue;
                };
                let mut changes = Vec::new();
                if *from < sequence {
                    apply_sport(state, section.sport, entry, |change| changes.push(change))?;
                } else {
                    // What is kept of the sport begins later than that of others, and how many events this is is not known.
                    is_cut |= sequence > after;
                }
                sports.push((*sport, changes));
            }
            if sequence > after {
                entries.push(LoggedEntry { sequence, at: entry.at, sports });
            }
            Ok(())
        })
        .map_err(|error| self.explain(world, after, error))?;
        if is_cut {
            return Err(HistoryError::Gone);
        }
        if self.is_closing.load(Ordering::Relaxed) { Err(StoreError::Cancelled.into()) } else { Ok(entries) }
    }

    /// What the entries of a sport after one are applied to: its keyframe before them, or the first one after them. A sport that is
    /// new begins with an empty one; of another one the keyframes before it have been removed.
    fn base_for(&self, key: (LogNumber, u16), start: u64, after: u64) -> Result<(u64, SportFold), HistoryError> {
        let mut base = base_of(&self.txn, key, after)?.filter(|base| base.sequence + 1 >= start);
        if base.is_none()
            && let Some(next) = next_frame(&self.txn, key, after)?
        {
            base = base_of(&self.txn, key, next)?;
        }
        Ok(base.map_or((after, SportFold::default()), |base| (base.sequence, base.fold)))
    }

    /// An entry before the first one that is kept is not damaged.
    fn explain(&self, world: u8, after: u64, error: LogError) -> HistoryError {
        match first_entry(&self.txn, world) {
            Ok(Some(first)) if after + 1 < first => HistoryError::Gone,
            _ => error.into(),
        }
    }
}
