//! Log lines as JSON objects, a line each. Every answer has a line in the access log, so they are written straight into bytes.

use std::fmt::{self, Write as _};
use std::time::{SystemTime, UNIX_EPOCH};

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use crate::board::render::json;
use crate::log::LogWriter;
use crate::model::Timestamp;

/// Enough for nearly every line.
const LINE_BYTES: usize = 512;

/// Writes every event as one line.
#[derive(Debug)]
pub(super) struct JsonLines(pub(super) LogWriter);

impl<S: Subscriber> Layer<S> for JsonLines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let micros = i64::try_from(now.as_micros()).unwrap_or(i64::MAX);
        self.0.push(&line(event, micros));
    }
}

fn line(event: &Event<'_>, unix_micros: i64) -> Vec<u8> {
    let mut out = Vec::with_capacity(LINE_BYTES);
    out.extend_from_slice(b"{\"timestamp\":\"");
    Timestamp::write_micros(unix_micros, &mut out);
    out.extend_from_slice(b"\",\"level\":\"");
    out.extend_from_slice(event.metadata().level().as_str().as_bytes());
    out.push(b'"');
    event.record(&mut Fields(&mut out));
    out.extend_from_slice(b",\"target\":");
    json::string(event.metadata().target(), &mut out);
    out.extend_from_slice(b"}\n");
    out
}

/// Appends each field of an event as a member of its object.
struct Fields<'a>(&'a mut Vec<u8>);

impl Fields<'_> {
    fn name(&mut self, field: &Field) {
        self.0.push(b',');
        json::string(field.name().trim_start_matches("r#"), self.0);
        self.0.push(b':');
    }
}

impl Visit for Fields<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.name(field);
        json::string(value, self.0);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.name(field);
        json::integer(value, self.0);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.name(field);
        json::integer(value, self.0);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.name(field);
        self.0.extend_from_slice(if value { b"true" } else { b"false" });
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.name(field);
        // JSON has no other numbers.
        if value.is_finite() {
            self.0.extend_from_slice(format!("{value:?}").as_bytes());
        } else {
            self.0.extend_from_slice(b"null");
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.name(field);
        self.0.push(b'"');
        // Writing to memory does not fail; if the value does, its line has what there is of it.
        let _ = write!(Escaped(self.0), "{value:?}");
        self.0.push(b'"');
    }
}

/// Escapes what is written to it.
struct Escaped<'a>(&'a mut Vec<u8>);

impl fmt::Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        json::string_part(text, self.0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use proptest::prelude::*;
    use serde_json::{Value, json};
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    /// Keeps the lines, at one moment.
    #[derive(Clone, Debug, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl<S: Subscriber> Layer<S> for Kept {
        fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
            self.0.lock().unwrap().extend(line(event, 1_794_000_000_000_042));
        }
    }

    fn logged(log: impl FnOnce()) -> String {
        let kept = Kept::default();
        tracing::subscriber::with_default(tracing_subscriber::registry().with(kept.clone()), log);
        let lines = kept.0.lock().unwrap().clone();
        String::from_utf8(lines).unwrap()
    }

    #[test]
    fn line_has_its_time_level_fields_and_target_in_order() {
        let line = logged(|| {
            let (client, peer) = (std::net::IpAddr::from([127, 0, 0, 1]), None::<&str>);
            tracing::info!(target: "access", status = 200_u16, micros = -3_i64, share = 0.5, is_new = true, %client, peer, "a \"line\"\n");
        });
        assert_eq!(
            line,
            "{\"timestamp\":\"2026-11-06T21:20:00.000042Z\",\"level\":\"INFO\",\"message\":\"a \\\"line\\\"\\u000a\",\
             \"status\":200,\"micros\":-3,\"share\":0.5,\"is_new\":true,\"client\":\"127.0.0.1\",\"target\":\"access\"}\n"
        );
    }

    #[test]
    fn numbers_that_json_lacks_are_null() {
        let line = logged(|| tracing::warn!(ratio = f64::NAN, r#type = 1e300));
        let read: Value = serde_json::from_str(&line).unwrap();
        assert_eq!((&read["ratio"], &read["type"]), (&Value::Null, &json!(1e300)));
    }

    proptest! {
        #[test]
        fn any_text_is_one_line_and_reads_back(text in "(?s).{0,40}", shown in "(?s).{0,40}") {
            let line = logged(|| tracing::error!(text, %shown));
            prop_assert_eq!(line.lines().count(), 1);
            let read: Value = serde_json::from_str(&line).unwrap();
            prop_assert_eq!((&read["text"], &read["shown"]), (&json!(text), &json!(shown)));
        }
    }
}
