//! `oddsbox demo`: the service with both worlds simulated, in a directory of its own; and `oddsbox demo clear`, which
//! makes such a directory fit for `oddsbox serve`.

mod banner;
mod keys;

pub(super) use banner::show;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::serve;
use super::session::{Session, block_on};
use crate::admin::{ClearAnswer, Setup, clear_demo};

/// Where a demo is unless the operator says otherwise: never where `oddsbox serve` looks.
pub(super) const DEMO_DATA: &str = "./oddsbox-demo";

/// Try it out: both worlds simulated, keys issued, curl lines to paste
///
/// Issues a sandbox and a production key on the first run, and shows them on every start: nothing in a demo is secret.
/// Its data is in ./oddsbox-demo unless --data says otherwise. Refuses a directory whose live world has real data. One
/// server at a time can use a data directory.
#[derive(Debug, Args)]
pub(super) struct Demo {
    #[command(subcommand)]
    command: Option<DemoCommand>,
    /// Address of the public interface; port 0 picks a free one
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
}

#[derive(Debug, Subcommand)]
enum DemoCommand {
    Clear(Clear),
}

/// Make a demo's directory fit for `oddsbox serve`: delete its simulated live world
///
/// Refuses while a server runs. Everything in the live world is deleted, also what was ingested into it beside the
/// simulated prices; keys, quotas and the audit log are kept. The file in which the demo keeps the secrets of its two
/// keys is deleted; the keys go on working.
#[derive(Debug, Args)]
struct Clear {}

impl Demo {
    pub(super) fn run(self, session: &Session) -> anyhow::Result<ExitCode> {
        match self.command {
            None => serve::start(session, self.listen, true),
            // clap's own conflict would forbid --data before `clear` as well.
            Some(DemoCommand::Clear(_)) if self.listen.is_some() => anyhow::bail!("`demo clear` takes no --listen"),
            Some(DemoCommand::Clear(Clear {})) => clear(session),
        }
    }
}

fn clear(session: &Session) -> anyhow::Result<ExitCode> {
    let setup = Setup::of(&session.settings()?.read()?)?;
    let answer = block_on(async { Ok(clear_demo(&session.data, setup).await?) })?;
    session.output.answer(&answer, |_| cleared(&answer, session))?;
    Ok(ExitCode::SUCCESS)
}

fn cleared(answer: &ClearAnswer, session: &Session) -> String {
    let data = answer.data.display();
    if !answer.cleared {
        return format!("There is nothing to clear in {data}: its live world is empty and was not simulated.\n");
    }
    format!(
        "Deleted the simulated live world in {data}: {} events, {} records, {} sources. The keys are kept.\n\
         Serve it: {} serve\n",
        answer.events,
        answer.records,
        answer.sources,
        session.command()
    )
}
