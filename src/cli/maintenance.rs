//! `oddsbox maintenance`: closing the service for a while.

use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::flags;
use super::session::Session;
use crate::admin::{Access, Command, MaintenanceAnswer};

/// Close the service for maintenance, or open it again
#[derive(Debug, Subcommand)]
pub(super) enum Maintenance {
    On(On),
    Off(Off),
}

/// Answer data requests with 503 until it is ended
///
/// Safe on a running server: it is in force when the command returns. Status requests are still answered.
#[derive(Debug, Args)]
pub(super) struct On {
    /// When it ends by itself, such as 30m
    #[arg(long = "for", value_name = "TIME", value_parser = flags::some_seconds)]
    time: Option<u32>,
}

/// Serve again
///
/// Safe on a running server: it is in force when the command returns.
#[derive(Debug, Args)]
pub(super) struct Off {}

impl Maintenance {
    pub(super) fn run(self, session: &Session) -> anyhow::Result<ExitCode> {
        let command = match self {
            Maintenance::On(on) => Command::MaintenanceOn { for_s: on.time },
            Maintenance::Off(Off {}) => Command::MaintenanceOff,
        };
        let answer: MaintenanceAnswer = session.ask(Access::Existing, command)?;
        session.output.answer(&answer, |_| shown(&answer))?;
        Ok(ExitCode::SUCCESS)
    }
}

fn shown(answer: &MaintenanceAnswer) -> String {
    match &answer.maintenance {
        None => "Maintenance is off.\n".to_owned(),
        Some(span) => match &span.until {
            Some(until) => format!("Maintenance is on until {until}.\n"),
            None => "Maintenance is on until `oddsbox maintenance off`.\n".to_owned(),
        },
    }
}
