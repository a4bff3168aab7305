//! The Model Context Protocol at `POST /mcp`, for assistants that ask for odds by themselves.
//!
//! Streamable HTTP without sessions: each request is answered with one JSON object, and there is nothing to stream. The tools only
//! read. A call becomes a request of `/v1` and is answered by the same code, so that access, restrictions, formats and messages are
//! the same. Keys, limits and worlds are those of `/v1` too: a call counts as one request, everything else for the minute only.
//!
//! - `message` reads and writes JSON-RPC
//! - `tools` is the table of tools, and makes a target of `/v1` of a call
//! - `call` answers one
//!
//! The protocol is written here instead of using its Rust SDK: without sessions, streams, prompts and resources it is four
//! methods, and the SDK brings its own HTTP service, which knows nothing of our limits and deadlines.

mod call;
mod message;
mod tools;

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body, Incoming};
use serde_json::{Value, json};

pub(crate) use call::{answer, refused};
use message::{INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, Message, RpcError};
use tools::Tool;

use super::exchange::request_headers::RequestParts;
use crate::http::exchange::error::{ApiError, Code};

/// The most that a message may have.
pub(crate) const BODY_BYTES_MAX: usize = 64 << 10;

/// How long a message may take to come.
const BODY_PATIENCE: Duration = Duration::from_secs(10);

/// The revisions of the protocol that are spoken, the newest first.
const REVISIONS: [&str; 3] = ["2025-11-25", "2025-06-18", "2025-03-26"];

const INSTRUCTIONS: &str = "Sports odds, events and prices over time, read-only. Begin with list_sports, then find_events of a sport. \
    Times are UTC. Every answer has as_of, the time of its data, and age_s, how old that was. If an answer has next, send it as after \
    for the rest. Every call counts toward the limits of the key.";

/// The body of a request, or why there is none.
pub(crate) type Posted = Result<Bytes, BodyFault>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyFault {
    TooLong,
    /// It did not come to its end.
    BrokenOff,
}

/// Reads the body of a request within its bounds. One without a body has an empty one.
pub(crate) async fn read_body(body: Option<Incoming>) -> Posted {
    let Some(body) = body else { return Ok(Bytes::new()) };
    if body.size_hint().lower() > BODY_BYTES_MAX as u64 {
        return Err(BodyFault::TooLong);
    }
    match tokio::time::timeout(BODY_PATIENCE, Limited::new(body, BODY_BYTES_MAX).collect()).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(BodyFault::TooLong),
        Ok(Err(_)) | Err(_) => Err(BodyFault::BrokenOff),
    }
}

/// What a request is answered with.
#[derive(Debug)]
pub(crate) struct McpReply {
    pub status: StatusCode,
    /// Empty where nothing is to be said.
    pub json: Vec<u8>,
}

impl McpReply {
    fn ok(json: Vec<u8>) -> Self {
        McpReply { status: StatusCode::OK, json }
    }
}

impl From<RpcError> for McpReply {
    /// Without an id nobody waits for the answer, but the status says that the message was not taken.
    fn from(error: RpcError) -> Self {
        let status = if error.id.is_some() { StatusCode::OK } else { StatusCode::BAD_REQUEST };
        McpReply { status, json: error.to_json() }
    }
}

/// What a message asks for.
#[derive(Debug)]
pub(crate) enum Asked {
    /// Answered without a tool.
    Answered(McpReply),
    Call(ToolCall),
}

/// A tool that is to be called.
#[derive(Debug)]
pub(crate) struct ToolCall {
    id: Value,
    tool: &'static Tool,
    arguments: serde_json::Map<String, Value>,
}

/// Reads a message.
pub(crate) fn asked(request: &RequestParts<'_>, posted: &Posted) -> Asked {
    read(request, posted).unwrap_or_else(Asked::Answered)
}

fn read(request: &RequestParts<'_>, posted: &Posted) -> Result<Asked, McpReply> {
    let body = match posted {
        Ok(body) => body,
        Err(BodyFault::TooLong) => {
            let error = RpcError::new(INVALID_REQUEST, "The message is longer than 64 KiB.");
            return Err(McpReply { status: StatusCode::PAYLOAD_TOO_LARGE, ..error.into() });
        }
        Err(BodyFault::BrokenOff) => {
            return Err(RpcError::new(INVALID_REQUEST, "The message did not come to its end.").into());
        }
    };
    if let Some(revision) = request.headers.mcp_revision().filter(|revision| !REVISIONS.contains(revision)) {
        return Err(RpcError::unsupported_revision(revision, &REVISIONS).into());
    }
    match Message::parse(body)? {
        Message::Request { id, method, params } => requested(id, &method, params).map_err(McpReply::from),
        Message::Notification => Ok(Asked::Answered(McpReply { status: StatusCode::ACCEPTED, json: Vec::new() })),
    }
}

fn requested(id: Value, method: &str, params: Value) -> Result<Asked, RpcError> {
    let result = match method {
        "initialize" => initialized(&params),
        "ping" => json!({}),
        "tools/list" => json!({ "tools": tools::ALL.iter().map(Tool::described).collect::<Vec<_>>() }),
        "tools/call" => return called(id, params).map(Asked::Call),
        _ => return Err(RpcError::of(id, METHOD_NOT_FOUND, "There is no such method here: only tools are offered.")),
    };
    Ok(Asked::Answered(McpReply::ok(message::result(&id, &result))))
}

/// The revision that the client asked for if it is spoken here, and else the newest.
fn initialized(params: &Value) -> Value {
    let asked = params["protocolVersion"].as_str().unwrap_or_default();
    let revision = REVISIONS.iter().find(|revision| **revision == asked).unwrap_or(&REVISIONS[0]);
    json!({
        "protocolVersion": revision,
        "capabilities": { "tools": {} },
        "serverInfo": { "name": "oddsbox", "title": "oddsbox", "version": env!("CARGO_PKG_VERSION") },
        "instructions": INSTRUCTIONS,
    })
}

fn called(id: Value, mut params: Value) -> Result<ToolCall, RpcError> {
    let Some(name) = params["name"].as_str() else {
        return Err(RpcError::of(id, INVALID_PARAMS, "Send the name of a tool as `name`."));
    };
    let Some(tool) = tools::find(name) else {
        let names: Vec<&str> = tools::ALL.iter().map(|tool| tool.name).collect();
        return Err(RpcError::of(
            id,
            INVALID_PARAMS,
            format!("There is no such tool: use one of {}.", names.join(", ")),
        ));
    };
    let arguments = match params.get_mut("arguments").map(Value::take) {
        None | Some(Value::Null) => serde_json::Map::new(),
        Some(Value::Object(arguments)) => arguments,
        Some(_) => return Err(RpcError::of(id, INVALID_PARAMS, "`arguments` takes an object.")),
    };
    Ok(ToolCall { id, tool, arguments })
}

/// An argument that is not as its tool takes it.
fn bad_argument(name: &'static str, takes: &str) -> ApiError {
    ApiError::invalid_parameter(name, format!("`{name}` takes {takes}."))
}

fn invalid(message: String) -> ApiError {
    ApiError::new(Code::InvalidRequest, message)
}
