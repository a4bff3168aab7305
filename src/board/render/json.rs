//! JSON text, written straight into bytes.

/// Writes a string with its quotes.
pub(crate) fn string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    string_part(text, out);
    out.push(b'"');
}

/// Writes a part of a string, without quotes.
pub(crate) fn string_part(text: &str, out: &mut Vec<u8>) {
    // No early exit, so that the compiler vectorises it; names are short.
    if text.bytes().fold(0, |special, byte| special | is_special(byte)) != 0 {
        escaped(text, out);
    } else {
        out.extend_from_slice(text.as_bytes());
    }
}

/// 1 for a byte that must be escaped, otherwise 0.
#[inline]
pub(super) fn is_special(byte: u8) -> u8 {
    u8::from(byte < 0x20) | u8::from(byte == b'"') | u8::from(byte == b'\\')
}

/// Writes a string with escapes, without its quotes.
#[cold]
pub(super) fn escaped(text: &str, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            0..0x20 => {
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
            }
            _ => out.push(byte),
        }
    }
}

/// Writes a string, or null.
pub(crate) fn optional_string(text: Option<&str>, out: &mut Vec<u8>) {
    match text {
        Some(text) => string(text, out),
        None => out.extend_from_slice(b"null"),
    }
}

/// Writes a number, or null.
pub(crate) fn optional_integer(value: Option<impl itoa::Integer>, out: &mut Vec<u8>) {
    match value {
        Some(value) => integer(value, out),
        None => out.extend_from_slice(b"null"),
    }
}

pub(crate) fn integer(value: impl itoa::Integer, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Writes the items of an array, brackets and commas included.
pub(crate) fn array<T>(items: impl IntoIterator<Item = T>, out: &mut Vec<u8>, mut item: impl FnMut(T, &mut Vec<u8>)) {
    out.push(b'[');
    let mut first = true;
    for value in items {
        if !first {
            out.push(b',');
        }
        first = false;
        item(value, out);
    }
    out.push(b']');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn strings_read_back(text in "(?s).{0,60}") {
            let mut out = Vec::new();
            super::string(&text, &mut out);
            prop_assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
        }
    }
}
