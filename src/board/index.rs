//! The events of one sport in the order of every list, as an immutable value.
//!
//! Nodes are grouped in chunks and chunks in spans, and each of these has a [`Summary`] of its content, so a lookup
//! skips what cannot match and costs time in proportion to its answer. Applying edits copies only the chunks that they
//! touch; everything else is shared with the previous index.

use std::collections::BTreeMap;
use std::hash::BuildHasher;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use foldhash::fast::RandomState;
use foldhash::{HashMap, HashSet};

use super::coverage::{BookSet, Coverage};
use super::node::{Edit, EventNode, OrderKey};
use super::query::{CompetitionKeys, competition_bit};
use crate::model::{BookId, EventId, EventStatus, MarketFilter, Timestamp};

const CHUNK_MAX: usize = 64;
/// A rebuilt chunk smaller than this is merged into its neighbour, so that chunks do not become ever smaller.
const CHUNK_MIN: usize = 16;
const SPAN: usize = 32;

/// What a chunk, a span or the whole index contains.
#[derive(Clone, Debug, Default)]
struct Summary {
    coverage: Coverage,
    /// One bit for each event status that occurs.
    statuses: u8,
    /// One bit for each competition that occurs: see [`CompetitionKeys::bits`].
    competitions: u64,
    /// Events that are scheduled or live.
    open: usize,
    events: usize,
    records: usize,
}

impl Summary {
    fn of_nodes(nodes: &[Arc<EventNode>]) -> Self {
        let status = |node: &Arc<EventNode>| node.event().status;
        Summary {
            coverage: Coverage::union(nodes.iter().map(|node| node.coverage())),
            statuses: nodes.iter().fold(0, |all, node| all | 1 << status(node) as u8),
            competitions: nodes.iter().fold(0, |all, node| all | competition_bit(&node.event().competition_key)),
            open: nodes.iter().filter(|node| !status(node).is_over()).count(),
            events: nodes.len(),
            records: nodes.iter().map(|node| node.records().len()).sum(),
        }
    }

    fn union<'a>(parts: impl Iterator<Item = &'a Summary> + Clone) -> Self {
        Summary {
            coverage: Coverage::union(parts.clone().map(|part| &part.coverage)),
            statuses: parts.clone().fold(0, |all, part| all | part.statuses),
            competitions: parts.clone().fold(0, |all, part| all | part.competitions),
            open: parts.clone().map(|part| part.open).sum(),
            events: parts.clone().map(|part| part.events).sum(),
            records: parts.map(|part| part.records).sum(),
        }
    }

    fn meets(&self, filter: &Filter<'_>) -> bool {
        let has_status = match filter.status {
            StatusFilter::Any => true,
            StatusFilter::Open => self.open > 0,
            StatusFilter::Is(status) => self.statuses & (1 << status as u8) != 0,
        };
        has_status
            && filter.priced.is_none_or(|(markets, books)| self.coverage.meets(markets, books))
            && filter.competitions.is_none_or(|keys| keys.bits() & self.competitions != 0)
    }
}

#[derive(Debug)]
struct Chunk {
    /// Never empty.
    nodes: Box<[Arc<EventNode>]>,
    /// The commence time of each node, contiguous, so that a search does not dereference the nodes it skips.
    commences: Box<[Timestamp]>,
    summary: Summary,
}

impl Chunk {
    fn new(nodes: Vec<Arc<EventNode>>) -> Self {
        let summary = Summary::of_nodes(&nodes);
        let commences = nodes.iter().map(|node| node.event().commence).collect();
        Chunk { nodes: nodes.into(), commences, summary }
    }

    /// The first node at or after a key.
    fn position_of(&self, key: OrderKey<'_>) -> usize {
        let alike = range_of(&self.commences, key.commence);
        alike.start + self.nodes[alike].partition_point(|node| node.key() < key)
    }

    fn last_key(&self) -> Option<OrderKey<'_>> {
        self.nodes.last().map(|node| node.key())
    }
}

/// The range of a time in a sorted list; empty if it is not there.
fn range_of(times: &[Timestamp], time: Timestamp) -> Range<usize> {
    let start = times.partition_point(|other| *other < time);
    start..start + times[start..].partition_point(|other| *other == time)
}

/// What an event must have to be visited.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Filter<'a> {
    pub status: StatusFilter,
    /// At least one record of the markets by one of the bookmakers (any if `None`).
    pub priced: Option<(&'a MarketFilter, Option<&'a BookSet>)>,
    pub competitions: Option<&'a CompetitionKeys>,
    /// Leaves out events that have a field.
    pub sides_only: bool,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum StatusFilter {
    #[default]
    Any,
    /// Scheduled or live.
    Open,
    Is(EventStatus),
}

impl From<StatusFilter> for Filter<'_> {
    fn from(status: StatusFilter) -> Self {
        Filter { status, ..Filter::default() }
    }
}

impl Filter<'_> {
    pub(crate) fn accepts(&self, node: &EventNode) -> bool {
        let event = node.event();
        let has_status = match self.status {
            StatusFilter::Any => true,
            StatusFilter::Open => !event.status.is_over(),
            StatusFilter::Is(status) => event.status == status,
        };
        has_status
            && !(self.sides_only && event.title().is_some())
            && self.priced.is_none_or(|(markets, books)| node.coverage().meets(markets, books))
            && self.competitions.is_none_or(|keys| keys.contains(&event.competition_key))
    }
}

/// The events of one sport, in order.
#[derive(Clone, Debug, Default)]
pub struct Index {
    chunks: Arc<[Arc<Chunk>]>,
    /// The commence time of the last event of each chunk.
    ends: Arc<[Timestamp]>,
    /// The summary of each run of [`SPAN`] chunks.
    spans: Arc<[Summary]>,
    total: Summary,
    ids: IdMap,
}

impl Index {
    /// Builds an index from nodes that are already in order.
    pub fn from_sorted(nodes: Vec<Arc<EventNode>>) -> Self {
        let ids = nodes.iter().map(|node| (node.event().id.clone(), node.event().commence)).collect();
        let mut chunks = Vec::with_capacity(nodes.len().div_ceil(CHUNK_MAX / 2));
        push_chunks(&mut chunks, nodes);
        Index::new(chunks, ids)
    }

    /// An index of some of these nodes, given in order. It shares the map of ids, which may have more than the index.
    pub(crate) fn subset(&self, nodes: Vec<Arc<EventNode>>) -> Self {
        let mut chunks = Vec::with_capacity(nodes.len().div_ceil(CHUNK_MAX / 2));
        push_chunks(&mut chunks, nodes);
        Index::new(chunks, self.ids.clone())
    }

    /// Whether this is the same index, by identity.
    pub(crate) fn is(&self, other: &Index) -> bool {
        Arc::ptr_eq(&self.chunks, &other.chunks)
    }

    fn new(chunks: Vec<Arc<Chunk>>, ids: IdMap) -> Self {
        let spans: Arc<[Summary]> =
            chunks.chunks(SPAN).map(|span| Summary::union(span.iter().map(|chunk| &chunk.summary))).collect();
        let ends = chunks.iter().filter_map(|chunk| chunk.commences.last().copied()).collect();
        Index { chunks: chunks.into(), ends, total: Summary::union(spans.iter()), spans, ids }
    }

    pub fn event_count(&self) -> usize {
        self.total.events
    }

    /// Events that are scheduled or live.
    pub fn open_event_count(&self) -> usize {
        self.total.open
    }

    pub fn record_count(&self) -> usize {
        self.total.records
    }

    pub(crate) fn coverage(&self) -> &Coverage {
        &self.total.coverage
    }

    /// Whether the bookmaker has any price here.
    pub fn has_prices_of(&self, book: BookId) -> bool {
        self.total.coverage.has_book(book)
    }

    pub fn get(&self, id: &str) -> Option<&Arc<EventNode>> {
        let key = OrderKey { commence: self.ids.get(id)?, id };
        let chunk = self.chunks.get(self.chunk_of(key))?;
        chunk.nodes.get(chunk.position_of(key)).filter(|node| node.key() == key)
    }

    /// Every node in order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<EventNode>> {
        self.chunks.iter().flat_map(|chunk| chunk.nodes.iter())
    }

    /// Every node of a status, in order.
    pub fn with_status(&self, status: EventStatus) -> impl Iterator<Item = &Arc<EventNode>> {
        let filter = Filter::from(StatusFilter::Is(status));
        let chunks = self.chunks.iter().filter(move |chunk| chunk.summary.meets(&filter));
        chunks.flat_map(|chunk| chunk.nodes.iter()).filter(move |node| filter.accepts(node))
    }

    /// Visits the nodes that pass the filter, in order, from the first one at or after `from`.
    pub(crate) fn visit<'a>(
        &'a self,
        from: Option<OrderKey<'_>>,
        filter: &Filter<'_>,
        mut visit: impl FnMut(&'a Arc<EventNode>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut at = from.map_or(0, |key| self.chunk_of(key));
        let mut skip = match (from, self.chunks.get(at)) {
            (Some(key), Some(chunk)) => chunk.position_of(key),
            _ => 0,
        };
        while at < self.chunks.len() {
            if at.is_multiple_of(SPAN) && !self.spans[at / SPAN].meets(filter) {
                at += SPAN;
                skip = 0;
                continue;
            }
            let chunk = &self.chunks[at];
            if chunk.summary.meets(filter) {
                for node in chunk.nodes[skip..].iter().filter(|node| filter.accepts(node)) {
                    visit(node)?;
                }
            }
            at += 1;
            skip = 0;
        }
        ControlFlow::Continue(())
    }

    /// The chunk that contains a key, or would contain it.
    fn chunk_of(&self, key: OrderKey<'_>) -> usize {
        let alike = range_of(&self.ends, key.commence);
        alike.start + self.chunks[alike].partition_point(|chunk| chunk.last_key().is_some_and(|last| last < key))
    }

    /// The events that differ from those of a later index, by identity and in the order of their ids. Costs time in
    /// proportion to the chunks that the two do not share.
    pub fn diff<'i>(&'i self, later: &'i Index) -> Vec<NodeDiff<'i>> {
        let chunks_of = |index: &Index| index.chunks.iter().map(Arc::as_ptr).collect::<HashSet<*const Chunk>>();
        let (own, others) = (chunks_of(self), chunks_of(later));
        let nodes = |index: &'i Index, shared: &HashSet<*const Chunk>| {
            let chunks: Vec<&Arc<Chunk>> =
                index.chunks.iter().filter(|chunk| !shared.contains(&Arc::as_ptr(chunk))).collect();
            chunks.into_iter().flat_map(|chunk| chunk.nodes.iter())
        };
        let mut by_id: BTreeMap<&str, NodeDiff<'i>> = BTreeMap::new();
        for node in nodes(self, &others) {
            by_id.entry(node.event().id.as_str()).or_default().before = Some(node);
        }
        for node in nodes(later, &own) {
            by_id.entry(node.event().id.as_str()).or_default().after = Some(node);
        }
        let is_same = |diff: &NodeDiff<'_>| matches!(diff, NodeDiff { before: Some(one), after: Some(other) } if Arc::ptr_eq(one, other));
        by_id.into_values().filter(|diff| !is_same(diff)).collect()
    }

    /// A new index with the edits applied; at most one edit for an event.
    #[must_use]
    pub fn apply(&self, edits: &[Edit]) -> Index {
        let mut ids = self.ids.clone();
        let mut edits_by_key = Vec::with_capacity(edits.len());
        for edit in edits {
            let before = ids.get(edit.id.as_str());
            let commence = edit.node.as_ref().map(|node| node.event().commence);
            if let Some(before) = before.filter(|before| commence != Some(*before)) {
                edits_by_key.push(KeyEdit { key: OrderKey { commence: before, id: edit.id.as_str() }, node: None });
            }
            if let (Some(node), Some(commence)) = (&edit.node, commence) {
                edits_by_key.push(KeyEdit { key: OrderKey { commence, id: edit.id.as_str() }, node: Some(node) });
            }
            ids.set(&edit.id, before, commence);
        }
        edits_by_key.sort_unstable_by_key(|edit| edit.key);
        Index::new(self.rebuilt_chunks(&edits_by_key), ids)
    }

    /// Copies the chunks that contain an edit and shares the others. An edit after the last key goes into the last
    /// chunk, so that a sport that grows at its end does not get a chunk for each event.
    fn rebuilt_chunks(&self, mut edits_by_key: &[KeyEdit<'_>]) -> Vec<Arc<Chunk>> {
        let mut chunks = Vec::with_capacity(self.chunks.len() + 1);
        for (at, chunk) in self.chunks.iter().enumerate() {
            let is_last = at + 1 == self.chunks.len();
            let here =
                edits_by_key.partition_point(|edit| is_last || chunk.last_key().is_some_and(|last| edit.key <= last));
            if here == 0 {
                chunks.push(Arc::clone(chunk));
                continue;
            }
            push_chunks(&mut chunks, merge(&chunk.nodes, &edits_by_key[..here]));
            edits_by_key = &edits_by_key[here..];
        }
        push_chunks(&mut chunks, edits_by_key.iter().filter_map(|edit| edit.node.cloned()).collect());
        chunks
    }
}

/// An event before and after: one of the two may be missing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NodeDiff<'i> {
    pub before: Option<&'i Arc<EventNode>>,
    pub after: Option<&'i Arc<EventNode>>,
}

/// Sets the node at a key, or removes it.
#[derive(Debug)]
struct KeyEdit<'a> {
    key: OrderKey<'a>,
    node: Option<&'a Arc<EventNode>>,
}

/// The nodes of a chunk with edits applied, both in order.
fn merge(nodes: &[Arc<EventNode>], edits_by_key: &[KeyEdit<'_>]) -> Vec<Arc<EventNode>> {
    let mut merged = Vec::with_capacity(nodes.len() + edits_by_key.len());
    let mut rest = nodes;
    for edit in edits_by_key {
        let before = rest.partition_point(|node| node.key() < edit.key);
        merged.extend_from_slice(&rest[..before]);
        rest = &rest[before..];
        if rest.first().is_some_and(|node| node.key() == edit.key) {
            rest = &rest[1..];
        }
        merged.extend(edit.node.cloned());
    }
    merged.extend_from_slice(rest);
    merged
}

/// Appends nodes as chunks of even size; too few for a chunk are merged into the one before.
fn push_chunks(chunks: &mut Vec<Arc<Chunk>>, mut nodes: Vec<Arc<EventNode>>) {
    if nodes.is_empty() {
        return;
    }
    let is_small = nodes.len() < CHUNK_MIN;
    if let Some(last) = chunks.pop_if(|last| is_small && last.nodes.len() + nodes.len() <= CHUNK_MAX) {
        nodes.splice(0..0, last.nodes.iter().cloned());
    }
    let pieces = nodes.len().div_ceil(CHUNK_MAX);
    let size = nodes.len().div_ceil(pieces);
    chunks.extend(nodes.chunks(size).map(|piece| Arc::new(Chunk::new(piece.to_vec()))));
}

/// The commence time of each event by id. Sharded, so that an edit copies one shard and shares the rest.
#[derive(Clone, Debug)]
struct IdMap {
    hasher: RandomState,
    shards: Arc<[Arc<HashMap<EventId, Timestamp>>]>,
}

const ID_SHARDS: usize = 256;

impl IdMap {
    fn shard_of(&self, id: &str) -> usize {
        // The high bits select the shard: the low ones are left to the shard's own table.
        usize::from(self.hasher.hash_one(id).to_be_bytes()[0])
    }

    fn get(&self, id: &str) -> Option<Timestamp> {
        self.shards[self.shard_of(id)].get(id).copied()
    }

    /// Changes the commence time of an event; `None` means that it is not in the index.
    fn set(&mut self, id: &EventId, before: Option<Timestamp>, commence: Option<Timestamp>) {
        if before == commence {
            return;
        }
        let at = self.shard_of(id.as_str());
        let shard = Arc::make_mut(&mut Arc::make_mut(&mut self.shards)[at]);
        match commence {
            Some(commence) => shard.insert(id.clone(), commence),
            None => shard.remove(id.as_str()),
        };
    }
}

impl Default for IdMap {
    fn default() -> Self {
        let empty = Arc::new(HashMap::default());
        IdMap { hasher: RandomState::default(), shards: vec![empty; ID_SHARDS].into() }
    }
}

impl FromIterator<(EventId, Timestamp)> for IdMap {
    fn from_iter<I: IntoIterator<Item = (EventId, Timestamp)>>(events: I) -> Self {
        let mut map = IdMap::default();
        let mut shards: Vec<HashMap<EventId, Timestamp>> = vec![HashMap::default(); ID_SHARDS];
        for (id, commence) in events {
            shards[map.shard_of(id.as_str())].insert(id, commence);
        }
        map.shards = shards.into_iter().map(Arc::new).collect();
        map
    }
}

#[cfg(test)]
mod tests;
