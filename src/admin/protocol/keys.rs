//! Commands about keys and what they are answered with.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A key to be issued. What is left out is the default of its kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IssueKey {
    /// `sandbox` or `production`.
    pub kind: String,
    pub name: String,
    #[serde(default)]
    pub approved_by: Option<String>,
    #[serde(default)]
    pub groups: Vec<String>,
    #[serde(default)]
    pub burst_per_minute: Option<u32>,
    #[serde(default, skip_serializing_if = "FieldSetting::is_keep")]
    pub requests_per_day: FieldSetting<u64>,
    #[serde(default, skip_serializing_if = "FieldSetting::is_keep")]
    pub requests_per_month: FieldSetting<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<u32>,
    #[serde(default)]
    pub expires_in_s: Option<u32>,
    /// Whether its holder may rotate it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub self_service: bool,
}

/// Changes of a key. What is left out stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetKey {
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// An empty list lifts the restriction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst_per_minute: Option<u32>,
    #[serde(default, skip_serializing_if = "FieldSetting::is_keep")]
    pub requests_per_day: FieldSetting<u64>,
    #[serde(default, skip_serializing_if = "FieldSetting::is_keep")]
    pub requests_per_month: FieldSetting<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<u32>,
    #[serde(default, skip_serializing_if = "FieldSetting::is_keep")]
    pub expires_in_s: FieldSetting<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub self_service: Option<bool>,
    /// Begins its day and its month anew, with nothing used.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reset_usage: bool,
}

/// A value that a command may leave alone (by leaving it out), take away (`null`) or set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldSetting<T> {
    #[default]
    Keep,
    Remove,
    To(T),
}

impl<T> FieldSetting<T> {
    pub fn is_keep(&self) -> bool {
        matches!(self, FieldSetting::Keep)
    }
}

impl<T: Serialize> Serialize for FieldSetting<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            FieldSetting::Keep | FieldSetting::Remove => serializer.serialize_none(),
            FieldSetting::To(value) => value.serialize(serializer),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for FieldSetting<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::deserialize(deserializer)?.map_or(FieldSetting::Remove, FieldSetting::To))
    }
}

/// A key as it is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyAnswer {
    pub id: String,
    /// The secret: in the answers to issue and rotate only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<SecretText>,
    pub kind: String,
    pub name: String,
    pub groups: Vec<String>,
    pub scope: String,
    pub limits: LimitsAnswer,
    pub created: String,
    pub expires: Option<String>,
    pub approved_by: Option<String>,
    pub revoked: Option<String>,
    /// `active`, `revoked` or `expired`.
    pub status: String,
    /// Its prefix and its last four characters.
    pub hint: String,
    pub used_today: u64,
    pub used_this_month: u64,
    /// `null` without a daily limit.
    pub remaining_today: Option<u64>,
    pub last_used: Option<String>,
    /// Streams that are open now.
    pub open_streams: u64,
    /// Until when a secret that was rotated out still opens.
    pub old_secret_until: Option<String>,
    /// Until when the last rotation can be undone.
    pub undo_until: Option<String>,
    /// Whether its holder may rotate it.
    pub self_service: bool,
    /// Nodes of the cluster that may still go by what was before, because they are cut off.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unconfirmed: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitsAnswer {
    pub burst_per_minute: u32,
    pub requests_per_day: Option<u64>,
    pub requests_per_month: Option<u64>,
    pub streams: u32,
}

/// A secret on its way to whom it was issued. It is in no `Debug`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SecretText(String);

impl SecretText {
    pub(crate) fn new(text: &str) -> Self {
        SecretText(text.to_owned())
    }

    /// The text, to be shown once.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretText(…)")
    }
}
