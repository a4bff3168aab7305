//! Log lines: text for people at a terminal, JSON for whatever collects them otherwise. Always to standard error, and
//! always through [`LogWriter`], so that no line ever waits for it. Panics are logged the same way: the default hook
//! would block on a standard error that is not read.

use std::any::Any;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::fmt;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::panic;

use tracing_subscriber::EnvFilter;

use crate::config::{Config, LogFormat};
use crate::log::{self, Escaping, LogWriter};

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
pub fn init(config: &Config) -> Result<LogFilter, LogError> {
    let filter = LogFilter::read(&config.log)?;
    let terminal = io::stderr().is_terminal();
    let colours = terminal && std::env::var_os("NO_COLOR").is_none();
    let json = match config.log_format {
        LogFormat::Auto => !terminal,
        LogFormat::Text => false,
        LogFormat::Json => true,
    };
    let escaping = match (json, colours) {
        (true, _) => Escaping::None,
        (false, true) => Escaping::AllButColours,
        (false, false) => Escaping::All,
    };
    let writer = LogWriter::start(standard_error(), escaping).map_err(LogError::Thread)?;
    log::install(writer.clone());
    // The subscriber prints its own errors to standard error, and panics where that fails.
    let lines = tracing_subscriber::fmt()
        .log_internal_errors(false)
        .with_env_filter(filter)
        .with_writer(move || writer.clone());
    // The two kinds of lines have no type in common, only the same calls.
    macro_rules! start {
        ($lines:expr) => {{
            let lines = $lines.with_filter_reloading();
            let handle = lines.reload_handle();
            let set: Box<dyn Fn(EnvFilter) + Send + Sync> = Box::new(move |filter| drop(handle.reload(filter)));
            // Another subscriber, as in a test, stays in place, and its filter cannot be changed here.
            lines.try_init().is_ok().then_some(set)
        }};
    }
    let set = if json { start!(lines.json().flatten_event(true)) } else { start!(lines.with_ansi(colours)) };
    if set.is_some() {
        panic::set_hook(Box::new(log_panic));
    }
    Ok(LogFilter(set))
}

/// Standard error by a descriptor of our own: the lock of [`io::stderr`] stays free while a write blocks.
fn standard_error() -> Box<dyn Write + Send> {
    match io::stderr().as_fd().try_clone_to_owned() {
        Ok(descriptor) => Box::new(File::from(descriptor)),
        Err(_) => Box::new(io::stderr()),
    }
}

fn log_panic(panic: &panic::PanicHookInfo<'_>) {
    let thread = std::thread::current();
    let location = panic.location().map(ToString::to_string);
    let backtrace = Backtrace::capture();
    let backtrace = (backtrace.status() == BacktraceStatus::Captured).then(|| backtrace.to_string());
    tracing::error!(
        thread = thread.name(),
        location,
        reason = panic_reason(panic.payload()),
        backtrace,
        "a thread panicked; this is a bug in oddsbox"
    );
}

fn panic_reason(payload: &dyn Any) -> Option<&str> {
    payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str))
}

/// Why the log cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error(transparent)]
    Filter(#[from] LogFilterError),
    #[error("the thread that writes the log cannot be started: {0}")]
    Thread(io::Error),
}

/// A log filter that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("log = {0:?} is no filter: give error, warn, info, debug, trace, or pairs such as oddsbox=debug,access=warn")]
pub struct LogFilterError(String);
