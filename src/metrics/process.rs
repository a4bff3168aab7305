//! Figures of this process from `/proc`; `None` on systems without it.

use std::fs;

/// The resident set size.
pub fn resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? << 10)
}

pub fn open_files() -> Option<u64> {
    let opened = fs::read_dir("/proc/self/fd").ok()?.count();
    // Listing the directory opens one descriptor itself.
    Some((opened as u64).saturating_sub(1))
}

/// The soft limit of open files.
pub fn open_files_max() -> Option<u64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find(|line| line.starts_with("Max open files"))?;
    line.split_whitespace().nth(3)?.parse().ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn figures_of_this_process_are_plausible() {
        assert!(resident_bytes().unwrap() > 100_000);
        assert!(open_files().unwrap() >= 3 && open_files().unwrap() <= open_files_max().unwrap());
    }
}
