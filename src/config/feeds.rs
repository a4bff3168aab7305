//! Polled feeds: one table `[feeds.NAME]` each. Every field is also an environment variable
//! (`ODDSBOX_FEEDS_NAME_URL`).
//!
//! A feed's key is a secret: errors, `Debug` and `config show` omit it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::ConfigError;
use super::settings::{Setting, SettingOrigin, SettingValue, Settings};
use crate::model::sport::is_key;
use crate::model::{OddsFormat, Region, Regions, World};

/// Shown in place of a secret.
const HIDDEN: &str = "(hidden)";

const MARKETS: &str = "takes keys of markets such as h2h or player_points, separated by commas";

/// The fields of a feed's table. An empty default means that there is none.
pub const FEED_SETTINGS: &[Setting] = &[
    Setting { name: "kind", default: "", help: "protocol of the feed: the-odds-api" },
    Setting { name: "url", default: "", help: "base address of the API, such as https://host/v4" },
    Setting { name: "key", default: "", help: "API key" },
    Setting { name: "key_file", default: "", help: "file with the API key, in place of key" },
    Setting { name: "world", default: "live", help: "world that the feed writes to: live or sandbox" },
    Setting {
        name: "sports",
        default: "",
        help: "sports such as soccer, and competitions such as soccer_epl, to poll",
    },
    Setting { name: "regions", default: "us", help: "regions to poll: us, us2, us_dfs, us_ex, uk, eu, fr, se, au" },
    Setting {
        name: "markets",
        default: "h2h,spreads,totals,outrights",
        help: "markets to poll for whole competitions, where these have them",
    },
    Setting { name: "event_markets", default: "", help: "markets to poll event by event, such as player_points" },
    Setting {
        name: "event_horizon",
        default: "24h",
        help: "how long before the start of an event its event_markets are polled",
    },
    Setting { name: "odds_format", default: "decimal", help: "price format to request: decimal or american" },
    Setting { name: "interval", default: "60s", help: "how often odds are polled" },
    Setting { name: "scores", default: "true", help: "poll scores while an event is live" },
    Setting { name: "scores_interval", default: "5m", help: "how often scores are polled" },
    Setting {
        name: "requests_per_day",
        default: "",
        help: "credits that may be spent in a UTC day, as the upstream counts them",
    },
    Setting { name: "timeout", default: "30s", help: "timeout of one request" },
    Setting { name: "ca", default: "", help: "PEM file of a private certificate authority" },
];

/// A feed's key. `Debug` omits the text.
#[derive(Clone, PartialEq, Eq)]
pub struct FeedSecret(Box<str>);

impl FeedSecret {
    pub fn new(text: &str) -> Self {
        FeedSecret(text.into())
    }

    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for FeedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

/// A feed's key, or the file that contains it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FeedKey {
    Text(FeedSecret),
    File(PathBuf),
}

/// A polled feed, validated as far as possible without the catalogue: sports and markets are not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedConfig {
    pub name: Box<str>,
    pub url: String,
    pub key: FeedKey,
    pub world: World,
    /// Keys of sports and competitions.
    pub sports: Vec<String>,
    pub regions: Regions,
    /// Keys of markets that are polled for whole competitions, by either name.
    pub markets: Vec<String>,
    /// Keys of markets that are polled event by event.
    pub event_markets: Vec<String>,
    /// How long before its start an event is polled by itself.
    pub event_horizon: Duration,
    pub odds_format: OddsFormat,
    pub interval: Duration,
    /// `None` if scores are not polled.
    pub scores_interval: Option<Duration>,
    pub requests_per_day: Option<u64>,
    pub timeout: Duration,
    pub ca: Option<PathBuf>,
}

/// A field of a feed, as shown by `config show`.
#[derive(Clone, Debug)]
pub struct ShownField {
    /// `feeds.NAME.url`.
    pub name: String,
    pub variable: String,
    pub value: SettingValue,
    pub setting: &'static Setting,
}

/// The configured fields of each feed, by the names of the feed and the field.
pub(super) type FeedTables = BTreeMap<String, BTreeMap<&'static str, SettingValue>>;

/// Sets `feeds.NAME.FIELD` from a file.
pub(super) fn put(tables: &mut FeedTables, path: &str, value: SettingValue) -> Result<(), ConfigError> {
    let unknown = || ConfigError::unknown(&format!("feeds.{path}"), std::iter::empty());
    let (name, field) = path.split_once('.').ok_or_else(unknown)?;
    if !is_key(name) {
        let takes = "a feed's name has 1 to 40 of a to z, 0 to 9 and _".to_owned();
        return Err(ConfigError::Feed { name: format!("feeds.{name}:"), takes });
    }
    let known = FEED_SETTINGS.iter().find(|setting| setting.name == field);
    let Some(setting) = known else {
        let names: Vec<String> = FEED_SETTINGS.iter().map(|setting| format!("feeds.{name}.{}", setting.name)).collect();
        return Err(ConfigError::unknown(&format!("feeds.{path}"), names.iter().map(String::as_str)));
    };
    tables.entry(name.to_owned()).or_default().insert(setting.name, value);
    Ok(())
}

/// Sets a field from a variable; `rest` is the `NAME_FIELD` after `ODDSBOX_FEEDS_`.
pub(super) fn put_variable(
    tables: &mut FeedTables,
    variable: &str,
    rest: &str,
    value: String,
) -> Result<(), ConfigError> {
    let rest = rest.to_lowercase();
    // A feed's name may contain underscores, so the longest matching field wins.
    let fields = FEED_SETTINGS.iter().filter_map(|setting| {
        let name = rest.strip_suffix(setting.name)?.strip_suffix('_')?;
        is_key(name).then_some((setting.name, name))
    });
    let Some((field, name)) = fields.max_by_key(|(field, _)| field.len()) else {
        // The feed's name may end at any underscore: suggest the nearest field for each of them.
        let feeds = rest.match_indices('_').map(|(at, _)| &rest[..at]);
        let names: Vec<String> =
            feeds.flat_map(|feed| FEED_SETTINGS.iter().map(move |field| variable_of(feed, field))).collect();
        return Err(ConfigError::unknown(variable, names.iter().map(String::as_str)));
    };
    put(
        tables,
        &format!("{name}.{field}"),
        SettingValue { text: value, origin: SettingOrigin::Variable(variable.to_owned()) },
    )
}

fn variable_of(feed: &str, field: &Setting) -> String {
    format!("ODDSBOX_FEEDS_{}_{}", feed.to_uppercase(), field.name.to_uppercase())
}

impl Settings {
    /// All fields of all feeds, with secrets hidden.
    pub fn feeds_shown(&self) -> Vec<ShownField> {
        let mut shown = Vec::new();
        for (feed, fields) in &self.1 {
            for setting in FEED_SETTINGS {
                let mut value = FeedTable { name: feed, fields }.get(setting.name);
                if setting.name == "key" && !value.text.is_empty() {
                    HIDDEN.clone_into(&mut value.text);
                }
                let name = format!("feeds.{feed}.{}", setting.name);
                shown.push(ShownField { name, variable: variable_of(feed, setting), value, setting });
            }
        }
        shown
    }

    pub(super) fn read_feeds(&self) -> Result<Vec<FeedConfig>, ConfigError> {
        self.1.iter().map(|(name, fields)| FeedTable { name, fields }.read()).collect()
    }
}

/// The table of one feed.
struct FeedTable<'a> {
    name: &'a str,
    fields: &'a BTreeMap<&'static str, SettingValue>,
}

impl FeedTable<'_> {
    fn get(&self, field: &str) -> SettingValue {
        let default = FEED_SETTINGS.iter().find(|setting| setting.name == field).map_or("", |setting| setting.default);
        let default = || SettingValue { text: default.to_owned(), origin: SettingOrigin::Default };
        self.fields.get(field).cloned().unwrap_or_else(default)
    }

    fn read(&self) -> Result<FeedConfig, ConfigError> {
        self.parse("kind", "takes the-odds-api", |kind| (kind == "the-odds-api").then_some(()))?;
        let scores = self.parse("scores", "takes true or false", |text| text.parse::<bool>().ok())?;
        let scores_interval = self.duration("scores_interval", 1, 86_400)?;
        let budget = |text: &str| match text {
            "" => Some(None),
            text => text.parse().ok().filter(|number| *number > 0).map(Some),
        };
        Ok(FeedConfig {
            name: self.name.into(),
            url: self.parse("url", "takes an address such as https://host/v4, without a query", address)?,
            key: self.key()?,
            world: self.parse("world", "takes live or sandbox", World::parse)?,
            sports: self.parse("sports", "takes at least one sport or competition, such as mma,soccer_epl", names)?,
            regions: self.parse(
                "regions",
                "takes us, us2, us_dfs, us_ex, uk, eu, fr, se, au, separated by commas",
                |text| names(text)?.iter().map(|region| Region::parse(region)).collect(),
            )?,
            markets: self.markets()?,
            event_markets: self.parse("event_markets", MARKETS, names_or_none)?,
            event_horizon: self.duration("event_horizon", 60, 30 * 86_400)?,
            odds_format: self.parse("odds_format", "takes decimal or american", |text| {
                OddsFormat::parse(text).filter(|format| *format != OddsFormat::Fractional)
            })?,
            interval: self.duration("interval", 1, 86_400)?,
            scores_interval: scores.then_some(scores_interval),
            requests_per_day: self.parse("requests_per_day", "takes a whole number of 1 or more", budget)?,
            timeout: self.duration("timeout", 1, 600)?,
            ca: Some(self.get("ca").text).filter(|path| !path.is_empty()).map(PathBuf::from),
        })
    }

    /// Which of them there are is for the catalogue to say.
    fn markets(&self) -> Result<Vec<String>, ConfigError> {
        let markets = self.parse("markets", MARKETS, names_or_none)?;
        if markets.is_empty() && self.get("event_markets").text.is_empty() {
            let takes = "is empty, and event_markets as well: name at least one market".to_owned();
            return Err(ConfigError::Feed { name: format!("feeds.{}.markets", self.name), takes });
        }
        Ok(markets)
    }

    fn key(&self) -> Result<FeedKey, ConfigError> {
        let (key, file) = (self.get("key").text, self.get("key_file").text);
        let takes =
            |takes: &str| ConfigError::Feed { name: format!("feeds.{}.key", self.name), takes: takes.to_owned() };
        match (key.trim(), &*file) {
            ("", "") => Err(takes("is missing: give the key, or the file with it as key_file")),
            ("", file) => Ok(FeedKey::File(file.into())),
            (key, "") => Ok(FeedKey::Text(FeedSecret::new(key))),
            _ => Err(takes("is given, and key_file as well: leave one of them out")),
        }
    }

    fn duration(&self, field: &'static str, least_s: u64, most_s: u64) -> Result<Duration, ConfigError> {
        let (least, most) = (Duration::from_secs(least_s), Duration::from_secs(most_s));
        let time = humantime::format_duration;
        let takes = format!("takes a duration such as 30s or 5m, from {} to {}", time(least), time(most));
        self.parse(field, &takes, |text| {
            humantime::parse_duration(text).ok().filter(|value| (least..=most).contains(value))
        })
    }

    fn parse<T>(
        &self,
        field: &'static str,
        takes: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, ConfigError> {
        let SettingValue { text, origin } = self.get(field);
        read(&text).ok_or_else(|| {
            let given = if text.is_empty() { "is missing:".to_owned() } else { format!("= {text:?} (from {origin}):") };
            ConfigError::Feed { name: format!("feeds.{}.{field}", self.name), takes: format!("{given} {takes}") }
        })
    }
}

fn address(text: &str) -> Option<String> {
    let uri: http::Uri = text.parse().ok()?;
    let is_plain = matches!(uri.scheme_str(), Some("http" | "https")) && uri.query().is_none();
    let authority = uri.authority()?.as_str();
    (is_plain && !authority.contains('@') && !text.contains('#')).then(|| text.to_owned())
}

/// Splits a list at its commas; `None` if an entry is empty.
fn names(text: &str) -> Option<Vec<String>> {
    let names: Vec<String> = text.split(',').map(|name| name.trim().to_owned()).collect();
    (!names.iter().any(String::is_empty)).then_some(names)
}

/// The same, where the list may be empty.
fn names_or_none(text: &str) -> Option<Vec<String>> {
    if text.is_empty() { Some(Vec::new()) } else { names(text) }
}
