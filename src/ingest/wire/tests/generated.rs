//! Generated news of every kind, and hostile bytes.

use std::sync::{Arc, LazyLock};

use proptest::collection::vec;
use proptest::prelude::*;

use super::super::{read, write};
use crate::model::{
    Bookmaker, Catalogue, ClosedNews, CompetitionNews, Contest, EventId, EventNews, EventStatus, Market, MarketKey,
    News, OddsFormat, OddsNews, Outcome, OutcomeName, Period, Point, Price, ReadNews, Regions, Score, ScoreNews,
    ScoreStatus, SeenCompetition, Source, SourceNews, SportId, SportKind, Timestamp,
};

static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(super::catalogue);

fn text() -> impl Strategy<Value = Arc<str>> {
    "[\\PC ]{1,32}"
        .prop_filter("a text is bounded and not blank", |text: &String| !text.trim().is_empty() && text.len() <= 200)
        .prop_map(Arc::from)
}

fn key() -> impl Strategy<Value = Box<str>> {
    "[a-z0-9_]{1,40}".prop_map(Box::from)
}

fn event_id() -> impl Strategy<Value = EventId> {
    "[!-+.-~é]{1,60}".prop_map(|text| EventId::new(&text).unwrap())
}

fn sport() -> impl Strategy<Value = SportId> {
    prop::sample::select(CATALOGUE.sport_ids().collect::<Vec<_>>())
}

fn time() -> impl Strategy<Value = Timestamp> {
    any::<u32>().prop_map(Timestamp::from_unix)
}

fn price() -> impl Strategy<Value = Price> {
    let american = (100..200_000i64, any::<bool>())
        .prop_filter_map("a price", |(value, minus)| Price::from_american(if minus { -value } else { value }).ok());
    let decimal = (1_001..100_000_000u64).prop_map(|milli| Price::from_decimal_milli(milli).unwrap());
    let fraction = (1..5_000u64, 1..500u64)
        .prop_filter_map("a price", |(n, d)| Price::from_fraction(n, d, OddsFormat::Fractional).ok());
    prop_oneof![american, decimal, fraction]
}

/// Featured markets, and keys that nothing has made a market of.
fn market() -> impl Strategy<Value = MarketKey> {
    let featured = prop::sample::select(Market::FEATURED.to_vec()).prop_map(MarketKey::Known);
    let new = ["alternate_spread_q1", "moneyline_lay", "player_unheard_of", "double_chance_h1"];
    prop_oneof![featured, prop::sample::select(new.to_vec()).prop_map(|key| MarketKey::New(key.into()))]
}

fn odds() -> impl Strategy<Value = News> {
    let outcome = (text(), prop::option::of(text()), price(), -100_000_000..=100_000_000);
    let record = (market(), vec(outcome, 0..8));
    let times = (time(), prop::option::of(time()));
    (sport(), event_id(), key(), times, record).prop_map(|(sport, event, bookmaker, times, (market, list))| {
        let (last_update, bookmaker_update) = times;
        let featured = Market::find(market.as_str());
        let whole = list.len() - list.len() % featured.and_then(|market| market.settlement().group).unwrap_or(1);
        let has_point = featured.and_then(Market::has_point);
        let outcome = |(name, description, price, milli): (Arc<str>, Option<Arc<str>>, Price, i32)| Outcome {
            name: OutcomeName::new(&name, description.as_deref()),
            price,
            point: Point::from_milli(milli).filter(|_| has_point.unwrap_or(milli % 2 == 0)),
        };
        let outcomes = list.into_iter().take(whole).map(outcome).collect();
        News::Odds(OddsNews {
            sport,
            event,
            bookmaker: bookmaker.into(),
            market,
            last_update,
            bookmaker_update,
            outcomes,
        })
    })
}

fn score() -> impl Strategy<Value = News> {
    let points = (0..=1_000_000i32, 0..=1_000_000i32);
    let status = prop::sample::select(ScoreStatus::ALL.to_vec());
    (sport(), event_id(), status, points.clone(), vec(points, 0..6), prop::option::of(text()), time()).prop_map(
        |(sport, event, status, points, periods, winner, updated)| {
            let kind = CATALOGUE[sport].kind;
            let numbered = |(number, (home, away))| Period { number, home, away };
            let score = Score {
                status,
                points: (kind != SportKind::Tournament).then_some(points),
                periods: (1..).zip(periods).map(numbered).collect(),
                winner: winner.filter(|_| kind == SportKind::Fight && status == ScoreStatus::Final),
                updated,
            };
            News::Score(ScoreNews { sport, event, score })
        },
    )
}

fn event() -> impl Strategy<Value = News> {
    let status = prop::sample::select(EventStatus::ALL.to_vec());
    let key = prop::option::of("[a-z0-9_]{1,40}");
    let competition = (text(), key, prop::option::of(text()));
    (sport(), event_id(), competition, time(), (text(), text(), any::<bool>()), status).prop_map(
        |(sport, id, (competition, key, competition_title), commence, (home, away, has_field), status)| {
            let contest = if has_field { Contest::Tournament { title: home } } else { Contest::Sides { home, away } };
            let prefix = CATALOGUE[sport].v4.as_ref().map_or("", |names| names.prefix());
            let competition_key = key.map(|key| format!("{prefix}_{key}").into());
            News::Event(EventNews {
                sport,
                id,
                competition,
                competition_key,
                competition_title,
                commence,
                contest,
                status,
            })
        },
    )
}

/// What only an export tells.
fn held() -> impl Strategy<Value = News> {
    let closed = (sport(), event_id(), key(), market(), time()).prop_map(|(sport, event, bookmaker, market, at)| {
        News::Closed(ClosedNews { sport, event, bookmaker: bookmaker.into(), market, at })
    });
    let source = (sport(), key(), time(), 0..=3_600_000u32, prop::option::of(time())).prop_map(
        |(sport, bookmaker, last_read, latency_ms, empty_since)| {
            let source = Source { last_read, latency_ms, empty_since };
            News::Source(SourceNews { sport, bookmaker: bookmaker.into(), source })
        },
    );
    let competition = (sport(), "[a-z0-9_]{1,40}", text()).prop_map(|(sport, key, title)| {
        let prefix = CATALOGUE[sport].v4.as_ref().map_or("", |names| names.prefix());
        let competition = SeenCompetition { sport, title };
        News::Competition(CompetitionNews { key: format!("{prefix}_{key}").into(), competition })
    });
    prop_oneof![closed, source, competition, market().prop_map(News::Market)]
}

fn news() -> impl Strategy<Value = News> {
    let bookmaker = (key(), text(), 1..=Regions::ALL.bits()).prop_map(|(key, title, bits)| {
        News::Bookmaker(Bookmaker { key, title: (*title).into(), regions: Regions::from_bits(bits).unwrap() })
    });
    let remove = (sport(), event_id()).prop_map(|(sport, event)| News::Remove { sport, event });
    let good_read = (sport(), key(), time(), 0..=3_600_000u32).prop_map(|(sport, bookmaker, at, latency_ms)| {
        News::Read(ReadNews { sport, bookmaker: bookmaker.into(), at, latency_ms })
    });
    let dated = (time(), prop_oneof![odds(), score(), event()]).prop_map(|(at, news)| News::AsOf(at, Box::new(news)));
    prop_oneof![4 => odds(), 2 => score(), 2 => event(), 1 => bookmaker, 1 => remove, 1 => good_read, 1 => held(), 2 => dated]
}

/// Markets by key: other tests of this process may have had a price of one that is new here.
fn as_text(mut news: News) -> News {
    let market = match &mut news {
        News::Odds(odds) => Some(&mut odds.market),
        News::Closed(closed) => Some(&mut closed.market),
        News::Market(market) => Some(market),
        News::AsOf(at, news) => return News::AsOf(*at, Box::new(as_text((**news).clone()))),
        _ => None,
    };
    if let Some(market) = market {
        *market = MarketKey::New(market.as_str().into());
    }
    news
}

fn line_of(news: &News) -> Vec<u8> {
    let mut line = Vec::new();
    write(news, &CATALOGUE, &mut line);
    line
}

proptest! {
    #[test]
    fn what_is_written_reads_back_as_the_same_news(news in news()) {
        let line = line_of(&news);
        prop_assert_eq!(line.iter().position(|byte| *byte == b'\n'), Some(line.len() - 1));
        let reading = read(&line, &CATALOGUE).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert!(reading.dropped.is_empty());
        prop_assert_eq!(as_text(reading.news), as_text(news));
    }

    #[test]
    fn no_bytes_panic(bytes in vec(any::<u8>(), 0..200)) {
        let _ = read(&bytes, &CATALOGUE);
    }

    #[test]
    fn no_damaged_line_panics(news in news(), damage in vec((any::<prop::sample::Index>(), any::<u8>(), 0..3u8), 1..8)) {
        let mut line = line_of(&news);
        for (at, byte, kind) in damage {
            let at = at.index(line.len());
            match kind {
                0 => line[at] = byte,
                1 => line.insert(at, byte),
                _ => { line.remove(at); }
            }
            if line.is_empty() { break; }
        }
        let _ = read(&line, &CATALOGUE);
    }
}
