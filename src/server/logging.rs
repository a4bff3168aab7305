//! Log lines: text for people at a terminal, JSON for whatever collects them otherwise. Always to standard error.

use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;

use crate::config::{Config, LogFormat};

/// Starts logging for the whole process; a second call changes nothing.
pub fn init(config: &Config) -> Result<(), LogFilterError> {
    let filter = EnvFilter::try_new(&config.log).map_err(|_| LogFilterError(config.log.clone()))?;
    let terminal = io::stderr().is_terminal();
    let colours = terminal && std::env::var_os("NO_COLOR").is_none();
    let lines = fmt().with_env_filter(filter).with_writer(io::stderr);
    let json = match config.log_format {
        LogFormat::Auto => !terminal,
        LogFormat::Text => false,
        LogFormat::Json => true,
    };
    // Somebody else's subscriber, as in a test, is as good as ours.
    let _ = if json { lines.json().flatten_event(true).try_init() } else { lines.with_ansi(colours).try_init() };
    Ok(())
}

/// A log filter that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("log = {0:?} is no filter: give error, warn, info, debug, trace, or pairs such as oddsbox=debug,access=warn")]
pub struct LogFilterError(String);
