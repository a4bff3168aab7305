//! Writes a line, for exports and recorded feeds. Each price is written in the format that it was quoted in, since only
//! there is it exact.

use std::io::Write as _;
use std::sync::Arc;

use crate::model::{
    Bookmaker, Catalogue, ClosedNews, CompetitionNews, Contest, EventNews, News, OddsFormat, OddsNews, Outcome, Period,
    ReadNews, ScoreNews, SourceNews, SportId, Timestamp,
};

/// Appends the line of a message, line end included.
pub fn write(news: &News, catalogue: &Catalogue, out: &mut Vec<u8>) {
    let mut line = LineWriter { out, catalogue };
    line.news(news);
    line.raw("}\n");
}

pub(super) struct LineWriter<'a> {
    pub(super) out: &'a mut Vec<u8>,
    pub(super) catalogue: &'a Catalogue,
}

impl LineWriter<'_> {
    /// Everything but the end of the object.
    fn news(&mut self, news: &News) {
        match news {
            News::Bookmaker(book) | News::Listed(book) => self.bookmaker(book),
            News::Event(event) => self.event(event),
            News::Odds(odds) => self.odds(odds),
            News::Score(score) => self.score(score),
            News::Remove { sport, event } => self.of_event("remove", *sport, event.as_str()),
            News::Read(read) => self.read("read", read),
            News::AsOf(at, news) => {
                self.news(news);
                self.time("as_of", *at);
            }
            News::Closed(closed) => self.closed(closed),
            News::Source(source) => self.source(source),
            News::Competition(news) => self.competition(news),
            News::Market(key) => {
                self.start("market");
                self.text("key", key.as_str());
            }
        }
    }

    pub(super) fn raw(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    pub(super) fn name(&mut self, name: &str) {
        self.raw(",\"");
        self.raw(name);
        self.raw("\":");
    }

    fn string(&mut self, text: &str) {
        // Writing to memory cannot fail, and a text is always JSON.
        let _ = serde_json::to_writer(&mut *self.out, text);
    }

    pub(super) fn text(&mut self, name: &str, text: &str) {
        self.name(name);
        self.string(text);
    }

    pub(super) fn time(&mut self, name: &str, time: Timestamp) {
        self.name(name);
        self.out.push(b'"');
        time.write(self.out);
        self.out.push(b'"');
    }

    fn whole(&mut self, name: &str, value: impl itoa::Integer) {
        self.name(name);
        self.raw(itoa::Buffer::new().format(value));
    }

    pub(super) fn start(&mut self, kind: &str) {
        self.raw("{\"type\":\"");
        self.raw(kind);
        self.raw("\"");
    }

    pub(super) fn sport(&mut self, sport: SportId) {
        let catalogue = self.catalogue;
        self.text("sport", &catalogue[sport].key);
    }

    fn of_event(&mut self, kind: &str, sport: SportId, event: &str) {
        self.start(kind);
        self.sport(sport);
        self.text("event", event);
    }

    fn bookmaker(&mut self, book: &Bookmaker) {
        self.start("bookmaker");
        self.text("key", &book.key);
        self.text("title", &book.title);
        self.name("regions");
        let mut separator = "[";
        for region in book.regions.iter() {
            self.raw(separator);
            self.string(region.key());
            separator = ",";
        }
        self.raw("]");
    }

    fn competition(&mut self, news: &CompetitionNews) {
        self.start("competition");
        self.sport(news.competition.sport);
        self.text("key", &news.key);
        self.text("title", &news.competition.title);
    }

    fn event(&mut self, event: &EventNews) {
        self.start("event");
        self.sport(event.sport);
        self.text("id", event.id.as_str());
        self.text("competition", &event.competition);
        if let Some(key) = &event.competition_key {
            self.text("competition_key", key);
        }
        if let Some(title) = &event.competition_title {
            self.text("competition_title", title);
        }
        self.time("commence_time", event.commence);
        match &event.contest {
            Contest::Sides { home, away } => {
                self.text("home", home);
                self.text("away", away);
            }
            Contest::Tournament { title } => self.text("title", title),
        }
        self.text("status", event.status.key());
    }

    fn odds(&mut self, odds: &OddsNews) {
        self.of_event("odds", odds.sport, odds.event.as_str());
        self.text("bookmaker", &odds.bookmaker);
        self.text("market", odds.market.as_str());
        self.time("last_update", odds.last_update);
        if let Some(update) = odds.bookmaker_update {
            self.time("bookmaker_update", update);
        }
        let format = odds.outcomes.first().map(|outcome| outcome.price.quoted());
        if let Some(format) = format {
            self.text("format", format.key());
        }
        self.name("outcomes");
        self.raw("[");
        for (at, outcome) in odds.outcomes.iter().enumerate() {
            self.raw(if at == 0 { "" } else { "," });
            self.outcome(outcome, format);
        }
        self.raw("]");
    }

    /// An outcome quoted in another format than the line's carries its own.
    fn outcome(&mut self, outcome: &Outcome, line_format: Option<OddsFormat>) {
        self.raw("{\"name\":");
        self.string(&outcome.name);
        if let Some(description) = outcome.name.description() {
            self.text("description", description);
        }
        let quoted = outcome.price.quoted();
        self.name("price");
        outcome.price.write_json(quoted, self.out);
        self.name("point");
        match outcome.point {
            Some(point) => point.write(self.out),
            None => self.raw("null"),
        }
        if Some(quoted) != line_format {
            self.text("format", quoted.key());
        }
        self.raw("}");
    }

    fn score(&mut self, news: &ScoreNews) {
        let score = &news.score;
        self.of_event("score", news.sport, news.event.as_str());
        self.text("status", score.status.key());
        if let Some((home, away)) = score.points {
            self.whole("home_score", home);
            self.whole("away_score", away);
        }
        self.name("periods");
        self.raw("[");
        for (at, period) in score.periods.iter().enumerate() {
            self.raw(if at == 0 { "" } else { "," });
            self.period(period);
        }
        self.raw("]");
        if let Some(winner) = &score.winner {
            self.text("winner", winner);
        }
        self.time("updated_at", score.updated);
    }

    fn period(&mut self, period: &Period) {
        let Period { number, home, away } = period;
        // Writing to memory cannot fail.
        let _ = write!(self.out, "{{\"number\":{number},\"home_score\":{home},\"away_score\":{away}}}");
    }

    fn read(&mut self, kind: &str, read: &ReadNews) {
        self.start(kind);
        self.sport(read.sport);
        self.text("bookmaker", &read.bookmaker);
        self.time("at", read.at);
        self.whole("latency_ms", read.latency_ms);
    }

    fn closed(&mut self, closed: &ClosedNews) {
        self.of_event("closed", closed.sport, closed.event.as_str());
        self.text("bookmaker", &closed.bookmaker);
        self.text("market", closed.market.as_str());
        self.time("at", closed.at);
    }

    fn source(&mut self, news: &SourceNews) {
        let SourceNews { sport, bookmaker, source } = news;
        let (at, latency_ms) = (source.last_read, source.latency_ms);
        self.read("source", &ReadNews { sport: *sport, bookmaker: Arc::clone(bookmaker), at, latency_ms });
        if let Some(since) = source.empty_since {
            self.time("empty_since", since);
        }
    }
}
