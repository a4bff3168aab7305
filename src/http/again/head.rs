//! The head of an answer in HTTP/1.1, written as the HTTP library writes it.

use http::{HeaderMap, StatusCode};
use jiff::fmt::rfc2822::DateTimePrinter;

use crate::board::render::json;

/// Room for the head of nearly every answer.
const BYTES: usize = 1 << 10;

/// A head in the making, in a buffer that is used over and over.
#[derive(Debug, Default)]
pub struct Head {
    bytes: Vec<u8>,
    /// The last `Date`, and the second that it stands for.
    date: (i64, Vec<u8>),
}

impl Head {
    pub(in crate::http) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Anything behind the head.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Begins anew.
    pub(in crate::http) fn begin(&mut self, status: StatusCode) {
        let out = &mut self.bytes;
        out.clear();
        out.reserve(BYTES);
        if status == StatusCode::OK {
            out.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
        } else {
            out.extend_from_slice(b"HTTP/1.1 ");
            out.extend_from_slice(status.as_str().as_bytes());
            out.push(b' ');
            out.extend_from_slice(status.canonical_reason().unwrap_or("<none>").as_bytes());
            out.extend_from_slice(b"\r\n");
        }
    }

    /// A header: `name` with its colon and space.
    pub(in crate::http) fn header(&mut self, name: &[u8], value: &[u8]) {
        self.header_with(name, |out| out.extend_from_slice(value));
    }

    /// A header whose value is written by whoever knows it.
    pub(in crate::http) fn header_with(&mut self, name: &[u8], write: impl FnOnce(&mut Vec<u8>)) {
        self.bytes.extend_from_slice(name);
        write(&mut self.bytes);
        self.bytes.extend_from_slice(b"\r\n");
    }

    pub(in crate::http) fn headers(&mut self, headers: &HeaderMap) {
        for (name, value) in headers {
            self.bytes.extend_from_slice(name.as_str().as_bytes());
            self.header(b": ", value.as_bytes());
        }
    }

    /// Ends the head of an answer that has so many bytes of body, or cannot have any.
    pub(in crate::http) fn end(&mut self, body_bytes: Option<usize>, unix_s: i64) {
        self.set_date(unix_s);
        if let Some(count) = body_bytes {
            self.header_with(b"content-length: ", |out| json::integer(count, out));
        }
        self.bytes.extend_from_slice(b"date: ");
        self.bytes.extend_from_slice(&self.date.1);
        self.bytes.extend_from_slice(b"\r\n\r\n");
    }

    fn set_date(&mut self, unix_s: i64) {
        if self.date.0 == unix_s && !self.date.1.is_empty() {
            return;
        }
        let (at, text) = &mut self.date;
        *at = unix_s;
        text.clear();
        if let Ok(moment) = jiff::Timestamp::from_second(unix_s) {
            // Fails for no time that a clock can have.
            let written = DateTimePrinter::new().timestamp_to_rfc9110_string(&moment);
            text.extend_from_slice(written.unwrap_or_default().as_bytes());
        }
    }
}
