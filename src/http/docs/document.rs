//! The `OpenAPI` document as the page needs it: what is shown, in the order in which it is written.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;

/// The entries of an object, in order.
#[derive(Debug)]
pub(super) struct Pairs<T>(pub Vec<(String, T)>);

impl<T> Pairs<T> {
    pub(super) fn get(&self, name: &str) -> Option<&T> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T> Default for Pairs<T> {
    fn default() -> Self {
        Pairs(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Pairs<T> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for InOrder<T> {
            type Value = Pairs<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    pairs.push(entry);
                }
                Ok(Pairs(pairs))
            }
        }

        deserializer.deserialize_map(InOrder(PhantomData))
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Document {
    pub info: Info,
    pub paths: Pairs<PathItem>,
    pub components: Components,
}

#[derive(Debug, Deserialize)]
pub(super) struct Info {
    pub version: String,
    pub summary: String,
    pub description: String,
}

/// Each path has one method, by whose name it is found.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum PathItem {
    Get(Operation),
    Post(Operation),
}

impl PathItem {
    pub(super) fn operation(&self) -> &Operation {
        let (PathItem::Get(operation) | PathItem::Post(operation)) = self;
        operation
    }

    pub(super) const fn is_get(&self) -> bool {
        matches!(self, PathItem::Get(_))
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Operation {
    #[serde(rename = "operationId")]
    pub id: String,
    pub tags: Vec<String>,
    pub summary: String,
    #[serde(default)]
    pub description: String,
    /// A request target to show and to try.
    #[serde(rename = "x-example")]
    pub example: Option<String>,
    /// What the example of a POST sends.
    #[serde(rename = "x-example-body")]
    pub example_body: Option<String>,
    #[serde(default)]
    pub parameters: Vec<Reference>,
    pub responses: Pairs<Response>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Reference {
    #[serde(rename = "$ref")]
    pub target: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct DocumentedParameter {
    pub name: String,
    #[serde(rename = "in")]
    pub place: String,
    pub description: String,
    #[serde(default)]
    pub required: bool,
    pub schema: Schema,
}

/// A response, or a reference to one.
#[derive(Debug, Deserialize)]
pub(super) struct Response {
    #[serde(rename = "$ref")]
    pub reference: Option<String>,
    #[serde(default)]
    pub description: String,
    #[serde(default)]
    pub headers: Pairs<serde::de::IgnoredAny>,
    #[serde(default)]
    pub content: Pairs<Media>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Media {
    pub example: Option<Box<RawValue>>,
    #[serde(default)]
    pub examples: Pairs<Example>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Example {
    pub value: Box<RawValue>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Header {
    pub description: String,
    pub example: Box<RawValue>,
}

/// A schema, or a reference to one.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Schema {
    #[serde(rename = "$ref")]
    pub reference: Option<String>,
    #[serde(rename = "type")]
    pub types: Option<Types>,
    #[serde(default)]
    pub description: String,
    /// `None` where null is one of them.
    #[serde(default, rename = "enum")]
    pub values: Vec<Option<String>>,
    pub default: Option<Box<RawValue>>,
    pub minimum: Option<i64>,
    pub maximum: Option<i64>,
    pub max_items: Option<u64>,
    pub items: Option<Box<Schema>>,
    #[serde(default)]
    pub one_of: Vec<Schema>,
    #[serde(default)]
    pub properties: Pairs<Schema>,
    #[serde(default)]
    pub required: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Types {
    One(String),
    Any(Vec<String>),
}

#[derive(Debug, Deserialize)]
pub(super) struct Components {
    pub parameters: Pairs<DocumentedParameter>,
    pub headers: Pairs<Header>,
    pub responses: Pairs<Response>,
    pub schemas: Pairs<Schema>,
}

impl Document {
    pub(super) fn parameter(&self, reference: &Reference) -> Option<&DocumentedParameter> {
        self.components.parameters.get(name_of(&reference.target))
    }

    /// The response itself, wherever it is written.
    pub(super) fn response<'d>(&'d self, response: &'d Response) -> &'d Response {
        let named = response.reference.as_ref().and_then(|target| self.components.responses.get(name_of(target)));
        named.unwrap_or(response)
    }
}

/// The last part of a reference.
pub(super) fn name_of(target: &str) -> &str {
    target.rsplit('/').next().unwrap_or(target)
}
