//! Scores over a year of slots: each sport by its rules.

use std::sync::OnceLock;

use super::*;
use crate::model::{Contest, Period, ScoreStatus};

/// Every fixture of a sport that starts in a year. Built once for all tests.
fn fixtures_of_year(sport: &str) -> &'static [Fixture] {
    static FIXTURES: [OnceLock<Vec<Fixture>>; SPORTS.len()] = [const { OnceLock::new() }; SPORTS.len()];
    let row = SPORTS.iter().position(|row| row.key == sport).unwrap();
    FIXTURES[row].get_or_init(|| {
        let simulator = simulator();
        let mut fixtures = Vec::new();
        for (position, series) in SPORTS[row].series.iter().enumerate() {
            let first = *series.visible_slots(i64::from(START)).end();
            let last = *series.visible_slots(i64::from(START + YEAR)).end();
            for number in first..last {
                fixtures.extend(simulator.build((row, position, number)));
            }
        }
        fixtures
    })
}

fn last_score(fixture: &Fixture) -> &Score {
    fixture.score(i64::from(u32::MAX)).unwrap()
}

fn is_played(fixture: &Fixture) -> bool {
    fixture.status(i64::from(u32::MAX)) == EventStatus::Final && !fixture.is_removed(i64::from(u32::MAX))
}

/// No period may shrink or go, and only the newest may move.
fn grows(before: &Score, after: &Score) -> bool {
    let not_less = |(a, b): (&Period, &Period)| a.home <= b.home && a.away <= b.away && a.number == b.number;
    let points = match (before.points, after.points) {
        (Some(before), Some(after)) => before.0 <= after.0 && before.1 <= after.1,
        (before, after) => before == after,
    };
    points
        && before.periods.len() <= after.periods.len()
        && before.periods.iter().zip(&after.periods).all(not_less)
        && before.updated <= after.updated
        && before.status <= after.status
}

#[test]
fn scores_never_go_down_and_finals_never_change() {
    let simulator = simulator();
    let week = i64::from(START + 21 * DAY);
    for fixture in all_fixtures(&simulator.slots(&[week, week + 3 * 86_400, week + 6 * 86_400])) {
        let commence = fixture.outline.commence;
        let mut before: Option<&Score> = None;
        let mut status = EventStatus::Scheduled;
        for now in (commence - 600..commence + 4 * 86_400).step_by(short_or_long(60, 10)) {
            let score = fixture.score(now);
            if let (Some(before), Some(score)) = (before, score) {
                assert!(grows(before, score), "{before:?} became {score:?}");
                assert!(before.status != ScoreStatus::Final || before == score);
            }
            let is_cancelled = fixture.status(now) == EventStatus::Cancelled;
            assert!(is_cancelled || fixture.is_removed(now) || status <= fixture.status(now));
            if let (Some(score), false, false) = (score, is_cancelled, fixture.is_removed(now)) {
                assert_eq!(score.status.event_status(), fixture.status(now));
            }
            (before, status) = (score, fixture.status(now));
        }
        assert_eq!(before.unwrap().status, ScoreStatus::Final, "{fixture:?}");
    }
}

#[test]
fn every_event_is_announced_ahead_and_starts_on_a_quarter_of_an_hour() {
    let mut ids = std::collections::HashSet::new();
    for sport in &SPORTS {
        for fixture in fixtures_of_year(sport.key) {
            assert_eq!(fixture.outline.commence % 900, 0);
            assert!(fixture.outline.commence - fixture.outline.announced > 86_400 / 2);
            assert!(ids.insert(fixture.id.clone()) && fixture.id.as_str().len() == 32);
            if let Contest::Sides { home, away } = &fixture.outline.contest {
                assert_ne!(home, away);
            }
        }
    }
}

#[test]
fn cancellations_removals_and_draws_are_rare_but_present() {
    for sport in ["mma", "boxing", "tennis"] {
        let fixtures = fixtures_of_year(sport);
        let end = i64::from(u32::MAX);
        let removed = fixtures.iter().filter(|fixture| fixture.is_removed(end)).count();
        let cancelled = fixtures.iter().filter(|fixture| fixture.status(end) == EventStatus::Cancelled).count();
        assert!(removed >= 5 && cancelled >= 5, "{sport}: {removed} {cancelled}");
        assert!(removed + cancelled < fixtures.len() / 8);
    }
    for sport in ["mma", "boxing"] {
        let fixtures = fixtures_of_year(sport);
        let drawn =
            fixtures.iter().filter(|fixture| is_played(fixture) && last_score(fixture).winner.is_none()).count();
        assert!(drawn >= 12 && drawn < fixtures.len() / 6, "{sport}: {drawn} of {}", fixtures.len());
    }
}

#[test]
fn fights_are_won_by_a_fighter_or_drawn() {
    for fixture in ["mma", "boxing"].into_iter().flat_map(fixtures_of_year) {
        let score = last_score(fixture);
        let Contest::Sides { home, away } = &fixture.outline.contest else { panic!() };
        let expected = match &score.winner {
            Some(winner) if winner == home => (1, 0),
            Some(winner) if winner == away => (0, 1),
            Some(winner) => panic!("{winner} did not fight"),
            None => (0, 0),
        };
        assert_eq!(score.points, Some(expected));
        assert!(score.periods.len() <= 12 && score.periods.iter().all(|round| round.home.max(round.away) == 10));
        let bell = fixture.score(fixture.outline.commence).unwrap();
        assert_eq!((bell.points, bell.winner.is_none(), bell.periods.len()), (Some((0, 0)), true, 0));
    }
}

#[test]
fn tennis_is_won_in_valid_sets() {
    for fixture in fixtures_of_year("tennis") {
        let score = last_score(fixture);
        let (home, away) = score.points.unwrap();
        assert!(home.max(away) == 2 && home.min(away) <= 1);
        assert_eq!(score.periods.len(), usize::try_from(home + away).unwrap());
        for set in &score.periods {
            let (more, less) = (set.home.max(set.away), set.home.min(set.away));
            assert!((more == 6 && less <= 4) || (more == 7 && (less == 5 || less == 6)), "{set:?}");
        }
    }
}

#[test]
fn football_is_scored_in_plausible_steps() {
    let (mut games, mut points) = (0, 0);
    let sides = |fixture: &&Fixture| matches!(fixture.outline.contest, Contest::Sides { .. });
    for fixture in fixtures_of_year("american_football").iter().filter(sides) {
        let commence = fixture.outline.commence;
        let mut before = (0, 0);
        for now in commence..commence + 14_000 {
            let now = fixture.score(now).unwrap().points.unwrap();
            assert!([0, 2, 3, 6, 7, 8].contains(&(now.0 + now.1 - before.0 - before.1)));
            before = now;
        }
        let score = last_score(fixture);
        let by_quarter: i32 = score.periods.iter().map(|quarter| quarter.home + quarter.away).sum();
        assert_eq!((by_quarter, before), (before.0 + before.1, score.points.unwrap()));
        assert!((4..=5).contains(&score.periods.len()));
        (games, points) = (games + 1, points + by_quarter);
    }
    assert!((35..55).contains(&(points / games)), "{points} in {games}");
}

/// Every score of an event, with its second.
fn course(fixture: &Fixture) -> impl Iterator<Item = &Score> {
    let commence = fixture.outline.commence;
    let mut seconds: Vec<i64> = fixture.edges(commence - 1, commence + 86_400).collect();
    seconds.sort_unstable();
    seconds.into_iter().filter_map(|at| fixture.score(at))
}

#[test]
fn periods_sum_to_the_score_at_every_moment() {
    for (sport, periods) in [
        ("american_football", 4..=5),
        ("soccer", 2..=2),
        ("basketball", 4..=10),
        ("baseball", 9..=18),
        ("ice_hockey", 3..=4),
    ] {
        let sides = |fixture: &&Fixture| matches!(fixture.outline.contest, Contest::Sides { .. });
        let mut games = 0;
        for fixture in fixtures_of_year(sport).iter().filter(sides).step_by(short_or_long(7, 1)) {
            let mut before: Option<&Score> = None;
            for score in course(fixture) {
                let sum = score.periods.iter().fold((0, 0), |(h, a), period| (h + period.home, a + period.away));
                assert_eq!(score.points, Some(sum), "{sport}");
                assert!(before.is_none_or(|before| grows(before, score)), "{sport}: {before:?} {score:?}");
                before = Some(score);
            }
            assert!(periods.contains(&last_score(fixture).periods.len()), "{sport}: {:?}", last_score(fixture));
            games += 1;
        }
        assert!(games > 50, "{sport}: {games}");
    }
}

#[test]
fn every_league_has_a_future_of_its_season() {
    for sport in ["american_football", "soccer", "basketball", "baseball", "ice_hockey"] {
        let is_field = |fixture: &&Fixture| matches!(fixture.outline.contest, Contest::Tournament { .. });
        let futures: Vec<&Fixture> = fixtures_of_year(sport).iter().filter(is_field).collect();
        assert!((4..=6).contains(&futures.len()), "{sport}: {}", futures.len());
        for future in futures {
            assert_eq!((last_score(future).points, last_score(future).periods.len()), (None, 0));
            assert_eq!(future.model.markets().len(), 1);
        }
    }
}

#[test]
fn golf_has_four_rounds_of_its_leaders() {
    for fixture in fixtures_of_year("golf") {
        let score = last_score(fixture);
        assert_eq!((score.points, score.periods.len()), (None, 4));
        for round in &score.periods {
            assert!((56..=70).contains(&round.home) && round.home <= round.away && round.away < 72, "{round:?}");
        }
    }
}
