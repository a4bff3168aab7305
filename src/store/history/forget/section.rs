//! An event taken out of the section of an entry, byte by byte: everything else stays as it was written.
//!
//! Later entries depend on the numbers that this one gave to events, bookmakers, markets and texts. So a change of an
//! event leaves a mark with the number that it took and the texts that it was the first to mention, and a change of a
//! record that was the first to mention a bookmaker or a market leaves these.

use crate::model::{EventId, Timestamp};
use crate::store::codec::Flaw;
use crate::store::history::encode::{FORGOTTEN, LastChange, OTHER_BOOK, SKIPPED};
use crate::store::history::entry::LoggedChange;
use crate::store::history::fold::SportFold;
use crate::store::history::row::SectionView;
use crate::store::history::varint::{Cursor, put, put_text};

/// A section without the event.
#[derive(Debug, Default)]
pub(in crate::store::history) struct Rewritten {
    pub(in crate::store::history) bytes: Vec<u8>,
    /// How many changes it has lost.
    pub(super) lost: u64,
}

impl SportFold {
    /// Removes an event; returns whether it was there. The numbers of everything else stay.
    pub(in crate::store::history) fn remove_event(&mut self, id: &EventId) -> bool {
        let before = self.events.len();
        self.events.retain(|_, event| event.event.id != *id);
        self.events.len() < before
    }

    /// Applies a section of an entry of second `at`, and returns it without an event.
    pub(in crate::store::history) fn rewrite(
        &mut self,
        section: &SectionView<'_>,
        at: Timestamp,
        id: &EventId,
    ) -> Result<Rewritten, Flaw> {
        if section.is_first {
            *self = SportFold::default();
        }
        let mut rewritten = Rewritten::default();
        let mut cursor = Cursor::new(section.bytes);
        let count = cursor.count()?;
        put(&mut rewritten.bytes, count as u64);
        for _ in 0..count {
            self.rewrite_event_change((at, id), &mut cursor, &mut rewritten)?;
        }
        if let Some(tick) = section.tick {
            self.last_tick = Some(tick);
            let before = cursor.rest();
            self.sources(&mut cursor)?;
            rewritten.bytes.extend_from_slice(&before[..before.len() - cursor.rest().len()]);
            let (mut last, mut last_kept) = (LastChange::default(), LastChange::default());
            while !cursor.is_empty() {
                self.rewrite_record((tick, id), (&mut last, &mut last_kept), &mut cursor, &mut rewritten)?;
            }
        }
        if cursor.is_empty() { Ok(rewritten) } else { Err(Flaw::Malformed) }
    }

    fn rewrite_event_change(
        &mut self,
        (at, id): (Timestamp, &EventId),
        cursor: &mut Cursor<'_>,
        rewritten: &mut Rewritten,
    ) -> Result<(), Flaw> {
        let (before, number, texts) = (cursor.rest(), self.next_event, self.texts.len());
        let is_of_event = match self.event_change(at, cursor)? {
            None => false,
            Some(LoggedChange::Event(event, ..) | LoggedChange::Score(event, _) | LoggedChange::Removed(event)) => {
                event.id == *id
            }
            Some(LoggedChange::Tick(_)) => return Err(Flaw::Malformed),
        };
        if !is_of_event {
            rewritten.bytes.extend_from_slice(&before[..before.len() - cursor.rest().len()]);
            return Ok(());
        }
        rewritten.lost += 1;
        rewritten.bytes.push(FORGOTTEN);
        rewritten.bytes.push(u8::from(self.next_event > number));
        put(&mut rewritten.bytes, (self.texts.len() - texts) as u64);
        self.texts[texts..].iter().for_each(|text| put_text(&mut rewritten.bytes, text));
        Ok(())
    }

    /// `last` is the change before in the section as it was, and in the section as it will be.
    fn rewrite_record(
        &mut self,
        (at, id): (Timestamp, &EventId),
        (last, last_kept): (&mut LastChange, &mut LastChange),
        cursor: &mut Cursor<'_>,
        rewritten: &mut Rewritten,
    ) -> Result<(), Flaw> {
        let (books, markets) = (self.books.len(), self.markets.len());
        let head = self.record_head(last, cursor)?;
        let new_book = self.books.get(books).cloned();
        let new_market = self.markets.get(markets).map(|market| market.key());
        let out = &mut rewritten.bytes;
        let body = cursor.rest();
        let is_of_event = match head {
            // Of an event whose history was deleted before.
            None => true,
            Some(head) => {
                let is_of_event = self.record(at, head, cursor)?.event.id == *id;
                rewritten.lost += u64::from(is_of_event);
                is_of_event
            }
        };
        if let Some(head) = head.filter(|_| !is_of_event) {
            head.put(last_kept, (new_book.as_deref(), new_market), out);
            out.extend_from_slice(&body[..body.len() - cursor.rest().len()]);
        } else if new_book.is_some() || new_market.is_some() {
            put_skipped((books, new_book.as_deref()), (markets, new_market), last_kept, out);
        }
        Ok(())
    }
}

/// Mentions a new bookmaker, a new market, or both.
fn put_skipped(
    (books, new_book): (usize, Option<&str>),
    (markets, new_market): (usize, Option<&str>),
    last: &mut LastChange,
    out: &mut Vec<u8>,
) {
    out.push(SKIPPED | if new_book.is_some() { OTHER_BOOK } else { 0 });
    if let Some(key) = new_book {
        put(out, books as u64);
        put_text(out, key);
        last.book = u32::try_from(books).ok();
    }
    // Without a new one, any that is known does; the first of all is there before a record can be.
    put(out, if new_market.is_some() { markets as u64 } else { 0 });
    if let Some(key) = new_market {
        put_text(out, key);
    }
}
