//! The failure that this prevents: a row that says whose a number is gets lost, the number is given to another
//! bookmaker or sport, and the prices of the one are served as those of the other.

use std::collections::BTreeSet;

use super::*;
use crate::store::LoadedWorld;

const PAGE: usize = 4096;

/// A closed file with prices of each bookmaker, each on another market or event.
fn closed_file() -> Vec<u8> {
    let memory = super::damage::filled();
    let mut store = memory.open();
    let changes = [
        put_odds(World::Live, "a", 2, Market::SPREAD),
        put_event(World::Sandbox, "c", 3),
        put_odds(World::Sandbox, "c", 0, Market::MONEYLINE),
        put_odds(World::Sandbox, "c", 2, Market::SPREAD),
        Change::PutEvent { world: World::Live, sport: sport_id(1), event: event("t", 4), owner: EventOwner::Nobody },
        Change::PutOdds {
            world: World::Live,
            sport: sport_id(1),
            event: event_id("t"),
            record: record("tennis", "t", 1, Market::MONEYLINE, 5),
        },
    ];
    store.commit(&changes).unwrap();
    drop(store);
    memory.bytes()
}

/// Whose prices are there, of what.
fn prices(bytes: Vec<u8>) -> Option<BTreeSet<String>> {
    let loaded = Memory::new(bytes).inspect().ok()?.load().ok()?;
    let mut prices = BTreeSet::new();
    for world in World::ALL {
        let LoadedWorld { sports, bookmakers, .. } = loaded.world(world);
        let events =
            sports.iter().enumerate().flat_map(|(sport, held)| held.events.iter().map(move |event| (sport, event)));
        for (sport, event) in events {
            for record in &event.records {
                let book = bookmakers.get(record.bookmaker).map_or("nobody", |book| &*book.key);
                prices.insert(format!("{world} {sport} {} {book} {}", event.event.id, record.market.key()));
            }
        }
    }
    Some(prices)
}

#[test]
fn no_damaged_byte_gives_a_price_to_another_bookmaker_or_sport() {
    let whole = closed_file();
    let stored = prices(whole.clone()).unwrap();
    assert_eq!(stored.len(), 6);
    let pages = whole.len() / PAGE;
    // The pages of the bookmakers and of the sports.
    let has_names =
        |page: &usize| whole[page * PAGE..][..PAGE].windows(6).any(|text| text == b"BETMGM" || text == b"tennis");
    let books: Vec<usize> = (0..pages).filter(has_names).flat_map(|page| page * PAGE..page * PAGE + PAGE).collect();
    let used = books.into_iter().filter(|at| whole[*at] != 0);
    let beginnings = (0..pages).flat_map(|page| page * PAGE..page * PAGE + 8);
    let mut with_less = 0;
    for (at, bit) in used.chain(beginnings).flat_map(|at| [(at, 0), (at, at % 8)]) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << bit;
        let Some(found) = prices(bytes) else { continue };
        assert!(found.is_subset(&stored), "bit {bit} of byte {at}: {:?}", found.difference(&stored));
        with_less += usize::from(found.len() < stored.len());
    }
    assert!(with_less > 0, "too little was hit");
}
