//! The last messages that a feed had rejected, a few of each reason, so that an operator sees what is wrong with them.
//!
//! Whatever a feed sends, this stays small: so many of each reason, and of each text so many characters. Control
//! characters are escaped, so that a text can be shown anywhere.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;

use crate::model::{Reason, Timestamp};

/// As many as are kept of each reason.
pub(super) const KEPT_MAX: usize = 3;
/// As many characters as are kept of a line and of a detail.
const TEXT_MAX: usize = 240;
/// As many bytes of a line as can matter.
pub(super) const LINE_PREFIX_BYTES: usize = 4 * TEXT_MAX;

/// A message that was rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedMessage {
    pub at: Timestamp,
    /// The number of its line in the input or, in a payload, of its event.
    pub line: u64,
    /// What was wrong with it.
    pub detail: Box<str>,
    /// The beginning of the line; `None` for a message of a payload, which has no line of its own.
    pub text: Option<Box<str>>,
}

impl RejectedMessage {
    pub(super) fn new(at: Timestamp, line: u64, detail: &str, text: Option<&[u8]>) -> Self {
        let text = text.map(|text| shortened(text.trim_ascii()));
        RejectedMessage { at, line, detail: shortened(detail.as_bytes()), text }
    }
}

/// The last rejected messages of each reason, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RejectedMessages(BTreeMap<Reason, VecDeque<RejectedMessage>>);

impl RejectedMessages {
    pub(super) fn push(&mut self, reason: Reason, message: RejectedMessage) {
        let kept = self.0.entry(reason).or_default();
        if kept.len() == KEPT_MAX {
            kept.pop_front();
        }
        kept.push_back(message);
    }

    /// Adds those that came after these.
    pub(super) fn append(&mut self, newer: RejectedMessages) {
        for (reason, messages) in newer.0 {
            for message in messages {
                self.push(reason, message);
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = (Reason, &VecDeque<RejectedMessage>)> {
        self.0.iter().map(|(reason, messages)| (*reason, messages))
    }
}

/// The beginning of a text, with an ellipsis if there is more. What could change how other text is shown is escaped.
fn shortened(text: &[u8]) -> Box<str> {
    let prefix = &text[..text.len().min(LINE_PREFIX_BYTES)];
    let (mut shown, mut count) = (String::new(), 0);
    for char in String::from_utf8_lossy(prefix).chars() {
        if count == TEXT_MAX {
            break;
        }
        count += 1;
        if char.is_control() || is_direction_mark(char) {
            let _ = write!(shown, "{}", char.escape_unicode());
        } else {
            shown.push(char);
        }
    }
    if count == TEXT_MAX || prefix.len() < text.len() {
        shown.push('…');
    }
    shown.into()
}

/// Characters that make the text around them read in another order.
fn is_direction_mark(char: char) -> bool {
    matches!(char, '\u{200e}' | '\u{200f}' | '\u{61c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(line: u64) -> RejectedMessage {
        RejectedMessage::new(Timestamp::from_unix(60), line, "a field", Some(b"{}"))
    }

    #[test]
    fn last_messages_of_each_reason_are_kept() {
        let (mut kept, mut newer) = (RejectedMessages::default(), RejectedMessages::default());
        for line in 1..=5 {
            kept.push(Reason::Late, message(line));
        }
        kept.push(Reason::BadJson, message(9));
        newer.push(Reason::Late, message(6));
        kept.append(newer);
        let lines: Vec<(Reason, Vec<u64>)> =
            kept.iter().map(|(reason, messages)| (reason, messages.iter().map(|it| it.line).collect())).collect();
        assert_eq!(lines, [(Reason::BadJson, vec![9]), (Reason::Late, vec![4, 5, 6])]);
    }

    #[test]
    fn texts_are_cut_and_control_characters_escaped() {
        let shown = |text: &[u8]| RejectedMessage::new(Timestamp::from_unix(0), 1, "", Some(text)).text.unwrap();
        assert_eq!(&*shown(b"  {\"a\":1}\r"), "{\"a\":1}");
        assert_eq!(&*shown("a\u{1b}[31m\u{202e}b\u{7f}".as_bytes()), "a\\u{1b}[31m\\u{202e}b\\u{7f}");
        assert_eq!(&*shown(b"\xff<b>"), "\u{fffd}<b>");
        let long = shown("é".repeat(10_000).as_bytes());
        assert_eq!(long.chars().count(), TEXT_MAX + 1);
        assert!(long.ends_with('…'));
        let control = shown(&[0; 10_000]);
        assert!(control.len() < 5 * TEXT_MAX + 5, "{}", control.len());
    }
}
