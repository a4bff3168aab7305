//! The command line.
//!
//! One file per group of commands: its arguments, its action and its output. `flags` validates raw arguments,
//! `invocation` finds the server or opens the file, and only `output` writes to standard output. An error is one line
//! on standard error that says what to do next; the exit code is 0 for success, 1 for failure, 2 for wrong usage and
//! 130 for an ingest that was interrupted.

mod about;
mod audit;
mod backup;
mod catalogue;
mod check;
mod cluster;
mod config;
mod console;
mod demo;
mod derived;
mod export;
mod feeds;
mod flags;
mod history;
mod ingest;
mod invocation;
mod keys;
mod maintenance;
mod output;
mod serve;
mod status;
#[cfg(test)]
mod tests;
mod threads;

use std::ffi::OsString;
use std::panic;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand, ValueHint};

use self::invocation::Invocation;
use self::output::{Output, StdoutClosed};
use crate::admin::DataDir;
use crate::store::is_guarded;

/// The default data directory.
const DEFAULT_DATA: &str = "./oddsbox-data";

/// A self-hosted sports odds data service in one binary.
///
/// Commands find the running server through the socket in its data directory, or open the data themselves if no
/// server runs; the result is the same.
#[derive(Debug, Parser)]
#[command(
    name = "oddsbox",
    version,
    max_term_width = 100,
    after_long_help = "\
Examples:
  oddsbox demo
  oddsbox serve --config oddsbox.toml
  oddsbox keys issue --sandbox --name trial
  oddsbox ingest prices.ndjson
  oddsbox help keys issue"
)]
struct Cli {
    /// Data directory [default: ./oddsbox-data, for demo ./oddsbox-demo]
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
    command: CliCommand,
}

#[derive(Debug, Subcommand)]
enum CliCommand {
    Serve(serve::ServeArgs),
    Demo(demo::DemoArgs),
    #[command(subcommand)]
    Keys(keys::KeysCommand),
    Ingest(ingest::IngestArgs),
    Export(export::ExportArgs),
    Feeds(feeds::FeedsArgs),
    Audit(audit::AuditArgs),
    Best(derived::BestArgs),
    Edges(derived::EdgesArgs),
    History(history::HistoryArgs),
    Console(console::ConsoleArgs),
    Cluster(cluster::ClusterArgs),
    Status(status::StatusArgs),
    #[command(subcommand)]
    Maintenance(maintenance::MaintenanceCommand),
    Ready(status::ReadyArgs),
    Backup(backup::BackupArgs),
    Restore(backup::RestoreArgs),
    Check(check::CheckArgs),
    #[command(subcommand)]
    Config(config::ConfigCommand),
    Catalogue(catalogue::CatalogueArgs),
    Openapi(about::OpenapiArgs),
    Completions(about::CompletionsArgs),
    Man(about::ManArgs),
}

/// Parses the arguments, runs the command and returns the exit code.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let output = Output::new(output::has_json_flag(&arguments));
    let cli = match Cli::try_parse_from(arguments).and_then(Cli::checked) {
        Ok(cli) => cli,
        Err(error) => {
            output.usage(&error);
            return u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from);
        }
    };
    leave_damage_to_errors();
    match dispatch(cli) {
        Ok(code) => code,
        Err(error) if error.is::<StdoutClosed>() => ExitCode::SUCCESS,
        Err(error) => {
            output.diagnostic("error", &error.to_string());
            ExitCode::FAILURE
        }
    }
}

/// A panic of the database at a ruined page becomes the error of the command: it is not printed as well.
fn leave_damage_to_errors() {
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        if !is_guarded() {
            report(panic);
        }
    }));
}

impl Cli {
    /// Rejects options of a command that its subcommand does not have. clap's own check would also reject the options
    /// of every command there.
    fn checked(self) -> Result<Self, clap::Error> {
        let conflict = match &self.command {
            CliCommand::Demo(demo) => demo.conflict(),
            CliCommand::Feeds(feeds) => feeds.conflict(),
            CliCommand::Catalogue(catalogue) => catalogue.conflict(),
            CliCommand::History(history) => history.conflict(),
            _ => None,
        };
        match conflict {
            Some(message) => Err(Cli::command().error(ErrorKind::ArgumentConflict, message)),
            None => Ok(self),
        }
    }
}

fn dispatch(cli: Cli) -> anyhow::Result<ExitCode> {
    let default = if matches!(cli.command, CliCommand::Demo(_)) { demo::DEMO_DATA } else { DEFAULT_DATA };
    let data = DataDir::new(cli.data.unwrap_or_else(|| default.into()));
    let invocation = Invocation { data, config: cli.config, output: Output::new(cli.json) };
    match cli.command {
        CliCommand::Serve(serve) => serve.run(&invocation),
        CliCommand::Demo(demo) => demo.run(&invocation),
        CliCommand::Keys(keys) => keys.run(&invocation),
        CliCommand::Ingest(ingest) => ingest.run(&invocation),
        CliCommand::Export(export) => export.run(&invocation),
        CliCommand::Feeds(feeds) => feeds.run(&invocation),
        CliCommand::Audit(audit) => audit.run(&invocation),
        CliCommand::Best(best) => best.run(&invocation),
        CliCommand::Edges(edges) => edges.run(&invocation),
        CliCommand::History(history) => history.run(&invocation),
        CliCommand::Console(console) => console.run(&invocation),
        CliCommand::Cluster(cluster) => cluster.run(&invocation),
        CliCommand::Status(status::StatusArgs {}) => status::StatusArgs::run(&invocation),
        CliCommand::Maintenance(maintenance) => maintenance.run(&invocation),
        CliCommand::Ready(status::ReadyArgs {}) => status::ReadyArgs::run(&invocation),
        CliCommand::Backup(backup) => backup.run(&invocation),
        CliCommand::Restore(restore) => restore.run(&invocation),
        CliCommand::Check(check) => check.run(&invocation),
        CliCommand::Config(config) => config.run(&invocation),
        CliCommand::Catalogue(catalogue) => catalogue.run(&invocation),
        CliCommand::Openapi(about::OpenapiArgs {}) => about::OpenapiArgs::run(),
        CliCommand::Completions(completions) => completions.run(&invocation),
        CliCommand::Man(man) => man.run(&invocation),
    }
}
