//! Writes answers that consist of many short pieces: capacity is checked once for each event, not for each piece.

use super::json;
use crate::model::text::FixedBuffer;

/// The buffer of an answer and the length written so far; bytes after it are unused.
#[derive(Debug)]
pub(super) struct RecordWriter<'a> {
    bytes: &'a mut Vec<u8>,
    at: usize,
}

/// A byte of text takes six at worst: `\u001f`.
const ESCAPED_MAX: usize = 6;
/// The least that the buffer grows by.
const GROWTH: usize = 16 << 10;

impl<'a> RecordWriter<'a> {
    pub(super) fn new(bytes: &'a mut Vec<u8>) -> Self {
        RecordWriter { bytes, at: 0 }
    }

    pub(super) fn written(&self) -> &[u8] {
        &self.bytes[..self.at]
    }

    /// Lets `write` write at most `plain` bytes and texts of `texts` bytes, which may have to be escaped.
    #[inline]
    pub(super) fn write(&mut self, plain: usize, texts: usize, write: impl FnOnce(&mut FixedBuffer<'_>)) {
        let end = self.at + plain + texts * ESCAPED_MAX;
        if self.bytes.len() < end {
            self.bytes.resize(end + GROWTH, 0);
        }
        let mut buffer = FixedBuffer::new(self.bytes, self.at);
        write(&mut buffer);
        self.at = buffer.at();
    }
}

/// Writes a JSON string without its quotes.
#[inline]
pub(super) fn put_text(text: &str, buffer: &mut FixedBuffer<'_>) {
    if is_plain(text.as_bytes()) {
        buffer.put_slice(text.as_bytes());
    } else {
        put_escaped(text, buffer);
    }
}

#[cold]
fn put_escaped(text: &str, buffer: &mut FixedBuffer<'_>) {
    let mut escaped = Vec::with_capacity(text.len() * 2);
    json::escaped(text, &mut escaped);
    buffer.put_slice(&escaped);
}

/// Whether a text needs no escape in JSON.
#[inline]
fn is_plain(text: &[u8]) -> bool {
    match text.len() {
        16..=32 => are_ends_plain::<16>(text),
        8..16 => are_ends_plain::<8>(text),
        4..8 => are_ends_plain::<4>(text),
        _ => text.iter().fold(0, |special, byte| special | json::is_special(*byte)) == 0,
    }
}

/// The same for a text of `N` to `2 * N` bytes, which its first and last `N` bytes cover.
#[inline]
fn are_ends_plain<const N: usize>(text: &[u8]) -> bool {
    let (Some(first), Some(last)) = (text.first_chunk::<N>(), text.last_chunk::<N>()) else { return false };
    let special: [u8; N] = std::array::from_fn(|at| json::is_special(first[at]) | json::is_special(last[at]));
    special == [0; N]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Equal to the general writer, wherever the special byte is.
        #[test]
        fn texts_are_written_as_json_writes_them(text in "[ -~]{0,40}", at in 0..41_usize, special in any::<char>()) {
            let text: String = text.chars().take(at).chain([special]).chain(text.chars().skip(at)).collect();
            for text in [&text[..], &text.replace(['"', '\\'], "")] {
                let (mut bytes, mut expected) = (Vec::new(), Vec::new());
                let mut writer = RecordWriter::new(&mut bytes);
                writer.write(2, text.len(), |buffer| {
                    buffer.put(b"\"");
                    put_text(text, buffer);
                    buffer.put(b"\"");
                });
                json::string(text, &mut expected);
                prop_assert_eq!(writer.written(), &expected[..]);
            }
        }
    }
}
