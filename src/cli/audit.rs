//! `oddsbox audit`: who changed what, and when.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use super::invocation::{Invocation, block_on};
use super::output;
use crate::admin::{Access, AdminAccess, AuditAnswer, Command};

/// How often `--follow` polls.
const FOLLOW_EVERY: Duration = Duration::from_secs(1);
/// The number of entries fetched at once.
const PAGE: usize = 1000;

/// Show who issued, rotated, revoked or changed what, and when
///
/// Safe on a running server: it only reads. With --follow it keeps printing new entries; while no server runs, it waits
/// for one.
#[derive(Debug, Args)]
pub(super) struct AuditArgs {
    /// Keep printing new entries
    #[arg(long, conflicts_with = "json")]
    follow: bool,
}

impl AuditArgs {
    pub(super) fn run(self, invocation: &Invocation) -> anyhow::Result<ExitCode> {
        block_on(async {
            let backend = invocation.backend(Access::Existing).await?;
            let entries = after(&backend, None).await;
            backend.close().await?;
            let entries = entries?;
            invocation.output.answer(&entries, |output| output.table(&HEADER, &rows(&entries)))?;
            if self.follow { follow(invocation, entries.last().map(|entry| entry.sequence)).await } else { Ok(()) }
        })?;
        Ok(ExitCode::SUCCESS)
    }
}

/// All entries after `last`, fetched page by page.
async fn after(backend: &AdminAccess, last: Option<u64>) -> anyhow::Result<Vec<AuditAnswer>> {
    let mut entries: Vec<AuditAnswer> = Vec::new();
    loop {
        let after = entries.last().map(|entry| entry.sequence).or(last);
        let page: Vec<AuditAnswer> = backend.ask(Command::Audit { after, limit: Some(PAGE) }).await?;
        if page.is_empty() {
            return Ok(entries);
        }
        entries.extend(page);
    }
}

/// Polls the server only: opening the file every second would keep the next server from starting.
async fn follow(invocation: &Invocation, mut last: Option<u64>) -> anyhow::Result<()> {
    loop {
        tokio::time::sleep(FOLLOW_EVERY).await;
        let Some(server) = AdminAccess::server(&invocation.data).await? else { continue };
        // If the server stops meanwhile, wait for the next one.
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
