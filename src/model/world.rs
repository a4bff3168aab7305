//! The two separate worlds of data: sandbox keys read one, production keys the other.

use std::fmt;

/// A world. All data except keys, the audit log and the catalogue of sports belongs to exactly one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum World {
    /// Read by `sk_test_` keys, always fed by the simulator.
    Sandbox,
    /// Read by `sk_live_` keys, fed by the operator.
    Live,
}

impl World {
    pub const ALL: [World; 2] = [World::Sandbox, World::Live];

    pub const fn name(self) -> &'static str {
        match self {
            World::Sandbox => "sandbox",
            World::Live => "live",
        }
    }

    pub fn parse(text: &str) -> Option<World> {
        World::ALL.into_iter().find(|world| world.name() == text)
    }

    pub const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
