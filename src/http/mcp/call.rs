//! Calling a tool: a request of `/v1` in other words.

use super::{McpReply, ToolCall};
use crate::board::render::json;
use crate::board::{Cursor, Encoding};
use crate::http::exchange::error::ApiError;
use crate::http::exchange::history::Stop;
use crate::http::exchange::reply::Content;
use crate::http::exchange::request_headers::URI_BYTES_MAX;
use crate::http::exchange::route::Route;
use crate::http::exchange::service::Authorized;
use crate::http::v1;
use crate::model::Timestamp;

/// The longest answer: more than that is of no use to whom it is for.
const DATA_BYTES_MAX: usize = 256 << 10;
/// More rows would count as more than one request.
const ROWS_MAX: usize = 500;

/// The answer to a call, which may have to wait as a request of `/v1` may. An error is one for the assistant to read. Says
/// whether the error is the service's own.
pub(crate) fn answer(authorized: &Authorized<'_>, call: &ToolCall) -> Result<(McpReply, bool), Stop> {
    let target = match call.tool.target(&call.arguments) {
        Ok(target) => target,
        Err(error) => return Ok((refused(call, &error), false)),
    };
    if target.len() > URI_BYTES_MAX {
        let message = "The arguments are longer than 8 KiB as a URL. Ask for fewer events at a time.";
        return Ok((refused(call, &super::invalid(message.to_owned())), false));
    }
    let request = authorized.request.for_target(&target);
    let called = Authorized { request: &request, ..*authorized };
    match data(&called, call) {
        Ok(data) => Ok((McpReply::ok(result(call, &data, false)), false)),
        Err(Stop::Failed(error)) => {
            let is_ours = error.status(authorized.version).is_server_error();
            Ok((refused(call, &error), is_ours))
        }
        Err(stop) => Err(stop),
    }
}

/// The answer to a call that failed: the message that `/v1` has for it.
pub(crate) fn refused(call: &ToolCall, error: &ApiError) -> McpReply {
    McpReply::ok(result(call, error.message.as_bytes(), true))
}

/// `{"as_of":"…","age_s":12,"data":…,"next":"…"}`
fn data(called: &Authorized<'_>, call: &ToolCall) -> Result<Vec<u8>, Stop> {
    let route = Route::of(called.request.path);
    // Before the data is read, so that it is not older than this says.
    let as_of = as_of(called, &route)?;
    let content = v1::get(called, &route)?;
    let body = content.body.bytes(Encoding::Identity);
    if body.len() > DATA_BYTES_MAX || content.rows > ROWS_MAX {
        let message = "This answer is too long. Send a smaller `limit`, or name an event, a market or a bookmaker.";
        return Err(super::invalid(message.to_owned()).into());
    }
    let as_of = content.as_of.unwrap_or(as_of);
    let mut out = Vec::with_capacity(body.len() + 96);
    out.extend_from_slice(b"{\"as_of\":\"");
    as_of.write(&mut out);
    out.extend_from_slice(b"\",\"age_s\":");
    json::integer(called.now.seconds_since(as_of), &mut out);
    out.extend_from_slice(b",\"data\":");
    out.extend_from_slice(body);
    if let Some(next) = next(&content).filter(|_| call.tool.takes_after()) {
        out.extend_from_slice(b",\"next\":");
        json::string(&next, &mut out);
    }
    out.push(b'}');
    Ok(out)
}

fn next(content: &Content) -> Option<String> {
    content.body.next().map(Cursor::to_text)
}

/// Of when the data of a route is: prices are of their last publication, everything else is of now.
fn as_of(called: &Authorized<'_>, route: &Route<'_>) -> Result<Timestamp, ApiError> {
    let (Route::Odds { sport }
    | Route::Best { sport }
    | Route::Fair { sport }
    | Route::Edges { sport }
    | Route::Lines { sport, .. }) = route
    else {
        return Ok(called.now);
    };
    let view = called.view(called.service.boards.catalogue().find(sport), sport)?;
    Ok(Timestamp::from_unix_ms(view.board().published().at_ms()))
}

/// The result of a call: text for every client and, unless it failed, the same as an object.
fn result(call: &ToolCall, text: &[u8], is_error: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(2 * text.len() + text.len() / 4 + 128);
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(call.id.to_string().as_bytes());
    out.extend_from_slice(b",\"result\":{\"content\":[{\"type\":\"text\",\"text\":");
    json::string(&String::from_utf8_lossy(text), &mut out);
    out.extend_from_slice(b"}]");
    if !is_error {
        out.extend_from_slice(b",\"structuredContent\":");
        out.extend_from_slice(text);
    }
    let is_error: &[u8] = if is_error { b",\"isError\":true}}" } else { b",\"isError\":false}}" };
    out.extend_from_slice(is_error);
    out
}
