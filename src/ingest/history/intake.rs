//! Turns lines and responses into changes for the writer's import.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::ingest::delivery::Delivery;
use crate::ingest::error::IngestError;
use crate::ingest::feed::{Feed, IngestContext};
use crate::ingest::lines::SplitLine;
use crate::ingest::options::{HistoryInput, PayloadOptions};
use crate::ingest::report::IngestSummary;
use crate::ingest::the_odds_api::{self, Message, Payload, PayloadTerms};
use crate::ingest::wire::{self, HistoryLine, LINE_BYTES_MAX, Rejection};
use crate::model::{
    Catalogue, CompetitionNews, Event, EventId, EventNews, HistoryChange, HistoryPrice, LoggedPrice, Market, MarketKey,
    News, Observation, ObservedEvent, OddsNews, Reason, SeenCompetition, SportId, Timestamp,
};
use crate::writer::{HistoryImport, ImportReport, IngestReport};

#[derive(Debug)]
pub(super) struct Intake {
    context: IngestContext,
    catalogue: Arc<Catalogue>,
    options: HistoryInput,
    /// The sport that responses must be of.
    sport: Option<SportId>,
    delivery: Delivery,
    import: HistoryImport,
    /// The lines or responses so far, blank lines included.
    number: u64,
    accepted: u64,
    rejected: u64,
    /// What has become known to the world.
    competitions: BTreeSet<Arc<str>>,
    markets: BTreeSet<&'static str>,
}

impl Intake {
    pub(super) fn new(options: HistoryInput, feed: Feed, context: &IngestContext) -> Result<Self, IngestError> {
        let catalogue = Arc::clone(context.boards.catalogue());
        let named = options.payload.as_ref().and_then(|payload| payload.sport.as_deref());
        Ok(Intake {
            context: context.clone(),
            sport: named.map(|key| catalogue.find_any(key)).transpose()?,
            catalogue,
            delivery: Delivery::new(options.options, feed, context),
            import: HistoryImport::new(&context.writer, options.options.world),
            options,
            number: 0,
            accepted: 0,
            rejected: 0,
            competitions: BTreeSet::new(),
            markets: BTreeSet::new(),
        })
    }

    pub(super) fn add_bytes(&mut self, bytes: usize) {
        self.delivery.add_bytes(bytes);
    }

    /// Ends the import, unless one line of a strict input was rejected.
    pub(super) async fn finish(mut self) -> Result<IngestSummary, IngestError> {
        let is_written = !self.options.options.strict || self.rejected == 0;
        let mut report = IngestReport::default();
        report.unchanged = self.accepted;
        if is_written {
            let ImportReport { changes, changes_before } = self.import.finish().await?;
            report.changed = changes.saturating_sub(changes_before).min(self.accepted);
            report.unchanged = self.accepted - report.changed;
        }
        self.delivery.end_import(&report, is_written);
        Ok(self.delivery.summary())
    }

    pub(super) async fn line(&mut self, line: SplitLine<'_>) -> Result<(), IngestError> {
        self.number += 1;
        let text = match line {
            SplitLine::Text(text) if text.trim_ascii().is_empty() => return Ok(()),
            SplitLine::Text(text) => text,
            SplitLine::TooLong => {
                let detail = format!("a line has at most {LINE_BYTES_MAX} bytes");
                self.reject(&Rejection::new(Reason::LineTooLong, detail), None);
                return Ok(());
            }
        };
        let taken = match wire::read_history(text, &self.catalogue) {
            Ok(line) => self.take_line(line).await?,
            Err(rejection) => Err(rejection),
        };
        match taken {
            Ok(()) => self.accepted += 1,
            Err(rejection) => self.reject(&rejection, Some(text)),
        }
        Ok(())
    }

    async fn take_line(&mut self, line: HistoryLine) -> Result<Result<(), Rejection>, IngestError> {
        match line {
            HistoryLine::Register(news) => {
                self.register(news).await?;
                Ok(Ok(()))
            }
            HistoryLine::Source { at, sport, bookmaker, is_stale } => {
                self.push(sport, at, HistoryChange::Source(bookmaker, is_stale)).await
            }
            HistoryLine::Tick { at, sport } => self.push(sport, at, HistoryChange::Tick).await,
            HistoryLine::Change { at, news, dropped } => {
                self.delivery.drop_outcomes(dropped.iter().map(|outcome| (outcome.reason, 1)));
                match self.change(at, news).await? {
                    Ok((sport, change)) => self.push(sport, at, change).await,
                    Err(rejection) => Ok(Err(rejection)),
                }
            }
        }
    }

    async fn push(
        &mut self,
        sport: SportId,
        at: Timestamp,
        change: HistoryChange,
    ) -> Result<Result<(), Rejection>, IngestError> {
        let pushed = self.import.push(sport, at, change).await?;
        Ok(pushed.map_err(|reason| Rejection::new(reason, reason.description())))
    }

    async fn change(
        &mut self,
        at: Timestamp,
        news: News,
    ) -> Result<Result<(SportId, HistoryChange), Rejection>, IngestError> {
        Ok(match news {
            News::Event(news) => {
                let event = self.event(&news, at).await?;
                Ok((news.sport, HistoryChange::Event(event)))
            }
            News::Score(news) => Ok((news.sport, HistoryChange::Score(news.event, Arc::new(news.score)))),
            News::Remove { sport, event } => Ok((sport, HistoryChange::Removed(event))),
            News::Odds(news) => {
                let (sport, event) = (news.sport, news.event.clone());
                self.record(news).await?.map(|(bookmaker, market, price)| {
                    let price = Some(price).filter(|price| !price.outcomes.is_empty());
                    (sport, HistoryChange::Price(HistoryPrice { event, bookmaker, market, price }))
                })
            }
            _ => Err(Rejection::new(Reason::UnknownType, "history has no line of this type")),
        })
    }

    async fn event(&mut self, news: &EventNews, at: Timestamp) -> Result<Arc<Event>, IngestError> {
        let key = news.competition_key(&self.catalogue);
        if self.competitions.insert(Arc::clone(&key)) && !self.is_known_competition(&key) {
            let title = match &news.competition_title {
                Some(title) => Arc::clone(title),
                None => self.catalogue.title_of(news.sport, &key, &news.competition, &news.contest),
            };
            let competition = SeenCompetition { sport: news.sport, title };
            self.make_known(News::Competition(CompetitionNews { key: Arc::clone(&key), competition })).await?;
        }
        Ok(Arc::new(news.event(key, news.status, at)))
    }

    fn is_known_competition(&self, key: &str) -> bool {
        let board = self.context.boards.load(self.options.options.world);
        board.register().competitions().get(key).is_some()
    }

    /// A record, if its bookmaker and its market can be known.
    async fn record(
        &mut self,
        news: OddsNews,
    ) -> Result<Result<(Arc<str>, Market, LoggedPrice), Rejection>, IngestError> {
        let rejection = |reason: Reason| Ok(Err(Rejection::new(reason, reason.description())));
        if !self.is_known_bookmaker(&news.bookmaker) {
            let detail = format!("{} is not declared: {}", news.bookmaker, self.how_to_declare());
            return Ok(Err(Rejection::new(Reason::UnknownBookmaker, detail)));
        }
        let Some(market) = self.market(&news.market).await? else { return rejection(Reason::TooManyMarkets) };
        if !news.outcomes.is_empty() && !market.is_of(self.catalogue[news.sport].kind) {
            return rejection(Reason::MarketNotOfSport);
        }
        let price = LoggedPrice { last_update: news.last_update, outcomes: news.outcomes.into() };
        Ok(Ok((news.bookmaker, market, price)))
    }

    const fn how_to_declare(&self) -> &'static str {
        match self.options.payload {
            None => "send a bookmaker line first",
            Some(_) => "name its regions with --regions",
        }
    }

    fn is_known_bookmaker(&self, key: &str) -> bool {
        let board = self.context.boards.load(self.options.options.world);
        board.register().bookmakers().find(key).is_some()
    }

    async fn market(&mut self, key: &MarketKey) -> Result<Option<Market>, IngestError> {
        if let MarketKey::Known(market) = key
            && (market.is_featured() || self.markets.contains(market.key()))
        {
            return Ok(Some(*market));
        }
        self.make_known(News::Market(key.clone())).await?;
        let market = Market::intern(key);
        self.markets.extend(market.map(Market::key));
        Ok(market)
    }

    /// Takes a line that declares something. A bookmaker that is known stays as it is.
    async fn register(&mut self, news: News) -> Result<(), IngestError> {
        match &news {
            News::Bookmaker(bookmaker) if self.is_known_bookmaker(&bookmaker.key) => Ok(()),
            _ => self.make_known(news).await,
        }
    }

    async fn make_known(&self, news: News) -> Result<(), IngestError> {
        self.context.writer.ingest(self.options.options.world, vec![news], false).await?;
        Ok(())
    }

    fn reject(&mut self, rejection: &Rejection, text: Option<&[u8]>) {
        self.rejected += 1;
        self.delivery.reject(self.number, rejection, text);
    }

    /// Takes a response of the archive: what its events and prices were at its time.
    pub(super) async fn response(&mut self, bytes: &[u8]) -> Result<(), IngestError> {
        self.number += 1;
        let Some(options) = self.options.payload.clone() else { return Ok(()) };
        let (at, payload) = match self.read(bytes, &options) {
            Ok(read) => read,
            Err(error) => {
                self.reject(&Rejection::new(Reason::BadJson, error.to_string()), None);
                return Ok(());
            }
        };
        self.count_rejected(&payload);
        let world = self.context.boards.load_full(options.world);
        // Those that are known stay as they are: a title of then is not one of now.
        let mut listed = payload.listed(world.register().bookmakers(), options.regions);
        listed.retain(|news| !matches!(news, News::Listed(bookmaker) if self.is_known_bookmaker(&bookmaker.key)));
        if !listed.is_empty() {
            self.context.writer.ingest(options.world, listed, false).await?;
        }
        let (is_archive_list, messages) = (payload.is_list, payload.messages);
        for (sport, events) in self.observed(at, messages).await? {
            let count = events.iter().map(|seen| 1 + seen.records.len() as u64).sum::<u64>();
            let competitions: BTreeSet<&Arc<str>> = events.iter().map(|seen| &seen.event.competition_key).collect();
            let is_list = is_archive_list && competitions.len() == 1;
            match self.push(sport, at, HistoryChange::Observed(Observation { events, is_list })).await? {
                Ok(()) => self.accepted += count,
                Err(rejection) => self.reject(&rejection, None),
            }
        }
        Ok(())
    }

    fn read(&self, bytes: &[u8], options: &PayloadOptions) -> Result<(Timestamp, Payload), the_odds_api::PayloadError> {
        let at = the_odds_api::archive_time(bytes)?;
        let (catalogue, odds_format) = (&*self.catalogue, options.odds_format);
        let payload = the_odds_api::read(bytes, PayloadTerms { catalogue, sport: self.sport, odds_format, now: at })?;
        Ok((at, payload))
    }

    fn count_rejected(&mut self, payload: &Payload) {
        self.rejected += payload.rejected.total();
        self.delivery.add_invalid(payload.rejected.iter());
        self.delivery.drop_outcomes(payload.dropped.iter());
        for (event, rejection) in &payload.examples {
            let detail = format!("event {event}: {}", rejection.detail);
            self.delivery.show(self.number, rejection.reason, detail, None);
        }
    }

    /// The events of a response with their prices, by sport.
    async fn observed(
        &mut self,
        at: Timestamp,
        messages: Vec<Message>,
    ) -> Result<BTreeMap<SportId, Vec<ObservedEvent>>, IngestError> {
        let mut sports: BTreeMap<SportId, Vec<ObservedEvent>> = BTreeMap::new();
        let mut places: BTreeMap<EventId, usize> = BTreeMap::new();
        for message in messages {
            match message.news {
                News::Event(news) => {
                    let event = self.event(&news, at).await?;
                    let events = sports.entry(news.sport).or_default();
                    places.insert(event.id.clone(), events.len());
                    events.push(ObservedEvent { event, records: Vec::new() });
                }
                News::Odds(news) => {
                    let (sport, event) = (news.sport, news.event.clone());
                    match self.record(news).await? {
                        Err(rejection) => self.reject(&rejection, None),
                        Ok(record) => {
                            let events = sports.entry(sport).or_default();
                            if let Some(seen) = places.get(&event).and_then(|place| events.get_mut(*place)) {
                                seen.records.push(record);
                            }
                        }
                    }
                }
                // The archive has no scores.
                _ => {}
            }
        }
        Ok(sports)
    }
}
