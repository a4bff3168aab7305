//! Ctrl-C during an ingest. Feed lines end at the last whole line that was read, so that the report says what was kept; a
//! strict input or a payload is given up, and nothing of it is written.

use std::io;

use bytes::Bytes;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use crate::admin::{AdminError, PieceSource};
use crate::cli::output::Output;
use crate::ingest::IngestSummary;

/// As much of an unfinished line as is held back. A longer one is rejected as too long in any case.
const HELD_BYTES_MAX: usize = 1 << 20;

/// How an ingest ended.
pub(super) enum IngestEnd {
    Answered(Result<IngestSummary, AdminError>),
    /// The lines before the interruption were accepted or rejected.
    Interrupted(Result<IngestSummary, AdminError>),
    /// Interrupted before anything was written.
    Discarded,
    /// Interrupted again, before the answer came.
    Abandoned,
}

/// The presses of Ctrl-C, from the time of this call.
pub(super) struct Interrupts {
    signal: Signal,
    count: u32,
}

impl Interrupts {
    pub(super) fn listen() -> io::Result<Self> {
        Ok(Interrupts { signal: signal(SignalKind::interrupt())?, count: 0 })
    }

    async fn next(&mut self) {
        if self.signal.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
        self.count += 1;
    }
}

/// Hands the input to `send` until it ends or is interrupted. With `is_whole` an interrupted input is given up.
pub(super) async fn send_until_interrupted<F>(
    mut source: PieceSource,
    is_whole: bool,
    mut interrupts: Interrupts,
    output: Output,
    send: impl FnOnce(PieceSource) -> F,
) -> IngestEnd
where
    F: Future<Output = Result<IngestSummary, AdminError>>,
{
    let (sender, pieces) = mpsc::channel(1);
    let mut sending = Box::pin(send(pieces));
    tokio::select! {
        answer = &mut sending => return IngestEnd::Answered(answer),
        () = forward(&mut source, &sender, is_whole) => {}
        () = interrupts.next() => {}
    }
    if interrupts.count > 0 && is_whole {
        return IngestEnd::Discarded;
    }
    let is_interrupted = interrupts.count > 0;
    drop(sender);
    loop {
        tokio::select! {
            answer = &mut sending => {
                return if is_interrupted { IngestEnd::Interrupted(answer) } else { IngestEnd::Answered(answer) };
            }
            () = interrupts.next() => {
                if interrupts.count > 1 {
                    return IngestEnd::Abandoned;
                }
                output.diagnostic("warning", "the input has been read and is being written: press Ctrl-C again to give up");
            }
        }
    }
}

/// Forwards an input to its end: whole lines only, unless the input is one document.
async fn forward(source: &mut PieceSource, sender: &mpsc::Sender<io::Result<Bytes>>, is_whole: bool) {
    let mut held = HeldLine::default();
    while let Some(piece) = source.recv().await {
        let ready = match piece {
            Ok(piece) if !is_whole => match held.add(piece) {
                Some(lines) => Ok(lines),
                None => continue,
            },
            piece => piece,
        };
        if sender.send(ready).await.is_err() {
            return;
        }
    }
    if !held.0.is_empty() {
        let _ = sender.send(Ok(held.0.into())).await;
    }
}

/// The beginning of a line whose end has not been read yet.
#[derive(Debug, Default)]
struct HeldLine(Vec<u8>);

impl HeldLine {
    /// Adds a piece, and returns everything up to the last end of a line, in one piece: an interruption comes before
    /// all of it or after.
    fn add(&mut self, mut piece: Bytes) -> Option<Bytes> {
        let end = match piece.iter().rposition(|byte| *byte == b'\n') {
            Some(newline) => newline + 1,
            None if self.0.len() + piece.len() > HELD_BYTES_MAX => piece.len(),
            None => {
                self.0.extend_from_slice(&piece);
                return None;
            }
        };
        let rest = piece.split_off(end);
        let mut lines = std::mem::replace(&mut self.0, rest.to_vec());
        if lines.is_empty() {
            return Some(piece);
        }
        lines.extend_from_slice(&piece);
        Some(lines.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_lines_are_forwarded() {
        let mut held = HeldLine::default();
        let mut add = |text: &'static str| {
            let lines = held.add(Bytes::from_static(text.as_bytes())).unwrap_or_default();
            String::from_utf8(lines.to_vec()).unwrap()
        };
        assert_eq!(add("one\ntwo\nth"), "one\ntwo\n");
        assert_eq!(add("re"), "");
        assert_eq!(add("e\nfour\n"), "three\nfour\n");
        assert_eq!(add("five"), "");
        assert_eq!(held.0, b"five");
        held.add(Bytes::from(vec![b'x'; HELD_BYTES_MAX]));
        assert!(held.0.is_empty(), "a line that is too long is not held back");
    }
}
