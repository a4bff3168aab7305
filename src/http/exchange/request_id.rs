//! The name of a request: in its answer, in its error and in its line of the log.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use http::{HeaderName, HeaderValue};

use crate::keys::may_hold_key;

pub(crate) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// A well-formed id: 1 to 128 of `A-Z a-z 0-9 . _ -`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestId(Origin);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Origin {
    Sent(HeaderValue),
    Made([u8; RequestIds::LEN]),
}

impl RequestId {
    const LEN_MAX: usize = 128;

    /// The id that the client sent, if it is well-formed. One that may be a key, put into the wrong header, is not
    /// repeated anywhere.
    fn sent(value: &HeaderValue) -> Option<Self> {
        // Over all bytes, without an early end: that compiles to vector instructions.
        let is_clean = value.as_bytes().iter().fold(true, |is_clean, byte| {
            is_clean & matches!(byte, b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'.' | b'_' | b'-')
        });
        let fits = (1..=Self::LEN_MAX).contains(&value.len());
        // Every key has an underscore; most ids have none, and need not be searched.
        let is_key = || value.as_bytes().contains(&b'_') && value.to_str().is_ok_and(may_hold_key);
        (fits && is_clean && !is_key()).then(|| RequestId(Origin::Sent(value.clone())))
    }

    pub fn as_str(&self) -> &str {
        match &self.0 {
            Origin::Sent(value) => value.to_str().unwrap_or_default(),
            Origin::Made(text) => str::from_utf8(text).unwrap_or_default(),
        }
    }

    pub(crate) fn header(&self) -> HeaderValue {
        match &self.0 {
            Origin::Sent(value) => value.clone(),
            Origin::Made(text) => HeaderValue::from_bytes(text).unwrap_or(HeaderValue::from_static("-")),
        }
    }
}

/// How many numbers a thread takes at a time: a counter that all threads write for each request would cost each of them
/// a cache miss.
const BLOCK: u64 = 1024;

static NEXT_BLOCK: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The next number of this thread; a multiple of `BLOCK` when it has to take a block.
    static NEXT: Cell<u64> = const { Cell::new(0) };
}

/// A number that this process has not used.
fn next_number() -> u64 {
    let next = NEXT.get();
    let number = if next.is_multiple_of(BLOCK) { NEXT_BLOCK.fetch_add(1, Ordering::Relaxed) * BLOCK } else { next };
    NEXT.set(number + 1);
    number
}

/// Makes ids that no other request has: a random word drawn once, and a number that the process uses once.
#[derive(Debug)]
pub(crate) struct RequestIds {
    process: [u8; RequestIds::PROCESS_LEN],
}

impl RequestIds {
    const PROCESS_LEN: usize = 12;
    const DIGITS: usize = 9;
    const LEN: usize = Self::PROCESS_LEN + 1 + Self::DIGITS;
    const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

    pub(crate) fn new() -> Self {
        let mut random = [0; Self::PROCESS_LEN];
        if getrandom::fill(&mut random).is_err() {
            // An id is a name and no secret: the time of the start tells this process from others well enough.
            let nanos = std::time::UNIX_EPOCH.elapsed().map_or(0, |elapsed| elapsed.as_nanos());
            random.copy_from_slice(&nanos.to_le_bytes()[..Self::PROCESS_LEN]);
        }
        let process = random.map(|byte| Self::ALPHABET[usize::from(byte & 31)]);
        RequestIds { process }
    }

    /// The client's own id, or a new one.
    pub(crate) fn id_of(&self, sent: Option<&HeaderValue>) -> RequestId {
        sent.and_then(RequestId::sent).unwrap_or_else(|| self.generate())
    }

    fn generate(&self) -> RequestId {
        let mut text = [b'-'; Self::LEN];
        text[..Self::PROCESS_LEN].copy_from_slice(&self.process);
        let mut number = next_number();
        for digit in text[Self::PROCESS_LEN + 1..].iter_mut().rev() {
            *digit = Self::ALPHABET[usize::from(number.to_le_bytes()[0] & 31)];
            number >>= 5;
        }
        RequestId(Origin::Made(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_distinct_and_well_formed() {
        let ids = RequestIds::new();
        let (first, second) = (ids.id_of(None), ids.id_of(None));
        assert_ne!(first, second);
        assert_eq!(first.as_str().len(), 22);
        assert_eq!(ids.id_of(Some(&first.header())).as_str(), first.as_str());
    }

    #[test]
    fn ids_of_several_threads_and_blocks_are_distinct() {
        let ids = RequestIds::new();
        let made = || (0..3 * BLOCK).map(|_| ids.id_of(None).as_str().to_owned()).collect::<Vec<_>>();
        let mut all = std::thread::scope(|scope| {
            let threads = [scope.spawn(made), scope.spawn(made)];
            threads.map(|thread| thread.join().unwrap()).concat()
        });
        all.extend(made());
        let distinct: std::collections::HashSet<&String> = all.iter().collect();
        assert_eq!(distinct.len(), all.len());
    }

    #[test]
    fn only_a_clean_id_is_kept() {
        let ids = RequestIds::new();
        let long = "a".repeat(129);
        let key = "sk_live_ob_x";
        for (sent, kept) in
            [(key, false), ("job-7.A_b", true), ("", false), ("a b", false), ("a\"b", false), (&*long, false)]
        {
            let value = HeaderValue::from_str(sent).unwrap();
            assert_eq!(ids.id_of(Some(&value)).as_str() == sent, kept, "{sent}");
        }
    }
}
