//! Where a setting's value comes from: the default, the file, the environment, a flag; each overrides the one before.
//!
//! Values are kept as text with their origin until everything is known; only then are they read into their types, once.
//! So every source obeys the same rules, and an error can say where the bad value stands.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use super::ConfigError;
use super::feeds::{self, FeedTables};

/// A setting that there is.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// As in the file: `refresh`, or `ingest.listen` for `listen` in the table `[ingest]`.
    pub name: &'static str,
    pub default: &'static str,
    pub help: &'static str,
}

impl Setting {
    /// `ingest.listen` is `ODDSBOX_INGEST_LISTEN`.
    pub fn variable(&self) -> String {
        format!("ODDSBOX_{}", self.name.replace('.', "_").to_uppercase())
    }
}

/// Where a value was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    Default,
    File(PathBuf),
    Variable(String),
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File(path) => write!(f, "{}", path.display()),
            Origin::Variable(name) => f.write_str(name),
            Origin::Flag(flag) => f.write_str(flag),
        }
    }
}

/// A value and its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub value: String,
    pub origin: Origin,
}

/// Every setting with the value that counts, and what was set of each feed.
#[derive(Clone)]
pub struct Settings(BTreeMap<&'static str, Found>, pub(super) FeedTables);

/// Without the values: there are secrets among them.
impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").field("feeds", &self.1.keys()).finish_non_exhaustive()
    }
}

impl Settings {
    /// Every setting at its default.
    pub fn defaults(known: &'static [Setting]) -> Self {
        let found = |setting: &Setting| Found { value: setting.default.to_owned(), origin: Origin::Default };
        Settings(known.iter().map(|setting| (setting.name, found(setting))).collect(), FeedTables::new())
    }

    /// Takes in a file.
    pub fn with_file(mut self, path: &Path, text: &str) -> Result<Self, ConfigError> {
        let unreadable = |detail: String| ConfigError::File { path: path.to_owned(), detail };
        let table: toml::Table = text.parse().map_err(|error| unreadable(in_one_line(&error, text)))?;
        for (name, value) in flattened(&table) {
            let value =
                text_of(value).ok_or_else(|| unreadable(format!("{name} must be a text, a number or true/false")))?;
            let origin = Origin::File(path.to_owned());
            match name.strip_prefix("feeds.") {
                Some(rest) => feeds::put(&mut self.1, rest, Found { value, origin })?,
                None => self.put(&name, value, origin)?,
            }
        }
        Ok(self)
    }

    /// Takes in the variables of the environment that begin with `ODDSBOX_`. `others` are variables with a meaning of
    /// their own.
    pub fn with_variables(
        mut self,
        known: &'static [Setting],
        others: &[&str],
        variables: impl Iterator<Item = (String, String)>,
    ) -> Result<Self, ConfigError> {
        for (variable, value) in variables.filter(|(name, _)| name.starts_with("ODDSBOX_")) {
            if others.contains(&variable.as_str()) {
                continue;
            }
            if let Some(rest) = variable.strip_prefix("ODDSBOX_FEEDS_") {
                feeds::put_variable(&mut self.1, &variable, rest, value)?;
                continue;
            }
            let setting = known.iter().find(|setting| setting.variable() == variable);
            let Some(setting) = setting else {
                let names = known.iter().map(Setting::variable).collect::<Vec<_>>();
                return Err(ConfigError::unknown(&variable, names.iter().map(String::as_str)));
            };
            self.0.insert(setting.name, Found { value, origin: Origin::Variable(variable) });
        }
        Ok(self)
    }

    /// Takes in a flag of the command line, if it was given.
    #[must_use]
    pub fn with_flag(mut self, name: &'static str, flag: &'static str, value: Option<String>) -> Self {
        if let Some(value) = value {
            self.0.insert(name, Found { value, origin: Origin::Flag(flag) });
        }
        self
    }

    fn put(&mut self, name: &str, value: String, origin: Origin) -> Result<(), ConfigError> {
        let known = self.0.keys().copied().find(|known| *known == name);
        let known = known.ok_or_else(|| ConfigError::unknown(name, self.0.keys().copied()))?;
        self.0.insert(known, Found { value, origin });
        Ok(())
    }

    /// The value that counts. Settings that do not exist are a mistake in this program, not of its user: they read
    /// as empty and fail the test that reads every setting.
    pub fn get(&self, name: &str) -> Found {
        self.0.get(name).cloned().unwrap_or(Found { value: String::new(), origin: Origin::Default })
    }

    /// The settings whose values are not the same in both.
    pub fn differing(&self, other: &Settings) -> Vec<&'static str> {
        self.iter().filter(|(name, found)| found.value != other.get(name).value).map(|(name, _)| name).collect()
    }

    /// Takes some settings over from another reading.
    pub fn adopt(&mut self, other: &Settings, names: &[&'static str]) {
        for name in names {
            self.0.insert(name, other.get(name));
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Found)> {
        self.0.iter().map(|(name, found)| (*name, found))
    }
}

/// What the reader of the file says, and where, without the picture that it draws.
fn in_one_line(error: &toml::de::Error, text: &str) -> String {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    format!("line {line}: {}", error.message().replace('\n', ", "))
}

/// The values of a table with the path to each, tables within tables joined by dots.
fn flattened(table: &toml::Table) -> Vec<(String, &toml::Value)> {
    let mut found = Vec::new();
    for (name, value) in table {
        match value {
            toml::Value::Table(inner) => {
                found.extend(flattened(inner).into_iter().map(|(rest, value)| (format!("{name}.{rest}"), value)));
            }
            value => found.push((name.clone(), value)),
        }
    }
    found
}

fn text_of(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Boolean(truth) => Some(truth.to_string()),
        // A list of texts may also be written as one text with commas.
        toml::Value::Array(list) => {
            let texts: Option<Vec<&str>> = list.iter().map(toml::Value::as_str).collect();
            texts.map(|texts| texts.join(","))
        }
        _ => None,
    }
}
