//! The log's writer: callers append to a bounded buffer, and one thread writes it out.
//!
//! A caller never waits for the output, only for the lock of the buffer, which is not held during a write. Lines are
//! dropped and counted if the buffer is full or the write fails. After the next successful write, a line reports how
//! many were dropped.

use std::borrow::Cow;
use std::io::{self, Write};
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

/// Enough for some thousand lines. The thread holds as much again while it writes.
const BUFFER_BYTES_MAX: usize = 1 << 20;
/// The capacity that empty buffers keep.
const BUFFER_BYTES_KEPT: usize = 64 << 10;
/// How long the first line of a batch waits for others: one write is cheaper than one per line.
const GATHER: Duration = Duration::from_millis(1);
/// How long to wait before retrying a non-blocking output that is full.
const RETRY: Duration = Duration::from_millis(10);

static INSTALLED: OnceLock<LogWriter> = OnceLock::new();

/// Makes this the process's writer, whose dropped lines appear in the metrics. A second one is ignored.
pub fn install(writer: LogWriter) {
    let _ = INSTALLED.set(writer);
}

/// The number of lines that the process's log has dropped.
pub fn dropped() -> u64 {
    INSTALLED.get().map_or(0, |writer| writer.shared.dropped.load(Ordering::Relaxed))
}

/// Writes a line directly, without `tracing`, if the process has a log.
pub fn print(line: &str) {
    if let Some(writer) = INSTALLED.get() {
        writer.push(format!("{line}\n").as_bytes());
    }
}

/// Waits until the process's log is written, for at most `within`.
pub fn flush(within: Duration) {
    if let Some(writer) = INSTALLED.get() {
        writer.flush(within);
    }
}

/// Which control characters are escaped, so that no value can forge a line or control a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Escaping {
    /// None, as JSON escapes them itself.
    None,
    All,
    /// All but the escape character, which starts colour sequences; `tracing-subscriber` escapes it in values.
    AllButColours,
}

/// A handle that appends lines to the buffer. Clones share it.
#[derive(Clone, Debug)]
pub struct LogWriter {
    shared: Arc<Shared>,
    escaping: Escaping,
}

#[derive(Debug, Default)]
struct Shared {
    buffer: Mutex<LogBuffer>,
    has_lines: Condvar,
    is_written: Condvar,
    dropped: AtomicU64,
}

#[derive(Debug, Default)]
struct LogBuffer {
    lines: Vec<u8>,
    is_writing: bool,
}

impl LogWriter {
    /// Starts the thread that writes to `output`. The thread ends with the process.
    pub fn start(output: impl Write + Send + 'static, escaping: Escaping) -> io::Result<LogWriter> {
        let shared = Arc::new(Shared::default());
        let thread_shared = Arc::clone(&shared);
        thread::Builder::new().name("log".to_owned()).spawn(move || thread_shared.write_to(output))?;
        Ok(LogWriter { shared, escaping })
    }

    /// Appends one whole line, or drops and counts it.
    pub fn push(&self, line: &[u8]) {
        let mut buffer = self.shared.lock();
        if buffer.lines.len() + line.len() > BUFFER_BYTES_MAX {
            drop(buffer);
            self.shared.count_dropped(1);
            return;
        }
        let was_empty = buffer.lines.is_empty();
        match self.escaping {
            Escaping::None => buffer.lines.extend_from_slice(line),
            Escaping::All => push_escaped(&mut buffer.lines, line, false),
            Escaping::AllButColours => push_escaped(&mut buffer.lines, line, true),
        }
        drop(buffer);
        if was_empty {
            self.shared.has_lines.notify_one();
        }
    }

    /// Waits until every line is written, for at most `within`. Returns whether they are.
    fn flush(&self, within: Duration) -> bool {
        let is_unwritten = |buffer: &mut LogBuffer| buffer.is_writing || !buffer.lines.is_empty();
        let buffer = self.shared.lock();
        let waited = self.shared.is_written.wait_timeout_while(buffer, within, is_unwritten);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }
}

/// Receives one whole line per call from `tracing-subscriber`. Never fails.
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
    fn lock(&self) -> MutexGuard<'_, LogBuffer> {
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count_dropped(&self, lines: u64) {
        self.dropped.fetch_add(lines, Ordering::Relaxed);
    }

    fn write_to(&self, mut output: impl Write) {
        let (mut batch, mut is_torn, mut reported) = (Vec::new(), false, 0);
        loop {
            let wait = self.has_lines.wait_while(self.lock(), |buffer| buffer.lines.is_empty());
            drop(wait.unwrap_or_else(PoisonError::into_inner));
            thread::sleep(GATHER);
            {
                let mut buffer = self.lock();
                mem::swap(&mut buffer.lines, &mut batch);
                buffer.is_writing = true;
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

/// Writes whole lines and returns how many were not written. After an error in the middle of a line, `is_torn` makes
/// the next batch start on a new line.
fn write_batch(output: &mut impl Write, batch: &[u8], is_torn: &mut bool) -> u64 {
    if *is_torn && write_all(output, b"\n").is_ok() {
        *is_torn = false;
    }
    let Err(written) = write_all(output, batch) else { return 0 };
    *is_torn |= written > 0 && batch[written - 1] != b'\n';
    batch[written..].iter().map(|byte| u64::from(*byte == b'\n')).sum()
}

/// Writes everything, or returns how much was written before an error.
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

/// Appends a line with control characters escaped, except for the newline at its end.
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

/// A text on one line that controls no terminal, whoever it comes from.
pub fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(is_control) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_control(character) {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    shown.into()
}

/// Control characters, and Unicode characters that end a line or change the direction of text.
fn is_control(character: char) -> bool {
    character.is_control() || matches!(character, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    /// An output that blocks until the test allows a write.
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
    fn blocked_output_drops_lines_beyond_the_buffer_without_blocking_callers() {
        let (writer, allow, read) = gated();
        let line = [[b'x'; 1023].as_slice(), b"\n"].concat();
        // The thread takes at most one batch before it blocks.
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
    fn failed_write_is_counted_and_the_next_line_starts_on_a_new_line() {
        let (writer, allow, read) = gated();
        for result in [Ok(3), Err(io::ErrorKind::StorageFull.into())] {
            allow.send(result).unwrap();
        }
        writer.push(b"first\nsecond\n");
        assert!(writer.flush(LONG));
        assert_eq!(dropped(&writer), 2);
        for result in
            [Err(io::ErrorKind::WouldBlock.into()), Ok(1), Ok(4), Err(io::ErrorKind::Interrupted.into()), Ok(9)]
        {
            allow.send(result).unwrap();
        }
        writer.push(b"third\n");
        assert!(writer.flush(LONG));
        assert_eq!(read.try_iter().collect::<Vec<_>>().concat(), b"fir\nthird\n");
        drop(allow);
        writer.push(b"fourth\n");
        assert!(writer.flush(LONG), "a closed output does not block");
        assert_eq!(dropped(&writer), 3);
    }

    #[test]
    fn control_characters_are_escaped_within_a_line() {
        let pushed = |line: &str, has_colours| {
            let mut lines = Vec::new();
            push_escaped(&mut lines, line.as_bytes(), has_colours);
            String::from_utf8(lines).unwrap()
        };
        let line = "name=a\nERROR forged\r\u{9b}\u{1b}[2J\u{202e}é\n";
        assert_eq!(pushed(line, false), "name=a\\nERROR forged\\r\\u{9b}\\u{1b}[2J\\u{202e}é\n");
        assert_eq!(pushed("\u{1b}[1mbold\u{1b}[0m\n", true), "\u{1b}[1mbold\u{1b}[0m\n");
        assert_eq!(pushed("plain\n", false), "plain\n");
        assert_eq!(escaped("a\nb\u{1b}[2J\u{202e}é"), "a\\nb\\u{1b}[2J\\u{202e}é");
    }
}
