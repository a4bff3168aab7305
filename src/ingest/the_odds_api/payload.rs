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
    let (timestamp, events, is_list) = unwrap(text.trim_ascii())?;
    let at = Field::new("timestamp", timestamp).time().unwrap_or(ask.now);
    let format = match ask.odds_format {
        Some(format) => Some(format),
        None => format::shown(&events)?,
    };
    let context = PayloadContext { ask, format, at };
    let mut payload = Payload { is_list, ..Payload::default() };
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

/// The time that a response of the archive is of.
pub fn archive_time(bytes: &[u8]) -> Result<Timestamp, PayloadError> {
    let text = std::str::from_utf8(bytes).map_err(|error| PayloadError::BadJson(error.to_string().into()))?;
    let whole: &RawValue =
        serde_json::from_str(text).map_err(|error| PayloadError::BadJson(error.to_string().into()))?;
    let read = serde_json::from_str::<Object<Archive<'_>>>(whole.get());
    let Object(archive) = read.map_err(|_| PayloadError::NoTimestamp)?;
    Field::new("timestamp", archive.timestamp).time().map_err(|_| PayloadError::NoTimestamp)
}

/// The time of an archive, the events, and whether it is a list of them.
fn unwrap(text: &str) -> Result<(Raw<'_>, Vec<&RawValue>, bool), PayloadError> {
    let bad_json = |error: serde_json::Error| PayloadError::BadJson(error.to_string().into());
    if text.starts_with('[') {
        return serde_json::from_str(text).map(|events| (None, events, true)).map_err(bad_json);
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
            Ok((archive.timestamp, events, true))
        }
        Some(data) if data.get().starts_with('{') => Ok((archive.timestamp, vec![data], false)),
        // The body of an error is an object as well, but no event.
        None if parse(whole).is_ok_and(|line| line.id.is_some()) => Ok((None, vec![whole], false)),
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
