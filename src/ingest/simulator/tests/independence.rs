//! A price depends on the seed, the second and the keys that it is about, and on nothing else: neither on the other rows of
//! the simulator's tables, nor on what else the catalogue has.

use super::*;

fn world(catalogue: &Catalogue) -> World {
    World::of(Simulator::new(SEED, catalogue).opening(at(START + 6 * DAY + 70_000)))
}

/// The built-in catalogue without the rows of some keys.
fn without(keys: &[&str]) -> Catalogue {
    let is_kept = |line: &&str| !keys.iter().any(|key| line.contains(&format!("{{ key = \"{key}")));
    let lines: Vec<&str> = crate::config::catalogue::BUILTIN.lines().filter(is_kept).collect();
    assert!(lines.len() < crate::config::catalogue::BUILTIN.lines().count());
    crate::config::catalogue::parse(&format!("replace = true\n{}", lines.join("\n"))).unwrap()
}

#[test]
fn prices_do_not_depend_on_other_entries_of_the_catalogue() {
    let sport = "sports = [{ key = \"curling\", title = \"Curling\", group = \"curling\", kind = \"head_to_head\" },";
    let book = "bookmakers = [{ key = \"acme\", title = \"Acme\", regions = [\"us\", \"uk\", \"eu\", \"au\"] },";
    let region = "title = \"Pinnacle\", regions = [\"us\", \"eu\"]";
    let text = format!("replace = true\n{}", crate::config::catalogue::BUILTIN)
        .replace("sports = [", sport)
        .replace("bookmakers = [", book)
        .replace("title = \"Pinnacle\", regions = [\"eu\"]", region);
    let larger = crate::config::catalogue::parse(&text).unwrap();
    assert_eq!(larger.bookmakers().len(), catalogue().bookmakers().len() + 1);
    let (ours, theirs) = (world(&catalogue()), world(&larger));
    assert_eq!((ours.prices, ours.scores), (theirs.prices, theirs.scores));
}

#[test]
fn leaving_out_a_bookmaker_changes_no_other_price() {
    let mut whole = world(&catalogue());
    let smaller = world(&without(&["draftkings", "mybookieag"]));
    whole.prices.retain(|(_, book, _), _| !["draftkings", "mybookieag"].contains(&&**book));
    assert!(smaller.prices.len() > 5_000);
    assert_eq!((smaller.prices, smaller.scores), (whole.prices, whole.scores));
}

#[test]
fn leaving_out_a_sport_changes_no_other_price() {
    let mut whole = world(&catalogue());
    let smaller = world(&without(&["mma", "soccer"]));
    whole.prices.retain(|(event, ..), _| smaller.events.contains_key(event));
    whole.scores.retain(|event, _| smaller.events.contains_key(event));
    assert!(smaller.events.len() < whole.events.len() && smaller.prices.len() > 4_000);
    assert_eq!((smaller.prices, smaller.scores), (whole.prices, whole.scores));
}

#[test]
fn every_simulated_bookmaker_is_in_the_built_in_catalogue() {
    let (catalogue, simulator) = (catalogue(), simulator());
    assert_eq!(simulator.books.len(), books::keys().count());
    for key in books::keys() {
        assert!(catalogue.bookmakers().iter().any(|bookmaker| *bookmaker.key == *key), "{key}");
    }
}

#[test]
fn every_market_and_competition_is_in_the_built_in_catalogue() {
    let (catalogue, simulator) = (catalogue(), simulator());
    for fixture in all_fixtures(&simulator.slots(&[i64::from(START)])) {
        let sport = &catalogue[fixture.outline.sport];
        for market in fixture.model.markets() {
            let key = catalogue.markets().read(market.key, sport.kind);
            assert!(key.is_some() && catalogue.markets().traits(market.key).is_some(), "{}", market.key);
        }
        let (name, key) = (&fixture.outline.competition, &fixture.outline.competition_key);
        if let Some(key) = key {
            let listed = catalogue.competition(key).unwrap();
            let is_field = matches!(fixture.outline.contest, crate::model::Contest::Tournament { .. });
            assert_eq!((&*listed.title, listed.has_field), (&**name, is_field), "{key}");
        }
    }
}

/// Scores and prices change only on purpose: a new sport, or a change to one, leaves the others as they are.
#[test]
fn worlds_are_the_same_in_every_version() {
    let pinned = [
        ("mma", "dc50490b484ccbbf"),
        ("boxing", "690a89c44fce90e8"),
        ("tennis", "7b8be2480e966571"),
        ("american_football", "c3c8c4c20a2ba3e8"),
        ("golf", "be9d474c493f12a7"),
        ("soccer", "efacfe6707a96d3e"),
        ("basketball", "6c5ac7e9340a7f07"),
        ("baseball", "b71ed2d1ae0912c7"),
        ("ice_hockey", "92d9a6de67f42e7c"),
    ];
    let world = world(&catalogue());
    let digest = |sport: SportId| {
        let is_of = |id: &EventId| world.events[id].sport == sport;
        let mut seed = Seed::new(0);
        for (id, score) in world.scores.iter().filter(|(id, _)| is_of(id)) {
            let Score { points, periods, winner, updated, .. } = score;
            seed = seed.named(&format!("{id} {points:?} {winner:?} {updated}"));
            seed = periods.iter().fold(seed, |seed, period| seed.nth(period.home.into()).nth(period.away.into()));
        }
        for ((id, book, market), quote) in world.prices.iter().filter(|((id, ..), _)| is_of(id)) {
            seed = seed.named(&format!("{id} {book} {market} {}", quote.last_update));
            for Outcome { name, price, point } in &quote.outcomes {
                let (fraction, point) = (price.fraction(), point.map(Point::milli));
                seed = seed.named(&format!("{} {fraction:?} {point:?}", name.as_stored()));
            }
        }
        seed.identifier()[..16].to_owned()
    };
    let digests = pinned.map(|(sport, _)| (sport, digest(catalogue().find(sport).unwrap())));
    assert_eq!(digests.each_ref().map(|(sport, digest)| (*sport, digest.as_str())), pinned);
}
