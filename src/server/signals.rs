//! The signals that stop a server, the first one orderly, the second one at once; and the one that has it read its
//! configuration again.

use std::future::Future;
use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};

/// Two futures: ready with the first SIGTERM or SIGINT, and with the second.
pub fn signals() -> io::Result<(impl Future<Output = ()>, impl Future<Output = ()>)> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let (count, counted) = watch::channel(0_u32);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            count.send_modify(|count| *count += 1);
        }
    });
    Ok((reached(counted.clone(), 1), reached(counted, 2)))
}

/// Receives a message for every SIGHUP; those that come while one is handled count as one.
pub fn hang_ups() -> io::Result<mpsc::Receiver<()>> {
    let mut hang_up = signal(SignalKind::hangup())?;
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        while hang_up.recv().await.is_some() {
            // A full queue says that it is about to be read anyway.
            let _ = sender.try_send(());
        }
    });
    Ok(receiver)
}

async fn reached(mut counted: watch::Receiver<u32>, signals: u32) {
    // The sender is never dropped: an error would mean that no further signal can come.
    if counted.wait_for(|count| *count >= signals).await.is_err() {
        std::future::pending::<()>().await;
    }
}
