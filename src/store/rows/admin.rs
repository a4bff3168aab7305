//! Keys, their usage, feeders, budgets of polled feeds, the maintenance notice and the audit log.

use super::{seconds, timestamp};
use crate::keys::{Feeder, KeyId, KeyKind, KeyRecord, Limits, RecentUse, Retired, SecretHash, Usage};
use crate::model::{EntryId, FeedBudget, FeederUse, Maintenance, Membership, ReportedCredits, Timestamp, World};
use crate::store::change::AuditNote;
use crate::store::codec::{AuditRow, BudgetRow, FeederRow, Flaw, KeyRow, MetaRow, RecentUseRow, UsageRow};
use crate::store::table_keys::world_number;

impl KeyRow {
    pub(in crate::store) fn of(key: &KeyRecord) -> Self {
        KeyRow {
            kind: key.kind as u8,
            name: key.name.to_string(),
            groups: key.groups.iter().map(ToString::to_string).collect(),
            burst_per_minute: key.limits.burst_per_minute,
            per_day: key.limits.per_day,
            per_month: key.limits.per_month,
            created: key.created.unix(),
            expires: seconds(key.expires),
            approved_by: key.approved_by.as_ref().map(ToString::to_string),
            revoked: seconds(key.revoked),
            hash: key.hash.0,
            last_four: key.last_four.to_string(),
            retired: retired_rows(&key.retired),
            last_used: seconds(key.last_used),
            streams: Some(key.limits.streams),
            replaced_last_four: key.replaced_last_four.to_string(),
            self_service: key.self_service,
            self_rotated: seconds(key.self_rotated),
        }
    }

    pub(in crate::store) fn key(self, id: &str) -> Result<KeyRecord, Flaw> {
        let kind = KeyKind::ALL.get(usize::from(self.kind)).copied().ok_or(Flaw::Invalid("its kind is unknown"))?;
        Ok(KeyRecord {
            id: KeyId::new(id).ok_or(Flaw::Invalid("its id is not one"))?,
            kind,
            name: self.name.into(),
            groups: self.groups.into_iter().map(Into::into).collect(),
            limits: Limits {
                burst_per_minute: self.burst_per_minute,
                per_day: self.per_day,
                per_month: self.per_month,
                streams: self.streams.unwrap_or(Limits::default_of(kind).streams),
            },
            created: Timestamp::from_unix(self.created),
            expires: timestamp(self.expires),
            approved_by: self.approved_by.map(Into::into),
            revoked: timestamp(self.revoked),
            hash: SecretHash(self.hash),
            last_four: self.last_four.into(),
            retired: retired_secrets(self.retired),
            replaced_last_four: self.replaced_last_four.into(),
            self_service: self.self_service,
            self_rotated: timestamp(self.self_rotated),
            last_used: timestamp(self.last_used),
        })
    }
}

impl FeederRow {
    pub(in crate::store) fn of(feeder: &Feeder) -> Self {
        FeederRow {
            world: world_number(feeder.world),
            created: feeder.created.unix(),
            revoked: seconds(feeder.revoked),
            hash: feeder.hash.0,
            last_four: feeder.last_four.to_string(),
            retired: retired_rows(&feeder.retired),
        }
    }

    pub(in crate::store) fn feeder(self, name: &str) -> Result<Feeder, Flaw> {
        let world = World::ALL.into_iter().find(|world| world_number(*world) == self.world);
        Ok(Feeder {
            name: if Feeder::is_name(name) { name.into() } else { return Err(Flaw::Invalid("its name is not one")) },
            world: world.ok_or(Flaw::Invalid("its world is unknown"))?,
            created: Timestamp::from_unix(self.created),
            revoked: timestamp(self.revoked),
            hash: SecretHash(self.hash),
            last_four: self.last_four.into(),
            retired: retired_secrets(self.retired),
        })
    }
}

/// Replaced secrets of a key or a feeder: the hash and the end of the grace period.
fn retired_rows(retired: &[Retired]) -> Vec<([u8; 32], u32)> {
    retired.iter().map(|old| (old.hash.0, old.until.unix())).collect()
}

fn retired_secrets(rows: Vec<([u8; 32], u32)>) -> Box<[Retired]> {
    let retired = |(hash, until)| Retired { hash: SecretHash(hash), until: Timestamp::from_unix(until) };
    rows.into_iter().map(retired).collect()
}

impl RecentUseRow {
    pub(in crate::store) fn of(recent: &RecentUse) -> Self {
        let RecentUse { last_hour, hours, days } = recent;
        RecentUseRow { last_hour: *last_hour, hours: hours.to_vec(), days: days.to_vec() }
    }

    pub(in crate::store) fn recent_use(self) -> Result<RecentUse, Flaw> {
        let wrong = |_| Flaw::Invalid("it has not as many hours and days as it should");
        let (hours, days) = (self.hours.try_into().map_err(wrong)?, self.days.try_into().map_err(wrong)?);
        Ok(RecentUse { last_hour: self.last_hour, hours, days })
    }
}

impl UsageRow {
    pub(in crate::store) fn of(usage: Usage, last_used: Option<Timestamp>) -> Self {
        let Usage { day, day_used, month, month_used } = usage;
        UsageRow { day, day_used, month, month_used, last_used: seconds(last_used) }
    }

    pub(in crate::store) fn usage(&self) -> (Usage, Option<Timestamp>) {
        let &UsageRow { day, day_used, month, month_used, last_used } = self;
        (Usage { day, day_used, month, month_used }, timestamp(last_used))
    }
}

impl MetaRow {
    pub(in crate::store) fn of_maintenance(maintenance: Maintenance) -> Self {
        MetaRow::Maintenance { since: maintenance.since.unix(), until: seconds(maintenance.until) }
    }

    pub(in crate::store) fn maintenance(&self) -> Result<Maintenance, Flaw> {
        match *self {
            MetaRow::Maintenance { since, until } => {
                Ok(Maintenance { since: Timestamp::from_unix(since), until: timestamp(until) })
            }
            _ => Err(Flaw::Invalid("it is another kind of row")),
        }
    }

    pub(in crate::store) fn of_membership(membership: Membership) -> Self {
        let Membership { cluster, epoch, file, applied, fence } = membership;
        MetaRow::Membership { cluster, epoch, file, applied: (applied.ms, applied.number), fence }
    }

    pub(in crate::store) fn membership(&self) -> Result<Membership, Flaw> {
        match *self {
            MetaRow::Membership { cluster, epoch, file, applied: (ms, number), fence } => {
                Ok(Membership { cluster, epoch, file, applied: EntryId { ms, number }, fence })
            }
            _ => Err(Flaw::Invalid("it is another kind of row")),
        }
    }

    pub(in crate::store) fn of_use(used: FeederUse) -> Self {
        // How many of its events are there now follows from the rows of the events.
        let FeederUse { day, bookmakers_today, bookmakers, events_today, events: _, names_today, names } = used;
        MetaRow::FeederUseWithNames { day, bookmakers_today, bookmakers, events_today, names_today, names }
    }

    pub(in crate::store) fn feeder_use(&self) -> Result<FeederUse, Flaw> {
        match *self {
            MetaRow::FeederUse { day, bookmakers_today, bookmakers, events_today } => {
                Ok(FeederUse { day, bookmakers_today, bookmakers, events_today, ..FeederUse::default() })
            }
            MetaRow::FeederUseWithNames { day, bookmakers_today, bookmakers, events_today, names_today, names } => {
                Ok(FeederUse { day, bookmakers_today, bookmakers, events_today, events: 0, names_today, names })
            }
            _ => Err(Flaw::Invalid("it is another kind of row")),
        }
    }
}

impl BudgetRow {
    pub(in crate::store) fn of(budget: FeedBudget) -> Self {
        let FeedBudget { day, spent, reported, polled, account, scope } = budget;
        let reported = reported.map(|reported| (reported.left, reported.at.unix()));
        BudgetRow { day, spent, reported, polled: seconds(polled), account, scope }
    }

    pub(in crate::store) fn budget(&self) -> FeedBudget {
        let reported = |(left, at)| ReportedCredits { left, at: Timestamp::from_unix(at) };
        let BudgetRow { day, spent, polled, account, scope, .. } = *self;
        FeedBudget { day, spent, reported: self.reported.map(reported), polled: timestamp(polled), account, scope }
    }
}

impl AuditRow {
    pub(in crate::store) fn of(note: &AuditNote) -> Self {
        AuditRow {
            at: note.at.unix(),
            who: note.who.to_string(),
            action: note.action.to_string(),
            subject: note.subject.to_string(),
            detail: note.detail.to_string(),
        }
    }

    pub(in crate::store) fn note(self) -> AuditNote {
        AuditNote {
            at: Timestamp::from_unix(self.at),
            who: self.who.into(),
            action: self.action.into(),
            subject: self.subject.into(),
            detail: self.detail.into(),
        }
    }
}
