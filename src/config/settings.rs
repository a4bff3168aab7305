//! The values of settings and their origins: default, file, environment and flag, each overriding the previous one.
//!
//! Values are kept as text with their origin and are parsed once, after all of them are merged. So every origin follows
//! the same rules, and an error can say where an invalid value comes from.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use toml::de::DeTable;

use super::ConfigError;
use super::feeds::{self, FeedTables};

/// A known setting.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Its path in the file: `refresh`, or `ingest.listen` for `listen` in the table `[ingest]`.
    pub name: &'static str,
    pub default: &'static str,
    pub help: &'static str,
}

impl Setting {
    /// The environment variable: `ODDSBOX_INGEST_LISTEN` for `ingest.listen`.
    pub fn variable(&self) -> String {
        format!("ODDSBOX_{}", self.name.replace('.', "_").to_uppercase())
    }
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingOrigin {
    Default,
    File(PathBuf),
    Variable(String),
    Flag(&'static str),
}

impl fmt::Display for SettingOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingOrigin::Default => f.write_str("default"),
            SettingOrigin::File(path) => write!(f, "{}", path.display()),
            SettingOrigin::Variable(name) => f.write_str(name),
            SettingOrigin::Flag(flag) => f.write_str(flag),
        }
    }
}

/// A value and its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingValue {
    pub text: String,
    pub origin: SettingOrigin,
}

/// The effective values of all settings, and the configured fields of each feed.
#[derive(Clone)]
pub struct Settings(BTreeMap<&'static str, SettingValue>, pub(super) FeedTables);

/// Omits the values, as some are secret.
impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").field("feeds", &self.1.keys()).finish_non_exhaustive()
    }
}

impl Settings {
    /// All settings at their defaults.
    pub fn defaults(known: &'static [Setting]) -> Self {
        let default =
            |setting: &Setting| SettingValue { text: setting.default.to_owned(), origin: SettingOrigin::Default };
        Settings(known.iter().map(|setting| (setting.name, default(setting))).collect(), FeedTables::new())
    }

    /// Adds the settings of a file.
    pub fn with_file(mut self, path: &Path, text: &str) -> Result<Self, ConfigError> {
        let invalid = |detail: String| ConfigError::File { path: path.to_owned(), detail };
        let table: toml::Table = text.parse().map_err(|error| invalid(one_line(&error, text)))?;
        for (name, value) in flattened(&table) {
            let located = |detail: String| match line_of(text, &name) {
                Some(line) => invalid(format!("line {line}: {detail}")),
                None => invalid(detail),
            };
            let value =
                text_of(value).ok_or_else(|| located(format!("{name} must be a string, a number or true/false")))?;
            let value = SettingValue { text: value, origin: SettingOrigin::File(path.to_owned()) };
            let put = match name.strip_prefix("feeds.") {
                Some(rest) => feeds::put(&mut self.1, rest, value),
                None => self.put(&name, value),
            };
            put.map_err(|error| located(error.to_string()))?;
        }
        Ok(self)
    }

    /// Adds the environment variables that begin with `ODDSBOX_`, except `others`, which are not settings.
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
            self.0.insert(setting.name, SettingValue { text: value, origin: SettingOrigin::Variable(variable) });
        }
        Ok(self)
    }

    /// Adds a command-line flag, if it was given.
    #[must_use]
    pub fn with_flag(mut self, name: &'static str, flag: &'static str, value: Option<String>) -> Self {
        if let Some(value) = value {
            self.0.insert(name, SettingValue { text: value, origin: SettingOrigin::Flag(flag) });
        }
        self
    }

    fn put(&mut self, name: &str, value: SettingValue) -> Result<(), ConfigError> {
        let known = self.0.keys().copied().find(|known| *known == name);
        let known = known.ok_or_else(|| ConfigError::unknown(name, self.0.keys().copied()))?;
        self.0.insert(known, value);
        Ok(())
    }

    /// The effective value. An unknown name is a bug in this program: it reads as empty, and the test that parses every
    /// setting fails.
    pub fn get(&self, name: &str) -> SettingValue {
        self.0.get(name).cloned().unwrap_or(SettingValue { text: String::new(), origin: SettingOrigin::Default })
    }

    /// The settings whose values differ.
    pub fn differing(&self, other: &Settings) -> Vec<&'static str> {
        self.iter().filter(|(name, value)| value.text != other.get(name).text).map(|(name, _)| name).collect()
    }

    /// Copies some settings from `other`.
    pub fn adopt(&mut self, other: &Settings, names: &[&'static str]) {
        for name in names {
            self.0.insert(name, other.get(name));
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &SettingValue)> {
        self.0.iter().map(|(name, value)| (*name, value))
    }
}

/// The parser's message and line, without its excerpt of the source.
fn one_line(error: &toml::de::Error, text: &str) -> String {
    let line = line_at(text, error.span().map_or(0, |span| span.start));
    format!("line {line}: {}", error.message().replace('\n', ", "))
}

/// The number of the line that a byte is on, counted from 1.
fn line_at(text: &str, byte: usize) -> usize {
    text.get(..byte).unwrap_or_default().matches('\n').count() + 1
}

/// The line of a setting, given by its dotted path. A quoted key with a dot in it is not found.
fn line_of(text: &str, path: &str) -> Option<usize> {
    let document = DeTable::parse(text).ok()?;
    let (mut table, mut names) = (document.get_ref(), path.split('.').peekable());
    loop {
        let name = names.next()?;
        let (key, value) = table.iter().find(|(key, _)| key.get_ref() == name)?;
        if names.peek().is_none() {
            return Some(line_at(text, key.span().start));
        }
        table = value.get_ref().as_table()?;
    }
}

/// All values of a table with their dotted paths.
fn flattened(table: &toml::Table) -> Vec<(String, &toml::Value)> {
    let mut values = Vec::new();
    for (name, value) in table {
        match value {
            toml::Value::Table(inner) => {
                values.extend(flattened(inner).into_iter().map(|(rest, value)| (format!("{name}.{rest}"), value)));
            }
            value => values.push((name.clone(), value)),
        }
    }
    values
}

fn text_of(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Boolean(truth) => Some(truth.to_string()),
        // A list of strings is equivalent to one string with commas.
        toml::Value::Array(list) => {
            let texts: Option<Vec<&str>> = list.iter().map(toml::Value::as_str).collect();
            texts.map(|texts| texts.join(","))
        }
        _ => None,
    }
}
