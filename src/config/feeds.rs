//! The feeds that are polled: a table `[feeds.NAME]` for each, every field of it also a variable
//! (`ODDSBOX_FEEDS_NAME_URL`).
//!
//! A feed's key is a secret: it is in no error, in no `Debug` and is not shown.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::ConfigError;
use super::settings::{Found, Origin, Setting, Settings};
use crate::model::sport::is_key;
use crate::model::{Market, OddsFormat, Region, Regions, SportKind, World};

/// What stands in place of a secret that is set.
const HIDDEN: &str = "(hidden)";

/// Every field of a feed's table; an empty default is none.
pub const FEED_SETTINGS: &[Setting] = &[
    Setting { name: "kind", default: "", help: "what the feed speaks: the-odds-api" },
    Setting { name: "url", default: "", help: "address of the interface, such as https://host/v4" },
    Setting { name: "key", default: "", help: "its key" },
    Setting { name: "key_file", default: "", help: "file with its key, in place of key" },
    Setting { name: "world", default: "live", help: "the world that it feeds: live or sandbox" },
    Setting { name: "sports", default: "", help: "sports to ask for, our keys or keys of The Odds API" },
    Setting { name: "regions", default: "us", help: "regions to ask for: us, uk, eu, au" },
    Setting {
        name: "markets",
        default: "h2h,spreads,totals,outrights",
        help: "markets to ask for, where a sport has them",
    },
    Setting { name: "odds_format", default: "decimal", help: "how prices are asked for: decimal or american" },
    Setting { name: "interval", default: "60s", help: "how often odds are asked for" },
    Setting { name: "scores", default: "true", help: "ask for scores while an event is on" },
    Setting { name: "scores_interval", default: "5m", help: "how often scores are asked for" },
    Setting { name: "requests_per_day", default: "", help: "what may be spent in a UTC day, as the upstream counts" },
    Setting { name: "timeout", default: "30s", help: "how long an answer may take" },
    Setting { name: "ca", default: "", help: "PEM file of a certificate authority of your own" },
];

/// A text that is shown to nobody.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Box<str>);

impl Secret {
    pub fn new(text: &str) -> Self {
        Secret(text.into())
    }

    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

/// Where a feed's key is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FeedKey {
    Text(Secret),
    File(PathBuf),
}

/// A feed that is polled, checked as far as one can without its catalogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedConfig {
    pub name: Box<str>,
    pub url: String,
    pub key: FeedKey,
    pub world: World,
    /// Our keys, or keys of The Odds API.
    pub sports: Vec<String>,
    pub regions: Regions,
    pub markets: Vec<Market>,
    pub odds_format: OddsFormat,
    pub interval: Duration,
    /// `None` if no scores are asked for.
    pub scores_interval: Option<Duration>,
    pub requests_per_day: Option<u64>,
    pub timeout: Duration,
    pub ca: Option<PathBuf>,
}

/// A field of a feed as it is shown.
#[derive(Clone, Debug)]
pub struct ShownField {
    /// `feeds.NAME.url`.
    pub name: String,
    pub variable: String,
    pub found: Found,
    pub setting: &'static Setting,
}

/// What was set of each feed, by its name and the field's.
pub(super) type FeedTables = BTreeMap<String, BTreeMap<&'static str, Found>>;

/// Takes in `feeds.NAME.FIELD` of a file.
pub(super) fn put(tables: &mut FeedTables, path: &str, found: Found) -> Result<(), ConfigError> {
    let unknown = || ConfigError::unknown(&format!("feeds.{path}"), std::iter::empty());
    let (name, field) = path.split_once('.').ok_or_else(unknown)?;
    if !is_key(name) {
        let takes = "a feed's name has 1 to 40 of a to z, 0 to 9 and _".to_owned();
        return Err(ConfigError::Feed { name: format!("feeds.{name}"), takes });
    }
    let known = FEED_SETTINGS.iter().find(|setting| setting.name == field);
    let Some(setting) = known else {
        let names: Vec<String> = FEED_SETTINGS.iter().map(|setting| format!("feeds.{name}.{}", setting.name)).collect();
        return Err(ConfigError::unknown(&format!("feeds.{path}"), names.iter().map(String::as_str)));
    };
    tables.entry(name.to_owned()).or_default().insert(setting.name, found);
    Ok(())
}

/// Takes in `NAME_FIELD`, what follows `ODDSBOX_FEEDS_` in a variable.
pub(super) fn put_variable(
    tables: &mut FeedTables,
    variable: &str,
    rest: &str,
    value: String,
) -> Result<(), ConfigError> {
    let rest = rest.to_lowercase();
    // `key_file` ends in no other field, but a name may hold an underscore: the longest field counts.
    let fields = FEED_SETTINGS.iter().filter_map(|setting| {
        let name = rest.strip_suffix(setting.name)?.strip_suffix('_')?;
        is_key(name).then_some((setting.name, name))
    });
    let Some((field, name)) = fields.max_by_key(|(field, _)| field.len()) else {
        // Wherever the name may end, the field that follows it may be the mistyped one.
        let feeds = rest.match_indices('_').map(|(at, _)| &rest[..at]);
        let names: Vec<String> =
            feeds.flat_map(|feed| FEED_SETTINGS.iter().map(move |field| variable_of(feed, field))).collect();
        return Err(ConfigError::unknown(variable, names.iter().map(String::as_str)));
    };
    put(tables, &format!("{name}.{field}"), Found { value, origin: Origin::Variable(variable.to_owned()) })
}

fn variable_of(feed: &str, field: &Setting) -> String {
    format!("ODDSBOX_FEEDS_{}_{}", feed.to_uppercase(), field.name.to_uppercase())
}

impl Settings {
    /// Every field of every feed, secrets hidden.
    pub fn feeds_shown(&self) -> Vec<ShownField> {
        let mut shown = Vec::new();
        for (feed, fields) in &self.1 {
            for setting in FEED_SETTINGS {
                let mut found = Fields { name: feed, fields }.get(setting.name);
                if setting.name == "key" && !found.value.is_empty() {
                    HIDDEN.clone_into(&mut found.value);
                }
                let name = format!("feeds.{feed}.{}", setting.name);
                shown.push(ShownField { name, variable: variable_of(feed, setting), found, setting });
            }
        }
        shown
    }

    pub(super) fn read_feeds(&self) -> Result<Vec<FeedConfig>, ConfigError> {
        self.1.iter().map(|(name, fields)| Fields { name, fields }.read()).collect()
    }
}

/// The table of one feed.
struct Fields<'a> {
    name: &'a str,
    fields: &'a BTreeMap<&'static str, Found>,
}

impl Fields<'_> {
    fn get(&self, field: &str) -> Found {
        let default = FEED_SETTINGS.iter().find(|setting| setting.name == field).map_or("", |setting| setting.default);
        let default = || Found { value: default.to_owned(), origin: Origin::Default };
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
            sports: self.parse("sports", "takes at least one sport, such as mma,tennis", names)?,
            regions: self.parse("regions", "takes us, uk, eu, au, between commas", |text| {
                names(text)?.iter().map(|region| Region::parse(region)).collect()
            })?,
            markets: self.parse("markets", "takes h2h, spreads, totals, outrights, or our own keys", markets)?,
            odds_format: self.parse("odds_format", "takes decimal or american", |text| {
                OddsFormat::parse(text).filter(|format| *format != OddsFormat::Fractional)
            })?,
            interval: self.duration("interval", 1, 86_400)?,
            scores_interval: scores.then_some(scores_interval),
            requests_per_day: self.parse("requests_per_day", "takes a whole number from 1 on", budget)?,
            timeout: self.duration("timeout", 1, 600)?,
            ca: Some(self.get("ca").value).filter(|path| !path.is_empty()).map(PathBuf::from),
        })
    }

    fn key(&self) -> Result<FeedKey, ConfigError> {
        let (key, file) = (self.get("key").value, self.get("key_file").value);
        let takes =
            |takes: &str| ConfigError::Feed { name: format!("feeds.{}.key", self.name), takes: takes.to_owned() };
        match (key.trim(), &*file) {
            ("", "") => Err(takes("is missing: give the key, or the file with it as key_file")),
            ("", file) => Ok(FeedKey::File(file.into())),
            (key, "") => Ok(FeedKey::Text(Secret::new(key))),
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
        let Found { value, origin } = self.get(field);
        read(&value).ok_or_else(|| {
            let given =
                if value.is_empty() { "is missing:".to_owned() } else { format!("= {value:?} (from {origin}):") };
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

/// Texts between commas, at least one.
fn names(text: &str) -> Option<Vec<String>> {
    let names: Vec<String> = text.split(',').map(|name| name.trim().to_owned()).collect();
    (!names.iter().any(String::is_empty)).then_some(names)
}

/// Markets by any of their names; `totals` is both of them, since it depends on the sport.
fn markets(text: &str) -> Option<Vec<Market>> {
    let mut markets = Vec::new();
    for name in names(text)? {
        let of = |kind| Market::parse_alias(&name, kind);
        let found = [of(SportKind::Fight)?, of(SportKind::HeadToHead)?];
        markets.extend(found.into_iter().filter(|market| !markets.contains(market)).collect::<Vec<_>>());
    }
    markets.dedup();
    Some(markets)
}
