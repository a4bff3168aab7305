//! Backups from the console: only into a directory of their own inside the data directory, under a plain name, so that
//! a stolen session can neither write nor replace any other file.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;

use crate::admin::DataDir;
use crate::admin::protocol::{BackupOrder, Failure, FailureCode};

/// Turns the name that the page sent into a path, and creates the directory.
pub(super) fn into_directory(order: &BackupOrder, data: &DataDir) -> Result<BackupOrder, Failure> {
    let is_plain = order.file.file_name().is_some_and(|name| name == order.file.as_os_str());
    if !is_plain || order.force {
        return Err(Failure::bad_request("a backup from the console takes a new file name without a directory"));
    }
    let directory = std::path::absolute(data.backups()).map_err(|error| unwritable(&error))?;
    match DirBuilder::new().mode(0o700).create(&directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(unwritable(&error)),
        _ => Ok(BackupOrder { file: directory.join(&order.file), force: false }),
    }
}

fn unwritable(error: &io::Error) -> Failure {
    Failure::new(FailureCode::Unavailable, format!("cannot create the directory of backups: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(file: &str) -> BackupOrder {
        BackupOrder { file: file.into(), force: false }
    }

    #[test]
    fn only_plain_names_are_accepted_and_stay_in_the_directory() {
        let place = tempfile::tempdir().unwrap();
        let data = DataDir::new(place.path());
        for bad in ["", "/etc/x", "../x", "a/b", "..", ".", "a/"] {
            assert!(into_directory(&order(bad), &data).is_err(), "{bad}");
        }
        assert!(into_directory(&BackupOrder { force: true, ..order("x.redb") }, &data).is_err());
        let accepted = into_directory(&order("x.redb"), &data).unwrap();
        assert_eq!(accepted.file, place.path().join("backups/x.redb"));
        assert!(into_directory(&order("y.redb"), &data).is_ok(), "the directory may exist");
    }
}
