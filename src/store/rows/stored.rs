//! What every row says of itself to the walks over all tables: what it refers to, what others may refer to it as, and
//! whether the model accepts it.

use crate::model::market::KeyParts;
use crate::model::sport::{is_competition_key, is_key};
use crate::store::codec::{
    AuditRow, BookRow, BudgetRow, CatalogueRow, CompetitionRow, EventRow, FeederRow, Flaw, KeyRow, LineKeyRow,
    MarketRow, MetaRow, NameRow, OddsRow, PollRow, RecentUseRow, Row, ScoreRow, SourceRow, SportRow, UsageRow,
};
use crate::store::history::{EndsRow, Frame, KeyframeRow, LineRow, LogRow, SportFold};
use crate::store::id_maps::NamesByNumber;
use crate::store::table_keys::{
    BookKey, EventKey, KeyframeKey, LineKey, LogKey, NamedKey, OddsKey, PollKey, SourceKey, TableKey,
};
use crate::store::tables::{META_IMPORTS, META_MAINTENANCE, META_MEMBERSHIP, RowReference, is_meta_log, meta_use_of};

/// A thing that exists because of a row.
#[derive(Debug)]
pub(in crate::store) enum Definition {
    Sport { number: u16, key: String },
    Book { key: BookKey, name: String },
    Name { number: u32, text: String },
    Event { key: EventKey, id: String, commence: u32 },
    OpenRecord(OddsKey),
    ApiKey(String),
}

/// A row under a key of type `K`.
pub(in crate::store) trait StoredRow<K: TableKey>: Row {
    /// Reports everything that the key and the row refer to, in the order in which a check is to follow it.
    fn references(&self, _key: &K::SelfType<'_>, _report: &mut dyn FnMut(RowReference<'_>)) {}

    fn defines(&self, _key: &K::SelfType<'_>) -> Option<Definition> {
        None
    }

    /// Whether the model accepts the row. References other than names are not looked at.
    fn validate(self, key: &K::SelfType<'_>, names: &NamesByNumber) -> Result<(), Flaw>;
}

impl StoredRow<&'static str> for MetaRow {
    fn validate(self, key: &&str, _: &NamesByNumber) -> Result<(), Flaw> {
        match meta_use_of(key) {
            Some(feeder) => feeder.and_then(|_| self.feeder_use().map(|_| ())),
            None if *key == META_MAINTENANCE => self.maintenance().map(|_| ()),
            None if *key == META_MEMBERSHIP => self.membership().map(|_| ()),
            None if is_meta_log(key) => self.log().map(|_| ()),
            None if *key == META_IMPORTS => self.imports().map(|_| ()),
            None => Ok(()),
        }
    }
}

impl StoredRow<u16> for CatalogueRow {
    fn validate(self, _: &u16, _: &NamesByNumber) -> Result<(), Flaw> {
        Ok(())
    }
}

impl StoredRow<u64> for AuditRow {
    fn validate(self, _: &u64, _: &NamesByNumber) -> Result<(), Flaw> {
        Ok(())
    }
}

impl StoredRow<u16> for SportRow {
    fn defines(&self, number: &u16) -> Option<Definition> {
        Some(Definition::Sport { number: *number, key: self.key.clone() })
    }

    fn validate(self, _: &u16, _: &NamesByNumber) -> Result<(), Flaw> {
        if is_key(&self.key) { Ok(()) } else { Err(Flaw::Invalid("its key is invalid")) }
    }
}

impl StoredRow<BookKey> for BookRow {
    fn references(&self, key: &BookKey, report: &mut dyn FnMut(RowReference<'_>)) {
        report(RowReference::World(key.0));
    }

    fn defines(&self, key: &BookKey) -> Option<Definition> {
        Some(Definition::Book { key: *key, name: self.key.clone() })
    }

    fn validate(self, _: &BookKey, _: &NamesByNumber) -> Result<(), Flaw> {
        self.bookmaker().map(|_| ())
    }
}

impl StoredRow<u32> for NameRow {
    fn defines(&self, number: &u32) -> Option<Definition> {
        Some(Definition::Name { number: *number, text: self.0.clone() })
    }

    fn validate(self, _: &u32, _: &NamesByNumber) -> Result<(), Flaw> {
        Ok(())
    }
}

impl StoredRow<NamedKey> for CompetitionRow {
    fn references(&self, (world, _): &(u8, &str), report: &mut dyn FnMut(RowReference<'_>)) {
        report(RowReference::World(*world));
        report(RowReference::Sport(self.sport));
    }

    fn validate(self, (_, key): &(u8, &str), _: &NamesByNumber) -> Result<(), Flaw> {
        if is_competition_key(key) { Ok(()) } else { Err(Flaw::Invalid("its key is invalid")) }
    }
}

impl StoredRow<NamedKey> for MarketRow {
    fn references(&self, (world, _): &(u8, &str), report: &mut dyn FnMut(RowReference<'_>)) {
        report(RowReference::World(*world));
    }

    fn validate(self, (_, key): &(u8, &str), _: &NamesByNumber) -> Result<(), Flaw> {
        if KeyParts::split(key).is_some() { Ok(()) } else { Err(Flaw::Invalid("its key is invalid")) }
    }
}

impl StoredRow<EventKey> for EventRow {
    fn references(&self, key: &EventKey, report: &mut dyn FnMut(RowReference<'_>)) {
        report(RowReference::World(key.0));
        report(RowReference::Sport(key.1));
        for number in self.name_numbers() {
            report(RowReference::Name(number));
        }
    }

    fn defines(&self, key: &EventKey) -> Option<Definition> {
        Some(Definition::Event { key: *key, id: self.id.clone(), commence: self.commence })
    }

    fn validate(self, _: &EventKey, names: &NamesByNumber) -> Result<(), Flaw> {
        self.owner(names)?;
        self.event(names).map(|_| ())
    }
}

impl StoredRow<EventKey> for ScoreRow {
    fn references(&self, key: &EventKey, report: &mut dyn FnMut(RowReference<'_>)) {
        report(RowReference::Event(*key));
        if let Some(number) = self.winner {
            report(RowReference::Name(number));
        }
    }

    fn validate(self, _: &EventKey, names: &NamesByNumber) -> Result<(), Flaw> {
        self.score(names).map(|_| ())
    }
}

impl StoredRow<OddsKey> for OddsRow {
    fn references(&self, key: &OddsKey, report: &mut dyn FnMut(RowReference<'_>)) {
        let (world, sport, event, book, market) = *key;
        report(RowReference::Event((world, sport, event)));
        report(RowReference::Book((world, book)));
        report(RowReference::Name(market));
        for outcome in &self.outcomes {
            report(RowReference::Name(outcome.name));
        }
    }

    fn defines(&self, key: &OddsKey) -> Option<Definition> {
        (!self.outcomes.is_empty()).then_some(Definition::OpenRecord(*key))
    }

    fn validate(self, key: &OddsKey, names: &NamesByNumber) -> Result<(), Flaw> {
        names.market_key(key.4)?;
        self.outcomes(names).map(|_| ())
    }
}

impl StoredRow<SourceKey> for SourceRow {
    fn references(&self, (world, sport, book): &SourceKey, report: &mut dyn FnMut(RowReference<'_>)) {
        report(RowReference::Sport(*sport));
        report(RowReference::Book((*world, *book)));
    }

    fn validate(self, _: &SourceKey, _: &NamesByNumber) -> Result<(), Flaw> {
        Ok(())
    }
}

impl StoredRow<PollKey> for PollRow {
    fn references(&self, (world, _, _): &(u8, &str, &str), report: &mut dyn FnMut(RowReference<'_>)) {
        report(RowReference::World(*world));
        match self {
            PollRow::Scope { books, .. } => {
                for number in books {
                    report(RowReference::BookIfPresent((*world, *number)));
                }
            }
            PollRow::Event { records } => {
                for (number, market) in records {
                    report(RowReference::BookIfPresent((*world, *number)));
                    report(RowReference::Name(*market));
                }
            }
        }
    }

    fn validate(self, (_, _, event): &(u8, &str, &str), _: &NamesByNumber) -> Result<(), Flaw> {
        let is_scope = matches!(self, PollRow::Scope { .. });
        if is_scope == event.is_empty() { Ok(()) } else { Err(Flaw::Invalid("it is not what its key says")) }
    }
}

impl StoredRow<&'static str> for KeyRow {
    fn defines(&self, id: &&str) -> Option<Definition> {
        Some(Definition::ApiKey((*id).to_owned()))
    }

    fn validate(self, id: &&str, _: &NamesByNumber) -> Result<(), Flaw> {
        self.key(id).map(|_| ())
    }
}

impl StoredRow<&'static str> for FeederRow {
    fn validate(self, name: &&str, _: &NamesByNumber) -> Result<(), Flaw> {
        self.feeder(name).map(|_| ())
    }
}

impl StoredRow<&'static str> for BudgetRow {
    fn validate(self, _: &&str, _: &NamesByNumber) -> Result<(), Flaw> {
        Ok(())
    }
}

impl StoredRow<&'static str> for UsageRow {
    fn references(&self, id: &&str, report: &mut dyn FnMut(RowReference<'_>)) {
        report(RowReference::ApiKey(id));
    }

    fn validate(self, _: &&str, _: &NamesByNumber) -> Result<(), Flaw> {
        Ok(())
    }
}

impl StoredRow<&'static str> for RecentUseRow {
    fn references(&self, id: &&str, report: &mut dyn FnMut(RowReference<'_>)) {
        report(RowReference::ApiKey(id));
    }

    fn validate(self, _: &&str, _: &NamesByNumber) -> Result<(), Flaw> {
        self.recent_use().map(|_| ())
    }
}

impl StoredRow<LogKey> for LogRow {
    fn validate(self, _: &LogKey, _: &NamesByNumber) -> Result<(), Flaw> {
        self.entries()?.iter().try_for_each(|entry| entry.view().map(|_| ()))
    }
}

impl StoredRow<KeyframeKey> for KeyframeRow {
    fn references(&self, (_, sport, _): &KeyframeKey, report: &mut dyn FnMut(RowReference<'_>)) {
        report(RowReference::Sport(*sport));
    }

    fn validate(self, _: &KeyframeKey, _: &NamesByNumber) -> Result<(), Flaw> {
        match self.view()?.1 {
            Frame::Whole(bytes) => SportFold::from_keyframe(bytes).map(|_| ()),
            Frame::SameAs(_) => Ok(()),
        }
    }
}

impl StoredRow<u32> for LineKeyRow {
    fn validate(self, _: &u32, _: &NamesByNumber) -> Result<(), Flaw> {
        Ok(())
    }
}

impl StoredRow<EventKey> for EndsRow {
    fn references(&self, (_, sport, _): &EventKey, report: &mut dyn FnMut(RowReference<'_>)) {
        report(RowReference::Sport(*sport));
    }

    fn validate(self, _: &EventKey, _: &NamesByNumber) -> Result<(), Flaw> {
        self.check()
    }
}

impl StoredRow<LineKey> for LineRow {
    fn references(&self, (_, sport, ..): &LineKey, report: &mut dyn FnMut(RowReference<'_>)) {
        report(RowReference::Sport(*sport));
    }

    /// A piece means nothing without the others: whether a block can be read is checked with its index.
    fn validate(self, _: &LineKey, _: &NamesByNumber) -> Result<(), Flaw> {
        if self.0.is_empty() { Err(Flaw::Short) } else { Ok(()) }
    }
}
