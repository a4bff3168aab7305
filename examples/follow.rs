//! Keeps a board of prices up to date by the stream, through lost connections.
//!
//!     ODDSBOX_KEY=sk_test_ob_... cargo run --example follow 'sports=mma&odds_format=decimal'
//!
//! Prints a line for every change; `ODDSBOX_URL` names another service.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "printing is what it is for")]

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpStream;
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

const SILENCE_MAX: Duration = Duration::from_secs(40);

#[derive(Default)]
struct Client {
    board: BTreeMap<String, Value>,
    last: Option<String>,
    wait_s: u64,
}

impl Client {
    fn follow(&mut self, host: &str, key: &str, query: &str) -> io::Result<()> {
        let mut connection = TcpStream::connect(host)?;
        connection.set_read_timeout(Some(SILENCE_MAX))?;
        let last = self.last.as_ref().map_or(String::new(), |id| format!("last-event-id: {id}\r\n"));
        write!(connection, "GET /v1/stream?{query} HTTP/1.0\r\nhost: {host}\r\nx-api-key: {key}\r\n{last}\r\n")?;
        let mut lines = BufReader::new(connection).lines();
        let status = lines.next().transpose()?.unwrap_or_default();
        if !status.contains(" 200 ") {
            return Err(io::Error::other(status));
        }
        let mut fields = BTreeMap::new();
        for line in lines {
            match line?.split_once(": ") {
                Some((name, value)) => drop(fields.insert(name.to_owned(), value.to_owned())),
                None => self.apply(&std::mem::take(&mut fields)),
            }
        }
        Ok(())
    }

    /// Applies an event to the board.
    fn apply(&mut self, fields: &BTreeMap<String, String>) {
        let (Some(kind), Some(data)) = (fields.get("event"), fields.get("data")) else { return };
        let data: Value = serde_json::from_str(data).unwrap_or_default();
        let list = |name: &str| data[name].as_array().cloned().unwrap_or_default();
        let closed = list("closed");
        let is_of = |record: &Value| record["sport_key"] == data["sport_key"] && record["event_id"] == data["id"];
        // Without a position to continue from, a snapshot follows.
        let begins_anew = kind == "reset" || (kind == "hello" && self.last.is_none());
        let is_gone = |record: &Value| begins_anew || (data["status"] == "removed" && is_of(record));
        self.board.retain(|_, record| !is_gone(record) && !closed.contains(&record["id"]));
        self.board.extend(list("records").into_iter().map(|record| (record["id"].to_string(), record)));
        self.last = fields.get("id").cloned().or_else(|| self.last.take());
        self.wait_s = data["retry_after_s"].as_u64().unwrap_or(1);
        if ["ready", "odds", "reset", "bye"].contains(&kind.as_str()) {
            let changed = list("records").len() + closed.len();
            println!("{kind}: {changed} changed, {} on the board", self.board.len());
        }
    }
}

fn main() {
    let url = std::env::var("ODDSBOX_URL").unwrap_or_else(|_| "http://127.0.0.1:8080".to_owned());
    let (host, key) = (url.trim_start_matches("http://"), std::env::var("ODDSBOX_KEY").unwrap_or_default());
    let mut client = Client::default();
    loop {
        let ended = client.follow(host, &key, &std::env::args().nth(1).unwrap_or_default());
        ended.unwrap_or_else(|error| eprintln!("lost the connection: {error}"));
        sleep(Duration::from_secs(client.wait_s));
        client.wait_s = (client.wait_s * 2).clamp(1, 60);
    }
}
