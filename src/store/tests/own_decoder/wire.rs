//! The bytes of plain values, read and written without bincode: its format in the configuration of `codec`, as its
//! `docs/spec.md` describes it. Numbers are little-endian and of variable length, a length is such a number, an
//! `Option` and a `bool` take a byte that is 0 or 1, and arrays, tuples and structs are their parts without anything
//! between them.

/// The bytes that are left.
pub(super) struct Reader<'b>(&'b [u8]);

/// A value in the file.
pub(super) trait Layout: Sized {
    /// `None` if no such value begins here.
    fn read(from: &mut Reader<'_>) -> Option<Self>;

    fn write(&self, out: &mut Vec<u8>);
}

/// The value that takes all of the bytes.
pub(super) fn decode<L: Layout>(bytes: &[u8]) -> Option<L> {
    let mut from = Reader(bytes);
    L::read(&mut from).filter(|_| from.0.is_empty())
}

pub(super) fn encode<L: Layout>(value: &L) -> Vec<u8> {
    let mut bytes = Vec::new();
    value.write(&mut bytes);
    bytes
}

impl Reader<'_> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*array)
    }
}

/// A number below 251 is one byte. Before a longer one, a byte says how many follow; they may be more than the number
/// needs, but no more than its type has.
fn read_number(from: &mut Reader<'_>, bits: u32) -> Option<u64> {
    match from.array()? {
        [byte @ 0..=250] => Some(byte.into()),
        [251] => Some(u16::from_le_bytes(from.array()?).into()),
        [252] if bits >= u32::BITS => Some(u32::from_le_bytes(from.array()?).into()),
        [253] if bits >= u64::BITS => Some(u64::from_le_bytes(from.array()?)),
        _ => None,
    }
}

fn write_number(number: u64, out: &mut Vec<u8>) {
    if let Ok(byte @ 0..=250) = u8::try_from(number) {
        out.push(byte);
    } else if let Ok(number) = u16::try_from(number) {
        out.push(251);
        out.extend(number.to_le_bytes());
    } else if let Ok(number) = u32::try_from(number) {
        out.push(252);
        out.extend(number.to_le_bytes());
    } else {
        out.push(253);
        out.extend(number.to_le_bytes());
    }
}

/// Numbers of variable length. A signed one is folded into an unsigned one, so that a small one stays short whatever
/// its sign: 0, -1, 1, -2 are 0, 1, 2, 3.
macro_rules! numbers {
    ($($unsigned:ident $signed:ident,)*) => {$(
        impl Layout for $unsigned {
            fn read(from: &mut Reader<'_>) -> Option<Self> {
                read_number(from, Self::BITS)?.try_into().ok()
            }

            fn write(&self, out: &mut Vec<u8>) {
                write_number((*self).into(), out);
            }
        }

        impl Layout for $signed {
            fn read(from: &mut Reader<'_>) -> Option<Self> {
                let folded = $unsigned::read(from)?;
                let half = (folded / 2).cast_signed();
                Some(if folded % 2 == 0 { half } else { !half })
            }

            fn write(&self, out: &mut Vec<u8>) {
                ((self << 1) ^ (self >> (Self::BITS - 1))).cast_unsigned().write(out);
            }
        }
    )*};
}

numbers! {
    u16 i16,
    u32 i32,
    u64 i64,
}

/// A byte is never marked.
impl Layout for u8 {
    fn read(from: &mut Reader<'_>) -> Option<Self> {
        from.array().map(|[byte]| byte)
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(*self);
    }
}

impl Layout for bool {
    fn read(from: &mut Reader<'_>) -> Option<Self> {
        match u8::read(from)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }
}

impl<const N: usize> Layout for [u8; N] {
    fn read(from: &mut Reader<'_>) -> Option<Self> {
        from.array()
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend(self);
    }
}

impl<T: Layout> Layout for Option<T> {
    fn read(from: &mut Reader<'_>) -> Option<Self> {
        if bool::read(from)? { T::read(from).map(Some) } else { Some(None) }
    }

    fn write(&self, out: &mut Vec<u8>) {
        self.is_some().write(out);
        if let Some(value) = self {
            value.write(out);
        }
    }
}

/// No memory is taken for a length before its items are there.
impl<T: Layout> Layout for Vec<T> {
    fn read(from: &mut Reader<'_>) -> Option<Self> {
        let len = u64::read(from)?;
        (0..len).map(|_| T::read(from)).collect()
    }

    fn write(&self, out: &mut Vec<u8>) {
        write_number(self.len() as u64, out);
        for item in self {
            item.write(out);
        }
    }
}

impl Layout for String {
    fn read(from: &mut Reader<'_>) -> Option<Self> {
        String::from_utf8(Vec::read(from)?).ok()
    }

    fn write(&self, out: &mut Vec<u8>) {
        self.as_bytes().to_vec().write(out);
    }
}

impl<A: Layout, B: Layout> Layout for (A, B) {
    fn read(from: &mut Reader<'_>) -> Option<Self> {
        Some((A::read(from)?, B::read(from)?))
    }

    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
        self.1.write(out);
    }
}

impl<A: Layout, B: Layout, C: Layout> Layout for (A, B, C) {
    fn read(from: &mut Reader<'_>) -> Option<Self> {
        Some((A::read(from)?, B::read(from)?, C::read(from)?))
    }

    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
        self.1.write(out);
        self.2.write(out);
    }
}
