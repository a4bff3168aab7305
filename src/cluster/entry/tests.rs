//! What is read back is what was written, for every operation.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::config::catalogue;
use crate::ingest::wire;
use crate::keys::{FieldEdit, KeyChange, KeyId, KeyKind, KeyTicket, Limits, NewKey, SecretHash, StoredSecret};
use crate::model::{
    Bookmaker, EventId, FeedBudget, Maintenance, News, Region, Regions, ReportedCredits, SportId, Timestamp, World,
};
use crate::writer::operation::{
    EndPoll, EndRound, Ingest, IngestWhole, IssueKey, IssueToken, MarkSimulated, PutFeedBudget, RecordUse,
    RetainPolled, RevokeKey, RevokeToken, RotateKey, RotateOwnKey, RotateToken, SetKey, SetMaintenance, UndoRotation,
    WriteAudit,
};
use crate::writer::{DueSport, FeedCharge, Poll, PollPart, PollScope, Publication, Sender, Sweep, Whole};

const EVENT: &str = r#"{"type":"event","sport":"tennis","id":"e1","competition":"Open","commence_time":"2026-11-20T10:00:00Z","home":"A","away":"B","status":"scheduled"}"#;
const ODDS: &str = r#"{"type":"odds","sport":"tennis","event":"e1","bookmaker":"bet365","market":"moneyline","last_update":"2026-11-14T12:00:00Z","format":"decimal","outcomes":[{"name":"A","price":1.5,"point":null},{"name":"B","price":2.7,"point":null}]}"#;

fn at(seconds: u32) -> Timestamp {
    Timestamp::from_unix(1_794_657_600 + seconds)
}

fn secret(byte: u8) -> StoredSecret {
    StoredSecret { hash: SecretHash([byte; 32]), last_four: "wxyz".into() }
}

fn news() -> Vec<News> {
    let catalogue = catalogue::builtin();
    let read = |line: &str| wire::read(line.as_bytes(), &catalogue).unwrap().news;
    let listed = Bookmaker { key: "new_book".into(), title: "New Book".into(), regions: Regions::default() };
    let declared = Bookmaker { regions: [Region::Us, Region::Eu].into_iter().collect(), ..listed.clone() };
    let read_at = News::AsOf(at(5), Box::new(read(EVENT)));
    vec![
        News::Listed(listed),
        News::Listed(declared.clone()),
        News::Bookmaker(declared),
        read(EVENT),
        read(ODDS),
        read_at,
    ]
}

fn budget() -> FeedBudget {
    let reported = Some(ReportedCredits { left: 77, at: at(1) });
    FeedBudget { day: 20_771, spent: 12, reported, polled: Some(at(2)), account: 3, scope: 4 }
}

fn scope() -> PollScope {
    PollScope { world: World::Live, feed: "feed".into(), key: "tennis_atp".into() }
}

fn key_operations() -> Vec<SharedOperation> {
    let who: Box<str> = "ada".into();
    let new = NewKey {
        kind: KeyKind::Production,
        name: "a \"name\"\n".into(),
        groups: vec!["tennis".into()],
        limits: Limits { burst_per_minute: 1, per_day: Some(u64::MAX), per_month: None, streams: 3 },
        expires: Some(at(9)),
        approved_by: Some("bob".into()),
        self_service: true,
    };
    let change = KeyChange {
        name: Some("other".into()),
        groups: Some(Vec::new()),
        burst_per_minute: Some(5),
        per_day: FieldEdit::Remove,
        per_month: FieldEdit::To(7),
        streams: None,
        expires: FieldEdit::To(at(3)),
        self_service: Some(false),
        reset_usage: true,
    };
    let id: Box<str> = "key_abcdefghijkl".into();
    vec![
        IssueKey { new, id: KeyId::new(&id).unwrap(), secret: secret(1), who: who.clone() }.into(),
        RotateKey { id: id.clone(), secret: secret(2), grace_s: 60, who: who.clone() }.into(),
        RotateOwnKey {
            id: id.clone(),
            presented: KeyTicket::of(SecretHash([9; 32])),
            secret: secret(0xff),
            who: who.clone(),
        }
        .into(),
        UndoRotation { id: id.clone(), who: who.clone() }.into(),
        RevokeKey { id: id.clone(), who: who.clone() }.into(),
        SetKey { id: id.clone(), change, who: who.clone() }.into(),
        RecordUse { uses: vec![(KeyId::new(&id).unwrap(), 12, at(8))] }.into(),
        SetKey { id, change: KeyChange::default(), who: who.clone() }.into(),
        IssueToken { name: "scraper".into(), world: World::Sandbox, token: secret(3), who: who.clone() }.into(),
        RotateToken { name: "scraper".into(), token: secret(4), grace_s: 0, who: who.clone() }.into(),
        RevokeToken { name: "scraper".into(), who }.into(),
    ]
}

fn other_operations(sport: SportId) -> Vec<SharedOperation> {
    let (world, who): (World, Box<str>) = (World::Live, "ada".into());
    let charge = FeedCharge { feed: "feed".into(), budget: budget() };
    let sender = Sender { name: "scraper".into(), removes_any: true };
    let part = PollPart { event: EventId::new("e1").unwrap(), markets: vec!["moneyline".into()] };
    let poll = Poll {
        scope: scope(),
        part: Some(part),
        sport,
        news: news(),
        at: at(4),
        latency_ms: 5,
        stale_after_s: 6,
        has_more: true,
        budget: Some(budget()),
    };
    let due = |is_forced: bool| DueSport { world, sport, has_prices: !is_forced, is_forced };
    vec![
        Ingest { world, news: news(), is_end: true, charge: Some(charge.clone()), sender: Some(sender.clone()) }.into(),
        Ingest { world, news: Vec::new(), is_end: false, charge: None, sender: None }.into(),
        IngestWhole {
            world,
            news: NewsReader(Box::new(news().into_iter().map(Ok))),
            whole: Whole::Taken,
            sender: Some(sender),
        }
        .into(),
        Poll { part: None, budget: None, ..poll.clone() }.into(),
        poll.into(),
        EndRound { world, sport }.into(),
        RetainPolled { scope: scope(), events: vec![EventId::new("e\"1").unwrap()], markets: vec!["totals".into()] }
            .into(),
        EndPoll { world, scope: "feed/tennis_atp".into() }.into(),
        PutFeedBudget(charge).into(),
        SetMaintenance { until: Some(Maintenance { since: at(0), until: Some(at(1)) }), who: who.clone() }.into(),
        SetMaintenance { until: None, who: who.clone() }.into(),
        MarkSimulated { who: who.clone() }.into(),
        WriteAudit { who, action: "start".into(), subject: "service".into(), detail: "é\n".into() }.into(),
        Publication { sports: vec![due(true), due(false)], at: at(30), is_tick: true }.into(),
        Sweep::Events(world).into(),
        Sweep::Sources(World::Sandbox).into(),
    ]
}

/// All fields of an operation as text, with its news and its hashes.
fn described(operation: SharedOperation) -> String {
    match operation {
        SharedOperation::IngestWhole(IngestWhole { world, news, whole, sender }) => {
            let news: Vec<News> = news.0.map(Result::unwrap).collect();
            format!("{world} {whole:?} {sender:?} {news:?}")
        }
        SharedOperation::IssueKey(IssueKey { new, id, secret, who }) => {
            format!("{new:?} {id} {:?} {} {who}", secret.hash.0, secret.last_four)
        }
        SharedOperation::RotateOwnKey(RotateOwnKey { id, presented, secret, who }) => {
            format!("{id} {:?} {:?} {who}", presented.hash().0, secret.hash.0)
        }
        other => format!("{other:?}"),
    }
}

#[test]
fn every_operation_is_read_back_as_it_was_written() {
    let catalogue = Arc::new(catalogue::builtin());
    let sport = catalogue.find("tennis").unwrap();
    let all = || key_operations().into_iter().chain(other_operations(sport));
    let mut kinds = BTreeSet::new();
    for (operation, same) in all().zip(all()) {
        let entry = encode(operation, &catalogue).unwrap();
        let read = decode(&entry, &catalogue).unwrap();
        kinds.insert(format!("{:?}", std::mem::discriminant(&read)));
        assert_eq!(described(read), described(same));
    }
    assert_eq!(kinds.len(), 22, "of every kind: {kinds:?}");
}

#[test]
fn long_entries_are_compressed_and_too_long_ones_refused() {
    let catalogue = Arc::new(catalogue::builtin());
    let ingest = |times: usize| {
        let news = news().into_iter().cycle().take(times).collect();
        SharedOperation::from(Ingest { world: World::Live, news, is_end: true, charge: None, sender: None })
    };
    let (short, long) = (encode(ingest(0), &catalogue).unwrap(), encode(ingest(1000), &catalogue).unwrap());
    assert_eq!((short.first(), long.first()), (Some(&b'{'), Some(&ZSTD)));
    assert!(long.len() < 5_000, "{}", long.len());
    let SharedOperation::Ingest(read) = decode(&long, &catalogue).unwrap() else { panic!() };
    assert_eq!(read.news.len(), 1000);
}

#[test]
fn what_is_no_entry_is_refused_and_never_guessed_at() {
    let catalogue = Arc::new(catalogue::builtin());
    for wrong in [
        "",
        "{}",
        r#"{"key":{"op":"explode"}}"#,
        r#"{"key":{"op":"revoke","id":"key_abcdefghijkl","who":"ada","and":1}}"#,
        r#"{"service":{"op":"sweep_events","world":"moon"}}"#,
        r#"{"news":{"op":"end_round","world":"live","sport":"quidditch"}}"#,
        "{\"news\":{\"op\":\"ingest\",\"world\":\"live\",\"is_end\":true,\"charge\":null,\"sender\":null}}\nnot a line\n",
        "\u{28}not compressed",
    ] {
        let refused = decode(wrong.as_bytes(), &catalogue);
        assert!(matches!(refused, Err(EntryError::Unreadable(_))), "{wrong}: {refused:?}");
    }
}

/// Whoever has the password of the engine can write what no node would: it is refused within bounds.
#[test]
fn entry_that_is_too_long_before_or_after_it_is_unpacked_is_refused() {
    let catalogue = Arc::new(catalogue::builtin());
    let long = decode(&vec![b' '; ENTRY_BYTES_MAX + 1], &catalogue).unwrap_err();
    assert!(long.to_string().contains("longer than any"), "{long}");
    let packed = zstd::encode_all(&*vec![b' '; 100_000], LEVEL).unwrap();
    assert!(packed.len() < 1000, "{}", packed.len());
    assert_eq!(decompress(&packed, 100_000).unwrap().len(), 100_000);
    assert_eq!(decompress(&packed, 99_999).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
}

proptest! {
    /// Entries with bytes replaced, removed or cut off.
    #[test]
    fn arbitrary_entries_are_read_or_refused(
        which in any::<prop::sample::Index>(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        length in any::<prop::sample::Index>(),
        any in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let catalogue = Arc::new(catalogue::builtin());
        let all = key_operations().into_iter().chain(other_operations(catalogue.find("tennis").unwrap()));
        let mut all: Vec<SharedOperation> = all.collect();
        let mut entry = encode(all.swap_remove(which.index(all.len())), &catalogue).unwrap();
        let shortest = entry.len() / 2;
        for (at, byte) in edits {
            let at = at.index(entry.len());
            entry[at] = byte;
        }
        entry.truncate(shortest + length.index(entry.len()));
        for entry in [entry, any] {
            if let Ok(SharedOperation::IngestWhole(whole)) = decode(&entry, &catalogue) {
                // They are read one after the other, and what is no line is reported.
                whole.news.0.for_each(drop);
            }
        }
    }
}
