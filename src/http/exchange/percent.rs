//! Percent-encoding, in both directions. Text that is not encoded is borrowed, never copied.

use std::borrow::Cow;

use crate::model::text::read_hex_digit;

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// What a `+` means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plus {
    /// Itself, as in a path.
    Itself,
    /// A space, as in the query of a form.
    Space,
}

/// `None` if an escape is not two hexadecimal digits, or if the result is not UTF-8.
pub(crate) fn decode(text: &str, plus: Plus) -> Option<Cow<'_, str>> {
    let is_encoded = |byte: u8| byte == b'%' || (byte == b'+' && plus == Plus::Space);
    if !text.bytes().any(is_encoded) {
        return Some(Cow::Borrowed(text));
    }
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, tail)) = rest.split_first() {
        rest = tail;
        match byte {
            b'%' => {
                let (pair, tail) = rest.split_at_checked(2)?;
                decoded.push(read_hex_digit(pair[0])? << 4 | read_hex_digit(pair[1])?);
                rest = tail;
            }
            b'+' if plus == Plus::Space => decoded.push(b' '),
            byte => decoded.push(*byte),
        }
    }
    String::from_utf8(decoded).ok().map(Cow::Owned)
}

/// A text as a part of a path, or as a value of a query.
pub(crate) fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.extend(['%', HEX[usize::from(byte >> 4)].into(), HEX[usize::from(byte & 15)].into()]);
        }
    }
    out
}

/// Writes a part of a URL for a `Link` header: what is encoded already stays as it is, and what a URL
/// may not hold, but a lenient parser lets through, is escaped.
pub(crate) fn write_url_part(part: &str, out: &mut Vec<u8>) {
    for byte in part.bytes() {
        if byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte) {
            out.push(byte);
        } else {
            out.extend_from_slice(&[b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn decodes_and_refuses() {
        for (text, decoded) in [
            ("mma", Some("mma")),
            ("a%20b", Some("a b")),
            ("r%C3%A9union", Some("réunion")),
            ("a+b", Some("a b")),
            ("%2B", Some("+")),
            ("%", None),
            ("%2", None),
            ("%zz", None),
            ("%+1", None),
            ("%FF", None),
            ("é%", None),
        ] {
            assert_eq!(decode(text, Plus::Space).as_deref(), decoded, "{text}");
        }
        assert_eq!(decode("a+b", Plus::Itself).as_deref(), Some("a+b"));
        assert!(matches!(decode("plain", Plus::Space), Some(Cow::Borrowed(_))));
    }

    #[test]
    fn what_a_url_may_not_hold_is_escaped() {
        let mut out = Vec::new();
        write_url_part("/v1/é>%20?a=\"b\"", &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), "/v1/%C3%A9%3E%20?a=%22b%22");
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,40}", escapes in "[%+0-9a-fA-F]{0,40}") {
            let _ = decode(&text, Plus::Space);
            let _ = decode(&escapes, Plus::Itself);
        }
    }
}
