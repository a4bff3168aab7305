//! `oddsbox maintenance`: turns maintenance mode on and off.

use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::flags;
use super::invocation::Invocation;
use crate::admin::{Access, Command, MaintenanceAnswer};

/// Turn maintenance mode on or off
#[derive(Debug, Subcommand)]
#[command(after_long_help = "\
Examples:
  oddsbox maintenance on --for 30m
  oddsbox maintenance off")]
pub(super) enum MaintenanceCommand {
    On(OnArgs),
    Off(OffArgs),
}

/// Answer data requests with 503
///
/// Safe on a running server: it is in force when the command returns. Status requests are still answered.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  oddsbox maintenance on
  oddsbox maintenance on --for 30m")]
pub(super) struct OnArgs {
    /// End automatically after this time, such as 30m
    #[arg(long = "for", value_name = "DURATION", value_parser = flags::some_seconds)]
    time: Option<u32>,
}

/// Answer data requests again
///
/// Safe on a running server: it is in force when the command returns.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  oddsbox maintenance off")]
pub(super) struct OffArgs {}

impl MaintenanceCommand {
    pub(super) fn run(self, invocation: &Invocation) -> anyhow::Result<ExitCode> {
        let command = match self {
            MaintenanceCommand::On(on) => Command::MaintenanceOn { for_s: on.time },
            MaintenanceCommand::Off(OffArgs {}) => Command::MaintenanceOff,
        };
        let answer: MaintenanceAnswer = invocation.ask(Access::Existing, command)?;
        invocation.output.answer(&answer, |_| shown(&answer))?;
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
