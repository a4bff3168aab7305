//! Reading a request's feed lines to their end, whichever door they came through.
//!
//! Lines that have come are handed on when the stream pauses, so that a feeder who sends one now and then is not held
//! back. A stream that fails is told how many of its lines are dealt with, so that it knows where to go on.

use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::sync::watch;
use tokio::time::timeout;

use super::gunzip::Gunzip;
use super::intake::Intake;
use super::protocol::{Failure, FailureCode, IngestAnswer};

/// After this much silence, the lines of a stream that have come are handed on.
const PAUSE: Duration = Duration::from_millis(200);
/// How long the rest of a stream that failed is read and thrown away, so that its sender gets to see why.
const DRAIN: Duration = Duration::from_secs(2);

/// What a stream is held to.
#[derive(Debug, Default)]
pub(super) struct Terms {
    /// How long it may be silent; `None` for as long as it likes.
    pub(super) silence_max: Option<Duration>,
    /// Becomes true when the server stops.
    pub(super) stopping: Option<watch::Receiver<bool>>,
    /// For a stream that is compressed, the bytes that it may inflate to.
    pub(super) gzip_inflated_max: Option<u64>,
}

/// A stream that was not taken to its end.
#[derive(Debug)]
pub(super) struct BrokenOff {
    pub(super) failure: Failure,
    pub(super) taken_lines: u64,
}

/// Takes a stream to its end. Whole lines that came before a failure are kept; one that broke off is not a line.
pub(super) async fn take(mut intake: Intake, body: &mut Incoming, terms: Terms) -> Result<IngestAnswer, BrokenOff> {
    let taken = match read(&mut intake, body, terms).await {
        Ok(()) => intake.finish().await,
        Err(failure) => Err(failure),
    };
    let Err(mut failure) = taken else { return taken.map_err(|failure| BrokenOff { failure, taken_lines: 0 }) };
    intake.failed(&failure);
    let taken_lines = intake.taken_lines();
    failure.message = format!("{}; {}", failure.message, dealt_with(taken_lines));
    drain(body).await;
    Err(BrokenOff { failure, taken_lines })
}

fn dealt_with(lines: u64) -> String {
    match lines {
        0 => "no line was taken".to_owned(),
        lines => format!("lines 1 to {lines} were dealt with: go on from line {}", lines + 1),
    }
}

/// Reads what is left of a body for a while and throws it away.
pub(super) async fn drain(body: &mut Incoming) {
    let drained = async { while let Some(Ok(_)) = body.frame().await {} };
    let _ = timeout(DRAIN, drained).await;
}

async fn read(intake: &mut Intake, body: &mut Incoming, terms: Terms) -> Result<(), Failure> {
    let Terms { silence_max, mut stopping, gzip_inflated_max } = terms;
    let mut gunzip = gzip_inflated_max.map(Gunzip::new);
    loop {
        if stopping.as_ref().is_some_and(|stopping| *stopping.borrow()) {
            intake.pause().await?;
            return Err(Failure::new(FailureCode::Unavailable, "the server is stopping"));
        }
        let frame = match timeout(PAUSE, body.frame()).await {
            Ok(frame) => frame,
            Err(_silence) => {
                intake.pause().await?;
                tokio::select! {
                    frame = body.frame() => frame,
                    () = until_stopping(&mut stopping) => continue,
                    () = silence(silence_max) => return Err(too_silent(silence_max)),
                }
            }
        };
        match frame {
            None => return gunzip.map_or(Ok(()), |gunzip| gunzip.finish()),
            Some(Ok(frame)) => match (frame.data_ref(), &mut gunzip) {
                (Some(bytes), Some(gunzip)) => gunzip.push(bytes, intake).await?,
                (Some(bytes), None) => intake.push(bytes).await?,
                (None, _) => {}
            },
            Some(Err(error)) => {
                intake.pause().await?;
                return Err(Failure::bad_request(format!("the lines broke off: {error}")));
            }
        }
    }
}

async fn until_stopping(stopping: &mut Option<watch::Receiver<bool>>) {
    match stopping {
        // An error says that the server is gone, which is as good as stopping.
        Some(stopping) => drop(stopping.wait_for(|stop| *stop).await),
        None => std::future::pending().await,
    }
}

async fn silence(max: Option<Duration>) {
    match max {
        Some(max) => tokio::time::sleep(max).await,
        None => std::future::pending().await,
    }
}

fn too_silent(max: Option<Duration>) -> Failure {
    let seconds = max.unwrap_or_default().as_secs();
    Failure::new(FailureCode::Timeout, format!("nothing came for {seconds} s: end a request that has nothing to send"))
}
