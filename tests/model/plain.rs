//! The model: maps and loops, no index, no cache, no file.

use std::collections::{BTreeMap, BTreeSet};

use oddsbox::model::{
    Catalogue, EventId, EventNews, EventStatus, Market, News, Outcome, Regions, Score, ScoreStatus, Timestamp,
};

/// A query for odds.
#[derive(Clone, Debug)]
pub struct Asked {
    pub markets: MarketsAsked,
    pub bookmaker: Option<&'static str>,
    pub regions: Option<Regions>,
    pub events: Option<Vec<EventId>>,
    pub competitions: Option<Vec<String>>,
    pub limit: u64,
}

#[derive(Clone, Debug)]
pub enum MarketsAsked {
    /// The featured ones.
    Default,
    /// Every one but lay prices.
    All,
    Named(Vec<&'static str>),
}

impl MarketsAsked {
    fn accept(&self, key: &str) -> bool {
        match self {
            MarketsAsked::Default => is_featured(key),
            MarketsAsked::All => !key.ends_with("_lay"),
            MarketsAsked::Named(keys) => keys.contains(&key),
        }
    }
}

fn is_featured(key: &str) -> bool {
    Market::FEATURED.into_iter().any(|market| market.key() == key)
}

#[derive(Clone)]
struct PlainEvent {
    news: EventNews,
    status: EventStatus,
    score: Option<Score>,
    /// By bookmaker and market key; a closed market has no outcomes.
    prices: BTreeMap<(String, String), (Timestamp, Vec<Outcome>)>,
}

/// An event, a bookmaker and a market.
type Triple = (String, String, String);

pub struct Plain {
    regions: BTreeMap<String, Regions>,
    events: BTreeMap<String, PlainEvent>,
    /// The records of each scope's last complete poll.
    polled: BTreeMap<&'static str, BTreeSet<Triple>>,
}

impl Plain {
    pub fn new(catalogue: &Catalogue) -> Self {
        let regions = catalogue.bookmakers().iter().map(|book| (book.key.to_string(), book.regions)).collect();
        Plain { regions, events: BTreeMap::new(), polled: BTreeMap::new() }
    }

    /// A message that did not come from a poll: the records that it changes, and those of an event that it removes, belong
    /// to no poll any more.
    pub fn apply(&mut self, news: News) {
        if let News::Remove { event, .. } = &news {
            for stored in self.polled.values_mut() {
                stored.retain(|(id, ..)| id != event.as_str());
            }
        }
        let before = self.prices();
        self.take(news);
        let after = self.prices();
        let touched: Vec<&Triple> =
            after.iter().filter(|(at, stored)| before.get(*at) != Some(*stored)).map(|(at, _)| at).collect();
        for stored in self.polled.values_mut() {
            stored.retain(|triple| !touched.contains(&triple));
        }
    }

    /// A complete poll: applies its messages, and closes what only the previous one had.
    pub fn poll(&mut self, scope: &'static str, news: Vec<News>) {
        let had = self.polled.remove(scope).unwrap_or_default();
        let (mut mentioned, mut has) = (BTreeSet::new(), BTreeSet::new());
        for news in news {
            let triple = match &news {
                News::Odds(odds) if !odds.outcomes.is_empty() => {
                    Some((odds.event.as_str().to_owned(), odds.bookmaker.to_string(), odds.market.as_str().to_owned()))
                }
                _ => None,
            };
            let is_taken = self.take(news);
            let Some(triple) = triple else { continue };
            mentioned.insert(triple.clone());
            if is_taken || had.contains(&triple) {
                has.insert(triple);
            }
        }
        for (event, book, market) in had.difference(&mentioned) {
            let triple = (event.clone(), book.clone(), market.clone());
            let elsewhere = self.polled.values().any(|stored| stored.contains(&triple));
            let Some(event) = self.events.get_mut(event).filter(|_| !elsewhere) else { continue };
            if let Some((_, outcomes)) = event.prices.get_mut(&(book.clone(), market.clone())) {
                outcomes.clear();
            }
        }
        self.polled.insert(scope, has);
    }

    fn prices(&self) -> BTreeMap<Triple, (Timestamp, Vec<Outcome>)> {
        let of = |(id, event): (&String, &PlainEvent)| {
            let id = id.clone();
            let prices = event.prices.clone().into_iter();
            prices.map(move |((book, market), stored)| ((id.clone(), book, market), stored)).collect::<Vec<_>>()
        };
        self.events.iter().flat_map(of).collect()
    }

    /// Returns whether the message was accepted.
    fn take(&mut self, news: News) -> bool {
        match news {
            News::Event(news) => self.event(news),
            News::Remove { event, .. } => drop(self.events.remove(event.as_str())),
            News::Score(news) => {
                let Some(event) = self.events.get_mut(news.event.as_str()) else { return false };
                if event.score.as_ref().is_none_or(|stored| stored.updated <= news.score.updated) {
                    event.status = news.score.status.event_status();
                    event.score = Some(news.score);
                    event.close_if_over();
                }
            }
            News::Odds(news) => {
                let Some(event) = self.events.get_mut(news.event.as_str()) else { return false };
                let key = (news.bookmaker.to_string(), news.market.as_str().to_owned());
                let stored = event.prices.get(&key);
                let late = stored.is_some_and(|(at, _)| news.last_update < *at);
                let over = event.status.is_over() && !news.outcomes.is_empty();
                if late || over {
                    return false;
                }
                event.prices.insert(key, (news.last_update, news.outcomes.into_vec()));
            }
            News::Bookmaker(_) | News::Listed(_) | News::Read(_) => {}
            News::AsOf(..) | News::Closed(_) | News::Source(_) | News::Competition(_) | News::Market(_) => {
                panic!("only an export tells these")
            }
        }
        true
    }

    fn event(&mut self, news: EventNews) {
        let id = news.id.as_str().to_owned();
        let status = news.status;
        let event = self.events.entry(id).or_insert_with(|| PlainEvent {
            news: news.clone(),
            status,
            score: None,
            prices: BTreeMap::new(),
        });
        event.news = news;
        event.status = match &event.score {
            Some(score) if status != EventStatus::Cancelled => score.status.event_status(),
            _ => status,
        };
        event.close_if_over();
    }

    fn in_order(&self) -> Vec<&PlainEvent> {
        let mut events: Vec<&PlainEvent> = self.events.values().collect();
        events.sort_by_key(|event| (event.news.commence, event.news.id.clone()));
        events
    }

    pub fn records(&self, asked: &Asked) -> Vec<String> {
        let mut found = Vec::new();
        for event in self.in_order() {
            if asked.events.as_ref().is_some_and(|ids| !ids.contains(&event.news.id)) {
                continue;
            }
            let is_of = |keys: &Vec<String>| keys.iter().any(|key| event.news.competition_key.as_deref() == Some(key));
            if asked.competitions.as_ref().is_some_and(|keys| !is_of(keys)) {
                continue;
            }
            let mut prices: Vec<_> = event.prices.iter().collect();
            prices.sort_by_key(|((book, market), _)| (book, !is_featured(market), market));
            for ((book, market), (time, outcomes)) in prices {
                let wanted = !outcomes.is_empty()
                    && asked.markets.accept(market)
                    && asked.bookmaker.is_none_or(|wanted| wanted == book)
                    && asked.regions.is_none_or(|regions| self.regions[book].intersects(regions));
                if wanted {
                    let prices: Vec<String> =
                        outcomes.iter().map(|outcome| outcome.price.american().to_string()).collect();
                    found.push(format!("{} {book} {market} {time} {}", event.news.id, prices.join(",")));
                }
            }
        }
        found
    }

    pub fn events(&self, status: Option<EventStatus>) -> Vec<String> {
        let wanted = self.in_order().into_iter().filter(|event| status.is_none_or(|status| event.status == status));
        wanted
            .map(|event| {
                let open: BTreeSet<&str> = event.open_markets().collect();
                let mut markets: Vec<&str> = open.into_iter().collect();
                // Featured ones in the order of their list, the others by key.
                let place = |key: &str| Market::FEATURED.iter().position(|market| market.key() == key);
                markets.sort_by_key(|key| place(key).unwrap_or(Market::FEATURED.len()));
                let markets = serde_json::to_string(&markets).unwrap();
                format!("\"{}\" \"{}\" \"{}\" {markets}", event.news.id, event.news.commence, event.status)
            })
            .collect()
    }

    pub fn scores(&self, status: Option<ScoreStatus>) -> Vec<String> {
        let wanted = self.in_order().into_iter().filter(|event| {
            event.status != EventStatus::Cancelled && status.is_none_or(|status| event.status == status.event_status())
        });
        wanted
            .map(|event| {
                let home = match event.score.as_ref().and_then(|score| score.points) {
                    Some((home, _)) => home.to_string(),
                    None if event.status == EventStatus::Scheduled => "0".to_owned(),
                    None => "null".to_owned(),
                };
                format!("\"{}\" \"{}\" {home}", event.news.id, event.status)
            })
            .collect()
    }

    pub fn has(&self, id: &str) -> bool {
        self.events.contains_key(id)
    }

    pub fn open_events(&self) -> usize {
        self.events.values().filter(|event| !event.status.is_over()).count()
    }

    pub fn books(&self) -> usize {
        let open = |event: &PlainEvent| event.open().map(|(book, _)| book.clone()).collect::<Vec<_>>();
        self.events.values().flat_map(open).collect::<BTreeSet<_>>().len()
    }
}

impl PlainEvent {
    fn open(&self) -> impl Iterator<Item = &(String, String)> {
        self.prices.iter().filter(|(_, (_, outcomes))| !outcomes.is_empty()).map(|(key, _)| key)
    }

    fn open_markets(&self) -> impl Iterator<Item = &str> {
        self.open().map(|(_, market)| market.as_str())
    }

    /// The clock is after every time in the test, so nothing reopens a finished event.
    fn close_if_over(&mut self) {
        if self.status.is_over() {
            for (time, outcomes) in self.prices.values_mut().filter(|(_, outcomes)| !outcomes.is_empty()) {
                *time = Timestamp::MAX;
                outcomes.clear();
            }
        }
    }
}
