//! The regions that bookmakers are offered in, and sets of them.

use std::fmt;

/// A market area of bookmakers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Region {
    Us,
    Us2,
    UsDfs,
    UsEx,
    Uk,
    Eu,
    Fr,
    Se,
    Au,
}

impl Region {
    pub const ALL: [Region; 9] = [
        Region::Us,
        Region::Us2,
        Region::UsDfs,
        Region::UsEx,
        Region::Uk,
        Region::Eu,
        Region::Fr,
        Region::Se,
        Region::Au,
    ];

    pub const fn key(self) -> &'static str {
        match self {
            Region::Us => "us",
            Region::Us2 => "us2",
            Region::UsDfs => "us_dfs",
            Region::UsEx => "us_ex",
            Region::Uk => "uk",
            Region::Eu => "eu",
            Region::Fr => "fr",
            Region::Se => "se",
            Region::Au => "au",
        }
    }

    pub fn parse(text: &str) -> Option<Region> {
        Region::ALL.into_iter().find(|region| region.key() == text)
    }

    /// Its bit in a stored set. Files of format 3 and before have the first four, so these never change.
    const fn bit(self) -> u16 {
        let position = match self {
            Region::Us => 0,
            Region::Uk => 1,
            Region::Eu => 2,
            Region::Au => 3,
            Region::Us2 => 4,
            Region::UsDfs => 5,
            Region::UsEx => 6,
            Region::Fr => 7,
            Region::Se => 8,
        };
        1 << position
    }
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.key())
    }
}

/// A set of regions, written in the order of [`Region::ALL`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Regions(u16);

impl Regions {
    pub const NONE: Regions = Regions(0);
    pub const ALL: Regions = Regions(0x1ff);

    pub const fn only(region: Region) -> Self {
        Regions(region.bit())
    }

    #[must_use]
    pub const fn with(self, region: Region) -> Self {
        Regions(self.0 | region.bit())
    }

    pub const fn contains(self, region: Region) -> bool {
        self.0 & region.bit() != 0
    }

    pub const fn intersects(self, other: Regions) -> bool {
        self.0 & other.0 != 0
    }

    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn iter(self) -> impl Iterator<Item = Region> {
        Region::ALL.into_iter().filter(move |region| self.contains(*region))
    }

    /// The set as nine bits, for compact storage.
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// `None` if a bit is set that has no region.
    pub const fn from_bits(bits: u16) -> Option<Self> {
        if bits & !Regions::ALL.0 == 0 { Some(Regions(bits)) } else { None }
    }
}

impl FromIterator<Region> for Regions {
    fn from_iter<I: IntoIterator<Item = Region>>(regions: I) -> Self {
        regions.into_iter().fold(Regions::NONE, Regions::with)
    }
}
