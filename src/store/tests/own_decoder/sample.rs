//! Values to test with, and the cases that golden bytes must have: the borders of numbers, each variant, an `Option`
//! both ways, a list without and with items, a text that is empty, ASCII and more than that.

use std::collections::BTreeSet;

/// What each case is, after its place in the row.
pub(super) type Cases = BTreeSet<String>;

/// Random bytes that values are drawn from, and zeros after them: a shorter tape has simpler values.
pub(super) struct Tape<'t>(pub(super) &'t [u8]);

pub(super) trait Sample: Sized {
    fn draw(from: &mut Tape<'_>) -> Self;

    /// Adds all the cases of the type.
    fn expect(at: &str, cases: &mut Cases);

    /// Adds those of the value.
    fn note(&self, at: &str, cases: &mut Cases);
}

impl Tape<'_> {
    fn byte(&mut self) -> u8 {
        let (byte, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        *byte
    }

    /// One of so many choices, of which there are at most 256.
    pub(super) fn pick(&mut self, choices: usize) -> usize {
        usize::from(self.byte()) % choices
    }

    /// A number of items: few, or rarely so many that their number takes three bytes.
    fn len(&mut self) -> usize {
        match self.byte() {
            few @ 0..=249 => usize::from(few % 4),
            many => usize::from(many),
        }
    }
}

macro_rules! numbers {
    ($($number:ident: $borders:expr,)*) => {$(
        impl Sample for $number {
            fn draw(from: &mut Tape<'_>) -> Self {
                const BORDERS: &[$number] = &$borders;
                match from.pick(2) {
                    0 => BORDERS[from.pick(BORDERS.len())],
                    _ => Self::from_le_bytes(Sample::draw(from)) >> from.pick(Self::BITS as usize),
                }
            }

            fn expect(at: &str, cases: &mut Cases) {
                cases.extend($borders.iter().map(|border: &$number| format!("{at} = {border}")));
            }

            fn note(&self, at: &str, cases: &mut Cases) {
                cases.insert(format!("{at} = {self}"));
            }
        }
    )*};
}

numbers! {
    u8: [0, 250, 251, u8::MAX],
    u16: [0, 250, 251, u16::MAX],
    u32: [0, 250, 251, 0xffff, 0x1_0000, u32::MAX],
    u64: [0, 250, 251, 0xffff, 0x1_0000, 0xffff_ffff, 0x1_0000_0000, u64::MAX],
    // The same borders after folding, and the ends.
    i32: [0, -1, 125, -126, -0x8000, 0x8000, i32::MAX, i32::MIN],
    i64: [0, -1, 125, -126, -0x8000, 0x8000, -0x8000_0000, 0x8000_0000, i64::MAX, i64::MIN],
}

impl Sample for bool {
    fn draw(from: &mut Tape<'_>) -> Self {
        from.pick(2) == 1
    }

    fn expect(at: &str, cases: &mut Cases) {
        cases.extend([format!("{at} = false"), format!("{at} = true")]);
    }

    fn note(&self, at: &str, cases: &mut Cases) {
        cases.insert(format!("{at} = {self}"));
    }
}

impl<const N: usize> Sample for [u8; N] {
    fn draw(from: &mut Tape<'_>) -> Self {
        std::array::from_fn(|_| from.byte())
    }

    fn expect(_: &str, _: &mut Cases) {}

    fn note(&self, _: &str, _: &mut Cases) {}
}

impl<T: Sample> Sample for Option<T> {
    fn draw(from: &mut Tape<'_>) -> Self {
        (from.pick(4) > 0).then(|| T::draw(from))
    }

    fn expect(at: &str, cases: &mut Cases) {
        cases.insert(format!("{at} = None"));
        T::expect(at, cases);
    }

    fn note(&self, at: &str, cases: &mut Cases) {
        match self {
            Some(value) => value.note(at, cases),
            None => drop(cases.insert(format!("{at} = None"))),
        }
    }
}

impl<T: Sample> Sample for Vec<T> {
    fn draw(from: &mut Tape<'_>) -> Self {
        (0..from.len()).map(|_| T::draw(from)).collect()
    }

    fn expect(at: &str, cases: &mut Cases) {
        cases.extend([format!("{at} is empty"), format!("{at} has more than one")]);
        T::expect(&format!("{at}[]"), cases);
    }

    fn note(&self, at: &str, cases: &mut Cases) {
        match self.len() {
            0 => drop(cases.insert(format!("{at} is empty"))),
            1 => {}
            _ => drop(cases.insert(format!("{at} has more than one"))),
        }
        for item in self {
            item.note(&format!("{at}[]"), cases);
        }
    }
}

impl Sample for String {
    fn draw(from: &mut Tape<'_>) -> Self {
        match from.pick(8) {
            0 | 1 => String::new(),
            2 | 3 => "wxyz".to_owned(),
            4 | 5 => "Zoë 🏈".to_owned(),
            6 => "ë".repeat(from.len()),
            _ => (0..from.len()).filter_map(|_| char::from_u32(u32::draw(from) % 0x11_0000)).collect(),
        }
    }

    fn expect(at: &str, cases: &mut Cases) {
        cases.extend(["empty", "ASCII", "beyond ASCII"].map(|case| format!("{at} is {case}")));
    }

    fn note(&self, at: &str, cases: &mut Cases) {
        let case = match self.as_str() {
            "" => "empty",
            text if text.is_ascii() => "ASCII",
            _ => "beyond ASCII",
        };
        cases.insert(format!("{at} is {case}"));
    }
}

macro_rules! tuples {
    ($($($part:ident $at:tt),*;)*) => {$(
        impl<$($part: Sample),*> Sample for ($($part,)*) {
            fn draw(from: &mut Tape<'_>) -> Self {
                ($($part::draw(from),)*)
            }

            fn expect(at: &str, cases: &mut Cases) {
                $($part::expect(&format!("{at}.{}", $at), cases);)*
            }

            fn note(&self, at: &str, cases: &mut Cases) {
                $(self.$at.note(&format!("{at}.{}", $at), cases);)*
            }
        }
    )*};
}

tuples! {
    A 0, B 1;
    A 0, B 1, C 2;
}
