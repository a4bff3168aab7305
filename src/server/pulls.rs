//! The feeds that are polled: those of the configuration in force. When it changes, those that it changes start anew.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::task::JoinSet;

use super::ServeError;
use super::pull::{Pull, Surroundings};
use crate::config::{Config, FeedConfig, FeedKey};

/// Every feed that is polled, each in a task of its own. Dropping it ends them: a poll is taken whole or not at all.
#[derive(Debug)]
pub(super) struct Pulls {
    around: Surroundings,
    config: watch::Receiver<Arc<Config>>,
    /// Those that have not begun.
    waiting: Vec<(FeedConfig, Pull)>,
    running: BTreeMap<Box<str>, (FeedConfig, AbortHandle)>,
    tasks: JoinSet<()>,
}

impl Pulls {
    /// Makes every feed of the configuration ready: what is wrong with one is known before anything is served.
    pub(super) fn open(around: Surroundings, mut config: watch::Receiver<Arc<Config>>) -> Result<Self, ServeError> {
        let feeds = config.borrow_and_update().feeds.clone();
        let ready = |feed: FeedConfig| Ok::<_, ServeError>((feed.clone(), Pull::new(feed, around.clone())?));
        let waiting = feeds.into_iter().map(ready).collect::<Result<_, _>>()?;
        Ok(Pulls { around, config, waiting, running: BTreeMap::new(), tasks: JoinSet::new() })
    }

    pub(super) async fn run(mut self) {
        loop {
            for (feed, pull) in std::mem::take(&mut self.waiting) {
                let task = self.tasks.spawn(pull.run());
                self.running.insert(feed.name.clone(), (feed, task));
            }
            if self.config.changed().await.is_err() {
                // No configuration can follow; the feeds go on until the server ends them.
                while self.tasks.join_next().await.is_some() {}
                return;
            }
            self.follow();
        }
    }

    /// Ends what the new configuration no longer has, and makes ready what it has anew. A feed that cannot begin leaves
    /// the one before it at work.
    fn follow(&mut self) {
        let feeds = self.config.borrow_and_update().feeds.clone();
        let gone = |name: &str| !feeds.iter().any(|feed| *feed.name == *name);
        for name in self.running.keys().filter(|name| gone(name)).cloned().collect::<Vec<_>>() {
            self.end(&name);
            self.around.ledger.close(&name);
        }
        for feed in feeds {
            // A file may hold another key by now.
            let may_differ = matches!(feed.key, FeedKey::File(_));
            if !may_differ && self.running.get(&feed.name).is_some_and(|(running, _)| *running == feed) {
                continue;
            }
            match Pull::new(feed.clone(), self.around.clone()) {
                Ok(pull) => {
                    self.end(&feed.name);
                    self.waiting.push((feed, pull));
                }
                Err(error) => tracing::error!(feed = &*feed.name, %error, "the feed goes on as it was"),
            }
        }
    }

    fn end(&mut self, name: &str) {
        if let Some((_, task)) = self.running.remove(name) {
            task.abort();
        }
    }
}
