//! What the system knows of this process, from `/proc`; nothing where there is none.

use std::fs;

/// Memory that is held in RAM.
pub fn resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? << 10)
}

pub fn open_files() -> Option<u64> {
    let opened = fs::read_dir("/proc/self/fd").ok()?.count();
    // Reading the list opens one more.
    Some((opened as u64).saturating_sub(1))
}

/// How many files may be open, as the kernel holds it against us.
pub fn open_files_max() -> Option<u64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find(|line| line.starts_with("Max open files"))?;
    line.split_whitespace().nth(3)?.parse().ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_known() {
        assert!(resident_bytes().unwrap() > 100_000);
        assert!(open_files().unwrap() >= 3 && open_files().unwrap() <= open_files_max().unwrap());
    }
}
