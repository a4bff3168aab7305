//! How many connections each listener may have, so that all of them together leave file descriptors for everything else:
//! the admin socket, the data file when it is opened again, backups, polled feeds.

use std::sync::Arc;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::sync::watch;

use crate::admin::CONSOLE_CONNECTIONS_MAX;
use crate::config::Config;
use crate::http;
use crate::tls::Acceptor;

/// Descriptors that are reserved for other uses than clients' connections. An idle server has about twenty.
const RESERVE: usize = 64;

/// Feeders and the console may each have at most this fraction of the clients' descriptors.
const SHARE: usize = 8;

/// The options of the listeners, which a reload changes.
#[derive(Debug)]
pub(super) struct Bounds {
    pub public: watch::Sender<http::Options>,
    pub ingest: watch::Sender<http::Options>,
    pub console: http::Options,
    pub heads: Arc<http::Heads>,
    /// How many files may be open; `None` is no limit.
    files_max: Option<usize>,
}

impl Bounds {
    pub(super) fn new(config: &Config, tls: Option<Arc<Acceptor>>) -> Bounds {
        let files_max = raise_files_max();
        let shares = Shares::announced(config, files_max);
        let heads = Arc::default();
        let options = |connections| listener_options(config, connections, tls.clone(), &heads);
        Bounds {
            public: watch::Sender::new(options(shares.public)),
            ingest: watch::Sender::new(options(shares.ingest)),
            console: options(shares.console),
            heads: Arc::clone(&heads),
            files_max,
        }
    }

    /// Applies another configuration to new connections.
    pub(super) fn set(&self, config: &Config, tls: Option<&Arc<Acceptor>>) {
        let shares = Shares::announced(config, self.files_max);
        let options = |connections| listener_options(config, connections, tls.cloned(), &self.heads);
        self.public.send_replace(options(shares.public));
        self.ingest.send_replace(options(shares.ingest));
    }
}

fn listener_options(
    config: &Config,
    connections: usize,
    tls: Option<Arc<Acceptor>>,
    heads: &Arc<http::Heads>,
) -> http::Options {
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    http::Options {
        connections_max: count(connections),
        connections_per_address_max: config.connections_per_address.map(count),
        deadlines: http::Deadlines {
            head: config.header_timeout,
            idle: config.idle_timeout,
            write: config.write_timeout,
        },
        drain: config.drain_timeout,
        tls,
        trusted_proxies: config.trusted_proxies.clone(),
        heads: Arc::clone(heads),
        ..http::Options::default()
    }
}

/// How many connections each listener may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shares {
    public: usize,
    ingest: usize,
    console: usize,
}

impl Shares {
    fn of(config: &Config, files_max: Option<usize>) -> Shares {
        let wanted = config.connections;
        let Some(files_max) = files_max else { return Shares { public: wanted, ingest: wanted, console: wanted } };
        // A limit below the reserve still leaves a few for clients.
        let clients = files_max.saturating_sub(RESERVE + config.feeds.len()).max(files_max / SHARE).max(3);
        let share = (clients / SHARE).max(1);
        let ingest = if config.ingest_listen.is_some() { share.min(wanted) } else { 0 };
        let console = if config.console_listen.is_some() { share.min(CONSOLE_CONNECTIONS_MAX as usize) } else { 0 };
        Shares { public: wanted.min(clients - ingest - console), ingest, console }
    }

    /// The same, with a warning if it is less than configured.
    fn announced(config: &Config, files_max: Option<usize>) -> Shares {
        let shares = Shares::of(config, files_max);
        if shares.public < config.connections {
            tracing::warn!(
                connections = config.connections,
                accepted = shares.public,
                open_files_max = files_max,
                "fewer connections are accepted than set: the limit of open files is too low; raise it (LimitNOFILE= in \
                 systemd, ulimit -n in a shell), or set `connections` lower"
            );
        }
        shares
    }
}

/// Raises the soft limit of open files to the hard limit, where that is allowed; the limit in force.
fn raise_files_max() -> Option<usize> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        // Where it cannot be raised, as many connections are accepted as it allows.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    }
    getrlimit(Resource::Nofile).current.map(|files_max| usize::try_from(files_max).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{SETTINGS, Settings};

    fn shares(files_max: Option<usize>, flags: &[(&'static str, &str)]) -> Shares {
        let mut settings = Settings::defaults(SETTINGS);
        for (name, value) in flags {
            settings = settings.with_flag(name, "a test", Some((*value).to_owned()));
        }
        Shares::of(&settings.read().unwrap(), files_max)
    }

    #[test]
    fn connections_of_all_listeners_leave_the_reserve() {
        let all = [("ingest.listen", "127.0.0.1:0"), ("console.listen", "127.0.0.1:0")];
        for files_max in [128, 256, 1024, 4096, 20_000, 65_536] {
            let Shares { public, ingest, console } = shares(Some(files_max), &all);
            assert!(public.min(ingest).min(console) > 0, "{files_max}");
            assert!(public + ingest + console + RESERVE <= files_max, "{files_max}");
            assert_eq!(shares(Some(files_max), &[]).public, 10_240.min(files_max - RESERVE));
        }
        assert_eq!(shares(Some(65_536), &all).public, 10_240);
    }

    #[test]
    fn low_limit_of_open_files_leaves_every_listener_a_connection() {
        let all = [("ingest.listen", "127.0.0.1:0"), ("console.listen", "127.0.0.1:0")];
        for files_max in [1, 16, 64, 70] {
            let Shares { public, ingest, console } = shares(Some(files_max), &all);
            assert!(public.min(ingest).min(console) > 0, "{files_max}");
        }
        assert_eq!(shares(None, &[]).public, 10_240);
    }
}
