//! `examples/deploy` agrees with the settings and metrics of the binary.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::io::{Read, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use oddsbox::admin::DataDir;
use serde_json::Value;

use super::command::{Directory, file_with};

fn deployed(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "examples", "deploy", name].iter().collect()
}

#[test]
fn annotated_example_configuration_is_valid() {
    let shown = Directory::new().json(&format!("config show --config {}", deployed("oddsbox.toml").display()));
    assert!(shown.as_array().is_some_and(|settings| !settings.is_empty()), "{shown}");
}

/// The result of `config show` on the example file with the comment signs removed by `uncommented`, and its name.
fn shown_with(uncommented: impl Fn(&str) -> Option<&str>) -> (Value, String) {
    let text = fs::read_to_string(deployed("oddsbox.toml")).expect("a file");
    let lines: Vec<&str> = text.lines().map(|line| uncommented(line).unwrap_or(line)).collect();
    // `config show` reads what `serve` would, the upstream's key included.
    let (_kept_key, key) = file_with(b"an-upstream-key");
    let text = lines.join("\n").replace("/etc/oddsbox/upstream.key", &key.display().to_string());
    let (_kept, path) = file_with(text.as_bytes());
    let path = path.display().to_string();
    (Directory::new().json(&format!("config show --config {path}")), path)
}

/// A site's filter covers its access log; failed requests are logged by the default logger, set in the first block.
#[test]
fn keys_are_filtered_from_the_access_log_and_from_the_error_log() {
    for file in ["Caddyfile", "Caddyfile.cluster"] {
        let text = fs::read_to_string(deployed(file)).expect("a file");
        let rules: String = text.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n");
        let (global, site) = rules.split_once("\n}\n").expect("two blocks");
        assert!(global.starts_with("{\n"), "{file}: {global}");
        for (block, headers) in [(global, "request>headers delete"), (site, "request>headers>X-Api-Key delete")] {
            for filter in [headers, "replace api_key REDACTED", "replace apiKey REDACTED"] {
                assert!(block.contains(filter), "{file}: {filter}: {block}");
            }
        }
    }
}

/// A setting that is added, renamed or given another default must be updated in the example file.
#[test]
fn annotated_example_lists_every_setting_with_its_default() {
    // `#name = value` is a setting at its default; `# A sentence` is a comment.
    let (shown, path) = shown_with(|line| line.strip_prefix('#').filter(|line| line.starts_with(char::is_lowercase)));
    let mut wrong = String::new();
    for setting in shown.as_array().expect("a list") {
        let is_named = setting["from"] == path;
        if !is_named || setting["value"] != setting["default"] {
            writeln!(wrong, "# {}\n#{} = {}", setting["help"], setting["name"], setting["default"]).expect("a text");
        }
    }
    assert_eq!(wrong, "", "examples/deploy/oddsbox.toml needs these");
}

#[test]
fn annotated_example_feed_lists_every_field() {
    let (shown, path) = shown_with(|line| line.strip_prefix("#   "));
    let fields = shown.as_array().expect("a list").iter();
    let fields: Vec<&Value> = fields.filter(|field| field["name"].to_string().contains("feeds.upstream.")).collect();
    assert!(fields.len() > 10, "{shown}");
    let missing = fields.iter().filter(|field| field["from"] != path).map(|field| field["name"].clone());
    assert_eq!(missing.collect::<Vec<_>>(), ["feeds.upstream.key"], "the file has key_file in its place");
}

/// The page of metrics, from the admin socket.
pub fn metrics(directory: &Directory) -> String {
    let page = admin_get(directory.path(), "/metrics");
    page.split_once("\r\n\r\n").expect("a body").1.to_owned()
}

/// The whole response to a GET on the admin socket of a data directory.
pub fn admin_get(data: &Path, path: &str) -> String {
    let socket = DataDir::new(data).socket().expect("a short path");
    let mut stream = UnixStream::connect(socket).expect("a socket");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

#[test]
fn dashboard_uses_existing_metrics() {
    let directory = Directory::new();
    let server = directory.serve();
    let missing = missing_for_dashboard(&metrics(&directory));
    let of_nodes: Vec<_> = missing.iter().filter(|metric| metric.starts_with("oddsbox_cluster_")).collect();
    assert!(of_nodes.len() == missing.len() && !of_nodes.is_empty(), "not on the page: {missing:?}");
    server.stop();
}

/// The metrics that the dashboard asks for and a page does not have.
pub fn missing_for_dashboard(page: &str) -> Vec<String> {
    let known: BTreeSet<&str> =
        page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    let dashboard = fs::read_to_string(deployed("grafana.json")).expect("a file");
    let words = dashboard.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'));
    let asked = words.filter(|word| word.starts_with("oddsbox_") || word.starts_with("process_"));
    let asked: BTreeSet<&str> = asked.map(|word| word.strip_suffix("_bucket").unwrap_or(word)).collect();
    assert!(asked.len() > 20, "{asked:?}");
    asked.difference(&known).map(|metric| (*metric).to_owned()).collect()
}
