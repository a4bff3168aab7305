//! What makes changes of directories durable.

use std::fs::File;
use std::io;
use std::path::Path;

/// Syncs the directory of a file: one that is new, renamed or deleted is so after a power loss only when its directory entry is
/// on the disk.
pub(crate) fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}
