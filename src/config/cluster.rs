//! `[cluster]`: the nodes that serve the same, and the server that holds what they share.
//!
//! The password of that server is in a file of its own, and nowhere in the configuration.

use std::path::PathBuf;
use std::time::Duration;

use super::{ConfigError, SETTINGS, SettingValue, Settings, TlsFiles};

/// The longest name of a node or a cluster.
const NAME_MAX: usize = 64;

/// A node of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterConfig {
    pub url: Box<str>,
    pub name: Box<str>,
    /// `None` for the name of the machine.
    pub node: Option<Box<str>>,
    pub lease: Duration,
    pub serves_when_cut_off: bool,
    pub user: Option<Box<str>>,
    pub password_file: Option<PathBuf>,
    pub ca: Option<PathBuf>,
    pub client: Option<TlsFiles>,
}

impl Settings {
    /// `None` for a single node.
    pub(super) fn cluster(&self) -> Result<Option<ClusterConfig>, ConfigError> {
        let url = self.cluster_url()?;
        let Some(url) = url else { return self.no_cluster() };
        let text = |name: &'static str| Some(self.get(name).text).filter(|text| !text.is_empty());
        if !url.starts_with("rediss:")
            && let Some(name) = ["cluster.ca", "cluster.certificate"].into_iter().find(|name| text(name).is_some())
        {
            let SettingValue { text: value, origin } = self.get(name);
            let takes = "has no effect without TLS: set cluster.url to a rediss:// address".to_owned();
            return Err(ConfigError::Value { name, value, origin, takes });
        }
        Ok(Some(ClusterConfig {
            url,
            name: self.name_of("cluster.name")?.unwrap_or_else(|| "oddsbox".into()),
            node: self.name_of("cluster.node")?,
            lease: self.duration("cluster.lease", 2, 60)?,
            serves_when_cut_off: self.parse("cluster.when_cut_off", "takes refuse or serve", |text| match text {
                "refuse" => Some(false),
                "serve" => Some(true),
                _ => None,
            })?,
            user: text("cluster.user").map(Box::from),
            password_file: text("cluster.password_file").map(PathBuf::from),
            ca: text("cluster.ca").map(PathBuf::from),
            client: self.pair_of_files("cluster.certificate", "cluster.key")?,
        }))
    }

    fn cluster_url(&self) -> Result<Option<Box<str>>, ConfigError> {
        let SettingValue { text, origin } = self.get("cluster.url");
        if text.is_empty() {
            return Ok(None);
        }
        let (scheme, rest) = text.split_once("://").unwrap_or_default();
        let takes = if has_password(&text) {
            "takes no user and no password: set cluster.user and cluster.password_file"
        } else if !["redis", "rediss", "redis+unix"].contains(&scheme) || rest.is_empty() {
            "takes an address such as redis://10.0.0.5:6379, rediss://redis.example:6380 or redis+unix:///run/redis.sock"
        } else {
            return Ok(Some(text.into()));
        };
        let value = without_password(text);
        Err(ConfigError::Value { name: "cluster.url", value, origin, takes: takes.to_owned() })
    }

    /// A value as it may be shown.
    pub fn shown(&self, name: &str) -> SettingValue {
        let SettingValue { text, origin } = self.get(name);
        SettingValue { text: if name == "cluster.url" { without_password(text) } else { text }, origin }
    }

    /// Settings of a cluster without its address would have no effect.
    fn no_cluster(&self) -> Result<Option<ClusterConfig>, ConfigError> {
        let mut all = SETTINGS.iter().filter(|setting| setting.name.starts_with("cluster."));
        let set = all.find(|setting| self.get(setting.name).text != setting.default);
        let Some(setting) = set else { return Ok(None) };
        let SettingValue { text: value, origin } = self.get(setting.name);
        let takes = "has no effect without cluster.url: set both or neither".to_owned();
        Err(ConfigError::Value { name: setting.name, value, origin, takes })
    }

    fn name_of(&self, name: &'static str) -> Result<Option<Box<str>>, ConfigError> {
        let takes = format!("takes up to {NAME_MAX} letters, digits, dots, hyphens and underscores");
        self.parse(name, &takes, |text| {
            (text.is_empty() || is_node_name(text)).then(|| (!text.is_empty()).then(|| text.into()))
        })
    }
}

/// Whether a node, or a cluster, can be named so.
pub fn is_node_name(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    (1..=NAME_MAX).contains(&text.len()) && text.bytes().all(is_allowed)
}

/// Whether an address may have a password, also one that is not well-formed.
fn has_password(url: &str) -> bool {
    let (_, query) = url.split_once('?').unwrap_or_default();
    url.contains('@') || query.to_ascii_lowercase().contains("pass")
}

/// An address that may have a password is not repeated.
fn without_password(url: String) -> String {
    if !has_password(&url) {
        return url;
    }
    url.split_once("://").map_or("…".to_owned(), |(scheme, _)| format!("{scheme}://…"))
}
