//! The markets that a feed requests: some for whole competitions (`/odds`), the others event by event
//! (`/events/{id}/odds`).
//!
//! Every market that is requested may cost credits, so each competition is asked only for those that its events can
//! have: the winner where there is a field, everything else where there are two sides.

use super::competitions::PolledCompetition;
use crate::model::{Catalogue, Market, MarketKey, SportKind};

/// A market that is requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RequestedMarket {
    /// Its name in the request.
    pub(super) v4_key: Box<str>,
    /// Its key here.
    pub(super) key: Box<str>,
}

#[derive(Debug)]
pub(super) struct FeedMarkets {
    /// As configured, and readable.
    of_odds: Vec<String>,
    of_events: Vec<String>,
}

impl FeedMarkets {
    /// Fails on the first key that does not read, or that the other setting takes; the error begins with the setting.
    pub(super) fn new(odds: &[String], events: &[String], catalogue: &Catalogue) -> Result<Self, String> {
        for name in odds {
            if !is_of_odds(&read(name, "markets", catalogue)?) {
                return Err(format!("markets: {name:?} is polled event by event: put it under event_markets"));
            }
        }
        for name in events {
            if is_of_odds(&read(name, "event_markets", catalogue)?) {
                return Err(format!("event_markets: {name:?} is polled for whole competitions: put it under markets"));
            }
        }
        Ok(FeedMarkets { of_odds: odds.to_vec(), of_events: events.to_vec() })
    }

    /// Those that are requested for a whole competition.
    pub(super) fn of_odds(&self, competition: &PolledCompetition, catalogue: &Catalogue) -> Vec<RequestedMarket> {
        let markets = requested(&self.of_odds, competition.kind, catalogue);
        markets.filter(|market| is_of_sides(&market.key) != competition.has_field).collect()
    }

    /// Those that are requested for each event of a competition.
    pub(super) fn of_events(&self, competition: &PolledCompetition, catalogue: &Catalogue) -> Vec<RequestedMarket> {
        if competition.has_field {
            return Vec::new();
        }
        requested(&self.of_events, competition.kind, catalogue).collect()
    }
}

fn read(name: &str, setting: &str, catalogue: &Catalogue) -> Result<MarketKey, String> {
    catalogue.markets().read(name, SportKind::HeadToHead).ok_or_else(|| {
        let meant = catalogue.markets().nearest(name, std::iter::empty());
        let hint = meant.map_or_else(
            || "use a key such as h2h, alternate_totals or player_points".to_owned(),
            |meant| format!("did you mean {meant}?"),
        );
        format!("{setting}: there is no market {name:?}; {hint}")
    })
}

/// The markets that events of a kind can have, each once: both names of one may be configured.
fn requested(
    names: &[String],
    kind: SportKind,
    catalogue: &Catalogue,
) -> impl Iterator<Item = RequestedMarket> + use<> {
    let mut markets: Vec<RequestedMarket> = Vec::new();
    for name in names {
        let Some(key) = catalogue.markets().read(name, kind).filter(|key| key.is_of(kind)) else { continue };
        let market = RequestedMarket { v4_key: key.v4_key().into(), key: key.as_str().into() };
        if !markets.contains(&market) {
            markets.push(market);
        }
    }
    markets.into_iter()
}

/// Whether a market is a part of `/odds`: our own eleven, and the lay prices of exchanges.
fn is_of_odds(key: &MarketKey) -> bool {
    matches!(key, MarketKey::Known(market) if market.is_featured())
        || ["moneyline_lay", "outright_lay"].contains(&key.as_str())
}

/// Whether a market of `/odds` is about two sides; the others are about a field.
fn is_of_sides(key: &str) -> bool {
    let sides = [Market::MONEYLINE, Market::SPREAD, Market::TOTAL_ROUNDS, Market::TOTAL_POINTS];
    sides.iter().any(|market| market.key() == key) || key == "moneyline_lay"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::catalogue;

    fn markets(odds: &[&str], events: &[&str]) -> Result<FeedMarkets, String> {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        FeedMarkets::new(&owned(odds), &owned(events), &catalogue::builtin())
    }

    fn competition(key: &str, has_field: bool) -> PolledCompetition {
        let catalogue = catalogue::builtin();
        let (sport, _) = catalogue.find_v4(key).unwrap();
        PolledCompetition { key: key.into(), sport, kind: catalogue[sport].kind, has_field }
    }

    fn shown(markets: &[RequestedMarket]) -> String {
        markets.iter().map(|market| format!("{}={}", market.v4_key, market.key)).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn competition_with_a_field_is_asked_for_its_winner_only() {
        let all =
            markets(&["h2h", "moneyline", "spreads", "totals", "outrights", "top5", "h2h_lay"], &["player_points"]);
        let (all, catalogue) = (all.unwrap(), catalogue::builtin());
        let of = |key: &str, has_field: bool| {
            let competition = competition(key, has_field);
            (shown(&all.of_odds(&competition, &catalogue)), shown(&all.of_events(&competition, &catalogue)))
        };
        let sides = "h2h=moneyline spreads=spread totals=total_points h2h_lay=moneyline_lay";
        assert_eq!(of("americanfootball_nfl", false), (sides.to_owned(), "player_points=player_points".to_owned()));
        let winner = "outrights=outright top5=top5";
        assert_eq!(of("americanfootball_nfl_super_bowl_winner", true), (winner.to_owned(), String::new()));
        let fight = "h2h=moneyline spreads=spread totals=total_rounds h2h_lay=moneyline_lay";
        assert_eq!(of("mma_mixed_martial_arts", false).0, fight);
    }

    #[test]
    fn event_markets_take_any_key_that_reads() {
        let catalogue = catalogue::builtin();
        let all = markets(&[], &["alternate_total_points", "btts", "player_new_thing_q1", "h2h_3_way"]).unwrap();
        let nfl = all.of_events(&competition("americanfootball_nfl", false), &catalogue);
        assert_eq!(
            shown(&nfl),
            "alternate_totals=alternate_total_points btts=btts player_new_thing_q1=player_new_thing_q1 \
             h2h_3_way=moneyline_3_way"
        );
        let fight = all.of_events(&competition("mma_mixed_martial_arts", false), &catalogue);
        assert!(!shown(&fight).contains("totals"), "rounds are counted there");
    }

    #[test]
    fn market_under_the_wrong_setting_is_an_error_that_names_the_other() {
        for (odds, events, error) in [
            (&["h2h", "player_points"][..], &[][..], "markets: \"player_points\" is polled event by event"),
            (&["alternate_spreads"], &[], "put it under event_markets"),
            (&[], &["totals"], "event_markets: \"totals\" is polled for whole competitions: put it under markets"),
            (&["hth"], &[], "markets: there is no market \"hth\"; did you mean h2h?"),
            (&[], &["handicaps"], "event_markets: there is no market \"handicaps\"; use a key such as h2h"),
        ] {
            let found = markets(odds, events).unwrap_err();
            assert!(found.contains(error), "{found}");
        }
    }
}
