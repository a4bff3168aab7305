//! The failure that this prevents: a backup omits a table, which is noticed only when it is needed.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use redb::{Key, TableDefinition};
use serde_json::json;

use super::backup::{event, ingest_offline};
use super::client::get;
use super::command::{Directory, Issued, until};
use super::damaged::{AUDIT, BOOKS, EVENTS, FEEDERS, KEYS, ODDS, Rows, SCORES, SOURCES, SPORTS, USAGE, rows_of};
use crate::pull::upstream::{Reply, Upstream};

const NAMES: Rows<u32> = TableDefinition::new("names");
const COMPETITIONS: Rows<(u8, &str)> = TableDefinition::new("competitions");
const MARKETS: Rows<(u8, &str)> = TableDefinition::new("markets");
const POLLS: Rows<(u8, &str, &str)> = TableDefinition::new("polls");
const CATALOGUE: Rows<u16> = TableDefinition::new("catalogue");
const META: Rows<&str> = TableDefinition::new("meta");

/// A file with rows in every table: ingested and polled data, used keys, tokens and maintenance.
async fn filled() -> Directory {
    let directory = Directory::new();
    let key = Issued::from(&directory.json("keys issue --sandbox --name used"));
    directory.json("feeds token scraper");
    let score = r#"{"type":"score","sport":"mma","event":"e0","status":"live","home_score":0,"away_score":0,"periods":[],"updated_at":"2026-01-01T00:00:00Z"}"#;
    let prop = r#"{"type":"odds","sport":"mma","event":"e0","bookmaker":"betmgm","market":"player_takedowns","last_update":"2026-01-01T00:00:00Z","format":"american","outcomes":[{"name":"Over","description":"A0","price":150,"point":2.5}]}"#;
    ingest_offline(&directory, &[&event(0), &event(1), score, "\n", prop, "\n"].concat());

    let upstream = Upstream::start(None).await;
    let outcomes = json!([{"name": "Ada Stone", "price": 1.5}, {"name": "Bo Reed", "price": 2.5}]);
    let market = json!({"key": "h2h", "last_update": "2026-01-01T00:00:00Z", "outcomes": outcomes});
    let book = json!({"key": "betmgm", "title": "BetMGM", "last_update": "2026-01-01T00:00:00Z", "markets": [market]});
    let bout = json!({
        "id": "polled", "sport_key": "mma_mixed_martial_arts", "sport_title": "MMA",
        "commence_time": "2099-01-01T00:00:00Z", "home_team": "Ada Stone", "away_team": "Bo Reed", "bookmakers": [book],
    });
    upstream.answer("mma_mixed_martial_arts/odds", Reply::Json(json!([bout]).to_string()));
    let (config, catalogue) = (directory.path().join("oddsbox.toml"), directory.path().join("catalogue.toml"));
    fs::write(&catalogue, "families = [\"darts\"]\n").expect("a file");
    let feed = format!(
        "catalogue = \"{}\"\n[feeds.us]\nkind = \"the-odds-api\"\nurl = \"http://{}/v4\"\nkey = \"hush1\"\nsports = [\"mma\"]\nodds_format = \"decimal\"\n",
        catalogue.display(),
        upstream.address
    );
    fs::write(&config, feed).expect("a file");
    let path = config.display().to_string();
    let server = directory.serve_with(&[("ODDSBOX_CONFIG", &path), ("ODDSBOX_LOG", "warn")]);
    assert_eq!(get(server.address(), "/v1/sports", &key.secret).await.status, 200);
    until("the poll is taken", async || directory.run("export --world live").stdout.contains("polled")).await;
    directory.run("maintenance on --for 30m").succeeded();
    server.stop();
    directory
}

/// Every row of a table as key and bytes.
fn all<K: Key + 'static>(path: &Path, table: Rows<K>) -> BTreeSet<(Vec<u8>, Vec<u8>)> {
    rows_of(path, table, |key, row| (K::as_bytes(&key).as_ref().to_vec(), row.to_vec())).into_iter().collect()
}

/// Asserts that a table has rows and that the other file has the same ones.
fn is_kept<K: Key + 'static>(from: &Path, to: &Path, table: Rows<K>) {
    let (before, after) = (all(from, table), all(to, table));
    assert!(!before.is_empty(), "{table} has no row: it proves nothing");
    assert!(
        before.is_subset(&after),
        "{table}: {} of {} rows are kept",
        before.intersection(&after).count(),
        before.len()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restored_backup_has_every_row_of_every_table() {
    let directory = filled().await;
    let (other, file) = (Directory::new(), directory.path().join("copy.redb"));
    let shown = directory.json("status");
    directory.run(&format!("backup {}", file.display())).succeeded();
    other.run(&format!("restore {}", file.display())).succeeded();
    assert_eq!(other.json("check")["clean"], true);
    assert_eq!(other.json("keys list"), directory.json("keys list"));
    assert_eq!(other.json("status")["status"], shown["status"]);
    let (from, to) = (&directory.file(), &other.file());
    is_kept(from, to, SPORTS);
    is_kept(from, to, BOOKS);
    is_kept(from, to, NAMES);
    is_kept(from, to, COMPETITIONS);
    is_kept(from, to, MARKETS);
    is_kept(from, to, EVENTS);
    is_kept(from, to, SCORES);
    is_kept(from, to, ODDS);
    is_kept(from, to, SOURCES);
    is_kept(from, to, POLLS);
    is_kept(from, to, KEYS);
    is_kept(from, to, USAGE);
    is_kept(from, to, FEEDERS);
    is_kept(from, to, CATALOGUE);
    // Each file got an entry in its own audit log since.
    let notes = |path: &Path| all(path, AUDIT).len();
    assert!(notes(from) > 4 && notes(to) >= notes(from), "{} and {}", notes(from), notes(to));
    let maintenance = |path: &Path| rows_of(path, META, |key, row| (key == "maintenance").then(|| row.to_vec()));
    assert_eq!(maintenance(from), maintenance(to));
}
