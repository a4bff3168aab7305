//! What a key costs each request, with ten thousand keys in force: finding it, refusing it, charging it; and what a
//! change of one key costs the writer.
#![allow(clippy::unwrap_used, reason = "a bench that cannot set itself up has nothing to measure")]

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use oddsbox::clock::Moment;
use oddsbox::keys::issue::issue;
use oddsbox::keys::{
    BURST_MAX, Cost, KeyId, KeyKind, KeyRecord, Keyring, LeaseQueue, Limits, Meter, NewKey, Refusal, Secret, Usage,
};
use oddsbox::model::{Catalogue, Sport, SportKind, Timestamp};

const KEYS: usize = 10_000;
const NOON: Moment = Moment::unset(1_794_657_600_000, 0);

fn catalogue() -> Catalogue {
    let mma = Sport {
        key: "mma".into(),
        title: "MMA".into(),
        group: "combat".into(),
        kind: SportKind::Fight,
        hides_fields: false,
        v4: None,
    };
    Catalogue::new(vec![mma], Vec::new()).unwrap()
}

fn new_key() -> (KeyRecord, Secret) {
    let new = NewKey {
        kind: KeyKind::Sandbox,
        name: "bench".into(),
        groups: Vec::new(),
        limits: Limits { burst_per_minute: BURST_MAX, per_day: Some(1 << 40), per_month: Some(1 << 45), streams: 10 },
        expires: None,
        approved_by: None,
        self_service: false,
    };
    let secret = Secret::generate(new.kind).unwrap();
    let seed = (KeyId::generate().unwrap(), secret.stored());
    (issue(new, seed, &catalogue(), Timestamp::from_unix_ms(NOON.unix_ms)).unwrap(), secret)
}

/// Ten thousand keys and the texts of a hundred of them.
fn keyring() -> (Keyring, Vec<String>) {
    let issued: Vec<_> = (0..KEYS).map(|_| new_key()).collect();
    let texts = issued.iter().step_by(KEYS / 100).map(|(_, secret)| secret.expose().to_owned()).collect();
    let (queue, _) = LeaseQueue::open();
    let loaded = issued.into_iter().map(|(record, _)| (record, Usage::default()));
    (Keyring::new(Arc::new(catalogue()), loaded, queue), texts)
}

/// Charges one in full and grants a lease where one is needed, once in some thousand times.
fn charge(meter: &Meter, now: Moment) -> u64 {
    loop {
        match meter.charge(Cost::Full, now) {
            Ok(charge) => return charge.standing().day.used,
            Err(Refusal::NeedsLease) => meter.grant(meter.plan_lease(now).unwrap()),
            Err(refusal) => panic!("{refusal}"),
        }
    }
}

fn authenticate(criterion: &mut Criterion) {
    let (keyring, texts) = keyring();
    let mut next = texts.iter().cycle();
    // Each request comes a millisecond after the one before, so that windows open and close as they do in service.
    let mut now = NOON;
    let mut tick = move || {
        now.mono_ms += 1;
        now
    };
    let mut group = criterion.benchmark_group("authenticate");
    group.bench_function("valid", |bencher| {
        bencher.iter(|| keyring.load().authenticate(black_box(next.next().map(String::as_str)), NOON).is_ok());
    });
    let stranger = Secret::generate(KeyKind::Sandbox).unwrap();
    group.bench_function("unknown", |bencher| {
        bencher.iter(|| keyring.load().authenticate(black_box(Some(stranger.expose())), NOON).is_ok());
    });
    let mistyped = stranger.expose().replace("ob_", "ob-");
    group.bench_function("mistyped", |bencher| {
        bencher.iter(|| keyring.load().authenticate(black_box(Some(&mistyped)), NOON).is_ok());
    });
    let meter = keyring.list();
    let meter = meter[0].meter();
    group.bench_function("charge", |bencher| bencher.iter(|| charge(meter, tick())));
    group.bench_function("valid_and_charge", |bencher| {
        bencher.iter(|| {
            let keys = keyring.load();
            let grant = keys.authenticate(black_box(next.next().map(String::as_str)), NOON).unwrap();
            charge(grant.meter(), tick())
        });
    });
    group.bench_function("put", |bencher| {
        let record = keyring.list()[0].record().clone();
        bencher.iter(|| keyring.put(record.clone()));
    });
    group.finish();
}

criterion_group!(benches, authenticate);
criterion_main!(benches);
