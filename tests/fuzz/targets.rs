//! The fuzz targets: one plain function for each parser of untrusted input. Each panics if a guarantee is violated. The
//! fuzzer and the test on stable Rust call the same functions.

use std::convert::Infallible;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use oddsbox::clock::Clock;
use oddsbox::cluster::entry;
use oddsbox::config::{SETTINGS, Settings, catalogue};
use oddsbox::http::{Handled, Peer, Respond, ResponseBody, Service, ServiceSettings, handle};
use oddsbox::ingest::the_odds_api;
use oddsbox::ingest::wire::{self, HistoryLine};
use oddsbox::keys::{BURST_MAX, KeyId, KeyKind, Limits, NewKey, QUOTA_MAX, Secret, may_hold_key};
use oddsbox::model::market::KeyParts;
use oddsbox::model::{Catalogue, EntryId, EventId, OddsFormat, Point, Position, Price, SportKind, Timestamp, World};
use oddsbox::store::{Store, StoreOptions};
use oddsbox::writer::{Writer, WriterOptions};

/// A name and its function.
pub type Target = (&'static str, fn(&[u8]));

/// All targets; each has a directory of the same name in the corpus.
#[allow(dead_code, reason = "the fuzzer names the functions themselves")]
pub const TARGETS: [Target; 13] = [
    ("request", request),
    ("feed_line", feed_line),
    ("payload", payload),
    ("codec", codec),
    ("key_text", key_text),
    ("price_text", price_text),
    ("market_key", market_key),
    ("config", config),
    ("stream_request", stream_request),
    ("position", position),
    ("history_line", history_line),
    ("mcp", mcp),
    ("cluster_entry", cluster_entry),
];

fn the_catalogue() -> &'static Arc<Catalogue> {
    static CATALOGUE: OnceLock<Arc<Catalogue>> = OnceLock::new();
    CATALOGUE.get_or_init(|| Arc::new(catalogue::builtin()))
}

/// A service with an event in each sport.
struct Served {
    service: Service,
    clock: Clock,
    /// A production key.
    key: String,
}

fn served() -> &'static Served {
    static SERVICE: OnceLock<Served> = OnceLock::new();
    SERVICE.get_or_init(|| {
        let clock = Clock::manual(1_794_699_540_000);
        let directory = tempfile::tempdir().expect("a directory");
        let options = StoreOptions { cache_bytes: 1 << 20, wait_for_lock: Duration::ZERO, ..StoreOptions::DEFAULT };
        let path = directory.path().join("oddsbox.redb");
        let store = Store::open(&path, Arc::clone(the_catalogue()), options).expect("a file");
        let opened = Writer::open(store, Arc::clone(the_catalogue()), clock.clone(), WriterOptions::default());
        let mut writer = opened.expect("a writer").writer;
        let lines = include_str!("corpus/feed_line/lines.ndjson");
        let news =
            lines.lines().filter_map(|line| wire::read(line.as_bytes(), the_catalogue()).ok()).map(|read| read.news);
        writer.ingest(World::Live, news.collect(), true).expect("a commit");
        let limits = Limits { burst_per_minute: BURST_MAX, per_day: Some(QUOTA_MAX), per_month: None, streams: 10 };
        let (kind, name, approved_by) = (KeyKind::Production, "fuzz".into(), Some("fuzz".into()));
        let new = NewKey { kind, name, groups: Vec::new(), limits, expires: None, approved_by, self_service: false };
        let issued = writer.issue_key(new, "fuzz").expect("a key");
        let (boards, keyring) = (Arc::clone(writer.boards()), Arc::clone(writer.keyring()));
        // Nobody here hands out leases.
        let settings = ServiceSettings { lease_patience: Duration::ZERO, ..ServiceSettings::default() };
        let service = Service::new(boards, keyring, clock.clone(), settings);
        Served { service, clock, key: issued.secret.expose().to_owned() }
    })
}

/// Lines: method and target, then one header each. `KEY` is replaced by a valid key.
pub fn request(data: &[u8]) {
    let Served { service, clock, key } = served();
    // So that the burst limit is never reached.
    clock.advance(Duration::from_millis(1));
    let mut lines = data.split(|byte| *byte == b'\n');
    let first = String::from_utf8_lossy(lines.next().unwrap_or_default()).replace("KEY", key);
    let (method, target) = first.split_once(' ').unwrap_or(("GET", &first));
    let mut builder = Request::builder().method(method).uri(target);
    for line in lines.take(100) {
        let line = String::from_utf8_lossy(line).replace("KEY", key);
        let (name, value) = line.split_once(':').unwrap_or((&line, ""));
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value.trim())) {
            builder = builder.header(name, value);
        }
    }
    // Without a host, nothing after that check would be reached; lines may add a wrong one, or several.
    if builder.headers_ref().is_some_and(|headers| !headers.contains_key("host")) {
        builder = builder.header("host", "fuzz");
    }
    let Ok(request) = builder.body(()) else { return };
    let mut handled = handle(service, &request, clock.now());
    if let Handled::NeedsLease(waiting) = handled {
        // Nothing here outlives the process, so leases need not be stored. Another target may have been as fast: all have one key.
        if let Some(usage) = waiting.grant().meter().plan_lease(clock.now()) {
            waiting.grant().meter().grant(usage);
        }
        handled = handle(service, &request, clock.now());
    }
    let answer = match handled {
        Handled::Answer(answer) => answer,
        Handled::NeedsHistory(..)
        | Handled::NeedsWork(..)
        | Handled::Opens(..)
        | Handled::Rotates(..)
        | Handled::NeedsBody(_) => return,
        Handled::NeedsLease(_) => panic!("a lease was granted"),
    };
    let response = answer.into_response();
    let (status, body) = (response.status().as_u16(), response.body());
    let known = [200, 304, 400, 401, 403, 404, 405, 414, 422, 431];
    assert!(known.contains(&status), "{status}");
    let text = format!("{:?} {body:?}", response.headers());
    assert!(!text.contains(key.as_str()), "the key is in the answer");
    let is_open = body_of(body).is_empty() || status == 304 || request.method() == http::Method::HEAD;
    if status >= 400 && !is_open {
        let body: serde_json::Value = serde_json::from_slice(body_of(body)).expect("an error is JSON");
        let is_v1 = body["error"]["code"].is_string() && body["error"]["request_id"].is_string();
        let is_v4 = body["error_code"].is_string() && body["message"].is_string() && body["details_url"].is_string();
        assert!(is_v1 || is_v4, "{body}");
    }
}

/// A payload of The Odds API, with or without a given price format.
pub fn payload(data: &[u8]) {
    let now = Timestamp::from_unix(1_794_699_540);
    for odds_format in [None, Some(OddsFormat::Decimal), Some(OddsFormat::American)] {
        let ask = the_odds_api::PayloadTerms { catalogue: the_catalogue(), sport: None, odds_format, now };
        let _ = the_odds_api::read(data, ask);
    }
}

fn body_of(body: &ResponseBody) -> &[u8] {
    match body {
        ResponseBody::Whole(bytes) => bytes,
        // A stream, whose body is not read here.
        ResponseBody::Stream(_) => b"",
    }
}

/// One feed line or several: what is parsed is written back and parses to the same.
pub fn feed_line(data: &[u8]) {
    for line in data.split(|byte| *byte == b'\n') {
        let Ok(read) = wire::read(line, the_catalogue()) else { continue };
        let mut written = Vec::new();
        wire::write(&read.news, the_catalogue(), &mut written);
        let again = wire::read(&written, the_catalogue());
        let again =
            again.unwrap_or_else(|why| panic!("{} is not read again: {why}", String::from_utf8_lossy(&written)));
        assert_eq!(again.news, read.news);
        assert!(again.dropped.is_empty());
    }
}

/// A row of the file: the first byte chooses the table, the rest is the row, under a matching checksum.
pub fn codec(data: &[u8]) {
    let Some((table, row)) = data.split_first() else { return };
    let backend = planted(*table, row);
    let options = StoreOptions { cache_bytes: 1 << 20, wait_for_lock: Duration::ZERO, ..StoreOptions::DEFAULT };
    let Ok(mut store) = Store::open_backend(backend, Arc::clone(the_catalogue()), options) else { return };
    let loaded = store.load();
    let report = store.check().expect("a check");
    if let Ok(loaded) = loaded
        && !loaded.damage.is_empty()
    {
        assert!(!report.problems.is_empty(), "loading found {:?}, and the check nothing", loaded.damage);
    }
}

/// The key of a market: whatever is read is well-formed, and is read again as the same market.
pub fn market_key(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let markets = the_catalogue().markets();
    for kind in [SportKind::HeadToHead, SportKind::Fight, SportKind::Tournament] {
        let Some(read) = markets.read(text, kind) else { continue };
        let key = read.as_str();
        let parts = KeyParts::split(key).expect("a key that was read");
        assert!(parts.is_prop || markets.traits(key).is_some(), "{text} was read as {key}, which is of no family");
        assert_eq!(markets.read(key, kind).expect("a key that was read").as_str(), key, "{text}");
    }
}

/// A new file with one row written without the store.
fn planted(table: u8, row: &[u8]) -> oddsbox::store::BackendFactory {
    static BASE: OnceLock<Vec<u8>> = OnceLock::new();
    let base = BASE.get_or_init(|| {
        let bytes = Memory::default();
        let shared = bytes.clone();
        let factory = Box::new(move || Ok(Box::new(shared.clone()) as Box<dyn oddsbox::store::StorageBackend>));
        let options = StoreOptions { cache_bytes: 1 << 20, wait_for_lock: Duration::ZERO, ..StoreOptions::DEFAULT };
        drop(Store::open_backend(factory, Arc::clone(the_catalogue()), options).expect("a new file"));
        bytes.bytes()
    });
    let memory = Memory::of(base.clone());
    let db = redb::Database::builder().set_cache_size(1 << 20).create_with_backend(memory.clone()).expect("a file");
    let txn = db.begin_write().expect("a transaction");
    match table % 13 {
        0 => plant::<&str>(&txn, "meta", &"maintenance", row),
        1 => plant::<u16>(&txn, "sports", &1, row),
        2 => plant::<(u8, u16)>(&txn, "books", &(1, 1), row),
        3 => plant::<u32>(&txn, "names", &1, row),
        4 => plant::<(u8, u16, u32)>(&txn, "events", &(1, 1, 1), row),
        5 => plant::<(u8, u16, u32)>(&txn, "scores", &(1, 1, 1), row),
        6 => plant::<(u8, u16, u32, u16, u32)>(&txn, "odds", &(1, 1, 1, 1, 1), row),
        7 => plant::<(u8, u16, u16)>(&txn, "sources", &(1, 1, 1), row),
        8 => plant::<&str>(&txn, "keys", &"key_000000000001", row),
        9 => plant::<&str>(&txn, "usage", &"key_000000000001", row),
        10 => plant::<u64>(&txn, "audit", &1, row),
        11 => plant::<(u8, &str)>(&txn, "competitions", &(1, "tennis_cup"), row),
        _ => plant::<(u8, &str)>(&txn, "markets", &(1, "player_points"), row),
    }
    txn.commit().expect("a commit");
    drop(db);
    Box::new(move || Ok(Box::new(memory.clone()) as Box<dyn oddsbox::store::StorageBackend>))
}

fn plant<K: redb::Key + 'static>(txn: &redb::WriteTransaction, name: &str, key: &K::SelfType<'_>, row: &[u8]) {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(<K as redb::Value>::as_bytes(key).as_ref());
    hasher.update(row);
    let sealed = [row, &hasher.finalize().to_le_bytes()].concat();
    let table = redb::TableDefinition::<K, &[u8]>::new(name);
    txn.open_table(table).expect("a table").insert(key, &*sealed).expect("a row");
}

/// Storage in memory, shared by clones.
#[derive(Clone, Debug, Default)]
struct Memory(Arc<std::sync::Mutex<Vec<u8>>>);

impl Memory {
    fn of(bytes: Vec<u8>) -> Memory {
        Memory(Arc::new(std::sync::Mutex::new(bytes)))
    }

    fn bytes(&self) -> Vec<u8> {
        self.0.lock().expect("a sound memory").clone()
    }
}

impl redb::StorageBackend for Memory {
    fn len(&self) -> std::io::Result<u64> {
        Ok(self.0.lock().expect("a sound memory").len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> std::io::Result<()> {
        let offset = usize::try_from(offset).expect("a small file");
        let bytes = self.0.lock().expect("a sound memory");
        out.copy_from_slice(bytes.get(offset..offset + out.len()).ok_or(std::io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> std::io::Result<()> {
        self.0.lock().expect("a sound memory").resize(usize::try_from(len).expect("a small file"), 0);
        Ok(())
    }

    fn sync_data(&self) -> std::io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> std::io::Result<()> {
        let offset = usize::try_from(offset).expect("a small file");
        let mut bytes = self.0.lock().expect("a sound memory");
        let end = bytes.len().max(offset + data.len());
        bytes.resize(end, 0);
        bytes[offset..offset + data.len()].copy_from_slice(data);
        Ok(())
    }
}

/// The text of a key, a key's id, an event's id.
pub fn key_text(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if Secret::hash_of(text).is_some() {
        assert!(may_hold_key(text), "a valid key is not recognised as one");
        assert!(text.starts_with("sk_test_") || text.starts_with("sk_live_"));
    }
    if let Some(id) = KeyId::new(text) {
        assert_eq!(id.as_str(), text);
        assert!(!may_hold_key(text), "an id is not a secret");
    }
    if let Some(id) = EventId::new(text) {
        assert_eq!(id.as_str(), text);
    }
}

/// A price in each format, and a point: a quote round-trips in its own format.
pub fn price_text(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for format in [OddsFormat::American, OddsFormat::Decimal, OddsFormat::Fractional] {
        let Ok(price) = Price::parse(text, format) else { continue };
        for shown in [OddsFormat::American, OddsFormat::Decimal, OddsFormat::Fractional] {
            let mut json = Vec::new();
            price.write_json(shown, &mut json);
            let value: serde_json::Value = serde_json::from_slice(&json).expect("a price is JSON");
            let written = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let again = Price::parse(&written, shown);
            let again = again.unwrap_or_else(|why| panic!("{text} as {written} is no price: {why}"));
            if shown == format {
                assert_eq!(again, price, "{text} came back as {written}");
            }
        }
    }
    if let Some(point) = Point::parse(text) {
        let mut written = Vec::new();
        point.write(&mut written);
        let written = String::from_utf8(written).expect("a number");
        assert_eq!(Point::parse(&written), Some(point), "{text} came back as {written}");
    }
}

/// A configuration file and a catalogue: rejected with a message, or valid.
pub fn config(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let settings = Settings::defaults(SETTINGS).with_file(std::path::Path::new("oddsbox.toml"), text);
    if let Err(error) = settings.and_then(|settings| settings.read().map(|_| ())) {
        assert!(!error.to_string().is_empty());
    }
    if let Err(error) = catalogue::parse(text) {
        assert!(!error.to_string().is_empty());
    }
}

/// What follows `GET /v1/stream?`: a filter, and headers such as the last position.
pub fn stream_request(data: &[u8]) {
    request(&[b"GET /v1/stream?", data, b"\nx-api-key: KEY"].concat());
}

/// A position of a stream, or of the log that nodes share: what is read is written as the same text.
pub fn position(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Some(position) = Position::parse(text) {
        assert_eq!(position.to_string(), text);
    }
    if let Some(id) = EntryId::parse(text) {
        assert_eq!(EntryId::parse(&id.to_string()), Some(id), "{text}");
    }
}

/// Lines of history: what is read is written back and read as the same.
pub fn history_line(data: &[u8]) {
    for line in data.split(|byte| *byte == b'\n') {
        let Ok(read) = wire::read_history(line, the_catalogue()) else { continue };
        let mut written = Vec::new();
        match read.clone() {
            HistoryLine::Register(news) => wire::write(&news, the_catalogue(), &mut written),
            HistoryLine::Change { at, news, .. } => {
                let news = oddsbox::model::News::AsOf(at, Box::new(news));
                wire::write(&news, the_catalogue(), &mut written);
            }
            HistoryLine::Source { at, sport, bookmaker, is_stale } => {
                wire::write_source((at, sport), (&bookmaker, is_stale), the_catalogue(), &mut written);
            }
            HistoryLine::Tick { at, sport } => wire::write_tick((at, sport), the_catalogue(), &mut written),
        }
        let again = wire::read_history(&written, the_catalogue());
        let again =
            again.unwrap_or_else(|why| panic!("{} is not read again: {why}", String::from_utf8_lossy(&written)));
        match (read, again) {
            // Outcomes that were left out are not written.
            (HistoryLine::Change { at, news, .. }, HistoryLine::Change { at: at_again, news: news_again, dropped }) => {
                assert_eq!((at, news), (at_again, news_again));
                assert!(dropped.is_empty());
            }
            (read, again) => assert_eq!(read, again),
        }
    }
}

/// The body of a message of the Model Context Protocol, as a client sends it.
pub fn mcp(data: &[u8]) {
    static RUNTIME: OnceLock<tokio::runtime::Runtime> = OnceLock::new();
    let runtime = RUNTIME.get_or_init(|| {
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime")
    });
    let key = &served().key;
    let send = || {
        // This one gets a lease if there is none.
        request(b"GET /v1/sports\nx-api-key: KEY");
        let request = Request::post("/mcp").header("host", "fuzz").header("x-api-key", key);
        let request = request.header("content-type", "application/json").header("accept", "application/json");
        let request = request.body(Full::new(Bytes::copy_from_slice(data))).expect("a request");
        runtime.block_on(exchange(request))
    };
    let (mut status, mut body) = send();
    if status == 503 {
        // The request before it has used up the last lease.
        (status, body) = send();
    }
    assert!([200, 202, 400, 413].contains(&status), "{status}");
    assert!(!String::from_utf8_lossy(&body).contains(key.as_str()), "the key is in the answer");
    if !body.is_empty() {
        let body: serde_json::Value = serde_json::from_slice(&body).expect("an answer is JSON");
        assert!(body["jsonrpc"] == "2.0" || body["error"]["code"].is_string(), "{body}");
    }
}

/// Sends a request through a connection in memory.
async fn exchange(request: Request<Full<Bytes>>) -> (u16, Bytes) {
    let (client, server) = tokio::io::duplex(1 << 16);
    let respond = hyper::service::service_fn(|request| async {
        Ok::<_, Infallible>(Respond::respond(&served().service, request, &Peer::local(0)).await)
    });
    let serving = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(server), respond);
    let asking = async {
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(client)).await.expect("a connection");
        let answer = async {
            let response = sender.send_request(request).await.expect("an answer");
            let status = response.status().as_u16();
            (status, response.into_body().collect().await.expect("a body").to_bytes())
        };
        tokio::select! {
            answer = answer => answer,
            ended = connection => panic!("the connection ended: {ended:?}"),
        }
    };
    tokio::select! {
        answer = asking => answer,
        ended = serving => panic!("the connection ended: {ended:?}"),
    }
}

/// An entry of the log that nodes share. What one node reads of it, the others do too.
pub fn cluster_entry(data: &[u8]) {
    let Ok(operation) = entry::decode(data, the_catalogue()) else { return };
    // News are read as they are needed: one that cannot be shows itself here.
    let Ok(written) = entry::encode(operation, the_catalogue()) else { return };
    let again = entry::decode(&written, the_catalogue()).expect("an entry that was written");
    let again = entry::encode(again, the_catalogue()).expect("an operation that was written");
    assert!(written == again, "{} became {}", written.escape_ascii(), again.escape_ascii());
}
