//! Commands about the file as a whole: copying it, checking it.
//!
//! Both read a snapshot beside the writer, so that requests and changes go on. The copy is written by the process that has
//! the file open (the server if one runs), with its permissions: the snapshot then never waits for a client, and only that
//! user and root can reach the admin interface.

use std::path::{Path, PathBuf};
use std::time::Instant;

use super::super::context::Context;
use super::super::protocol::{
    Answer, BackupAnswer, BackupOrder, CheckAnswer, CheckOptions, CheckProblem, DroppedAnswer, Failure, FailureCode,
    ProgressAnswer,
};
use crate::keys::KeyId;
use crate::store::{CheckReport, CopyError, CopyReport, Existing, Integrity, StoreError};
use crate::writer::{SnapshotJob, SnapshotJobError, WriteError};

pub(super) async fn backup(order: BackupOrder, context: &Context, who: &str) -> Result<Answer, Failure> {
    if !order.file.is_absolute() {
        return Err(Failure::bad_request("a backup goes to an absolute path"));
    }
    let existing = if order.force { Existing::Replace } else { Existing::Refuse };
    let began = Instant::now();
    let copied = copy(order.file.clone(), existing, context).await?;
    let detail = format!("{} records, {} bytes", copied.rows, copied.bytes);
    match context.writer.audit(who, "backup", &order.file.display().to_string(), detail).await {
        // The audit log is that of all nodes, and this one does not run.
        Err(WriteError::Member) if context.server.is_none() => {}
        noted => noted?,
    }
    Ok(Answer::Backup(BackupAnswer {
        file: order.file,
        bytes: copied.bytes,
        records: copied.rows,
        seconds: began.elapsed().as_secs_f64(),
        damaged: copied.damaged,
    }))
}

async fn copy(path: PathBuf, existing: Existing, context: &Context) -> Result<CopyReport, Failure> {
    // A copy must replace neither the file itself nor anything in the directory of the socket.
    let is_ours = |name: PathBuf| std::fs::canonicalize(name).ok().is_some_and(|ours| is_inside(&path, &ours));
    if is_ours(context.data.file()) || is_ours(context.data.admin()) {
        return Err(Failure::new(FailureCode::Refused, "that is a file of the server itself: name another one"));
    }
    let SnapshotJob { snapshot, guard } = context.writer.start_snapshot_job("backup").await?;
    let copied = blocking(move || snapshot.copy_to(&path, existing)).await?;
    drop(guard);
    copied.map_err(|error| match error {
        CopyError::Exists(_) => Failure::new(FailureCode::Refused, error.to_string()),
        CopyError::Source(StoreError::Cancelled) => unavailable("the copy was cancelled: try again"),
        error => unavailable(error),
    })
}

fn is_inside(path: &Path, ours: &Path) -> bool {
    let parent = path.parent().and_then(|parent| std::fs::canonicalize(parent).ok());
    let found = parent.zip(path.file_name()).map(|(parent, name)| parent.join(name));
    found.is_some_and(|found| found.starts_with(ours))
}

pub(super) fn progress(context: &Context) -> Answer {
    let progress = context.writer.snapshot_job_progress();
    Answer::Progress(ProgressAnswer {
        under_way: progress.map(|progress| progress.what.to_owned()),
        rows_done: progress.map_or(0, |progress| progress.rows_done),
        rows_total: progress.map_or(0, |progress| progress.rows_total),
    })
}

/// Checks the file. Its pages are checked too if no server runs, or if that was requested.
pub(super) async fn check(options: CheckOptions, context: &Context, who: &str) -> Result<Answer, Failure> {
    if options.drop_damaged && context.server.is_some() {
        let message = "a server runs, and serves what it has loaded: stop it, then drop what is damaged";
        return Err(Failure::new(FailureCode::Refused, message));
    }
    let lost_usage = context.writer.lost_usage().await?;
    let report = if options.pages || context.server.is_none() {
        context.writer.check().await?
    } else {
        let SnapshotJob { snapshot, guard } = context.writer.start_snapshot_job("check").await?;
        let checked = blocking(move || snapshot.check()).await?;
        drop(guard);
        checked.map_err(WriteError::from)?
    };
    let mut answer = answer(&report, &lost_usage);
    let is_broken = matches!(report.integrity, Integrity::Broken(_));
    if options.drop_damaged && (is_broken || !report.problems.is_empty()) {
        answer.dropped = Some(drop_damaged(&report, context, who).await?);
        answer.advice = None;
    }
    Ok(Answer::Check(answer))
}

async fn drop_damaged(report: &CheckReport, context: &Context, who: &str) -> Result<DroppedAnswer, Failure> {
    let refused = |message: String| Err(Failure::new(FailureCode::Refused, message));
    if !report.can_be_mended() {
        return refused("the file has a page that cannot be read: restore a backup".to_owned());
    }
    if matches!(report.integrity, Integrity::Broken(_)) {
        let copy = copy_beside("salvaged", context).await?.display().to_string();
        return refused(format!(
            "the file is broken beyond single records: restore a backup. For want of one, `oddsbox restore --force {copy}` \
             puts in its place what could be read, some of it perhaps older than the last change"
        ));
    }
    let copy = copy_beside("before-drop", context).await?;
    let rows = context.writer.drop_damaged(who).await?;
    Ok(DroppedAnswer { rows, copy })
}

async fn copy_beside(what: &str, context: &Context) -> Result<PathBuf, Failure> {
    let time = context.clock.now().timestamp().to_string().replace([':', '-'], "");
    let mut name = context.data.file().into_os_string();
    name.push(format!(".{what}-{time}"));
    let named = std::path::absolute(name).map_err(unavailable)?;
    copy(named.clone(), Existing::Refuse, context).await?;
    Ok(named)
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work).await.map_err(unavailable)
}

fn unavailable(error: impl ToString) -> Failure {
    Failure::new(FailureCode::Unavailable, error.to_string())
}

fn answer(report: &CheckReport, lost_usage: &[KeyId]) -> CheckAnswer {
    let (integrity, integrity_detail) = match &report.integrity {
        Integrity::Sound => ("sound", None),
        Integrity::Repaired => ("repaired", None),
        Integrity::Broken(detail) => ("broken", Some(detail.clone())),
        Integrity::Unchecked => ("unchecked", None),
    };
    let problem = |damage: &crate::store::Damage| CheckProblem {
        table: damage.table.to_owned(),
        key: damage.key.clone(),
        reason: damage.reason.clone(),
    };
    let lost = |key: &KeyId| CheckProblem {
        table: "usage".to_owned(),
        key: key.to_string(),
        reason: format!(
            "its counters could not be read, so it counts as spent: `oddsbox keys set {key} --reset-usage` ends that"
        ),
    };
    CheckAnswer {
        clean: report.is_clean() && lost_usage.is_empty(),
        integrity: integrity.to_owned(),
        integrity_detail,
        rows: report.rows.iter().map(|(table, rows)| ((*table).to_owned(), *rows)).collect(),
        problem_count: report.problems.count() + lost_usage.len() as u64,
        problems: lost_usage.iter().map(lost).chain(report.problems.listed().iter().map(problem)).collect(),
        advice: advice(report, lost_usage).map(str::to_owned),
        dropped: None,
    }
}

fn advice(report: &CheckReport, lost_usage: &[KeyId]) -> Option<&'static str> {
    match report.integrity {
        Integrity::Broken(_) => Some(
            "the file is broken: stop the server and restore a backup; for want of one, `oddsbox check --drop-damaged` \
             saves what can be read",
        ),
        _ if !report.can_be_mended() => Some("the file has a page that cannot be read: restore a backup"),
        _ if !report.problems.is_empty() => Some(
            "the rows listed are not served: send their data again, or restore a backup; with the server stopped, \
             `oddsbox check --drop-damaged` takes them out",
        ),
        _ if !lost_usage.is_empty() => Some("counters of keys were lost: reset them, or let their day and month end"),
        Integrity::Repaired => Some("the file was repaired: check it again, and look after its disk"),
        Integrity::Sound | Integrity::Unchecked => None,
    }
}

impl From<SnapshotJobError> for Failure {
    fn from(error: SnapshotJobError) -> Self {
        match error {
            SnapshotJobError::Busy(_) => Failure::new(FailureCode::Refused, error.to_string()),
            SnapshotJobError::Write(error) => error.into(),
        }
    }
}
