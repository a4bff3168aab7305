//! A payload of The Odds API on its way in: collected whole, within a bound, read, and handed to the writer in batches
//! or, if it is strict, at once.

use std::sync::Arc;

use tokio::sync::Semaphore;

use super::delivery::{Delivery, DeliveryBatch, NewsOrigin};
use super::error::IngestError;
use super::feed::{Feed, IngestContext};
use super::options::{IngestOptions, PayloadOptions};
use super::report::IngestSummary;
use super::the_odds_api::{self, PAYLOAD_BYTES_MAX, Payload, PayloadError, PayloadTerms};
use crate::model::{Catalogue, News, OddsFormat, SportId, Timestamp};
use crate::writer::NewsReader;

const BATCH_MESSAGES_MAX: usize = 1000;

/// Held while a payload is parsed.
static PARSING: Semaphore = Semaphore::const_new(1);

/// The bytes of a payload that have come so far.
#[derive(Debug, Default)]
pub struct PayloadBuffer(Vec<u8>);

impl PayloadBuffer {
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), IngestError> {
        if self.0.len() + bytes.len() > PAYLOAD_BYTES_MAX {
            return Err(IngestError::PayloadTooLarge);
        }
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    /// Reads the payload and hands its news to the writer.
    pub async fn finish(
        self,
        options: &PayloadOptions,
        feed: Feed,
        context: &IngestContext,
    ) -> Result<IngestSummary, IngestError> {
        let PayloadOptions { world, strict, .. } = *options;
        let mut delivery = Delivery::new(IngestOptions { world, strict }, feed, context);
        match self.deliver(options, &mut delivery).await {
            Ok(()) => Ok(delivery.summary()),
            Err(error) => {
                delivery.fail(&error);
                Err(error)
            }
        }
    }

    async fn deliver(self, options: &PayloadOptions, delivery: &mut Delivery) -> Result<(), IngestError> {
        let (bytes, context) = (self.0.len(), delivery.context().clone());
        let catalogue = context.boards.catalogue();
        let sport = options.sport.as_deref().map(|key| catalogue.find_any(key)).transpose()?;
        let now = context.clock.now().timestamp();
        let payload = read(self.0, (sport, options.odds_format), now, Arc::clone(catalogue)).await??;
        delivery.add_bytes(bytes);
        let known = context.boards.load_full(options.world);
        let listed = payload.listed(known.register().bookmakers(), options.regions);
        let batch = accept(payload, listed, delivery);
        if options.strict {
            let DeliveryBatch { news, origins, .. } = batch;
            let news = NewsReader(Box::new(news.into_iter().map(Ok)));
            delivery.send_whole(news, &origins).await?;
            return Ok(());
        }
        let mut batches = batch.chunks(BATCH_MESSAGES_MAX).peekable();
        while let Some(batch) = batches.next() {
            delivery.send(batch, batches.peek().is_none()).await?;
        }
        Ok(())
    }
}

/// Counts what a payload's reader rejected, and returns what it accepted: `listed` bookmakers first, since prices need
/// them.
pub(super) fn accept(payload: Payload, listed: Vec<News>, delivery: &mut Delivery) -> DeliveryBatch {
    delivery.add_invalid(payload.rejected.iter());
    delivery.drop_outcomes(payload.dropped.iter());
    for (event, rejection) in payload.examples {
        delivery.show(event, rejection.reason, rejection.detail.into(), None);
    }
    let origins = vec![NewsOrigin::default(); listed.len()];
    let mut batch = DeliveryBatch { news: listed, origins, text: Vec::new() };
    for message in payload.messages {
        let bookmaker = match &message.news {
            News::Odds(odds) => Some(Arc::clone(&odds.bookmaker)),
            _ => None,
        };
        batch.origins.push(NewsOrigin::of_payload(message.event, bookmaker));
        batch.news.push(message.news);
    }
    batch
}

/// Reads a payload on the blocking pool: a long one takes a while. One at a time, so that the answers to a whole round of
/// polls leave the other cores to those who read.
pub(super) async fn read(
    bytes: Vec<u8>,
    (sport, odds_format): (Option<SportId>, Option<OddsFormat>),
    now: Timestamp,
    catalogue: Arc<Catalogue>,
) -> Result<Result<Payload, PayloadError>, tokio::task::JoinError> {
    let work = move || the_odds_api::read(&bytes, PayloadTerms { catalogue: &catalogue, sport, odds_format, now });
    let _one_at_a_time = PARSING.acquire().await;
    tokio::task::spawn_blocking(work).await
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::ingest::tests::Fixture;
    use crate::model::{Reason, Regions, World};

    #[tokio::test]
    async fn rejections_are_counted_once_also_where_no_message_is_valid() {
        let valid = r#"{"id":"p1","sport_key":"mma_mixed_martial_arts","sport_title":"MMA","commence_time":"2026-11-15T00:00:00Z","home_team":"A","away_team":"B"}"#;
        let unknown = r#"{"id":"p2","sport_key":"chess"}"#;
        for (text, accepted) in [(format!("[{unknown}]"), 0), (format!("[{valid},{unknown}]"), 1)] {
            for strict in [false, true] {
                let fixture = Fixture::new();
                let mut payload = PayloadBuffer::default();
                payload.push(text.as_bytes()).unwrap();
                let (world, regions) = (World::Live, Regions::NONE);
                let options = PayloadOptions { world, strict, sport: None, odds_format: None, regions };
                let summary = payload.finish(&options, Feed::push(), &fixture.context).await.unwrap();
                assert_eq!((summary.lines, summary.accepted, summary.rejected), (accepted + 1, accepted, 1));
                assert_eq!((summary.written, summary.examples.len()), (!strict, 1));
                let account = fixture.context.ledger.accounts().remove(0).1;
                assert_eq!(account.accepted, if strict { 0 } else { accepted });
                assert_eq!(account.rejected, BTreeMap::from([(Reason::UnknownSport, 1)]));
                assert_eq!(account.bytes, text.len() as u64);
                fixture.end().await;
            }
        }
    }
}
