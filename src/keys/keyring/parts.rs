//! A map in parts, of which a copy shares all that are not changed afterwards.

use std::array;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use foldhash::fast::RandomState;

/// A part for each value of a byte: enough that copying one of 100,000 keys takes microseconds, few enough that copying the
/// references does too.
const PARTS: usize = 256;

/// Keys that are spread over the parts.
pub(super) trait Parted {
    fn part(&self) -> u8;
}

#[derive(Clone, Debug)]
pub(super) struct PartedMap<K, V> {
    parts: Box<[Arc<HashMap<K, V, RandomState>>; PARTS]>,
}

impl<K, V> Default for PartedMap<K, V> {
    fn default() -> Self {
        PartedMap { parts: Box::new(array::from_fn(|_| Arc::default())) }
    }
}

impl<K: Clone + Eq + Hash + Parted, V: Clone> PartedMap<K, V> {
    pub(super) fn get(&self, key: &K) -> Option<&V> {
        self.parts[usize::from(key.part())].get(key)
    }

    pub(super) fn insert(&mut self, key: K, value: V) -> Option<V> {
        self.part_mut(&key).insert(key, value)
    }

    pub(super) fn remove(&mut self, key: &K) {
        self.part_mut(key).remove(key);
    }

    fn part_mut(&mut self, key: &K) -> &mut HashMap<K, V, RandomState> {
        Arc::make_mut(&mut self.parts[usize::from(key.part())])
    }

    pub(super) fn len(&self) -> usize {
        self.parts.iter().map(|part| part.len()).sum()
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &V> {
        self.parts.iter().flat_map(|part| part.values())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Parted for u32 {
        fn part(&self) -> u8 {
            self.to_le_bytes()[0]
        }
    }

    fn sorted(values: impl Iterator<Item = u32>) -> Vec<u32> {
        let mut values: Vec<_> = values.collect();
        values.sort_unstable();
        values
    }

    #[test]
    fn map_holds_what_was_put_in_and_its_copies_stay_as_they_were() {
        let (mut map, mut expected) = (PartedMap::default(), HashMap::new());
        let mut copies = Vec::new();
        for turn in 0..5_000_u32 {
            let key = turn.wrapping_mul(2_654_435_761) % 1_000;
            if turn % 3 == 0 {
                map.remove(&key);
                expected.remove(&key);
            } else {
                assert_eq!(map.insert(key, turn), expected.insert(key, turn));
            }
            if turn % 500 == 0 {
                copies.push((map.clone(), expected.clone()));
            }
        }
        for (map, expected) in copies.into_iter().chain([(map, expected)]) {
            assert_eq!(map.len(), expected.len());
            assert_eq!(sorted(map.values().copied()), sorted(expected.values().copied()));
            assert!((0..1_000).all(|key| map.get(&key) == expected.get(&key)));
        }
    }
}
