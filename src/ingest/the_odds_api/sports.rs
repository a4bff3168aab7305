//! The list of sport keys that an upstream has.

use serde::Deserialize;

use super::PayloadError;

/// A sport key, and whether it is in season.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct SportEntry {
    pub key: Box<str>,
    #[serde(default)]
    pub active: bool,
}

/// Reads the list.
pub fn read(bytes: &[u8]) -> Result<Vec<SportEntry>, PayloadError> {
    serde_json::from_slice(bytes).map_err(|error| PayloadError::BadJson(error.to_string().into()))
}
