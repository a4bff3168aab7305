//! The console's sessions on disk, so that a restart signs nobody out.
//!
//! The file contains a hash of each session's token, so it lets nobody in who reads it. It is replaced atomically and
//! belongs to one database: beside another one, for example after a restore, it is void. A file that is damaged, that
//! others can access or that another version wrote counts as empty.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use rustix::fs::{Mode, OFlags};
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::sessions::{SESSION_S, SESSIONS_MAX, TokenHash};
use crate::admin::DataDir;
use crate::durable::sync_parent;
use crate::model::Timestamp;
use crate::model::text::{hex, read_hex};

const NAME: &str = "oddsbox-console-sessions";
const VERSION: &str = "1";
/// Far more than as many sessions as there may be.
const BYTES_MAX: u64 = 64 << 10;

/// A session as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StoredSession {
    pub hash: TokenHash,
    pub who: Arc<str>,
    /// When it began; it lasts [`SESSION_S`].
    pub from: Timestamp,
}

/// Why the stored sessions are void.
#[derive(Debug, thiserror::Error)]
pub(super) enum SessionFileError {
    #[error("the file cannot be read ({0})")]
    Io(#[from] io::Error),
    #[error("it is not a regular file that only the user of this process can access, with mode 0600")]
    Exposed,
    #[error("its version is unknown")]
    UnknownVersion,
    #[error("it is damaged")]
    Damaged,
    #[error("it belongs to another database")]
    OtherDatabase,
}

/// The file of a data directory, whether it exists or not.
#[derive(Debug)]
pub(in crate::admin) struct SessionFile {
    path: PathBuf,
    database: PathBuf,
}

/// What tells a database file from its copies, its predecessors and a backup in its place. The time is `None` where the
/// file system does not record it.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DatabaseIdentity {
    inode: u64,
    created_ns: Option<u64>,
}

impl DatabaseIdentity {
    fn of(path: &Path) -> io::Result<Self> {
        let metadata = fs::metadata(path)?;
        let created = metadata.created().ok().and_then(|created| created.duration_since(UNIX_EPOCH).ok());
        let created_ns = created.and_then(|created| u64::try_from(created.as_nanos()).ok());
        Ok(DatabaseIdentity { inode: metadata.ino(), created_ns })
    }
}

/// The content after the first line, which has the version and a SHA-256 of this.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SessionList {
    database: DatabaseIdentity,
    sessions: Vec<SessionRow>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SessionRow {
    hash: String,
    who: String,
    from: u32,
}

impl SessionFile {
    pub(in crate::admin) fn of(data: &DataDir) -> Self {
        SessionFile { path: data.console_sessions(), database: data.file() }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The sessions that have not ended. One that begins in the future has: the clock was set back, and for how long it
    /// has lasted is unknown.
    pub(super) fn load(&self, now: Timestamp) -> Result<Vec<StoredSession>, SessionFileError> {
        let Some(text) = self.read()? else { return Ok(Vec::new()) };
        let list = parse(&text)?;
        if list.database != DatabaseIdentity::of(&self.database)? {
            return Err(SessionFileError::OtherDatabase);
        }
        let mut sessions = Vec::new();
        for row in list.sessions {
            let hash = read_hex(&row.hash).ok_or(SessionFileError::Damaged)?;
            let from = Timestamp::from_unix(row.from);
            if from <= now && now < from.plus_seconds(SESSION_S) {
                sessions.push(StoredSession { hash, who: row.who.into(), from });
            }
        }
        let surplus = sessions.len().saturating_sub(SESSIONS_MAX);
        Ok(sessions.split_off(surplus))
    }

    /// Replaces the file, durably. Without any session there is no file.
    pub(super) fn save(&self, sessions: &[StoredSession]) -> io::Result<()> {
        if sessions.is_empty() {
            return self.remove();
        }
        let row = |session: &StoredSession| SessionRow {
            hash: hex(&session.hash),
            who: session.who.to_string(),
            from: session.from.unix(),
        };
        let database = DatabaseIdentity::of(&self.database)?;
        let list = serde_json::to_string(&SessionList { database, sessions: sessions.iter().map(row).collect() })?;
        let partial = self.path.with_extension("partial");
        remove_if_there(&partial)?;
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&partial)?;
        file.write_all(format!("{}{list}\n", first_line(&list)).as_bytes())?;
        file.sync_all()?;
        fs::rename(&partial, &self.path)?;
        sync_parent(&self.path)
    }

    /// Ends every stored session; how many there were.
    pub(in crate::admin) fn end_all(&self, now: Timestamp) -> io::Result<usize> {
        let ended = self.load(now).map_or(0, |sessions| sessions.len());
        self.remove().map(|()| ended)
    }

    /// Deletes the file, durably.
    pub(in crate::admin) fn remove(&self) -> io::Result<()> {
        if remove_if_there(&self.path)? { sync_parent(&self.path) } else { Ok(()) }
    }

    /// The whole text; `None` if there is no file. What was checked is what is read: a link is not followed.
    fn read(&self) -> Result<Option<String>, SessionFileError> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match rustix::fs::open(&self.path, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            Err(rustix::io::Errno::LOOP) => return Err(SessionFileError::Exposed),
            Err(error) => return Err(SessionFileError::Io(error.into())),
        };
        let metadata = file.metadata()?;
        let is_private = metadata.mode() & 0o777 == 0o600 && metadata.uid() == geteuid().as_raw();
        if !metadata.is_file() || !is_private {
            return Err(SessionFileError::Exposed);
        }
        let mut bytes = Vec::new();
        file.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > BYTES_MAX {
            return Err(SessionFileError::Damaged);
        }
        String::from_utf8(bytes).map(Some).map_err(|_| SessionFileError::Damaged)
    }
}

fn first_line(list: &str) -> String {
    format!("{NAME} {VERSION} {}\n", hex(&Sha256::digest(list)))
}

fn parse(text: &str) -> Result<SessionList, SessionFileError> {
    let (first, rest) = text.split_once('\n').ok_or(SessionFileError::Damaged)?;
    let list = rest.strip_suffix('\n').ok_or(SessionFileError::Damaged)?;
    match first.strip_prefix(NAME).and_then(|rest| rest.strip_prefix(' ')).and_then(|rest| rest.split_once(' ')) {
        None => Err(SessionFileError::Damaged),
        Some((version, _)) if version != VERSION => Err(SessionFileError::UnknownVersion),
        Some((_, sum)) if *sum != hex(&Sha256::digest(list)) => Err(SessionFileError::Damaged),
        Some(_) => serde_json::from_str(list).map_err(|_| SessionFileError::Damaged),
    }
}

/// Whether there was a file to remove.
fn remove_if_there(path: &Path) -> io::Result<bool> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    const NOW: u32 = 1_794_699_540;

    fn directory() -> (tempfile::TempDir, SessionFile) {
        let place = tempfile::tempdir().unwrap();
        let data = DataDir::new(place.path());
        fs::write(data.file(), "a database").unwrap();
        (place, SessionFile::of(&data))
    }

    fn session(number: u8, from: u32) -> StoredSession {
        let from = Timestamp::from_unix(from);
        StoredSession { hash: [number; 32], who: format!("console (ada \"{number}\")").into(), from }
    }

    fn load(file: &SessionFile) -> Result<Vec<StoredSession>, SessionFileError> {
        file.load(Timestamp::from_unix(NOW))
    }

    #[test]
    fn sessions_are_loaded_as_they_were_saved_until_they_end() {
        let (_place, file) = directory();
        assert_eq!(load(&file).unwrap(), [], "there is no file");
        let sessions = [session(0xa0, NOW - SESSION_S + 1), session(2, NOW)];
        file.save(&sessions).unwrap();
        assert_eq!(load(&file).unwrap(), sessions);
        assert_eq!(file.load(Timestamp::from_unix(NOW + 1)).unwrap(), sessions[1..], "the first has ended");
        assert_eq!(file.load(Timestamp::from_unix(NOW - 1)).unwrap(), sessions[..1], "the clock was set back");
        let mode = fs::metadata(file.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        file.save(&[]).unwrap();
        assert!(!file.path().exists());
    }

    #[test]
    fn surplus_sessions_are_dropped_oldest_first() {
        let (_place, file) = directory();
        let sessions: Vec<StoredSession> = (0..=40).map(|number| session(number, NOW)).collect();
        file.save(&sessions).unwrap();
        assert_eq!(load(&file).unwrap(), sessions[sessions.len() - SESSIONS_MAX..]);
    }

    #[test]
    fn every_changed_byte_and_every_cut_makes_the_file_void() {
        let (_place, file) = directory();
        file.save(&[session(1, NOW)]).unwrap();
        let whole = fs::read(file.path()).unwrap();
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            fs::write(file.path(), &changed).unwrap();
            assert!(load(&file).is_err(), "byte {at}");
            fs::write(file.path(), &whole[..at]).unwrap();
            assert!(load(&file).is_err(), "cut at {at}");
        }
        fs::write(file.path(), [whole.clone(), vec![b'x'; 1 << 20]].concat()).unwrap();
        assert!(matches!(load(&file), Err(SessionFileError::Damaged)), "too long");
        let text = String::from_utf8(whole).unwrap().replace(" 1 ", " 2 ");
        fs::write(file.path(), text).unwrap();
        assert!(matches!(load(&file), Err(SessionFileError::UnknownVersion)));
        file.save(&[session(1, NOW)]).unwrap();
        assert_eq!(load(&file).unwrap().len(), 1, "a void file is replaced");
    }

    #[test]
    fn file_that_others_can_access_is_void() {
        let (place, file) = directory();
        file.save(&[session(1, NOW)]).unwrap();
        for mode in [0o640, 0o604, 0o620, 0o666] {
            fs::set_permissions(file.path(), Permissions::from_mode(mode)).unwrap();
            assert!(matches!(load(&file), Err(SessionFileError::Exposed)), "{mode:o}");
        }
        fs::set_permissions(file.path(), Permissions::from_mode(0o600)).unwrap();
        assert_eq!(load(&file).unwrap().len(), 1);
        let moved = place.path().join("moved");
        fs::rename(file.path(), &moved).unwrap();
        symlink(&moved, file.path()).unwrap();
        assert!(matches!(load(&file), Err(SessionFileError::Exposed)), "a link");
        file.remove().unwrap();
        fs::create_dir(file.path()).unwrap();
        assert!(load(&file).is_err(), "a directory");
    }

    #[test]
    fn file_is_void_beside_another_database() {
        let (place, file) = directory();
        let (_other_place, other) = directory();
        file.save(&[session(1, NOW)]).unwrap();
        fs::copy(file.path(), other.path()).unwrap();
        assert!(matches!(load(&other), Err(SessionFileError::OtherDatabase)));

        let replaced = place.path().join("replaced");
        fs::rename(&file.database, &replaced).unwrap();
        fs::copy(&replaced, &file.database).unwrap();
        assert!(matches!(load(&file), Err(SessionFileError::OtherDatabase)));
        fs::rename(&replaced, &file.database).unwrap();
        assert_eq!(load(&file).unwrap().len(), 1);
    }
}
