//! Answers by the very words that they were asked in.
//!
//! Whoever polls asks in the same words every time. The first time they are understood, and the answer is put down
//! beside them; from then on, and for as long as the snapshot lives that holds this, reading them is finding them.
//! Looking waits for nobody and writes nothing that other threads look at. There are so many places, and so many bytes
//! may be held, and no more: words that find their place taken are understood each time, as if this were not here.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use foldhash::fast::RandomState;
use http::HeaderValue;

use super::body::Body;

/// A power of two, so that a hash finds its place by its lowest bits.
const PLACES: usize = 512;
/// Bodies that only this keeps alive are few, but could be all of them.
const BYTES_MAX: usize = 8 << 20;

/// What was answered.
#[derive(Debug)]
pub struct Said {
    words: Box<str>,
    pub body: Arc<Body>,
    /// Where the next page is, as the answer's header says it.
    pub link: Option<HeaderValue>,
}

#[derive(Debug, Default)]
pub struct Words {
    places: OnceLock<Box<[OnceLock<Box<Said>>]>>,
    bytes: AtomicUsize,
    hasher: RandomState,
}

impl Words {
    pub fn find(&self, words: &str) -> Option<&Said> {
        let said = self.places.get()?[self.place(words)].get()?;
        (*said.words == *words).then_some(said)
    }

    /// Keeps an answer, if there is room. The words must hold no secret.
    pub fn keep(&self, words: &str, body: &Arc<Body>, link: Option<HeaderValue>) {
        let bytes = size_of::<Said>() + words.len() + link.as_ref().map_or(0, HeaderValue::len) + body.kept_bytes();
        if self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > BYTES_MAX {
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
            return;
        }
        let places = self.places.get_or_init(|| std::iter::repeat_with(OnceLock::new).take(PLACES).collect());
        let said = Said { words: words.into(), body: Arc::clone(body), link };
        if places[self.place(words)].set(Box::new(said)).is_err() {
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    /// The memory that is in use, the words included.
    pub(super) fn kept_bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    fn place(&self, words: &str) -> usize {
        usize::try_from(self.hasher.hash_one(words) % PLACES as u64).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(len: usize) -> Arc<Body> {
        Arc::new(Body::new(vec![b'0'; len], None))
    }

    #[test]
    fn the_same_words_find_the_same_answer_and_others_do_not() {
        let words = Words::default();
        assert!(words.find("/a").is_none());
        let (first, second) = (body(1), body(2));
        words.keep("/a", &first, Some(HeaderValue::from_static("<b>")));
        words.keep("/a", &second, None);
        let said = words.find("/a").unwrap();
        assert!(Arc::ptr_eq(&said.body, &first), "what was said first stays");
        assert_eq!(said.link.as_ref().unwrap(), "<b>");
        assert!(words.find("/b").is_none());
    }

    #[test]
    fn a_place_that_is_taken_says_nothing_of_other_words() {
        let words = Words::default();
        let asked: Vec<String> = (0..4 * PLACES).map(|number| format!("/{number}")).collect();
        let bodies: Vec<_> = asked.iter().map(|_| body(3)).collect();
        asked.iter().zip(&bodies).for_each(|(asked, body)| words.keep(asked, body, None));
        let found = asked.iter().zip(&bodies).filter(|(asked, body)| {
            words.find(asked).is_some_and(|said| {
                assert!(Arc::ptr_eq(&said.body, body), "{asked}");
                true
            })
        });
        assert!((PLACES / 2..=PLACES).contains(&found.count()));
    }

    #[test]
    fn bytes_are_bounded() {
        let words = Words::default();
        let large = body(BYTES_MAX / 2);
        for asked in ["/a", "/b", "/c"] {
            words.keep(asked, &large, None);
        }
        assert!(words.find("/a").is_some() && words.find("/b").is_none());
        // What was turned away took no room, and neither did what found its place taken.
        words.keep("/a", &large, None);
        (0..64).for_each(|number| words.keep(&format!("/s{number}"), &body(8), None));
        assert!((0..64).filter(|number| words.find(&format!("/s{number}")).is_some()).count() > 32);
    }
}
