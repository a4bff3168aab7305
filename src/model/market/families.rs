//! The market families and props of the catalogue: which keys read, and what their outcomes look like.

use std::collections::BTreeMap;

use super::key::{KeyParts, MarketKey};
use super::shape::MarketTraits;
use super::{Market, names};
use crate::model::sport::SportKind;

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

    /// The families and props, for suggestions.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.families.keys().chain(self.props.keys()).map(|key| &**key)
    }
}
