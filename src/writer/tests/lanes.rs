//! A command on a key waits for the running operation, not for those in the queue, and not for a long validation.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use super::*;
use crate::keys::{KeyChange, KeyId, Keyring};
use crate::wake::WakeSlot;
use crate::writer::queue::{FAST_RUN_MAX, Job, Lanes, Next};
use crate::writer::{MEANWHILE_EVERY, NewsReader, Whole, WriterHandle, spawn};

/// Far beyond what any wait here takes, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn is_revoked(keyring: &Keyring, id: &KeyId) -> bool {
    keyring.get(id).unwrap().record().revoked.is_some()
}

/// News that signals when it is first read, and then blocks until it is released.
fn blocking_news(reached: mpsc::Sender<()>, release: mpsc::Receiver<()>) -> NewsReader {
    NewsReader(Box::new(std::iter::from_fn(move || {
        reached.send(()).unwrap();
        release.recv().unwrap();
        None
    })))
}

/// Waits until a condition holds, which is checked whenever the other tasks have run.
async fn until(mut holds: impl FnMut() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap();
}

/// Waits until as many operations as given are queued.
async fn until_queued(handle: &WriterHandle, other: usize, fast: usize) {
    until(|| handle.queue_len() >= other && handle.fast_queue_len() >= fast).await;
    assert_eq!((handle.queue_len(), handle.fast_queue_len()), (other, fast));
}

#[tokio::test]
async fn revocation_overtakes_the_ingest_batches_in_the_queue() {
    const BATCHES: usize = 50;
    let (_directory, mut writer) = open();
    let keyring = Arc::clone(writer.keyring());
    let id = writer.issue_key(new_key("k"), "test").unwrap().key.id().clone();
    let (handle, stopped) = spawn(writer).unwrap();

    // The writer is at a known point: in the middle of an ingest.
    let ((reached, is_reached), (release, gate)) = (mpsc::channel(), mpsc::channel());
    let first = tokio::spawn({
        let handle = handle.clone();
        async move { handle.ingest_whole(WORLD, blocking_news(reached, gate), Whole::Taken).await }
    });
    until(|| is_reached.try_recv().is_ok()).await;
    // Each batch notes whether it is taken while the key is still in force.
    let before_revocation = Arc::new(AtomicUsize::new(0));
    let mut batches = Vec::new();
    for _ in 0..BATCHES {
        let (handle, keyring) = (handle.clone(), Arc::clone(&keyring));
        let (id, before_revocation) = (id.clone(), Arc::clone(&before_revocation));
        let news = NewsReader(Box::new(std::iter::from_fn(move || {
            before_revocation.fetch_add(usize::from(!is_revoked(&keyring, &id)), Ordering::SeqCst);
            None
        })));
        batches.push(tokio::spawn(async move { handle.ingest_whole(WORLD, news, Whole::Taken).await }));
    }
    until_queued(&handle, BATCHES, 0).await;
    let revocation = tokio::spawn({
        let (handle, id) = (handle.clone(), id.clone());
        async move { handle.revoke_key(id.as_str(), "test").await }
    });
    until_queued(&handle, BATCHES, 1).await;
    release.send(()).unwrap();
    revocation.await.unwrap().unwrap();
    assert!(is_revoked(&keyring, &id));
    first.await.unwrap().unwrap();
    for batch in batches {
        batch.await.unwrap().unwrap();
    }
    assert_eq!(before_revocation.load(Ordering::SeqCst), 0, "batches of {BATCHES} that were taken first");
    drop(handle);
    stopped.join().unwrap();
}

#[tokio::test]
async fn revocation_takes_effect_before_a_strict_ingest_has_read_its_lines() {
    let (_directory, mut writer) = open();
    let (keyring, sport) = (Arc::clone(writer.keyring()), tennis(&writer));
    let id = writer.issue_key(new_key("k"), "test").unwrap().key.id().clone();
    let (handle, stopped) = spawn(writer).unwrap();
    let ((reached, is_reached), (release, gate)) = (mpsc::channel::<()>(), mpsc::channel::<()>());
    let revoked_after = Arc::new(AtomicUsize::new(usize::MAX));
    let lines = 3 * MEANWHILE_EVERY;
    let news = (0..lines).map({
        let (keyring, id, revoked_after) = (Arc::clone(&keyring), id.clone(), Arc::clone(&revoked_after));
        move |line| -> io::Result<News> {
            if line == 0 {
                reached.send(()).unwrap();
                gate.recv().unwrap();
            }
            if is_revoked(&keyring, &id) {
                revoked_after.fetch_min(line, Ordering::SeqCst);
            }
            Ok(event(sport, &format!("event{line}")))
        }
    });
    let ingest = tokio::spawn({
        let handle = handle.clone();
        async move { handle.ingest_whole(WORLD, NewsReader(Box::new(news)), Whole::Taken).await }
    });
    until(|| is_reached.try_recv().is_ok()).await;
    let revocation = tokio::spawn({
        let (handle, id) = (handle.clone(), id.clone());
        async move { handle.revoke_key(id.as_str(), "test").await }
    });
    until_queued(&handle, 0, 1).await;
    release.send(()).unwrap();
    revocation.await.unwrap().unwrap();
    let report = ingest.await.unwrap().unwrap();
    assert_eq!((report.accepted(), report.rejected()), (lines as u64, 0));
    assert_eq!(revoked_after.load(Ordering::SeqCst), MEANWHILE_EVERY);
    drop(handle);
    stopped.join().unwrap();
}

#[tokio::test]
async fn commands_run_in_order() {
    let (_directory, mut writer) = open();
    let id = writer.issue_key(new_key("k"), "test").unwrap().key.id().clone();
    let (handle, stopped) = spawn(writer).unwrap();
    let ((reached, is_reached), (release, gate)) = (mpsc::channel(), mpsc::channel());
    let first = tokio::spawn({
        let handle = handle.clone();
        async move { handle.ingest_whole(WORLD, blocking_news(reached, gate), Whole::Taken).await }
    });
    until(|| is_reached.try_recv().is_ok()).await;
    let mut commands = Vec::new();
    for number in 0..40 {
        let (sender, id) = (handle.clone(), id.clone());
        commands.push(tokio::spawn(async move {
            let change = KeyChange { name: Some("changed".into()), ..KeyChange::default() };
            match number % 3 {
                0 => drop(sender.rotate_key(id.as_str(), number, "test").await.unwrap()),
                1 => drop(sender.set_key(id.as_str(), change, &format!("{number}")).await.unwrap()),
                _ => sender.audit("test", "note", &format!("{number}"), String::new()).await.unwrap(),
            }
        }));
        until_queued(&handle, 0, commands.len()).await;
    }
    release.send(()).unwrap();
    for command in commands {
        command.await.unwrap();
    }
    first.await.unwrap().unwrap();
    let log = handle.audit_tail(40).await.unwrap();
    for (number, entry) in log.iter().enumerate() {
        let note = &entry.note;
        let done = match number % 3 {
            0 => *note.detail == format!("grace {number} s"),
            1 => *note.who == number.to_string(),
            _ => *note.subject == number.to_string(),
        };
        assert!(done, "{number}: {note:?}");
    }
    assert_eq!(log.len(), 40);
    drop(handle);
    stopped.join().unwrap();
}

#[tokio::test]
async fn endless_commands_do_not_stop_the_feeds() {
    let (fast, other, mut lanes) = Lanes::open();
    let command = || Job(Box::new(|_, _| {}));
    other.try_send(command()).unwrap();
    for served in 0.. {
        let _ = fast.try_send(command());
        match lanes.next().await.unwrap() {
            Next::Fast(_) => assert!(served < FAST_RUN_MAX, "{served} commands and no batch"),
            Next::Other(_) => break,
        }
    }
    // Without anybody in the other lane, commands go on.
    for _ in 0..3 * FAST_RUN_MAX {
        fast.try_send(command()).unwrap();
        assert!(matches!(lanes.next().await, Some(Next::Fast(_))));
    }
    drop((fast, other));
    while let Some(next) = lanes.next().await {
        assert!(matches!(next, Next::Fast(_)), "what was queued is done before the end");
    }
}

#[tokio::test]
async fn end_of_the_writer_wakes_everybody_who_follows() {
    let (_directory, writer) = open();
    let (boards, slot) = (Arc::clone(&writer.boards), Arc::new(WakeSlot::default()));
    boards.feed(WORLD).add_follower(&slot);
    let (handle, stopped) = spawn(writer).unwrap();
    slot.begin();
    drop(handle);
    stopped.end().reached().await;
    assert!(!boards.condition().may_serve(|| 0) && slot.is_pending());
}
