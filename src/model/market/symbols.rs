//! The table of market keys of this process. It only grows, is bounded, and is read without a lock.

use std::collections::HashMap;
use std::sync::{LazyLock, OnceLock, PoisonError, RwLock};

use super::{Market, names};

/// What is known of a market from its key alone.
#[derive(Debug)]
pub(super) struct Symbol {
    pub(super) key: &'static str,
    pub(super) v4_key: &'static str,
    pub(super) is_lay: bool,
}

struct Symbols {
    slots: Box<[OnceLock<Symbol>]>,
    by_key: RwLock<HashMap<&'static str, Market>>,
}

static SYMBOLS: LazyLock<Symbols> = LazyLock::new(Symbols::new);

/// The featured markets, in the order of their numbers.
const FEATURED: [(&str, &str); Market::FEATURED.len()] = [
    ("moneyline", "h2h"),
    ("spread", "spreads"),
    ("total_rounds", "totals"),
    ("total_points", "totals"),
    ("outright", "outrights"),
    ("top5", "top5"),
    ("top10", "top10"),
    ("top20", "top20"),
    ("three_ball", "three_ball"),
    ("matchup", "matchup"),
    ("round_leader", "round_leader"),
];

pub(super) fn is_featured(key: &str) -> bool {
    FEATURED.iter().any(|(featured, _)| *featured == key)
}

impl Symbols {
    fn new() -> Self {
        let slots: Box<[OnceLock<Symbol>]> = (0..Market::MAX).map(|_| OnceLock::new()).collect();
        let mut by_key = HashMap::new();
        for (market, (key, v4_key)) in Market::FEATURED.into_iter().zip(FEATURED) {
            let _ = slots[market.index()].set(Symbol { key, v4_key, is_lay: false });
            by_key.insert(key, market);
        }
        Symbols { slots, by_key: RwLock::new(by_key) }
    }
}

/// The symbol with a number that was handed out.
pub(super) fn get(number: u16) -> &'static Symbol {
    const UNKNOWN: &Symbol = &Symbol { key: "", v4_key: "", is_lay: false };
    SYMBOLS.slots.get(usize::from(number)).and_then(OnceLock::get).unwrap_or(UNKNOWN)
}

pub(super) fn find(key: &str) -> Option<Market> {
    SYMBOLS.by_key.read().unwrap_or_else(PoisonError::into_inner).get(key).copied()
}

/// The market of a key. A new one takes the next free slot, and its text is never freed: the table is bounded.
pub(super) fn intern(key: &str) -> Option<Market> {
    let mut by_key = SYMBOLS.by_key.write().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = by_key.get(key) {
        return Some(*known);
    }
    let slot = SYMBOLS.slots.get(by_key.len())?;
    let market = Market(u16::try_from(by_key.len()).ok()?);
    let key: &'static str = Box::leak(Box::from(key));
    let v4_key: &'static str = match names::to_v4(key) {
        Some(v4_key) => Box::leak(v4_key.into_boxed_str()),
        None => key,
    };
    let _ = slot.set(Symbol { key, v4_key, is_lay: key.ends_with("_lay") });
    by_key.insert(key, market);
    Some(market)
}
