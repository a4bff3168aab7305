//! Doing what a command asks. It does not matter where the command came from: a server and a command that opened the
//! file itself both end up here.

mod cluster;
mod console;
pub(super) mod derived;
mod feeds;
mod file;
mod forget;
pub(super) mod history;
mod keys;
mod status;

pub(super) use status::key_counts;

use super::context::Context;
use super::protocol::{
    Answer, AuditAnswer, Command, Failure, FailureCode, MaintenanceAnswer, MaintenanceSpan, ReadyAnswer,
};
use crate::model::{Maintenance, Timestamp};
use crate::store::AuditEntry;
use crate::writer::WriteError;

/// As many entries of the audit log as one answer carries.
const AUDIT_MAX: usize = 1000;

/// Does what a command asks, on behalf of `who`. What it says is done is durable and in force.
pub async fn execute(command: Command, context: &Context, who: &str) -> Result<Answer, Failure> {
    match command {
        Command::KeysIssue(new) => keys::issue(new, context, who).await,
        Command::KeysList => Ok(keys::list(context)),
        Command::KeysShow { id } => keys::show(&id, context),
        Command::KeysRotate { id, grace_s } => keys::rotate(&id, grace_s, context, who).await,
        Command::KeysRotateUndo { id } => keys::undo_rotation(&id, context, who).await,
        Command::KeysRevoke { id } => keys::revoke(&id, context, who).await,
        Command::KeysSet(change) => keys::set(change, context, who).await,
        Command::FeedsToken { name, world } => feeds::issue(&name, world, context, who).await,
        Command::FeedsTokenRotate { name, grace_s } => feeds::rotate(&name, grace_s, context, who).await,
        Command::FeedsTokenRevoke { name } => feeds::revoke(&name, context, who).await,
        Command::Feeds { world, stale } => Ok(feeds::feeds(world, stale, context)),
        Command::Audit { after, limit } => audit(after, limit, context).await,
        Command::AuditTail { limit } => audit_tail(limit, context).await,
        Command::Derived(order) => derived::derived(order, context).await,
        Command::History(order) => history::history(order, context).await,
        Command::HistoryForget(order) => forget::forget(order, context, who).await,
        Command::Status => status::status(context).await,
        Command::MaintenanceOn { for_s } => maintenance_on(for_s, context, who).await,
        Command::MaintenanceOff => maintenance_off(context, who).await,
        Command::Check(options) => file::check(options, context, who).await,
        Command::Backup(order) => file::backup(order, context, who).await,
        Command::Progress => Ok(file::progress(context)),
        Command::Ready => Ok(Answer::Ready(ready(context))),
        Command::Cluster => cluster::cluster(context).await,
        Command::ConsoleLink => console::link(context, who),
        Command::ConsoleSignOut => console::sign_out(context, who).await,
    }
}

/// Whether a server answers requests.
pub(super) fn ready(context: &Context) -> ReadyAnswer {
    ReadyAnswer { ready: context.server.as_ref().is_some_and(|server| server.is_ready()) }
}

async fn audit(after: Option<u64>, limit: Option<usize>, context: &Context) -> Result<Answer, Failure> {
    let entries = context.writer.read_audit(after, audit_limit(limit)?).await?;
    Ok(Answer::Audit(entries.into_iter().map(AuditAnswer::from).collect()))
}

async fn audit_tail(limit: Option<usize>, context: &Context) -> Result<Answer, Failure> {
    let entries = context.writer.audit_tail(audit_limit(limit)?).await?;
    Ok(Answer::Audit(entries.into_iter().map(AuditAnswer::from).collect()))
}

fn audit_limit(limit: Option<usize>) -> Result<usize, Failure> {
    let limit = limit.unwrap_or(AUDIT_MAX);
    if !(1..=AUDIT_MAX).contains(&limit) {
        return Err(Failure::bad_request(format!("limit takes a whole number from 1 to {AUDIT_MAX}")));
    }
    Ok(limit)
}

impl From<AuditEntry> for AuditAnswer {
    fn from(AuditEntry { sequence, note }: AuditEntry) -> Self {
        AuditAnswer {
            sequence,
            at: note.at.to_string(),
            who: note.who.into(),
            action: note.action.into(),
            subject: note.subject.into(),
            detail: note.detail.into(),
        }
    }
}

/// Closes the service. One that is closed already stays closed since it was, and gets the new end.
async fn maintenance_on(for_s: Option<u32>, context: &Context, who: &str) -> Result<Answer, Failure> {
    if for_s == Some(0) {
        return Err(Failure::bad_request("a maintenance of 0 s is none: give 1 s or more, or no time at all"));
    }
    let now = context.clock.now();
    let second = now.timestamp();
    let since = context.boards.condition().maintenance(second).map_or(second, |maintenance| maintenance.since);
    let maintenance = Maintenance { since, until: for_s.map(|seconds| now.in_seconds(seconds)) };
    context.writer.set_maintenance(Some(maintenance), who).await?;
    Ok(Answer::Maintenance(MaintenanceAnswer { maintenance: Some(span(maintenance)) }))
}

async fn maintenance_off(context: &Context, who: &str) -> Result<Answer, Failure> {
    context.writer.set_maintenance(None, who).await?;
    Ok(Answer::Maintenance(MaintenanceAnswer { maintenance: None }))
}

fn span(maintenance: Maintenance) -> MaintenanceSpan {
    MaintenanceSpan {
        since: maintenance.since.to_string(),
        until: maintenance.until.as_ref().map(Timestamp::to_string),
    }
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Self {
        Failure::new(FailureCode::Unavailable, error.to_string())
    }
}
