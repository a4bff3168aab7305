//! Log lines: text for people at a terminal, JSON for whatever collects them otherwise. Always to standard error.

use std::fmt;
use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;

use crate::config::{Config, LogFormat};

/// What decides which lines are written; it can be changed while they are.
pub struct LogFilter(Option<Box<dyn Fn(EnvFilter) + Send + Sync>>);

impl fmt::Debug for LogFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LogFilter(…)")
    }
}

impl LogFilter {
    /// Reads a filter without using it.
    pub(super) fn read(text: &str) -> Result<EnvFilter, LogFilterError> {
        EnvFilter::try_new(text).map_err(|_| LogFilterError(text.to_owned()))
    }

    /// Writes by another filter from now on.
    pub(super) fn set(&self, filter: EnvFilter) {
        if let Some(set) = &self.0 {
            set(filter);
        }
    }
}

/// Starts logging for the whole process; a second call changes nothing.
pub fn init(config: &Config) -> Result<LogFilter, LogFilterError> {
    let filter = LogFilter::read(&config.log)?;
    let terminal = io::stderr().is_terminal();
    let colours = terminal && std::env::var_os("NO_COLOR").is_none();
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    let json = match config.log_format {
        LogFormat::Auto => !terminal,
        LogFormat::Text => false,
        LogFormat::Json => true,
    };
    // The two kinds of lines have no type in common, only the same calls.
    macro_rules! start {
        ($lines:expr) => {{
            let lines = $lines.with_filter_reloading();
            let handle = lines.reload_handle();
            let set: Box<dyn Fn(EnvFilter) + Send + Sync> = Box::new(move |filter| drop(handle.reload(filter)));
            // Somebody else's subscriber, as in a test, is as good as ours; it is theirs to change.
            lines.try_init().is_ok().then_some(set)
        }};
    }
    Ok(LogFilter(if json { start!(lines.json().flatten_event(true)) } else { start!(lines.with_ansi(colours)) }))
}

/// A log filter that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("log = {0:?} is no filter: give error, warn, info, debug, trace, or pairs such as oddsbox=debug,access=warn")]
pub struct LogFilterError(String);
