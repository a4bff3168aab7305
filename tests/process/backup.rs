//! A backup is a consistent snapshot of a running server; a restore brings it back without reviving anything that was
//! revoked or used since.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command as Process;
use std::sync::atomic::{AtomicBool, Ordering};

use oddsbox::admin::{AdminAccess, AuditAnswer, Command};
use oddsbox::ingest::IngestOptions;
use oddsbox::model::World;
use redb::{ReadableTable, TableDefinition};
use serde_json::Value;
use tempfile::TempDir;

use super::client::{Connection, get};
use super::command::{Directory, Issued, Server, Started, blocking, issue, revoke, rotate, run, sandbox, until};
use super::seed::within_a_day;

const ODDS: TableDefinition<(u8, u16, u32, u16, u32), &[u8]> = TableDefinition::new("odds");
const USAGE: TableDefinition<&str, &[u8]> = TableDefinition::new("usage");
const FORMATS: TableDefinition<&str, u32> = TableDefinition::new("oddsbox");

/// A directory for backups and exports.
fn shelf() -> TempDir {
    tempfile::tempdir().expect("a directory")
}

fn names_in(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<String> = entries.map(|name| name.into_string().expect("a name")).collect();
    names.sort();
    names
}

fn quiet(directory: &Directory) -> Server {
    directory.serve_with(&[("ODDSBOX_LOG", "warn")])
}

/// An event with two prices, as feed lines.
pub(super) fn event(number: usize) -> String {
    let odds = |book: &str, price: usize| {
        format!(
            r#"{{"type":"odds","sport":"mma","event":"e{number}","bookmaker":"{book}","market":"moneyline","last_update":"2026-01-01T00:00:00Z","format":"american","outcomes":[{{"name":"A{number}","price":{price}}},{{"name":"B{number}","price":-150}}]}}"#
        )
    };
    let event = format!(
        r#"{{"type":"event","sport":"mma","id":"e{number}","competition":"Open","commence_time":"2099-01-01T00:00:00Z","home":"A{number}","away":"B{number}","status":"scheduled"}}"#
    );
    format!("{event}\n{}\n{}\n", odds("betmgm", 100 + number % 300), odds("fanduel", 130))
}

async fn ingest(access: &AdminAccess, lines: String) {
    let (sender, source) = tokio::sync::mpsc::channel(1);
    sender.send(Ok(lines.into())).await.expect("a reader");
    drop(sender);
    let report = access.ingest(IngestOptions { world: World::Live, strict: false }, source).await.expect("a report");
    assert_eq!(report.rejected, 0, "{report:?}");
}

pub(super) fn ingest_offline(directory: &Directory, lines: &str) -> Value {
    let mut command = Started::new(directory.path(), ["ingest", "-", "--json"]);
    command.write(lines);
    command.done().succeeded().document()
}

async fn log_of(access: &AdminAccess) -> Vec<AuditAnswer> {
    let mut entries: Vec<AuditAnswer> = Vec::new();
    loop {
        let after = entries.last().map(|entry| entry.sequence);
        let page: Vec<AuditAnswer> = access.ask(Command::Audit { after, limit: Some(1000) }).await.expect("a log");
        if page.is_empty() {
            return entries;
        }
        entries.extend(page);
    }
}

fn live_key(directory: &Directory) -> Issued {
    Issued::from(&directory.json("keys issue --live --approved-by test --name live --burst 1000000 --per-day 9000000"))
}

async fn status_of(server: &Server, secret: &str) -> u16 {
    get(server.address(), "/v1/sports", secret).await.status
}

fn ids(value: &Value) -> Vec<&str> {
    value.as_array().expect("a list").iter().map(|id| id.as_str().expect("an id")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn backup_under_load_is_consistent_and_does_not_block() {
    let (directory, shelf, other) = (Directory::new(), shelf(), Directory::new());
    let key = live_key(&directory);
    let server = quiet(&directory);
    let access = directory.access().await;
    let file = shelf.path().join("copy.redb");
    let is_over = AtomicBool::new(false);
    let under_way = || !is_over.load(Ordering::Relaxed);
    ingest(&access, (0..3_000).map(event).collect()).await;

    let feed = async {
        let mut next = 3_000;
        while under_way() {
            ingest(&access, (next..next + 20).map(event).collect()).await;
            next += 20;
        }
    };
    let keys = async {
        let mut issued = 0;
        while under_way() {
            let key = issue(&access, sandbox(1_000)).await.expect("a key");
            revoke(&access, &key.id).await.expect("a revocation");
            issued += 1;
        }
        issued
    };
    let client = async {
        let mut connection = Connection::open(server.address()).await.expect("a connection");
        while under_way() {
            let answer = connection.get("/v1/sports/mma/odds?regions=us", &key.secret).await.expect("an answer");
            assert_eq!(answer.status, 200);
        }
    };
    let backup = async {
        let first = log_of(&access).await.len();
        until("keys are issued", async || log_of(&access).await.len() > first + 4).await;
        let (data, line) = (directory.path().to_owned(), format!("backup {} --json", file.display()));
        let before = log_of(&access).await.len();
        let document = blocking(move || run(&data, &line)).await.succeeded().document();
        is_over.store(true, Ordering::Relaxed);
        (before, document)
    };
    let ((), issued, (), (before, document)) = tokio::join!(feed, keys, client, backup);
    assert!(issued > 0);
    assert_eq!(document["bytes"].as_u64(), Some(fs::metadata(&file).expect("a file").len()), "{document}");
    assert_eq!(fs::metadata(&file).expect("a file").permissions().mode() & 0o777, 0o600);
    assert_eq!(names_in(shelf.path()), ["copy.redb"]);
    let whole = log_of(&access).await;
    assert!(whole.iter().any(|entry| entry.action == "backup" && entry.subject == file.display().to_string()));
    server.stop();

    other.run(&format!("restore {}", file.display())).succeeded();
    assert_eq!(other.json("check")["clean"], true);
    let server = quiet(&other);
    let restored = log_of(&other.access().await).await;
    let (last, own) = (restored.iter().position(|entry| entry.action == "restore"), &restored);
    let last = last.expect("a restore");
    assert!(last >= before && last <= whole.len(), "{before} before the backup, {last} in it, {} after", whole.len());
    assert_eq!(own[..last], whole[..last], "the log up to one moment");
    let issues = own[..last].iter().filter(|entry| entry.action == "issue").count();
    assert_eq!(other.json("keys list").as_array().map(Vec::len), Some(issues), "the keys of that moment");
    assert_eq!(status_of(&server, &key.secret).await, 200);
}

#[tokio::test]
async fn restored_server_gives_the_same_responses() {
    let (directory, shelf, other) = (Directory::new(), shelf(), Directory::new());
    let key = live_key(&directory);
    ingest_offline(&directory, &(0..50).map(event).collect::<String>());
    let file = shelf.path().join("copy.redb");
    let done = directory.run(&format!("backup {}", file.display())).succeeded();
    assert!(done.stdout.contains("and verified them"), "{done:?}");
    let message = directory.run(&format!("backup {}", file.display())).failed();
    assert!(message.contains("is there already") && message.contains("--force"), "{message}");
    directory.run(&format!("backup {} --force", file.display())).succeeded();
    let message = directory.run(&format!("backup {} --force", directory.file().display())).failed();
    assert!(message.contains("name another"), "{message}");
    other.run(&format!("restore {}", file.display())).succeeded();
    let mut answers = Vec::new();
    for directory in [&directory, &other] {
        let server = quiet(directory);
        for path in ["/v1/sports/mma/odds?regions=us&limit=500", "/v1/sports/mma/events", "/v1/sports/mma/scores"] {
            let answer = get(server.address(), path, &key.secret).await;
            assert_eq!(answer.status, 200, "{answer:?}");
            answers.push(answer.body);
        }
        server.stop();
    }
    let (first, second) = answers.split_at(3);
    assert_eq!(first, second);
    assert!(first[0].len() > 1_000);
}

#[tokio::test]
async fn restore_revives_no_secret_and_no_quota() {
    within_a_day(check_restore_revives_no_secret_and_no_quota).await;
}

async fn check_restore_revives_no_secret_and_no_quota() {
    let (directory, shelf) = (Directory::new(), shelf());
    let file = shelf.path().join("copy.redb");
    let line = format!("restore {}", file.display());
    let server = quiet(&directory);
    let access = directory.access().await;
    let [revoked, rotated, used, kept] = [0; 4].map(|_| sandbox(20));
    let revoked = issue(&access, revoked).await.expect("a key");
    let rotated = issue(&access, rotated).await.expect("a key");
    let used = issue(&access, used).await.expect("a key");
    let kept = issue(&access, kept).await.expect("a key");
    directory.run(&format!("backup {}", file.display())).succeeded();
    let message = directory.run(&line).failed();
    assert!(message.contains("a server runs") && message.contains("stop it"), "{message}");

    revoke(&access, &revoked.id).await.expect("a revocation");
    let renewed = rotate(&access, &rotated.id).await.expect("a rotation");
    for _ in 0..7 {
        assert_eq!(status_of(&server, &used.secret).await, 200);
    }
    let later = issue(&access, sandbox(20)).await.expect("a key");
    server.stop();

    let answer = directory.json(&line);
    assert_eq!(ids(&answer["carried"]["revoked"]), [&*revoked.id], "{answer}");
    assert_eq!(ids(&answer["carried"]["rotated"]), [&*rotated.id], "{answer}");
    assert!(ids(&answer["carried"]["usage"]).contains(&&*used.id), "{answer}");
    assert_eq!(ids(&answer["carried"]["gone"]), [&*later.id], "{answer}");
    let replaced = PathBuf::from(answer["kept_as"].as_str().expect("a path"));
    assert!(replaced.exists() && replaced.to_string_lossy().contains(".before-restore-"), "{answer}");

    let server = quiet(&directory);
    for secret in [&revoked.secret, &rotated.secret, &later.secret] {
        assert_eq!(status_of(&server, secret).await, 401);
    }
    for secret in [&renewed.secret, &kept.secret] {
        assert_eq!(status_of(&server, secret).await, 200);
    }
    assert_eq!(directory.json(&format!("keys show {}", used.id))["used_today"], 7);
    let log = log_of(&directory.access().await).await;
    let entry = log.iter().find(|entry| entry.action == "restore").expect("an entry");
    assert!(entry.detail.contains("1 revoked") && entry.detail.contains("1 rotated"), "{entry:?}");
    server.stop();

    // With `--exact`, the backup is restored without any of that.
    let exact = directory.json(&format!("{line} --exact"));
    assert_eq!((&exact["exact"], exact["carried"]["revoked"].as_array().map(Vec::len)), (&true.into(), Some(0)));
    let server = quiet(&directory);
    for secret in [&revoked.secret, &rotated.secret] {
        assert_eq!(status_of(&server, secret).await, 200);
    }
    drop(server);
    // The replaced file can be restored like any other.
    let back = directory.json(&format!("restore {} --exact", replaced.display()));
    assert_eq!(back["exact"], true);
    let server = quiet(&directory);
    assert_eq!(status_of(&server, &revoked.secret).await, 401);
    assert_eq!(status_of(&server, &later.secret).await, 200);
}

/// Modifies a file behind the program's back.
pub(super) fn alter(path: &Path, change: impl FnOnce(&redb::WriteTransaction)) {
    let db = redb::Database::open(path).expect("a file");
    let txn = db.begin_write().expect("a transaction");
    change(&txn);
    txn.commit().expect("a commit");
}

/// Flips a bit of the first row.
fn spoil<K: redb::Key + 'static>(path: &Path, table: TableDefinition<'static, K, &'static [u8]>) {
    alter(path, |txn| {
        let mut table = txn.open_table(table).expect("a table");
        let (key, mut row) = {
            let (key, row) = table.first().expect("a table").expect("a row");
            (K::as_bytes(&key.value()).as_ref().to_vec(), row.value().to_vec())
        };
        row[1] ^= 1;
        table.insert(K::from_bytes(&key), &*row).expect("a row");
    });
}

#[test]
fn damaged_backup_is_rejected_and_nothing_changes() {
    let (directory, shelf) = (Directory::new(), shelf());
    let key = live_key(&directory);
    ingest_offline(&directory, &event(1));
    let path = |name: &str| shelf.path().join(name);
    directory.run(&format!("backup {}", path("good").display())).succeeded();
    let good = fs::read(path("good")).expect("a file");
    fs::write(path("garbage"), "no such thing").expect("a file");
    fs::write(path("cut"), &good[..good.len() / 2]).expect("a file");
    fs::write(path("newer"), &good).expect("a file");
    alter(&path("newer"), |txn| {
        txn.open_table(FORMATS).expect("a table").insert("format", 99).expect("a row");
    });
    fs::write(path("damaged"), &good).expect("a file");
    spoil(&path("damaged"), ODDS);
    fs::create_dir(path("directory")).expect("a directory");
    fs::write(path("nothing"), "").expect("a file");

    let before = (fs::read(directory.file()).expect("a file"), names_in(directory.path()));
    let refusals = [
        ("missing", "cannot read "),
        ("directory", "cannot read "),
        ("garbage", "not an oddsbox file"),
        ("cut", "cut short"),
        ("nothing", "is empty"),
        ("newer", "use a newer oddsbox"),
        ("damaged", "live mma event e1 bookmaker fanduel moneyline"),
    ];
    for (name, reason) in refusals {
        let message = directory.run(&format!("restore {}", path(name).display())).failed();
        assert!(message.contains(reason) && message.contains(name), "{name}: {message}");
    }
    let message = directory.run(&format!("restore {}", directory.file().display())).failed();
    assert!(message.contains("name a backup"), "{message}");
    assert_eq!(names_in(directory.path()), before.1);
    assert_eq!(directory.json(&format!("keys show {}", key.id))["status"], "active");

    let done = directory.run(&format!("restore {} --force", path("damaged").display()));
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.stderr.contains("damaged"), "{done:?}");

    // Revocations cannot be read from a damaged current file, so the restore needs an explicit flag.
    fs::write(directory.file(), "rot").expect("a file");
    let message = directory.run(&format!("restore {}", path("good").display())).failed();
    assert!(message.contains("--exact") && message.contains("revoke"), "{message}");
    directory.run(&format!("restore {} --exact", path("good").display())).succeeded();
    assert_eq!(directory.json("check")["clean"], true);
}

#[test]
fn empty_file_is_rejected_by_every_command_and_replaced_by_a_restore() {
    let (directory, shelf) = (Directory::new(), shelf());
    let key = live_key(&directory);
    let backup = shelf.path().join("backup");
    directory.run(&format!("backup {}", backup.display())).succeeded();
    directory.json(&format!("keys revoke {}", key.id));
    fs::write(directory.file(), "").expect("an empty file");
    for command in ["keys list", "keys issue --sandbox --name new", "check", "serve --listen 127.0.0.1:0"] {
        let message = directory.run(command).failed();
        assert!(message.contains("is empty") && message.contains("oddsbox restore"), "{command}: {message}");
        assert_eq!(fs::metadata(directory.file()).expect("a file").len(), 0, "{command}");
    }
    let done = directory.run(&format!("restore {} --json", backup.display()));
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.stderr.contains("could not be carried over"), "{done:?}");
    let answer: Value = serde_json::from_str(&done.stdout).expect("an answer");
    assert_eq!((&answer["replaced_empty"], &answer["kept_as"]), (&true.into(), &Value::Null), "{answer}");
    // The revocation was lost with the file, as the warning says.
    assert_eq!(directory.json(&format!("keys show {}", key.id))["status"], "active");
    let log = directory.json("audit").to_string();
    assert!(log.contains("the file that it replaces was empty"), "{log}");
}

#[test]
fn backup_on_a_full_disk_fails_with_one_line_and_leaves_no_file() {
    struct Mount(TempDir);
    impl Drop for Mount {
        fn drop(&mut self) {
            let _ = Process::new("umount").arg(self.0.path()).status();
        }
    }
    let place = shelf();
    let mounted = Process::new("mount").args(["-t", "tmpfs", "-o", "size=128k", "none"]).arg(place.path()).output();
    if !mounted.is_ok_and(|output| output.status.success()) {
        // Only root can mount; the store's unit tests cover failing storage as well.
        return;
    }
    let small = Mount(place);
    let directory = Directory::new();
    live_key(&directory);
    ingest_offline(&directory, &(0..2_000).map(event).collect::<String>());
    let line = format!("backup {}", small.0.path().join("copy.redb").display());
    let offline = directory.run(&line).failed();
    let server = quiet(&directory);
    let online = directory.run(&line).failed();
    for message in [offline, online] {
        assert!(message.contains("full") && message.contains("copy.redb"), "{message}");
    }
    assert!(names_in(small.0.path()).is_empty());
    directory.run("keys issue --sandbox --name after").succeeded();
    assert_eq!(directory.json("check")["clean"], true);
    server.stop();
}

#[test]
fn older_file_is_kept_next_to_the_upgraded_one() {
    let directory = Directory::new();
    let key = live_key(&directory);
    alter(&directory.file(), |txn| {
        txn.delete_table(TableDefinition::<u16, &[u8]>::new("catalogue")).expect("a table");
        txn.delete_table(TableDefinition::<u64, &str>::new("key_order")).expect("a table");
        // Their keys were of other types.
        txn.delete_table(ODDS).expect("a table");
        txn.delete_table(TableDefinition::<(u8, u16, u16, u32, u32), ()>::new("coverage")).expect("a table");
        txn.open_table(FORMATS).expect("a table").insert("format", 1).expect("a row");
    });
    let before = fs::read(directory.file()).expect("a file");
    assert_eq!(directory.json("keys list")[0]["id"], key.id);
    assert_eq!(fs::read(directory.path().join("oddsbox.redb.v1-backup")).expect("a copy"), before);
    let other = Directory::new();
    other.run(&format!("restore {}/oddsbox.redb.v1-backup", directory.path().display())).succeeded();
    assert_eq!(names_in(other.path()), ["oddsbox.redb"]);
    assert_eq!(other.json("keys list")[0]["id"], key.id);
    alter(&directory.file(), |txn| {
        txn.open_table(FORMATS).expect("a table").insert("format", 99).expect("a row");
    });
    assert!(directory.run("keys list").failed().contains("use a newer oddsbox"));
}

#[test]
fn damaged_rows_are_reported_and_can_be_dropped() {
    let directory = Directory::new();
    live_key(&directory);
    ingest_offline(&directory, &event(0));
    spoil(&directory.file(), ODDS);
    let server = quiet(&directory);
    let done = directory.run("check --json");
    let report = done.document();
    assert_eq!((done.code, report["integrity"].as_str()), (Some(1), Some("unchecked")), "{report}");
    assert_eq!(report["problems"][0]["key"], "live mma event e0 bookmaker fanduel moneyline", "{report}");
    assert!(done.complaint().contains("--drop-damaged"), "{done:?}");
    assert!(directory.run("check --drop-damaged").failed().contains("a server runs"));
    server.stop();

    let done = directory.run("check --drop-damaged --json");
    let report = done.document();
    assert_eq!((done.code, &report["dropped"]["rows"]), (Some(0), &1.into()), "{done:?}");
    assert!(Path::new(report["dropped"]["copy"].as_str().expect("a path")).exists());
    assert_eq!(directory.json("check")["clean"], true);
    let log = directory.json("audit");
    assert!(log.as_array().expect("a log").iter().any(|entry| entry["action"] == "drop damaged"), "{log}");
}

#[tokio::test]
async fn lost_counters_count_as_exhausted_until_reset() {
    within_a_day(check_lost_counters_count_as_exhausted_until_reset).await;
}

async fn check_lost_counters_count_as_exhausted_until_reset() {
    let directory = Directory::new();
    let server = quiet(&directory);
    let key = issue(&directory.access().await, sandbox(1_000)).await.expect("a key");
    assert_eq!(status_of(&server, &key.secret).await, 200);
    server.stop();
    spoil(&directory.file(), USAGE);

    let server = quiet(&directory);
    assert_eq!(status_of(&server, &key.secret).await, 429);
    let done = directory.run("check");
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.stdout.contains(&key.id) && done.stdout.contains("--reset-usage"), "{done:?}");
    server.kill();
    let server = quiet(&directory);
    assert_eq!(status_of(&server, &key.secret).await, 429, "it is written down");
    directory.run(&format!("keys set {} --reset-usage", key.id)).succeeded();
    assert_eq!(status_of(&server, &key.secret).await, 200);
    directory.run("check").succeeded();
    let shown = directory.json(&format!("keys show {}", key.id));
    assert_eq!((&shown["used_today"], &shown["remaining_today"]), (&1.into(), &999.into()), "{shown}");
    let log = log_of(&directory.access().await).await;
    let actions: Vec<&str> = log.iter().map(|entry| &*entry.action).collect();
    assert!(actions.contains(&"usage lost") && log.iter().any(|entry| entry.detail.contains("begun anew")), "{log:?}");
    server.kill();
    let server = quiet(&directory);
    assert_eq!(status_of(&server, &key.secret).await, 200, "so is that");
}

#[test]
fn a_command_without_a_server_uses_the_catalogue_that_the_server_had() {
    let directory = Directory::new();
    let catalogue = directory.path().join("own.toml");
    let text = "[[sports]]\nkey = \"curling\"\ntitle = \"Curling\"\ngroup = \"ice\"\nkind = \"head_to_head\"\n";
    fs::write(&catalogue, text).expect("a file");
    let own = [("ODDSBOX_CATALOGUE", catalogue.to_str().expect("a text")), ("ODDSBOX_LOG", "warn")];
    directory.serve_with(&own).stop();
    directory.json("keys list");
    let line = r#"{"type":"event","sport":"curling","id":"c1","competition":"WC","commence_time":"2099-01-01T00:00:00Z","home":"A","away":"B","status":"scheduled"}"#;
    assert_eq!(ingest_offline(&directory, &format!("{line}\n"))["accepted"], 1);
    let server = directory.serve_with(&own);
    assert_eq!(directory.json("status")["worlds"]["live"]["events"], 1);
    server.stop();
}

#[tokio::test]
async fn keys_are_listed_in_the_order_of_their_issue() {
    let directory = Directory::new();
    let server = quiet(&directory);
    let access = directory.access().await;
    let mut issued = Vec::new();
    for _ in 0..20 {
        issued.push(issue(&access, sandbox(10)).await.expect("a key").id);
    }
    let listed = |list: &Value| -> Vec<String> {
        list.as_array().expect("a list").iter().map(|key| key["id"].as_str().expect("an id").to_owned()).collect()
    };
    assert_eq!(listed(&directory.json("keys list")), issued);
    server.kill();
    assert_eq!(listed(&directory.json("keys list")), issued);
}
