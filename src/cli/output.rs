//! Standard output: a document for programs, text and tables for people.
//!
//! Tables and colours are for terminals; into a pipe a table goes as lines of fields between tabs. A reader who has
//! seen enough and closes the pipe is no error.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use comfy_table::{Attribute, Cell, ColumnConstraint, ContentArrangement, Table, presets};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use crate::keys::without_secrets;

const ANNOUNCE_WITHIN: Duration = Duration::from_secs(1);

/// Nobody reads any further.
#[derive(Debug, thiserror::Error)]
#[error("standard output was closed")]
pub(super) struct Closed;

/// How a command prints.
#[derive(Clone, Copy, Debug)]
pub(super) struct Output {
    pub(super) json: bool,
    is_terminal: bool,
    has_colours: bool,
}

impl Output {
    pub(super) fn new(json: bool) -> Self {
        let is_terminal = io::stdout().is_terminal();
        let is_refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Output { json, is_terminal, has_colours: is_terminal && !is_refused }
    }

    /// Prints an answer: as a document if that was asked for, else as `people` read it.
    pub(super) fn answer<T: Serialize>(self, answer: &T, people: impl FnOnce(Self) -> String) -> anyhow::Result<()> {
        if self.json { self.document(answer) } else { text(&people(self)) }
    }

    /// One JSON document.
    pub(super) fn document<T: Serialize>(self, document: &T) -> anyhow::Result<()> {
        let mut line =
            if self.is_terminal { serde_json::to_string_pretty(document)? } else { serde_json::to_string(document)? };
        line.push('\n');
        text(&line)
    }

    pub(super) fn bold(self, text: &str) -> String {
        if self.has_colours { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// Rows under a header. The first column is never broken over lines, so that it can be copied.
    pub(super) fn table(self, header: &[&str], rows: &[Vec<String>]) -> String {
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

/// Writes text as it is.
pub(super) fn text(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Closed.into()),
        written => Ok(written?),
    }
}

/// One line on standard error. There is nowhere left to report it if that fails.
pub(super) fn complain(what: &str, text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", complaint(what, text));
}

/// A message as one line.
pub(super) fn complaint(what: &str, text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    format!("{what}: {}", lines.join(" "))
}

/// Writes text without waiting longer than a second for whoever reads it, for a server that has other things to do. What
/// could not be written by then is still written when there is room.
pub(super) async fn announce(text: String) -> anyhow::Result<()> {
    let (written, is_written) = tokio::sync::oneshot::channel();
    // A thread that nobody waits for, since a write to a full pipe may never return.
    std::thread::Builder::new().name("announce".to_owned()).spawn(move || {
        let _ = written.send(self::text(&text));
    })?;
    match tokio::time::timeout(ANNOUNCE_WITHIN, is_written).await {
        Ok(Ok(written)) => written,
        Ok(Err(_)) | Err(_) => anyhow::bail!("standard output is blocked: nobody reads it"),
    }
}

/// Help, or what is wrong with the arguments. A secret among them is not repeated. Help that nobody reads to its end is no
/// failure.
pub(super) fn usage(error: &clap::Error) {
    let plain = error.to_string();
    let shown = without_secrets(&plain);
    if error.use_stderr() && shown != plain {
        let _ = io::stderr().lock().write_all(shown.as_bytes());
    } else {
        let _ = error.print();
    }
}

/// Names and values below each other.
pub(super) fn pairs(pairs: &[(&str, String)]) -> String {
    let width = pairs.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    pairs.iter().map(|(name, value)| format!("{name:<width$}  {value}").trim_end().to_owned() + "\n").collect()
}

/// A value, or a dash where there is none.
pub(super) fn or_dash(value: Option<impl ToString>) -> String {
    value.map_or("-".to_owned(), |value| value.to_string())
}

/// A bar on standard error that shows how far something is, and goes when it is dropped.
#[derive(Debug)]
pub(super) struct Bar(ProgressBar);

impl Bar {
    /// Only where somebody watches.
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
