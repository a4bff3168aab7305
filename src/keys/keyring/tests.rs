//! Which secrets are accepted, which are rejected and why, to the second.

use super::*;
use crate::keys::fixture::{NOON, at, catalogue, issued, new_key, noon_and, rotate, wall};
use crate::keys::issue::{NewKey, revoke};
use crate::keys::meter::Cost;
use crate::keys::record::{KeyKind, Limits};
use crate::keys::secret::Secret;
use crate::model::World;

fn keyring(keys: impl IntoIterator<Item = KeyRecord>) -> Keyring {
    let (queue, _) = LeaseQueue::open();
    Keyring::new(Arc::new(catalogue()), keys.into_iter().map(|key| (key, Usage::default())), queue)
}

fn error(keyring: &Keyring, secret: &Secret, now: Moment) -> Option<&'static str> {
    keyring.load().authenticate(Some(secret.expose()), now).err().map(|error| error.reason())
}

#[test]
fn valid_secret_grants_its_own_key_and_world() {
    let pairs: Vec<_> = KeyKind::ALL.into_iter().cycle().take(20).map(|kind| issued(new_key(kind))).collect();
    let keyring = keyring(pairs.iter().map(|(key, _)| key.clone()));
    for (key, secret) in &pairs {
        let keys = keyring.load();
        let grant = keys.authenticate(Some(secret.expose()), wall(NOON)).unwrap();
        assert_eq!((grant.key_id(), grant.world()), (&key.id, key.kind.world()));
        assert_eq!(grant.record(), key);
    }
}

#[test]
fn rejection_has_a_reason() {
    let (key, secret) = issued(new_key(KeyKind::Sandbox));
    let keyring = keyring([key]);
    let mistyped = secret.expose().replace("ob_", "ob-");
    assert_eq!(keyring.load().authenticate(None::<&str>, wall(NOON)).err(), Some(AuthError::Missing));
    assert_eq!(keyring.load().authenticate(Some(""), wall(NOON)).err(), Some(AuthError::Missing));
    assert_eq!(keyring.load().authenticate(Some("hunter2"), wall(NOON)).err(), Some(AuthError::Malformed));
    assert_eq!(keyring.load().authenticate(Some(&mistyped), wall(NOON)).err(), Some(AuthError::Malformed));
    let unknown = Secret::generate(KeyKind::Sandbox).unwrap();
    assert_eq!(keyring.load().authenticate(Some(unknown.expose()), wall(NOON)).err(), Some(AuthError::Unknown));
    assert_eq!(AuthError::Unknown.key(), None);
}

#[test]
fn revoked_key_is_rejected_when_put_returns() {
    let (key, secret) = issued(new_key(KeyKind::Production));
    let keyring = keyring([key.clone()]);
    assert_eq!(error(&keyring, &secret, wall(NOON)), None);
    keyring.put(revoke(&key, at(NOON)));
    let error = keyring.load().authenticate(Some(secret.expose()), wall(NOON)).unwrap_err();
    assert_eq!((error.reason(), error.key()), ("revoked", Some(&key.id)));
}

#[test]
fn key_is_rejected_from_the_second_of_its_expiry() {
    let (key, secret) = issued(NewKey { expires: Some(at(NOON + 10)), ..new_key(KeyKind::Sandbox) });
    let keyring = keyring([key]);
    assert_eq!(error(&keyring, &secret, Moment::unset(at(NOON + 10).unix_ms() - 1, 0)), None);
    assert_eq!(error(&keyring, &secret, wall(NOON + 10)), Some("expired"));
}

#[test]
fn rotated_secret_is_accepted_until_its_grace_period_ends() {
    let (key, first) = issued(new_key(KeyKind::Sandbox));
    let keyring = keyring([key.clone()]);
    let (key, second) = rotate(&key, 60, at(NOON)).unwrap();
    keyring.put(key.clone());
    assert_eq!(error(&keyring, &first, wall(NOON + 59)), None);
    assert_eq!(error(&keyring, &first, wall(NOON + 60)), Some("rotated_out"));
    assert_eq!(error(&keyring, &second, wall(NOON + 60)), None);

    let (key, third) = rotate(&key, 0, at(NOON + 5)).unwrap();
    keyring.put(key.clone());
    assert_eq!(error(&keyring, &first, wall(NOON + 59)), None, "its own grace period is unchanged");
    assert_eq!(error(&keyring, &second, wall(NOON + 5)), Some("rotated_out"), "no grace period");
    assert_eq!(error(&keyring, &third, wall(NOON + 5)), None);

    keyring.put(revoke(&key, at(NOON + 6)));
    assert_eq!([&first, &second, &third].map(|secret| error(&keyring, secret, wall(NOON + 6))), [Some("revoked"); 3]);
}

#[test]
fn secret_removed_from_the_record_is_unknown() {
    let (key, first) = issued(new_key(KeyKind::Sandbox));
    let keyring = keyring([key.clone()]);
    let (mut key, _) = rotate(&key, 60, at(NOON)).unwrap();
    keyring.put(key.clone());
    key.retired = Box::default();
    keyring.put(key);
    assert_eq!(error(&keyring, &first, wall(NOON)), Some("unknown"));
}

#[test]
fn changed_key_keeps_its_meter() {
    let limits = Limits { burst_per_minute: 2, per_day: None, per_month: Some(1), streams: 10 };
    let (key, secret) = issued(NewKey { limits, ..new_key(KeyKind::Sandbox) });
    let keyring = keyring([]);
    let before = keyring.put(key.clone());
    before.meter().grant(before.meter().plan_lease(wall(NOON)).unwrap());
    let keys = keyring.load();
    let grant_before = keys.authenticate(Some(secret.expose()), wall(NOON)).unwrap();
    assert!(grant_before.meter().charge(Cost::Full, wall(NOON)).is_ok());

    let (mut key, second) = rotate(&key, 60, at(NOON)).unwrap();
    key.limits.burst_per_minute = 1;
    keyring.put(key);
    for secret in [&secret, &second] {
        let keys = keyring.load();
        let grant = keys.authenticate(Some(secret.expose()), wall(NOON)).unwrap();
        let standing = grant.meter().standing(wall(NOON));
        assert_eq!((standing.burst.remaining, standing.month.remaining()), (0, Some(0)));
    }
    assert_eq!(grant_before.meter().standing(wall(NOON)).burst.limit, 1, "also for a request in progress");
}

#[test]
fn meters_continue_from_the_stored_usage() {
    let (key, secret) = issued(new_key(KeyKind::Sandbox));
    let stored = Usage { day: 20_771, day_used: 10_000, month: 682, month_used: 10_000 };
    let (queue, _requests) = LeaseQueue::open();
    let keyring = Keyring::new(Arc::new(catalogue()), [(key, stored)], queue);
    let keys = keyring.load();
    let grant = keys.authenticate(Some(secret.expose()), noon_and(0)).unwrap();
    assert!(grant.meter().charge(Cost::Full, noon_and(0)).is_err());
}

#[test]
fn restricted_key_reads_only_its_groups() {
    let sports = catalogue();
    let [mma, boxing, tennis] = ["mma", "boxing", "tennis"].map(|key| sports.find(key).unwrap());
    let (combat, secret) = issued(NewKey { groups: vec!["combat".into()], ..new_key(KeyKind::Production) });
    let (free, free_secret) = issued(new_key(KeyKind::Production));
    let keyring = keyring([combat.clone(), free]);

    let keys = keyring.load();
    let grant = keys.authenticate(Some(secret.expose()), wall(NOON)).unwrap();
    assert_eq!(grant.for_sport(tennis).unwrap_err().sport, tennis);
    for sport in [mma, boxing] {
        let access = grant.for_sport(sport).unwrap();
        assert_eq!((access.world(), access.sport()), (World::Live, sport));
    }
    let keys = keyring.load();
    let grant = keys.authenticate(Some(free_secret.expose()), wall(NOON)).unwrap();
    assert!([mma, boxing, tennis].into_iter().all(|sport| grant.for_sport(sport).is_ok()));

    keyring.put(KeyRecord { groups: ["curling".into()].into(), ..combat });
    let keys = keyring.load();
    let grant = keys.authenticate(Some(secret.expose()), wall(NOON)).unwrap();
    assert!(grant.for_sport(mma).is_err(), "a missing group grants nothing");
}

#[test]
fn keys_are_found_by_id_or_name_and_listed_in_order_of_issue() {
    let keys: Vec<_> = [30, 10, 20]
        .map(|age| KeyRecord { created: at(age), ..issued(new_key(KeyKind::Sandbox)).0 })
        .into_iter()
        .chain([KeyRecord { name: "other".into(), created: at(5), ..issued(new_key(KeyKind::Sandbox)).0 }])
        .collect();
    let keyring = keyring(keys.clone());
    let ages: Vec<_> = keyring.list().iter().map(|entry| entry.record().created.unix()).collect();
    assert_eq!(ages, [30, 10, 20, 5], "independent of the creation times");
    let last = keyring.put(KeyRecord { created: at(1), ..issued(new_key(KeyKind::Sandbox)).0 });
    keyring.put(KeyRecord { name: "renamed".into(), ..keys[3].clone() });
    let listed: Vec<_> = keyring.list().iter().map(|entry| entry.id().clone()).collect();
    assert_eq!((&listed[3], &listed[4]), (&keys[3].id, last.id()));
    keyring.put(keys[3].clone());
    assert_eq!(keyring.get(&keys[0].id).unwrap().record(), &keys[0]);
    assert_eq!(keyring.find(keys[0].id.as_str()).len(), 1);
    assert_eq!(keyring.find("a test").len(), 4);
    assert_eq!(keyring.find("unknown").len(), 0);
}

#[test]
fn concurrent_changes_are_not_lost() {
    let keyring = keyring([]);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let (key, secret) = issued(new_key(KeyKind::Sandbox));
                    keyring.put(key);
                    assert_eq!(error(&keyring, &secret, wall(NOON)), None, "in force when put has returned");
                }
            });
        }
    });
    assert_eq!(keyring.list().len(), 200);
}

#[test]
fn debug_omits_secrets_and_hashes() {
    let (key, secret) = issued(new_key(KeyKind::Sandbox));
    let hash = key.hash;
    let keyring = keyring([key]);
    let keys = keyring.load();
    let grant = keys.authenticate(Some(secret.expose()), wall(NOON)).unwrap();
    let shown = format!("{keyring:?} {grant:?}");
    assert!(!shown.contains(secret.expose()));
    assert!(!shown.contains(&format!("{:?}", hash.0)));
}
