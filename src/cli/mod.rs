//! The command line.
//!
//! One file for each group of commands: its arguments, what it does, what it prints. `flags` turns raw arguments into
//! validated ones, `session` finds the server or the file, `output` is the only hand that writes to standard output.
//! An error is one line on standard error that says what to do next; the exit code is 0 for done, 1 for failed and 2
//! for wrong usage.

mod about;
mod audit;
mod backup;
mod check;
mod config;
mod console;
mod demo;
mod export;
mod feeds;
mod flags;
mod ingest;
mod keys;
mod maintenance;
mod output;
mod serve;
mod session;
mod status;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueHint};

use self::output::{Closed, Output};
use self::session::Session;
use crate::admin::DataDir;

/// Where everything is unless the operator says otherwise.
const DEFAULT_DATA: &str = "./oddsbox-data";

/// A self-hosted sports odds data service in one binary.
///
/// Commands find the running server through the socket in its data directory, or open the data themselves when no
/// server runs: both do the same.
#[derive(Debug, Parser)]
#[command(name = "oddsbox", version, max_term_width = 100)]
struct Cli {
    /// Directory that holds everything [default: ./oddsbox-data, for demo ./oddsbox-demo]
    #[arg(
        long,
        global = true,
        help_heading = "Options of every command",
        value_name = "DIR",
        value_hint = ValueHint::DirPath,
        env = "ODDSBOX_DATA"
    )]
    data: Option<PathBuf>,

    /// Configuration file; commands need it only when no server runs
    #[arg(
        long,
        global = true,
        help_heading = "Options of every command",
        value_name = "FILE",
        value_hint = ValueHint::FilePath,
        env = "ODDSBOX_CONFIG"
    )]
    config: Option<PathBuf>,

    /// Print one JSON document and nothing else on standard output
    #[arg(long, global = true, help_heading = "Options of every command")]
    json: bool,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::Serve),
    Demo(demo::Demo),
    #[command(subcommand)]
    Keys(keys::Keys),
    Ingest(ingest::Ingest),
    Export(export::Export),
    Feeds(feeds::Feeds),
    Audit(audit::Audit),
    Console(console::Console),
    Status(status::Status),
    #[command(subcommand)]
    Maintenance(maintenance::Maintenance),
    Ready(status::Ready),
    Backup(backup::Backup),
    Restore(backup::Restore),
    Check(check::Check),
    #[command(subcommand)]
    Config(config::Config),
    Openapi(about::Openapi),
    Completions(about::Completions),
    Man(about::Man),
}

/// Runs the command line and gives its exit code.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            output::usage(&error);
            return u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from);
        }
    };
    match dispatch(cli) {
        Ok(code) => code,
        Err(error) if error.is::<Closed>() => ExitCode::SUCCESS,
        Err(error) => {
            output::complain("error", &error.to_string());
            ExitCode::FAILURE
        }
    }
}

fn dispatch(cli: Cli) -> anyhow::Result<ExitCode> {
    let default = if matches!(cli.command, Command::Demo(_)) { demo::DEMO_DATA } else { DEFAULT_DATA };
    let data = DataDir::new(cli.data.unwrap_or_else(|| default.into()));
    let session = Session { data, config: cli.config, output: Output::new(cli.json) };
    match cli.command {
        Command::Serve(serve) => serve.run(&session),
        Command::Demo(demo) => demo.run(&session),
        Command::Keys(keys) => keys.run(&session),
        Command::Ingest(ingest) => ingest.run(&session),
        Command::Export(export) => export.run(&session),
        Command::Feeds(feeds) => feeds.run(&session),
        Command::Audit(audit) => audit.run(&session),
        Command::Console(console) => console.run(&session),
        Command::Status(status::Status {}) => status::Status::run(&session),
        Command::Maintenance(maintenance) => maintenance.run(&session),
        Command::Ready(status::Ready {}) => status::Ready::run(&session),
        Command::Backup(backup) => backup.run(&session),
        Command::Restore(restore) => restore.run(&session),
        Command::Check(check) => check.run(&session),
        Command::Config(config) => config.run(&session),
        Command::Openapi(about::Openapi {}) => about::Openapi::run(),
        Command::Completions(completions) => completions.run(&session),
        Command::Man(man) => man.run(&session),
    }
}
