//! How a market key reads: `[alternate_]FAMILY[_3_way][_corners|_cards][_PERIOD][_lay]`, or a prop,
//! `(player|batter|pitcher)_NAME[_PERIOD][_alternate]`. Families are a list of the catalogue; names of props are open.

use std::borrow::Cow;

use super::{Market, SportKind, names};

/// The longest key; the longest of today's has 41 bytes.
const BYTES_MAX: usize = 80;

/// A market key that reads, in the service's own names. The writer turns it into a [`Market`] when it accepts it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MarketKey {
    Known(Market),
    New(Box<str>),
}

impl MarketKey {
    pub fn as_str(&self) -> &str {
        match self {
            MarketKey::Known(market) => market.key(),
            MarketKey::New(key) => key,
        }
    }

    /// The key in The Odds API; markets that it does not have keep their own.
    pub fn v4_key(&self) -> Cow<'_, str> {
        match self {
            MarketKey::Known(market) => Cow::Borrowed(market.v4_key()),
            MarketKey::New(key) => names::to_v4(key).map_or(Cow::Borrowed(key), Cow::Owned),
        }
    }

    /// Whether events of this kind can have the market.
    pub fn is_of(&self, kind: SportKind) -> bool {
        names::is_of(self.as_str(), kind)
    }
}

impl PartialEq<Market> for MarketKey {
    fn eq(&self, market: &Market) -> bool {
        matches!(self, MarketKey::Known(own) if own == market)
    }
}

impl From<Market> for MarketKey {
    fn from(market: Market) -> Self {
        MarketKey::Known(market)
    }
}

/// The part of an event that a market is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MarketPeriod {
    Quarter(u8),
    Half(u8),
    /// Of ice hockey.
    Third(u8),
    Set(u8),
    FirstInnings(u8),
}

/// The parts of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "any of them can occur together")]
pub struct KeyParts<'k> {
    /// The family, or a prop with its prefix: `player_points`.
    pub base: &'k str,
    pub is_prop: bool,
    /// Many lines in one market.
    pub is_alternate: bool,
    /// The draw is an outcome of its own.
    pub is_three_way: bool,
    /// `corners` or `cards`, where these are counted instead of points.
    pub subject: Option<&'k str>,
    pub period: Option<MarketPeriod>,
    pub is_lay: bool,
}

impl<'k> KeyParts<'k> {
    /// Splits a key. Whether there is such a family is for the catalogue to say.
    pub fn split(key: &'k str) -> Option<Self> {
        let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        if !(1..=BYTES_MAX).contains(&key.len()) || !key.bytes().all(is_word) {
            return None;
        }
        if is_prop(key) { Self::split_prop(key) } else { Some(Self::split_family(key)) }
    }

    fn split_prop(key: &'k str) -> Option<Self> {
        let (rest, is_alternate) = cut_end(key, "_alternate");
        let (base, period) = split_period(rest);
        let parts = KeyParts {
            base,
            is_prop: true,
            is_alternate,
            is_three_way: false,
            subject: None,
            period,
            is_lay: key.ends_with("_lay"),
        };
        let (_, name) = base.split_once('_')?;
        (!name.is_empty() && !name.starts_with('_') && !name.ends_with('_')).then_some(parts)
    }

    fn split_family(key: &'k str) -> Self {
        let (rest, is_lay) = cut_end(key, "_lay");
        let (rest, is_alternate) = match rest.strip_prefix("alternate_") {
            Some(rest) => (rest, true),
            None => (rest, false),
        };
        let (rest, period) = split_period(rest);
        let subject = ["corners", "cards"].into_iter().find_map(|subject| {
            let family = rest.strip_suffix(subject)?.strip_suffix('_')?;
            Some((family, &rest[family.len() + 1..]))
        });
        let rest = subject.map_or(rest, |(family, _)| family);
        let (base, is_three_way) = cut_end(rest, "_3_way");
        let subject = subject.map(|(_, subject)| subject);
        KeyParts { base, is_prop: false, is_alternate, is_three_way, subject, period, is_lay }
    }
}

fn is_prop(key: &str) -> bool {
    ["player_", "batter_", "pitcher_"].into_iter().any(|prefix| key.starts_with(prefix))
}

fn cut_end<'k>(key: &'k str, end: &str) -> (&'k str, bool) {
    match key.strip_suffix(end) {
        Some(rest) => (rest, true),
        None => (key, false),
    }
}

/// Splits `_q1`, `_h2`, `_p3`, `_s1` or `_1st_5_innings` off the end of a key.
fn split_period(key: &str) -> (&str, Option<MarketPeriod>) {
    let found = || {
        if let Some(rest) = key.strip_suffix("_innings") {
            let (rest, count) = split_digit(rest)?;
            return Some((rest.strip_suffix("_1st_")?, MarketPeriod::FirstInnings(count)));
        }
        let (rest, number) = split_digit(key)?;
        let (rest, letter) = rest.split_at_checked(rest.len().checked_sub(1)?)?;
        let period = match letter {
            "q" => MarketPeriod::Quarter(number),
            "h" => MarketPeriod::Half(number),
            "p" => MarketPeriod::Third(number),
            "s" => MarketPeriod::Set(number),
            _ => return None,
        };
        Some((rest.strip_suffix('_')?, period))
    };
    found().map_or((key, None), |(rest, period)| (rest, Some(period)))
}

/// Splits a digit from 1 to 9 off the end.
fn split_digit(key: &str) -> Option<(&str, u8)> {
    let last = *key.as_bytes().last()?;
    matches!(last, b'1'..=b'9').then(|| (&key[..key.len() - 1], last - b'0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(key: &str) -> KeyParts<'_> {
        KeyParts::split(key).unwrap()
    }

    #[test]
    fn key_splits_into_its_parts() {
        let plain = parts("moneyline");
        assert_eq!((plain.base, plain.is_alternate, plain.period), ("moneyline", false, None));
        let three_way = parts("moneyline_3_way_q1");
        assert!(three_way.is_three_way);
        assert_eq!((three_way.base, three_way.period), ("moneyline", Some(MarketPeriod::Quarter(1))));
        let corners = parts("alternate_team_total_points_corners");
        assert!(corners.is_alternate);
        assert_eq!((corners.base, corners.subject), ("team_total_points", Some("corners")));
        let innings = parts("alternate_total_points_1st_5_innings");
        assert_eq!((innings.base, innings.period), ("total_points", Some(MarketPeriod::FirstInnings(5))));
        let lay = parts("outright_lay");
        assert_eq!((lay.base, lay.is_lay), ("outright", true));
        assert_eq!(parts("corners_1x2").base, "corners_1x2");
        assert_eq!(parts("top5").base, "top5");
    }

    #[test]
    fn props_have_open_names() {
        let quarter = parts("player_pass_yds_q1");
        assert_eq!((quarter.base, quarter.period), ("player_pass_yds", Some(MarketPeriod::Quarter(1))));
        let alternate = parts("batter_hits_runs_rbis_alternate");
        assert_eq!((alternate.base, alternate.is_alternate), ("batter_hits_runs_rbis", true));
        assert_eq!(parts("player_1st_td").base, "player_1st_td");
        assert!(parts("pitcher_anything_at_all").is_prop);
    }

    #[test]
    fn other_text_is_no_key() {
        let long = "a".repeat(BYTES_MAX + 1);
        for text in ["", "Moneyline", "money line", "h2h,spreads", "player_", "player__", "player_x_", &long] {
            assert_eq!(KeyParts::split(text), None, "{text:?}");
        }
    }
}
