//! One stream, as the body of its response: a greeting, a snapshot, then every change, until there is a reason to end.
//!
//! The body is polled when its client can take more. It then hands out what is next: bytes that it shares with the streams of the
//! same filter, or bytes of its own about the stream itself. It holds no more than a few frames, whatever its client does.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame};

use super::context::{StreamContext, StreamPlace};
use super::control::{self, EndReason};
use super::outbox::Outbox;
use super::request::StreamPlan;
use super::timer::StreamTimer;
use crate::board::render::json;
use crate::board::{Beat, ChangeEntry, Cursor, Encoding, MergedChanges, NextChange, WorldBoard};
use crate::http::exchange::history::HistoryFailure;
use crate::keys::{AuthError, KeyTicket, StreamSeat};
use crate::model::{Position, SportId, Timestamp};
use crate::wake::WakeSlot;

const COMMENT: Bytes = Bytes::from_static(b": still here\n\n");
/// A reader that is behind by more entries than this gets them as one.
const BEHIND_MAX: u64 = 16;
/// Longer entries are not joined with their beat: copying them would cost more than a write of its own.
const JOINED_WEIGHT_MAX: usize = 512 << 10;
/// When to look whether a maintenance without an announced end is over.
const MAINTENANCE_RETRY_S: u32 = 60;

type Entries = Arc<[Arc<ChangeEntry>]>;
type Reading = Pin<Box<dyn Future<Output = Result<Entries, HistoryFailure>> + Send>>;

/// What a stream begins with.
#[derive(Debug)]
pub(crate) struct StreamStart {
    pub plan: StreamPlan,
    pub world: Arc<WorldBoard>,
    /// Entries of the log that it continues with.
    pub read: Option<Entries>,
    pub ticket: KeyTicket,
    pub seat: StreamSeat,
    pub(super) place: StreamPlace,
    pub slot: Arc<WakeSlot>,
}

/// The body of a stream's response.
pub(crate) struct EventStream {
    context: Arc<StreamContext>,
    plan: StreamPlan,
    ticket: KeyTicket,
    seat: StreamSeat,
    _place: StreamPlace,
    slot: Arc<WakeSlot>,
    /// Its number among those who follow its world.
    number: u64,
    phase: Phase,
    /// After the last event that was handed out.
    position: Position,
    seen_beat: u64,
    outbox: Outbox,
    /// Whether it has not reached the last entry yet: until then it reads the log where memory does not reach, and nothing is merged.
    is_catching_up: bool,
    reading: Option<Reading>,
    /// Entries of the log that were read.
    read: Option<Entries>,
    /// Whether everything that there was at the last look is in the queue: then there is nothing to look for until a notification.
    is_current: bool,
    timer: StreamTimer,
    /// The changes of the key when it was last checked; `None` before the first time.
    checked: Option<u64>,
    /// When the key ends.
    until: Option<Timestamp>,
}

/// What a stream does.
#[derive(Debug)]
enum Phase {
    Begins(Arc<WorldBoard>),
    Snapshot(SnapshotPart),
    Follows,
    Ended,
}

/// A snapshot, and what is left of it.
#[derive(Debug)]
struct SnapshotPart {
    world: Arc<WorldBoard>,
    /// Those that are left, the next one last.
    sports: Vec<SportId>,
    after: Option<Cursor>,
}

/// Whether there is something to hand out.
enum Advance {
    /// The next frame.
    Frame(Bytes),
    /// What is in the queue, or what another look finds.
    Something,
    Nothing,
    /// It is being rendered, and others have their turn first.
    Later,
    /// The log cannot be read: the client has to come back.
    Failed,
}

impl EventStream {
    pub(super) fn new(context: Arc<StreamContext>, start: StreamStart) -> Self {
        let StreamStart { plan, world, read, ticket, seat, place, slot } = start;
        let number = context.boards.feed(plan.world).add_follower(&slot);
        EventStream {
            seen_beat: context.boards.feed(plan.world).last_beat(),
            position: world.position(),
            phase: Phase::Begins(world),
            outbox: Outbox::default(),
            is_catching_up: true,
            reading: None,
            read,
            is_current: false,
            timer: StreamTimer::new(),
            checked: None,
            until: None,
            number,
            _place: place,
            context,
            plan,
            ticket,
            seat,
            slot,
        }
    }

    /// Puts what is next into the queue.
    fn advance(&mut self, task: &mut Context<'_>) -> Advance {
        if let Some(reason) = self.reason_to_end() {
            self.end(reason);
            return Advance::Something;
        }
        match std::mem::replace(&mut self.phase, Phase::Follows) {
            Phase::Begins(world) => {
                self.begin(world);
                Advance::Something
            }
            Phase::Snapshot(part) => {
                self.snapshot(part);
                Advance::Something
            }
            Phase::Follows => self.follow(task),
            Phase::Ended => {
                self.phase = Phase::Ended;
                Advance::Nothing
            }
        }
    }

    fn begin(&mut self, world: Arc<WorldBoard>) {
        let now = world.position();
        let resumed = self.plan.since.filter(|since| since.epoch == now.epoch && !since.is_after(now));
        // It repeats the position, so that a client that takes the id of every event does not lose its place here.
        let hello = control::hello(&self.plan, &self.context, world.position(), resumed);
        self.outbox.push(hello);
        match self.plan.since {
            Some(_) if resumed.is_none() => self.reset("epoch"),
            Some(since) => {
                self.position = since;
                self.phase = Phase::Follows;
            }
            None if self.plan.wants_snapshot => self.phase = self.new_snapshot(world),
            None => self.ready(now),
        }
    }

    fn new_snapshot(&self, world: Arc<WorldBoard>) -> Phase {
        let sports = self.context.boards.catalogue().sport_ids();
        let mut sports: Vec<SportId> = sports.filter(|sport| self.plan.filter.spec.sports.contains(*sport)).collect();
        sports.reverse();
        Phase::Snapshot(SnapshotPart { world, sports, after: None })
    }

    /// The next page of a snapshot, or its end. Pages are answers of Get Odds, rendered once for all clients.
    fn snapshot(&mut self, mut part: SnapshotPart) {
        let catalogue = self.context.boards.catalogue();
        while let Some(sport) = part.sports.last().copied() {
            let board = part.world.sport(sport);
            let mut query = self.plan.filter.query(sport, board.published().register());
            query.after = part.after.take();
            let body = board.odds(&catalogue[sport].key, &query);
            part.after = body.next().cloned();
            if part.after.is_none() {
                part.sports.pop();
            }
            // An empty page is `[]`.
            if body.len() > 2 {
                let mut head = b"event: snapshot\ndata: {\"sport_key\":".to_vec();
                json::string(&catalogue[sport].key, &mut head);
                head.extend_from_slice(b",\"records\":");
                for bytes in [head.into(), body.bytes(Encoding::Identity).clone(), Bytes::from_static(b"}\n\n")] {
                    self.outbox.push(bytes);
                }
                self.phase = Phase::Snapshot(part);
                return;
            }
        }
        self.ready(part.world.position());
    }

    /// From here on come changes.
    fn ready(&mut self, position: Position) {
        self.position = position;
        self.phase = Phase::Follows;
        self.outbox.push(control::ready(position));
    }

    /// The client has to begin anew.
    fn reset(&mut self, why: &str) {
        self.context.counts().count_reset();
        let world = self.context.boards.load_full(self.plan.world);
        let position = world.position();
        self.is_catching_up = false;
        self.read = None;
        self.seen_beat = self.context.boards.feed(self.plan.world).last_beat();
        let wants_snapshot = self.plan.wants_snapshot;
        // Whoever loses the connection during a snapshot gets another one.
        let resumes_at = (!wants_snapshot).then_some(position);
        self.outbox.push(control::reset(why, resumes_at));
        self.position = position;
        self.phase = if wants_snapshot { self.new_snapshot(world) } else { Phase::Follows };
    }

    /// The next change, and the beat after it.
    fn follow(&mut self, task: &mut Context<'_>) -> Advance {
        let world = self.context.boards.load(self.plan.world);
        let end = world.position();
        if end.epoch != self.position.epoch {
            self.reset("epoch");
            return Advance::Something;
        }
        let next = self.context.boards.feed(self.plan.world).next(self.position, self.seen_beat);
        let advanced = match next {
            NextChange::Beat(beat) => {
                self.seen_beat = beat.number();
                Advance::Frame(beat.frame(&self.plan.filter, world.register()))
            }
            NextChange::Entry(..) if self.is_far_behind(end) => return self.merge(&world),
            NextChange::Entry(entry, _) if !entry.prepare(&self.plan.filter, world.register()) => {
                return Advance::Later;
            }
            NextChange::Entry(entry, beat) => {
                self.context.counts().record_delivery(entry.age());
                self.deliver_tick(&entry, beat.as_deref(), &world)
            }
            NextChange::NotKept if self.position.sequence >= end.sequence => Advance::Nothing,
            NextChange::NotKept if self.is_catching_up => return self.read_log(&world, task),
            NextChange::NotKept => {
                self.reset("slow");
                return Advance::Something;
            }
        };
        // Whatever is published from here on comes with a notification.
        if self.position.sequence >= end.sequence {
            self.is_current = true;
            self.is_catching_up = false;
            self.read = None;
        }
        advanced
    }

    fn is_far_behind(&self, end: Position) -> bool {
        !self.is_catching_up && end.sequence.saturating_sub(self.position.sequence) > BEHIND_MAX
    }

    fn deliver(&mut self, entry: &ChangeEntry, world: &WorldBoard) {
        let frames = entry.frames(&self.plan.filter, world.register(), self.position);
        if !frames.is_empty() {
            self.outbox.push(frames);
        }
        self.position = Position::before(self.position.epoch, entry.sequence + 1);
    }

    /// An entry and the beat after it, as one frame if the client gets all of the entry: each frame costs it a part of a write.
    fn deliver_tick(&mut self, entry: &ChangeEntry, beat: Option<&Beat>, world: &WorldBoard) -> Advance {
        let (filter, register) = (&self.plan.filter, world.register());
        let is_whole = self.position.offset == 0;
        let is_short = entry.weight() <= JOINED_WEIGHT_MAX;
        let joined = beat.filter(|_| is_whole && is_short).and_then(|beat| beat.frame_with(entry, filter, register));
        if let Some(frame) = joined {
            self.position = Position::before(self.position.epoch, entry.sequence + 1);
            self.seen_beat = beat.map_or(self.seen_beat, Beat::number);
            return Advance::Frame(frame);
        }
        self.deliver(entry, world);
        if let Some(beat) = beat {
            self.seen_beat = beat.number();
            self.outbox.push(beat.frame(&self.plan.filter, register));
        }
        Advance::Something
    }

    /// What a slow reader has missed, each record in its last state.
    fn merge(&mut self, world: &WorldBoard) -> Advance {
        let feed = self.context.boards.feed(self.plan.world);
        let Some(entries) = feed.entries_from(self.position.sequence) else { return Advance::Nothing };
        self.context.counts().count_merged();
        let mut merged = MergedChanges::new(&self.plan.filter, world.register());
        let mut from = self.position;
        for entry in entries {
            merged.add(&entry, from.offset, usize::MAX);
            from = Position::before(from.epoch, entry.sequence + 1);
        }
        self.position = from;
        let frames = merged.frames(from);
        if !frames.is_empty() {
            self.outbox.push(frames);
        }
        Advance::Something
    }

    /// The next entry of those that were logged before the stream began.
    fn read_log(&mut self, world: &WorldBoard, task: &mut Context<'_>) -> Advance {
        let sequence = self.position.sequence;
        let find = |entries: &Entries| entries.iter().find(|entry| entry.sequence == sequence).map(Arc::clone);
        if let Some(entry) = self.read.as_ref().and_then(find) {
            self.deliver(&entry, world);
            return Advance::Something;
        }
        let reading = self.reading.get_or_insert_with(|| {
            let context = Arc::clone(&self.context);
            Box::pin(context.entries(self.plan.world, self.position, world.position()))
        });
        let Poll::Ready(read) = reading.as_mut().poll(task) else { return Advance::Nothing };
        self.reading = None;
        match read {
            Ok(entries) if find(&entries).is_some() => {
                self.read = Some(entries);
                Advance::Something
            }
            Ok(_) | Err(HistoryFailure::Gone { .. } | HistoryFailure::Damaged | HistoryFailure::TooMuch) => {
                self.reset("trimmed");
                Advance::Something
            }
            Err(HistoryFailure::Unavailable) => Advance::Failed,
        }
    }

    /// Whether the stream may not go on, by the state of its key and of the service.
    fn reason_to_end(&mut self) -> Option<EndReason> {
        let condition = self.context.boards.condition();
        if self.context.is_stopping() || !condition.may_serve(|| self.context.clock.mono_ms()) {
            return Some(EndReason::Shutdown);
        }
        let changes = self.seat.changes();
        let is_checked = self.checked == Some(changes) && self.until.is_none();
        // Nearly always: it then need not know the time either.
        if is_checked && !condition.has_maintenance() {
            return None;
        }
        self.reason_at(changes, self.context.clock.now().timestamp())
    }

    /// The same for reasons that depend on the time or on changes of the key.
    fn reason_at(&mut self, changes: u64, now: Timestamp) -> Option<EndReason> {
        let is_checked = self.checked == Some(changes) && self.until.is_none_or(|until| now < until);
        if !is_checked && let Some(reason) = self.check_key(changes, now) {
            return Some(reason);
        }
        let maintenance = self.context.boards.condition().maintenance(now)?;
        let retry_after_s = maintenance.until.map_or(MAINTENANCE_RETRY_S, |until| until.seconds_since(now));
        Some(EndReason::Maintenance { retry_after_s })
    }

    /// Whether the key, as it is after so many changes, does not allow the stream any more. Until the next change or the end of
    /// the key nothing of this becomes different.
    fn check_key(&mut self, changes: u64, now: Timestamp) -> Option<EndReason> {
        let keys = self.context.keyring.load();
        let (grant, until) = match keys.renew(&self.ticket, now) {
            Ok(renewed) => renewed,
            Err(AuthError::Expired(_) | AuthError::RotatedOut(_)) => return Some(EndReason::Expired),
            Err(_) => return Some(EndReason::Revoked),
        };
        if !grant.sports().contains_all(self.plan.filter.spec.sports) {
            return Some(EndReason::Forbidden);
        }
        if !self.seat.is_within(grant.record().limits.streams) {
            return Some(EndReason::Limit);
        }
        self.checked = Some(changes);
        self.seat.has_checked(changes);
        if self.until != until {
            self.until = until;
            self.set_timer();
        }
        None
    }

    fn end(&mut self, reason: EndReason) {
        if matches!(self.phase, Phase::Ended) {
            return;
        }
        // Differs from stream to stream.
        let spread = Arc::as_ptr(&self.slot).addr();
        self.outbox.push(control::bye(reason, spread));
        self.phase = Phase::Ended;
    }

    /// Lets the timer fire when there is something to do.
    fn set_timer(&mut self) {
        let now = self.context.clock.now().timestamp();
        self.timer.set(self.until.map(|until| until.seconds_since(now)));
    }

    /// The timer has fired.
    fn after_timer(&mut self) {
        if self.timer.ends_silence() {
            self.outbox.push(COMMENT);
        }
        self.set_timer();
        // The key may have ended.
        self.is_current = false;
    }

    fn hand_out(&mut self, bytes: Bytes) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        self.context.counts().count_bytes(bytes.len());
        self.timer.note_heard();
        Poll::Ready(Some(Ok(Frame::data(bytes))))
    }

    /// Looks for what is next, unless nothing can have come since the last look.
    fn look(&mut self, task: &mut Context<'_>) -> Advance {
        if self.is_current && !self.slot.is_pending() {
            return Advance::Nothing;
        }
        self.slot.begin();
        self.is_current = false;
        let advanced = self.advance(task);
        self.slot.set_progress(self.position.sequence);
        advanced
    }
}

impl Body for EventStream {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let stream = self.get_mut();
        if stream.outbox.has_had_its_turn() {
            return stream.outbox.yield_turn(task);
        }
        loop {
            if let Some(bytes) = stream.outbox.take_next() {
                return stream.hand_out(bytes);
            }
            if matches!(stream.phase, Phase::Ended) {
                return Poll::Ready(None);
            }
            match stream.look(task) {
                Advance::Frame(bytes) => {
                    let bytes = stream.outbox.take(bytes);
                    return stream.hand_out(bytes);
                }
                Advance::Something => continue,
                Advance::Failed => return Poll::Ready(Some(Err(io::ErrorKind::Other.into()))),
                Advance::Later => return stream.outbox.yield_turn(task),
                Advance::Nothing => {}
            }
            if stream.timer.poll(task).is_ready() {
                stream.after_timer();
                continue;
            }
            if stream.slot.wait(task.waker()) {
                stream.outbox.end_turn();
                return Poll::Pending;
            }
        }
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        self.context.boards.feed(self.plan.world).remove_follower(self.number);
    }
}

impl fmt::Debug for EventStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStream")
            .field("position", &self.position)
            .field("phase", &self.phase)
            .finish_non_exhaustive()
    }
}
