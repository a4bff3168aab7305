//! `oddsbox history forget`: deletes the history of an event.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use clap::Args;

use super::super::flags;
use super::super::invocation::Invocation;
use crate::admin::{Access, Command, ForgetOrder, ForgottenAnswer};
use crate::model::World;

/// Delete the history of an event for good
///
/// Every price, score and change of the event leaves the log, its keyframes and the lines, and no answer about the past has
/// it any more; what clients have kept, and backups, still do. The changes of other events stay as they are. The event
/// must not be on the board: remove it first. The audit log keeps that it was forgotten. If the command is interrupted,
/// run it again.
///
/// Safe on a running server: it works in small steps while requests and changes continue.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  oddsbox history forget 5ccad57631f7026f5c1c45740d28a7a2
  oddsbox history forget EVENT --world sandbox --yes --json")]
pub(super) struct ForgetArgs {
    /// The id of the event
    #[arg(value_name = "EVENT")]
    event: String,
    /// World of the event
    #[arg(long, default_value = "live", value_parser = flags::world())]
    world: World,
    /// Sport of the event, by its key, if its lines are not there [default: the sport whose history has it]
    #[arg(long, value_name = "KEY")]
    sport: Option<String>,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

impl ForgetArgs {
    pub(super) fn run(self, invocation: &Invocation) -> anyhow::Result<ExitCode> {
        let ForgetArgs { event, world, sport, yes } = self;
        if !yes && !is_confirmed(&format!("Delete the history of {event} in the {world} world for good?"))? {
            anyhow::bail!("nothing was deleted");
        }
        let order = ForgetOrder { world: world.into(), event, sport };
        let forgotten: ForgottenAnswer = invocation.ask(Access::Existing, Command::HistoryForget(order))?;
        if forgotten.is_incomplete {
            let message = "a part of the log is damaged and could not be searched: run `oddsbox check`";
            invocation.output.diagnostic("warning", message);
        }
        invocation.output.answer(&forgotten, |_| {
            let ForgottenAnswer { event_id, sport_key, changes, .. } = &forgotten;
            format!("Deleted the history of {event_id} ({sport_key}): {changes} changes.\n")
        })?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Asks on a terminal. Without one nobody can answer.
fn is_confirmed(question: &str) -> anyhow::Result<bool> {
    if !io::stdin().is_terminal() {
        anyhow::bail!("this cannot be undone, and nobody can be asked without a terminal: add --yes");
    }
    let mut stderr = io::stderr();
    write!(stderr, "{question} [y/N] ")?;
    stderr.flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
