//! Who announced which event, and what each feeder has added of its quota.
//!
//! Both are in the file, committed with the news that changed them: the owner in the row of its event, the use of a quota
//! in a row of its own under the feeder's name. So neither a restart nor a new token of the same name gives a quota back
//! or takes an event away. An event that a version without owners stored has no owner until it is announced again,
//! and then belongs to the one who does that first. The operator's own feeds (commands, polls, the simulator) have no quota here and
//! may remove anything; what they announce belongs to no feeder.

use std::collections::BTreeMap;
use std::sync::Arc;

use foldhash::{HashMap, HashSet};

use crate::model::{EventId, EventOwner, FeederQuota, FeederUse, Reason, SportId, World};
use crate::store::Change;

/// Who sends a batch of news that counts against a quota.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sender {
    pub name: Arc<str>,
    /// Whether it may remove events that it has not announced.
    pub removes_any: bool,
}

type OwnedEvent = (SportId, EventId);

/// The owners of one world's events.
#[derive(Clone, Debug, Default)]
pub(super) struct Owners {
    /// Without those that have no owner.
    events: HashMap<OwnedEvent, EventOwner>,
    uses: BTreeMap<Arc<str>, FeederUse>,
}

/// What a batch of news adds to the owners once it is committed.
#[derive(Debug, Default)]
pub(super) struct Additions {
    sender: Option<Sender>,
    quota: FeederQuota,
    /// What the sender had used before the batch.
    before: FeederUse,
    used: FeederUse,
    /// Events that were announced and had no owner.
    events: HashSet<OwnedEvent>,
}

impl Owners {
    /// The owners as the file has them.
    pub(super) fn loaded(
        events: impl Iterator<Item = (SportId, EventId, EventOwner)>,
        uses: Vec<(Box<str>, FeederUse)>,
    ) -> Self {
        let uses = uses.into_iter().map(|(name, used)| (name.into(), used)).collect();
        let mut owners = Owners { events: HashMap::default(), uses };
        for (sport, event, owner) in events {
            match &owner {
                EventOwner::Unknown => continue,
                EventOwner::Operator => {}
                EventOwner::Feeder(name) => owners.uses.entry(Arc::clone(name)).or_default().events += 1,
            }
            owners.events.insert((sport, event), owner);
        }
        owners
    }

    pub(super) fn owner(&self, sport: SportId, event: &EventId) -> EventOwner {
        self.events.get(&(sport, event.clone())).cloned().unwrap_or_default()
    }

    /// What a feeder has used of its quota.
    pub(super) fn used(&self, name: &str) -> FeederUse {
        self.uses.get(name).copied().unwrap_or_default()
    }

    /// Every feeder that has added anything.
    pub(super) fn uses(&self) -> impl Iterator<Item = (&Arc<str>, FeederUse)> {
        self.uses.iter().map(|(name, used)| (name, *used))
    }

    /// Begins a batch of a sender, or of the operator's own feeds.
    pub(super) fn begin(&self, sender: Option<Sender>, quota: FeederQuota, day: u32) -> Additions {
        let used = sender.as_ref().map(|sender| self.used(&sender.name)).unwrap_or_default().on(day);
        Additions { sender, quota, before: used, used, events: HashSet::default() }
    }

    /// Forgets an event that was removed.
    pub(super) fn forget(&mut self, sport: SportId, event: &EventId) {
        let owner = self.events.remove(&(sport, event.clone()));
        if let Some(EventOwner::Feeder(name)) = owner
            && let Some(used) = self.uses.get_mut(&name)
        {
            used.events = used.events.saturating_sub(1);
        }
    }

    /// Takes over what a batch added, after the events that it removed were forgotten.
    pub(super) fn take(&mut self, additions: Additions) {
        let owner = additions.owner();
        let Additions { sender, used, events, .. } = additions;
        let mut count = sender.as_ref().map_or(0, |sender| self.used(&sender.name).events);
        for event in events {
            if self.events.insert(event, owner.clone()).is_none() {
                count += 1;
            }
        }
        if let Some(sender) = sender {
            self.uses.insert(sender.name, FeederUse { events: count, ..used });
        }
    }
}

impl Additions {
    /// Whose the events are that the batch adds.
    fn owner(&self) -> EventOwner {
        self.sender.as_ref().map_or(EventOwner::Operator, |sender| EventOwner::Feeder(Arc::clone(&sender.name)))
    }

    /// The owner of an event after this batch, and whether the batch made it so.
    pub(super) fn owner_of(&self, owners: &Owners, sport: SportId, event: &EventId) -> (EventOwner, bool) {
        let is_added = self.events.contains(&(sport, event.clone()));
        (if is_added { self.owner() } else { owners.owner(sport, event) }, is_added)
    }

    /// The sender's use of its quota, if the batch adds to it.
    pub(super) fn change(&self, world: World) -> Option<Change> {
        let sender = self.sender.as_ref()?;
        // Events that are there now are not stored with the rest.
        let is_same = FeederUse { events: self.before.events, ..self.used } == self.before;
        (!is_same).then(|| Change::PutFeederUse { world, feed: Arc::clone(&sender.name), used: self.used })
    }

    /// What the sender has used with this batch, for one that has a quota.
    pub(super) fn used(&self) -> Option<(FeederUse, FeederQuota)> {
        self.sender.as_ref().map(|_| (self.used, self.quota))
    }

    pub(super) fn bookmaker(&mut self) -> Result<(), Reason> {
        let fits = self.sender.is_none() || self.used.add_bookmaker(self.quota);
        if fits { Ok(()) } else { Err(Reason::FeederQuota) }
    }

    /// A new competition or market.
    pub(super) fn name(&mut self) -> Result<(), Reason> {
        let fits = self.sender.is_none() || self.used.add_name(self.quota);
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
        let is_own = match (owners.events.get(&key), &self.sender) {
            (Some(EventOwner::Feeder(owner)), Some(sender)) => *owner == sender.name,
            _ => false,
        };
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

    const QUOTA: FeederQuota =
        FeederQuota { bookmakers_per_day: 1, bookmakers: 2, events_per_day: 2, events: 3, names_per_day: 1, names: 2 };

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
        assert_eq!(batch.remove(&owners, sport, &event), Err(Reason::NotOwnEvent), "it was never announced");
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
