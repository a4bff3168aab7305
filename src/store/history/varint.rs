//! Numbers of variable length and texts, as the rows of the log hold them. Reading never trusts a length: whatever the
//! bytes say, it takes no more memory than they justify.

use crate::store::codec::Flaw;

/// Appends seven bits at a time, the lowest first.
pub(super) fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

/// Appends a number that is usually near zero on either side.
pub(super) fn put_signed(out: &mut Vec<u8>, value: i64) {
    put(out, (value.cast_unsigned() << 1) ^ (value >> 63).cast_unsigned());
}

pub(super) fn put_text(out: &mut Vec<u8>, text: &str) {
    put(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// Reads what the functions above wrote.
#[derive(Clone, Debug)]
pub(super) struct Cursor<'b> {
    bytes: &'b [u8],
}

impl<'b> Cursor<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Cursor { bytes }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) fn rest(&self) -> &'b [u8] {
        self.bytes
    }

    #[inline]
    pub(super) fn byte(&mut self) -> Result<u8, Flaw> {
        let (byte, rest) = self.bytes.split_first().ok_or(Flaw::Malformed)?;
        self.bytes = rest;
        Ok(*byte)
    }

    #[inline]
    pub(super) fn take(&mut self, len: usize) -> Result<&'b [u8], Flaw> {
        let (taken, rest) = self.bytes.split_at_checked(len).ok_or(Flaw::Malformed)?;
        self.bytes = rest;
        Ok(taken)
    }

    #[inline]
    pub(super) fn number(&mut self) -> Result<u64, Flaw> {
        // Nearly all numbers take one byte or two.
        match self.bytes {
            [byte @ ..0x80, rest @ ..] => {
                self.bytes = rest;
                Ok((*byte).into())
            }
            [low, high @ ..0x80, rest @ ..] => {
                self.bytes = rest;
                Ok(u64::from(low & 0x7f) | u64::from(*high) << 7)
            }
            _ => self.long_number(),
        }
    }

    fn long_number(&mut self) -> Result<u64, Flaw> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Flaw::Malformed)
    }

    #[inline]
    pub(super) fn signed(&mut self) -> Result<i64, Flaw> {
        let value = self.number()?;
        Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    /// A number that must fit the type.
    #[inline]
    pub(super) fn small<T: TryFrom<u64>>(&mut self) -> Result<T, Flaw> {
        T::try_from(self.number()?).map_err(|_| Flaw::Malformed)
    }

    #[inline]
    pub(super) fn small_signed<T: TryFrom<i64>>(&mut self) -> Result<T, Flaw> {
        T::try_from(self.signed()?).map_err(|_| Flaw::Malformed)
    }

    /// A number of things that follow, each of which takes a byte at least.
    #[inline]
    pub(super) fn count(&mut self) -> Result<usize, Flaw> {
        let count = self.small::<usize>()?;
        if count > self.bytes.len() { Err(Flaw::Malformed) } else { Ok(count) }
    }

    pub(super) fn text(&mut self) -> Result<&'b str, Flaw> {
        let len = self.small::<usize>()?;
        str::from_utf8(self.take(len)?).map_err(|_| Flaw::Malformed)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_was_written_is_read(numbers: Vec<u64>, signed: Vec<i64>, text: String) {
            let mut out = Vec::new();
            for number in &numbers {
                put(&mut out, *number);
            }
            for number in &signed {
                put_signed(&mut out, *number);
            }
            put_text(&mut out, &text);
            let mut cursor = Cursor::new(&out);
            for number in numbers {
                prop_assert_eq!(cursor.number(), Ok(number));
            }
            for number in signed {
                prop_assert_eq!(cursor.signed(), Ok(number));
            }
            prop_assert_eq!(cursor.text(), Ok(&*text));
            prop_assert!(cursor.is_empty());
        }
    }

    #[test]
    fn lengths_beyond_the_bytes_are_refused() {
        let mut out = Vec::new();
        put(&mut out, u64::MAX);
        assert_eq!(Cursor::new(&out).text(), Err(Flaw::Malformed));
        assert_eq!(Cursor::new(&out).count(), Err(Flaw::Malformed));
        assert_eq!(Cursor::new(&[0x80; 11]).number(), Err(Flaw::Malformed));
    }
}
