//! Splits a stream of bytes into lines, whatever chunks it comes in, within a bound of memory.
//!
//! tokio-util's codecs copy every byte into a buffer of their own, and `LinesCodec` ends at bytes that are not UTF-8; here
//! a line inside one chunk is borrowed, and a bad line costs that line only.

use super::wire::LINE_BYTES_MAX;

/// A line without its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SplitLine<'a> {
    Text(&'a [u8]),
    /// Longer than a line may be; its text was not kept.
    TooLong,
}

/// Holds the part of a line that has come so far.
#[derive(Debug, Default)]
pub(super) struct LineSplitter {
    partial: Vec<u8>,
    is_too_long: bool,
    /// The text kept in `partial` was returned and is dropped at the next call.
    is_taken: bool,
}

impl LineSplitter {
    /// The next line that ends within `bytes`, which is advanced past it; `None` when no line end is left.
    pub(super) fn next<'l, 'b: 'l>(&'l mut self, bytes: &mut &'b [u8]) -> Option<SplitLine<'l>> {
        self.drop_taken();
        let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
            self.keep(bytes);
            *bytes = &[];
            return None;
        };
        let (head, rest) = (&bytes[..end], &bytes[end + 1..]);
        *bytes = rest;
        if self.partial.is_empty() && !self.is_too_long && head.len() <= LINE_BYTES_MAX {
            return Some(SplitLine::Text(head));
        }
        self.keep(head);
        Some(self.take_partial())
    }

    /// The last line of the stream, if it has no line end.
    pub(super) fn last(&mut self) -> Option<SplitLine<'_>> {
        self.drop_taken();
        (!self.partial.is_empty() || self.is_too_long).then(|| self.take_partial())
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.partial.len() + bytes.len() > LINE_BYTES_MAX {
            self.is_too_long = true;
            self.partial = Vec::new();
        }
        if !self.is_too_long {
            self.partial.extend_from_slice(bytes);
        }
    }

    fn take_partial(&mut self) -> SplitLine<'_> {
        self.is_taken = true;
        if self.is_too_long { SplitLine::TooLong } else { SplitLine::Text(&self.partial) }
    }

    fn drop_taken(&mut self) {
        if self.is_taken {
            self.partial.clear();
            self.is_too_long = false;
            self.is_taken = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(pieces: &[&[u8]]) -> Vec<Option<Vec<u8>>> {
        let mut lines = LineSplitter::default();
        let mut found = Vec::new();
        let owned = |line: SplitLine<'_>| match line {
            SplitLine::Text(text) => Some(text.to_vec()),
            SplitLine::TooLong => None,
        };
        for piece in pieces {
            let mut bytes: &[u8] = piece;
            while let Some(line) = lines.next(&mut bytes) {
                found.push(owned(line));
            }
        }
        found.extend(lines.last().map(owned));
        found
    }

    #[test]
    fn lines_are_the_same_however_the_stream_is_cut() {
        let text = b"one\n\ntwo and\n three\nfour";
        let whole = split(&[text]);
        assert_eq!(whole.len(), 5);
        assert_eq!(whole[4].as_deref(), Some(&b"four"[..]));
        for size in 1..text.len() {
            assert_eq!(split(&text.chunks(size).collect::<Vec<_>>()), whole, "pieces of {size}");
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_reported_and_those_around_it_are_kept() {
        let long = vec![b'x'; LINE_BYTES_MAX / 2 + 1];
        let found = split(&[b"a\n", &long, &long, b"\nb\n", &long]);
        assert_eq!(found, [Some(b"a".to_vec()), None, Some(b"b".to_vec()), Some(long.clone())]);
        let mut one = [long.clone(), long].concat();
        one.push(b'\n');
        assert_eq!(split(&[&one]), [None]);
    }
}
