//! A disk in memory that records every operation, so that the power can be cut after any of them: synced data is kept,
//! of the rest each sector is kept or lost independently, in any order. It can also be set to fail.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use oddsbox::store::{BackendFactory, OpenError, StorageBackend, Store, StoreOptions};

use super::writer_run::the_catalogue;
use crate::process::seed::Random;

/// The unit that a disk writes atomically.
const SECTOR: usize = 512;

#[derive(Clone, Debug)]
pub enum Step {
    Write(u64, Vec<u8>),
    SetLen(u64),
    Sync,
}

/// Which operations of the disk fail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trouble {
    #[default]
    None,
    /// Only the operation with this number, counted from 0.
    Once(u64),
    /// That operation and all after it.
    From(u64),
}

#[derive(Debug, Default)]
struct Platter {
    bytes: Vec<u8>,
    steps: Vec<Step>,
    /// Reads, writes, syncs and changes of length since failures were configured.
    operations: u64,
    trouble: Trouble,
    error: Option<io::ErrorKind>,
    /// The maximum length of the file.
    room: Option<u64>,
    lies: bool,
}

/// Clones share the disk.
#[derive(Clone, Debug)]
pub struct Disk(Arc<Mutex<Platter>>);

impl Disk {
    pub fn new(bytes: Vec<u8>) -> Disk {
        Disk(Arc::new(Mutex::new(Platter { bytes, ..Platter::default() })))
    }

    /// An empty disk that acknowledges syncs without performing them.
    pub fn lying() -> Disk {
        Disk(Arc::new(Mutex::new(Platter { lies: true, ..Platter::default() })))
    }

    fn lock(&self) -> MutexGuard<'_, Platter> {
        self.0.lock().expect("a sound disk")
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.lock().bytes.clone()
    }

    /// The number of operations recorded.
    pub fn steps(&self) -> usize {
        self.lock().steps.len()
    }

    pub fn take_steps(&self) -> Vec<Step> {
        std::mem::take(&mut self.lock().steps)
    }

    /// Configures failures and resets the operation count.
    pub fn trouble(&self, trouble: Trouble, error: io::ErrorKind) {
        let mut platter = self.lock();
        (platter.operations, platter.trouble, platter.error) = (0, trouble, Some(error));
    }

    /// Limits the file to this length, as a full disk does.
    pub fn limit(&self, room: Option<u64>) {
        self.lock().room = room;
    }

    /// The number of operations since failures were configured.
    pub fn operations(&self) -> u64 {
        self.lock().operations
    }

    /// With small bounds, so that a short life has keyframes and packs.
    const OPTIONS: StoreOptions = StoreOptions {
        cache_bytes: 1 << 20,
        wait_for_lock: Duration::ZERO,
        loose_bytes_max: 2 << 10,
        frame_bytes_min: 256,
    };

    pub fn open(&self) -> Result<Store, OpenError> {
        Store::open_backend(self.factory(), the_catalogue(), Disk::OPTIONS)
    }

    /// Opens it for inspection, in whatever state it is.
    pub fn look(&self) -> Result<Store, OpenError> {
        Store::inspect_backend(self.factory(), the_catalogue(), Disk::OPTIONS)
    }

    fn factory(&self) -> BackendFactory {
        let disk = self.clone();
        Box::new(move || Ok(Box::new(disk.clone()) as Box<dyn StorageBackend>))
    }

    fn operate(&self) -> io::Result<MutexGuard<'_, Platter>> {
        let mut platter = self.lock();
        let number = platter.operations;
        platter.operations += 1;
        let fails = match platter.trouble {
            Trouble::None => false,
            Trouble::Once(at) => number == at,
            Trouble::From(at) => number >= at,
        };
        if fails { Err(platter.error.unwrap_or(io::ErrorKind::Other).into()) } else { Ok(platter) }
    }
}

/// How many of the operations the disk has synced.
fn synced(steps: &[Step]) -> usize {
    steps.iter().rposition(|step| matches!(step, Step::Sync)).map_or(0, |at| at + 1)
}

/// What the first `cut` operations leave of `bytes` after a power loss: all that was synced, and the rest up to some
/// point.
pub fn cut_power_in_order(bytes: &[u8], steps: &[Step], cut: usize, random: &mut Random) -> Vec<u8> {
    let synced = synced(&steps[..cut]);
    let kept = synced + usize::try_from(random.below((cut - synced + 1) as u64)).expect("a small number");
    let mut bytes = bytes.to_vec();
    for step in &steps[..kept] {
        apply(&mut bytes, step);
    }
    bytes
}

/// What the first `cut` operations leave of `bytes` after a power loss: all that was synced, and some of the rest.
pub fn cut_power(bytes: &[u8], steps: &[Step], cut: usize, random: &mut Random) -> Vec<u8> {
    let steps = &steps[..cut];
    let synced = synced(steps);
    let mut bytes = bytes.to_vec();
    for step in &steps[..synced] {
        apply(&mut bytes, step);
    }
    let mut pieces: Vec<Step> = steps[synced..].iter().flat_map(in_sectors).collect();
    // How much is lost is random: nothing, everything, or anything in between.
    let kept_in_8 = random.below(9);
    pieces.retain(|_| random.below(8) < kept_in_8);
    for last in (1..pieces.len()).rev() {
        let other = usize::try_from(random.below(last as u64 + 1)).expect("a small number");
        // Two writes of the same sector reach the disk in order, or only the later one does.
        if start(&pieces[last]) != start(&pieces[other]) && random.below(2) == 0 && is_free(&pieces, other, last) {
            pieces.swap(last, other);
        }
    }
    for step in &pieces {
        apply(&mut bytes, step);
    }
    bytes
}

/// Whether neither of two pieces is overwritten in between.
fn is_free(pieces: &[Step], from: usize, to: usize) -> bool {
    let between = &pieces[from + 1..to];
    between.iter().all(|step| start(step) != start(&pieces[from]) && start(step) != start(&pieces[to]))
}

fn start(step: &Step) -> Option<u64> {
    match step {
        Step::Write(offset, _) => Some(offset / SECTOR as u64),
        _ => None,
    }
}

fn in_sectors(step: &Step) -> Vec<Step> {
    let Step::Write(offset, data) = step else { return vec![step.clone()] };
    let first = SECTOR - usize::try_from(*offset).expect("a small disk") % SECTOR;
    let (head, rest) = data.split_at(first.min(data.len()));
    let mut pieces = vec![Step::Write(*offset, head.to_vec())];
    let places = (0..).map(|number| offset + (head.len() + number * SECTOR) as u64);
    pieces.extend(rest.chunks(SECTOR).zip(places).map(|(piece, at)| Step::Write(at, piece.to_vec())));
    pieces
}

pub fn apply(bytes: &mut Vec<u8>, step: &Step) {
    match step {
        Step::Write(offset, data) => {
            let offset = usize::try_from(*offset).expect("a small disk");
            let end = bytes.len().max(offset + data.len());
            bytes.resize(end, 0);
            bytes[offset..offset + data.len()].copy_from_slice(data);
        }
        Step::SetLen(len) => bytes.resize(usize::try_from(*len).expect("a small disk"), 0),
        Step::Sync => {}
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.lock().bytes.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let platter = self.operate()?;
        let offset = usize::try_from(offset).expect("a small disk");
        out.copy_from_slice(platter.bytes.get(offset..offset + out.len()).ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.operate()?.grow(len)?.take(Step::SetLen(len));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut platter = self.operate()?;
        if !platter.lies {
            platter.take(Step::Sync);
        }
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let end = offset + data.len() as u64;
        self.operate()?.grow(end)?.take(Step::Write(offset, data.to_vec()));
        Ok(())
    }
}

impl Platter {
    /// Fails operations that would make the file longer than the limit.
    fn grow(&mut self, len: u64) -> io::Result<&mut Self> {
        let is_longer = len > self.bytes.len() as u64;
        if is_longer && self.room.is_some_and(|room| len > room) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(self)
    }

    fn take(&mut self, step: Step) {
        apply(&mut self.bytes, &step);
        self.steps.push(step);
    }
}
