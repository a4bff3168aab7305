//! What `ingest` prints about an input.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use indicatif::HumanCount;

use crate::cli::output::pairs;
use crate::ingest::IngestSummary;

/// As many examples as are shown of one reason.
const EXAMPLES_OF_REASON_MAX: usize = 3;

/// The words for what is counted, and for what an example refers to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Words {
    pub(super) one: &'static str,
    pub(super) many: &'static str,
    pub(super) example: &'static str,
}

pub(super) fn report(answer: &IngestSummary, words: Words) -> String {
    let became =
        if answer.written { format!("{} changed something", answer.changed) } else { "not written".to_owned() };
    let mut text = pairs(&[
        (words.many, answer.lines.to_string()),
        ("accepted", format!("{} ({became})", answer.accepted)),
        ("rejected", counted(answer.rejected, &answer.rejected_by_reason)),
        ("outcomes dropped", counted(answer.dropped_outcomes, &answer.dropped_outcomes_by_reason)),
    ]);
    for reason in reasons(answer) {
        let examples = answer.examples.iter().filter(|example| example.reason == reason);
        let shown: Vec<_> = examples.take(EXAMPLES_OF_REASON_MAX).collect();
        for example in &shown {
            let _ = writeln!(text, "{} {}: {reason}: {}", words.example, example.line, example.detail);
        }
        let total = answer.rejected_by_reason.get(reason).copied().unwrap_or(0);
        let more = total.saturating_sub(shown.len() as u64);
        if more > 0 {
            let _ = writeln!(text, "… and {} more like it", HumanCount(more));
        }
    }
    text
}

/// The reasons that have an example, in the order of the first one.
fn reasons(answer: &IngestSummary) -> Vec<&str> {
    let mut reasons: Vec<&str> = Vec::new();
    for example in &answer.examples {
        if !reasons.contains(&example.reason.as_str()) {
            reasons.push(&example.reason);
        }
    }
    reasons
}

/// `5 (3 late, 2 unknown_event)`.
fn counted(total: u64, reasons: &BTreeMap<String, u64>) -> String {
    let reasons: Vec<String> = reasons.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    if reasons.is_empty() { total.to_string() } else { format!("{total} ({})", reasons.join(", ")) }
}

/// Says that nothing was accepted: `none of 3 lines was accepted`.
pub(super) fn none_accepted(lines: u64, words: Words) -> String {
    match lines {
        1 => format!("the only {} was rejected", words.one),
        _ => format!("none of {lines} {} was accepted", words.many),
    }
}

/// Says how much of a strict input was rejected: `2 of 3 lines were rejected`.
pub(super) fn some_rejected(rejected: u64, lines: u64, words: Words) -> String {
    match (rejected, lines) {
        (1, 1) => format!("the only {} was rejected", words.one),
        (1, _) => format!("1 of {lines} {} was rejected", words.many),
        _ => format!("{rejected} of {lines} {} were rejected", words.many),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ingest::RejectedLine;
    use crate::model::World;

    const WORDS: Words = Words { one: "line", many: "lines", example: "line" };

    fn summary(rejected: &[(&str, u64)], examples: &[(u64, &str, &str)]) -> IngestSummary {
        let by_reason: BTreeMap<String, u64> =
            rejected.iter().map(|(reason, count)| ((*reason).to_owned(), *count)).collect();
        let example = |(line, reason, detail): &(u64, &str, &str)| RejectedLine {
            line: *line,
            reason: (*reason).to_owned(),
            detail: (*detail).to_owned(),
        };
        IngestSummary {
            world: World::Live,
            strict: false,
            written: true,
            lines: 4000,
            accepted: 10,
            changed: 10,
            unchanged: 0,
            rejected: by_reason.values().sum(),
            rejected_by_reason: by_reason,
            dropped_outcomes: 0,
            dropped_outcomes_by_reason: BTreeMap::new(),
            examples: examples.iter().map(example).collect(),
        }
    }

    #[test]
    fn repeated_rejections_collapse_into_a_count() {
        let examples = [
            (2, "unknown_sport", "\"chess\""),
            (3, "late", "older"),
            (4, "unknown_sport", "\"go\""),
            (5, "unknown_sport", "\"darts\""),
            (6, "unknown_sport", "\"curling\""),
            (7, "bad_json", "not JSON"),
        ];
        let text = report(&summary(&[("unknown_sport", 3217), ("late", 2), ("bad_json", 1)], &examples), WORDS);
        let (_, shown) = text.split_once("outcomes dropped  0\n").unwrap();
        assert_eq!(
            shown,
            "line 2: unknown_sport: \"chess\"\nline 4: unknown_sport: \"go\"\nline 5: unknown_sport: \"darts\"\n\
             … and 3,214 more like it\nline 3: late: older\n… and 1 more like it\nline 7: bad_json: not JSON\n"
        );
    }

    #[test]
    fn counts_agree_with_their_verbs() {
        assert_eq!(none_accepted(1, WORDS), "the only line was rejected");
        assert_eq!(none_accepted(2, WORDS), "none of 2 lines was accepted");
        assert_eq!(some_rejected(1, 1, WORDS), "the only line was rejected");
        assert_eq!(some_rejected(1, 3, WORDS), "1 of 3 lines was rejected");
        assert_eq!(some_rejected(2, 3, WORDS), "2 of 3 lines were rejected");
    }
}
