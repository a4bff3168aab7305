//! The paths in a data directory.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Unix sockets have names of 108 bytes at most, on some systems 104.
const SOCKET_PATH_MAX: usize = 100;

/// A data directory, whether it exists or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataDir(PathBuf);

/// Why a data directory cannot have an admin socket.
#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    #[error(
        "{path} is too long for a Unix socket ({found} bytes, {SOCKET_PATH_MAX} at most): choose a shorter data directory",
        path = path.display()
    )]
    TooLong { path: PathBuf, found: usize },
}

impl DataDir {
    pub fn new(path: impl Into<PathBuf>) -> Self {
        DataDir(path.into())
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The database.
    pub fn file(&self) -> PathBuf {
        self.0.join("oddsbox.redb")
    }

    /// The secrets of a demo's keys, of which none is meant to be secret.
    pub fn demo_keys(&self) -> PathBuf {
        self.0.join("demo-keys.json")
    }

    /// The console's sessions, as hashes.
    pub fn console_sessions(&self) -> PathBuf {
        self.0.join("console-sessions")
    }

    /// Backups that were made from the console.
    pub fn backups(&self) -> PathBuf {
        self.0.join("backups")
    }

    /// The directory that only its owner can enter.
    pub fn admin(&self) -> PathBuf {
        self.0.join("admin")
    }

    /// The admin interface's socket.
    pub fn socket(&self) -> Result<PathBuf, DataDirError> {
        let path = self.admin().join("oddsbox.sock");
        let found = path.as_os_str().as_bytes().len();
        if found > SOCKET_PATH_MAX { Err(DataDirError::TooLong { path, found }) } else { Ok(path) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_path_is_refused_with_advice() {
        assert!(DataDir::new("/var/lib/oddsbox").socket().is_ok());
        let error = DataDir::new(format!("/{}", "d".repeat(100))).socket().unwrap_err().to_string();
        assert!(error.ends_with("choose a shorter data directory"), "{error}");
    }
}
