//! JSON-RPC 2.0: one message at a time, in both directions.

use serde_json::{Value, json};

pub(super) const PARSE_ERROR: i32 = -32_700;
pub(super) const INVALID_REQUEST: i32 = -32_600;
pub(super) const METHOD_NOT_FOUND: i32 = -32_601;
pub(super) const INVALID_PARAMS: i32 = -32_602;
/// The protocol's own, since its revision 2026-07-28: a newer client then falls back to the handshake.
const UNSUPPORTED_REVISION: i32 = -32_022;

/// A message of a client.
#[derive(Debug, PartialEq)]
pub(super) enum Message {
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    /// Nobody waits for an answer. A response counts as one: nothing is asked of clients.
    Notification,
}

/// A message that is refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RpcError {
    pub id: Option<Value>,
    pub code: i32,
    pub message: String,
    data: Option<Value>,
}

impl RpcError {
    pub(super) fn new(code: i32, message: impl Into<String>) -> Self {
        RpcError { id: None, code, message: message.into(), data: None }
    }

    pub(super) fn of(id: Value, code: i32, message: impl Into<String>) -> Self {
        RpcError { id: Some(id), ..RpcError::new(code, message) }
    }

    pub(super) fn unsupported_revision(requested: &str, supported: &[&str]) -> Self {
        let message =
            format!("MCP-Protocol-Version {requested:?} is not supported: send one of {}.", supported.join(", "));
        let data = Some(json!({ "supported": supported, "requested": requested }));
        RpcError { data, ..RpcError::new(UNSUPPORTED_REVISION, message) }
    }

    pub(super) fn to_json(&self) -> Vec<u8> {
        let mut error = json!({ "code": self.code, "message": self.message });
        if let Some(data) = &self.data {
            error["data"] = data.clone();
        }
        json!({ "jsonrpc": "2.0", "id": self.id, "error": error }).to_string().into_bytes()
    }
}

impl Message {
    pub(super) fn parse(body: &[u8]) -> Result<Message, RpcError> {
        let Ok(message) = serde_json::from_slice::<Value>(body) else {
            return Err(RpcError::new(PARSE_ERROR, "The body is not JSON."));
        };
        let mut fields = match message {
            Value::Object(fields) => fields,
            Value::Array(_) => {
                return Err(RpcError::new(INVALID_REQUEST, "Batches are not supported: send one message at a time."));
            }
            _ => return Err(RpcError::new(INVALID_REQUEST, "A message is a JSON object.")),
        };
        if fields.get("jsonrpc") != Some(&json!("2.0")) {
            return Err(RpcError::new(INVALID_REQUEST, "A message has `\"jsonrpc\": \"2.0\"`."));
        }
        let id = fields.remove("id");
        let Some(method) = fields.remove("method") else {
            let is_response = id.is_some() && (fields.contains_key("result") || fields.contains_key("error"));
            let fault = || RpcError::new(INVALID_REQUEST, "A message has a `method`.");
            return if is_response { Ok(Message::Notification) } else { Err(fault()) };
        };
        let Value::String(method) = method else {
            return Err(RpcError::new(INVALID_REQUEST, "`method` is a text."));
        };
        match id {
            None => Ok(Message::Notification),
            Some(id @ (Value::String(_) | Value::Number(_))) => {
                let params = fields.remove("params").unwrap_or_default();
                Ok(Message::Request { id, method, params })
            }
            Some(_) => Err(RpcError::new(INVALID_REQUEST, "`id` is a text or a number.")),
        }
    }
}

/// The answer to a request.
pub(super) fn result(id: &Value, result: &Value) -> Vec<u8> {
    json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn code(body: &str) -> i32 {
        Message::parse(body.as_bytes()).unwrap_err().code
    }

    #[test]
    fn messages_are_requests_or_notifications() {
        let request = Message::parse(br#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#).unwrap();
        assert_eq!(request, Message::Request { id: json!("a"), method: "ping".into(), params: Value::Null });
        for body in [
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}"#,
        ] {
            assert_eq!(Message::parse(body.as_bytes()), Ok(Message::Notification), "{body}");
        }
    }

    #[test]
    fn what_is_no_message_is_refused_by_its_kind() {
        for body in ["", "{", "nonsense", "\u{0}"] {
            assert_eq!(code(body), PARSE_ERROR, "{body}");
        }
        for body in [
            "[]",
            r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
            "1",
            "{}",
            r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1}"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":7}"#,
        ] {
            assert_eq!(code(body), INVALID_REQUEST, "{body}");
        }
    }

    proptest! {
        #[test]
        fn no_body_panics(body in proptest::collection::vec(any::<u8>(), 0..200), near in r#"\{"jsonrpc":"2.0",("id":[a-z0-9"]{0,4},)?"method":"[a-z/]{0,10}"\}"#) {
            let _ = Message::parse(&body);
            let _ = Message::parse(near.as_bytes());
        }
    }
}
