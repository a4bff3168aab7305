//! The failure that this prevents: the disk fills up, and the service stops answering, or accepts no changes until a
//! restart although there is space again.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command as Process;
use std::time::Instant;

use oddsbox::admin::{AdminAccess, Command, StatusAnswer};

use crate::process::client::get;
use crate::process::command::{Directory, issue, revoke, sandbox, until};

/// A file system of 3 MB on a directory, unmounted on drop.
struct Small<'d>(&'d Path);

impl<'d> Small<'d> {
    /// `None` if mounting is not permitted.
    fn mount(on: &'d Path) -> Option<Small<'d>> {
        let mounted = Process::new("mount").args(["-t", "tmpfs", "-o", "size=3m", "tmpfs"]).arg(on).output();
        mounted.is_ok_and(|mounted| mounted.status.success()).then_some(Small(on))
    }

    /// Uses up all free space.
    fn fill(&self) -> PathBuf {
        let path = self.0.join("filler");
        let mut filler = File::options().create(true).append(true).open(&path).expect("a file");
        for size in [65_536, 4_096, 1] {
            let bytes = vec![7_u8; size];
            while filler.write_all(&bytes).is_ok() {}
        }
        path
    }
}

impl Drop for Small<'_> {
    fn drop(&mut self) {
        let _ = Process::new("umount").arg("-l").arg(self.0).status();
    }
}

async fn is_writable(access: &AdminAccess) -> bool {
    access.ask::<StatusAnswer>(Command::Status).await.expect("a status").writable
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn full_disk_rejects_changes_only_and_recovers() {
    let directory = Directory::new();
    let Some(small) = Small::mount(directory.path()) else {
        println!("skipped: mounting a small file system is not allowed here");
        return;
    };
    let server = directory.serve_with(&[("ODDSBOX_LOG", "error")]);
    let access = directory.access().await;
    let key = issue(&access, sandbox(100_000)).await.expect("a key");
    let mut kept = vec![issue(&access, sandbox(1_000)).await.expect("a key")];

    // Requests use stored leases: a key that was never used has none, and would get 503.
    assert_eq!(get(server.address(), "/v1/sports", &key.secret).await.status, 200);
    let filler = small.fill();
    // Free pages in the file are used first.
    let mut refused = None;
    for _ in 0..5_000 {
        match issue(&access, sandbox(1_000)).await {
            Ok(key) => kept.push(key),
            Err(error) => {
                refused = Some(error.to_string());
                break;
            }
        }
    }
    let refused = refused.expect("a full disk");
    assert!(refused.contains("the disk is full") && refused.contains("nothing was changed"), "{refused}");
    // In any case prices are served, and the status reports the failure. The file itself may have a little free space,
    // so it is filled until none is left.
    until("the status says so", async || {
        small.fill();
        for path in ["/v1/sports", "/v1/sports/tennis/odds", "/v1/books"] {
            assert_eq!(get(server.address(), path, &key.secret).await.status, 200, "{path}");
        }
        kept.extend(issue(&access, sandbox(1_000)).await.ok());
        let answer = get(server.address(), "/v1/status", &key.secret).await;
        answer.status == 200 && answer.json()["status"] == "degraded" && !is_writable(&access).await
    })
    .await;

    std::fs::remove_file(filler).expect("the filler goes");
    let began = Instant::now();
    until("it heals by itself", async || is_writable(&access).await).await;
    println!("writes went on {:?} after there was room again; {} keys were issued before", began.elapsed(), kept.len());
    let last = kept.last().expect("a key");
    revoke(&access, &last.id).await.expect("a revocation");
    assert_eq!(get(server.address(), "/v1/sports", &last.secret).await.status, 401);
    server.kill();
    let server = directory.serve_with(&[("ODDSBOX_LOG", "error")]);
    for key in &kept[..kept.len() - 1] {
        assert_eq!(get(server.address(), "/v1/status", &key.secret).await.status, 200);
    }
    server.stop();
    assert_eq!(directory.json("check")["clean"], true);
}
