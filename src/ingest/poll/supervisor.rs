//! Runs the polled feeds of the configuration in force, each in a task of its own. When the configuration changes, the
//! feeds that it changes are restarted.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::task::JoinSet;

use super::{FeedError, PollSettings, Poller, PreparedFeed};
use crate::config::{Config, FeedConfig, FeedKey};
use crate::ingest::IngestContext;
use crate::model::Catalogue;

/// Every polled feed. Dropping it ends them: a poll is written whole or not at all.
#[derive(Debug)]
pub struct Pollers {
    context: IngestContext,
    settings: PollSettings,
    config: watch::Receiver<Arc<Config>>,
    /// Feeds that are not running yet.
    waiting: Vec<(FeedConfig, Poller)>,
    running: BTreeMap<Box<str>, (FeedConfig, AbortHandle)>,
    tasks: JoinSet<()>,
}

impl Pollers {
    /// Prepares every feed of the configuration, so that an error in one is known before anything is served.
    pub fn open(
        context: IngestContext,
        settings: PollSettings,
        mut config: watch::Receiver<Arc<Config>>,
    ) -> Result<Self, FeedError> {
        let feeds = config.borrow_and_update().feeds.clone();
        let prepare = |feed: FeedConfig| Ok((feed.clone(), Poller::new(feed, context.clone(), settings)?));
        let waiting = feeds.into_iter().map(prepare).collect::<Result<_, FeedError>>()?;
        Ok(Pollers { context, settings, config, waiting, running: BTreeMap::new(), tasks: JoinSet::new() })
    }

    /// Whether the feeds could be polled, as far as that is known without asking their upstreams.
    pub fn validate(feeds: &[FeedConfig], catalogue: &Catalogue) -> Result<(), FeedError> {
        feeds.iter().try_for_each(|feed| PreparedFeed::new(feed, catalogue).map(|_| ()))
    }

    pub async fn run(mut self) {
        loop {
            for (feed, poller) in std::mem::take(&mut self.waiting) {
                let task = self.tasks.spawn(poller.run());
                self.running.insert(feed.name.clone(), (feed, task));
            }
            if self.config.changed().await.is_err() {
                // No further configuration can come; the feeds run until the server ends them.
                while self.tasks.join_next().await.is_some() {}
                return;
            }
            self.follow();
        }
    }

    /// Ends the feeds that the new configuration no longer has, and prepares those that it adds or changes. If one cannot
    /// be prepared, the old one keeps running.
    fn follow(&mut self) {
        let feeds = self.config.borrow_and_update().feeds.clone();
        let gone = |name: &str| !feeds.iter().any(|feed| *feed.name == *name);
        for name in self.running.keys().filter(|name| gone(name)).cloned().collect::<Vec<_>>() {
            self.end(&name);
            self.context.ledger.close(&name);
        }
        for feed in feeds {
            // The file may contain another key by now.
            let may_differ = matches!(feed.key, FeedKey::File(_));
            if !may_differ && self.running.get(&feed.name).is_some_and(|(running, _)| *running == feed) {
                continue;
            }
            match Poller::new(feed.clone(), self.context.clone(), self.settings) {
                Ok(poller) => {
                    self.end(&feed.name);
                    self.waiting.push((feed, poller));
                }
                Err(error) => {
                    tracing::error!(feed = &*feed.name, %error, "feed not restarted; it keeps its old settings");
                }
            }
        }
    }

    fn end(&mut self, name: &str) {
        if let Some((_, task)) = self.running.remove(name) {
            task.abort();
        }
    }
}
