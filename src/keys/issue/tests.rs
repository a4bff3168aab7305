//! Issuing and changing keys, and the errors that the operator sees.

use super::*;
use crate::keys::Secret;
use crate::keys::fixture::{NOON, at, catalogue, issued, new_key, rotate, rotate_itself};

fn refused(new: NewKey) -> String {
    let seed = (KeyId::generate().unwrap(), Secret::generate(new.kind).unwrap().stored());
    issue(new, seed, &catalogue(), at(NOON)).unwrap_err().to_string()
}

fn changed(key: &KeyRecord, change: KeyChange) -> Result<KeyRecord, IssueError> {
    set(key, change, &catalogue(), at(NOON))
}

#[test]
fn issued_key_has_the_requested_properties() {
    let groups: Vec<Box<str>> = vec!["tennis".into(), "combat".into(), "tennis".into()];
    let (key, secret) = issued(NewKey { groups, expires: Some(at(NOON + 1)), ..new_key(KeyKind::Production) });
    assert_eq!(Secret::hash_of(secret.expose()), Some((KeyKind::Production, key.hash)));
    assert_eq!(&*key.last_four, secret.last_four());
    assert_eq!(*key.groups, ["tennis", "combat"].map(Box::<str>::from), "each once");
    assert_eq!((key.created, key.expires), (at(NOON), Some(at(NOON + 1))));
    assert_eq!((key.revoked, key.last_used, key.retired.len()), (None, None, 0));
    assert_eq!(key.approved_by.as_deref(), Some("the test"));
    assert_ne!(issued(new_key(KeyKind::Sandbox)).0.id, key.id);
}

#[test]
fn name_must_be_short_and_printable() {
    let named = |name: &str| NewKey { name: name.into(), ..new_key(KeyKind::Sandbox) };
    for name in ["", "   ", "a\nb", "\u{1b}[2J", &"é".repeat(101)] {
        assert!(refused(named(name)).contains("1 to 100 characters"), "{name:?}");
    }
    assert_eq!(issued(named(&"é".repeat(100))).0.name.chars().count(), 100);
}

#[test]
fn production_needs_approval() {
    let unapproved = NewKey { approved_by: None, ..new_key(KeyKind::Production) };
    assert_eq!(refused(unapproved), "a production key needs approval: say who approved it");
    let blank = NewKey { approved_by: Some(" ".into()), ..new_key(KeyKind::Production) };
    assert!(refused(blank).contains("approver"));
}

#[test]
fn groups_are_known_and_for_production_only() {
    let grouped = |kind, group: &str| NewKey { groups: vec![group.into()], ..new_key(kind) };
    assert!(refused(grouped(KeyKind::Sandbox, "combat")).contains("use a production key"));
    let unknown = refused(grouped(KeyKind::Production, "curling"));
    assert_eq!(unknown, "there is no group \"curling\": choose from combat, tennis");
}

#[test]
fn limits_must_be_positive_and_countable() {
    let limited = |burst_per_minute, per_day, per_month| NewKey {
        limits: Limits { burst_per_minute, per_day, per_month, streams: 10 },
        ..new_key(KeyKind::Sandbox)
    };
    for (burst, day, month) in [(0, Some(1), None), (1, Some(0), None), (1, Some(1), Some(0))] {
        assert!(refused(limited(burst, day, month)).contains("1 or more"));
    }
    assert!(refused(limited(1, None, None)).contains("cannot both"));
    assert!(refused(limited(u32::MAX, Some(1), None)).contains("lower burst"));
    assert!(refused(limited(1, Some(u64::MAX), None)).contains("lower limit"));
    issued(limited(BURST_MAX, Some(QUOTA_MAX), Some(1)));
    issued(limited(1, None, Some(1)));
}

#[test]
fn past_expiry_is_rejected() {
    let past = NewKey { expires: Some(at(NOON)), ..new_key(KeyKind::Sandbox) };
    assert_eq!(refused(past), "2026-11-14T12:00:00Z is not in the future: give a later expiry, or none");
}

#[test]
fn rotation_changes_only_the_secret() {
    let (key, first) = issued(new_key(KeyKind::Production));
    let (rotated, second) = rotate(&key, 3600, at(NOON + 7)).unwrap();
    assert_eq!(*rotated.retired, [Retired { hash: first.hash(), until: at(NOON + 3607) }]);
    assert_eq!((rotated.hash, &*rotated.last_four), (second.hash(), second.last_four()));
    assert_eq!(rotated.replaced_last_four, key.last_four);
    let (hash, last_four) = (key.hash, key.last_four.clone());
    let (retired, replaced_last_four) = Default::default();
    let undone = KeyRecord { hash, last_four, retired, replaced_last_four, ..rotated };
    assert_eq!(undone, key);
}

#[test]
fn newest_retired_secrets_are_kept_and_those_in_grace_first() {
    let (mut key, first) = issued(new_key(KeyKind::Sandbox));
    (key, _) = rotate(&key, 1000, at(NOON)).unwrap();
    for second in 1..=20 {
        (key, _) = rotate(&key, 0, at(NOON + second)).unwrap();
    }
    assert_eq!(key.retired.len(), RETIRED_MAX);
    assert_eq!(key.retired[0].hash, first.hash(), "the oldest, but still in its grace period");
    let until: Vec<_> = key.retired[1..].iter().map(|retired| retired.until.unix() - NOON).collect();
    assert_eq!(until, [14, 15, 16, 17, 18, 19, 20]);
    for second in 21..=40 {
        (key, _) = rotate(&key, 5000, at(NOON + second)).unwrap();
    }
    assert_eq!(key.retired.len(), RETIRED_MAX, "bounded even when all are in their grace period");
    assert_eq!(key.retired[7].until, at(NOON + 5040));
}

fn self_service() -> (KeyRecord, Secret) {
    issued(NewKey { self_service: true, ..new_key(KeyKind::Sandbox) })
}

fn ticket(secret: &Secret) -> KeyTicket {
    let (queue, _requests) = crate::keys::LeaseQueue::open();
    let keyring = crate::keys::Keyring::new(std::sync::Arc::new(catalogue()), [], queue);
    keyring.load().ticket(secret.expose()).unwrap()
}

#[test]
fn holder_rotates_a_key_once_a_day_with_its_present_secret() {
    let (key, first) = self_service();
    let (rotated, second) = rotate_itself(&key, ticket(&first), 86_400, at(NOON)).unwrap();
    assert_eq!(rotated.self_rotated, Some(at(NOON)));
    assert_eq!(*rotated.retired, [Retired { hash: first.hash(), until: at(NOON + 86_400) }]);
    let again = |secret: &Secret, second| rotate_itself(&rotated, ticket(secret), 86_400, at(NOON + second));
    assert!(matches!(again(&first, 1), Err(IssueError::OldSecret)), "an old secret takes no key over");
    assert!(matches!(again(&second, 0), Err(IssueError::RotatedLately { retry_after_s: 86_400 })));
    assert!(matches!(again(&second, 86_399), Err(IssueError::RotatedLately { retry_after_s: 1 })));
    assert!(again(&second, 86_400).is_ok());
    let set_back = rotate_itself(&rotated, ticket(&second), 86_400, at(NOON - 1));
    assert!(set_back.is_ok(), "a clock that was ahead does not lock a key");
    let (plain, secret) = issued(new_key(KeyKind::Production));
    assert!(matches!(rotate_itself(&plain, ticket(&secret), 0, at(NOON)), Err(IssueError::NotSelfService)));
    let other = ticket(&Secret::generate(KeyKind::Sandbox).unwrap());
    assert!(matches!(rotate_itself(&key, other, 0, at(NOON)), Err(IssueError::OldSecret)));
}

#[test]
fn undone_rotation_leaves_the_old_secret_without_an_end_and_the_new_one_ended() {
    let (key, first) = self_service();
    let (rotated, second) = rotate_itself(&key, ticket(&first), 86_400, at(NOON)).unwrap();
    let undone = undo_rotation(&rotated, at(NOON + 60)).unwrap();
    assert_eq!((undone.hash, &*undone.last_four), (first.hash(), first.last_four()));
    assert_eq!(*undone.retired, [Retired { hash: second.hash(), until: at(NOON + 60) }]);
    assert_eq!(undone.self_rotated, Some(at(NOON)), "it is not a way to rotate more often");
    let error = undo_rotation(&undone, at(NOON + 60)).unwrap_err();
    assert!(matches!(error, IssueError::NothingToUndo(_)), "{error}");
}

#[test]
fn only_the_last_rotation_in_its_grace_period_can_be_undone() {
    let (key, first) = issued(new_key(KeyKind::Sandbox));
    assert!(matches!(undo_rotation(&key, at(NOON)), Err(IssueError::NothingToUndo(_))), "it was never rotated");
    let (rotated, _) = rotate(&key, 60, at(NOON)).unwrap();
    assert!(undo_rotation(&rotated, at(NOON + 59)).is_ok());
    assert!(matches!(undo_rotation(&rotated, at(NOON + 60)), Err(IssueError::NothingToUndo(_))));
    let (again, _) = rotate(&rotated, 0, at(NOON + 1)).unwrap();
    assert_eq!(again.retired[0].hash, first.hash());
    let error = undo_rotation(&again, at(NOON + 2)).unwrap_err();
    assert!(matches!(error, IssueError::NothingToUndo(_)), "the last one left no grace period: {error}");
    assert!(matches!(undo_rotation(&revoke(&rotated, at(NOON)), at(NOON)), Err(IssueError::Revoked(_))));
}

#[test]
fn expired_or_revoked_key_cannot_be_rotated() {
    let (key, _) = issued(NewKey { expires: Some(at(NOON + 10)), ..new_key(KeyKind::Sandbox) });
    let error = rotate(&key, 0, at(NOON + 10)).unwrap_err().to_string();
    assert_eq!(
        error,
        format!("{} has expired, and a new secret would be rejected too: set a later expiry first", key.id)
    );
    let error = rotate(&revoke(&key, at(NOON)), 0, at(NOON)).unwrap_err().to_string();
    assert_eq!(error, format!("{} is revoked, which cannot be undone: issue a new key instead", key.id));
}

#[test]
fn revoking_again_keeps_the_first_revocation_time() {
    let (key, _) = issued(new_key(KeyKind::Sandbox));
    let revoked = revoke(&key, at(NOON + 1));
    assert_eq!(revoked.revoked, Some(at(NOON + 1)));
    assert_eq!(revoke(&revoked, at(NOON + 2)), revoked);
}

#[test]
fn only_the_given_fields_change() {
    let (key, _) = issued(NewKey { groups: vec!["combat".into()], ..new_key(KeyKind::Production) });
    assert_eq!(changed(&key, KeyChange::default()).unwrap(), key);
    let change = KeyChange {
        name: Some("renamed".into()),
        groups: Some(Vec::new()),
        burst_per_minute: Some(7),
        per_day: FieldEdit::Remove,
        per_month: FieldEdit::To(9),
        streams: Some(10),
        expires: FieldEdit::To(at(NOON + 1)),
        self_service: Some(true),
        reset_usage: false,
    };
    let after = changed(&key, change).unwrap();
    assert_eq!((&*after.name, after.groups.len(), after.expires), ("renamed", 0, Some(at(NOON + 1))));
    assert!(after.self_service && !key.self_service);
    assert_eq!(after.limits, Limits { burst_per_minute: 7, per_day: None, per_month: Some(9), streams: 10 });
    let unexpiring = changed(&after, KeyChange { expires: FieldEdit::Remove, ..KeyChange::default() }).unwrap();
    assert_eq!(unexpiring, KeyRecord { expires: None, ..after });
}

#[test]
fn change_must_satisfy_the_rules_of_issuing() {
    let (key, _) = issued(new_key(KeyKind::Sandbox));
    let refused = |change| changed(&key, change).unwrap_err();
    assert!(matches!(refused(KeyChange { per_day: FieldEdit::Remove, ..KeyChange::default() }), IssueError::NoQuota));
    assert!(matches!(refused(KeyChange { name: Some("".into()), ..KeyChange::default() }), IssueError::BadName));
    assert!(matches!(
        refused(KeyChange { groups: Some(vec!["combat".into()]), ..KeyChange::default() }),
        IssueError::GroupsOfSandbox
    ));
    assert!(matches!(
        refused(KeyChange { expires: FieldEdit::To(at(NOON)), ..KeyChange::default() }),
        IssueError::PastExpiry(_)
    ));
}

#[test]
fn key_whose_group_no_longer_exists_can_be_changed() {
    let (key, _) = issued(new_key(KeyKind::Production));
    let orphan = KeyRecord { groups: ["curling".into()].into(), ..key };
    let renamed = changed(&orphan, KeyChange { name: Some("renamed".into()), ..KeyChange::default() }).unwrap();
    assert_eq!(renamed.groups, orphan.groups);
}
