//! `oddsbox backup` and `oddsbox restore`: copies of the whole file.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::invocation::{Invocation, block_on};
use crate::admin::{self, Access, BackupAnswer, BackupOrder, Carried, Command, RestoreAnswer, RestoreOrder, Setup};

/// Write a consistent copy of all data to a file
///
/// Safe on a running server: requests and changes continue meanwhile. A running server writes the file itself, as its
/// own user and with its permissions. The copy is read back and verified before it gets its name. It contains hashes of
/// keys, never a secret.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  oddsbox backup /var/backups/oddsbox.redb
  oddsbox backup --force /var/backups/oddsbox.redb --json")]
pub(super) struct BackupArgs {
    /// File to write
    file: PathBuf,
    /// Replace the file if it exists
    #[arg(long)]
    force: bool,
}

impl BackupArgs {
    pub(super) fn run(self, invocation: &Invocation) -> anyhow::Result<ExitCode> {
        let file = std::path::absolute(&self.file)?;
        let order = BackupOrder { file: file.clone(), force: self.force };
        let answer: BackupAnswer = invocation.ask_with_progress(Access::Existing, Command::Backup(order))?;
        if !file.exists() {
            anyhow::bail!(
                "the server wrote {} where this command cannot see it (perhaps its service has a private /tmp): name a \
                 file in its data directory",
                file.display()
            );
        }
        invocation.output.answer(&answer, |_| shown(&answer))?;
        if answer.damaged > 0 {
            let message =
                format!("{} records are damaged, in the data and in the copy: run `oddsbox check`", answer.damaged);
            invocation.output.diagnostic("warning", &message);
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn shown(answer: &BackupAnswer) -> String {
    let BackupAnswer { file, bytes, records, seconds, .. } = answer;
    format!("Wrote {records} records to {} ({bytes} bytes) and verified them in {seconds:.1} s.\n", file.display())
}

/// Replace the data with a backup
///
/// Refuses while a server runs. The replaced file is kept next to the new one. Revocations, rotations, earlier expiries
/// and usage of keys are carried over from it, so that a restore does not undo them.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  oddsbox restore /var/backups/oddsbox.redb
  oddsbox restore --data ./copy /var/backups/oddsbox.redb")]
pub(super) struct RestoreArgs {
    /// File written by `oddsbox backup`
    file: PathBuf,
    /// Restore the backup as it is: keys revoked since then work again, and quotas used since then are available again
    #[arg(long)]
    exact: bool,
    /// Restore a backup with damaged records, leaving them out
    #[arg(long)]
    force: bool,
}

impl RestoreArgs {
    pub(super) fn run(self, invocation: &Invocation) -> anyhow::Result<ExitCode> {
        let order = RestoreOrder { file: std::path::absolute(&self.file)?, exact: self.exact, force: self.force };
        let setup = Setup::of(&invocation.settings()?.read()?)?;
        let answer = block_on(async { Ok(admin::restore(&invocation.data, order, setup).await?) })?;
        invocation.output.answer(&answer, |_| restored(&answer))?;
        if answer.replaced_empty && !answer.exact {
            let lost = "revocations, rotations and usage since the backup could not be carried over, because the replaced \
                        file is empty: revoke again the keys that must stay revoked";
            invocation.output.diagnostic("warning", lost);
        }
        if answer.damaged > 0 {
            invocation.output.diagnostic("warning", &format!("{} damaged records were left out", answer.damaged));
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn restored(answer: &RestoreAnswer) -> String {
    let mut text = format!("Restored {} records from {}.\n", answer.records, answer.restored.display());
    if let Some(kept) = &answer.kept_as {
        let _ = writeln!(text, "The replaced file is kept as {}.", kept.display());
    }
    let Carried { revoked, unreadable, rotated, expiries, usage, gone, tokens, feeders } = &answer.carried;
    let lists = [
        ("Still revoked", revoked),
        ("Revoked because they were unreadable in the replaced file", unreadable),
        ("Newer secret kept", rotated),
        ("Earlier expiry kept", expiries),
        ("Usage since the backup kept", usage),
        ("Issued since the backup and lost", gone),
        ("Feeders whose tokens are still revoked or replaced", tokens),
        ("Feeders whose quota usage since the backup is kept", feeders),
    ];
    for (what, keys) in lists.into_iter().filter(|(_, keys)| !keys.is_empty()) {
        let _ = writeln!(text, "{what}: {}.", keys.join(", "));
    }
    text
}
