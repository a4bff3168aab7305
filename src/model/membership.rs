//! The place of a file in a cluster.

use std::fmt;

/// The place of an entry in the log that the nodes of a cluster share: the milliseconds at which the engine took it, and its
/// number within them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId {
    pub ms: u64,
    pub number: u64,
}

impl EntryId {
    /// From the form in which an engine writes it: `1794657600000-0`.
    pub fn parse(text: &str) -> Option<Self> {
        let (ms, number) = text.split_once('-')?;
        Some(EntryId { ms: ms.parse().ok()?, number: number.parse().ok()? })
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.ms, self.number)
    }
}

/// Which shared log a file follows, and how far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Membership {
    /// The random number of the cluster.
    pub cluster: u64,
    /// Begins at 1. A log that was begun anew after the engine has lost the last one has the next.
    pub epoch: u64,
    /// A random number of the file: two of them are not the same node, whatever their names.
    pub file: u64,
    /// The last entry whose changes are in the file.
    pub applied: EntryId,
    /// The highest number of those that polled and published, one after the other. Entries of earlier ones are ignored.
    pub fence: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_ids_are_written_as_the_engine_writes_them_and_ordered_as_it_orders_them() {
        let id = EntryId { ms: 1_794_657_600_000, number: 7 };
        assert_eq!(id.to_string(), "1794657600000-7");
        assert_eq!(EntryId::parse("1794657600000-7"), Some(id));
        for wrong in ["", "1", "1-", "-1", "1-2-3", "a-1"] {
            assert_eq!(EntryId::parse(wrong), None, "{wrong}");
        }
        assert!(EntryId { ms: 9, number: 10 } > EntryId { ms: 9, number: 9 });
        assert!(EntryId { ms: 10, number: 0 } > EntryId { ms: 9, number: 10 });
    }
}
