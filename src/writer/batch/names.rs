//! Competitions and markets that a world has not had before.

use std::sync::Arc;

use super::NewsBatch;
use crate::board::Applied;
use crate::model::{CompetitionNews, Competitions, EventNews, Market, MarketKey, Reason, SeenCompetition};
use crate::store::Change;

impl NewsBatch<'_> {
    /// The key of an event's competition, which becomes known with it.
    pub(super) fn competition(&mut self, news: &EventNews) -> Result<Arc<str>, Reason> {
        let catalogue = self.catalogue;
        let key = news.competition_key(catalogue);
        let seen = self.competitions.as_ref().unwrap_or(self.state.register.competitions());
        let known = seen.get(&key).map(|known| &known.title);
        let title = match (&news.competition_title, known) {
            (Some(title), Some(known)) if title == known => return Ok(key),
            (None, Some(_)) => return Ok(key),
            (Some(title), _) => Arc::clone(title),
            (None, None) => catalogue.title_of(news.sport, &key, &news.competition, &news.contest),
        };
        let competition = SeenCompetition { sport: news.sport, title };
        self.seen_competition(CompetitionNews { key: Arc::clone(&key), competition })?;
        Ok(key)
    }

    pub(super) fn seen_competition(&mut self, news: CompetitionNews) -> Result<Applied, Reason> {
        let CompetitionNews { key, competition } = news;
        let seen = self.competitions.as_ref().unwrap_or(self.state.register.competitions());
        match seen.get(&key) {
            Some(known) if *known == competition => return Ok(Applied::Unchanged),
            Some(_) => {}
            None if seen.len() >= Competitions::MAX => return Err(Reason::TooManyCompetitions),
            None => self.additions.name()?,
        }
        let state = self.state;
        let seen = self.competitions.get_or_insert_with(|| (**state.register.competitions()).clone());
        seen.put(Arc::clone(&key), competition.clone());
        self.changes.push(Change::PutCompetition { world: self.world, key, competition });
        Ok(Applied::Changed)
    }

    pub(super) fn seen_market(&mut self, key: &MarketKey) -> Result<Applied, Reason> {
        let before = self.changes.len();
        self.market(key)?;
        Ok(if self.changes.len() > before { Applied::Changed } else { Applied::Unchanged })
    }

    /// The market of a key, which becomes known with it.
    pub(super) fn market(&mut self, key: &MarketKey) -> Result<Market, Reason> {
        let seen = self.markets.as_ref().unwrap_or(self.state.register.markets());
        if let MarketKey::Known(market) = key
            && (market.is_featured() || seen.contains(market))
        {
            return Ok(*market);
        }
        if seen.len() >= Market::MAX {
            return Err(Reason::TooManyMarkets);
        }
        self.additions.name()?;
        let market = Market::intern(key).ok_or(Reason::TooManyMarkets)?;
        let state = self.state;
        self.markets.get_or_insert_with(|| (**state.register.markets()).clone()).insert(market);
        self.changes.push(Change::PutMarket { world: self.world, market });
        Ok(market)
    }
}
