//! A whole payload: which of its shapes it has, and its events one after the other.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::event::EventLine;
use super::{Ask, Message, PAYLOAD_BYTES_MAX, Payload, PayloadError, format};
use crate::ingest::wire::Rejection;
use crate::ingest::wire::field::{Field, Object, Raw};
use crate::model::{News, OddsFormat, Reason, Timestamp};

/// An archive's wrapper; a bare event has neither field.
#[derive(Deserialize)]
struct Archive<'a> {
    #[serde(borrow)]
    timestamp: Raw<'a>,
    #[serde(borrow)]
    data: Raw<'a>,
}

/// What the events of a payload are read with.
pub(super) struct Context<'a> {
    pub(super) ask: Ask<'a>,
    /// `None` if there is no price in it.
    pub(super) format: Option<OddsFormat>,
    /// When the payload speaks of: for what carries no time of its own.
    pub(super) at: Timestamp,
}

/// Reads a payload. Either something of it can be used, or the error says why nothing can.
pub fn read(bytes: &[u8], ask: Ask<'_>) -> Result<Payload, PayloadError> {
    if bytes.len() > PAYLOAD_BYTES_MAX {
        return Err(PayloadError::TooLong(bytes.len()));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| PayloadError::BadJson(error.to_string().into()))?;
    let (timestamp, events) = unwrap(text.trim_ascii())?;
    let at = Field::new("timestamp", timestamp).time().unwrap_or(ask.now);
    let format = match ask.odds_format {
        Some(format) => Some(format),
        None => format::shown(&events)?,
    };
    let context = Context { ask, format, at };
    let mut payload = Payload::default();
    for raw in events {
        payload.events += 1;
        let number = payload.events;
        match parse(raw).and_then(|line| line.event(&context).map(|event| (line, event))) {
            Ok((line, event)) => {
                line.read_into(event, &context, &mut payload);
            }
            Err(rejection) => payload.reject(number, rejection),
        }
    }
    Ok(payload)
}

/// The time of an archive, and the events.
fn unwrap(text: &str) -> Result<(Raw<'_>, Vec<&RawValue>), PayloadError> {
    let bad_json = |error: serde_json::Error| PayloadError::BadJson(error.to_string().into());
    if text.starts_with('[') {
        return serde_json::from_str(text).map(|events| (None, events)).map_err(bad_json);
    }
    let whole: &RawValue = serde_json::from_str(text).map_err(bad_json)?;
    if !text.starts_with('{') {
        return Err(PayloadError::OtherShape);
    }
    let Ok(Object(archive)) = serde_json::from_str::<Object<Archive<'_>>>(text) else {
        return Err(PayloadError::OtherShape);
    };
    match archive.data {
        Some(data) if data.get().starts_with('[') => {
            let events = serde_json::from_str(data.get()).map_err(bad_json)?;
            Ok((archive.timestamp, events))
        }
        Some(data) if data.get().starts_with('{') => Ok((archive.timestamp, vec![data])),
        // An answer that tells of an error is an object as well, and is no event.
        None if parse(whole).is_ok_and(|line| line.id.is_some()) => Ok((None, vec![whole])),
        _ => Err(PayloadError::OtherShape),
    }
}

fn parse(raw: &RawValue) -> Result<EventLine<'_>, Rejection> {
    let read = serde_json::from_str::<Object<EventLine<'_>>>(raw.get());
    read.map(|Object(line)| line).map_err(|error| Rejection::new(Reason::BadJson, format!("no event: {error}")))
}

impl Payload {
    /// Adds a message of the event that is being read.
    pub(super) fn push(&mut self, news: News) {
        self.messages.push(Message { event: self.events, news });
    }

    /// Counts what was not taken of the event that is being read.
    pub(super) fn turn_away(&mut self, rejection: Rejection) {
        self.reject(self.events, rejection);
    }
}
