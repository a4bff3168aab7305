//! The writer behind the log: callers append to a bounded buffer, one thread writes it out.
//!
//! A caller never waits for the output, only for the lock of the buffer, which nobody holds during a write. Lines that
//! find the buffer full and lines that the output refuses are dropped and counted. When lines get through again, one of
//! them says how many were dropped.

use std::io::{self, Write};
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

/// Room for some thousand lines. The thread holds as much again while it writes.
const BUFFER_BYTES_MAX: usize = 1 << 20;
/// What the buffers keep of their room when they are empty.
const BUFFER_BYTES_KEPT: usize = 64 << 10;
/// How long the first line of a batch waits for others: one write costs less than one for each line.
const GATHER: Duration = Duration::from_millis(1);
/// How long to wait for an output that is in non-blocking mode and full.
const RETRY: Duration = Duration::from_millis(10);

static INSTALLED: OnceLock<LogWriter> = OnceLock::new();

/// Makes this the process's writer, whose dropped lines are counted in the metrics; a second one is ignored.
pub fn install(writer: LogWriter) {
    let _ = INSTALLED.set(writer);
}

/// Lines that the process's log has dropped.
pub fn dropped() -> u64 {
    INSTALLED.get().map_or(0, |writer| writer.shared.dropped.load(Ordering::Relaxed))
}

/// Writes a line past `tracing` and its format, in a process that has a log.
pub fn print(line: &str) {
    if let Some(writer) = INSTALLED.get() {
        writer.push(format!("{line}\n").as_bytes());
    }
}

/// Waits until the process's log is written, but no longer than `within`.
pub fn flush(within: Duration) {
    if let Some(writer) = INSTALLED.get() {
        writer.flush(within);
    }
}

/// Which control characters are escaped, so that no value in a line can begin another line or steer a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Escaping {
    /// None: JSON escapes them itself.
    None,
    /// All.
    All,
    /// All but the escape character, which colours begin with; `tracing-subscriber` escapes those in values.
    AllButColours,
}

/// Takes lines for an output. A clone writes to the same one.
#[derive(Clone, Debug)]
pub struct LogWriter {
    shared: Arc<Shared>,
    escaping: Escaping,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    has_lines: Condvar,
    is_written: Condvar,
    dropped: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    lines: Vec<u8>,
    is_writing: bool,
}

impl LogWriter {
    /// Starts the thread that writes to `output`. The thread ends with the process.
    pub fn start(output: impl Write + Send + 'static, escaping: Escaping) -> io::Result<LogWriter> {
        let shared = Arc::new(Shared::default());
        let ours = Arc::clone(&shared);
        thread::Builder::new().name("log".to_owned()).spawn(move || ours.write_to(output))?;
        Ok(LogWriter { shared, escaping })
    }

    /// Takes one whole line, or drops and counts it.
    fn push(&self, line: &[u8]) {
        let mut state = self.shared.lock();
        if state.lines.len() + line.len() > BUFFER_BYTES_MAX {
            drop(state);
            self.shared.count_dropped(1);
            return;
        }
        let was_empty = state.lines.is_empty();
        match self.escaping {
            Escaping::None => state.lines.extend_from_slice(line),
            Escaping::All => push_escaped(&mut state.lines, line, false),
            Escaping::AllButColours => push_escaped(&mut state.lines, line, true),
        }
        drop(state);
        if was_empty {
            self.shared.has_lines.notify_one();
        }
    }

    /// Waits until every line is written, but no longer than `within`; whether they are.
    fn flush(&self, within: Duration) -> bool {
        let is_unwritten = |state: &mut State| state.is_writing || !state.lines.is_empty();
        let state = self.shared.lock();
        let waited = self.shared.is_written.wait_timeout_while(state, within, is_unwritten);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }
}

/// Takes lines as `tracing-subscriber` writes them, one whole line at a time. It never fails.
impl Write for LogWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.push(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count_dropped(&self, lines: u64) {
        self.dropped.fetch_add(lines, Ordering::Relaxed);
    }

    fn write_to(&self, mut output: impl Write) {
        let (mut batch, mut is_torn, mut reported) = (Vec::new(), false, 0);
        loop {
            let wait = self.has_lines.wait_while(self.lock(), |state| state.lines.is_empty());
            drop(wait.unwrap_or_else(PoisonError::into_inner));
            thread::sleep(GATHER);
            {
                let mut state = self.lock();
                mem::swap(&mut state.lines, &mut batch);
                state.is_writing = true;
            }
            let unwritten = write_batch(&mut output, &batch, &mut is_torn);
            self.count_dropped(unwritten);
            batch.clear();
            batch.shrink_to(BUFFER_BYTES_KEPT);
            let dropped = self.dropped.load(Ordering::Relaxed);
            if unwritten == 0 && dropped > reported {
                tracing::warn!(
                    dropped = dropped - reported,
                    "log lines dropped: standard error was blocked or failing"
                );
                reported = dropped;
            }
            self.lock().is_writing = false;
            self.is_written.notify_all();
        }
    }
}

/// Writes whole lines; how many were not written. After an error in the middle of a line, `is_torn` has the next batch
/// begin a line of its own.
fn write_batch(output: &mut impl Write, batch: &[u8], is_torn: &mut bool) -> u64 {
    if *is_torn && write_all(output, b"\n").is_ok() {
        *is_torn = false;
    }
    let Err(written) = write_all(output, batch) else { return 0 };
    *is_torn |= written > 0 && batch[written - 1] != b'\n';
    batch[written..].iter().map(|byte| u64::from(*byte == b'\n')).sum()
}

/// Writes everything, or says how much was written before an error.
fn write_all(output: &mut impl Write, bytes: &[u8]) -> Result<(), usize> {
    let mut written = 0;
    while written < bytes.len() {
        match output.write(&bytes[written..]) {
            Ok(0) => return Err(written),
            Ok(count) => written += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => thread::sleep(RETRY),
            Err(_) => return Err(written),
        }
    }
    Ok(())
}

/// Appends a line with its control characters escaped, but for the newline at its end.
fn push_escaped(lines: &mut Vec<u8>, line: &[u8], has_colours: bool) {
    let text = String::from_utf8_lossy(line);
    let (text, end) = match text.strip_suffix('\n') {
        Some(text) => (text, "\n"),
        None => (&*text, ""),
    };
    let is_escaped = |character: char| is_control(character) && !(has_colours && character == '\x1b');
    if text.contains(is_escaped) {
        for character in text.chars() {
            if is_escaped(character) {
                lines.extend(character.escape_default().map(|escaped| u8::try_from(escaped).unwrap_or(b'?')));
            } else {
                lines.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
    } else {
        lines.extend_from_slice(text.as_bytes());
    }
    lines.extend_from_slice(end.as_bytes());
}

/// Control characters, and those of Unicode that end a line or turn the direction of text around.
fn is_control(character: char) -> bool {
    character.is_control() || matches!(character, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    /// An output that takes what it is allowed to take, and blocks in between.
    struct Gated {
        allowed: Receiver<io::Result<usize>>,
        written: Sender<Vec<u8>>,
    }

    impl Write for Gated {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let count = self.allowed.recv().map_err(|_| io::ErrorKind::BrokenPipe)??.min(bytes.len());
            let _ = self.written.send(bytes[..count].to_vec());
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn gated() -> (LogWriter, Sender<io::Result<usize>>, Receiver<Vec<u8>>) {
        let ((allow, allowed), (written, read)) = (channel(), channel());
        (LogWriter::start(Gated { allowed, written }, Escaping::None).unwrap(), allow, read)
    }

    fn dropped(writer: &LogWriter) -> u64 {
        writer.shared.dropped.load(Ordering::Relaxed)
    }

    #[test]
    fn blocked_output_drops_lines_beyond_the_buffer_and_delays_nobody() {
        let (writer, allow, read) = gated();
        let line = [[b'x'; 1023].as_slice(), b"\n"].concat();
        // The thread may have taken one batch before it blocks, and no more.
        let count = 3 * BUFFER_BYTES_MAX / line.len();
        for _ in 0..count {
            writer.push(&line);
        }
        let lost = usize::try_from(dropped(&writer)).unwrap();
        assert!((count / 3..=count * 2 / 3).contains(&lost), "{lost} of {count}");
        assert!(!writer.flush(Duration::from_millis(1)), "a flush gives up");
        for _ in 0..4 {
            allow.send(Ok(usize::MAX)).unwrap();
        }
        assert!(writer.flush(LONG));
        let written: usize = read.try_iter().map(|bytes| bytes.len()).sum();
        assert_eq!(written, (count - lost) * line.len());
    }

    #[test]
    fn failed_write_is_counted_and_the_next_line_begins_anew() {
        let (writer, allow, read) = gated();
        for answer in [Ok(3), Err(io::ErrorKind::StorageFull.into())] {
            allow.send(answer).unwrap();
        }
        writer.push(b"first\nsecond\n");
        assert!(writer.flush(LONG));
        assert_eq!(dropped(&writer), 2);
        for answer in
            [Err(io::ErrorKind::WouldBlock.into()), Ok(1), Ok(4), Err(io::ErrorKind::Interrupted.into()), Ok(9)]
        {
            allow.send(answer).unwrap();
        }
        writer.push(b"third\n");
        assert!(writer.flush(LONG));
        assert_eq!(read.try_iter().collect::<Vec<_>>().concat(), b"fir\nthird\n");
        drop(allow);
        writer.push(b"fourth\n");
        assert!(writer.flush(LONG), "a closed output is no reason to wait");
        assert_eq!(dropped(&writer), 3);
    }

    #[test]
    fn control_characters_are_escaped_within_a_line() {
        let escaped = |line: &str, has_colours| {
            let mut lines = Vec::new();
            push_escaped(&mut lines, line.as_bytes(), has_colours);
            String::from_utf8(lines).unwrap()
        };
        let line = "name=a\nERROR forged\r\u{9b}\u{1b}[2J\u{202e}é\n";
        assert_eq!(escaped(line, false), "name=a\\nERROR forged\\r\\u{9b}\\u{1b}[2J\\u{202e}é\n");
        assert_eq!(escaped("\u{1b}[1mbold\u{1b}[0m\n", true), "\u{1b}[1mbold\u{1b}[0m\n");
        assert_eq!(escaped("plain\n", false), "plain\n");
    }
}
