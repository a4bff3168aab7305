//! The parameters of a view, as its page sends them.

use std::borrow::Cow;

use crate::admin::{Context, Failure};
use crate::board::{Cursor, EventIds, EventScope};
use crate::http::percent::{self, Plus};
use crate::model::{EventId, Market, OddsFormat, Region, Regions, SportId, Timestamp, World};

#[derive(Clone, Copy, Debug)]
pub(super) struct Given<'q>(pub Option<&'q str>);

impl<'q> Given<'q> {
    pub(super) fn get(&self, name: &str) -> Option<&'q str> {
        let mut pairs = self.0?.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(sent, value)| *sent == name && !value.is_empty()).map(|(_, value)| value)
    }

    pub(super) fn text(&self, name: &str) -> Option<Cow<'q, str>> {
        percent::decode(self.get(name)?, Plus::Space)
    }

    pub(super) fn world(&self) -> Result<World, Failure> {
        self.get("world").and_then(World::parse).ok_or_else(|| Failure::bad_request("world takes live or sandbox"))
    }

    pub(super) fn market(&self) -> Result<Market, Failure> {
        self.get("market").and_then(Market::find).ok_or_else(|| Failure::bad_request("market takes a market key"))
    }

    pub(super) fn sport(&self, context: &Context) -> Result<SportId, Failure> {
        let sport = self.get("sport").and_then(|key| context.boards.catalogue().find(key));
        sport.ok_or_else(|| Failure::bad_request("sport takes a sport key"))
    }

    pub(super) fn format(&self) -> Result<OddsFormat, Failure> {
        let format = self.get("odds_format").and_then(OddsFormat::parse);
        format.ok_or_else(|| Failure::bad_request("odds_format takes american, decimal or fractional"))
    }

    pub(super) fn regions(&self) -> Result<Regions, Failure> {
        let regions = self.get("regions").and_then(|text| text.split(',').map(Region::parse).collect());
        regions.ok_or_else(|| Failure::bad_request("regions takes regions such as us and uk, separated by commas"))
    }

    /// Without `regions`, wherever a bookmaker is offered.
    pub(super) fn regions_or_all(&self) -> Result<Option<Regions>, Failure> {
        self.get("regions").map(|_| self.regions()).transpose()
    }

    /// Without `event_ids`, all events.
    pub(super) fn scope(&self) -> Result<EventScope, Failure> {
        let events = self.get("event_ids").map(|_| self.events()).transpose()?;
        Ok(EventScope { events, ..EventScope::default() })
    }

    pub(super) fn events(&self) -> Result<EventIds, Failure> {
        let bad = || Failure::bad_request("event_ids takes up to 100 event ids, separated by commas");
        let text = percent::decode(self.get("event_ids").unwrap_or_default(), Plus::Space).ok_or_else(bad)?;
        let ids: Vec<EventId> = text.split(',').take(EventIds::MAX + 1).filter_map(EventId::new).collect();
        if ids.len() > EventIds::MAX { Err(bad()) } else { Ok(EventIds::new(ids)) }
    }

    pub(super) fn after(&self) -> Result<Option<Cursor>, Failure> {
        let cursor = |text| Cursor::parse(text).ok_or_else(|| Failure::bad_request("after takes a cursor"));
        self.get("after").map(cursor).transpose()
    }

    /// The second that a view of the past is about.
    pub(super) fn as_of(&self) -> Result<Option<Timestamp>, Failure> {
        let second = |text: &str| {
            let second = text.parse().map(Timestamp::from_unix);
            second.map_err(|_| Failure::bad_request("as_of takes a time in seconds since 1970"))
        };
        self.get("as_of").map(second).transpose()
    }
}
