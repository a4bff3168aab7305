//! Certificates, reloads, monitoring and the service manager, and their failures.

use std::fs;
use std::net::TcpListener;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::time::Duration;

use super::client::{Connection, get};
use super::command::{Directory, Issued, Server, until};
use crate::harness::Figures;
use crate::harness::tls::{Certificates, get_trusting};

fn borrowed<'a>(variables: &'a [(&'static str, String)]) -> Vec<(&'static str, &'a str)> {
    variables.iter().map(|(name, value)| (*name, value.as_str())).collect()
}

/// A directory with a key, and a configuration file for its server.
fn configured(text: &str) -> (Directory, Issued, PathBuf) {
    let directory = Directory::new();
    let key = Issued::from(&directory.json("keys issue --sandbox --name app --burst 100000 --per-day 50000"));
    let file = directory.path().join("oddsbox.toml");
    fs::write(&file, text).expect("a file");
    (directory, key, file)
}

#[tokio::test]
async fn reload_applies_what_it_can_and_names_the_rest() {
    let (directory, key, file) = configured("allow_query_key = true\n");
    let path = file.display().to_string();
    let server = directory.serve_with(&[("ODDSBOX_CONFIG", &path)]);
    let target = format!("/v1/sports?api_key={}", key.secret);
    assert_eq!(get(server.address(), &target, "").await.status, 401, "an empty header wins");
    let asked = async || {
        let mut connection = Connection::open(server.address()).await.expect("a connection");
        let request = format!("GET {target} HTTP/1.1\r\nhost: oddsbox\r\n\r\n");
        connection.send(&request).await.expect("an answer").status
    };
    assert_eq!(asked().await, 200);

    fs::write(&file, "allow_query_key = false\nrefresh = \"7s\"\nconnections = 99\n").expect("a file");
    server.hang_up();
    until("the query is closed to keys", async || asked().await == 401).await;
    until("what waits is named", async || server.log().contains("only a restart puts them in force")).await;
    let log = server.log();
    let line = |text: &str| log.lines().find(|line| line.contains(text)).expect("a line").to_owned();
    assert!(line("\"reloaded\"").contains("allow_query_key, connections"), "{log}");
    assert!(line("only a restart").contains("\"refresh\""), "{log}");

    // An invalid file changes nothing and is reported on one line.
    fs::write(&file, "allow_query_key = true\nrefersh = \"7s\"\n").expect("a file");
    server.hang_up();
    until("it is logged", async || server.log().contains("not reloaded, nothing changed")).await;
    assert!(server.log().contains("there is no setting refersh; did you mean refresh?"), "{}", server.log());
    assert_eq!(asked().await, 401);

    let audit = directory.json("audit");
    let notes = audit.as_array().expect("a list").iter().filter(|note| note["action"] == "reload");
    let details: Vec<_> = notes.map(|note| note["detail"].clone()).collect();
    assert_eq!(details, ["changed: allow_query_key, connections; waiting for a restart: refresh"]);
    server.stop();
}

#[tokio::test]
async fn a_reload_changes_the_log_level() {
    let (directory, _, file) = configured("log = \"error\"\n");
    let path = file.display().to_string();
    let server = directory.serve_with(&[("ODDSBOX_CONFIG", &path)]);
    get(server.address(), "/healthz", "").await;
    assert!(!server.log().contains("/healthz"), "{}", server.log());
    fs::write(&file, "log = \"info\"\n").expect("a file");
    server.hang_up();
    until("requests are logged", async || {
        get(server.address(), "/healthz", "").await;
        server.log().contains("/healthz")
    })
    .await;
    fs::write(&file, "log = \"=nonsense=\"\n").expect("a file");
    server.hang_up();
    until("it is logged", async || server.log().contains("is no filter")).await;
    server.stop();
}

#[tokio::test]
async fn reload_applies_a_new_certificate_and_rejects_an_invalid_one() {
    let (directory, _, _) = configured("");
    let files = Certificates::new();
    let first = files.renew();
    let variables = files.variables();
    let server = directory.serve_with(&borrowed(&variables));
    assert_eq!(server.scheme(), "https");
    let healthy = async |trusted| {
        get_trusting(trusted, server.address(), "/healthz").await.is_some_and(|answer| answer.status == 200)
    };
    assert!(healthy(&first).await);
    assert!(directory.run("status").succeeded().stdout.contains("https://"));

    let second = files.renew();
    assert!(healthy(&first).await, "nothing was asked for");
    server.hang_up();
    until("the second is shown", async || healthy(&second).await).await;
    assert!(!healthy(&first).await);
    until("it is logged", async || server.log().contains("the certificate")).await;

    let other = Certificates::new();
    other.renew();
    fs::copy(other.key(), files.key()).expect("a file");
    server.hang_up();
    until("it is logged", async || server.log().contains("does not match the certificate")).await;
    assert!(healthy(&second).await);
    server.stop();
}

/// Starts a server that must fail with exit code 1 and one line containing these parts, leaving the data unchanged.
fn refuses(directory: &Directory, key: &Issued, variables: &[(&str, &str)], parts: &[&str]) {
    let line = Server::spawn(directory.path(), variables).failed();
    assert!(parts.iter().all(|part| line.contains(part)), "{line}");
    assert_eq!(directory.json("keys list")[0]["id"], key.id.as_str());
}

#[test]
fn invalid_certificate_is_reported_on_one_line() {
    let (directory, key, _) = configured("");
    let files = Certificates::new();
    let variables = files.variables();
    let both = borrowed(&variables);
    refuses(&directory, &key, &both, &["cannot read the certificate ", "chain.pem: No such file"]);
    files.renew();
    refuses(&directory, &key, &both[..1], &["tls.key = \"\" (from default)", "set both or neither"]);
    refuses(&directory, &key, &both[1..], &["tls.certificate = \"\" (from default)", "set both or neither"]);
    let pem = fs::read(files.chain()).expect("a file");
    fs::copy(files.key(), files.chain()).expect("a file");
    refuses(&directory, &key, &both, &["there is no certificate in ", "chain.pem"]);
    fs::write(files.chain(), &pem).expect("a file");
    let other = Certificates::new();
    other.renew();
    fs::copy(other.key(), files.key()).expect("a file");
    refuses(&directory, &key, &both, &["the key ", "key.pem does not match the certificate ", "chain.pem"]);
    fs::write(files.key(), &pem).expect("a file");
    refuses(&directory, &key, &both, &["there is no private key in ", "key.pem"]);
}

#[test]
fn invalid_configuration_is_reported_on_one_line() {
    let (directory, key, file) = configured("refresh = \"30s\"\nlisten = \n");
    let path = file.display().to_string();
    let with = |text: &str, parts: &[&str]| {
        fs::write(&file, text).expect("a file");
        refuses(&directory, &key, &[("ODDSBOX_CONFIG", &path)], parts);
    };
    with("refresh = \"30s\"\nlisten = \n", &["oddsbox.toml: line 2: "]);
    with(
        "[tls]\ncertificat = \"x\"\n",
        &["oddsbox.toml: line 2: there is no setting tls.certificat; did you mean tls.certificate?"],
    );
    with("refresh = \"soon\"\n", &["refresh = \"soon\" (from ", "takes a duration such as 30s"]);
    with("log = \"=no=\"\n", &["log = \"=no=\" is no filter"]);
    with("[admin]\nlisten = \"0.0.0.0:9100\"\n", &["admin.listen = \"0.0.0.0:9100\" (from ", "loopback"]);
    refuses(
        &directory,
        &key,
        &[("ODDSBOX_CONFIG", "/nowhere/oddsbox.toml")],
        &["cannot read /nowhere/oddsbox.toml: No such file"],
    );
}

#[test]
fn monitoring_address_in_use_is_reported_on_one_line() {
    let (directory, key, _) = configured("");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    refuses(
        &directory,
        &key,
        &[("ODDSBOX_ADMIN_LISTEN", &address), ("ODDSBOX_LOG", "off")],
        &["cannot listen on ", &address, "choose another with admin.listen"],
    );
}

#[tokio::test]
async fn monitoring_address_accepts_no_commands() {
    let (directory, _, _) = configured("");
    let server = directory.serve_with(&[("ODDSBOX_ADMIN_LISTEN", "127.0.0.1:0")]);
    let logged = || {
        let log = server.log();
        let line = log.lines().find(|line| line.contains("monitoring address"))?;
        serde_json::from_str::<serde_json::Value>(line).ok()?["address"].as_str()?.parse().ok()
    };
    // Lines of the log may come later than the address on the standard output.
    until("the address is logged", async || logged().is_some()).await;
    let address = logged().expect("an address");
    for path in ["/livez", "/readyz"] {
        assert_eq!(get(address, path, "").await.status, 200, "{path}");
    }
    get(server.address(), "/healthz", "").await;
    let figures = Figures::parse(get(address, "/metrics", "").await.text());
    assert_eq!(figures.get("oddsbox_http_requests_total", "route=/healthz,status=200"), Some(1.0));
    for (request, status) in [
        ("POST /metrics HTTP/1.1\r\nhost: x\r\n\r\n", 405),
        ("POST /command HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n\"Status\"\n", 404),
        ("POST /ingest HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n", 404),
        ("GET /v1/sports HTTP/1.1\r\nhost: x\r\n\r\n", 404),
    ] {
        let mut connection = Connection::open(address).await.expect("a connection");
        assert_eq!(connection.send(request).await.expect("an answer").status, status, "{request}");
    }
    server.stop();
}

/// A socket that receives the notifications to the service manager.
struct Manager {
    socket: UnixDatagram,
    path: String,
    _directory: tempfile::TempDir,
}

impl Manager {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("notify").display().to_string();
        let socket = UnixDatagram::bind(&path).expect("a socket");
        socket.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
        Manager { socket, path, _directory: directory }
    }

    /// The next message that is not a watchdog ping.
    fn next(&self) -> String {
        loop {
            let message = self.receive();
            if message != "WATCHDOG=1\n" {
                return message;
            }
        }
    }

    fn receive(&self) -> String {
        let mut bytes = [0; 1024];
        let length = self.socket.recv(&mut bytes).expect("a message");
        String::from_utf8(bytes[..length].to_vec()).expect("a text")
    }
}

#[test]
fn service_manager_is_notified() {
    let (directory, _, _) = configured("");
    let manager = Manager::new();
    let server = directory.serve_with(&[("NOTIFY_SOCKET", &manager.path), ("WATCHDOG_USEC", "400000")]);
    let ready = format!("READY=1\nSTATUS=serving on http://{}\n", server.address());
    assert_eq!(manager.next(), ready);
    for _ in 0..3 {
        assert_eq!(manager.receive(), "WATCHDOG=1\n");
    }
    server.hang_up();
    let reloading = manager.next();
    assert!(reloading.starts_with("RELOADING=1\nMONOTONIC_USEC="), "{reloading}");
    assert_eq!(manager.next(), ready);
    server.terminate();
    assert!(manager.next().starts_with("STOPPING=1\n"));
    let (code, _, log) = server.end();
    assert_eq!(code, Some(0), "{log}");
}

#[test]
fn no_watchdog_notifications_without_a_watchdog() {
    let (directory, _, _) = configured("");
    let manager = Manager::new();
    let server = directory.serve_with(&[("NOTIFY_SOCKET", &manager.path)]);
    assert!(manager.receive().starts_with("READY=1\n"));
    server.terminate();
    assert!(manager.receive().starts_with("STOPPING=1\n"));
    assert_eq!(server.end().0, Some(0));
}
