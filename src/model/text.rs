//! Fast writing of text into a buffer of sufficient size. A response is made of thousands of pieces: with the space
//! reserved beforehand, a piece of constant length costs a few instructions, and other short pieces hardly more.

/// A write cursor over reserved space. The caller reserves enough; writing past the end is a bug and panics.
#[derive(Debug)]
pub(crate) struct FixedBuffer<'a> {
    bytes: &'a mut [u8],
    at: usize,
}

impl<'a> FixedBuffer<'a> {
    pub(crate) fn new(bytes: &'a mut [u8], at: usize) -> Self {
        FixedBuffer { bytes, at }
    }

    /// The position of the next piece.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn written(&self) -> &[u8] {
        &self.bytes[..self.at]
    }

    /// Writes a piece of constant length.
    #[inline]
    pub(crate) fn put<const N: usize>(&mut self, text: &[u8; N]) {
        self.put_over(self.at, text);
        self.at += N;
    }

    /// Overwrites the bytes at `at`.
    #[inline]
    pub(crate) fn put_over<const N: usize>(&mut self, at: usize, text: &[u8; N]) {
        self.bytes[at..at + N].copy_from_slice(text);
    }

    /// Writes a piece of any length. Most are copied as two overlapping words, which is faster than `memcpy`.
    #[inline]
    pub(crate) fn put_slice(&mut self, text: &[u8]) {
        let to = &mut self.bytes[self.at..self.at + text.len()];
        self.at += text.len();
        match text.len() {
            16..=32 => put_ends::<16>(text, to),
            8..16 => put_ends::<8>(text, to),
            4..8 => put_ends::<4>(text, to),
            _ => to.copy_from_slice(text),
        }
    }

    /// Writes an integer. Nearly all numbers on a board have at most three digits.
    #[inline]
    pub(crate) fn put_number(&mut self, number: u32) {
        let [tens, ones] = pair(number);
        match number {
            0..10 => self.put(&[ones]),
            10..100 => self.put(&[tens, ones]),
            100..1000 => self.put(&[digit(number / 100), tens, ones]),
            _ => self.put_slice(itoa::Buffer::new().format(number).as_bytes()),
        }
    }
}

/// Copies a text of `N` to `2 * N` bytes as its first and its last `N` bytes.
#[inline]
fn put_ends<const N: usize>(text: &[u8], to: &mut [u8]) {
    let (Some(first), Some(last)) = (text.first_chunk::<N>(), text.last_chunk::<N>()) else { return };
    if let Some(to) = to.first_chunk_mut() {
        *to = *first;
    }
    if let Some(to) = to.last_chunk_mut() {
        *to = *last;
    }
}

/// Appends what `write` writes, at most `N` bytes.
pub(crate) fn append<const N: usize>(out: &mut Vec<u8>, write: impl FnOnce(&mut FixedBuffer<'_>)) {
    let mut bytes = [0; N];
    let mut buffer = FixedBuffer::new(&mut bytes, 0);
    write(&mut buffer);
    out.extend_from_slice(buffer.written());
}

/// The two digits of each number below a hundred.
static PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[b'0'; 2]; 100];
    let mut number: u8 = 0;
    while number < 100 {
        pairs[number as usize] = [b'0' + number / 10, b'0' + number % 10];
        number += 1;
    }
    pairs
};

/// The last two digits of a number.
#[inline]
pub(crate) fn pair(number: u32) -> [u8; 2] {
    PAIRS[(number % 100) as usize]
}

/// The last digit of a number.
#[inline]
pub(crate) fn digit(number: u32) -> u8 {
    b'0' + (number % 10).to_le_bytes()[0]
}

/// The two hexadecimal digits of each byte.
static HEX_PAIRS: [[u8; 2]; 256] = {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut pairs = [[b'0'; 2]; 256];
    let mut byte = 0;
    while byte < 256 {
        pairs[byte] = [HEX[byte >> 4], HEX[byte & 15]];
        byte += 1;
    }
    pairs
};

/// The two hexadecimal digits of a byte.
#[inline]
pub(crate) fn hex_pair(byte: u8) -> [u8; 2] {
    HEX_PAIRS[usize::from(byte)]
}

/// Bytes as lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().flat_map(|byte| hex_pair(*byte)).map(char::from).collect()
}

/// As many bytes as are asked for, from hexadecimal digits.
pub(crate) fn read_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = read_hex_digit(pair[0])? << 4 | read_hex_digit(pair[1])?;
    }
    Some(bytes)
}

pub(crate) fn read_hex_digit(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut FixedBuffer<'_>)) -> String {
        let mut out = b"before ".to_vec();
        append::<120>(&mut out, write);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn writes_pieces_of_every_length() {
        let text: String = ('!'..='~').collect();
        for len in 0..=text.len() {
            assert_eq!(written(|buffer| buffer.put_slice(&text.as_bytes()[..len])), format!("before {}", &text[..len]));
        }
        let over = |buffer: &mut FixedBuffer<'_>| {
            buffer.put(b"one two");
            buffer.put_over(4, b"six");
            buffer.put(b".");
        };
        assert_eq!(written(over), "before one six.");
    }

    #[test]
    fn writes_numbers_and_hexadecimal_bytes() {
        for number in (0..2000).chain([9_999, 10_000, 123_456_789, u32::MAX]) {
            assert_eq!(written(|buffer| buffer.put_number(number)), format!("before {number}"));
        }
        for byte in 0..=255 {
            assert_eq!(hex_pair(byte), *format!("{byte:02x}").as_bytes());
            assert_eq!(read_hex(&hex(&[byte, 7])), Some([byte, 7]));
        }
        assert_eq!(read_hex("0aFF"), Some([10, 255]));
        for text in ["", "0", "0a0", "0a0b0", "+f", "é", "0g"] {
            assert_eq!(read_hex::<1>(text), None, "{text}");
        }
    }
}
