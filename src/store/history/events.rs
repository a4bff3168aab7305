//! Events and scores as bytes. Times are written as the distance to the second of their entry.

use std::sync::Arc;

use foldhash::HashMap;

use super::varint::{Cursor, put, put_signed, put_text};
use crate::model::{Contest, Event, EventId, EventStatus, Period, Score, ScoreStatus, Timestamp};
use crate::store::codec::Flaw;

const SIDES: u8 = 0;
const TOURNAMENT: u8 = 1;

const NO_WINNER: u8 = 0;
const HOME_WINS: u8 = 1;
const AWAY_WINS: u8 = 2;
const NAMED_WINNER: u8 = 3;

pub(super) fn put_time(time: Timestamp, at: Timestamp, out: &mut Vec<u8>) {
    put_signed(out, i64::from(at.unix()) - i64::from(time.unix()));
}

pub(super) fn read_time(at: Timestamp, cursor: &mut Cursor<'_>) -> Result<Timestamp, Flaw> {
    let seconds = i64::from(at.unix()).checked_sub(cursor.signed()?);
    seconds.and_then(Timestamp::checked_from_unix).ok_or(Flaw::Invalid("one of its times is invalid"))
}

/// Texts that many events of a sport share: written out once, and a number from then on.
#[derive(Clone, Debug, Default)]
pub(super) struct SharedTexts {
    numbers: HashMap<Arc<str>, u64>,
}

impl SharedTexts {
    pub(super) fn of(texts: &[Arc<str>]) -> Self {
        SharedTexts { numbers: texts.iter().cloned().zip(0..).collect() }
    }

    /// Writes the number of a text, and a new text behind it.
    pub(super) fn put(&mut self, text: &Arc<str>, out: &mut Vec<u8>) {
        let next = self.numbers.len() as u64;
        let number = *self.numbers.entry(Arc::clone(text)).or_insert(next);
        put(out, number);
        if number == next {
            put_text(out, text);
        }
    }
}

/// Reads the number of a text; a new text is added to `texts`.
pub(super) fn read_shared(texts: &mut Vec<Arc<str>>, cursor: &mut Cursor<'_>) -> Result<Arc<str>, Flaw> {
    let at = cursor.small::<usize>()?;
    if at == texts.len() {
        texts.push(cursor.text()?.into());
    }
    texts.get(at).cloned().ok_or(Flaw::Malformed)
}

pub(super) fn put_event(event: &Event, at: Timestamp, texts: &mut SharedTexts, out: &mut Vec<u8>) {
    put_text(out, event.id.as_str());
    texts.put(&event.competition, out);
    texts.put(&event.competition_key, out);
    put_time(event.commence, at, out);
    match &event.contest {
        Contest::Sides { home, away } => {
            out.push(SIDES);
            put_text(out, home);
            put_text(out, away);
        }
        Contest::Tournament { title } => {
            out.push(TOURNAMENT);
            put_text(out, title);
        }
    }
    out.push(event.status as u8);
}

/// The event as of the entry's second, which stands for the time of its last change.
pub(super) fn read_event(at: Timestamp, texts: &mut Vec<Arc<str>>, cursor: &mut Cursor<'_>) -> Result<Event, Flaw> {
    let id = EventId::new(cursor.text()?).ok_or(Flaw::Invalid("its event's id is invalid"))?;
    let (competition, competition_key) = (read_shared(texts, cursor)?, read_shared(texts, cursor)?);
    let commence = read_time(at, cursor)?;
    let contest = match cursor.byte()? {
        SIDES => Contest::Sides { home: cursor.text()?.into(), away: cursor.text()?.into() },
        TOURNAMENT => Contest::Tournament { title: cursor.text()?.into() },
        _ => return Err(Flaw::Malformed),
    };
    let status = read_status(cursor)?;
    Ok(Event { id, competition, competition_key, commence, contest, status, changed: at })
}

fn read_status(cursor: &mut Cursor<'_>) -> Result<EventStatus, Flaw> {
    let number = usize::from(cursor.byte()?);
    EventStatus::ALL.get(number).copied().ok_or(Flaw::Invalid("its status is unknown"))
}

const NEW_STATUS: u8 = 1;
const NEW_COMMENCE: u8 = 1 << 1;
/// Anything else: the whole event follows.
const NEW_EVENT: u8 = 1 << 2;

/// What is new of an event.
pub(super) fn put_event_change(
    before: &Event,
    after: &Event,
    at: Timestamp,
    texts: &mut SharedTexts,
    out: &mut Vec<u8>,
) {
    let Event { competition, competition_key, contest, .. } = after;
    if (&before.competition, &before.competition_key, &before.contest) != (competition, competition_key, contest) {
        out.push(NEW_EVENT);
        put_event(after, at, texts, out);
        return;
    }
    let flag = |is_new: bool, flag: u8| if is_new { flag } else { 0 };
    let (new_status, new_commence) = (before.status != after.status, before.commence != after.commence);
    out.push(flag(new_status, NEW_STATUS) | flag(new_commence, NEW_COMMENCE));
    if new_status {
        out.push(after.status as u8);
    }
    if new_commence {
        put_time(after.commence, at, out);
    }
}

pub(super) fn read_event_change(
    before: &Event,
    at: Timestamp,
    texts: &mut Vec<Arc<str>>,
    cursor: &mut Cursor<'_>,
) -> Result<Event, Flaw> {
    let flags = cursor.byte()?;
    if flags & NEW_EVENT != 0 {
        return read_event(at, texts, cursor);
    }
    let mut event = Event { changed: at, ..before.clone() };
    if flags & NEW_STATUS != 0 {
        event.status = read_status(cursor)?;
    }
    if flags & NEW_COMMENCE != 0 {
        event.commence = read_time(at, cursor)?;
    }
    Ok(event)
}

pub(super) fn put_score(event: &Event, score: &Score, at: Timestamp, out: &mut Vec<u8>) {
    let winner = match &score.winner {
        None => NO_WINNER,
        Some(winner) if event.home() == Some(winner) => HOME_WINS,
        Some(winner) if event.away() == Some(winner) => AWAY_WINS,
        Some(_) => NAMED_WINNER,
    };
    out.push(score.status.event_status() as u8 | u8::from(score.points.is_some()) << 2 | winner << 3);
    if let (NAMED_WINNER, Some(name)) = (winner, &score.winner) {
        put_text(out, name);
    }
    if let Some((home, away)) = score.points {
        put_signed(out, home.into());
        put_signed(out, away.into());
    }
    put(out, score.periods.len() as u64);
    for period in &score.periods {
        put(out, period.number.into());
        put_signed(out, period.home.into());
        put_signed(out, period.away.into());
    }
    put_time(score.updated, at, out);
}

pub(super) fn read_score(event: &Event, at: Timestamp, cursor: &mut Cursor<'_>) -> Result<Score, Flaw> {
    let flags = cursor.byte()?;
    let status = EventStatus::ALL.get(usize::from(flags & 3)).copied().and_then(ScoreStatus::of_event);
    let status = status.ok_or(Flaw::Invalid("the status of its score is unknown"))?;
    let winner = match flags >> 3 {
        NO_WINNER => None,
        HOME_WINS => Some(Arc::clone(event.home().ok_or(Flaw::Malformed)?)),
        AWAY_WINS => Some(Arc::clone(event.away().ok_or(Flaw::Malformed)?)),
        NAMED_WINNER => Some(cursor.text()?.into()),
        _ => return Err(Flaw::Malformed),
    };
    let points = if flags & 4 != 0 { Some((cursor.small_signed()?, cursor.small_signed()?)) } else { None };
    let count = cursor.count()?;
    if count > Score::PERIODS_MAX {
        return Err(Flaw::Invalid("its score has too many periods"));
    }
    let mut periods = Vec::with_capacity(count);
    for _ in 0..count {
        let number = cursor.small()?;
        periods.push(Period { number, home: cursor.small_signed()?, away: cursor.small_signed()? });
    }
    Ok(Score { status, points, periods: periods.into(), winner, updated: read_time(at, cursor)? })
}
