//! One field of a line: its name, its unparsed text, and the types that it can be parsed as. Each parser fails with the
//! field's name and what it accepts.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeInclusive;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{Rejection, TEXT_BYTES_MAX, time};
use crate::model::number::{Scaled, parse_scaled};
use crate::model::{EventId, Reason, Timestamp, sport};

/// The unparsed value of a field; absent and null are the same.
pub(in crate::ingest) type Raw<'a> = Option<&'a RawValue>;

/// Reads a JSON object only; serde on its own would also take an array for a struct.
pub(in crate::ingest) struct Object<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = Object<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Object)
    }
}

/// A field with its name.
#[derive(Clone, Copy)]
pub(in crate::ingest) struct Field<'a> {
    pub name: &'static str,
    pub raw: Raw<'a>,
}

impl<'a> Field<'a> {
    pub(in crate::ingest) const fn new(name: &'static str, raw: Raw<'a>) -> Self {
        Field { name, raw }
    }

    pub(in crate::ingest) const fn is_given(self) -> bool {
        self.raw.is_some()
    }

    /// The text of the JSON value, whatever it is.
    pub(in crate::ingest) fn json(self) -> Result<&'a str, Rejection> {
        match self.raw {
            Some(raw) => Ok(raw.get()),
            None => Err(Rejection::new(Reason::MissingField, format!("{:?} is missing", self.name))),
        }
    }

    pub(in crate::ingest) fn takes(self, what: impl fmt::Display) -> Rejection {
        Rejection::new(Reason::BadField, format!("{:?} takes {what}", self.name))
    }

    /// The content of a JSON string.
    pub(in crate::ingest) fn string(self) -> Result<Cow<'a, str>, Rejection> {
        unquote(self.json()?).ok_or_else(|| self.takes("a string"))
    }

    /// A name for people: not blank, bounded, without control characters. It is kept as it is, blanks around it
    /// included: what comes in goes out unchanged.
    pub(in crate::ingest) fn text(self) -> Result<Cow<'a, str>, Rejection> {
        let text = self.string()?;
        let fits = text.len() <= TEXT_BYTES_MAX && !text.trim().is_empty();
        if fits && !text.chars().any(char::is_control) {
            return Ok(text);
        }
        Err(self.takes(format_args!("a text of 1 to {TEXT_BYTES_MAX} bytes without control characters")))
    }

    /// A sport's or a bookmaker's key.
    pub(in crate::ingest) fn key(self) -> Result<Cow<'a, str>, Rejection> {
        let key = self.string()?;
        if sport::is_key(&key) { Ok(key) } else { Err(self.takes("a key of 1 to 40 of a to z, 0 to 9 and _")) }
    }

    pub(in crate::ingest) fn event_id(self) -> Result<EventId, Rejection> {
        EventId::new(&self.string()?).ok_or_else(|| {
            self.takes(format_args!(
                "an id of 1 to {} bytes without white space, commas and control characters",
                EventId::BYTES_MAX
            ))
        })
    }

    pub(in crate::ingest) fn time(self) -> Result<Timestamp, Rejection> {
        time::parse(&self.string()?).ok_or_else(|| {
            let detail = format!("{:?} takes a time from 1970 to 2105 such as 2026-11-14T23:39:00Z", self.name);
            Rejection::new(Reason::BadTime, detail)
        })
    }

    /// A whole number within bounds; `21.0` is one.
    pub(in crate::ingest) fn whole(self, bounds: RangeInclusive<i32>) -> Result<i32, Rejection> {
        match parse_scaled(self.json()?, 0) {
            Some(Scaled { value, exact: true }) => i32::try_from(value).ok().filter(|value| bounds.contains(value)),
            _ => None,
        }
        .ok_or_else(|| self.takes(format_args!("a whole number from {} to {}", bounds.start(), bounds.end())))
    }

    /// One of a closed set of names.
    pub(in crate::ingest) fn boolean(self) -> Result<bool, Rejection> {
        match self.json()? {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(self.takes("true or false")),
        }
    }

    pub(in crate::ingest) fn one_of<T>(
        self,
        parse: impl Fn(&str) -> Option<T>,
        names: &[&str],
    ) -> Result<T, Rejection> {
        parse(&self.string()?).ok_or_else(|| self.takes(format_args!("one of {}", names.join(", "))))
    }

    /// The elements of a JSON array.
    pub(in crate::ingest) fn list<T: Deserialize<'a>>(self) -> Result<Vec<T>, Rejection> {
        serde_json::from_str(self.json()?).map_err(|error| self.takes(format_args!("a list: {error}")))
    }

    /// Rejects a field that this type of line must not have.
    pub(in crate::ingest) fn absent(self, why: &str) -> Result<(), Rejection> {
        if !self.is_given() {
            return Ok(());
        }
        Err(Rejection::new(Reason::BadField, format!("{:?} must be absent or null: {why}", self.name)))
    }
}

/// The content of a JSON string, borrowed unless it has escapes. `None` if the value is no string.
pub(in crate::ingest) fn unquote(json: &str) -> Option<Cow<'_, str>> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') { serde_json::from_str(json).ok().map(Cow::Owned) } else { Some(Cow::Borrowed(inner)) }
}
