//! Differences of `between` add up to the world of `opening`, to the second of each change.

use std::collections::{HashMap, HashSet};

use super::*;

/// Steps a world from `start` by the given seconds, comparing with the opening at the end.
fn walk(start: u32, steps: impl Iterator<Item = u32>) {
    let simulator = smaller_simulator();
    let mut world = World::of(simulator.opening(at(start)));
    let mut now = start;
    for step in steps {
        world.apply(simulator.between(at(now), at(now + step)));
        now += step;
    }
    let opening = World::of(simulator.opening(at(now)));
    world.removed.clear();
    assert_eq!(world.events, opening.events);
    assert_eq!(world.scores, opening.scores);
    assert_eq!(world.dates, opening.dates);
    assert_eq!(world.prices.len(), opening.prices.len());
    for (key, quote) in &opening.prices {
        assert_eq!(world.prices.get(key), Some(quote), "{key:?}");
    }
}

#[test]
fn seconds_add_up_on_a_busy_evening() {
    // Sunday around 18:00: kick-offs, the end of a round of golf, tennis on two courts.
    let (before_s, steps) = short_or_long((60, 120), (300, 900));
    walk(START + 6 * DAY + 64_800 - before_s, std::iter::repeat_n(1, steps));
}

#[test]
fn uneven_steps_add_up_over_days() {
    let seed = Seed::new(5);
    // About 53 hours, in fewer and longer steps in the short form.
    let (steps, longest_s) = short_or_long((40, 9_600), (160, 2_400));
    walk(START + 4 * DAY, (0..steps).map(|n| u32::try_from(seed.nth(n).within(1, longest_s)).unwrap()));
}

#[test]
fn a_jump_adds_up_however_long() {
    for gap in [3_600, DAY, 9 * DAY, 70 * DAY] {
        walk(START + 40 * DAY, std::iter::once(gap));
    }
    assert!(simulator().between(at(START), at(START)).is_empty());
    assert!(simulator().between(at(START + 1), at(START)).is_empty());
}

#[test]
fn agenda_misses_no_change() {
    let simulator = smaller_simulator();
    for unix in moments(short_or_long(5, 12)).chain([START + 6 * DAY + 64_790]) {
        for now in i64::from(unix)..i64::from(unix) + short_or_long(70, 130) {
            for step in [1, 9].into_iter().filter(|step| agenda::window_of(now + 1) == agenda::window_of(now + step)) {
                let (mut due, mut all) = (Vec::new(), Vec::new());
                simulator.due_changes(now, now + step, &mut due);
                simulator.all_changes(now, now + step, &mut all);
                assert_eq!(due, all, "{step} s after {now}");
            }
        }
    }
}

#[test]
fn step_has_only_changes() {
    let simulator = smaller_simulator();
    let start = START + 5 * DAY + 80_000;
    let (seconds, intervals_min) = short_or_long((400, 50), (1_200, 1_000));
    let mut changed: HashMap<(EventId, Arc<str>, &str), Timestamp> = HashMap::new();
    let mut intervals = Vec::new();
    for now in start..start + seconds {
        let mut sources = HashSet::new();
        for news in simulator.between(at(now), at(now + 1)) {
            match news {
                News::Odds(odds) => {
                    assert_eq!(odds.last_update, at(now + 1));
                    let market = market_of(&odds);
                    let key = (odds.event, odds.bookmaker, market);
                    let before = changed.insert(key, odds.last_update);
                    intervals.extend(before.map(|before| odds.last_update.seconds_since(before)));
                }
                News::Read(read) => {
                    assert!(read.at <= at(now + 1) && read.latency_ms < 1_000);
                    assert!(sources.insert((read.sport, read.bookmaker)));
                }
                _ => {}
            }
        }
    }
    let quick = intervals.iter().filter(|interval| **interval < 15).count();
    assert!(intervals.len() > intervals_min && quick * 100 < intervals.len(), "{quick} of {}", intervals.len());
}

#[test]
fn one_bookmaker_has_an_outage_of_five_minutes_every_hour() {
    let mut simulator = simulator();
    // Outages are those of a bookmaker: in the short form, one sport shows them.
    for (sport, row) in simulator.sports.iter_mut().zip(&SPORTS) {
        *sport = sport.filter(|_| short_or_long(row.key == "mma", true));
    }
    let mut longest: HashMap<(SportId, Arc<str>), (u32, u32)> = HashMap::new();
    for now in (START..START + 2 * 3_600).step_by(10) {
        for news in simulator.between(at(now), at(now + 10)) {
            let (source, received) = match news {
                News::Odds(odds) => ((odds.sport, odds.bookmaker), odds.last_update),
                News::Read(read) => ((read.sport, read.bookmaker), read.at),
                _ => continue,
            };
            let (last, gap) = longest.entry(source).or_insert((received.unix(), 0));
            *gap = (*gap).max(received.unix().saturating_sub(*last));
            *last = received.unix().max(*last);
        }
    }
    let silent: HashSet<&Arc<str>> =
        longest.iter().filter(|(_, (_, gap))| *gap > 120).map(|((_, book), _)| book).collect();
    assert_eq!(silent.len(), 1, "{longest:?}");
    assert!(longest.values().all(|(_, gap)| *gap < 330));
}
