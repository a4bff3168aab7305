//! `oddsbox backup` and `oddsbox restore`: the whole file, out and back.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::output;
use super::session::{Session, block_on};
use crate::admin::{self, Access, BackupAnswer, BackupOrder, Carried, Command, RestoreAnswer, RestoreOrder, Setup};

/// Write a consistent copy of everything to a file
///
/// Safe on a running server: requests and changes go on while it runs. The server writes the file itself, as its own
/// user and where its service may write; without a server this command does. The copy is read back before it gets its
/// name. It holds hashes of keys, never a secret.
#[derive(Debug, Args)]
pub(super) struct Backup {
    /// The file to write
    file: PathBuf,
    /// Replace the file if it is there
    #[arg(long)]
    force: bool,
}

impl Backup {
    pub(super) fn run(self, session: &Session) -> anyhow::Result<ExitCode> {
        let file = std::path::absolute(&self.file)?;
        let order = BackupOrder { file: file.clone(), force: self.force };
        let answer: BackupAnswer = session.ask_watching(Access::Existing, Command::Backup(order))?;
        if !file.exists() {
            anyhow::bail!(
                "the server wrote {} where this command cannot see it (its service has a private /tmp, perhaps): name a \
                 file in its data directory",
                file.display()
            );
        }
        session.output.answer(&answer, |_| shown(&answer))?;
        if answer.damaged > 0 {
            let told =
                format!("{} records were damaged before and are so in the copy: run `oddsbox check`", answer.damaged);
            output::complain("warning", &told);
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn shown(answer: &BackupAnswer) -> String {
    let BackupAnswer { file, bytes, records, seconds, .. } = answer;
    format!(
        "{} holds {records} records in {bytes} bytes, read back and compared, after {seconds:.1} s.\n",
        file.display()
    )
}

/// Put a backup in the place of the data
///
/// Refuses while a server runs. The file that is replaced is kept beside it. What must not come back is carried over
/// from it: revocations, rotations, earlier expiries and what keys have used.
#[derive(Debug, Args)]
pub(super) struct Restore {
    /// A file that `oddsbox backup` wrote
    file: PathBuf,
    /// Take the backup as it is: keys revoked since then work again, and quotas used since then are handed out again
    #[arg(long)]
    exact: bool,
    /// Restore a backup that has damaged records, without them
    #[arg(long)]
    force: bool,
}

impl Restore {
    pub(super) fn run(self, session: &Session) -> anyhow::Result<ExitCode> {
        let order = RestoreOrder { file: std::path::absolute(&self.file)?, exact: self.exact, force: self.force };
        let setup = Setup::of(&session.settings()?.read()?)?;
        let answer = block_on(async { Ok(admin::restore(&session.data, order, setup).await?) })?;
        session.output.answer(&answer, |_| restored(&answer))?;
        if answer.replaced_empty && !answer.exact {
            let lost = "keys revoked or rotated and quotas used since the backup could not be carried over, because the \
                        file that it replaces is empty: revoke again whatever must not come back";
            output::complain("warning", lost);
        }
        if answer.damaged > 0 {
            output::complain("warning", &format!("{} damaged records were left out", answer.damaged));
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn restored(answer: &RestoreAnswer) -> String {
    let mut text = format!("{} is in place, {} records.\n", answer.restored.display(), answer.records);
    if let Some(kept) = &answer.kept_as {
        let _ = writeln!(text, "What it replaces is kept as {}.", kept.display());
    }
    let Carried { revoked, unreadable, rotated, expiries, usage, gone, tokens, feeders } = &answer.carried;
    let told = [
        ("Still revoked", revoked),
        ("Revoked, as they could not be read there", unreadable),
        ("Still with their newer secret", rotated),
        ("Still with their earlier expiry", expiries),
        ("With what they have used since", usage),
        ("Issued since, and gone", gone),
        ("Feeders whose tokens are still revoked or replaced", tokens),
        ("Feeders with what they have added since", feeders),
    ];
    for (what, keys) in told.into_iter().filter(|(_, keys)| !keys.is_empty()) {
        let _ = writeln!(text, "{what}: {}.", keys.join(", "));
    }
    text
}
