//! The head of an answer in HTTP/1.1, written as the HTTP library writes it.

use std::io::Write;

use http::{HeaderMap, StatusCode};
use jiff::fmt::rfc2822::DateTimePrinter;

/// Room for the head of nearly every answer.
const BYTES: usize = 768;

/// A head in the making, in a buffer that a connection uses over and over.
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

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Begins anew.
    pub(in crate::http) fn write(&mut self, status: StatusCode, headers: &HeaderMap, body_bytes: usize, unix_s: i64) {
        self.set_date(unix_s);
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
        for (name, value) in headers {
            out.extend_from_slice(name.as_str().as_bytes());
            out.extend_from_slice(b": ");
            out.extend_from_slice(value.as_bytes());
            out.extend_from_slice(b"\r\n");
        }
        if status != StatusCode::NOT_MODIFIED {
            out.extend_from_slice(b"content-length: ");
            // A vector takes what is written to it.
            let _ = write!(out, "{body_bytes}");
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(b"date: ");
        out.extend_from_slice(&self.date.1);
        out.extend_from_slice(b"\r\n\r\n");
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
