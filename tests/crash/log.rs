//! The failure that this prevents: the log says that a board was another one than readers saw, or a change is in it
//! twice, or not at all.
//!
//! A writer lives through random news, ticks, restarts, kills, power losses and disks that fail. A plain list keeps what
//! readers saw after each step. The log must give the same board at every tick of the list, and the changes after any
//! entry must lead from the board after that entry to the last one. The lines of every event must be what a plain reading
//! of all entries gives (see `lines`). An event that is forgotten leaves no trace in any of them.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use oddsbox::clock::Clock;
use oddsbox::model::{EventId, News, SportId, Timestamp, World};
use oddsbox::store::{ForgetOutcome, HistoryReader, LoggedChange, SportFold};
use oddsbox::writer::Writer;

use super::disk::{Disk, Trouble, cut_power};
use super::lines;
use super::writer_run::{EVENTS, NOON_MS, news, open_writer, pick, the_catalogue, try_open_writer};
use crate::process::seed::{Random, short_or_long};

/// The outcomes of each record, by event, bookmaker and market.
type Board = BTreeMap<(String, String, &'static str), String>;

/// What readers saw of a world since a tick.
struct Publication {
    world: World,
    tick: Timestamp,
    board: Board,
}

struct Life {
    disk: Disk,
    /// What the disk had when its steps were last taken.
    base: Vec<u8>,
    clock: Clock,
    writer: Option<Writer>,
    seen: Vec<Publication>,
    counts: BTreeMap<&'static str, u64>,
}

fn tennis() -> SportId {
    the_catalogue().find("tennis").expect("tennis")
}

/// The board that readers see.
fn shown(writer: &Writer, world: World) -> Board {
    let board = writer.boards().load_full(world);
    let books = board.register().bookmakers();
    let nodes = board.sport(tennis()).published().index().iter();
    let records = nodes.flat_map(|node| node.records().iter().map(move |record| (node.event().id.to_string(), record)));
    records
        .map(|(event, record)| {
            let key = (event, books.key(record.bookmaker).to_owned(), record.market.key());
            (key, format!("{:?}", record.outcomes))
        })
        .collect()
}

/// The board that the log has.
fn logged(fold: &SportFold) -> Board {
    let events = fold.events().flat_map(|event| fold.records(event).map(move |record| (event, record)));
    events
        .map(|(event, (book, market, price))| {
            let key = (event.event.id.to_string(), book.to_string(), market.key());
            (key, format!("{:?}", price.outcomes))
        })
        .collect()
}

impl Life {
    fn new() -> Life {
        let (disk, clock) = (Disk::new(Vec::new()), Clock::manual(NOON_MS));
        let writer = Some(open_writer(disk.open().expect("a disk that opens"), &clock));
        disk.take_steps();
        let base = disk.bytes();
        Life { disk, base, clock, writer, seen: Vec::new(), counts: BTreeMap::new() }
    }

    fn writer(&mut self) -> &mut Writer {
        self.writer.as_mut().expect("an open writer")
    }

    fn history(&self) -> HistoryReader {
        self.writer.as_ref().expect("an open writer").history()
    }

    fn step(&mut self, random: &mut Random) {
        self.clock.advance(Duration::from_millis(random.below(4_000)));
        let done = match random.below(25) {
            0..14 => self.ingest(random),
            14..18 => {
                self.clock.advance(Duration::from_secs(random.below(90)));
                self.writer().tick();
                "tick"
            }
            18 => self.restart(),
            19 if random.below(2) == 0 => self.start_on_failing_disk(random),
            19 => self.kill(),
            20 | 21 => self.lose_power(random),
            22 => self.forget(random),
            _ => self.fail(random),
        };
        *self.counts.entry(done).or_default() += 1;
        self.look(done);
    }

    fn ingest(&mut self, random: &mut Random) -> &'static str {
        let now = self.clock.now().timestamp();
        let news = (0..=random.below(8)).map(|_| news(random, now)).collect();
        let world = pick(random, &World::ALL);
        // On a disk that fails it may be refused.
        let _ = self.writer().ingest(world, news, random.below(2) == 0);
        "ingest"
    }

    fn restart(&mut self) -> &'static str {
        self.writer().flush().expect("a flush");
        self.reopen(self.disk.bytes());
        "restart"
    }

    fn kill(&mut self) -> &'static str {
        self.reopen(self.disk.bytes());
        "kill"
    }

    /// A start that cannot log what was not published yet: readers get what the log has until it can.
    fn start_on_failing_disk(&mut self, random: &mut Random) -> &'static str {
        self.ingest(random);
        self.writer = None;
        let disk = Disk::new(self.disk.bytes());
        disk.trouble(Trouble::From(random.below(30)), io::ErrorKind::Other);
        let started = disk.open().ok().and_then(|store| try_open_writer(store, &self.clock));
        let Some(writer) = started else {
            self.reopen(disk.bytes());
            return "failed start";
        };
        (self.disk, self.writer) = (disk, Some(writer));
        for _ in 0..random.below(3) {
            self.ingest(random);
            self.clock.advance(Duration::from_secs(random.below(40)));
            self.writer().tick();
        }
        self.disk.trouble(Trouble::None, io::ErrorKind::Other);
        for _ in 0..2 {
            self.clock.advance(Duration::from_secs(31));
            self.writer().tick();
        }
        self.disk.take_steps();
        self.base = self.disk.bytes();
        "start on a failing disk"
    }

    /// What readers saw must be there after a loss at any later moment.
    fn lose_power(&mut self, random: &mut Random) -> &'static str {
        let from = self.disk.steps();
        let mut seen = vec![(from, self.seen.len())];
        self.ingest(random);
        self.look("before a power loss");
        seen.push((self.disk.steps(), self.seen.len()));
        if random.below(2) == 0 {
            self.clock.advance(Duration::from_secs(31));
            self.writer().tick();
            self.look("before a power loss");
            seen.push((self.disk.steps(), self.seen.len()));
        }
        let steps = self.disk.take_steps();
        let cut = from + usize::try_from(random.below((steps.len() - from + 1) as u64)).expect("a small number");
        let kept = seen.iter().rev().find(|(steps, _)| *steps <= cut).expect("the first");
        self.seen.truncate(kept.1);
        let image = cut_power(&self.base, &steps, cut, random);
        self.reopen(image);
        "power loss"
    }

    /// Some operations of the disk fail, and it recovers.
    fn fail(&mut self, random: &mut Random) -> &'static str {
        let at = random.below(40);
        let trouble = pick(random, &[Trouble::Once(at), Trouble::From(at)]);
        self.disk.trouble(trouble, io::ErrorKind::Other);
        for _ in 0..=random.below(3) {
            self.ingest(random);
            self.clock.advance(Duration::from_secs(random.below(40)));
            self.writer().tick();
            self.look_while_failing();
        }
        self.disk.trouble(Trouble::None, io::ErrorKind::Other);
        for _ in 0..2 {
            self.clock.advance(Duration::from_secs(31));
            self.writer().tick();
        }
        "failure"
    }

    /// An event leaves the log. Wherever that is interrupted, nothing of the others changes, and a second run ends it.
    fn forget(&mut self, random: &mut Random) -> &'static str {
        let (world, id) = (pick(random, &World::ALL), EventId::new(pick(random, &EVENTS)).expect("an id"));
        let removal = News::Remove { sport: tennis(), event: id.clone() };
        self.writer().ingest(world, vec![removal], true).expect("a removal");
        self.look("a removal");
        let from = self.disk.steps();
        if !self.forget_pieces(world, &id, Some(random.below(4))) {
            let steps = self.disk.take_steps();
            let cut = from + usize::try_from(random.below((steps.len() - from + 1) as u64)).expect("a small number");
            let image = cut_power(&self.base, &steps, cut, random);
            self.reopen(image);
            self.check_boards(|of, board| {
                if of == world {
                    board.retain(|(event, ..), _| event != id.as_str());
                }
            });
            assert!(self.forget_pieces(world, &id, None));
        }
        for seen in self.seen.iter_mut().filter(|seen| seen.world == world) {
            seen.board.retain(|(event, ..), _| event != id.as_str());
        }
        let lines = self.history().lines(world, tennis(), &id, |_, _| true).expect("lines");
        assert_eq!(lines, None, "{id} is forgotten");
        "forget"
    }

    /// Whether it was finished, and not left after so many pieces.
    fn forget_pieces(&mut self, world: World, id: &EventId, pieces: Option<u64>) -> bool {
        let history = self.history();
        let (event, mut progress) = history.begin_forget(world, tennis(), id).expect("a log");
        let mut done = 0;
        while let Some(prepared) = history.prepare_forget(&event, &mut progress).expect("a piece") {
            if pieces == Some(done) {
                return false;
            }
            assert_eq!(self.writer().forget(&prepared).expect("a write"), ForgetOutcome::Done);
            done += 1;
        }
        self.writer().forget_lines(&event).expect("a write");
        true
    }

    fn reopen(&mut self, image: Vec<u8>) {
        self.writer = None;
        self.disk = Disk::new(image);
        let writer = open_writer(self.disk.open().expect("a disk that opens"), &self.clock);
        self.writer = Some(writer);
        self.disk.take_steps();
        self.base = self.disk.bytes();
    }

    /// Notes what readers see now.
    fn look(&mut self, done: &str) {
        for world in World::ALL {
            let board = shown(self.writer(), world);
            let history = self.history();
            let last = history.head(world).expect("a head").next - 1;
            let state = history.after(world, tennis(), last).expect("the last state");
            assert_eq!(board, logged(&state), "{done}: what readers see of {world} is what the log has");
            let Ok((now, state)) = history.as_of(world, tennis(), Timestamp::MAX) else { continue };
            let seen = self.seen.iter().rev().find(|seen| seen.world == world).map(|seen| seen.tick);
            if seen.is_none_or(|seen| seen < now.at) {
                // Events that were removed after the tick are not in what readers see now.
                self.seen.push(Publication { world, tick: now.at, board: logged(&state) });
            }
        }
    }

    /// While the disk fails the log may not be readable: what readers see is compared once it is.
    fn look_while_failing(&mut self) {
        for world in World::ALL {
            let board = shown(self.writer(), world);
            let last = self.seen.iter().rev().find(|seen| seen.world == world);
            if let Ok((now, state)) = self.history().as_of(world, tennis(), Timestamp::MAX)
                && last.is_none_or(|last| last.tick < now.at)
                && logged(&state) == board
            {
                self.seen.push(Publication { world, tick: now.at, board });
            }
        }
    }

    /// The log gives every board again, and leads from each to the last.
    fn check(&self) {
        self.check_boards(|_, _| {});
        let history = self.history();
        for world in World::ALL {
            check_changes(&history, world);
            lines::check(&history, world, tennis());
        }
    }

    /// The log gives every board again, apart from what `ignore` takes out.
    fn check_boards(&self, ignore: impl Fn(World, &mut Board)) {
        let history = self.history();
        for (at, seen) in self.seen.iter().enumerate() {
            let (found, state) = history.as_of(seen.world, tennis(), seen.tick).expect("a tick that was seen");
            let (mut board, mut expected) = (logged(&state), seen.board.clone());
            ignore(seen.world, &mut board);
            ignore(seen.world, &mut expected);
            assert_eq!((found.at, board), (seen.tick, expected), "publication {at}");
            if let Some(next) = found.next {
                let until = Timestamp::from_unix(next.unix() - 1);
                assert_eq!(history.as_of(seen.world, tennis(), until).expect("the same").0.at, seen.tick);
                let (neighbour, _) = history.as_of(seen.world, tennis(), next).expect("the next tick");
                assert_eq!(neighbour.previous, Some(seen.tick));
            }
        }
    }
}

/// From every entry on, the changes lead to the same state, and no entry is missing or twice.
fn check_changes(history: &HistoryReader, world: World) {
    let head = history.head(world).expect("a head");
    let last = logged(&history.after(world, tennis(), head.next - 1).expect("the last state"));
    let all = history.entries_after(world.into(), 0, 100_000).expect("all entries");
    assert!(all.iter().map(|entry| entry.sequence).eq(1..head.next), "{world}: every entry once");
    let every = usize::try_from(head.next).expect("a small number").div_ceil(40).max(1);
    for after in (0..head.next).step_by(every) {
        let mut board = logged(&history.after(world, tennis(), after).expect("a state"));
        let entries = history.entries_after(world.into(), after, 100_000).expect("entries");
        assert_eq!(entries, all[usize::try_from(after).expect("a small number")..], "from {after} on");
        for change in entries.iter().flat_map(|entry| entry.sports.iter().flat_map(|(_, changes)| changes)) {
            match change {
                LoggedChange::Removed(event) => board.retain(|(of, ..), _| of != event.id.as_str()),
                LoggedChange::Tick(tick) => {
                    for record in &tick.records {
                        let key = (record.event.id.to_string(), record.bookmaker.to_string(), record.market.key());
                        match &record.price {
                            Some(price) => {
                                let outcomes = format!("{:?}", price.outcomes);
                                assert_ne!(board.insert(key, outcomes.clone()), Some(outcomes), "it did not change");
                            }
                            None => assert!(board.remove(&key).is_some(), "{key:?} was not open"),
                        }
                    }
                }
                LoggedChange::Event(..) | LoggedChange::Score(..) => {}
            }
        }
        assert_eq!(board, last, "{world}: from {after} on");
    }
}

/// A failure that no change has met: nothing was refused, and yet the file has to be opened again before the next write.
#[test]
fn event_is_forgotten_once_the_disk_works_again() {
    for upkeep_comes_first in [false, true] {
        let mut random = Random::new();
        let mut life = Life::new();
        let (world, id) = (World::Live, EventId::new(EVENTS[0]).expect("an id"));
        while !shown(life.writer(), world).keys().any(|(event, ..)| event == id.as_str()) {
            life.ingest(&mut random);
            life.clock.advance(Duration::from_secs(31));
            life.writer().tick();
        }
        let removal = News::Remove { sport: tennis(), event: id.clone() };
        life.writer().ingest(world, vec![removal], true).expect("a removal");
        let history = life.history();
        let (event, mut progress) = history.begin_forget(world, tennis(), &id).expect("a log");
        let prepared = history.prepare_forget(&event, &mut progress).expect("a log").expect("a piece");
        life.disk.trouble(Trouble::From(0), io::ErrorKind::Other);
        life.writer().forget(&prepared).expect_err("the disk fails");
        life.disk.trouble(Trouble::None, io::ErrorKind::Other);
        if upkeep_comes_first {
            life.clock.advance(Duration::from_secs(2));
            life.writer().tick();
        }
        assert!(life.forget_pieces(world, &id, None));
    }
}

/// A reading that fails closes the file to other readings, also those that would not fail, until it is opened again.
#[test]
fn history_is_read_again_once_the_disk_works_again() {
    let mut random = Random::new();
    let mut life = Life::new();
    while life.seen.len() < 400 {
        life.ingest(&mut random);
        life.clock.advance(Duration::from_secs(31));
        life.writer().tick();
        life.look("ingest");
    }
    // Nothing is to be written after this, and what was read is no longer in memory.
    life.restart();
    life.disk.trouble(Trouble::From(0), io::ErrorKind::Other);
    let history = life.history();
    let fails = |seen: &Publication| history.as_of(seen.world, tennis(), seen.tick).is_err();
    assert!(life.seen.iter().any(fails), "the disk fails");
    life.disk.trouble(Trouble::None, io::ErrorKind::Other);
    assert!(life.seen.iter().any(fails), "nothing has opened the file again");
    life.clock.advance(Duration::from_secs(2));
    life.writer().tick();
    life.check();
}

#[test]
fn log_gives_every_board_that_was_seen_and_every_change_once() {
    let mut random = Random::new();
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    let (mut publications, mut packed) = (0, 0);
    for _ in 0..short_or_long(12, 2_000) {
        let mut life = Life::new();
        for step in 0..120 {
            life.step(&mut random);
            if step % 30 == 29 {
                life.check();
            }
        }
        publications += life.seen.len();
        packed += life.history().head(World::Live).expect("a head").packed;
        life.counts.iter().for_each(|(done, count)| *counts.entry(done).or_default() += count);
    }
    assert!(
        counts.len() >= 8 && publications > 100 && packed > 100,
        "too little happened: {publications} {packed} {counts:?}"
    );
    println!("{publications} publications; {counts:?}");
}
