//! The operator's configuration: a file, environment variables and flags, in increasing order of precedence, parsed
//! once into [`Config`].

pub mod catalogue;
mod cluster;
mod feeds;
#[cfg(test)]
mod reference;
mod settings;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::model::FeederQuota;
use crate::nearest::nearest;
use crate::networks::Networks;
pub use cluster::{ClusterConfig, is_node_name};
pub use feeds::{FEED_SETTINGS, FeedConfig, FeedKey, FeedSecret, ShownField};
pub use settings::{Setting, SettingOrigin, SettingValue, Settings};

/// All settings except those of polled feeds.
pub const SETTINGS: &[Setting] = &[
    Setting { name: "listen", default: "127.0.0.1:8080", help: "address of the public API; port 0 picks a free one" },
    Setting { name: "refresh", default: "30s", help: "how often prices are published; ticks are aligned to the clock" },
    Setting {
        name: "stale_after",
        default: "120s",
        help: "a source is stale after this long without a successful read",
    },
    Setting { name: "retention", default: "72h", help: "how long a finished event stays in the lists" },
    Setting {
        name: "history.keep",
        default: "400d",
        help: "how long the log of price changes is kept; 0s keeps only what streams need to resume",
    },
    Setting {
        name: "history.keep_sandbox",
        default: "7d",
        help: "the same for the sandbox world, and for a live world that is simulated",
    },
    Setting {
        name: "history.max_bytes",
        default: "10GiB",
        help: "maximum size of the log of both worlds: beyond it the oldest days are removed; it does not grow while less than 1 GiB of the disk is free",
    },
    Setting { name: "history.resume", default: "24h", help: "how far back a stream can resume" },
    Setting { name: "allow_query_key", default: "true", help: "accept the key as ?api_key= as well" },
    Setting {
        name: "catalogue",
        default: "",
        help: "file of sports, competitions, markets and bookmakers on top of the built-in ones",
    },
    Setting { name: "cache", default: "64", help: "MiB of memory for database pages" },
    Setting { name: "connections", default: "10240", help: "maximum number of open connections" },
    Setting {
        name: "connections_per_address",
        default: "256",
        help: "maximum number of open connections, and of streams, per address (IPv6: per /64), except loopback and trusted_proxies; 0 is no limit",
    },
    Setting {
        name: "trusted_proxies",
        default: "",
        help: "addresses and networks of proxies whose X-Forwarded-For or Forwarded is trusted",
    },
    Setting { name: "header_timeout", default: "10s", help: "how long a client may take to send a request's headers" },
    Setting { name: "idle_timeout", default: "75s", help: "how long a connection may stay open without a request" },
    Setting { name: "write_timeout", default: "30s", help: "how long a client may stall while it reads a response" },
    Setting { name: "drain_timeout", default: "10s", help: "how long a shutdown waits for responses in progress" },
    Setting {
        name: "tls.certificate",
        default: "",
        help: "PEM file of the certificate and its chain; with tls.key, the public API uses TLS",
    },
    Setting { name: "tls.key", default: "", help: "PEM file of the certificate's private key" },
    Setting {
        name: "ingest.listen",
        default: "",
        help: "address to which feeders on other machines push feed lines with their tokens; empty is off",
    },
    Setting {
        name: "ingest.drop",
        default: "",
        help: "directory whose *.ndjson and *.json files are ingested into the live world; empty is off",
    },
    Setting {
        name: "ingest.inflated_max",
        default: "1024",
        help: "maximum decompressed size in MiB of one request of a feeder",
    },
    Setting {
        name: "ingest.bookmakers_per_day",
        default: "200",
        help: "new bookmakers that one feeder may add in a UTC day",
    },
    Setting { name: "ingest.bookmakers", default: "500", help: "bookmakers that one feeder may add in total" },
    Setting {
        name: "ingest.events_per_day",
        default: "20000",
        help: "new events that one feeder may add in a UTC day",
    },
    Setting { name: "ingest.events", default: "50000", help: "maximum number of existing events of one feeder" },
    Setting {
        name: "ingest.names_per_day",
        default: "500",
        help: "new competitions and markets, together, that one feeder may add in a UTC day",
    },
    Setting {
        name: "ingest.names",
        default: "1000",
        help: "competitions and markets, together, that one feeder may add in total",
    },
    Setting { name: "log", default: "info", help: "log level: error, warn, info, debug, trace, or a filter" },
    Setting { name: "log_format", default: "auto", help: "text, json, or auto: text on a terminal, json otherwise" },
    Setting {
        name: "admin.listen",
        default: "",
        help: "loopback address for /metrics, /livez and /readyz, which the admin socket always serves",
    },
    Setting {
        name: "simulator.seed",
        default: "1",
        help: "seed of the sandbox world: the same seed gives the same prices",
    },
    Setting { name: "console.listen", default: "", help: "address of the web console; empty is off" },
    Setting { name: "console.host", default: "", help: "host name under which the console is also reachable" },
    Setting {
        name: "cluster.url",
        default: "",
        help: "Redis or Valkey server of the cluster, such as redis://10.0.0.5:6379, or rediss:// for TLS; empty is a single node",
    },
    Setting {
        name: "cluster.name",
        default: "oddsbox",
        help: "name of the cluster: what its keys on that server begin with",
    },
    Setting { name: "cluster.node", default: "", help: "name of this node; empty is the name of the machine" },
    Setting {
        name: "cluster.lease",
        default: "10s",
        help: "how long a node serves without having reached that server; the same on every node",
    },
    Setting {
        name: "cluster.when_cut_off",
        default: "refuse",
        help: "what a node does then: refuse requests with 503, or serve its last prices",
    },
    Setting { name: "cluster.user", default: "", help: "user on that server; empty is its default user" },
    Setting { name: "cluster.password_file", default: "", help: "file with the password for that server" },
    Setting {
        name: "cluster.ca",
        default: "",
        help: "PEM file of the certificate authority of that server, if it is a private one",
    },
    Setting {
        name: "cluster.certificate",
        default: "",
        help: "PEM file of the certificate with which this node identifies itself to that server",
    },
    Setting { name: "cluster.key", default: "", help: "PEM file of that certificate's private key" },
];

/// Environment variables that are not settings. The last two are read by clients (see `examples`): exporting them for a
/// client must not keep the service from starting in the same shell.
pub const OTHER_VARIABLES: &[&str] = &["ODDSBOX_DATA", "ODDSBOX_CONFIG", "ODDSBOX_KEY", "ODDSBOX_URL"];

/// The settings that a reload applies; the others need a restart, and so does turning TLS on or off. Polled feeds are
/// reloaded as well.
pub const RELOADED: &[&str] = &[
    "allow_query_key",
    "connections",
    "connections_per_address",
    "trusted_proxies",
    "header_timeout",
    "idle_timeout",
    "write_timeout",
    "drain_timeout",
    "tls.certificate",
    "tls.key",
    "log",
];

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    Auto,
    Text,
    Json,
}

/// The paths of a certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// The validated configuration.
#[derive(Clone, Debug)]
pub struct Config {
    pub listen: SocketAddr,
    pub refresh: Duration,
    pub stale_after: Duration,
    pub retention: Duration,
    pub history_keep: Duration,
    pub history_keep_sandbox: Duration,
    pub history_bytes_max: u64,
    pub history_resume: Duration,
    pub allow_query_key: bool,
    pub catalogue: Option<PathBuf>,
    pub cache_bytes: usize,
    pub connections: usize,
    /// `None` if unlimited.
    pub connections_per_address: Option<usize>,
    /// Proxies whose report of the client's address is trusted.
    pub trusted_proxies: Networks,
    pub header_timeout: Duration,
    pub idle_timeout: Duration,
    pub write_timeout: Duration,
    pub drain_timeout: Duration,
    /// `None` for plain HTTP.
    pub tls: Option<TlsFiles>,
    /// The address that feeders push to; `None` if off.
    pub ingest_listen: Option<SocketAddr>,
    /// The drop directory.
    pub ingest_drop: Option<PathBuf>,
    /// The maximum inflated size of one compressed request in bytes.
    pub ingest_inflated_max: u64,
    /// The quota of each feeder.
    pub ingest_quota: FeederQuota,
    pub log: String,
    pub log_format: LogFormat,
    /// `None` if only the admin socket serves metrics.
    pub admin_listen: Option<SocketAddr>,
    pub simulator_seed: u64,
    /// The polled feeds.
    pub feeds: Vec<FeedConfig>,
    /// `None` if the console is off.
    pub console_listen: Option<SocketAddr>,
    pub console_host: Option<String>,
    /// `None` for a single node.
    pub cluster: Option<ClusterConfig>,
}

impl Config {
    /// The URL scheme of the public API.
    pub fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }

    /// This configuration with the settings that need a restart taken from the running one.
    #[must_use]
    pub fn reloaded_over(self, running: &Config) -> Config {
        let tls = if self.tls.is_some() == running.tls.is_some() { self.tls } else { running.tls.clone() };
        Config {
            listen: running.listen,
            refresh: running.refresh,
            stale_after: running.stale_after,
            retention: running.retention,
            history_keep: running.history_keep,
            history_keep_sandbox: running.history_keep_sandbox,
            history_bytes_max: running.history_bytes_max,
            history_resume: running.history_resume,
            catalogue: running.catalogue.clone(),
            cache_bytes: running.cache_bytes,
            tls,
            log_format: running.log_format,
            admin_listen: running.admin_listen,
            simulator_seed: running.simulator_seed,
            ingest_listen: running.ingest_listen,
            ingest_drop: running.ingest_drop.clone(),
            ingest_inflated_max: running.ingest_inflated_max,
            ingest_quota: running.ingest_quota,
            console_listen: running.console_listen,
            console_host: running.console_host.clone(),
            cluster: running.cluster.clone(),
            ..self
        }
    }

    /// A summary for the audit log: the settings that decide what is served.
    pub fn summary(&self) -> String {
        let time = humantime::format_duration;
        format!(
            "listen {}, refresh {}, stale_after {}, retention {}, allow_query_key {}",
            self.listen,
            time(self.refresh),
            time(self.stale_after),
            time(self.retention),
            self.allow_query_key
        )
    }
}

/// A number of bytes: `10GiB`, `500MiB`, or without a unit.
fn bytes(text: &str) -> Option<u64> {
    const UNITS: [(&str, u32); 4] = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let unit = UNITS.iter().find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, *shift)));
    let (number, shift) = unit.unwrap_or((text, 0));
    number.trim_end().parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// An invalid configuration. Each message names the setting and the values that it takes.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("cannot read {path}: {error}", path = path.display())]
    Unreadable { path: PathBuf, error: std::io::Error },
    #[error("{path}: {detail}", path = path.display())]
    File { path: PathBuf, detail: String },
    #[error("there is no setting {name}{hint}", hint = hint.as_ref().map(|name| format!("; did you mean {name}?")).unwrap_or_default())]
    Unknown { name: String, hint: Option<String> },
    #[error("{name} = {value:?} (from {origin}): {takes}")]
    Value { name: &'static str, value: String, origin: SettingOrigin, takes: String },
    #[error("{name} {takes}")]
    Feed { name: String, takes: String },
}

impl ConfigError {
    fn unknown<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Self {
        ConfigError::Unknown { name: name.to_owned(), hint: nearest(name, known).map(str::to_owned) }
    }
}

impl Settings {
    /// Merges the file's settings and the environment's, which take precedence. The caller adds flags.
    pub fn gather(
        file: Option<&Path>,
        variables: impl Iterator<Item = (String, String)>,
    ) -> Result<Settings, ConfigError> {
        let mut settings = Settings::defaults(SETTINGS);
        if let Some(path) = file {
            let text = std::fs::read_to_string(path)
                .map_err(|error| ConfigError::Unreadable { path: path.to_owned(), error })?;
            settings = settings.with_file(path, &text)?;
        }
        settings.with_variables(SETTINGS, OTHER_VARIABLES, variables)
    }

    /// Parses and validates all values.
    pub fn read(&self) -> Result<Config, ConfigError> {
        let path = |name| Some(self.get(name).text).filter(|path| !path.is_empty()).map(PathBuf::from);
        let per_address = self.number("connections_per_address", 0, 1_000_000)?;
        Ok(Config {
            listen: self
                .parse("listen", "takes an address and port, such as 127.0.0.1:8080", |text| text.parse().ok())?,
            refresh: self.duration("refresh", 1, 3600)?,
            stale_after: self.duration("stale_after", 1, 86_400)?,
            retention: self.duration("retention", 0, 365 * 86_400)?,
            history_keep: self.duration("history.keep", 0, 3650 * 86_400)?,
            history_keep_sandbox: self.duration("history.keep_sandbox", 0, 3650 * 86_400)?,
            history_bytes_max: self.parse("history.max_bytes", "takes a size such as 500MiB or 10GiB", bytes)?,
            history_resume: self.duration("history.resume", 0, 30 * 86_400)?,
            allow_query_key: self.parse("allow_query_key", "takes true or false", |text| text.parse().ok())?,
            catalogue: path("catalogue"),
            cache_bytes: self.number("cache", 1, 65_536)? << 20,
            connections: self.number("connections", 1, 1_000_000)?,
            connections_per_address: (per_address > 0).then_some(per_address),
            trusted_proxies: self.parse(
                "trusted_proxies",
                "takes IP addresses and networks such as 10.0.0.0/8 or ::1, separated by commas",
                Networks::parse,
            )?,
            header_timeout: self.duration("header_timeout", 1, 3600)?,
            idle_timeout: self.duration("idle_timeout", 1, 86_400)?,
            write_timeout: self.duration("write_timeout", 1, 3600)?,
            drain_timeout: self.duration("drain_timeout", 0, 3600)?,
            tls: self.pair_of_files("tls.certificate", "tls.key")?,
            ingest_listen: self.ingest_listen()?,
            ingest_drop: path("ingest.drop"),
            ingest_inflated_max: (self.number("ingest.inflated_max", 1, 1 << 20)? as u64) << 20,
            ingest_quota: self.ingest_quota()?,
            log: self.get("log").text,
            log_format: self.parse("log_format", "takes auto, text or json", |text| match text {
                "auto" => Some(LogFormat::Auto),
                "text" => Some(LogFormat::Text),
                "json" => Some(LogFormat::Json),
                _ => None,
            })?,
            admin_listen: self.admin_listen()?,
            feeds: self.read_feeds()?,
            simulator_seed: self.parse("simulator.seed", "takes a whole number", |text| text.parse().ok())?,
            console_listen: self.parse(
                "console.listen",
                "takes an address and port, such as 127.0.0.1:8081",
                |text| {
                    if text.is_empty() { Some(None) } else { text.parse().ok().map(Some) }
                },
            )?,
            console_host: self.parse("console.host", "takes a name without a port, such as odds.example", |text| {
                let is_name = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte));
                is_name.then(|| (!text.is_empty()).then(|| text.to_owned()))
            })?,
            cluster: self.cluster()?,
        })
    }

    fn ingest_quota(&self) -> Result<FeederQuota, ConfigError> {
        let count = |name| self.number(name, 0, 100_000_000).map(|count| u32::try_from(count).unwrap_or(u32::MAX));
        Ok(FeederQuota {
            bookmakers_per_day: count("ingest.bookmakers_per_day")?,
            bookmakers: count("ingest.bookmakers")?,
            events_per_day: count("ingest.events_per_day")?,
            events: count("ingest.events")?,
            names_per_day: count("ingest.names_per_day")?,
            names: count("ingest.names")?,
        })
    }

    fn ingest_listen(&self) -> Result<Option<SocketAddr>, ConfigError> {
        self.parse("ingest.listen", "takes an address and port, such as 0.0.0.0:8081, or nothing", |text| {
            if text.is_empty() { Some(None) } else { text.parse().ok().map(Some) }
        })
    }

    /// Loopback only, as the endpoints expose internals without authentication.
    fn admin_listen(&self) -> Result<Option<SocketAddr>, ConfigError> {
        let takes = "takes an address and port on this machine's loopback, such as 127.0.0.1:9100, or nothing";
        self.parse("admin.listen", takes, |text| match text {
            "" => Some(None),
            text => text.parse().ok().filter(|address: &SocketAddr| address.ip().is_loopback()).map(Some),
        })
    }

    /// A certificate and its key, which are set both or neither.
    fn pair_of_files(
        &self,
        certificate_name: &'static str,
        key_name: &'static str,
    ) -> Result<Option<TlsFiles>, ConfigError> {
        let (certificate, key) = (self.get(certificate_name), self.get(key_name));
        let (name, other, missing) = match (certificate.text.is_empty(), key.text.is_empty()) {
            (true, true) => return Ok(None),
            (false, false) => {
                return Ok(Some(TlsFiles { certificate: certificate.text.into(), key: key.text.into() }));
            }
            (true, false) => (certificate_name, key_name, certificate),
            (false, true) => (key_name, certificate_name, key),
        };
        let takes = format!("takes a PEM file, as {other} is set: set both or neither");
        Err(ConfigError::Value { name, value: missing.text, origin: missing.origin, takes })
    }

    fn parse<T>(
        &self,
        name: &'static str,
        takes: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, ConfigError> {
        let SettingValue { text, origin } = self.get(name);
        read(&text).ok_or_else(|| ConfigError::Value { name, value: text, origin, takes: takes.to_owned() })
    }

    fn number(&self, name: &'static str, least: usize, most: usize) -> Result<usize, ConfigError> {
        let in_range = |text: &str| text.parse().ok().filter(|number| (least..=most).contains(number));
        self.parse(name, &format!("takes a whole number from {least} to {most}"), in_range)
    }

    fn duration(&self, name: &'static str, least_s: u64, most_s: u64) -> Result<Duration, ConfigError> {
        let (least, most) = (Duration::from_secs(least_s), Duration::from_secs(most_s));
        let in_range = |text: &str| humantime::parse_duration(text).ok().filter(|value| (least..=most).contains(value));
        let takes = format!(
            "takes a duration such as 30s or 24h, from {} to {}",
            humantime::format_duration(least),
            humantime::format_duration(most)
        );
        self.parse(name, &takes, in_range)
    }
}

#[cfg(test)]
mod tests;
