//! Copies of a node's file for nodes that join.
//!
//! A node that joins asks for a copy by a name of its own. The node that has the duty makes one beside its file, as a backup does,
//! and sends it through the engine in pieces, of which a few may be on their way. Each piece begins with a byte that says what
//! it is. The last one has the SHA-256 digest of the whole.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::task::spawn_blocking;

use super::engine::{CopyRelay, Engine, EngineError};
use super::member::Member;
use crate::store::Existing;
use crate::writer::{SnapshotJob, WriterHandle};

/// What a piece is.
const DATA: u8 = b'D';
/// The copy is being made.
const WORKING: u8 = b'W';
const END: u8 = b'E';
const FAILED: u8 = b'X';

/// The longest name of a copy.
const NAME_BYTES_MAX: usize = 64;
const PIECE_BYTES: usize = 1 << 20;
/// So many pieces may be on their way.
const WAITING_MAX: usize = 16;
/// How often it is checked whether they were taken, and whether a copy was asked for.
const CHECK: Duration = Duration::from_millis(20);
const ASKED_CHECK: Duration = Duration::from_millis(500);
const ASK_EVERY: Duration = Duration::from_secs(1);
/// How long nothing may arrive before a copy counts as lost.
const PATIENCE: Duration = Duration::from_secs(15);
const WORKING_EVERY: Duration = Duration::from_secs(2);

/// Why a copy did not arrive.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error("the copy cannot be written: {0}")]
    File(#[from] io::Error),
    #[error("the other node could not make a copy: {0}")]
    Failed(String),
    #[error("no node sends a copy")]
    Silent,
    #[error("the copy has arrived damaged")]
    Damaged,
}

/// How far a copy has come.
#[derive(Clone, Copy, Debug, Default)]
pub struct Received {
    pub bytes: u64,
}

/// Receives a copy. To be tried again if no node sends one: the one that did may have ended.
pub async fn receive<E: CopyRelay>(
    engine: &E,
    copy: &str,
    path: &Path,
    mut progress: impl FnMut(Received),
) -> Result<(), CopyError> {
    let mut file = File::create(path)?;
    let mut digest = Sha256::new();
    let mut received = Received::default();
    let mut piece = first_piece(engine, copy).await?;
    loop {
        match piece.split_first() {
            Some((&DATA, data)) => {
                file.write_all(data)?;
                digest.update(data);
                received.bytes += data.len() as u64;
                progress(received);
            }
            Some((&WORKING, _)) => progress(received),
            Some((&END, expected)) => {
                let digest: [u8; 32] = digest.finalize().into();
                file.sync_all()?;
                return if *expected == digest { Ok(()) } else { Err(CopyError::Damaged) };
            }
            Some((&FAILED, reason)) => return Err(CopyError::Failed(String::from_utf8_lossy(reason).into_owned())),
            _ => return Err(CopyError::Damaged),
        }
        piece = engine.take_piece(copy, PATIENCE).await?.ok_or(CopyError::Silent)?;
    }
}

/// Asks until somebody begins to send.
async fn first_piece<E: CopyRelay>(engine: &E, copy: &str) -> Result<Vec<u8>, CopyError> {
    loop {
        engine.ask_for_copy(copy).await?;
        if let Some(piece) = engine.take_piece(copy, ASK_EVERY).await? {
            engine.withdraw_ask(copy).await?;
            return Ok(piece);
        }
    }
}

/// Sends the copies that nodes ask for, one after the other, while this node has the duty. They are made in `directory`.
pub async fn send_all<E: Engine + CopyRelay>(member: Arc<Member<E>>, directory: PathBuf) {
    let engine = Arc::clone(member.node().engine());
    loop {
        tokio::time::sleep(ASKED_CHECK).await;
        if member.duty().fence().is_none() {
            continue;
        }
        let Ok(Some(copy)) = engine.next_asked().await else { continue };
        // The name is that of a file, and comes from the engine.
        if !(1..=NAME_BYTES_MAX).contains(&copy.len()) || !copy.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            continue;
        }
        tracing::info!(%copy, "a node joins: sending it a copy of the data");
        let path = directory.join(format!("copy-{copy}.tmp"));
        let sent = send(&*engine, member.node().writer(), &copy, &path).await;
        let _ = fs::remove_file(&path);
        match sent {
            Ok(bytes) => tracing::info!(%copy, bytes, "sent a copy of the data"),
            Err(error) => {
                tracing::warn!(%error, %copy, "failed to send a copy of the data");
                let reason = [&[FAILED], error.to_string().as_bytes()].concat();
                let _ = engine.put_piece(&copy, &reason).await;
            }
        }
    }
}

async fn send<E: CopyRelay>(engine: &E, writer: &WriterHandle, copy: &str, path: &Path) -> Result<u64, CopyError> {
    engine.put_piece(copy, &[WORKING]).await?;
    let making = make(writer, path);
    tokio::pin!(making);
    loop {
        tokio::select! {
            made = &mut making => break made?,
            () = tokio::time::sleep(WORKING_EVERY) => {
                engine.put_piece(copy, &[WORKING]).await?;
            }
        }
    }
    let mut file = File::open(path)?;
    let mut digest = Sha256::new();
    let mut sent = 0;
    let mut piece = Vec::with_capacity(PIECE_BYTES + 1);
    loop {
        piece.clear();
        piece.push(DATA);
        let read = (&mut file).take(PIECE_BYTES as u64).read_to_end(&mut piece)?;
        if read == 0 {
            break;
        }
        digest.update(&piece[1..]);
        sent += read as u64;
        put(engine, copy, &piece).await?;
    }
    let digest: [u8; 32] = digest.finalize().into();
    put(engine, copy, &[&[END], &digest[..]].concat()).await?;
    Ok(sent)
}

/// A copy of the data as it is now.
async fn make(writer: &WriterHandle, path: &Path) -> Result<(), CopyError> {
    let failed = |error: &dyn std::fmt::Display| CopyError::Failed(error.to_string());
    let SnapshotJob { snapshot, guard } =
        writer.start_snapshot_job("copy for a node").await.map_err(|error| failed(&error))?;
    let path = path.to_owned();
    let made = spawn_blocking(move || snapshot.copy_to(&path, Existing::Replace)).await.map_err(io::Error::other)?;
    drop(guard);
    made.map(|_| ()).map_err(|error| failed(&error))
}

/// Sends a piece when there is room for it.
async fn put<E: CopyRelay>(engine: &E, copy: &str, piece: &[u8]) -> Result<(), CopyError> {
    let room = async {
        while engine.pieces_waiting(copy).await? >= WAITING_MAX {
            tokio::time::sleep(CHECK).await;
        }
        Ok::<_, EngineError>(())
    };
    let Ok(room) = tokio::time::timeout(PATIENCE, room).await else {
        engine.drop_pieces(copy).await?;
        return Err(CopyError::Failed("the node that asked for it takes no more of it".to_owned()));
    };
    room?;
    engine.put_piece(copy, piece).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::Mutex;

    use super::*;

    /// The pieces that arrive for a node which joins.
    struct Pieces(Mutex<VecDeque<Vec<u8>>>);

    impl CopyRelay for Pieces {
        async fn ask_for_copy(&self, _: &str) -> Result<(), EngineError> {
            Ok(())
        }

        async fn withdraw_ask(&self, _: &str) -> Result<(), EngineError> {
            Ok(())
        }

        async fn next_asked(&self) -> Result<Option<String>, EngineError> {
            Ok(None)
        }

        async fn put_piece(&self, _: &str, _: &[u8]) -> Result<usize, EngineError> {
            Ok(0)
        }

        async fn pieces_waiting(&self, _: &str) -> Result<usize, EngineError> {
            Ok(0)
        }

        async fn take_piece(&self, _: &str, _: Duration) -> Result<Option<Vec<u8>>, EngineError> {
            Ok(self.0.lock().unwrap().pop_front())
        }

        async fn drop_pieces(&self, _: &str) -> Result<(), EngineError> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn copy_that_is_not_what_was_sent_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("copy");
        let receive = async |pieces: &[Vec<u8>]| {
            let pieces = Pieces(Mutex::new(pieces.iter().cloned().collect()));
            receive(&pieces, "c", &path, drop).await
        };
        let (first, second) = (b"Done ".to_vec(), b"Dtwo".to_vec());
        let digest: [u8; 32] = Sha256::digest(b"one two").into();
        let end = [&[END], &digest[..]].concat();
        receive(&[vec![WORKING], first.clone(), second.clone(), end.clone()]).await.unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"one two");
        for damaged in [
            vec![first.clone(), end.clone()],
            vec![second, first.clone(), end],
            vec![first.clone(), vec![END]],
            vec![first.clone(), vec![]],
            vec![vec![b'?']],
        ] {
            assert!(matches!(receive(&damaged).await, Err(CopyError::Damaged)), "{damaged:?}");
        }
        assert!(matches!(receive(std::slice::from_ref(&first)).await, Err(CopyError::Silent)));
        let failed = receive(&[first, b"Xthe disk is full".to_vec()]).await.unwrap_err();
        assert_eq!(failed.to_string(), "the other node could not make a copy: the disk is full");
    }
}
