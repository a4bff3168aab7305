//! `oddsbox audit`: who changed what, and when.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use super::flags::{self, Since};
use super::invocation::{Invocation, block_on};
use super::output;
use crate::admin::{Access, AdminAccess, AuditAnswer, Command};
use crate::clock::Clock;

/// How often `--follow` polls.
const FOLLOW_EVERY: Duration = Duration::from_secs(1);
/// The number of entries fetched at once.
const PAGE: usize = 1000;

/// Show who issued, rotated, revoked or changed what, and when
///
/// Safe on a running server: it only reads. With --follow it keeps printing new entries; while no server runs, it waits
/// for one.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  oddsbox audit --since 2h
  oddsbox audit --since 2026-11-14T18:00:00Z --json
  oddsbox audit --limit 20 --follow")]
pub(super) struct AuditArgs {
    /// Keep printing new entries
    #[arg(long, conflicts_with = "json")]
    follow: bool,
    /// Only entries since then: a duration before now such as 2h, a UTC date, or a time such as 2026-11-14T18:00:00Z
    #[arg(long, value_name = "DURATION|TIME", value_parser = flags::since)]
    since: Option<Since>,
    /// Only the newest N entries
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
}

impl AuditArgs {
    pub(super) fn run(self, invocation: &Invocation) -> anyhow::Result<ExitCode> {
        block_on(async {
            let backend = invocation.backend(Access::Existing).await?;
            let entries = self.entries(&backend).await;
            backend.close().await?;
            let entries = entries?;
            invocation.output.answer(&entries, |output| output.table(&HEADER, &rows(&entries)))?;
            if self.follow { follow(invocation, entries.last().map(|entry| entry.sequence)).await } else { Ok(()) }
        })?;
        Ok(ExitCode::SUCCESS)
    }

    /// The entries that were asked for, oldest first.
    async fn entries(&self, backend: &AdminAccess) -> anyhow::Result<Vec<AuditAnswer>> {
        let limit = self.limit.and_then(|limit| usize::try_from(limit).ok());
        let mut entries = match limit {
            Some(limit @ ..=PAGE) => backend.ask(Command::AuditTail { limit: Some(limit) }).await?,
            _ => after(backend, None).await?,
        };
        if let Some(since) = self.since {
            // Times of this form are ordered as their texts are.
            let since = since.timestamp(Clock::system().now().timestamp()).to_string();
            entries.retain(|entry| entry.at >= since);
        }
        if let Some(limit) = limit {
            entries.drain(..entries.len().saturating_sub(limit));
        }
        Ok(entries)
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
