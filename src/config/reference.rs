//! The configuration chapter of the guide, generated from the tables of settings. The committed file is compared with
//! this in a test; `ODDSBOX_WRITE_DOCS=1 cargo test --lib config::reference` writes it anew.

use std::fmt::Write;

use super::feeds::FEED_SETTINGS;
use super::settings::Setting;
use super::{RELOADED, SETTINGS};

const INTRODUCTION: &str = "# Configuration

Settings come from a TOML file (`--config FILE` or `ODDSBOX_CONFIG`), then from environment variables, then from flags; the
later wins. `oddsbox config show` lists every setting, its value and where it came from. An unknown setting is an
error that names the nearest known one. `examples/deploy/oddsbox.toml` is a commented file to start from.

A name with a dot is in a table: `ingest.listen` is `listen` in `[ingest]`. Durations are written as `30s`, `5m` or `72h`.
Settings marked *reload* are applied on SIGHUP; the others need a restart.
";

const FEEDS: &str = "
## Polled feeds

Each feed is a table `[feeds.NAME]`; `url` of the feed `us` is also `ODDSBOX_FEEDS_US_URL`. Feeds are applied on SIGHUP. [Feeds](feeds.md) explains
them.
";

fn reference() -> String {
    let mut text = format!("{INTRODUCTION}\n| Setting | Default | Variable | Meaning |\n|---|---|---|---|\n");
    for setting in SETTINGS {
        let reload = if RELOADED.contains(&setting.name) { " (*reload*)" } else { "" };
        let Setting { name, help, .. } = setting;
        let _ = writeln!(text, "| `{name}` | {} | `{}` | {help}{reload} |", default_of(setting), setting.variable());
    }
    text.push_str(FEEDS);
    text.push_str("\n| `[feeds.NAME]` | Default | Meaning |\n|---|---|---|\n");
    for setting in FEED_SETTINGS {
        let _ = writeln!(text, "| `{}` | {} | {} |", setting.name, default_of(setting), setting.help);
    }
    text
}

fn default_of(setting: &Setting) -> String {
    if setting.default.is_empty() { "none".to_owned() } else { format!("`{}`", setting.default) }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::{env, fs};

    #[test]
    fn guide_has_every_setting() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/http/docs/guide/configuration.md");
        if env::var_os("ODDSBOX_WRITE_DOCS").is_some() {
            fs::write(&path, super::reference()).unwrap();
        }
        let committed = fs::read_to_string(&path).unwrap();
        assert!(committed == super::reference(), "run with ODDSBOX_WRITE_DOCS=1 and commit the file");
    }
}
