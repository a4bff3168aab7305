//! What an account keeps of the messages that were rejected.

use super::*;
use crate::ingest::wire::LINE_BYTES_MAX;
use crate::ingest::{Account, Feed, IngestOptions, LineStream};
use crate::model::{Reason, World};

/// The account after an input.
async fn account_after(text: &str, strict: bool) -> Account {
    let fixture = Fixture::new();
    let options = IngestOptions { world: World::Live, strict };
    let mut lines = LineStream::open(options, Feed::push(), &fixture.context).await.unwrap();
    lines.push(text.as_bytes()).await.unwrap();
    lines.finish().await.unwrap();
    drop(lines);
    let account = fixture.context.ledger.accounts().remove(0).1;
    fixture.end().await;
    account
}

/// The line number and the text of each message that was kept of a reason.
fn kept(account: &Account, reason: Reason) -> Vec<(u64, Option<&str>)> {
    let messages = account.rejected_messages.iter().filter(|(of, _)| *of == reason).flat_map(|(_, messages)| messages);
    messages.map(|message| (message.line, message.text.as_deref())).collect()
}

#[tokio::test]
async fn last_rejected_lines_of_each_reason_are_kept_with_their_text() {
    let unknown: Vec<String> = (1..=5).map(|number| odds(&format!("gone{number}"), "1.9", 1)).collect();
    let long = "x".repeat(LINE_BYTES_MAX + 1);
    let text = format!("{EVENT}\n{BOOK}\n\nnonsense\n{}\n{long}\n{}\n", unknown.join("\n"), odds("e1", "1.9", 1));
    for strict in [false, true] {
        let account = account_after(&text, strict).await;
        assert_eq!(account.rejected[&Reason::UnknownEvent], 5);
        let shown = |number: usize| (4 + number as u64, Some(&unknown[number - 1][..]));
        let found = kept(&account, Reason::UnknownEvent);
        for (found, expected) in found.iter().zip([shown(3), shown(4), shown(5)]) {
            assert_eq!(found.0, expected.0, "strict: {strict}");
            let (text, whole) = (found.1.unwrap(), expected.1.unwrap());
            assert!(whole.starts_with(text.trim_end_matches('…')) && text.len() > 200, "{text}");
        }
        assert_eq!(found.len(), 3);
        assert_eq!(kept(&account, Reason::BadJson), [(4, Some("nonsense"))]);
        assert_eq!(kept(&account, Reason::LineTooLong), [(10, None)]);
        assert_eq!(kept(&account, Reason::Late), []);
    }
}
