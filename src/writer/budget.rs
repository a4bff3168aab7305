//! What polled feeds have spent of their upstreams' credits.
//!
//! The row of a feed is stored with the news that a request returned, or by itself before a request that no earlier row
//! has counted.

use super::{IngestReport, Sender, WriteError, Writer};
use crate::model::{FeedBudget, News, World};
use crate::store::Change;

/// The spending of a feed, to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedCharge {
    pub feed: Box<str>,
    pub budget: FeedBudget,
}

impl FeedCharge {
    pub(super) fn change(&self) -> Change {
        Change::PutFeedBudget { feed: self.feed.clone(), budget: self.budget }
    }
}

impl Writer {
    /// What a feed has spent, as far as the file knows.
    pub fn feed_budget(&self, feed: &str) -> Option<FeedBudget> {
        self.feed_budgets.get(feed).copied()
    }

    /// Stores what a feed has spent.
    pub fn put_feed_budget(&mut self, charge: FeedCharge) -> Result<(), WriteError> {
        self.commit(&[charge.change()])?;
        self.apply_charge(Some(charge));
        Ok(())
    }

    /// The same as [`Writer::ingest`], with the cost of the news in the same commit, and subject to the quota of a sender.
    pub fn ingest_charged(
        &mut self,
        world: World,
        news: Vec<News>,
        end: bool,
        charge: Option<FeedCharge>,
        sender: Option<Sender>,
    ) -> Result<IngestReport, WriteError> {
        let now = self.clock.now();
        let mut batch = self.batch(world, now.timestamp()).sent_by(sender, self.options.quota);
        for news in news {
            let _ = batch.apply(news);
        }
        let (mut changes, update, report) = batch.finish();
        let lost = self.lost_to_news(world, &update, &mut changes);
        changes.extend(charge.as_ref().map(FeedCharge::change));
        self.commit_update(world, changes, &update, now.timestamp())?;
        self.apply_charge(charge);
        self.remove_lost(world, lost);
        self.apply_update(world, update, now.unix_ms);
        if end {
            self.publish_quiet(world, now.unix_ms);
        }
        Ok(report)
    }

    pub(super) fn apply_charge(&mut self, charge: Option<FeedCharge>) {
        if let Some(FeedCharge { feed, budget }) = charge {
            self.feed_budgets.insert(feed, budget);
        }
    }
}
