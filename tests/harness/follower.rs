//! A client of the stream: the events that it gets, and the board that it keeps by them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use super::Service;

/// Far longer than anything takes: a test fails instead of waiting for ever.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server-sent event.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamEvent {
    pub kind: String,
    pub id: Option<String>,
    pub data: Value,
}

/// An open stream.
pub struct Follower {
    connection: TcpStream,
    /// Read and not yet understood: bytes of chunks, then of events.
    raw: Vec<u8>,
    text: Vec<u8>,
    events: VecDeque<StreamEvent>,
    pub status: u16,
    pub head: String,
    /// Whether the body has ended as it should.
    pub is_complete: bool,
}

impl Follower {
    pub async fn open(service: &Service, path: &str) -> Follower {
        Follower::open_as(service, &service.live, path, None).await
    }

    /// Continues after an event.
    pub async fn open_as(service: &Service, key: &str, path: &str, last: Option<&str>) -> Follower {
        let last = last.map_or(String::new(), |id| format!("last-event-id: {id}\r\n"));
        Follower::open_with(service, path, &format!("x-api-key: {key}\r\n{last}")).await
    }

    /// With these lines of headers.
    pub async fn open_with(service: &Service, path: &str, headers: &str) -> Follower {
        Follower::open_at(service.address, path, headers).await
    }

    pub async fn open_at(address: SocketAddr, path: &str, headers: &str) -> Follower {
        let request = format!("GET {path} HTTP/1.1\r\nhost: oddsbox\r\n{headers}\r\n");
        // Small buffers, so that a client that does not read is noticed early.
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(4096).expect("a size");
        let mut connection = socket.connect(address).await.expect("a connection");
        connection.write_all(request.as_bytes()).await.expect("a request");
        let mut follower = Follower {
            connection,
            raw: Vec::new(),
            text: Vec::new(),
            events: VecDeque::new(),
            status: 0,
            head: String::new(),
            is_complete: false,
        };
        follower.read_head().await;
        follower
    }

    async fn read_head(&mut self) {
        loop {
            if let Some(end) = self.raw.windows(4).position(|four| four == b"\r\n\r\n") {
                self.head = String::from_utf8(self.raw.drain(..end + 4).collect()).expect("a head is text");
                self.status = self.head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
                return;
            }
            assert!(self.read().await, "the connection ended before the head did");
        }
    }

    /// Reads more; false at the end of the connection.
    async fn read(&mut self) -> bool {
        let read = tokio::time::timeout(PATIENCE, self.connection.read_buf(&mut self.raw)).await;
        let count = read.expect("the stream says something in time").unwrap_or(0);
        count > 0
    }

    /// Takes whole chunks off what was read.
    fn take_chunks(&mut self) {
        while let Some(end) = self.raw.windows(2).position(|two| two == b"\r\n") {
            let length = std::str::from_utf8(&self.raw[..end]).expect("a length is text");
            let length = usize::from_str_radix(length, 16).expect("a length");
            if self.raw.len() < end + 2 + length + 2 {
                return;
            }
            self.text.extend_from_slice(&self.raw[end + 2..end + 2 + length]);
            self.raw.drain(..end + 2 + length + 2);
            self.is_complete |= length == 0;
        }
    }

    fn take_events(&mut self) {
        while let Some(end) = self.text.windows(2).position(|two| two == b"\n\n") {
            let event: Vec<u8> = self.text.drain(..end + 2).collect();
            let event = String::from_utf8(event).expect("events are text");
            let field = |name: &str| {
                event.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ").map(str::to_owned))
            };
            let Some(kind) = field("event") else { continue };
            let data = field("data").expect("an event has data");
            let data = serde_json::from_str(&data).unwrap_or_else(|error| panic!("{error}: {data}"));
            self.events.push_back(StreamEvent { kind, id: field("id"), data });
        }
    }

    /// The next event; `None` at the end of the stream.
    pub async fn next(&mut self) -> Option<StreamEvent> {
        loop {
            self.take_chunks();
            self.take_events();
            if let Some(event) = self.events.pop_front() {
                return Some(event);
            }
            if self.is_complete || !self.read().await {
                return None;
            }
        }
    }

    /// The next event, which must be of a kind.
    pub async fn expect(&mut self, kind: &str) -> StreamEvent {
        let event = self.next().await.unwrap_or_else(|| panic!("the stream ended before {kind}"));
        assert_eq!(event.kind, kind, "{event:?}");
        event
    }

    /// All events up to and including the next one of a kind.
    pub async fn until(&mut self, kind: &str) -> Vec<StreamEvent> {
        let mut events = Vec::new();
        loop {
            let event = self.next().await.unwrap_or_else(|| panic!("the stream ended before {kind}: {events:?}"));
            let is_last = event.kind == kind;
            events.push(event);
            if is_last {
                return events;
            }
        }
    }
}

/// The board that a client keeps by following.
#[derive(Debug, Default)]
pub struct FollowedBoard {
    /// By their ids.
    pub records: BTreeMap<String, Value>,
    /// The changes that were seen: the id of a record and the position after its change.
    seen: BTreeSet<(String, Option<String>)>,
    pub last_id: Option<String>,
    pub conflated: usize,
    pub resets: usize,
}

impl FollowedBoard {
    pub fn apply(&mut self, event: &StreamEvent) {
        let array = |name: &str| event.data[name].as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        match event.kind.as_str() {
            "reset" => {
                self.resets += 1;
                self.records.clear();
            }
            "snapshot" => {
                for record in array("records") {
                    self.records.insert(text(&record["id"]), record);
                }
            }
            "odds" => {
                let is_conflated = event.data["conflated"] == true;
                self.conflated += usize::from(is_conflated);
                let at = event.id.clone();
                for record in array("records") {
                    let id = text(&record["id"]);
                    let is_new = self.seen.insert((id.clone(), at.clone()));
                    assert!(is_new || is_conflated, "{id} changed twice at {at:?}");
                    self.records.insert(id, record);
                }
                for id in array("closed") {
                    let id = text(&id);
                    let is_new = self.seen.insert((id.clone(), at.clone()));
                    assert!(is_new || is_conflated, "{id} changed twice at {at:?}");
                    let was_open = self.records.remove(&id).is_some();
                    assert!(was_open || is_conflated, "{id} was not open");
                }
            }
            "event" if event.data["status"] == "removed" => {
                let (id, sport) = (&event.data["id"], &event.data["sport_key"]);
                self.records.retain(|_, record| record["event_id"] != *id || record["sport_key"] != *sport);
            }
            _ => {}
        }
        if let Some(id) = &event.id {
            self.last_id = Some(id.clone());
        }
    }

    /// The records as Get Odds has them, but for the times of confirmations.
    pub fn comparable(&self) -> BTreeMap<String, Value> {
        self.records.iter().map(|(id, record)| (id.clone(), without_time(record.clone()))).collect()
    }
}

fn without_time(mut record: Value) -> Value {
    record.as_object_mut().expect("a record").remove("last_update");
    record
}

/// All records of a sport by Get Odds, page by page, in the same form.
pub async fn odds_of(service: &Service, sport: &str, query: &str) -> BTreeMap<String, Value> {
    let mut records = BTreeMap::new();
    let mut path = format!("/v1/sports/{sport}/odds?limit=500{query}");
    loop {
        let answer = service.get(&path).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        for record in answer.json().as_array().expect("an array") {
            records.insert(record["id"].as_str().expect("an id").to_owned(), without_time(record.clone()));
        }
        let next = answer.header("link").and_then(|link| link.split_once('>').map(|(url, _)| url[1..].to_owned()));
        match next {
            Some(next) => path = next,
            None => return records,
        }
    }
}
