//! A line of history: a feed line with the time of its change, `as_of`. What is only known of history, that a source went
//! stale or that prices were published without a change, has a line of its own.

use std::sync::Arc;

use super::read::{parse, read_parsed};
use super::write::LineWriter;
use super::{DroppedOutcome, Rejection};
use crate::ingest::wire::field::Field;
use crate::model::{Catalogue, News, Reason, SportId, Timestamp};

const SOURCE: &str = "stale";
const TICK: &str = "tick";

/// What a line of history says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HistoryLine {
    /// What the lines after it refer to: a bookmaker, a competition or a market.
    Register(News),
    Change {
        at: Timestamp,
        news: News,
        dropped: Vec<DroppedOutcome>,
    },
    /// A source went stale, or is no longer stale.
    Source {
        at: Timestamp,
        sport: SportId,
        bookmaker: Arc<str>,
        is_stale: bool,
    },
    /// A publication without a change of price.
    Tick {
        at: Timestamp,
        sport: SportId,
    },
}

/// Reads one line of history, with or without its line end.
pub fn read_history(line: &[u8], catalogue: &Catalogue) -> Result<HistoryLine, Rejection> {
    let line = parse(line)?;
    if Field::new("type", line.kind).string()? == SOURCE {
        return Ok(HistoryLine::Source {
            at: Field::new("as_of", line.as_of).time()?,
            sport: line.sport(catalogue)?.0,
            bookmaker: Arc::from(Field::new("bookmaker", line.bookmaker).key()?.as_ref()),
            is_stale: Field::new("stale", line.stale).boolean()?,
        });
    }
    if Field::new("type", line.kind).string()? == TICK {
        let at = Field::new("as_of", line.as_of).time()?;
        return Ok(HistoryLine::Tick { at, sport: line.sport(catalogue)?.0 });
    }
    let parsed = read_parsed(&line, catalogue)?;
    match parsed.news {
        News::AsOf(at, news) => Ok(HistoryLine::Change { at, news: *news, dropped: parsed.dropped }),
        news @ (News::Bookmaker(_) | News::Competition(_) | News::Market(_)) => Ok(HistoryLine::Register(news)),
        News::Event(_) | News::Odds(_) | News::Score(_) | News::Remove { .. } => Err(Rejection::new(
            Reason::MissingField,
            "\"as_of\" is missing: a line of history has the time of its change",
        )),
        _ => Err(Rejection::new(Reason::UnknownType, "history has no line of this type")),
    }
}

/// Appends the line of a publication without a change of price, line end included.
pub fn write_tick((at, sport): (Timestamp, SportId), catalogue: &Catalogue, out: &mut Vec<u8>) {
    let mut line = LineWriter { out, catalogue };
    line.start(TICK);
    line.sport(sport);
    line.time("as_of", at);
    line.raw("}\n");
}

/// Appends the line of a source that went stale or is no longer stale, line end included.
pub fn write_source(
    (at, sport): (Timestamp, SportId),
    (bookmaker, is_stale): (&str, bool),
    catalogue: &Catalogue,
    out: &mut Vec<u8>,
) {
    let mut line = LineWriter { out, catalogue };
    line.start(SOURCE);
    line.sport(sport);
    line.text("bookmaker", bookmaker);
    line.name(SOURCE);
    line.raw(if is_stale { "true" } else { "false" });
    line.time("as_of", at);
    line.raw("}\n");
}
