//! The texts of an event's outcomes: written out once for each event, and a number from then on. Most outcomes need none,
//! as they are called after a side of the event or by one of a few words.

use std::sync::{Arc, LazyLock};

use foldhash::HashMap;

use super::varint::{Cursor, put, put_text};
use crate::model::{Event, OutcomeName};
use crate::store::codec::Flaw;

/// The numbers of the two sides.
const HOME: u64 = 0;
const AWAY: u64 = 1;
/// Words that follow the sides. New ones go to the end of [`TextNumbers`], never in here.
static WORDS: LazyLock<[Arc<str>; 5]> = LazyLock::new(|| ["Draw", "Over", "Under", "Yes", "No"].map(Arc::from));
const FIRST_WORD: u64 = 2;
const FIRST_TEXT: u64 = FIRST_WORD + 5;

/// The sides that outcomes may be called after.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sides<'e> {
    home: Option<&'e Arc<str>>,
    away: Option<&'e Arc<str>>,
}

impl<'e> Sides<'e> {
    /// For names that must not change with those of the event.
    pub(super) const NONE: Sides<'static> = Sides { home: None, away: None };

    pub(super) fn of(event: &'e Event) -> Self {
        Sides { home: event.home(), away: event.away() }
    }
}

/// Texts by their number, to write.
#[derive(Clone, Debug, Default)]
pub(super) struct TextNumbers {
    numbers: HashMap<Arc<str>, u64>,
}

impl TextNumbers {
    pub(super) fn of(texts: &[Arc<str>]) -> Self {
        TextNumbers { numbers: texts.iter().cloned().zip(FIRST_TEXT..).collect() }
    }

    /// Gives the texts of a name numbers, and returns those that had none.
    pub(super) fn know(&mut self, name: &OutcomeName) -> Vec<Arc<str>> {
        let texts = match name.description() {
            None => vec![Arc::clone(name.as_stored())],
            Some(description) => vec![Arc::from(name.as_str()), Arc::from(description)],
        };
        let mut new = Vec::new();
        for text in texts {
            if side_or_word(Sides::NONE, &text).is_none() && !self.numbers.contains_key(&text) {
                self.numbers.insert(Arc::clone(&text), FIRST_TEXT + self.numbers.len() as u64);
                new.push(text);
            }
        }
        new
    }

    /// Writes the name of an outcome, with its description if it has one.
    pub(super) fn put_name(&mut self, sides: Sides<'_>, name: &OutcomeName, out: &mut Vec<u8>) {
        match name.description() {
            None => self.put(sides, name.as_stored(), 0, out),
            Some(description) => {
                self.put(sides, &Arc::from(name.as_str()), 1, out);
                self.put(sides, &Arc::from(description), 0, out);
            }
        }
    }

    /// Writes the number of a text above a flag, and a new text behind its number.
    fn put(&mut self, sides: Sides<'_>, text: &Arc<str>, flag: u64, out: &mut Vec<u8>) {
        let next = FIRST_TEXT + self.numbers.len() as u64;
        let known = side_or_word(sides, text).or_else(|| self.numbers.get(text).copied());
        put(out, known.unwrap_or(next) << 1 | flag);
        if known.is_none() {
            put_text(out, text);
            self.numbers.insert(Arc::clone(text), next);
        }
    }
}

fn side_or_word(sides: Sides<'_>, text: &Arc<str>) -> Option<u64> {
    let is = |side: Option<&Arc<str>>| side.is_some_and(|side| side == text);
    if is(sides.home) {
        return Some(HOME);
    }
    if is(sides.away) {
        return Some(AWAY);
    }
    (FIRST_WORD..).zip(&*WORDS).find(|(_, word)| *word == text).map(|(number, _)| number)
}

/// Reads a name; a new text is added to `texts`.
#[inline]
pub(super) fn read_name(
    sides: Sides<'_>,
    texts: &mut Vec<Arc<str>>,
    cursor: &mut Cursor<'_>,
) -> Result<OutcomeName, Flaw> {
    let (name, has_description) = read(sides, texts, cursor)?;
    if !has_description {
        return Ok(OutcomeName::from_stored(name));
    }
    let (description, _) = read(sides, texts, cursor)?;
    Ok(OutcomeName::new(&name, Some(&description)))
}

#[inline]
fn read(sides: Sides<'_>, texts: &mut Vec<Arc<str>>, cursor: &mut Cursor<'_>) -> Result<(Arc<str>, bool), Flaw> {
    let code = cursor.number()?;
    let (number, flag) = (code >> 1, code & 1 == 1);
    let text = match number {
        HOME => Arc::clone(sides.home.ok_or(Flaw::Malformed)?),
        AWAY => Arc::clone(sides.away.ok_or(Flaw::Malformed)?),
        FIRST_WORD..FIRST_TEXT => {
            let at = usize::try_from(number - FIRST_WORD).map_err(|_| Flaw::Malformed)?;
            Arc::clone(WORDS.get(at).ok_or(Flaw::Malformed)?)
        }
        _ => {
            let at = usize::try_from(number - FIRST_TEXT).map_err(|_| Flaw::Malformed)?;
            if at == texts.len() {
                texts.push(cursor.text()?.into());
            }
            Arc::clone(texts.get(at).ok_or(Flaw::Malformed)?)
        }
    };
    Ok((text, flag))
}
