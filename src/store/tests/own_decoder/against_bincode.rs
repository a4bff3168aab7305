//! Random rows, damaged rows and random bytes: both decoders must read the same.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use super::sample::Tape;
use super::{ROWS, RowVersion};

/// A change of a row's bytes.
#[derive(Clone, Debug)]
enum Damage {
    Flip(Index, u8),
    /// Most often a byte that says something about those after it.
    Set(Index, u8),
    Insert(Index, u8),
    Remove(Index),
    Cut(Index),
    Extend(Vec<u8>),
}

impl Damage {
    fn apply(&self, bytes: &mut Vec<u8>) {
        let len = bytes.len();
        match self {
            Damage::Flip(at, bit) if len > 0 => bytes[at.index(len)] ^= 1 << bit,
            Damage::Set(at, byte) if len > 0 => bytes[at.index(len)] = *byte,
            Damage::Remove(at) if len > 0 => drop(bytes.remove(at.index(len))),
            Damage::Insert(at, byte) => bytes.insert(at.index(len + 1), *byte),
            Damage::Cut(at) => bytes.truncate(at.index(len + 1)),
            Damage::Extend(more) => bytes.extend(more),
            Damage::Flip(..) | Damage::Set(..) | Damage::Remove(_) => {}
        }
    }
}

fn telling_byte() -> impl Strategy<Value = u8> {
    prop_oneof![3 => 0_u8..4, 1 => 249_u8..=255, 1 => any::<u8>()]
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        (any::<Index>(), 0_u8..8).prop_map(|(at, bit)| Damage::Flip(at, bit)),
        (any::<Index>(), telling_byte()).prop_map(|(at, byte)| Damage::Set(at, byte)),
        (any::<Index>(), telling_byte()).prop_map(|(at, byte)| Damage::Insert(at, byte)),
        any::<Index>().prop_map(Damage::Remove),
        any::<Index>().prop_map(Damage::Cut),
        vec(telling_byte(), 1..5).prop_map(Damage::Extend),
    ]
}

fn draw(row: &RowVersion, tape: &[u8]) -> Vec<u8> {
    (row.draw)(&mut Tape(tape))
}

proptest! {
    #[test]
    fn row_that_bincode_writes_is_read_and_written_without_it(tape in vec(any::<u8>(), 0..400)) {
        for row in ROWS {
            prop_assert!((row.compare)(row.version, &draw(row, &tape)), "{} {}", row.name, row.version);
        }
    }

    #[test]
    fn damaged_row_is_read_alike_or_refused_by_both(
        tape in vec(any::<u8>(), 0..200),
        damages in vec(damage(), 1..4),
    ) {
        for row in ROWS {
            let mut bytes = draw(row, &tape);
            for damage in &damages {
                damage.apply(&mut bytes);
            }
            (row.compare)(row.version, &bytes);
        }
    }

    /// A row must take all of the bytes, which random ones seldom do: so each beginning of them is tried.
    #[test]
    fn any_bytes_are_read_alike_or_refused_by_both(bytes in vec(telling_byte(), 0..30)) {
        for row in ROWS {
            for end in 0..=bytes.len() {
                (row.compare)(row.version, &bytes[..end]);
            }
        }
    }
}
