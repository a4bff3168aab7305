//! The files of the drop directory, opened and moved so that a user who may write there gains no other access.
//!
//! Another user may be allowed to write in the directory, and may replace any name in it at any moment. So every file is
//! opened relative to a directory's handle and never by path, no link is followed, no open blocks, and an opened file is
//! checked again before it is read. Reports are written to files that did not exist before, in directories that belong
//! to the user of the service.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{self, AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::model::Timestamp;

/// As many files as are kept in each of `done` and `failed`.
const KEPT_MAX: usize = 100;
/// As many files as one scan considers, the first by name. The others wait for the next scan.
const LISTED_MAX: usize = 10_000;
/// As many names as one scan considers that are no regular file: they are only logged and counted.
const IRREGULAR_MAX: usize = 100;
const REPORT: &str = ".report.json";
const REPORT_UNFINISHED: &str = ".report.tmp";

/// What identifies a file and changes while it is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileStamp(Stat);

impl PartialEq for FileStamp {
    fn eq(&self, other: &Self) -> bool {
        let of =
            |stat: &Stat| (stat.st_dev, stat.st_ino, stat.st_mode, stat.st_size, stat.st_mtime, stat.st_mtime_nsec);
        of(&self.0) == of(&other.0)
    }
}

impl FileStamp {
    fn is_regular(&self) -> bool {
        FileType::from_raw_mode(self.0.st_mode) == FileType::RegularFile
    }

    pub(super) fn bytes(&self) -> u64 {
        u64::try_from(self.0.st_size).unwrap_or(0)
    }
}

/// What came of opening a file.
#[derive(Debug)]
pub(super) enum Opening {
    Open(File),
    /// It is gone, or no longer the one that was listed: the next scan sees it.
    Changed,
    /// Reading it could expose another file or block.
    Unsafe(&'static str),
}

/// A directory by its handle.
#[derive(Debug)]
pub(super) struct Directory(OwnedFd);

impl Directory {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Directory(fs::openat(CWD, path, flags, Mode::empty())?))
    }

    /// A directory inside this one, created if it is missing. It must belong to the user of the service, so that no one
    /// else can have put it there.
    pub(super) fn inside(&self, name: &str) -> io::Result<Self> {
        match fs::mkdirat(&self.0, name, Mode::from_raw_mode(0o750)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(named(name, error)),
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let inside = fs::openat(&self.0, name, flags, Mode::empty()).map_err(|error| match error {
            Errno::LOOP | Errno::NOTDIR => io::Error::other(format!(
                "{name} in it is a link or no directory: remove it, and oddsbox makes a directory of its own"
            )),
            error => named(name, error),
        })?;
        if fs::fstat(&inside)?.st_uid != geteuid().as_raw() {
            return Err(io::Error::other(format!(
                "{name} in it belongs to another user than the one that runs oddsbox: remove it, or give it to that user"
            )));
        }
        Ok(Directory(inside))
    }

    /// The files that may be read, complete or not, and names of files that are something else.
    pub(super) fn list(&self) -> io::Result<BTreeMap<OsString, FileStamp>> {
        let mut found = BTreeMap::new();
        let mut irregular = 0;
        for entry in Dir::read_from(&self.0)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            let is_hidden = name.as_bytes().starts_with(b".");
            let is_ours = Path::new(name).extension().is_some_and(|ending| ending == "ndjson" || ending == "json");
            if is_hidden || !is_ours {
                continue;
            }
            // A file may be gone again.
            let Some(stamp) = self.stamp(name)? else { continue };
            if !stamp.is_regular() {
                irregular += 1;
                if irregular > IRREGULAR_MAX {
                    continue;
                }
            }
            found.insert(name.to_owned(), stamp);
            if found.len() > LISTED_MAX {
                found.pop_last();
            }
        }
        Ok(found)
    }

    /// The stamp of a name, without following a link.
    fn stamp(&self, name: &OsStr) -> io::Result<Option<FileStamp>> {
        match fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(FileStamp(stat))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a file that was listed, if it is still that file.
    pub(super) fn open_listed(&self, name: &OsStr, listed: &FileStamp) -> io::Result<Opening> {
        if !listed.is_regular() {
            return Ok(Opening::Unsafe("it is a link, a pipe, a directory or a device"));
        }
        // Non-blocking, since the name may belong to a pipe by now.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match fs::openat(&self.0, name, flags, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(Opening::Changed),
            Err(Errno::LOOP | Errno::MLINK | Errno::NXIO) => return Ok(Opening::Unsafe("it became a link or a pipe")),
            Err(error) => return Err(error.into()),
        };
        let stat = fs::fstat(&file)?;
        Ok(match FileStamp(stat) {
            opened if !opened.is_regular() => Opening::Unsafe("it became a link, a pipe, a directory or a device"),
            opened if opened != *listed => Opening::Changed,
            // It may be a file of the service that somebody else could not read.
            _ if stat.st_nlink > 1 => Opening::Unsafe("it has another name as well (a hard link)"),
            _ => Opening::Open(File::from(file)),
        })
    }

    /// Moves a file that was read to a directory inside this one. Its report is written first, so that a moved file
    /// always has one.
    pub(super) fn move_away(&self, name: &OsStr, place: &str, now: Timestamp, report: &[u8]) -> io::Result<()> {
        let place = self.inside(place)?;
        let kept = place.free_name(name, now)?;
        place.write_report(&kept, report)?;
        fs::renameat(&self.0, name, &place.0, &kept)?;
        place.prune()
    }

    fn write_report(&self, kept: &OsStr, report: &[u8]) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let create = || fs::openat(&self.0, REPORT_UNFINISHED, flags, Mode::from_raw_mode(0o640));
        let file = match create() {
            // Left behind by a crash.
            Err(Errno::EXIST) => {
                fs::unlinkat(&self.0, REPORT_UNFINISHED, AtFlags::empty())?;
                create()
            }
            created => created,
        };
        let mut file = File::from(file?);
        file.write_all(report)?;
        file.write_all(b"\n")?;
        drop(file);
        Ok(fs::renameat(&self.0, REPORT_UNFINISHED, &self.0, report_of(kept))?)
    }

    /// The time and the name, with a number between them if that name exists.
    fn free_name(&self, name: &OsStr, now: Timestamp) -> io::Result<OsString> {
        let time: String = now.to_string().chars().filter(char::is_ascii_alphanumeric).collect();
        for number in 1..=1000 {
            let mut kept = OsString::from(if number == 1 { format!("{time}-") } else { format!("{time}-{number}-") });
            kept.push(name);
            if self.stamp(&kept)?.is_none() && self.stamp(&report_of(&kept))?.is_none() {
                return Ok(kept);
            }
        }
        Err(io::Error::from(io::ErrorKind::AlreadyExists))
    }

    /// Deletes the oldest moved files and their reports beyond the number that is kept.
    fn prune(&self) -> io::Result<()> {
        let mut kept = Vec::new();
        for entry in Dir::read_from(&self.0)? {
            let entry = entry?;
            let bytes = entry.file_name().to_bytes();
            // Only our own files begin with a time.
            let is_ours = bytes.len() > 17 && bytes[..8].iter().all(u8::is_ascii_digit) && bytes[15..17] == *b"Z-";
            if is_ours && !bytes.ends_with(REPORT.as_bytes()) {
                kept.push(OsStr::from_bytes(bytes).to_owned());
            }
        }
        kept.sort_unstable();
        let surplus = kept.len().saturating_sub(KEPT_MAX);
        for name in kept.into_iter().take(surplus) {
            // The report may be gone already, and what cannot be deleted stays.
            let _ = fs::unlinkat(&self.0, report_of(&name), AtFlags::empty());
            if fs::unlinkat(&self.0, &name, AtFlags::empty()).is_ok() {
                tracing::info!(file = %name.to_string_lossy(), "deleted an old file of the drop directory");
            }
        }
        Ok(())
    }
}

fn report_of(kept: &OsStr) -> OsString {
    let mut name = kept.to_owned();
    name.push(REPORT);
    name
}

fn named(name: &str, error: Errno) -> io::Error {
    let error = io::Error::from(error);
    io::Error::new(error.kind(), format!("{name} in it: {error}"))
}
