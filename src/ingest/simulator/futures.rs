//! Futures: who wins the season. The market is open for the whole season, and one team becomes more likely than the others
//! towards its end.

use std::sync::Arc;

use super::fair::{Side, one_of};
use super::fixture::{Fixture, FixtureView, Outline, PriceModel, ScoreChange};
use super::markets::{OUTRIGHT, SimulatedMarket};
use super::noise::{AMPLITUDE, Seed};
use super::schedule::{DAY, HOUR, Slot};
use crate::model::Contest;

static MARKETS: [SimulatedMarket; 1] = [OUTRIGHT];
/// In thousandths of a logit: how strong a team can be, how far its form moves, and a bookmaker's opinion of it.
const STRENGTH: i64 = 1_100;
const FORM: i64 = 500;
const NEWS: i64 = 160;
const BIAS: i64 = 60;
/// From the start of the final until its result.
const FINAL_SECONDS: i64 = 3 * HOUR;

#[derive(Debug)]
struct Contender {
    name: Arc<str>,
    /// Of its games in this season.
    seed: Seed,
    strength: i64,
}

#[derive(Debug)]
struct Futures {
    opened: i64,
    ends: i64,
    teams: Vec<Contender>,
}

/// The future of a season, which ends with the slot's start. `is_ranked`: strengths are by the order of the list.
pub(super) fn season(slot: &Slot, is_ranked: bool) -> Vec<Fixture> {
    let pool = slot.series.pool;
    let contender = |name: Arc<str>| {
        let place = i64::try_from(pool.names.position(&name) * 2_000 / pool.size.max(1)).unwrap_or(0);
        let drawn = || slot.sport_seed.named("team").named(&name).within(-STRENGTH, STRENGTH);
        let strength = if is_ranked { STRENGTH * (1_000 - place) / 1_000 } else { drawn() };
        Contender { seed: slot.seed.named("form").named(&name), name, strength }
    };
    let mut teams: Vec<Contender> = pool.draw(slot.seed, slot.number).map(contender).collect();
    teams.sort_by(|one, other| one.name.cmp(&other.name));
    let (title, competition_key) = slot.series.competition.of(slot.number);
    let outline = Outline {
        seed: slot.seed.named("season"),
        sport: slot.sport,
        competition: Arc::clone(&title),
        competition_key,
        contest: Contest::Tournament { title },
        announced: slot.announced + slot.seed.named("announced").below(HOUR),
        commence: slot.start,
        called_off_one_in: 0,
    };
    let changes = vec![
        ScoreChange::new(slot.start, None, &[]),
        ScoreChange::new(slot.start + FINAL_SECONDS, None, &[]).finished(),
    ];
    let futures = Futures { opened: slot.announced, ends: slot.start, teams };
    Fixture::new(outline, changes, Box::new(futures)).into_iter().collect()
}

impl PriceModel for Futures {
    fn markets(&self) -> &'static [SimulatedMarket] {
        &MARKETS
    }

    fn chances(&self, _: &SimulatedMarket, view: FixtureView<'_>) -> Option<Vec<Side>> {
        // Differences count for more the less of the season is left.
        let season = (self.ends - self.opened).max(1);
        let decided = 1_000 + (view.at - self.opened).clamp(0, season) * 1_500 / season;
        let strength = |team: &Contender| {
            let form = team.seed.wave(view.at, 12 * DAY) * FORM + team.seed.nth(1).wave(view.at, DAY) * NEWS;
            let bias = team.seed.joined(view.bias).within(-BIAS, BIAS);
            (team.strength + form / AMPLITUDE) * decided / 1_000 + bias
        };
        let chances = one_of(&self.teams.iter().map(strength).collect::<Vec<_>>());
        Some(self.teams.iter().zip(chances).map(|(team, chance)| Side::new(&team.name, chance)).collect())
    }

    fn interval(&self) -> i64 {
        120
    }
}
