//! Parses a whole payload: finds out its shape, then parses its events one by one.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::event::EventLine;
use super::{Message, PAYLOAD_BYTES_MAX, Payload, PayloadError, PayloadTerms, format};
use crate::ingest::wire::Rejection;
use crate::ingest::wire::field::{Field, Object, Raw};
use crate::model::{News, OddsFormat, Reason, Timestamp};

/// The wrapper of an archive; a bare event has neither field.
#[derive(Deserialize)]
struct Archive<'a> {
    #[serde(borrow)]
    timestamp: Raw<'a>,
    #[serde(borrow)]
    data: Raw<'a>,
}

/// What the events of a payload are parsed with.
pub(super) struct PayloadContext<'a> {
    pub(super) ask: PayloadTerms<'a>,
    /// `None` if there is no price in it.
    pub(super) format: Option<OddsFormat>,
    /// The time of the payload, for records without a time of their own.
    pub(super) at: Timestamp,
}

/// Parses a payload. It is an error only if nothing of it can be used.
pub fn read(bytes: &[u8], ask: PayloadTerms<'_>) -> Result<Payload, PayloadError> {
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
    let context = PayloadContext { ask, format, at };
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
        // The body of an error is an object as well, but no event.
        None if parse(whole).is_ok_and(|line| line.id.is_some()) => Ok((None, vec![whole])),
        _ => Err(PayloadError::OtherShape),
    }
}

fn parse(raw: &RawValue) -> Result<EventLine<'_>, Rejection> {
    let read = serde_json::from_str::<Object<EventLine<'_>>>(raw.get());
    read.map(|Object(line)| line).map_err(|error| Rejection::new(Reason::BadJson, format!("no event: {error}")))
}

impl Payload {
    /// Adds a message of the event that is being parsed.
    pub(super) fn push(&mut self, news: News) {
        self.messages.push(Message { event: self.events, news });
    }

    /// Counts a rejected part of the event that is being parsed.
    pub(super) fn reject_current(&mut self, rejection: Rejection) {
        self.reject(self.events, rejection);
    }
}
