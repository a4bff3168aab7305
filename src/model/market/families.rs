//! The market families and props of the catalogue: which keys read, and what their outcomes look like.

use std::collections::BTreeMap;

use super::key::{KeyParts, MarketKey};
use super::shape::MarketTraits;
use super::{Market, names};
use crate::model::sport::SportKind;
use crate::nearest::nearest;

/// The families and props of the catalogue, by key.
#[derive(Clone, Debug, Default)]
pub struct MarketFamilies {
    families: BTreeMap<Box<str>, MarketTraits>,
    props: BTreeMap<Box<str>, MarketTraits>,
}

impl MarketFamilies {
    pub fn new(families: BTreeMap<Box<str>, MarketTraits>, props: BTreeMap<Box<str>, MarketTraits>) -> Self {
        MarketFamilies { families, props }
    }

    /// In the order of their keys.
    pub fn families(&self) -> impl Iterator<Item = (&str, MarketTraits)> {
        self.families.iter().map(|(key, traits)| (&**key, *traits))
    }

    /// In the order of their keys.
    pub fn props(&self) -> impl Iterator<Item = (&str, MarketTraits)> {
        self.props.iter().map(|(key, traits)| (&**key, *traits))
    }

    /// Reads a key in the service's own names or in those of The Odds API.
    pub fn read(&self, text: &str, kind: SportKind) -> Option<MarketKey> {
        let own = names::from_v4(text, kind);
        let key = own.as_deref().unwrap_or(text);
        if let Some(market) = Market::find(key) {
            return Some(MarketKey::Known(market));
        }
        let parts = KeyParts::split(key)?;
        (parts.is_prop || self.families.contains_key(parts.base)).then(|| MarketKey::New(key.into()))
    }

    /// What is known of a market: `None` for a prop that the catalogue lacks.
    pub fn traits(&self, key: &str) -> Option<MarketTraits> {
        let parts = KeyParts::split(key)?;
        let known = if parts.is_prop { &self.props } else { &self.families };
        known.get(parts.base).copied()
    }

    /// The key that a mistyped one probably means: the nearest family or prop, with the other parts as they were typed.
    /// `seen` are keys beyond the catalogue.
    pub fn nearest<'k>(&self, typed: &str, seen: impl Iterator<Item = &'k str>) -> Option<String> {
        let typed = typed.to_ascii_lowercase();
        let seen_props = seen.filter_map(KeyParts::split).filter(|parts| parts.is_prop).map(|parts| parts.base);
        let props: Vec<&str> = self.props.keys().map(|key| &**key).chain(seen_props).collect();
        let v4: Vec<String> = self.families.keys().filter_map(|key| names::to_v4(key)).collect();
        let families = || self.families.keys().map(|key| &**key).chain(v4.iter().map(String::as_str));
        let Some(parts) = KeyParts::split(&typed) else {
            return nearest(&typed, families().chain(props)).map(str::to_owned);
        };
        let found =
            if parts.is_prop { nearest(parts.base, props.into_iter()) } else { nearest(parts.base, families()) };
        let start = if parts.is_alternate && !parts.is_prop { names::ALTERNATE.len() } else { 0 };
        Some([&typed[..start], found?, &typed[start + parts.base.len()..]].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::super::shape::{MarketShape, Settlement};
    use super::*;

    fn families() -> MarketFamilies {
        let traits = MarketTraits { shape: MarketShape::Ways, settlement: Settlement::ONE_WINNER };
        let of = |keys: &[&str]| keys.iter().map(|key| (Box::from(*key), traits)).collect();
        MarketFamilies::new(of(&["moneyline", "spread", "total_points"]), of(&["player_points", "batter_hits"]))
    }

    #[test]
    fn nearest_keeps_the_other_parts_of_the_key() {
        let nearest = |typed: &str| families().nearest(typed, ["player_dunks_q1", "btts_h1"].into_iter());
        for (typed, meant) in [
            ("Money line", "moneyline"),
            ("h2hh_q1", "h2h_q1"),
            ("alternate_spred_h1_lay", "alternate_spread_h1_lay"),
            ("alternate_totalls", "alternate_totals"),
            ("player_pionts_q1_alternate", "player_points_q1_alternate"),
            ("player_dunk", "player_dunks"),
        ] {
            assert_eq!(nearest(typed).as_deref(), Some(meant), "{typed}");
        }
        for typed in ["", "handicaps", "player_", "alternate_"] {
            assert_eq!(nearest(typed), None, "{typed}");
        }
    }
}
