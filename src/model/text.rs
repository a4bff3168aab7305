//! Text written piece by piece where there is room for all of it. An answer is made of thousands of pieces: with the
//! room made beforehand, one of a known length costs a few instructions, and a short one of any length hardly more.

/// Where something is written. Whoever makes room says for how much; writing beyond it is a mistake that panics.
#[derive(Debug)]
pub(crate) struct Room<'a> {
    bytes: &'a mut [u8],
    at: usize,
}

impl<'a> Room<'a> {
    pub(crate) fn new(bytes: &'a mut [u8], at: usize) -> Self {
        Room { bytes, at }
    }

    /// Where the next piece goes.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn written(&self) -> &[u8] {
        &self.bytes[..self.at]
    }

    /// A piece of a known length.
    #[inline]
    pub(crate) fn put<const N: usize>(&mut self, text: &[u8; N]) {
        self.put_over(self.at, text);
        self.at += N;
    }

    /// A piece over what was written at a place.
    #[inline]
    pub(crate) fn put_over<const N: usize>(&mut self, at: usize, text: &[u8; N]) {
        self.bytes[at..at + N].copy_from_slice(text);
    }

    /// A piece of any length. Most are two words that overlap, which is quicker than the call that copies any number
    /// of bytes.
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

    /// A whole number. Nearly all numbers of a board have three digits at most.
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

/// A text of `N` to twice `N` bytes: its first and its last.
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

/// Appends what `write` writes into a room of `N` bytes.
pub(crate) fn append<const N: usize>(out: &mut Vec<u8>, write: impl FnOnce(&mut Room<'_>)) {
    let mut bytes = [0; N];
    let mut room = Room::new(&mut bytes, 0);
    write(&mut room);
    out.extend_from_slice(room.written());
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

/// A byte as two hexadecimal digits.
#[inline]
pub(crate) fn hex_pair(byte: u8) -> [u8; 2] {
    HEX_PAIRS[usize::from(byte)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Room<'_>)) -> String {
        let mut out = b"before ".to_vec();
        append::<120>(&mut out, write);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn pieces_of_every_length_are_written_whole() {
        let text: String = ('!'..='~').collect();
        for len in 0..=text.len() {
            assert_eq!(written(|room| room.put_slice(&text.as_bytes()[..len])), format!("before {}", &text[..len]));
        }
        let over = |room: &mut Room<'_>| {
            room.put(b"one two");
            room.put_over(4, b"six");
            room.put(b".");
        };
        assert_eq!(written(over), "before one six.");
    }

    #[test]
    fn numbers_are_their_digits() {
        for number in (0..2000).chain([9_999, 10_000, 123_456_789, u32::MAX]) {
            assert_eq!(written(|room| room.put_number(number)), format!("before {number}"));
        }
        for byte in 0..=255 {
            assert_eq!(hex_pair(byte), *format!("{byte:02x}").as_bytes());
        }
    }
}
