//! The failure that this prevents: a client with invalid HTTP/2 is misinterpreted, or affects other clients.
//!
//! Frames are written byte by byte (RFC 9113), since no library would send them. Each case runs in plain text and under
//! TLS: a connection error ends the connection with the code that the RFC requires, a stream error ends only that
//! stream, and what must be ignored is ignored.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::Service;
use crate::harness::tls::{Certificates, Wire, connect_trusting};

const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
pub const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PUSH_PROMISE: u8 = 5;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;

pub const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;

const PROTOCOL_ERROR: u32 = 1;
const FLOW_CONTROL_ERROR: u32 = 3;
const STREAM_CLOSED: u32 = 5;
const FRAME_SIZE_ERROR: u32 = 6;
pub const CANCEL: u32 = 8;
const COMPRESSION_ERROR: u32 = 9;
pub const ENHANCE_YOUR_CALM: u32 = 11;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The first field of a response with status 200, as every encoder writes it.
const STATUS_200: u8 = 0x88;

/// The maximum time for a response.
const PATIENCE: Duration = Duration::from_secs(30);

pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a short frame");
    let mut bytes = length.to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// The connection preface of every client.
pub fn hello() -> Vec<u8> {
    [PREFACE, &frame(SETTINGS, 0, 0, &[])].concat()
}

/// A literal field with a new name, in the simplest form of HPACK.
pub fn field(name: &str, value: &str) -> Vec<u8> {
    [&[0], &*text(name), &*text(value)].concat()
}

fn text(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    if text.len() < 127 {
        bytes.push(u8::try_from(text.len()).expect("a short text"));
    } else {
        let mut rest = text.len() - 127;
        bytes.push(127);
        while rest >= 128 {
            bytes.push(u8::try_from(rest % 128).expect("seven bits") | 128);
            rest /= 128;
        }
        bytes.push(u8::try_from(rest).expect("seven bits"));
    }
    bytes.extend(text.as_bytes());
    bytes
}

/// `:method`, `:scheme`, `:authority` and `:path` of a GET.
pub fn get_fields(path: &str) -> Vec<u8> {
    [&[0x82, 0x86, 0x01], &*text("oddsbox"), &[0x04], &*text(path)].concat()
}

pub fn get(stream: u32, path: &str) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | END_STREAM, stream, &get_fields(path))
}

/// The frames that a server sent, as far as they are inspected.
#[derive(Debug, Default)]
pub struct Said {
    /// The code of its last GOAWAY.
    pub goodbye: Option<u32>,
    /// The codes of the streams that it reset.
    resets: Vec<(u32, u32)>,
    /// The first byte of each response's headers.
    answers: Vec<(u32, u8)>,
    /// The payloads of answered pings.
    pongs: Vec<Vec<u8>>,
}

impl Said {
    fn reset_of_first(&self) -> Option<u32> {
        self.resets.iter().find(|(id, _)| *id == 1).map(|(_, code)| *code)
    }

    fn is_answered(&self) -> bool {
        self.answers.contains(&(1, STATUS_200))
    }

    /// Whether the first stream got a response other than 200.
    fn is_refused(&self) -> bool {
        self.answers.iter().any(|(id, first)| *id == 1 && *first != STATUS_200)
    }

    /// Parses all complete frames.
    pub fn read(mut bytes: &[u8]) -> Said {
        let mut said = Said::default();
        let number = |bytes: &[u8]| bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte));
        while let [a, b, c, kind, flags, stream @ ..] = bytes {
            let length = usize::try_from(number(&[*a, *b, *c])).expect("a short frame");
            let Some(payload) = stream.get(4..4 + length) else { break };
            let id = number(&stream[..4]);
            match *kind {
                HEADERS => said.answers.push((id, payload[0])),
                RST_STREAM => said.resets.push((id, number(payload))),
                PING if *flags & ACK != 0 => said.pongs.push(payload.to_vec()),
                GOAWAY => said.goodbye = Some(number(&payload[4..8])),
                _ => {}
            }
            bytes = &stream[4 + length..];
        }
        said
    }
}

/// The required outcome for a connection.
#[derive(Clone, Copy, Debug)]
enum Then {
    /// It ends with one of these codes, or the unspecific one, which the library prefers in places.
    Ends(&'static [u32]),
    /// Its first stream ends with one of these codes or a 400, and the connection continues. Or the connection ends,
    /// which the RFC leaves to the server.
    Resets(&'static [u32]),
    /// Its first stream is answered, and the connection continues.
    Answers,
    /// Nothing.
    GoesOn,
}

/// A case: its name, the bytes after the preface, and the required outcome.
type Case = (&'static str, Vec<u8>, Then);

/// A setting with its value.
fn setting(id: u16, value: u32) -> Vec<u8> {
    [&id.to_be_bytes()[..], &value.to_be_bytes()].concat()
}

fn head(fields: &[Vec<u8>]) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | END_STREAM, 1, &fields.concat())
}

/// Frames of a wrong size, on a wrong stream, or at a wrong time.
fn frames_that_are_wrong() -> Vec<Case> {
    use Then::Ends;
    let unfinished = frame(HEADERS, END_STREAM, 1, &get_fields("/healthz"));
    let ended = get(1, "/healthz");
    vec![
        // Only the frame header is sent: the rest must not be read.
        ("a frame too large", vec![0, 0x40, 0x01, DATA, 0, 0, 0, 0, 1], Ends(&[FRAME_SIZE_ERROR])),
        ("DATA on the connection", frame(DATA, 0, 0, b"x"), Ends(&[PROTOCOL_ERROR])),
        ("DATA on an idle stream", frame(DATA, 0, 1, b"x"), Ends(&[PROTOCOL_ERROR])),
        ("HEADERS on the connection", frame(HEADERS, 5, 0, &get_fields("/")), Ends(&[PROTOCOL_ERROR])),
        ("a stream with an even number", get(2, "/healthz"), Ends(&[PROTOCOL_ERROR])),
        (
            "a stream before one that was",
            [get(3, "/healthz"), get(1, "/healthz")].concat(),
            Ends(&[PROTOCOL_ERROR, STREAM_CLOSED]),
        ),
        (
            "a closed stream continues",
            [ended.clone(), frame(DATA, 0, 1, b"x")].concat(),
            Then::Resets(&[STREAM_CLOSED]),
        ),
        ("a padding longer than its frame", frame(HEADERS, 13, 1, &[200, 0x82]), Ends(&[PROTOCOL_ERROR])),
        (
            "a padding longer than its data",
            [unended(), frame(DATA, PADDED, 1, &[9, 1])].concat(),
            Ends(&[PROTOCOL_ERROR]),
        ),
        ("PRIORITY of a wrong length", frame(PRIORITY, 0, 1, &[0; 4]), Ends(&[FRAME_SIZE_ERROR])),
        ("PRIORITY on the connection", frame(PRIORITY, 0, 0, &[0; 5]), Ends(&[PROTOCOL_ERROR])),
        ("RST_STREAM on the connection", frame(RST_STREAM, 0, 0, &[0; 4]), Ends(&[PROTOCOL_ERROR])),
        ("RST_STREAM on an idle stream", frame(RST_STREAM, 0, 1, &[0; 4]), Ends(&[PROTOCOL_ERROR])),
        ("RST_STREAM of a wrong length", [ended, frame(RST_STREAM, 0, 1, &[0; 3])].concat(), Ends(&[FRAME_SIZE_ERROR])),
        ("PUSH_PROMISE of a client", frame(PUSH_PROMISE, END_HEADERS, 1, &[0, 0, 0, 2]), Ends(&[PROTOCOL_ERROR])),
        ("PING of a wrong length", frame(PING, 0, 0, &[0; 7]), Ends(&[FRAME_SIZE_ERROR])),
        ("PING on a stream", frame(PING, 0, 1, &[0; 8]), Ends(&[PROTOCOL_ERROR])),
        ("GOAWAY on a stream", frame(GOAWAY, 0, 1, &[0; 8]), Ends(&[PROTOCOL_ERROR])),
        ("CONTINUATION of nothing", frame(CONTINUATION, END_HEADERS, 1, &[]), Ends(&[PROTOCOL_ERROR])),
        ("PING within a head", [unfinished.clone(), frame(PING, 0, 0, &[0; 8])].concat(), Ends(&[PROTOCOL_ERROR])),
        ("another stream within a head", [unfinished, get(3, "/")].concat(), Ends(&[PROTOCOL_ERROR])),
        ("fields that are no HPACK", frame(HEADERS, 5, 1, &[0xff, 0xff, 0xff, 0xff, 0xff]), Ends(&[COMPRESSION_ERROR])),
        ("a field that no table has", head(&[get_fields("/healthz"), vec![0xfe]]), Ends(&[COMPRESSION_ERROR])),
    ]
}

/// A request whose body is still to come.
fn unended() -> Vec<u8> {
    frame(HEADERS, END_HEADERS, 1, &get_fields("/healthz"))
}

fn settings_and_windows_that_are_wrong() -> Vec<Case> {
    use Then::{Ends, Resets};
    let window = |stream, by: u32| frame(WINDOW_UPDATE, 0, stream, &by.to_be_bytes());
    let settings = |id, value| frame(SETTINGS, 0, 0, &setting(id, value));
    vec![
        ("WINDOW_UPDATE of 0", window(0, 0), Ends(&[PROTOCOL_ERROR])),
        ("WINDOW_UPDATE of 0 for a stream", [unended(), window(1, 0)].concat(), Resets(&[PROTOCOL_ERROR])),
        ("WINDOW_UPDATE on an idle stream", window(1, 1), Ends(&[PROTOCOL_ERROR])),
        ("WINDOW_UPDATE of a wrong length", frame(WINDOW_UPDATE, 0, 0, &[0, 0, 1]), Ends(&[FRAME_SIZE_ERROR])),
        ("a window beyond its bound", window(0, 0x7fff_ffff), Ends(&[FLOW_CONTROL_ERROR])),
        ("SETTINGS of a wrong length", frame(SETTINGS, 0, 0, &[0; 5]), Ends(&[FRAME_SIZE_ERROR])),
        ("SETTINGS on a stream", frame(SETTINGS, 0, 1, &[]), Ends(&[PROTOCOL_ERROR])),
        ("SETTINGS that acknowledge and say more", frame(SETTINGS, ACK, 0, &setting(3, 1)), Ends(&[FRAME_SIZE_ERROR])),
        ("a push that is neither on nor off", settings(2, 2), Ends(&[PROTOCOL_ERROR])),
        ("a first window beyond its bound", settings(4, 0x8000_0000), Ends(&[FLOW_CONTROL_ERROR])),
        ("a frame size below its bound", settings(5, 16_383), Ends(&[PROTOCOL_ERROR])),
        ("a frame size above its bound", settings(5, 1 << 24), Ends(&[PROTOCOL_ERROR])),
    ]
}

fn requests_that_are_wrong() -> Vec<Case> {
    let wrong = Then::Resets(&[PROTOCOL_ERROR]);
    vec![
        ("a name in capitals", head(&[get_fields("/healthz"), field("X-A", "b")]), wrong),
        ("a pseudo-header after a header", head(&[vec![0x82, 0x86], field("a", "b"), vec![0x84]]), wrong),
        ("an unknown pseudo-header", head(&[get_fields("/healthz"), field(":a", "b")]), wrong),
        ("a pseudo-header of answers", head(&[get_fields("/healthz"), vec![0x88]]), wrong),
        ("a header of one connection", head(&[get_fields("/healthz"), field("connection", "close")]), wrong),
        ("TE for more than trailers", head(&[get_fields("/healthz"), field("te", "gzip")]), wrong),
        ("no method", head(&[vec![0x86, 0x84]]), wrong),
        ("no scheme", head(&[vec![0x82, 0x84]]), wrong),
        ("no path", head(&[vec![0x82, 0x86]]), wrong),
        ("two methods", head(&[vec![0x82], get_fields("/healthz")]), wrong),
        ("two paths", head(&[get_fields("/healthz"), vec![0x84]]), wrong),
    ]
}

/// Unusual but valid frames.
fn what_goes_on() -> Vec<Case> {
    let fields = get_fields("/healthz");
    let (one, rest) = fields.split_at(1);
    let in_pieces =
        [frame(HEADERS, END_STREAM, 1, one), frame(CONTINUATION, 0, 1, &[]), frame(CONTINUATION, END_HEADERS, 1, rest)];
    let padded = [&[3], &*fields, &[0; 3]].concat();
    let mut high = get(1, "/healthz");
    high[5] |= 0x80;
    vec![
        ("a request", get(1, "/healthz"), Then::Answers),
        ("a request in pieces", in_pieces.concat(), Then::Answers),
        ("a request with padding", frame(HEADERS, 13, 1, &padded), Then::Answers),
        ("a bit that is reserved", high, Then::Answers),
        ("a frame of an unknown kind", frame(0x16, 0xff, 0, b"whatever"), Then::GoesOn),
        ("one of those on a stream", [get(1, "/healthz"), frame(0xfe, 0, 1, b"?")].concat(), Then::Answers),
        ("an unknown setting", frame(SETTINGS, 0, 0, &setting(0xff, 7)), Then::GoesOn),
        ("unknown flags", frame(PING, 0xfe, 0, b"flags!!!"), Then::GoesOn),
        ("an answer to no PING", frame(PING, ACK, 0, b"unasked!"), Then::GoesOn),
        ("PRIORITY of an idle stream", frame(PRIORITY, 0, 5, &[0, 0, 0, 0, 1]), Then::GoesOn),
    ]
}

/// A service and ways to connect to it.
struct Ways {
    plain: Service,
    tls: Service,
    trusted: rustls_pki_types::CertificateDer<'static>,
}

impl Ways {
    async fn open() -> Ways {
        let (files, trusted) = Certificates::made();
        let settings = [("tls.certificate", &*files.chain()), ("tls.key", &*files.key())];
        Ways { plain: Service::start().await, tls: Service::start_with(&settings).await, trusted }
    }

    async fn each(&self) -> [(&'static str, Box<dyn Wire>); 2] {
        let plain = TcpStream::connect(self.plain.address).await.expect("a connection");
        let tls = connect_trusting(&self.trusted, self.tls.address, &["h2"]).await.expect("a handshake");
        [("plain text", Box::new(plain)), ("TLS", tls)]
    }
}

/// Sends bytes and reads until the outcome is clear or the server closes; returns whether it closed.
async fn exchange(stream: &mut impl Wire, bytes: &[u8], is_enough: impl Fn(&Said) -> bool) -> (Said, bool) {
    // It may be closed before everything is sent.
    let _ = stream.write_all(bytes).await;
    let mut read = Vec::new();
    let until = tokio::time::Instant::now() + PATIENCE;
    loop {
        let said = Said::read(&read);
        if is_enough(&said) {
            return (said, false);
        }
        let more = tokio::time::timeout_at(until, stream.read_buf(&mut read)).await;
        // How the connection ends does not matter.
        match more.unwrap_or_else(|_| panic!("neither enough nor the end: {said:?}")) {
            Ok(0) | Err(_) => return (said, true),
            Ok(_) => {}
        }
    }
}

/// Whether a case has the required outcome; if not, the difference.
async fn try_case(stream: &mut impl Wire, bytes: &[u8], then: Then) -> Result<(), String> {
    let still_here = b"stillher";
    let is_over = |said: &Said| {
        let is_first_over = said.reset_of_first().is_some() || !said.answers.is_empty();
        let goes_on = said.pongs.iter().any(|pong| pong == still_here);
        match then {
            Then::Ends(_) => false,
            Then::Resets(_) | Then::Answers => goes_on && is_first_over,
            Then::GoesOn => goes_on,
        }
    };
    let mut all = [hello(), bytes.to_vec()].concat();
    if !matches!(then, Then::Ends(_)) {
        all.extend(frame(PING, 0, 0, still_here));
    }
    let (said, is_closed) = exchange(stream, &all, is_over).await;
    let ends =
        |codes: &[u32]| is_closed && said.goodbye.is_some_and(|code| codes.contains(&code) || code == PROTOCOL_ERROR);
    let goes_on = !is_closed && said.goodbye.is_none();
    let is_reset = |codes: &[u32]| said.reset_of_first().is_some_and(|code| codes.contains(&code));
    let is_right = match then {
        Then::Ends(codes) => ends(codes) && !said.is_answered(),
        Then::Resets(codes) => ends(codes) || goes_on && (is_reset(codes) || said.is_refused()),
        Then::Answers => goes_on && said.reset_of_first().is_none() && said.is_answered(),
        Then::GoesOn => goes_on,
    };
    if is_right { Ok(()) } else { Err(format!("{then:?} became {said:?}, closed: {is_closed}")) }
}

#[tokio::test]
async fn invalid_frames_end_as_the_rfc_requires_and_unusual_ones_are_accepted() {
    let ways = Ways::open().await;
    let mut cases = frames_that_are_wrong();
    cases.extend(settings_and_windows_that_are_wrong());
    cases.extend(requests_that_are_wrong());
    cases.extend(what_goes_on());
    let mut wrong = Vec::new();
    for (what, bytes, then) in cases {
        for (way, mut stream) in ways.each().await {
            let tried = try_case(&mut stream, &bytes, then).await;
            wrong.extend(tried.err().map(|became| format!("{what} in {way}: {became}")));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test]
async fn wrong_preface_is_not_answered_in_http_2() {
    let ways = Ways::open().await;
    let bad = [b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n", &*frame(SETTINGS, 0, 0, &[])].concat();
    for (way, mut stream) in ways.each().await {
        let (said, is_closed) = exchange(&mut stream, &bad, |_| false).await;
        assert!(is_closed && said.answers.is_empty() && said.pongs.is_empty(), "{way}: {said:?}");
    }
}

/// Over HTTP/2 as over HTTP/1.1, headers beyond the limits get an error in the API's shape. Headers far beyond them are
/// answered by the HTTP library without a body, or the connection is closed: no valid key was used on it.
#[tokio::test]
async fn too_large_headers_are_rejected() {
    let ways = Ways::open().await;
    for (bytes, is_ours) in [(20_000, true), (100_000, false)] {
        for (way, stream) in ways.each().await {
            let (mut client, connection) = h2::client::handshake(stream).await.expect("a handshake");
            let driven = tokio::spawn(connection);
            let request = http::Request::get("http://oddsbox/healthz").header("x-long", "x".repeat(bytes));
            let (answer, _) = client.send_request(request.body(()).expect("a request"), true).expect("a stream");
            let answer = tokio::time::timeout(PATIENCE, answer).await.expect("an end");
            if !is_ours && answer.is_err() {
                driven.abort();
                continue;
            }
            let answer = answer.expect("an answer");
            assert_eq!(answer.status(), 431, "{bytes} bytes in {way}");
            let body = answer.into_body().data().await.map_or_else(Vec::new, |data| data.expect("a body").to_vec());
            let body = String::from_utf8_lossy(&body);
            assert_eq!(body.contains("headers_too_large"), is_ours, "{bytes} bytes in {way}: {body}");
            driven.abort();
        }
    }
    for (way, mut stream) in ways.each().await {
        let field = field("x-long", &"x".repeat(16_000));
        let pieces = frame(CONTINUATION, 0, 1, &field).repeat(20);
        let begun = frame(HEADERS, END_STREAM, 1, &get_fields("/healthz"));
        let (said, is_closed) = exchange(&mut stream, &[hello(), begun, pieces].concat(), |_| false).await;
        // The error may be lost with the connection.
        let is_told = matches!(said.goodbye, None | Some(ENHANCE_YOUR_CALM));
        assert!(is_closed && is_told && said.answers.is_empty(), "{way}: {said:?}");
    }
}
