//! Runs the polled feeds of the configuration in force, each in a task of its own. When the configuration changes, the
//! feeds that it changes are restarted. So is a feed that panics, after a while.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::{AbortHandle, Id, JoinSet};

use super::{FeedError, PollSettings, Poller, PreparedFeed};
use crate::config::{Config, FeedConfig, FeedKey};
use crate::ingest::IngestContext;
use crate::model::Catalogue;
use crate::supervise::RESTART_AFTER;

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
        let mut is_last = false;
        loop {
            for (feed, poller) in std::mem::take(&mut self.waiting) {
                let task = self.tasks.spawn(poller.run());
                self.running.insert(feed.name.clone(), (feed, task));
            }
            tokio::select! {
                changed = self.config.changed(), if !is_last => match changed {
                    Ok(()) => self.follow(),
                    // No further configuration can come; the feeds run until the server ends them.
                    Err(_) => is_last = true,
                },
                Some(ended) = self.tasks.join_next_with_id() => {
                    if let Err(error) = ended && error.is_panic() {
                        self.start_again(error.id());
                    }
                }
                else => return,
            }
        }
    }

    /// Starts the feed of a task that panicked again. Others go on meanwhile.
    fn start_again(&mut self, panicked: Id) {
        // A feed that was changed or removed since has another task or none.
        let Some((feed, task)) = self.running.values_mut().find(|(_, task)| task.id() == panicked) else { return };
        match Poller::new(feed.clone(), self.context.clone(), self.settings) {
            Ok(poller) => {
                tracing::error!(feed = &*feed.name, "the feed panicked; it is started again in a minute");
                *task = self.tasks.spawn(async move {
                    tokio::time::sleep(RESTART_AFTER).await;
                    poller.run().await;
                });
            }
            Err(error) => tracing::error!(feed = &*feed.name, %error, "the feed panicked and cannot be started again"),
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use tokio::net::TcpListener;

    use super::*;
    use crate::config::{FeedSecret, SETTINGS, Settings};
    use crate::ingest::tests::Fixture;
    use crate::model::{OddsFormat, Region, Regions, World};

    static PANICS: AtomicU32 = AtomicU32::new(0);

    fn feed(address: std::net::SocketAddr) -> FeedConfig {
        FeedConfig {
            name: "us".into(),
            url: format!("http://{address}/v4"),
            key: FeedKey::Text(FeedSecret::new("key")),
            world: World::Live,
            sports: vec!["mma".to_owned()],
            regions: Regions::only(Region::Us),
            markets: vec!["h2h".to_owned()],
            event_markets: Vec::new(),
            event_horizon: Duration::ZERO,
            odds_format: OddsFormat::Decimal,
            interval: Duration::from_secs(60),
            scores_interval: None,
            requests_per_day: None,
            timeout: Duration::from_secs(30),
            ca: None,
        }
    }

    /// The random part of a wait is wanted after a poll that failed.
    fn panics_once() -> u32 {
        assert!(PANICS.fetch_add(1, Ordering::Relaxed) > 0, "a fault in the feed's task");
        0
    }

    #[tokio::test(start_paused = true)]
    async fn feed_that_panics_is_started_again() {
        let fixture = Fixture::new();
        let upstream = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let feeds = vec![feed(upstream.local_addr().unwrap())];
        let config = Config { feeds, ..Settings::defaults(SETTINGS).read().unwrap() };
        let (_running, config) = watch::channel(Arc::new(config));
        let settings = PollSettings { stale_after_s: 120, random: panics_once };
        let pollers = Pollers::open(fixture.context.clone(), settings, config).unwrap();
        let task = tokio::spawn(pollers.run());
        // The first poll fails, and the feed panics. Only its next task polls again: time passes for it in its pause alone.
        drop(upstream.accept().await.unwrap());
        drop(upstream.accept().await.unwrap());
        assert!(PANICS.load(Ordering::Relaxed) > 0, "nothing panicked");
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled(), "other feeds go on");
        fixture.end().await;
    }
}
