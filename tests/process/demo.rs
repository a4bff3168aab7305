//! The first minute: what `oddsbox demo` prints works as it is pasted, and secrets are shown once.

use serde_json::Value;

use super::client::get;
use super::command::{Directory, Server};

fn demo(directory: &Directory) -> Server {
    Server::spawn_as("demo", directory.path(), "127.0.0.1:0", &[])
}

/// The secret and the URL of a curl line.
fn pasted(line: &str) -> Option<(&str, &str)> {
    let (secret, url) = line.trim().strip_prefix("curl -H 'X-API-Key: ")?.split_once("' '")?;
    Some((secret, url.strip_suffix('\'')?))
}

#[tokio::test]
async fn the_lines_to_paste_show_odds_at_any_hour_and_a_second_start_shows_no_secret() {
    let directory = Directory::new();
    let server = demo(&directory);
    let banner = server.lines_until("/scores");
    let curls: Vec<(&str, &str)> = banner.iter().filter_map(|line| pasted(line)).collect();
    assert_eq!(curls.len(), 3, "{banner:?}");
    for (secret, url) in &curls {
        let (address, path) = url.strip_prefix("http://").and_then(|url| url.split_once('/')).expect("a URL");
        let answer = get(address.parse().expect("an address"), &format!("/{path}"), secret).await;
        let body: Value = answer.json();
        assert_eq!(answer.status, 200, "{url}: {body}");
        let list = body.as_array().or(body["sports"].as_array()).unwrap_or_else(|| panic!("{url}: {body}"));
        assert!(!list.is_empty(), "{url} shows nothing");
    }
    server.stop();

    let server = demo(&directory);
    let banner = server.lines_until("keys issue --sandbox").concat();
    assert!(!banner.contains("sk_"), "{banner}");
    assert!(banner.contains(&format!("--data {} keys issue", directory.path().display())), "as pasted: {banner}");
    assert_eq!(directory.json("keys list").as_array().map(Vec::len), Some(2), "the keys of the first start");
    server.stop();
}
