//! What the operator's file changes of the built-in catalogue.

use std::collections::BTreeSet;

use serde::Serialize;

use super::entries::Entries;

/// The keys that a file adds and those that it overrides, by list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CatalogueChanges {
    /// Whether the file stands alone.
    pub replace: bool,
    pub sports: ChangedKeys,
    pub competitions: ChangedKeys,
    pub market_families: ChangedKeys,
    pub props: ChangedKeys,
    pub bookmakers: ChangedKeys,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ChangedKeys {
    pub added: Vec<Box<str>>,
    pub overridden: Vec<Box<str>>,
}

impl ChangedKeys {
    fn new<'k>(below: impl Iterator<Item = &'k str>, above: impl Iterator<Item = &'k str>) -> Self {
        let below: BTreeSet<&str> = below.collect();
        let (overridden, added): (Vec<&str>, Vec<&str>) = above.partition(|key| below.contains(key));
        let boxed = |keys: Vec<&str>| keys.into_iter().map(Box::from).collect();
        ChangedKeys { added: boxed(added), overridden: boxed(overridden) }
    }
}

impl CatalogueChanges {
    pub(super) fn new(below: &Entries, above: &Entries, replace: bool) -> Self {
        CatalogueChanges {
            replace,
            sports: ChangedKeys::new(sports(below), sports(above)),
            competitions: ChangedKeys::new(
                below.competitions.iter().map(|listed| &*listed.key),
                above.competitions.iter().map(|listed| &*listed.key),
            ),
            market_families: ChangedKeys::new(
                below.market_families.keys().map(|key| &**key),
                above.market_families.keys().map(|key| &**key),
            ),
            props: ChangedKeys::new(below.props.keys().map(|key| &**key), above.props.keys().map(|key| &**key)),
            bookmakers: ChangedKeys::new(
                below.bookmakers.iter().map(|book| &*book.key),
                above.bookmakers.iter().map(|book| &*book.key),
            ),
        }
    }
}

fn sports(entries: &Entries) -> impl Iterator<Item = &str> {
    entries.sports.iter().map(|sport| &*sport.key).chain(entries.families.iter().map(|family| &**family))
}
