//! Cutting a stream of bytes into lines, whatever pieces it comes in, within a bound of memory.

use crate::ingest::wire::LINE_BYTES_MAX;

/// A line without its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    Text(&'a [u8]),
    /// Longer than any line may be: it was not kept.
    TooLong,
}

/// The part of a line that has come so far.
#[derive(Debug, Default)]
pub(super) struct Lines {
    partial: Vec<u8>,
    is_too_long: bool,
    /// What was kept has been given out and is dropped at the next call.
    is_given: bool,
}

impl Lines {
    /// The next line that ends within `bytes`, which are used up as far as it goes; `None` when they are used up.
    pub(super) fn next<'l, 'b: 'l>(&'l mut self, bytes: &mut &'b [u8]) -> Option<Line<'l>> {
        self.drop_given();
        let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
            self.keep(bytes);
            *bytes = &[];
            return None;
        };
        let (head, rest) = (&bytes[..end], &bytes[end + 1..]);
        *bytes = rest;
        if self.partial.is_empty() && !self.is_too_long && head.len() <= LINE_BYTES_MAX {
            return Some(Line::Text(head));
        }
        self.keep(head);
        Some(self.give())
    }

    /// What the stream ended with, if it did not end with a line's end.
    pub(super) fn last(&mut self) -> Option<Line<'_>> {
        self.drop_given();
        (!self.partial.is_empty() || self.is_too_long).then(|| self.give())
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

    fn give(&mut self) -> Line<'_> {
        self.is_given = true;
        if self.is_too_long { Line::TooLong } else { Line::Text(&self.partial) }
    }

    fn drop_given(&mut self) {
        if self.is_given {
            self.partial.clear();
            self.is_too_long = false;
            self.is_given = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(pieces: &[&[u8]]) -> Vec<Option<Vec<u8>>> {
        let mut lines = Lines::default();
        let mut found = Vec::new();
        let owned = |line: Line<'_>| match line {
            Line::Text(text) => Some(text.to_vec()),
            Line::TooLong => None,
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
        let whole = cut(&[text]);
        assert_eq!(whole.len(), 5);
        assert_eq!(whole[4].as_deref(), Some(&b"four"[..]));
        for size in 1..text.len() {
            assert_eq!(cut(&text.chunks(size).collect::<Vec<_>>()), whole, "pieces of {size}");
        }
    }

    #[test]
    fn a_line_too_long_is_told_and_those_around_it_are_kept() {
        let long = vec![b'x'; LINE_BYTES_MAX / 2 + 1];
        let found = cut(&[b"a\n", &long, &long, b"\nb\n", &long]);
        assert_eq!(found, [Some(b"a".to_vec()), None, Some(b"b".to_vec()), Some(long.clone())]);
        let mut one = [long.clone(), long].concat();
        one.push(b'\n');
        assert_eq!(cut(&[&one]), [None]);
    }
}
