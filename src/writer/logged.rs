//! What the log has of a sport, as an index of the board: at the start what readers saw last, and later what they saw at any
//! time.

use std::sync::Arc;

use crate::board::{Boards, Draft, EventNode, Index, Published, Register, SportBoard};
use crate::model::{Bookmaker, Bookmakers, EventId, Market, Record, RecordId, Regions, SportId, World};
use crate::store::SportFold;

/// A record that the log has of a bookmaker that is gone.
#[derive(Clone, Debug)]
pub struct Orphan {
    pub event: EventId,
    pub bookmaker: Arc<str>,
    pub market: Market,
}

/// The events and prices that the log has of a sport, and the prices among them whose bookmaker is gone. Prices that are
/// still the same are shared with the current index: nearly all of them are.
pub fn logged_index(sport_key: &str, logged: &SportFold, current: &Index, books: &Bookmakers) -> (Index, Vec<Orphan>) {
    let (mut nodes, mut orphans) = (Vec::new(), Vec::new());
    for folded in logged.events() {
        let event = &folded.event;
        let now = current.get(event.id.as_str());
        let mut records = Vec::new();
        for (key, market, price) in logged.records(folded) {
            let Some(bookmaker) = books.find(key) else {
                orphans.push(Orphan { event: event.id.clone(), bookmaker: Arc::clone(key), market });
                continue;
            };
            let stored = now.and_then(|node| node.record(bookmaker, market));
            if let Some(same) = stored.filter(|stored| *stored.outcomes == *price.outcomes) {
                records.push(Arc::clone(same));
                continue;
            }
            records.push(Arc::new(Record {
                id: RecordId::new(sport_key, &event.id, key, market),
                bookmaker,
                market,
                last_update: price.last_update,
                bookmaker_update: None,
                outcomes: price.outcomes.iter().cloned().collect(),
            }));
        }
        let draft = Draft::assemble(Arc::clone(event), folded.score.clone(), records, Vec::new());
        nodes.push(Arc::new(draft.finish(books)));
    }
    nodes.sort_by(|one, other| {
        let key = |node: &EventNode| (node.event().commence, node.event().id.clone());
        key(one).cmp(&key(other))
    });
    (Index::from_sorted(nodes), orphans)
}

/// A sport as the log has it after an entry, with the bookmakers that it names.
pub fn logged_board(boards: &Boards, world: World, sport: SportId, state: &SportFold) -> (SportBoard, Arc<Register>) {
    let register = register_of(boards, world, state);
    let key = &boards.catalogue()[sport].key;
    // Nothing is shared with what is current: the log has times of its own for unchanged prices.
    let (index, _) = logged_index(key, state, &Index::default(), register.bookmakers());
    let at_ms = state.last_tick().map_or(0, |tick| i64::from(tick.unix()) * 1000);
    let published = Published::past(index.clone(), Arc::clone(&register), at_ms);
    (SportBoard::new(index, Arc::new(published), Arc::from([])), register)
}

/// The register of the world, with the bookmakers that it no longer has. They are found by their names; where they were
/// offered is not known.
fn register_of(boards: &Boards, world: World, state: &SportFold) -> Arc<Register> {
    let register = Arc::clone(boards.load(world).register());
    let mut bookmakers = register.bookmakers().clone();
    for key in state.bookmakers().filter(|key| register.bookmakers().find(key).is_none()) {
        let Some(id) = bookmakers.next_id() else { break };
        let regions = Regions::default();
        bookmakers.put(id, Arc::new(Bookmaker { key: (**key).into(), title: (**key).into(), regions }));
    }
    if bookmakers.len() == register.bookmakers().len() {
        return register;
    }
    Arc::new(register.with_bookmakers(bookmakers))
}
