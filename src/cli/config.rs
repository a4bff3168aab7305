//! `oddsbox config`: what is set, and where.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde::Serialize;

use super::output::Output;
use super::session::Session;
use crate::config::{SETTINGS, Settings};

/// Look at the configuration
#[derive(Debug, Subcommand)]
pub(super) enum Config {
    Show(Show),
}

/// Show every setting, its value and where it came from
///
/// Reads the file (--config) and the environment of this command, not those of a running server.
#[derive(Debug, Args)]
pub(super) struct Show {}

/// A setting as it is shown.
#[derive(Debug, Serialize)]
struct Shown {
    name: String,
    value: String,
    from: String,
    default: &'static str,
    variable: String,
    help: &'static str,
}

impl Config {
    pub(super) fn run(self, session: &Session) -> anyhow::Result<ExitCode> {
        let Config::Show(Show {}) = self;
        let settings = session.settings()?;
        let shown = shown(&settings);
        session.output.answer(&shown, |output| table(output, &shown))?;
        // Everything is shown first, so that a value that is not taken can be looked at.
        settings.read()?;
        Ok(ExitCode::SUCCESS)
    }
}

fn shown(settings: &Settings) -> Vec<Shown> {
    let one = |setting: &crate::config::Setting| {
        let found = settings.get(setting.name);
        Shown {
            name: setting.name.to_owned(),
            value: found.value,
            from: found.origin.to_string(),
            default: setting.default,
            variable: setting.variable(),
            help: setting.help,
        }
    };
    let feeds = settings.feeds_shown().into_iter().map(|field| Shown {
        name: field.name,
        value: field.found.value,
        from: field.found.origin.to_string(),
        default: field.setting.default,
        variable: field.variable,
        help: field.setting.help,
    });
    SETTINGS.iter().map(one).chain(feeds).collect()
}

fn table(output: Output, settings: &[Shown]) -> String {
    let row = |setting: &Shown| vec![setting.name.clone(), setting.value.clone(), setting.from.clone()];
    output.table(&["SETTING", "VALUE", "FROM"], &settings.iter().map(row).collect::<Vec<_>>())
}
