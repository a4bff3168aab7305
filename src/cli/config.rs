//! `oddsbox config`: the effective configuration.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde::Serialize;

use super::invocation::Invocation;
use super::output::Output;
use crate::config::{SETTINGS, SettingValue, Settings};
use crate::server::validate;

/// Show the configuration
#[derive(Debug, Subcommand)]
#[command(after_long_help = "\
Examples:
  oddsbox config show
  oddsbox config show --config oddsbox.toml")]
pub(super) enum ConfigCommand {
    Show(ConfigShowArgs),
}

/// Show every setting, its value and where it comes from
///
/// Reads the file (--config) and the environment of this command, not those of a running server. The values are
/// validated as `oddsbox serve` would, certificates, catalogue and feeds included: what it would refuse is the same
/// error and exit code here.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  oddsbox config show
  oddsbox config show --config oddsbox.toml --json
  ODDSBOX_REFRESH=10s oddsbox config show")]
pub(super) struct ConfigShowArgs {}

/// A row of the output.
#[derive(Debug, Serialize)]
struct SettingRow {
    name: String,
    value: String,
    from: String,
    default: &'static str,
    variable: String,
    help: &'static str,
}

impl ConfigCommand {
    pub(super) fn run(self, invocation: &Invocation) -> anyhow::Result<ExitCode> {
        let ConfigCommand::Show(ConfigShowArgs {}) = self;
        let settings = invocation.settings()?;
        let rows = rows(&settings);
        invocation.output.answer(&rows, |output| table(output, &rows))?;
        // Validated only after printing, so that an invalid value can be inspected.
        validate(&settings.read()?)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn rows(settings: &Settings) -> Vec<SettingRow> {
    let row = |setting: &crate::config::Setting| {
        let SettingValue { text, origin } = settings.shown(setting.name);
        SettingRow {
            name: setting.name.to_owned(),
            value: text,
            from: origin.to_string(),
            default: setting.default,
            variable: setting.variable(),
            help: setting.help,
        }
    };
    let feeds = settings.feeds_shown().into_iter().map(|field| SettingRow {
        name: field.name,
        value: field.value.text,
        from: field.value.origin.to_string(),
        default: field.setting.default,
        variable: field.variable,
        help: field.setting.help,
    });
    SETTINGS.iter().map(row).chain(feeds).collect()
}

fn table(output: Output, settings: &[SettingRow]) -> String {
    let row = |setting: &SettingRow| vec![setting.name.clone(), setting.value.clone(), setting.from.clone()];
    output.table(&["SETTING", "VALUE", "FROM"], &settings.iter().map(row).collect::<Vec<_>>())
}
