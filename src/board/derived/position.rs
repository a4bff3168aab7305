//! The order of rows, and the cursor between two pages.

use std::cmp::Ordering;

use super::bet::BetKey;
use crate::board::node::EventNode;
use crate::board::query::Cursor;
use crate::model::{EventId, Market, Point, Timestamp};

/// Where a row stands in its list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RowPosition {
    /// What the list is ordered by first; the same for all rows of a list in the order of events.
    pub rank: i64,
    pub commence: Timestamp,
    pub event: EventId,
    pub market: Box<str>,
    pub bet: BetPosition,
    /// The bookmaker and the outcome, where a row is about one price.
    pub leg: (Box<str>, Box<str>),
}

/// A [`BetKey`] of its own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BetPosition {
    pub point: Option<Point>,
    pub description: Option<Box<str>>,
    pub name: Box<str>,
    pub hash: u64,
}

impl BetPosition {
    pub(super) fn of(key: &BetKey<'_>) -> Self {
        let BetKey { point, description, name, hash } = *key;
        BetPosition { point, description: description.map(Box::from), name: name.into(), hash }
    }

    pub(super) fn is(&self, key: &BetKey<'_>) -> bool {
        self.key() == *key
    }

    pub(super) fn key(&self) -> BetKey<'_> {
        let BetPosition { point, description, name, hash } = self;
        BetKey { point: *point, description: description.as_deref(), name, hash: *hash }
    }
}

impl Ord for RowPosition {
    fn cmp(&self, other: &Self) -> Ordering {
        let schedule = |row: &Self| (row.rank, row.commence);
        let within = |row: &Self| (row.bet.clone(), row.leg.clone());
        schedule(self)
            .cmp(&schedule(other))
            .then_with(|| self.event.cmp(&other.event))
            .then_with(|| Market::cmp_keys(&self.market, &other.market))
            .then_with(|| within(self).cmp(&within(other)))
    }
}

impl PartialOrd for RowPosition {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Separates the parts in a cursor, and stands for a space there. Names have no control characters.
const SEPARATOR: char = '\u{2}';
const SPACE: char = '\u{1}';

impl RowPosition {
    /// Of a row that is about a whole bet.
    pub(super) fn new(rank: i64, node: &EventNode, market: Market, key: &BetKey<'_>) -> Self {
        let event = node.event();
        RowPosition {
            rank,
            commence: event.commence,
            event: event.id.clone(),
            market: market.key().into(),
            bet: BetPosition::of(key),
            leg: Default::default(),
        }
    }

    pub(super) fn cursor(&self) -> Cursor {
        let BetPosition { point, description, name, hash } = &self.bet;
        let parts = [
            self.rank.to_string(),
            point.map(|point| point.milli().to_string()).unwrap_or_default(),
            description.as_ref().map(|text| format!("={text}")).unwrap_or_default(),
            name.to_string(),
            hash.to_string(),
            self.leg.0.to_string(),
            self.leg.1.to_string(),
        ];
        let text = parts.join(&SEPARATOR.to_string()).replace(' ', &SPACE.to_string());
        Cursor { commence: self.commence, event: self.event.clone(), record: Some((text.into(), self.market.clone())) }
    }

    /// `None` if the cursor is of another list.
    pub(super) fn of_cursor(cursor: &Cursor) -> Option<Self> {
        let (text, market) = cursor.record.as_ref()?;
        let text = text.replace(SPACE, " ");
        let mut parts = text.split(SEPARATOR);
        let mut next = || parts.next();
        let rank = next()?.parse().ok()?;
        let point = match next()? {
            "" => None,
            milli => Some(Point::from_milli(milli.parse().ok()?)?),
        };
        let description = match next()? {
            "" => None,
            text => Some(text.strip_prefix('=')?.into()),
        };
        let (name, hash) = (next()?.into(), next()?.parse().ok()?);
        let leg = (next()?.into(), next()?.into());
        let is_end = next().is_none();
        is_end.then(|| RowPosition {
            rank,
            commence: cursor.commence,
            event: cursor.event.clone(),
            market: market.clone(),
            bet: BetPosition { point, description, name, hash },
            leg,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_come_back() {
        for (description, leg) in [(None, ("", "")), (Some("A. Player"), ("bet mgm", "Over the top"))] {
            let position = RowPosition {
                rank: -12_345,
                commence: Timestamp::from_unix(17),
                event: EventId::new("e-1").unwrap(),
                market: "player_points".into(),
                bet: BetPosition {
                    point: Point::from_milli(-3500),
                    description: description.map(Box::from),
                    name: "First Last".into(),
                    hash: u64::MAX,
                },
                leg: (leg.0.into(), leg.1.into()),
            };
            let text = position.cursor().to_text();
            assert_eq!(RowPosition::of_cursor(&Cursor::parse(&text).unwrap()), Some(position));
        }
        let of_odds = ("betmgm".into(), "moneyline".into());
        let event = EventId::new("e").unwrap();
        for record in [None, Some(of_odds)] {
            let cursor = Cursor { commence: Timestamp::from_unix(17), event: event.clone(), record };
            assert_eq!(RowPosition::of_cursor(&cursor), None);
        }
    }
}
