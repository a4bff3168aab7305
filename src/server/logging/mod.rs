//! Log lines: text for people at a terminal, JSON for whatever collects them otherwise. Always to standard error, and
//! always through [`LogWriter`], so that no line ever waits for it. Panics are logged the same way: the default hook
//! would block on a standard error that is not read.

mod json;

use std::any::Any;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::fmt;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::panic;

use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, reload};

use crate::config::{Config, LogFormat};
use crate::log::{self, Escaping, LogWriter};
use crate::store::is_guarded;
use json::JsonLines;

type SetFilter = Box<dyn Fn(EnvFilter) + Send + Sync>;

/// What decides which lines are written; it can be changed while they are.
pub struct LogFilter(Option<SetFilter>);

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
    let lines: Box<dyn Layer<Registry> + Send + Sync> = if json {
        Box::new(JsonLines(writer))
    } else {
        // The layer prints its own errors to standard error, and panics where that fails.
        let text = tracing_subscriber::fmt::layer().log_internal_errors(false).with_ansi(colours);
        Box::new(text.with_writer(move || writer.clone()))
    };
    let (filter, handle) = reload::Layer::new(filter);
    // Another subscriber, as in a test, stays in place, and its filter cannot be changed here.
    let is_started = tracing_subscriber::registry().with(lines).with(filter).try_init().is_ok();
    let set = is_started.then(|| -> SetFilter { Box::new(move |filter| drop(handle.reload(filter))) });
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
    let message = if is_guarded() {
        "the database stopped at a page that it cannot read"
    } else {
        "a thread panicked; this is a bug in oddsbox"
    };
    let reason = panic_reason(panic.payload());
    tracing::error!(thread = thread.name(), location, reason, backtrace, "{message}");
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
