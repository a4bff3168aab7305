//! Who announced which event, and what each feeder has added of its quota.
//!
//! Known since the server started, and not stored: an event of the file belongs to nobody until it is announced again,
//! and then to whoever does that first. The operator's own feeds (commands, polls, files, the simulator) have no quota
//! of their own here and may remove anything; what they announce belongs to no feeder.

use std::collections::BTreeMap;
use std::sync::Arc;

use foldhash::{HashMap, HashSet};

use crate::model::{EventId, FeederQuota, FeederUse, Reason, SportId};

/// Who sends a batch of news that is held to a quota.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sender {
    pub name: Arc<str>,
    /// Whether it may remove events that it has not announced.
    pub removes_any: bool,
}

type EventKey = (SportId, EventId);

/// The owners of one world's events.
#[derive(Clone, Debug, Default)]
pub(super) struct Owners {
    /// The feeder's name; `None` for the operator's own feeds.
    events: HashMap<EventKey, Option<Arc<str>>>,
    uses: BTreeMap<Arc<str>, FeederUse>,
}

/// What a batch of news adds to the owners once it is committed.
#[derive(Debug, Default)]
pub(super) struct Additions {
    sender: Option<Sender>,
    quota: FeederQuota,
    used: FeederUse,
    /// Events that were announced and had no owner.
    events: HashSet<EventKey>,
}

impl Owners {
    /// Begins a batch of a sender, or of the operator's own feeds.
    pub(super) fn begin(&self, sender: Option<Sender>, quota: FeederQuota, day: u32) -> Additions {
        let used = sender.as_ref().and_then(|sender| self.uses.get(&sender.name)).copied().unwrap_or_default();
        Additions { sender, quota, used: used.on(day), events: HashSet::default() }
    }

    /// Forgets an event that was removed.
    pub(super) fn forget(&mut self, sport: SportId, event: &EventId) {
        let owner = self.events.remove(&(sport, event.clone())).flatten();
        if let Some(used) = owner.and_then(|owner| self.uses.get_mut(&owner)) {
            used.events = used.events.saturating_sub(1);
        }
    }

    /// Takes over what a batch added, after the events that it removed were forgotten.
    pub(super) fn take(&mut self, additions: Additions) {
        let Additions { sender, used, events, .. } = additions;
        let name = sender.map(|sender| sender.name);
        let mut count = name.as_ref().and_then(|name| self.uses.get(name)).map_or(0, |used| used.events);
        for event in events {
            if self.events.insert(event, name.clone()).is_none() {
                count += 1;
            }
        }
        if let Some(name) = name {
            self.uses.insert(name, FeederUse { events: count, ..used });
        }
    }
}

impl Additions {
    /// What the sender has used with this batch, for one that has a quota.
    pub(super) fn used(&self) -> Option<(FeederUse, FeederQuota)> {
        self.sender.as_ref().map(|_| (self.used, self.quota))
    }

    pub(super) fn bookmaker(&mut self) -> Result<(), Reason> {
        let fits = self.sender.is_none() || self.used.add_bookmaker(self.quota);
        if fits { Ok(()) } else { Err(Reason::FeederQuota) }
    }

    /// An event that is new.
    pub(super) fn event(&mut self, sport: SportId, event: &EventId) -> Result<(), Reason> {
        if self.sender.is_some() && !self.used.add_event(self.quota) {
            return Err(Reason::FeederQuota);
        }
        self.events.insert((sport, event.clone()));
        Ok(())
    }

    /// An event that is there is announced again: without an owner, it becomes the sender's. Beyond the quota it stays
    /// without one.
    pub(super) fn again(&mut self, owners: &Owners, sport: SportId, event: &EventId) {
        let key = (sport, event.clone());
        let is_full = self.sender.is_some() && self.used.events >= self.quota.events;
        if !is_full && !owners.events.contains_key(&key) && self.events.insert(key) {
            self.used.events += 1;
        }
    }

    /// Whether the sender may remove an event.
    pub(super) fn remove(&mut self, owners: &Owners, sport: SportId, event: &EventId) -> Result<(), Reason> {
        let key = (sport, event.clone());
        let owner = owners.events.get(&key).and_then(Option::as_ref);
        let is_own = self.sender.as_ref().is_some_and(|sender| owner == Some(&sender.name));
        let may_remove = self.sender.as_ref().is_none_or(|sender| sender.removes_any);
        let is_added = self.events.remove(&key);
        if !is_own && !is_added && !may_remove {
            return Err(Reason::NotOwnEvent);
        }
        // The owners forget it when the batch is committed; here it makes room for the rest of the batch.
        if is_own || is_added {
            self.used.events = self.used.events.saturating_sub(1);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::catalogue;

    const QUOTA: FeederQuota = FeederQuota { bookmakers_per_day: 1, bookmakers: 2, events_per_day: 2, events: 3 };

    fn sport() -> SportId {
        catalogue::builtin().sport_ids().next().unwrap()
    }

    fn id(text: &str) -> EventId {
        EventId::new(text).unwrap()
    }

    fn feeder(name: &str) -> Sender {
        Sender { name: name.into(), removes_any: false }
    }

    #[test]
    fn quotas_of_a_day_return_with_the_next_day_and_those_in_all_do_not() {
        let mut owners = Owners::default();
        let mut added = Vec::new();
        for day in 0..3 {
            let mut batch = owners.begin(Some(feeder("one")), QUOTA, day);
            let books = (0..3).filter(|_| batch.bookmaker().is_ok()).count();
            let events = (0..3).filter(|n| batch.event(sport(), &id(&format!("{day}-{n}"))).is_ok()).count();
            added.push((books, events));
            owners.take(batch);
        }
        assert_eq!(added, [(1, 2), (1, 1), (0, 0)]);
        assert!(owners.begin(Some(feeder("two")), QUOTA, 3).bookmaker().is_ok(), "each has a quota of its own");
    }

    #[test]
    fn event_without_an_owner_belongs_to_the_first_that_announces_it_again() {
        let mut owners = Owners::default();
        let (sport, event) = (sport(), id("stored"));
        let mut batch = owners.begin(Some(feeder("one")), QUOTA, 0);
        assert_eq!(batch.remove(&owners, sport, &event), Err(Reason::NotOwnEvent), "nobody has announced it");
        batch.again(&owners, sport, &event);
        owners.take(batch);
        let mut other = owners.begin(Some(feeder("two")), QUOTA, 0);
        other.again(&owners, sport, &event);
        assert_eq!(other.remove(&owners, sport, &event), Err(Reason::NotOwnEvent));
        assert_eq!(owners.begin(Some(feeder("one")), QUOTA, 0).remove(&owners, sport, &event), Ok(()));
        assert_eq!(owners.begin(None, QUOTA, 0).remove(&owners, sport, &event), Ok(()), "the operator removes any");
    }

    #[test]
    fn batch_that_is_not_committed_uses_nothing_up() {
        let owners = Owners::default();
        for _ in 0..5 {
            assert!(owners.begin(Some(feeder("one")), QUOTA, 0).event(sport(), &id("a")).is_ok());
        }
    }
}
