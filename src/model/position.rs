//! Places in the log of a world, as clients hold them.

use std::fmt;

/// A place between two events of a world's log: after so many events of an entry, and of all entries before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Position {
    /// Random. Positions of another epoch are of a log that was lost or replaced.
    pub epoch: u64,
    /// The number of the entry.
    pub sequence: u64,
    /// How many of its events come before. An entry that is behind as a whole is written as the beginning of the next one.
    pub offset: u32,
}

impl Position {
    /// Before the first event of an entry.
    pub const fn before(epoch: u64, sequence: u64) -> Self {
        Position { epoch, sequence, offset: 0 }
    }

    /// `None` if the text was not made from a position.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('.');
        let (epoch, sequence, offset) = (parts.next()?, parts.next()?, parts.next()?);
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if parts.next().is_some() || epoch.len() != 16 || !is_number(sequence) || !is_number(offset) {
            return None;
        }
        let position = Position {
            epoch: u64::from_str_radix(epoch, 16).ok()?,
            sequence: sequence.parse().ok()?,
            offset: offset.parse().ok()?,
        };
        (position.to_string() == text).then_some(position)
    }

    /// Whether this is a later place of the same log.
    pub const fn is_after(self, other: Position) -> bool {
        self.epoch == other.epoch
            && (self.sequence > other.sequence || (self.sequence == other.sequence && self.offset > other.offset))
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}.{}.{}", self.epoch, self.sequence, self.offset)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn positions_come_back(epoch: u64, sequence: u64, offset: u32) {
            let position = Position { epoch, sequence, offset };
            prop_assert_eq!(Position::parse(&position.to_string()), Some(position));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,60}", near in "[0-9a-fA-F+]{15,17}\\.[0-9+]{0,21}\\.[0-9]{0,11}") {
            let _ = Position::parse(&text);
            let _ = Position::parse(&near);
        }
    }

    #[test]
    fn only_the_exact_text_is_a_position() {
        for text in [
            "",
            "0000000000000001.1",
            "0000000000000001.1.0.0",
            "000000000000001.1.0",
            "000000000000000A.1.0",
            "0000000000000001.01.0",
            "0000000000000001.+1.0",
            "0000000000000001.1.4294967296",
        ] {
            assert_eq!(Position::parse(text), None, "{text}");
        }
    }
}
