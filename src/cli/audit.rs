//! `oddsbox audit`: who changed what, and when.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use super::output;
use super::session::{Session, block_on};
use crate::admin::{Access, AdminAccess, AuditAnswer, Command};

/// How often a follower looks.
const FOLLOW_EVERY: Duration = Duration::from_secs(1);
/// As many entries as are fetched at once.
const PAGE: usize = 1000;

/// Show who issued, rotated, revoked or changed what, and when
///
/// Safe on a running server: it only looks. With --follow it goes on with whatever the server writes from now on; while
/// no server runs it waits for one.
#[derive(Debug, Args)]
pub(super) struct Audit {
    /// Go on showing entries as they come
    #[arg(long, conflicts_with = "json")]
    follow: bool,
}

impl Audit {
    pub(super) fn run(self, session: &Session) -> anyhow::Result<ExitCode> {
        block_on(async {
            let door = session.door(Access::Existing).await?;
            let entries = after(&door, None).await;
            door.close().await?;
            let entries = entries?;
            session.output.answer(&entries, |output| output.table(&HEADER, &rows(&entries)))?;
            if self.follow { follow(session, entries.last().map(|entry| entry.sequence)).await } else { Ok(()) }
        })?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Every entry behind one, page by page.
async fn after(door: &AdminAccess, last: Option<u64>) -> anyhow::Result<Vec<AuditAnswer>> {
    let mut entries: Vec<AuditAnswer> = Vec::new();
    loop {
        let after = entries.last().map(|entry| entry.sequence).or(last);
        let page: Vec<AuditAnswer> = door.ask(Command::Audit { after, limit: Some(PAGE) }).await?;
        if page.is_empty() {
            return Ok(entries);
        }
        entries.extend(page);
    }
}

/// Asks the server only: a file that is opened every second would keep the next server out.
async fn follow(session: &Session, mut last: Option<u64>) -> anyhow::Result<()> {
    loop {
        tokio::time::sleep(FOLLOW_EVERY).await;
        let Some(server) = AdminAccess::server(&session.data).await? else { continue };
        // A server that stops in the middle of it is waited for like one that is not there.
        let Ok(entries) = after(&server, last).await else { continue };
        last = entries.last().map(|entry| entry.sequence).or(last);
        for row in rows(&entries) {
            output::text(&(row.join("\t") + "\n"))?;
        }
    }
}

const HEADER: [&str; 6] = ["SEQUENCE", "AT", "WHO", "ACTION", "SUBJECT", "DETAIL"];

fn rows(entries: &[AuditAnswer]) -> Vec<Vec<String>> {
    let row = |entry: &AuditAnswer| {
        let AuditAnswer { sequence, at, who, action, subject, detail } = entry.clone();
        vec![sequence.to_string(), at, who, action, subject, detail]
    };
    entries.iter().map(row).collect()
}
