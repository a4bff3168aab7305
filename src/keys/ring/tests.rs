//! Which texts open, which do not and why, to the second.

use super::*;
use crate::keys::fixture::{NOON, at, catalogue, issued, new_key, noon_and, wall};
use crate::keys::issue::{NewKey, revoke, rotate};
use crate::keys::meter::Cost;
use crate::keys::record::{KeyKind, Limits};
use crate::model::World;

fn keyring(keys: impl IntoIterator<Item = KeyRecord>) -> Keyring {
    let (desk, _) = LeaseDesk::open();
    Keyring::new(Arc::new(catalogue()), keys.into_iter().map(|key| (key, Usage::default())), desk)
}

fn error(keyring: &Keyring, secret: &Secret, now: Moment) -> Option<&'static str> {
    keyring.authenticate(Some(secret.expose()), now).err().map(|error| error.reason())
}

#[test]
fn a_valid_secret_opens_its_own_key_and_its_own_world() {
    let pairs: Vec<_> = KeyKind::ALL.into_iter().cycle().take(20).map(|kind| issued(new_key(kind))).collect();
    let keyring = keyring(pairs.iter().map(|(key, _)| key.clone()));
    for (key, secret) in &pairs {
        let grant = keyring.authenticate(Some(secret.expose()), wall(NOON)).unwrap();
        assert_eq!((grant.key_id(), grant.world()), (&key.id, key.kind.world()));
        assert_eq!(grant.record(), key);
    }
}

#[test]
fn a_text_that_opens_nothing_says_why() {
    let (key, secret) = issued(new_key(KeyKind::Sandbox));
    let keyring = keyring([key]);
    let mistyped = secret.expose().replace("ob_", "ob-");
    assert_eq!(keyring.authenticate(None, wall(NOON)).err(), Some(AuthError::Missing));
    assert_eq!(keyring.authenticate(Some(""), wall(NOON)).err(), Some(AuthError::Missing));
    assert_eq!(keyring.authenticate(Some("hunter2"), wall(NOON)).err(), Some(AuthError::Malformed));
    assert_eq!(keyring.authenticate(Some(&mistyped), wall(NOON)).err(), Some(AuthError::Malformed));
    let stranger = Secret::generate(KeyKind::Sandbox).unwrap();
    assert_eq!(keyring.authenticate(Some(stranger.expose()), wall(NOON)).err(), Some(AuthError::Unknown));
    assert_eq!(AuthError::Unknown.key(), None);
}

#[test]
fn a_revoked_key_stops_when_put_returns() {
    let (key, secret) = issued(new_key(KeyKind::Production));
    let keyring = keyring([key.clone()]);
    assert_eq!(error(&keyring, &secret, wall(NOON)), None);
    keyring.put(revoke(&key, at(NOON)));
    let refused = keyring.authenticate(Some(secret.expose()), wall(NOON)).unwrap_err();
    assert_eq!((refused.reason(), refused.key()), ("revoked", Some(&key.id)));
}

#[test]
fn a_key_expires_at_its_second() {
    let (key, secret) = issued(NewKey { expires: Some(at(NOON + 10)), ..new_key(KeyKind::Sandbox) });
    let keyring = keyring([key]);
    assert_eq!(error(&keyring, &secret, Moment::unset(at(NOON + 10).unix_ms() - 1, 0)), None);
    assert_eq!(error(&keyring, &secret, wall(NOON + 10)), Some("expired"));
}

#[test]
fn a_rotated_secret_opens_until_its_grace_ends() {
    let (key, first) = issued(new_key(KeyKind::Sandbox));
    let keyring = keyring([key.clone()]);
    let (key, second) = rotate(&key, 60, at(NOON)).unwrap();
    keyring.put(key.clone());
    assert_eq!(error(&keyring, &first, wall(NOON + 59)), None);
    assert_eq!(error(&keyring, &first, wall(NOON + 60)), Some("rotated_out"));
    assert_eq!(error(&keyring, &second, wall(NOON + 60)), None);

    let (key, third) = rotate(&key, 0, at(NOON + 5)).unwrap();
    keyring.put(key.clone());
    assert_eq!(error(&keyring, &first, wall(NOON + 59)), None, "its own grace stays as it was");
    assert_eq!(error(&keyring, &second, wall(NOON + 5)), Some("rotated_out"), "no grace, no second");
    assert_eq!(error(&keyring, &third, wall(NOON + 5)), None);

    keyring.put(revoke(&key, at(NOON + 6)));
    assert_eq!([&first, &second, &third].map(|secret| error(&keyring, secret, wall(NOON + 6))), [Some("revoked"); 3]);
}

#[test]
fn a_forgotten_secret_is_no_longer_known() {
    let (key, first) = issued(new_key(KeyKind::Sandbox));
    let keyring = keyring([key.clone()]);
    let (mut key, _) = rotate(&key, 60, at(NOON)).unwrap();
    keyring.put(key.clone());
    key.retired = Box::default();
    keyring.put(key);
    assert_eq!(error(&keyring, &first, wall(NOON)), Some("unknown"));
}

#[test]
fn a_key_keeps_its_meter_through_every_change() {
    let limits = Limits { burst_per_minute: 2, per_day: None, per_month: Some(1) };
    let (key, secret) = issued(NewKey { limits, ..new_key(KeyKind::Sandbox) });
    let keyring = keyring([]);
    let before = keyring.put(key.clone());
    before.meter().grant(before.meter().plan_lease(wall(NOON)).unwrap());
    let held = keyring.authenticate(Some(secret.expose()), wall(NOON)).unwrap();
    assert!(held.meter().charge(Cost::Full, wall(NOON)).is_ok());

    let (mut key, second) = rotate(&key, 60, at(NOON)).unwrap();
    key.limits.burst_per_minute = 1;
    keyring.put(key);
    for secret in [&secret, &second] {
        let grant = keyring.authenticate(Some(secret.expose()), wall(NOON)).unwrap();
        let standing = grant.meter().standing(wall(NOON));
        assert_eq!((standing.burst.remaining, standing.month.remaining()), (0, Some(0)));
    }
    assert_eq!(held.meter().standing(wall(NOON)).burst.limit, 1, "also for a request that is under way");
}

#[test]
fn meters_go_on_from_what_was_stored() {
    let (key, secret) = issued(new_key(KeyKind::Sandbox));
    let stored = Usage { day: 20_771, day_used: 10_000, month: 682, month_used: 10_000 };
    let (desk, _requests) = LeaseDesk::open();
    let keyring = Keyring::new(Arc::new(catalogue()), [(key, stored)], desk);
    let grant = keyring.authenticate(Some(secret.expose()), noon_and(0)).unwrap();
    assert!(grant.meter().charge(Cost::Full, noon_and(0)).is_err());
}

#[test]
fn a_restricted_key_reads_its_groups_only() {
    let sports = catalogue();
    let [mma, boxing, tennis] = ["mma", "boxing", "tennis"].map(|key| sports.find(key).unwrap());
    let (combat, secret) = issued(NewKey { groups: vec!["combat".into()], ..new_key(KeyKind::Production) });
    let (free, free_secret) = issued(new_key(KeyKind::Production));
    let keyring = keyring([combat.clone(), free]);

    let grant = keyring.authenticate(Some(secret.expose()), wall(NOON)).unwrap();
    assert_eq!(grant.for_sport(tennis).unwrap_err().sport, tennis);
    for sport in [mma, boxing] {
        let access = grant.for_sport(sport).unwrap();
        assert_eq!((access.world(), access.sport()), (World::Live, sport));
    }
    let grant = keyring.authenticate(Some(free_secret.expose()), wall(NOON)).unwrap();
    assert!([mma, boxing, tennis].into_iter().all(|sport| grant.for_sport(sport).is_ok()));

    keyring.put(KeyRecord { groups: ["curling".into()].into(), ..combat });
    let grant = keyring.authenticate(Some(secret.expose()), wall(NOON)).unwrap();
    assert!(grant.for_sport(mma).is_err(), "a group that is gone opens nothing, least of all everything");
}

#[test]
fn keys_are_found_by_id_and_by_name_and_listed_in_the_order_of_issue() {
    let keys: Vec<_> = [30, 10, 20]
        .map(|age| KeyRecord { created: at(age), ..issued(new_key(KeyKind::Sandbox)).0 })
        .into_iter()
        .chain([KeyRecord { name: "other".into(), created: at(5), ..issued(new_key(KeyKind::Sandbox)).0 }])
        .collect();
    let keyring = keyring(keys.clone());
    let ages: Vec<_> = keyring.list().iter().map(|entry| entry.record().created.unix()).collect();
    assert_eq!(ages, [30, 10, 20, 5], "whatever the clock said");
    let last = keyring.put(KeyRecord { created: at(1), ..issued(new_key(KeyKind::Sandbox)).0 });
    keyring.put(KeyRecord { name: "renamed".into(), ..keys[3].clone() });
    let places: Vec<_> = keyring.list().iter().map(|entry| entry.id().clone()).collect();
    assert_eq!((&places[3], &places[4]), (&keys[3].id, last.id()));
    keyring.put(keys[3].clone());
    assert_eq!(keyring.get(&keys[0].id).unwrap().record(), &keys[0]);
    assert_eq!(keyring.find(keys[0].id.as_str()).len(), 1);
    assert_eq!(keyring.find("a test").len(), 4);
    assert_eq!(keyring.find("nobody").len(), 0);
}

#[test]
fn two_changes_at_once_lose_neither() {
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
fn debug_shows_no_secret_and_no_hash() {
    let (key, secret) = issued(new_key(KeyKind::Sandbox));
    let hash = key.hash;
    let keyring = keyring([key]);
    let grant = keyring.authenticate(Some(secret.expose()), wall(NOON)).unwrap();
    let shown = format!("{keyring:?} {grant:?}");
    assert!(!shown.contains(secret.expose()));
    assert!(!shown.contains(&format!("{:?}", hash.0)));
}
