//! Bookmakers, and the register that assigns each a small number within its world.

use std::sync::Arc;

use super::region::Regions;

/// A bookmaker and where it is offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bookmaker {
    pub key: Box<str>,
    pub title: Box<str>,
    pub regions: Regions,
}

/// A bookmaker's number in its world's register. Internal to one database file: it never appears in a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BookId(u16);

impl BookId {
    pub const fn from_number(number: u16) -> Self {
        BookId(number)
    }

    pub const fn number(self) -> u16 {
        self.0
    }

    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The bookmakers of a world. Numbers are never reused, so an old snapshot can be read with a newer register.
#[derive(Clone, Debug, Default)]
pub struct Bookmakers {
    /// Indexed by number; `None` where the bookmaker was removed.
    books: Vec<Option<Arc<Bookmaker>>>,
    /// Sorted by key, for ordered iteration and binary search.
    by_key: Vec<BookId>,
}

impl Bookmakers {
    /// The maximum number of bookmakers that a world may ever declare; each costs a bit in every index entry.
    pub const MAX: usize = 4096;

    pub fn get(&self, id: BookId) -> Option<&Arc<Bookmaker>> {
        self.books.get(id.index())?.as_ref()
    }

    /// The bookmaker's key, or an empty string if its number is not in the register.
    pub fn key(&self, id: BookId) -> &str {
        self.get(id).map_or("", |book| &book.key)
    }

    pub fn find(&self, key: &str) -> Option<BookId> {
        let at = self.by_key.binary_search_by(|id| self.key(*id).cmp(key)).ok()?;
        Some(self.by_key[at])
    }

    /// All bookmakers, ordered by key.
    pub fn iter(&self) -> impl Iterator<Item = (BookId, &Arc<Bookmaker>)> {
        self.by_key.iter().filter_map(|id| Some((*id, self.get(*id)?)))
    }

    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// The number for the next new bookmaker; `None` if the register is full.
    pub fn next_id(&self) -> Option<BookId> {
        let next = self.books.len();
        if next >= Self::MAX { None } else { u16::try_from(next).ok().map(BookId) }
    }

    /// Inserts or replaces the bookmaker with this number.
    pub fn put(&mut self, id: BookId, book: Arc<Bookmaker>) {
        self.remove(id);
        if self.books.len() <= id.index() {
            self.books.resize(id.index() + 1, None);
        }
        let at = self.by_key.partition_point(|other| *self.key(*other) < *book.key);
        self.by_key.insert(at, id);
        self.books[id.index()] = Some(book);
    }

    /// Removes a bookmaker. Its number stays used.
    pub fn remove(&mut self, id: BookId) {
        if self.get(id).is_some() {
            self.by_key.retain(|other| *other != id);
            self.books[id.index()] = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Region;

    fn book(key: &str) -> Arc<Bookmaker> {
        Arc::new(Bookmaker { key: key.into(), title: key.into(), regions: Regions::only(Region::Us) })
    }

    #[test]
    fn finds_by_key_and_lists_in_order() {
        let mut books = Bookmakers::default();
        for (number, key) in [(0, "unibet"), (1, "betmgm"), (3, "coral")] {
            books.put(BookId::from_number(number), book(key));
        }
        assert_eq!(books.find("coral"), Some(BookId::from_number(3)));
        assert_eq!(books.find("unknown"), None);
        assert_eq!(books.iter().map(|(_, b)| &*b.key).collect::<Vec<_>>(), ["betmgm", "coral", "unibet"]);
        assert_eq!(books.next_id(), Some(BookId::from_number(4)));

        books.remove(BookId::from_number(3));
        assert_eq!(books.find("coral"), None);
        assert_eq!(books.next_id(), Some(BookId::from_number(4)), "a number is never reused");
    }
}
