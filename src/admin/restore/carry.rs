//! What a restore carries over from the file that it replaces, so that going back brings no secret and no quota back.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::clock::Moment;
use crate::keys::{Feeder, KeyId, KeyRecord, Usage};
use crate::model::World;
use crate::store::{Change, Loaded};

/// What was carried over from the file that was replaced, by the ids of the keys if nothing else is said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Carried {
    /// Revoked since the backup, and still.
    pub revoked: Vec<String>,
    /// They could not be read there and opened nothing: revoked.
    pub unreadable: Vec<String>,
    /// Rotated since: the newer secret is the one that opens.
    pub rotated: Vec<String>,
    /// They end when they were to end.
    pub expiries: Vec<String>,
    /// They have used more since.
    pub usage: Vec<String>,
    /// Issued since the backup, which does not know them: they open nothing any more.
    pub gone: Vec<String>,
    /// The feeders whose tokens were revoked or replaced since, by their names.
    #[serde(default)]
    pub tokens: Vec<String>,
    /// The feeders that have used more of their quotas since, by the names of their feeds.
    #[serde(default)]
    pub feeders: Vec<String>,
}

/// What going back must not undo.
pub(super) fn carry_over(current: &Loaded, backup: &Loaded, now: Moment) -> (Vec<Change>, Carried) {
    let mut changes = Vec::new();
    let mut carried = Carried::default();
    let known: BTreeMap<&KeyId, &(KeyRecord, Usage)> = current.keys.iter().map(|entry| (&entry.0.id, entry)).collect();
    let is_unreadable =
        |id: &KeyId| current.damage.listed().iter().any(|damage| damage.table == "keys" && damage.key == id.as_str());
    for (record, usage) in &backup.keys {
        let id = record.id.to_string();
        let Some((newer, newer_usage)) = known.get(&record.id) else {
            if is_unreadable(&record.id) && record.revoked.is_none() {
                let record = KeyRecord { revoked: Some(now.timestamp()), ..record.clone() };
                changes.push(Change::PutKey(Arc::new(record)));
                carried.unreadable.push(id);
            }
            continue;
        };
        let joined = join_keys(record, newer, &mut carried);
        let newer_usage =
            if current.damaged_usage.contains(&record.id) { Usage::exhausted(newer.limits, now) } else { *newer_usage };
        let before =
            if backup.damaged_usage.contains(&record.id) { Usage::exhausted(record.limits, now) } else { *usage };
        let used = before.joined(newer_usage);
        if joined != *record {
            changes.push(Change::PutKey(Arc::new(joined)));
        }
        if used != *usage {
            let last_used = record.last_used.max(newer.last_used);
            changes.push(Change::PutUsage { key: record.id.clone(), usage: used, last_used });
            carried.usage.push(id);
        }
    }
    let is_in_backup = |id: &KeyId| backup.keys.iter().any(|(record, _)| record.id == *id);
    let gone = current.keys.iter().filter(|(record, _)| !is_in_backup(&record.id));
    carried.gone = gone.map(|(record, _)| record.id.to_string()).collect();
    let newer = current.recent_use.iter().filter(|(key, _)| is_in_backup(key));
    changes.extend(newer.map(|(key, recent)| Change::PutRecentUse { key: key.clone(), recent: Box::new(*recent) }));
    carry_tokens(current, backup, now, &mut changes, &mut carried);
    carry_feeder_uses(current, backup, &mut changes, &mut carried);
    (changes, carried)
}

/// Tokens of feeders: what was revoked or replaced since the backup opens nothing.
fn carry_tokens(current: &Loaded, backup: &Loaded, now: Moment, changes: &mut Vec<Change>, carried: &mut Carried) {
    let is_unreadable =
        |name: &str| current.damage.listed().iter().any(|damage| damage.table == "feeders" && damage.key == name);
    for feeder in backup.feeders.iter().filter(|feeder| feeder.revoked.is_none()) {
        let newer = match current.feeders.iter().find(|newer| newer.name == feeder.name) {
            // One that is older than the backup's has been replaced by it.
            Some(newer) if newer == feeder || newer.created < feeder.created => continue,
            // The backup is the later one if it knows the token in place as one that was rotated out.
            Some(newer) if newer.revoked.is_none() && feeder.retired.iter().any(|old| old.hash == newer.hash) => {
                continue;
            }
            Some(newer) => newer.clone(),
            None if is_unreadable(&feeder.name) => Feeder { revoked: Some(now.timestamp()), ..feeder.clone() },
            None => continue,
        };
        carried.tokens.push(newer.name.to_string());
        changes.push(Change::PutFeeder(Arc::new(newer)));
    }
}

/// What feeders have used of their quotas since the backup.
fn carry_feeder_uses(current: &Loaded, backup: &Loaded, changes: &mut Vec<Change>, carried: &mut Carried) {
    for world in World::ALL {
        let known: BTreeMap<_, _> = backup.world(world).feeder_uses.iter().cloned().collect();
        for (feed, newer) in &current.world(world).feeder_uses {
            let before = known.get(feed).copied().unwrap_or_default();
            let used = before.joined(*newer);
            if used != before {
                changes.push(Change::PutFeederUse { world, feed: Arc::from(&**feed), used });
                carried.feeders.push(feed.to_string());
            }
        }
    }
}

/// The backup's key with what took secrets out of service since.
fn join_keys(backup: &KeyRecord, current: &KeyRecord, carried: &mut Carried) -> KeyRecord {
    let mut joined = backup.clone();
    if backup.revoked.is_none() && current.revoked.is_some() {
        joined.revoked = current.revoked;
        carried.revoked.push(backup.id.to_string());
    }
    // The backup is the later one only if it knows the secret in place as one that was rotated out.
    let end_of = |key: &KeyRecord, hash| key.retired.iter().find(|old| old.hash == hash).map(|old| old.until);
    let is_later = match (end_of(backup, current.hash), end_of(current, backup.hash)) {
        // Each knows the other's: a rotation was undone, which ended its secret before the grace period of the old one.
        (Some(in_backup), Some(in_current)) => in_backup < in_current,
        (in_backup, _) => in_backup.is_some(),
    };
    let differs = backup.hash != current.hash || backup.retired != current.retired;
    if differs && !is_later {
        joined.hash = current.hash;
        joined.last_four.clone_from(&current.last_four);
        joined.retired.clone_from(&current.retired);
        joined.replaced_last_four.clone_from(&current.replaced_last_four);
        joined.self_rotated = current.self_rotated;
        carried.rotated.push(backup.id.to_string());
    }
    if let Some(ends) = current.expires
        && backup.expires.is_none_or(|expires| expires > ends)
    {
        joined.expires = Some(ends);
        carried.expiries.push(backup.id.to_string());
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::{FeedToken, KeyId, KeyKind, Limits, NewKey, Secret, SecretHash, StoredSecret, issue};
    use crate::model::{Catalogue, FeederUse, Sport, SportKind, Timestamp};

    const NOW: Moment = Moment::unset(1_794_657_600_000, 0);

    fn at(seconds: u32) -> Timestamp {
        NOW.timestamp().plus_seconds(seconds)
    }

    fn key() -> KeyRecord {
        let kind = SportKind::Fight;
        let sport = Sport {
            key: "mma".into(),
            title: "MMA".into(),
            group: "combat".into(),
            kind,
            hides_fields: false,
            v4: None,
        };
        let catalogue = Catalogue::new(vec![sport], Vec::new()).unwrap();
        let limits = Limits::default_of(KeyKind::Sandbox);
        let (kind, expires, approved_by) = (KeyKind::Sandbox, None, None);
        let new =
            NewKey { kind, name: "k".into(), groups: Vec::new(), limits, expires, approved_by, self_service: false };
        issue::issue(new, (KeyId::generate().unwrap(), secret()), &catalogue, at(0)).unwrap()
    }

    fn secret() -> StoredSecret {
        Secret::generate(KeyKind::Sandbox).unwrap().stored()
    }

    fn rotated(key: &KeyRecord, times: u32) -> KeyRecord {
        (0..times).fold(key.clone(), |key, time| issue::rotate(&key, secret(), 0, at(time + 1)).unwrap())
    }

    fn joined(backup: &KeyRecord, current: &KeyRecord) -> (KeyRecord, Carried) {
        let mut carried = Carried::default();
        (join_keys(backup, current, &mut carried), carried)
    }

    #[test]
    fn the_same_key_stays_as_it_is() {
        let key = key();
        assert_eq!(joined(&key, &key), (key, Carried::default()));
    }

    #[test]
    fn the_newer_secret_is_the_one_that_opens_whichever_file_has_it() {
        let old = key();
        // A key remembers eight secrets: after more rotations than that the file in place is believed.
        for times in [1, 3, 20] {
            let new = rotated(&old, times);
            let (kept, carried) = joined(&old, &new);
            assert_eq!((kept.hash, &kept.retired), (new.hash, &new.retired));
            assert_eq!(carried.rotated, [old.id.to_string()]);
        }
        let new = rotated(&old, 2);
        let (kept, carried) = joined(&new, &old);
        assert_eq!((kept, carried), (new, Carried::default()), "a backup that is later than the file in place");
    }

    #[test]
    fn a_grace_that_was_ended_stays_ended() {
        let old = key();
        let gentle = issue::rotate(&old, secret(), 3600, at(1)).unwrap();
        let ended = rotated(&gentle, 1);
        let (kept, _) = joined(&gentle, &ended);
        assert_eq!(kept.retired, ended.retired);
    }

    #[test]
    fn revocations_and_earlier_ends_are_carried_and_never_undone() {
        let old = key();
        let revoked = issue::revoke(&old, at(5));
        assert_eq!(joined(&old, &revoked).0.revoked, Some(at(5)));
        assert_eq!(joined(&revoked, &old).0.revoked, Some(at(5)), "what the backup revoked stays revoked");
        let ending = KeyRecord { expires: Some(at(60)), ..old.clone() };
        let later = KeyRecord { expires: Some(at(90)), ..old.clone() };
        assert_eq!(joined(&old, &ending).0.expires, Some(at(60)));
        assert_eq!(joined(&later, &ending).0.expires, Some(at(60)));
        assert_eq!(joined(&ending, &later).0.expires, Some(at(60)));
        assert_eq!(joined(&ending, &old).0.expires, Some(at(60)));
    }

    #[test]
    fn undone_rotation_stays_undone_whichever_file_has_it() {
        let old = key();
        let rotated = issue::rotate(&old, secret(), 60, at(1)).unwrap();
        let undone = issue::undo_rotation(&rotated, at(5)).unwrap();
        let (kept, carried) = joined(&rotated, &undone);
        assert_eq!((kept.hash, &kept.retired), (old.hash, &undone.retired), "the backup is from before");
        assert_eq!((&kept.last_four, carried.rotated.len()), (&old.last_four, 1));
        let (kept, carried) = joined(&undone, &rotated);
        assert_eq!((kept, carried), (undone.clone(), Carried::default()), "the backup is the later one");
        let (kept, _) = joined(&old, &undone);
        assert_eq!((kept.hash, &kept.retired), (old.hash, &undone.retired));
    }

    fn feeder(created: u32, revoked: Option<u32>, hash: u8) -> Feeder {
        let (name, last_four) = ("scraper".into(), "wxyz".into());
        let revoked = revoked.map(at);
        let (hash, retired) = (SecretHash([hash; 32]), Box::default());
        Feeder { name, world: World::Live, created: at(created), revoked, hash, last_four, retired }
    }

    /// The token that is in place after a restore, and whether that was listed.
    fn restored(current: Option<Feeder>, backup: &Feeder) -> (Feeder, bool) {
        let backup_file = Loaded { feeders: vec![backup.clone()], ..Loaded::default() };
        let current = Loaded { feeders: current.into_iter().collect(), ..Loaded::default() };
        let (changes, carried) = carry_over(&current, &backup_file, NOW);
        let put = changes.into_iter().find_map(|change| match change {
            Change::PutFeeder(feeder) => Some(Feeder::clone(&feeder)),
            _ => None,
        });
        (put.unwrap_or_else(|| backup.clone()), !carried.tokens.is_empty())
    }

    #[test]
    fn feed_token_that_was_ended_since_the_backup_stays_ended() {
        let old = feeder(0, None, 1);
        let (revoked, reissued) = (feeder(0, Some(5), 1), feeder(6, None, 2));
        assert_eq!(restored(Some(revoked.clone()), &old), (revoked.clone(), true));
        assert_eq!(restored(Some(reissued.clone()), &old), (reissued.clone(), true));
        assert_eq!(restored(Some(old.clone()), &old), (old.clone(), false));
        assert_eq!(restored(None, &old), (old.clone(), false), "a file in place that never knew it");
        assert_eq!(restored(Some(old), &reissued), (reissued.clone(), false), "a backup that is later");
        assert_eq!(restored(Some(reissued), &revoked), (revoked, false), "what the backup revoked stays revoked");
    }

    #[test]
    fn feed_token_that_was_rotated_since_the_backup_stays_rotated() {
        let old = feeder(0, None, 1);
        let rotated = old.rotated(FeedToken::generate().unwrap().stored(), 60, at(5));
        let revoked = Feeder { revoked: Some(at(6)), ..rotated.clone() };
        assert_eq!(restored(Some(rotated.clone()), &old), (rotated.clone(), true));
        assert_eq!(restored(Some(revoked.clone()), &rotated), (revoked, true));
        assert_eq!(restored(Some(old.clone()), &rotated), (rotated.clone(), false), "a backup that is later");
        let ended = Feeder { revoked: Some(at(6)), ..old };
        assert_eq!(restored(Some(ended.clone()), &rotated), (ended, true), "what was revoked stays revoked");
    }

    #[test]
    fn quota_that_a_feeder_has_used_since_the_backup_stays_used() {
        let loaded = |used: FeederUse| {
            let mut loaded = Loaded::default();
            loaded.worlds[World::Live.index()].feeder_uses = vec![("token/a".into(), used)];
            loaded
        };
        let used = |day, bookmakers_today, bookmakers, events_today| FeederUse {
            day,
            bookmakers_today,
            bookmakers,
            events_today,
            ..FeederUse::default()
        };
        let carried = |current, backup| {
            let (changes, carried) = carry_over(&loaded(current), &loaded(backup), NOW);
            assert_eq!(changes.is_empty(), carried.feeders.is_empty());
            changes.into_iter().next().map(|change| match change {
                Change::PutFeederUse { world: World::Live, used, .. } => used,
                other => panic!("{other:?}"),
            })
        };
        assert_eq!(carried(used(5, 1, 9, 7), used(5, 1, 9, 7)), None);
        assert_eq!(carried(used(5, 1, 9, 7), used(5, 2, 8, 3)), Some(used(5, 2, 9, 7)));
        assert_eq!(carried(used(6, 1, 9, 7), used(5, 2, 8, 3)), Some(used(6, 1, 9, 7)));
        assert_eq!(carried(used(4, 1, 7, 7), used(5, 2, 8, 3)), None, "a backup that is later");
        let (changes, _) = carry_over(&loaded(used(5, 1, 9, 7)), &Loaded::default(), NOW);
        assert_eq!(changes.len(), 1, "the backup knows nothing of the feeder");
    }

    #[test]
    fn what_was_used_since_is_carried_and_what_is_unknown_counts_as_spent() {
        let record = key();
        let backup = Loaded { keys: vec![(record.clone(), Usage::default())], ..Loaded::default() };
        let (changes, carried) = carry_over(&Loaded::default(), &backup, NOW);
        assert_eq!((changes.len(), carried), (0, Carried::default()), "a file in place that never knew it");
        let usage = Usage { day_used: 5, ..Usage::fresh(NOW) };
        let current = Loaded { keys: vec![(record.clone(), usage)], ..Loaded::default() };
        let (changes, carried) = carry_over(&current, &backup, NOW);
        assert_eq!(carried.usage, [record.id.to_string()]);
        assert_eq!(changes, [Change::PutUsage { key: record.id.clone(), usage, last_used: None }]);
        let lost = Loaded { damaged_usage: vec![record.id.clone()], ..current };
        let spent = Usage::exhausted(record.limits, NOW);
        let (changes, _) = carry_over(&lost, &backup, NOW);
        assert_eq!(changes, [Change::PutUsage { key: record.id, usage: spent, last_used: None }]);
    }
}
