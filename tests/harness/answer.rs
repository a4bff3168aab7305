//! An HTTP response as received.

use std::fmt;

/// Status, headers and body, uninterpreted.
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    /// Parses one response from all the bytes that a server sent before it closed.
    pub fn parse(bytes: &[u8]) -> Answer {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or_else(|| {
            panic!("no end of the headers in {:?}", String::from_utf8_lossy(bytes));
        });
        let head = std::str::from_utf8(&bytes[..end]).expect("headers are text");
        let mut lines = head.split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|code| code.parse().ok());
        let header = |line: &str| {
            let (name, value) = line.split_once(':').expect("a header has a colon");
            (name.to_ascii_lowercase(), value.trim().to_owned())
        };
        Answer {
            status: status.expect("a status"),
            headers: lines.map(header).collect(),
            body: bytes[end + 4..].to_vec(),
        }
    }

    /// The header's value; panics if there are two.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(own, _)| own == name);
        let value = found.next().map(|(_, value)| value.as_str());
        assert!(found.next().is_none(), "two headers {name}");
        value
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("a text")
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The error's code, if the body is an error.
    pub fn code(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap_or_default().to_owned()
    }

    /// The parameter that an error names.
    pub fn param(&self) -> String {
        self.json()["error"]["param"].as_str().unwrap_or_default().to_owned()
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}\n{}", self.status, self.headers, String::from_utf8_lossy(&self.body))
    }
}
