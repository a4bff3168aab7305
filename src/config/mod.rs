//! What an operator sets: one file, variables of the environment, and flags, in that order of precedence, read once
//! into one type and handed on as plain values.

pub mod catalogue;
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
pub use feeds::{FEED_SETTINGS, FeedConfig, FeedKey, Secret, ShownField};
pub use settings::{Found, Origin, Setting, Settings};

/// Every setting there is.
pub const SETTINGS: &[Setting] = &[
    Setting {
        name: "listen",
        default: "127.0.0.1:8080",
        help: "address of the public interface; port 0 picks a free one",
    },
    Setting { name: "refresh", default: "30s", help: "how often prices are published; ticks are aligned to the clock" },
    Setting { name: "stale_after", default: "120s", help: "a source without a good read for longer is stale" },
    Setting { name: "retention", default: "72h", help: "how long an event that is over stays in the lists" },
    Setting { name: "allow_query_key", default: "true", help: "accept the key as ?api_key= as well" },
    Setting { name: "catalogue", default: "", help: "file of sports and bookmakers in place of the built-in one" },
    Setting { name: "cache", default: "64", help: "MiB of memory for the database's pages" },
    Setting { name: "connections", default: "10240", help: "open connections at most" },
    Setting {
        name: "connections_per_address",
        default: "256",
        help: "open connections of one address (IPv6: one /64) at most, except loopback and trusted_proxies; 0 is no limit",
    },
    Setting {
        name: "trusted_proxies",
        default: "",
        help: "addresses and networks of proxies whose X-Forwarded-For or Forwarded is believed",
    },
    Setting { name: "header_timeout", default: "10s", help: "how long a client may take to send a request's headers" },
    Setting { name: "idle_timeout", default: "75s", help: "how long a connection may stay open without a request" },
    Setting { name: "write_timeout", default: "30s", help: "how long a client may take no byte of an answer" },
    Setting { name: "drain_timeout", default: "10s", help: "how long a stop waits for answers under way" },
    Setting {
        name: "tls.certificate",
        default: "",
        help: "PEM file of the certificate and its chain; with tls.key, the public interface speaks TLS",
    },
    Setting { name: "tls.key", default: "", help: "PEM file of the certificate's private key" },
    Setting {
        name: "ingest.listen",
        default: "",
        help: "address at which feeders on other machines send feed lines with their tokens; empty is none",
    },
    Setting {
        name: "ingest.drop",
        default: "",
        help: "directory whose *.ndjson and *.json files are taken into the live world; empty is none",
    },
    Setting {
        name: "ingest.inflated_max",
        default: "1024",
        help: "MiB that one compressed request of a feeder may inflate to",
    },
    Setting {
        name: "ingest.bookmakers_per_day",
        default: "200",
        help: "new bookmakers that one feeder may add in a UTC day",
    },
    Setting {
        name: "ingest.bookmakers",
        default: "500",
        help: "new bookmakers that one feeder may add while the server runs",
    },
    Setting {
        name: "ingest.events_per_day",
        default: "20000",
        help: "new events that one feeder may add in a UTC day",
    },
    Setting { name: "ingest.events", default: "50000", help: "events of one feeder that may be there at one time" },
    Setting { name: "log", default: "info", help: "what is logged: error, warn, info, debug, trace, or a filter" },
    Setting { name: "log_format", default: "auto", help: "text, json, or auto: text on a terminal, json otherwise" },
    Setting {
        name: "admin.listen",
        default: "",
        help: "address on loopback for /metrics, /livez and /readyz; they are on the admin socket anyway",
    },
    Setting {
        name: "simulator.seed",
        default: "1",
        help: "the sandbox world's seed: the same seed gives the same prices",
    },
    Setting { name: "console.listen", default: "", help: "address of the operator's console; empty is off" },
    Setting { name: "console.host", default: "", help: "name that the console is called by, beside its address" },
];

/// Variables of the environment that are no settings of the file. The last two are what clients read (see `examples`):
/// whoever exports them for a client must not be kept from starting the service in the same shell.
pub const OTHER_VARIABLES: &[&str] = &["ODDSBOX_DATA", "ODDSBOX_CONFIG", "ODDSBOX_KEY", "ODDSBOX_URL"];

/// The settings that a running server takes over when it reads its configuration again; the others need a restart.
/// Whether there is TLS at all needs one too. The feeds that are polled are taken over as well.
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

/// How log lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    Auto,
    Text,
    Json,
}

/// Where a certificate and its key are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// Everything that an operator can set, checked.
#[derive(Clone, Debug)]
pub struct Config {
    pub listen: SocketAddr,
    pub refresh: Duration,
    pub stale_after: Duration,
    pub retention: Duration,
    pub allow_query_key: bool,
    pub catalogue: Option<PathBuf>,
    pub cache_bytes: usize,
    pub connections: usize,
    /// `None` is no limit.
    pub connections_per_address: Option<usize>,
    /// Proxies that are believed when they report whom they ask for.
    pub trusted_proxies: Networks,
    pub header_timeout: Duration,
    pub idle_timeout: Duration,
    pub write_timeout: Duration,
    pub drain_timeout: Duration,
    /// `None` is plain text.
    pub tls: Option<TlsFiles>,
    /// Where feeders on other machines send; `None` nowhere.
    pub ingest_listen: Option<SocketAddr>,
    /// The watched directory.
    pub ingest_drop: Option<PathBuf>,
    /// Bytes that one compressed request may inflate to.
    pub ingest_inflated_max: u64,
    /// What one feeder may add.
    pub ingest_quota: FeederQuota,
    pub log: String,
    pub log_format: LogFormat,
    /// `None` is no such address.
    pub admin_listen: Option<SocketAddr>,
    pub simulator_seed: u64,
    /// The feeds that are polled.
    pub feeds: Vec<FeedConfig>,
    /// `None` is off.
    pub console_listen: Option<SocketAddr>,
    pub console_host: Option<String>,
}

impl Config {
    /// What the public interface's address begins with.
    pub fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }

    /// This configuration, with what cannot change in a running server as that server has it.
    #[must_use]
    pub fn with_what_needs_a_restart_of(self, running: &Config) -> Config {
        let tls = if self.tls.is_some() == running.tls.is_some() { self.tls } else { running.tls.clone() };
        Config {
            listen: running.listen,
            refresh: running.refresh,
            stale_after: running.stale_after,
            retention: running.retention,
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
            ..self
        }
    }

    /// What the audit log keeps of a start: the settings that decide what is served.
    pub fn described(&self) -> String {
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

/// What is wrong with the configuration. Each message names the setting and what it takes.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("{path}: {detail}", path = path.display())]
    File { path: PathBuf, detail: String },
    #[error("there is no setting {name}{hint}", hint = hint.as_ref().map(|name| format!("; did you mean {name}?")).unwrap_or_default())]
    Unknown { name: String, hint: Option<String> },
    #[error("{name} = {value:?} (from {origin}): {takes}")]
    Value { name: &'static str, value: String, origin: Origin, takes: String },
    #[error("{name} {takes}")]
    Feed { name: String, takes: String },
}

impl ConfigError {
    fn unknown<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Self {
        ConfigError::Unknown { name: name.to_owned(), hint: nearest(name, known).map(str::to_owned) }
    }
}

impl Settings {
    /// The file's settings under the environment's. Flags are put on top by the caller.
    pub fn gather(
        file: Option<&Path>,
        variables: impl Iterator<Item = (String, String)>,
    ) -> Result<Settings, ConfigError> {
        let mut settings = Settings::defaults(SETTINGS);
        if let Some(path) = file {
            let text = std::fs::read_to_string(path).map_err(|error| ConfigError::File {
                path: path.to_owned(),
                detail: format!("cannot be read: {error}"),
            })?;
            settings = settings.with_file(path, &text)?;
        }
        settings.with_variables(SETTINGS, OTHER_VARIABLES, variables)
    }

    /// Reads every value into its type.
    pub fn read(&self) -> Result<Config, ConfigError> {
        let path = |name| Some(self.get(name).value).filter(|path| !path.is_empty()).map(PathBuf::from);
        let per_address = self.number("connections_per_address", 0, 1_000_000)?;
        Ok(Config {
            listen: self
                .parse("listen", "takes an address and port, such as 127.0.0.1:8080", |text| text.parse().ok())?,
            refresh: self.duration("refresh", 1, 3600)?,
            stale_after: self.duration("stale_after", 1, 86_400)?,
            retention: self.duration("retention", 0, 365 * 86_400)?,
            allow_query_key: self.parse("allow_query_key", "takes true or false", |text| text.parse().ok())?,
            catalogue: path("catalogue"),
            cache_bytes: self.number("cache", 1, 65_536)? << 20,
            connections: self.number("connections", 1, 1_000_000)?,
            connections_per_address: (per_address > 0).then_some(per_address),
            trusted_proxies: self.parse(
                "trusted_proxies",
                "takes IP addresses and networks such as 10.0.0.0/8 or ::1, with commas between them",
                Networks::parse,
            )?,
            header_timeout: self.duration("header_timeout", 1, 3600)?,
            idle_timeout: self.duration("idle_timeout", 1, 86_400)?,
            write_timeout: self.duration("write_timeout", 1, 3600)?,
            drain_timeout: self.duration("drain_timeout", 0, 3600)?,
            tls: self.tls_files()?,
            ingest_listen: self.ingest_listen()?,
            ingest_drop: path("ingest.drop"),
            ingest_inflated_max: (self.number("ingest.inflated_max", 1, 1 << 20)? as u64) << 20,
            ingest_quota: self.ingest_quota()?,
            log: self.get("log").value,
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
        })
    }

    fn ingest_quota(&self) -> Result<FeederQuota, ConfigError> {
        let count = |name| self.number(name, 0, 100_000_000).map(|count| u32::try_from(count).unwrap_or(u32::MAX));
        Ok(FeederQuota {
            bookmakers_per_day: count("ingest.bookmakers_per_day")?,
            bookmakers: count("ingest.bookmakers")?,
            events_per_day: count("ingest.events_per_day")?,
            events: count("ingest.events")?,
        })
    }

    fn ingest_listen(&self) -> Result<Option<SocketAddr>, ConfigError> {
        self.parse("ingest.listen", "takes an address and port, such as 0.0.0.0:8081, or nothing", |text| {
            if text.is_empty() { Some(None) } else { text.parse().ok().map(Some) }
        })
    }

    /// What is told there is nobody else's business, and nothing asks for a key: so loopback only.
    fn admin_listen(&self) -> Result<Option<SocketAddr>, ConfigError> {
        let takes = "takes an address and port on this machine's loopback, such as 127.0.0.1:9100, or nothing";
        self.parse("admin.listen", takes, |text| match text {
            "" => Some(None),
            text => text.parse().ok().filter(|address: &SocketAddr| address.ip().is_loopback()).map(Some),
        })
    }

    fn tls_files(&self) -> Result<Option<TlsFiles>, ConfigError> {
        let (certificate, key) = (self.get("tls.certificate"), self.get("tls.key"));
        let (name, other, missing) = match (certificate.value.is_empty(), key.value.is_empty()) {
            (true, true) => return Ok(None),
            (false, false) => {
                return Ok(Some(TlsFiles { certificate: certificate.value.into(), key: key.value.into() }));
            }
            (true, false) => ("tls.certificate", "tls.key", certificate),
            (false, true) => ("tls.key", "tls.certificate", key),
        };
        let takes = format!("takes a PEM file, as {other} is set: set both or neither");
        Err(ConfigError::Value { name, value: missing.value, origin: missing.origin, takes })
    }

    fn parse<T>(
        &self,
        name: &'static str,
        takes: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, ConfigError> {
        let Found { value, origin } = self.get(name);
        read(&value).ok_or_else(|| ConfigError::Value { name, value, origin, takes: takes.to_owned() })
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
