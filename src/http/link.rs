//! The link to the next page (RFC 8288).

use http::HeaderValue;

use super::asked::Asked;
use super::percent::write_url_part;
use super::query;
use super::values::AFTER;
use crate::board::Cursor;

/// `<…>; rel="next"`: the same path and query with `after` replaced. The key, if it stood in the query, is left out:
/// links end up in logs.
pub(super) fn next(asked: &Asked<'_>, cursor: &Cursor) -> Option<HeaderValue> {
    let mut link = Vec::with_capacity(256);
    link.push(b'<');
    write_url_part(asked.path, &mut link);
    link.push(b'?');
    for piece in query::pieces_without(asked.query.unwrap_or_default(), AFTER.name) {
        write_url_part(piece, &mut link);
        link.push(b'&');
    }
    link.extend_from_slice(b"after=");
    link.extend_from_slice(cursor.to_text().as_bytes());
    link.extend_from_slice(b">; rel=\"next\"");
    HeaderValue::from_maybe_shared(bytes::Bytes::from(link)).ok()
}
