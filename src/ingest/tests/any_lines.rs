//! Any input as a stream of lines: nothing panics, every line is counted once, and what is stored afterwards is what the
//! accepted lines alone would have left.

use std::collections::HashSet;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::ingest::wire::{self, LINE_BYTES_MAX};
use crate::ingest::{Feed, IngestOptions, IngestSummary, LineStream};
use crate::model::{Catalogue, World};

const TIME: &str = "2026-11-14T11:5";

/// One line, without its end; good, bad, or good but unfit for what is stored.
fn line() -> impl Strategy<Value = Vec<u8>> {
    let text = |line: String| line.into_bytes();
    let event = (0..4u8, 0..3usize).prop_map(move |(id, status)| {
        let status = ["scheduled", "live", "cancelled"][status];
        text(format!(r#"{{"type":"event","sport":"mma","id":"e{id}","competition":"c","commence_time":"2026-11-15T00:00:00Z","home":"A","away":"B","status":"{status}"}}"#))
    });
    let price = prop::sample::select(vec!["1.91", "2.5", "1.0", "\"x\"", "null", "-3", "1e400"]);
    let odds = (0..5u8, 0..3usize, 0..10u8, vec(price, 0..4)).prop_map(move |(id, book, second, prices)| {
        let book = ["acme", "betmgm", "nobody"][book];
        let outcomes: Vec<String> = prices.iter().map(|price| format!(r#"{{"name":"A","price":{price}}}"#)).collect();
        text(format!(r#"{{"type":"odds","sport":"mma","event":"e{id}","bookmaker":"{book}","market":"moneyline","last_update":"{TIME}{second}:00Z","format":"decimal","outcomes":[{}]}}"#, outcomes.join(",")))
    });
    let score = (0..5u8, 0..3usize, 0..10u8).prop_map(move |(id, status, second)| {
        let status = ["scheduled", "live", "final"][status];
        text(format!(r#"{{"type":"score","sport":"mma","event":"e{id}","status":"{status}","home_score":0,"away_score":0,"updated_at":"{TIME}{second}:00Z"}}"#))
    });
    let remove = (0..5u8).prop_map(move |id| text(format!(r#"{{"type":"remove","sport":"mma","event":"e{id}"}}"#)));
    let book = Just(br#"{"type":"bookmaker","key":"acme","title":"Acme","regions":["us"]}"#.to_vec());
    let read = (0..10u8).prop_map(move |second| {
        text(format!(
            r#"{{"type":"read","sport":"mma","bookmaker":"betmgm","at":"{TIME}{second}:00Z","latency_ms":7}}"#
        ))
    });
    let good = prop_oneof![4 => event, 6 => odds, 2 => score, 1 => remove, 1 => book, 1 => read].boxed();
    let cut = (good.clone(), any::<prop::sample::Index>()).prop_map(|(mut line, at)| {
        line.truncate(at.index(line.len()));
        line
    });
    let noise = vec(any::<u8>(), 0..80);
    let huge = (0..3usize).prop_map(|more| vec![b'{'; LINE_BYTES_MAX - 1 + more]);
    let bad = prop_oneof![8 => cut, 8 => noise, 1 => huge].prop_map(|mut line: Vec<u8>| {
        line.retain(|byte| *byte != b'\n');
        line
    });
    prop_oneof![8 => good, 3 => bad]
}

/// Sends a text in pieces that end at the given places.
async fn feed(context: &IngestContext, strict: bool, text: &[u8], cuts: &[prop::sample::Index]) -> IngestSummary {
    let options = IngestOptions { world: World::Live, strict };
    let mut lines = LineStream::open(options, Feed::push(), context).await.unwrap();
    let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).chain([text.len()]).collect();
    ends.sort_unstable();
    let mut start = 0;
    for end in ends {
        lines.push(&text[start..end]).await.unwrap();
        lines.pause().await.unwrap();
        start = end;
    }
    lines.finish().await.unwrap()
}

/// The lines that were accepted, found out by sending each on its own.
async fn accepted_alone(context: &IngestContext, lines: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut accepted = Vec::new();
    for line in lines {
        if feed(context, false, line, &[]).await.accepted == 1 {
            accepted.push(line.clone());
        }
    }
    accepted
}

fn blank(line: &[u8]) -> bool {
    line.trim_ascii().is_empty()
}

/// The bytes of a readable line that says the same as this one does without its bad outcomes.
fn cleaned(line: &[u8], catalogue: &Catalogue) -> Vec<u8> {
    let mut out = Vec::new();
    wire::write(&wire::read(line, catalogue).unwrap().news, catalogue, &mut out);
    out
}

async fn check(lines: Vec<Vec<u8>>, cuts: Vec<prop::sample::Index>, has_end: bool) {
    let mut text = lines.join(&b'\n');
    if has_end && !text.is_empty() {
        text.push(b'\n');
    }
    let (whole, alone, strict) = (Fixture::new(), Fixture::new(), Fixture::new());
    let context = &whole.context;
    let report = feed(context, false, &text, &cuts).await;
    let count = lines.iter().filter(|line| !blank(line)).count() as u64;
    assert_eq!(report.lines, count);
    assert_eq!(report.accepted + report.rejected, count);
    assert_eq!(report.changed + report.unchanged, report.accepted);
    assert_eq!(report.rejected_by_reason.values().sum::<u64>(), report.rejected);
    assert_eq!(report.dropped_outcomes_by_reason.values().sum::<u64>(), report.dropped_outcomes);
    let causes: HashSet<_> = report.examples.iter().map(|example| (&example.reason, &example.detail)).collect();
    assert_eq!(causes.len(), report.examples.len(), "each cause is shown once: {report:?}");
    assert!(report.examples.len() <= 10 && report.examples.is_empty() == (report.rejected == 0), "{report:?}");
    let account = context.ledger.accounts().remove(0).1;
    assert_eq!((account.accepted, account.rejected.values().sum::<u64>()), (report.accepted, report.rejected));

    // The same world as from the accepted lines alone, whole, in one piece, all or nothing.
    let accepted = accepted_alone(&alone.context, &lines).await;
    assert_eq!(accepted.len() as u64, report.accepted);
    assert!(alone.export().await == whole.export().await);
    let rejected = report.rejected > 0;
    let empty = strict.export().await;
    let strict_report = feed(&strict.context, true, &text, &cuts).await;
    assert_eq!((strict_report.written, strict_report.rejected), (!rejected, report.rejected));
    // What was written once is late the second time, so the clean lines are sent only where nothing was.
    if rejected {
        assert!(strict.export().await == empty, "nothing of it was written");
        let catalogue = Arc::clone(context.boards.catalogue());
        let clean: Vec<u8> = accepted.iter().flat_map(|line| cleaned(line, &catalogue)).collect();
        let clean = feed(&strict.context, true, &clean, &[]).await;
        assert!(clean.written && clean.rejected == 0);
    }
    assert!(strict.export().await == whole.export().await);
    for fixture in [whole, alone, strict] {
        fixture.end().await;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn any_lines_are_taken_or_counted_and_nothing_is_half_applied(
        lines in vec(line(), 0..40),
        cuts in vec(any::<prop::sample::Index>(), 0..12),
        has_end in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(check(lines, cuts, has_end));
    }
}
