//! The four regions that bookmakers are offered in, and sets of them.

use std::fmt;

/// A market area of bookmakers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Region {
    Us,
    Uk,
    Eu,
    Au,
}

impl Region {
    pub const ALL: [Region; 4] = [Region::Us, Region::Uk, Region::Eu, Region::Au];

    pub const fn key(self) -> &'static str {
        match self {
            Region::Us => "us",
            Region::Uk => "uk",
            Region::Eu => "eu",
            Region::Au => "au",
        }
    }

    pub fn parse(text: &str) -> Option<Region> {
        Region::ALL.into_iter().find(|region| region.key() == text)
    }
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.key())
    }
}

/// A set of regions, written in the order us, uk, eu, au.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Regions(u8);

impl Regions {
    pub const NONE: Regions = Regions(0);
    pub const ALL: Regions = Regions(0b1111);

    pub const fn only(region: Region) -> Self {
        Regions(1 << region as u8)
    }

    #[must_use]
    pub const fn with(self, region: Region) -> Self {
        Regions(self.0 | 1 << region as u8)
    }

    pub const fn contains(self, region: Region) -> bool {
        self.0 & (1 << region as u8) != 0
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

    /// The set as four bits, for compact storage.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// `None` if a bit is set that has no region.
    pub const fn from_bits(bits: u8) -> Option<Self> {
        if bits & !Regions::ALL.0 == 0 { Some(Regions(bits)) } else { None }
    }
}

impl FromIterator<Region> for Regions {
    fn from_iter<I: IntoIterator<Item = Region>>(regions: I) -> Self {
        regions.into_iter().fold(Regions::NONE, Regions::with)
    }
}
