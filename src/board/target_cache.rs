//! Response cache keyed by the raw request target.
//!
//! A polling client sends the same target every time. The first request parses it and stores the answer under its
//! exact text; later requests find the answer by that text and skip parsing, for as long as the snapshot that owns the
//! cache lives. A lookup takes no lock and writes nothing that other threads read. The number of slots and of bytes is
//! fixed: a target whose slot is taken, or that does not fit, is parsed each time.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use foldhash::fast::RandomState;

use super::body::{ALL_CACHED, Body, KeptBytes};
use crate::attachment::Attachment;

/// A power of two, so that the lowest bits of a hash select a slot.
const SLOTS: usize = 512;
/// Counts the bodies as well: the cache may be the last owner of each of them.
const BYTES_MAX: usize = 8 << 20;

/// The answer to one request target.
#[derive(Debug)]
pub struct CachedAnswer {
    target: Box<str>,
    pub body: Arc<Body>,
    /// What was stored with it: the link to the next page.
    pub(crate) attachment: Attachment,
}

#[derive(Debug, Default)]
pub struct TargetCache {
    slots: OnceLock<Box<[OnceLock<Box<CachedAnswer>>]>>,
    bytes: AtomicUsize,
    hasher: RandomState,
}

impl TargetCache {
    pub fn get(&self, target: &str) -> Option<&CachedAnswer> {
        let answer = self.slots.get()?[self.slot_of(target)].get()?;
        (*answer.target == *target).then_some(answer)
    }

    /// Stores an answer with an attachment of so many bytes, if there is room. The target must not contain a secret.
    pub(crate) fn insert(&self, target: &str, body: &Arc<Body>, (attachment, attached): (Attachment, usize)) {
        if ALL_CACHED.is_full() {
            return;
        }
        let bytes = size_of::<CachedAnswer>() + target.len() + attached + body.kept_bytes();
        if self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > BYTES_MAX {
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
            return;
        }
        let slots = self.slots.get_or_init(|| std::iter::repeat_with(OnceLock::new).take(SLOTS).collect());
        let answer = CachedAnswer { target: target.into(), body: Arc::clone(body), attachment };
        if slots[self.slot_of(target)].set(Box::new(answer)).is_err() {
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    /// The memory in use, targets included.
    pub(super) fn kept_bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    fn slot_of(&self, target: &str) -> usize {
        usize::try_from(self.hasher.hash_one(target) % SLOTS as u64).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(len: usize) -> Arc<Body> {
        Arc::new(Body::new(vec![b'0'; len], None))
    }

    #[test]
    fn target_finds_its_own_answer_only() {
        let cache = TargetCache::default();
        assert!(cache.get("/a").is_none());
        let (first, second) = (body(1), body(2));
        cache.insert("/a", &first, (Attachment::new("<b>"), 3));
        cache.insert("/a", &second, (Attachment::default(), 0));
        let answer = cache.get("/a").unwrap();
        assert!(Arc::ptr_eq(&answer.body, &first), "the first answer stays");
        assert_eq!(answer.attachment.get::<&str>(), Some(&"<b>"));
        assert!(cache.get("/b").is_none());
    }

    #[test]
    fn target_whose_slot_is_taken_finds_nothing() {
        let cache = TargetCache::default();
        let targets: Vec<String> = (0..4 * SLOTS).map(|number| format!("/{number}")).collect();
        let bodies: Vec<_> = targets.iter().map(|_| body(3)).collect();
        targets.iter().zip(&bodies).for_each(|(target, body)| cache.insert(target, body, (Attachment::default(), 0)));
        let found = targets.iter().zip(&bodies).filter(|(target, body)| {
            cache.get(target).is_some_and(|answer| {
                assert!(Arc::ptr_eq(&answer.body, body), "{target}");
                true
            })
        });
        assert!((SLOTS / 2..=SLOTS).contains(&found.count()));
    }

    #[test]
    fn bytes_are_bounded() {
        let cache = TargetCache::default();
        let large = body(BYTES_MAX / 2);
        for target in ["/a", "/b", "/c"] {
            cache.insert(target, &large, (Attachment::default(), 0));
        }
        assert!(cache.get("/a").is_some() && cache.get("/b").is_none());
        // Neither a rejected answer nor one whose slot was taken counts toward the bound.
        cache.insert("/a", &large, (Attachment::default(), 0));
        (0..64).for_each(|number| cache.insert(&format!("/s{number}"), &body(8), (Attachment::default(), 0)));
        assert!((0..64).filter(|number| cache.get(&format!("/s{number}")).is_some()).count() > 32);
    }
}
