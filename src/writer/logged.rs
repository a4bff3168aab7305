//! What the log has of a sport, as an index of the board: at the start what readers saw last, and later what they saw at any
//! time.

use std::sync::Arc;

use crate::board::{Draft, EventNode, Index};
use crate::model::{Bookmakers, EventId, Market, Record, RecordId};
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
