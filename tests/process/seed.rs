//! Test lengths, random choices and the change of the day.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The number for the short form or for the long form.
pub fn short_or_long<T>(short: T, long: T) -> T {
    if std::env::var_os("ODDSBOX_LONG_TESTS").is_some_and(|value| value == "1") { long } else { short }
}

/// Reproducible random numbers (`SplitMix64`). Prints its seed if the test that owns it fails.
#[derive(Debug)]
pub struct Random {
    seed: u64,
    state: u64,
}

impl Random {
    pub fn new() -> Random {
        let given = std::env::var("ODDSBOX_SEED").ok();
        let seed = match given {
            Some(seed) => seed.parse().expect("ODDSBOX_SEED is a number"),
            None => since_1970().subsec_nanos().into(),
        };
        Random::with_seed(seed)
    }

    /// A fixed sequence of numbers.
    pub fn with_seed(seed: u64) -> Random {
        Random { seed, state: seed }
    }

    /// An independent stream of numbers for another task. It does not print the seed.
    pub fn fork(&mut self) -> Stream {
        Stream(self.next())
    }

    pub fn next(&mut self) -> u64 {
        step(&mut self.state)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

impl Drop for Random {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the same choices again: ODDSBOX_SEED={}", self.seed);
        }
    }
}

/// Random numbers of one task.
#[derive(Debug)]
pub struct Stream(u64);

impl Stream {
    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        step(&mut self.0) % end
    }
}

fn step(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut word = *state;
    word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

/// Runs a test of daily quotas, which a new UTC day resets: a run that fails while the day changes is repeated once.
pub async fn within_a_day<F: Future<Output = ()>>(test: impl Fn() -> F) {
    let day = || since_1970().as_secs() / 86_400;
    let began = day();
    let mut first = pin!(test());
    let ended = poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| first.as_mut().poll(context))) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(())) => Poll::Ready(Ok(())),
        Err(panic) => Poll::Ready(Err(panic)),
    });
    match ended.await {
        Ok(()) => {}
        Err(_) if day() != began => test().await,
        Err(panic) => resume_unwind(panic),
    }
}

fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970")
}
