//! The body of a stream by itself: when its client hears something, and what one notification brings.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame};
use tokio::time::Instant;

use crate::board::{Beat, ChangeEntry, SportEntry, TickEntry};
use crate::http::ResponseBody;
use crate::http::testing::{Fixture, NOW, local, request};
use crate::keys::KeyRecord;
use crate::model::{Position, Timestamp, World};

const COMMENT: &str = ": still here\n\n";

/// The body of a new stream, after its greeting.
async fn open(fixture: &Fixture) -> ResponseBody {
    let asked = request(Method::GET, "/v1/stream?snapshot=false", &[("x-api-key", &fixture.sandbox)]);
    let mut body = fixture.service.respond(&asked, &local()).await.into_body();
    assert!(next(&mut body).await.starts_with("event: hello\n"));
    assert!(next(&mut body).await.starts_with("event: ready\n"));
    body
}

async fn next(body: &mut ResponseBody) -> String {
    text(&body.frame().await.expect("the stream goes on").unwrap())
}

fn text(frame: &Frame<Bytes>) -> String {
    String::from_utf8(frame.data_ref().unwrap().to_vec()).unwrap()
}

fn beat(fixture: &Fixture, position: Position) {
    let feed = fixture.service.boards.feed(World::Sandbox);
    feed.beat(Beat::new(Timestamp::from_unix(NOW), position, Vec::new()));
    feed.wake_all();
}

fn position(fixture: &Fixture) -> Position {
    fixture.service.boards.load(World::Sandbox).position()
}

#[tokio::test(start_paused = true)]
async fn client_that_hears_nothing_for_15_seconds_gets_a_comment() {
    let fixture = Fixture::new();
    let mut body = open(&fixture).await;
    let mut heard = Instant::now();
    // Events put the comment off, whenever they come.
    for seconds in [4, 9, 14, 1] {
        let event = async {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            beat(&fixture, position(&fixture));
        };
        let (text, ()) = tokio::join!(next(&mut body), event);
        assert!(text.starts_with("event: beat\n"), "{text}");
        assert_eq!(heard.elapsed().as_secs(), seconds);
        heard = Instant::now();
    }
    for _ in 0..3 {
        assert_eq!(next(&mut body).await, COMMENT);
        assert_eq!(heard.elapsed().as_secs(), 15);
        heard = Instant::now();
    }
}

#[tokio::test(start_paused = true)]
async fn stream_ends_with_its_key_though_nothing_happens() {
    let fixture = Fixture::new();
    let mut body = open(&fixture).await;
    let key = fixture.service.keyring.list().into_iter().next().unwrap();
    let expires = Some(Timestamp::from_unix(NOW + 7));
    let key = fixture.service.keyring.put(KeyRecord { expires, ..key.record().clone() });
    key.meter().streams().recheck();
    let began = Instant::now();
    let passing = async {
        for _ in 0..7 {
            tokio::time::sleep(Duration::from_secs(1)).await;
            fixture.clock.advance(Duration::from_secs(1));
        }
    };
    let (text, ()) = tokio::join!(next(&mut body), passing);
    assert!(text.starts_with("event: bye\ndata: {\"why\":\"expired\""), "{text}");
    assert!((7..=8).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
    assert!(body.frame().await.is_none());
}

/// A task that polls a body and counts how often it is woken.
#[derive(Default)]
struct Wakes(AtomicU64);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A new stream that is polled by hand.
struct PolledStream {
    body: ResponseBody,
    wakes: Arc<Wakes>,
}

impl PolledStream {
    async fn open(fixture: &Fixture) -> Self {
        PolledStream { body: open(fixture).await, wakes: Arc::default() }
    }

    fn poll(&mut self) -> Option<String> {
        let waker = Waker::from(Arc::clone(&self.wakes));
        match Pin::new(&mut self.body).poll_frame(&mut Context::from_waker(&waker)) {
            Poll::Ready(frame) => Some(text(&frame.unwrap().unwrap())),
            Poll::Pending => None,
        }
    }

    fn wakes(&self) -> u64 {
        self.wakes.0.load(Ordering::Relaxed)
    }
}

#[tokio::test(start_paused = true)]
async fn changes_of_a_tick_and_its_beat_are_handed_out_together() {
    let fixture = Fixture::new();
    let mut stream = PolledStream::open(&fixture).await;
    let (boards, at) = (&fixture.service.boards, Timestamp::from_unix(NOW));
    let sport = boards.catalogue().sport_ids().next().unwrap();
    let key = &boards.catalogue()[sport].key;
    let from = position(&fixture);
    assert_eq!(stream.poll(), None);
    for number in 0..3 {
        let tick = TickEntry::new(key, at, vec![("betmgm".into(), true)], Vec::new());
        let entry = SportEntry { sport, key: (**key).into(), lists: Vec::new(), tick: Some(tick) };
        boards.feed(World::Sandbox).push(ChangeEntry::new(from.sequence + number, vec![entry]));
        beat(&fixture, Position::before(from.epoch, from.sequence + number + 1));
        assert_eq!(stream.wakes(), number + 1, "one notification wakes it once");
        let frame = stream.poll().unwrap();
        let events: Vec<&str> = frame.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
        assert_eq!(events, ["source", "beat"]);
        assert_eq!(stream.poll(), None);
        assert_eq!(stream.poll(), None, "nothing has come since");
    }
}

/// Publishes so many records of a bookmaker and a beat after them.
fn publish_many(fixture: &Fixture, records: usize, bookmaker: &str) {
    let boards = &fixture.service.boards;
    let world = boards.load_full(World::Sandbox);
    let (sport, node) = world
        .iter()
        .find_map(|(sport, board)| {
            Some((sport, board.published().index().iter().find(|node| !node.records().is_empty())?))
        })
        .unwrap();
    let record = &node.records()[0];
    let changed = vec![(Arc::clone(node.event()), bookmaker.into(), record.market, Some(Arc::clone(record))); records];
    let (key, from) = (&boards.catalogue()[sport].key, world.position());
    let tick = TickEntry::new(key, Timestamp::from_unix(NOW), Vec::new(), changed);
    let entry = SportEntry { sport, key: (**key).into(), lists: Vec::new(), tick: Some(tick) };
    boards.feed(World::Sandbox).push(ChangeEntry::new(from.sequence, vec![entry]));
    beat(fixture, Position::before(from.epoch, from.sequence + 1));
}

#[tokio::test(start_paused = true)]
async fn long_publication_is_rendered_in_parts_and_is_one_event() {
    const RECORDS: usize = 2_500;
    for (bookmaker, parts) in [("betmgm", 3), ("nobody", 0)] {
        let fixture = Fixture::new();
        let mut stream = PolledStream::open(&fixture).await;
        assert_eq!(stream.poll(), None);
        publish_many(&fixture, RECORDS, bookmaker);

        for _ in 0..parts {
            let before = stream.wakes();
            assert_eq!(stream.poll(), None, "others have their turn");
            tokio::task::yield_now().await;
            assert_eq!(stream.wakes(), before + 1, "and then it goes on");
        }
        let (mut frames, mut turn, mut turns) = (String::new(), 0, 0);
        loop {
            let before = stream.wakes();
            if let Some(frame) = stream.poll() {
                turn += frame.len();
                assert!(turn <= 512 << 10, "{turn} bytes in one turn");
                frames.push_str(&frame);
                continue;
            }
            tokio::task::yield_now().await;
            if stream.wakes() > before {
                (turn, turns) = (0, turns + 1);
            } else {
                break;
            }
        }
        assert_eq!(turns > 0, parts > 0, "{turns} turns for {} bytes", frames.len());
        let events: Vec<&str> = frames.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
        assert_eq!(events, if parts > 0 { ["odds", "beat"].as_slice() } else { &["beat"] });
        assert_eq!(frames.matches("\"outcomes\":").count(), if parts > 0 { RECORDS } else { 0 });
    }
}
