//! Standard output: JSON for programs, text and tables for people. Errors and warnings go to standard error, with
//! `--json` as one object each: `{"error":{"message":"…"}}`.
//!
//! Aligned tables and colours are for terminals; in a pipe, a table is one line per row with tabs between the fields. A
//! closed pipe is not an error.

use std::borrow::Cow;
use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use clap::error::ErrorKind;
use comfy_table::{Attribute, Cell, ColumnConstraint, ContentArrangement, Table, presets};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use serde_json::json;

use crate::keys::without_secrets;
use crate::log::escaped;

const ANNOUNCE_WITHIN: Duration = Duration::from_secs(1);

/// The reader has closed standard output.
#[derive(Debug, thiserror::Error)]
#[error("standard output was closed")]
pub(super) struct StdoutClosed;

/// The output options of a command.
#[derive(Clone, Copy, Debug)]
pub(super) struct Output {
    pub(super) json: bool,
    is_terminal: bool,
    has_colours: bool,
}

impl Output {
    pub(super) fn new(json: bool) -> Self {
        let is_terminal = io::stdout().is_terminal();
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Output { json, is_terminal, has_colours: is_terminal && !no_color }
    }

    /// Prints an answer: as JSON with `--json`, else as the text that `format` returns.
    pub(super) fn answer<T: Serialize>(self, answer: &T, format: impl FnOnce(Self) -> String) -> anyhow::Result<()> {
        text(&self.format(answer, format)?)
    }

    /// An answer as it is printed.
    pub(super) fn format<T: Serialize>(
        self,
        answer: &T,
        format: impl FnOnce(Self) -> String,
    ) -> anyhow::Result<String> {
        if !self.json {
            return Ok(format(self));
        }
        let document =
            if self.is_terminal { serde_json::to_string_pretty(answer)? } else { serde_json::to_string(answer)? };
        Ok(document + "\n")
    }

    /// Writes an error or a warning to standard error. A failure is ignored, as there is nowhere left to report it.
    pub(super) fn diagnostic(self, level: &str, text: &str) {
        let _ = writeln!(io::stderr().lock(), "{}", self.diagnostic_line(level, text));
    }

    /// A message on one line.
    pub(super) fn diagnostic_line(self, level: &str, text: &str) -> String {
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let message = lines.join(" ");
        let message = escaped(&message);
        if self.json { json!({ (level): { "message": message } }).to_string() } else { format!("{level}: {message}") }
    }

    /// Prints help or a usage error, with secrets among the arguments hidden. A closed pipe is not an error.
    pub(super) fn usage(self, error: &clap::Error) {
        let plain = error.to_string();
        let shown = without_secrets(&plain);
        if error.use_stderr() && self.json {
            self.diagnostic("error", &usage_message(error.kind(), &shown));
        } else if error.use_stderr() && shown != plain {
            let _ = io::stderr().lock().write_all(shown.as_bytes());
        } else {
            let _ = error.print();
        }
    }

    pub(super) fn bold(self, text: &str) -> String {
        if self.has_colours { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// A table. The first column is never wrapped, so that it can be copied. What a cell has may come from anybody.
    pub(super) fn table(self, header: &[&str], rows: &[Vec<String>]) -> String {
        let rows: Vec<Vec<Cow<'_, str>>> =
            rows.iter().map(|row| row.iter().map(|cell| escaped(cell)).collect()).collect();
        if !self.is_terminal {
            let header = header.join("\t");
            let rows = rows.iter().map(|row| row.join("\t"));
            return std::iter::once(header).chain(rows).map(|line| line + "\n").collect();
        }
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
        table.set_header(header.iter().map(|name| {
            let cell = Cell::new(name);
            if self.has_colours { cell.add_attribute(Attribute::Bold) } else { cell }
        }));
        table.add_rows(rows);
        if let Some(column) = table.column_mut(0) {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
        table.trim_fmt() + "\n"
    }
}

/// Writes text to standard output.
pub(super) fn text(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(StdoutClosed.into()),
        written => Ok(written?),
    }
}

/// Writes text without blocking the server for longer than a second. If the reader is slower, the text is still written
/// in the background.
pub(super) async fn announce(text: String) -> anyhow::Result<()> {
    let (written, is_written) = tokio::sync::oneshot::channel();
    // A detached thread, since a write to a full pipe may never return.
    std::thread::Builder::new().name("announce".to_owned()).spawn(move || {
        let _ = written.send(self::text(&text));
    })?;
    match tokio::time::timeout(ANNOUNCE_WITHIN, is_written).await {
        Ok(Ok(written)) => written,
        Ok(Err(_)) | Err(_) => anyhow::bail!("standard output is blocked: the reader does not read it"),
    }
}

/// Whether `--json` is among the arguments, for usage errors: they have no parsed arguments.
pub(super) fn has_json_flag(arguments: &[OsString]) -> bool {
    arguments.iter().take_while(|argument| *argument != "--").any(|argument| argument == "--json")
}

/// What a usage error says, without the synopsis that follows it.
fn usage_message(kind: ErrorKind, text: &str) -> String {
    if kind == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return "a command is missing: --help lists them".to_owned();
    }
    let end = ["\nUsage:", "\nFor more information"].iter().filter_map(|next| text.find(next)).min();
    let message = end.and_then(|end| text.get(..end)).unwrap_or(text);
    message.strip_prefix("error: ").unwrap_or(message).to_owned()
}

/// Names and values, one pair per line.
pub(super) fn pairs(pairs: &[(&str, String)]) -> String {
    let width = pairs.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    pairs.iter().map(|(name, value)| format!("{name:<width$}  {value}").trim_end().to_owned() + "\n").collect()
}

/// A value, or a dash if there is none.
pub(super) fn or_dash(value: Option<impl ToString>) -> String {
    value.map_or("-".to_owned(), |value| value.to_string())
}

/// A progress bar on standard error, removed on drop.
#[derive(Debug)]
pub(super) struct Bar(ProgressBar);

impl Bar {
    /// `None` if standard error is not a terminal.
    pub(super) fn on_terminal() -> Option<Bar> {
        if !io::stderr().is_terminal() {
            return None;
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{wide_bar} {human_pos} of {human_len} rows, {eta} left").ok()?;
        Some(Bar(bar.with_style(style)))
    }

    pub(super) fn show(&self, done: u64, total: u64) {
        if total > 0 {
            self.0.set_length(total);
            self.0.set_position(done);
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
