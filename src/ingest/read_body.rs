//! Reads the feed lines or the payload in a request's body to its end, whichever interface it came through.
//!
//! Lines that have come are handed on when the stream pauses, so that a feeder who sends one now and then does not wait
//! for a batch to fill. The answer to a stream that fails says how many of its lines are done with, so that its sender
//! knows where to go on.

use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::sync::watch;
use tokio::time::timeout;

use super::error::IngestError;
use super::feed::{Feed, IngestContext};
use super::gunzip::Gunzip;
use super::history::HistoryStream;
use super::options::{HistoryInput, PayloadOptions};
use super::payload::PayloadBuffer;
use super::report::IngestSummary;
use super::stream::LineStream;

/// After this much silence, the lines of a stream that have come are handed on.
const PAUSE: Duration = Duration::from_millis(200);
/// How long the rest of a failed stream is read and thrown away, so that its sender gets to see the answer.
const DRAIN: Duration = Duration::from_secs(2);

/// The limits of a stream.
#[derive(Debug, Default)]
pub struct BodyTerms {
    /// How long it may be silent; `None` is no limit.
    pub(super) silence_max: Option<Duration>,
    /// Becomes true when the server stops.
    pub(super) stopping: Option<watch::Receiver<bool>>,
    /// For a compressed stream, the bytes that it may inflate to.
    pub(super) gzip_inflated_max: Option<u64>,
}

/// A stream that was not read to its end.
#[derive(Debug, thiserror::Error)]
#[error("{error}; {}", progress(*.taken_lines))]
pub struct InterruptedInput {
    pub error: IngestError,
    /// The lines from its start that are done with.
    pub taken_lines: u64,
}

fn progress(taken_lines: u64) -> String {
    match taken_lines {
        0 => "no line was taken".to_owned(),
        lines => format!("lines 1 to {lines} were dealt with: go on from line {}", lines + 1),
    }
}

/// Reads lines to their end. Whole lines that came before a failure are kept; one that broke off is not a line.
pub async fn read_lines(
    mut lines: LineStream,
    body: &mut Incoming,
    terms: BodyTerms,
) -> Result<IngestSummary, InterruptedInput> {
    let finished = match push_body(&mut lines, body, terms).await {
        Ok(()) => lines.finish().await,
        Err(error) => Err(error),
    };
    match finished {
        Ok(summary) => Ok(summary),
        Err(error) => {
            lines.fail(&error).await;
            drain(body).await;
            Err(InterruptedInput { error, taken_lines: lines.taken_lines() })
        }
    }
}

/// Collects a payload of The Odds API and takes it in.
pub async fn read_payload(
    options: &PayloadOptions,
    body: &mut Incoming,
    context: &IngestContext,
) -> Result<IngestSummary, IngestError> {
    let collect = async {
        let mut payload = PayloadBuffer::default();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| IngestError::BodyBrokenOff { what: "payload", error })?;
            if let Some(bytes) = frame.data_ref() {
                payload.push(bytes)?;
            }
        }
        payload.finish(options, Feed::push(), context).await
    };
    let taken = collect.await;
    if taken.is_err() {
        drain(body).await;
    }
    taken
}

/// Reads history to its end. Nothing of it is kept if it breaks off.
pub async fn read_history(
    options: HistoryInput,
    body: &mut Incoming,
    context: &IngestContext,
) -> Result<IngestSummary, IngestError> {
    let read = async {
        let mut history = HistoryStream::open(options, Feed::push(), context)?;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| IngestError::BodyBrokenOff { what: "history", error })?;
            if let Some(bytes) = frame.data_ref() {
                history.push(bytes).await?;
            }
        }
        history.finish().await
    };
    let taken = read.await;
    if taken.is_err() {
        drain(body).await;
    }
    taken
}

/// Reads what is left of a body for a while and throws it away.
pub async fn drain(body: &mut Incoming) {
    let drained = async { while let Some(Ok(_)) = body.frame().await {} };
    let _ = timeout(DRAIN, drained).await;
}

async fn push_body(lines: &mut LineStream, body: &mut Incoming, terms: BodyTerms) -> Result<(), IngestError> {
    let BodyTerms { silence_max, mut stopping, gzip_inflated_max } = terms;
    let mut gunzip = gzip_inflated_max.map(Gunzip::new);
    loop {
        if stopping.as_ref().is_some_and(|stopping| *stopping.borrow()) {
            lines.pause().await?;
            return Err(IngestError::Stopping);
        }
        let frame = match timeout(PAUSE, body.frame()).await {
            Ok(frame) => frame,
            Err(_silence) => {
                lines.pause().await?;
                tokio::select! {
                    frame = body.frame() => frame,
                    () = until_stopping(&mut stopping) => continue,
                    silent_for = silence(silence_max) => return Err(IngestError::Silent(silent_for)),
                }
            }
        };
        match frame {
            None => return gunzip.map_or(Ok(()), |gunzip| gunzip.finish()),
            Some(Ok(frame)) => match (frame.data_ref(), &mut gunzip) {
                (Some(bytes), Some(gunzip)) => gunzip.push(bytes, lines).await?,
                (Some(bytes), None) => lines.push(bytes).await?,
                (None, _) => {}
            },
            Some(Err(error)) => {
                lines.pause().await?;
                return Err(IngestError::BodyBrokenOff { what: "lines", error });
            }
        }
    }
}

async fn until_stopping(stopping: &mut Option<watch::Receiver<bool>>) {
    match stopping {
        // An error means that the server is gone, which counts as stopping.
        Some(stopping) => drop(stopping.wait_for(|stop| *stop).await),
        None => std::future::pending().await,
    }
}

/// Ready after the longest silence allowed, which it returns.
async fn silence(max: Option<Duration>) -> Duration {
    match max {
        Some(max) => {
            tokio::time::sleep(max).await;
            max
        }
        None => std::future::pending().await,
    }
}
