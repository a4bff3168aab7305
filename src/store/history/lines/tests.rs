//! The bytes of lines and ends: whatever is written, a reader gets the same back, and arbitrary bytes are refused.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::block::{Block, RecordNumbers};
use super::ends::{EndsRow, EventEnds};
use super::growing::{GrowingBlocks, OpenRecords};
use super::pieces::{block_of, put_block};
use crate::model::{Contest, Event, EventId, EventStatus, LinePoint, Outcome, Price, Timestamp};
use crate::store::history::row::Effort;
use crate::store::history::tests::outcomes;
use crate::store::row_batch::RowBatch;
use crate::store::tables::LINES;

fn ends() -> EventEnds {
    let event = Event {
        id: EventId::new("event").unwrap(),
        competition: "League".into(),
        competition_key: "league".into(),
        commence: Timestamp::from_unix(50_000),
        contest: Contest::Sides { home: "Home".into(), away: "Away".into() },
        status: EventStatus::Scheduled,
        changed: Timestamp::from_unix(7),
    };
    EventEnds::new(Arc::new(event), Timestamp::from_unix(10))
}

/// A record, seconds since the change before, the outcomes or none if it closes, and whether the block is stored and read
/// again before.
type Change = (RecordNumbers, u32, Option<Arc<[Outcome]>>, bool);

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let change =
        ((0_u32..3, 0_u32..3), 0_u32..9_000, prop::option::weighted(0.8, outcomes()), prop::bool::weighted(0.1));
    prop::collection::vec(change, 0..60)
}

fn points_of(block: &Block, texts: &[Arc<str>]) -> BTreeMap<RecordNumbers, Vec<LinePoint>> {
    let mut texts = texts.to_vec();
    let read = |record: RecordNumbers| {
        let mut points = Vec::new();
        block.read_points(record, &mut texts, &mut points).unwrap();
        (record, points)
    };
    block.records().map(read).collect()
}

#[test]
fn block_is_cut_into_pieces_in_place_of_those_before() {
    let event = (1, 2, 3);
    let bytes: Vec<u8> = (0..10_000_u32).flat_map(u32::to_le_bytes).collect();
    let stored = |bytes: &[u8], before: usize| {
        let mut batch = RowBatch::default();
        let size = put_block(event, (7, bytes), before, &mut batch).unwrap();
        let rows: Vec<_> = batch.rows.lines.into_iter().collect();
        let pieces: Vec<Vec<u8>> =
            rows.iter().filter_map(|(key, row)| Some(LINES.unseal(key, row.as_ref()?).unwrap().0)).collect();
        assert!(rows.iter().all(|(key, _)| (key.0, key.1, key.2, block_of(*key)) == (1, 2, 3, 7)));
        assert_eq!(size.bytes, rows.iter().flat_map(|(_, row)| row).map(|row| row.len() as u64).sum::<u64>());
        assert_eq!((pieces.concat().as_slice(), pieces.len()), (bytes, size.pieces));
        (pieces.len(), rows.len())
    };
    assert_eq!(stored(&bytes, 0), (10, 10));
    assert_eq!(stored(&bytes[..4064], 0), (1, 1));
    // The rest of what there was goes.
    assert_eq!(stored(&bytes[..4065], 10), (2, 10));
    let too_many = vec![0; 4064 * 4096 + 1];
    assert!(put_block(event, (7, &too_many), 0, &mut RowBatch::default()).is_err());
}

/// The sizes of the full blocks of an event with so many records of so many outcomes, of which one price changes at a time.
fn sizes_of_full_blocks(records: u32, outcomes: usize) -> Vec<usize> {
    let (mut blocks, mut ends, mut open) = (GrowingBlocks::after(0), ends(), OpenRecords::new());
    for change in 0..40_000_u32 {
        let record = (change % records, 0);
        let price = |of: usize| 100 + i64::from(change / records) % 90 * i64::from(of == 0);
        let outcome = |of: usize| Outcome {
            name: format!("Player {of}").as_str().into(),
            price: Price::from_american(price(of)).unwrap(),
            point: None,
        };
        let after: Arc<[Outcome]> = (0..outcomes).map(outcome).collect();
        let before = open.insert(record, Arc::clone(&after));
        let at = Timestamp::from_unix(1_000 + change);
        blocks.push((record, at), (before.as_deref(), Some(&after)), &mut ends.texts, &open);
    }
    let numbers: Vec<u32> = blocks.iter().map(|(number, _)| number).collect();
    assert!(numbers.iter().copied().eq(0..u32::try_from(numbers.len()).unwrap()));
    let mut sizes: Vec<usize> = blocks.iter().map(|(_, block)| block.size()).collect();
    sizes.pop();
    assert!(sizes.len() > 2, "{sizes:?}");
    sizes
}

#[test]
fn blocks_are_longer_the_more_outcomes_are_open() {
    let is_about = |size: &usize, bytes: usize| (bytes..bytes + 1_024).contains(size);
    let two_sided = sizes_of_full_blocks(20, 2);
    assert!(two_sided.iter().all(|size| is_about(size, 16 << 10)), "{two_sided:?}");
    let between = sizes_of_full_blocks(50, 30);
    assert!(between.iter().all(|size| is_about(size, 24 * 50 * 30)), "{between:?}");
    let many = sizes_of_full_blocks(200, 30);
    assert!(many.iter().all(|size| is_about(size, 64 << 10)), "{many:?}");
}

#[test]
fn full_block_takes_no_further_change_once_it_is_stored() {
    let (mut blocks, mut ends) = (GrowingBlocks::after(4), ends());
    let (record, outcomes) = ((0, 0), |price| -> Arc<[Outcome]> {
        [Outcome { name: "Home".into(), price: Price::from_american(price).unwrap(), point: None }].into()
    });
    let mut open = OpenRecords::from([(record, outcomes(100))]);
    let mut change = 0;
    while blocks.iter().count() == 1 {
        let before = open.insert(record, outcomes(100 + i64::from(change % 7)));
        let at = Timestamp::from_unix(1_000 + change);
        blocks.push((record, at), (before.as_deref(), open.get(&record).map(|all| &**all)), &mut ends.texts, &open);
        change += 1;
    }
    let stored = blocks.to_bytes().unwrap();
    assert_eq!(stored.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [4]);
    assert!(GrowingBlocks::within(4, Block::read(&stored[0].1).unwrap(), &open).is_none());
    assert!(GrowingBlocks::within(4, Block::default(), &open).is_some());
    // It would with more outcomes.
    let many = (0..1_000).map(|record| ((record, 0), outcomes(100))).collect();
    assert!(GrowingBlocks::within(4, Block::read(&stored[0].1).unwrap(), &many).is_some());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_was_written_is_read(changes in changes()) {
        let (mut block, mut ends) = (Block::default(), ends());
        let mut model: BTreeMap<RecordNumbers, Vec<LinePoint>> = BTreeMap::new();
        let mut at = Timestamp::from_unix(1_000);
        for (record, seconds, after, is_stored) in changes {
            if is_stored {
                block = Block::read(&block.to_bytes(Effort::Little).unwrap()).unwrap();
                ends = ends.encode().unwrap().read().unwrap();
            }
            at = at.plus_seconds(seconds + 1);
            let before = model.get(&record).and_then(|points| points.last()?.outcomes.clone());
            block.push(record, at, (before.as_deref(), after.as_deref()), &mut ends.texts);
            ends.put_price(record, at, after.as_ref());
            model.entry(record).or_default().push(LinePoint { at, outcomes: after });
        }
        let block = Block::read(&block.to_bytes(Effort::Little).unwrap()).unwrap();
        let read = ends.encode().unwrap().read().unwrap();
        prop_assert_eq!(points_of(&block, read.texts.list()), model.clone());
        prop_assert_eq!(&read.records, &ends.records);
        prop_assert_eq!((read.event, read.start, read.blocks), (ends.event, ends.start, ends.blocks));
        for (record, ends) in read.records {
            let mut points = model[&record].iter().filter_map(|point| Some((point.at, point.outcomes.clone()?)));
            let first = points.clone().next().unwrap();
            prop_assert_eq!((ends.opening.at, ends.opening.outcomes), first);
            let before = points.rfind(|(at, _)| *at < Timestamp::from_unix(50_000));
            prop_assert_eq!(ends.closing.map(|closing| (closing.at, closing.outcomes)), before);
        }
    }

    #[test]
    fn arbitrary_bytes_are_no_row_and_do_no_harm(bytes: Vec<u8>) {
        let mut plain = vec![0];
        plain.extend_from_slice(&bytes);
        for row in [bytes, plain] {
            if let Ok(block) = Block::read(&row) {
                for record in block.records() {
                    let _ = block.read_points(record, &mut Vec::new(), &mut Vec::new());
                }
            }
            let _ = EndsRow(row).read();
        }
    }
}
