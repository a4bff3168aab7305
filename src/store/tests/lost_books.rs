//! The failure that this prevents: the row that assigns a number to a bookmaker or a sport is lost, the number is
//! assigned again, and prices of one are served as those of another.

use std::collections::BTreeSet;

use super::*;
use crate::store::LoadedWorld;
use crate::testing::short_or_long;

/// Longer than the rest of a row beside its name.
const ROW_BYTES: usize = 24;

/// A closed file with prices of each bookmaker, each on another market or event.
fn closed_file() -> Vec<u8> {
    let memory = super::damage::filled();
    let mut store = memory.open();
    let changes = [
        put_odds(World::Live, "a", 2, Market::SPREAD),
        put_event(World::Sandbox, "c", 3),
        put_odds(World::Sandbox, "c", 0, Market::MONEYLINE),
        put_odds(World::Sandbox, "c", 2, Market::SPREAD),
        Change::PutEvent { world: World::Live, sport: sport_id(1), event: event("t", 4), owner: EventOwner::Unknown },
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

/// The prices in a file: of which world, sport, event, bookmaker and market.
fn prices(bytes: Vec<u8>) -> Option<BTreeSet<String>> {
    let loaded = Memory::new(bytes).inspect().ok()?.load().ok()?;
    let mut prices = BTreeSet::new();
    for world in World::ALL {
        let LoadedWorld { sports, bookmakers, .. } = loaded.world(world);
        let events =
            sports.iter().enumerate().flat_map(|(sport, stored)| stored.events.iter().map(move |event| (sport, event)));
        for (sport, event) in events {
            for record in &event.records {
                let book = bookmakers.get(record.bookmaker).map_or("unknown", |book| &*book.key);
                prices.insert(format!("{world} {sport} {} {book} {}", event.event.id, record.market.key()));
            }
        }
    }
    Some(prices)
}

/// Whether a byte is in a row of a bookmaker or of a sport: near their names.
fn is_near_a_name(page: &[u8], at: usize) -> bool {
    let row = &page[at.saturating_sub(ROW_BYTES)..(at + ROW_BYTES).min(page.len())];
    BOOKS
        .into_iter()
        .chain(["mma", "tennis"])
        .any(|name| row.windows(name.len()).any(|text| text.eq_ignore_ascii_case(name.as_bytes())))
}

#[test]
fn no_damaged_byte_gives_a_price_to_another_bookmaker_or_sport() {
    let whole = closed_file();
    let stored = prices(whole.clone()).unwrap();
    assert_eq!(stored.len(), 6);
    let has_names = |page: &[u8]| page.windows(6).any(|text| text == b"BETMGM" || text == b"tennis");
    let every = short_or_long(7, 1);
    let mut with_less = 0;
    for start in written_pages(&whole) {
        let page = &whole[start..start + PAGE_BYTES];
        let has_names = has_names(page);
        let is_tried = |at: &usize| {
            let is_used = page[*at] != 0 && has_names;
            *at < 8 || (is_used && (at.is_multiple_of(every) || is_near_a_name(page, *at)))
        };
        for (at, bit) in (0..PAGE_BYTES).filter(is_tried).flat_map(|at| [(start + at, 0), (start + at, at % 8)]) {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << bit;
            let Some(found) = prices(bytes) else { continue };
            assert!(found.is_subset(&stored), "bit {bit} of byte {at}: {:?}", found.difference(&stored));
            with_less += usize::from(found.len() < stored.len());
        }
    }
    assert!(with_less > 0, "too little was hit");
}
