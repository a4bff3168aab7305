//! News as the lines of an entry.

use std::io;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::EntryError;
use crate::ingest::wire;
use crate::model::{Bookmaker, Catalogue, News, Region, Regions};

/// Begins the line of a bookmaker as a payload lists it. A feed line declares one, which counts for more.
const LISTED: u8 = b'+';

/// A bookmaker as a payload lists it, perhaps without a region.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ListedFields {
    key: Box<str>,
    title: Box<str>,
    regions: Vec<String>,
}

impl ListedFields {
    fn of(book: &Bookmaker) -> Self {
        let regions = book.regions.iter().map(|region| region.key().to_owned()).collect();
        ListedFields { key: book.key.clone(), title: book.title.clone(), regions }
    }

    fn bookmaker(self) -> Option<Bookmaker> {
        let regions: Option<Regions> = self.regions.iter().map(|region| Region::parse(region)).collect();
        Some(Bookmaker { key: self.key, title: self.title, regions: regions? })
    }
}

pub(super) fn write(news: &News, catalogue: &Catalogue, out: &mut Vec<u8>) {
    let News::Listed(book) = news else { return wire::write(news, catalogue, out) };
    out.push(LISTED);
    // Writing to memory cannot fail.
    let _ = serde_json::to_writer(&mut *out, &ListedFields::of(book));
    out.push(b'\n');
}

fn read(line: &[u8], catalogue: &Catalogue) -> io::Result<News> {
    let invalid = |reason: String| io::Error::new(io::ErrorKind::InvalidData, reason);
    let Some(listed) = line.strip_prefix(&[LISTED]) else {
        return wire::read(line, catalogue).map(|line| line.news).map_err(|rejection| invalid(rejection.to_string()));
    };
    let fields: ListedFields = serde_json::from_slice(listed)?;
    fields.bookmaker().map(News::Listed).ok_or_else(|| invalid("a region of a bookmaker is not known".to_owned()))
}

/// The news of an entry, read one at a time.
#[derive(Debug)]
pub(super) struct NewsLines {
    text: Vec<u8>,
    next: usize,
    catalogue: Arc<Catalogue>,
}

impl NewsLines {
    /// From a place in the text on.
    pub(super) fn new(text: Vec<u8>, next: usize, catalogue: &Arc<Catalogue>) -> Self {
        NewsLines { text, next, catalogue: Arc::clone(catalogue) }
    }

    /// All that are left.
    pub(super) fn list(self) -> Result<Vec<News>, EntryError> {
        self.collect::<io::Result<_>>().map_err(EntryError::unreadable)
    }
}

impl Iterator for NewsLines {
    type Item = io::Result<News>;

    fn next(&mut self) -> Option<io::Result<News>> {
        let rest = self.text.get(self.next..).filter(|rest| !rest.is_empty())?;
        let len = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
        let news = read(&rest[..len], &self.catalogue);
        self.next += len + 1;
        Some(news)
    }
}
