//! A Redis server that can be killed, restarted, emptied and replaced.

use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Set where these tests must not be left out.
const REQUIRED: &str = "ODDSBOX_REQUIRE_REDIS";
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub struct RedisServer {
    child: Child,
    directory: TempDir,
    port: u16,
    arguments: Vec<String>,
}

impl RedisServer {
    /// Starts a server that keeps everything it has acknowledged. `None` if there is none on this machine: the test is left out.
    pub fn start(test: &str) -> Option<RedisServer> {
        RedisServer::start_with(test, &["--appendonly", "yes", "--appendfsync", "always"])
    }

    pub fn start_with(test: &str, arguments: &[&str]) -> Option<RedisServer> {
        let directory = tempfile::tempdir().expect("a directory");
        let port = free_port();
        let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        match spawn(directory.path(), port, &arguments) {
            Ok(child) => {
                let server = RedisServer { child, directory, port, arguments };
                server.wait_until_ready();
                Some(server)
            }
            Err(error) => {
                assert!(std::env::var_os(REQUIRED).is_none(), "redis-server: {error}");
                // Not captured, unlike what the macros print.
                let _ = writeln!(std::io::stderr(), "left out, because there is no redis-server: {test}");
                None
            }
        }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Has a command done by `redis-cli`.
    pub fn command(&self, arguments: &[&str]) -> String {
        let port = self.port.to_string();
        let done = Command::new("redis-cli").args(["-p", &port]).args(arguments).output().expect("redis-cli");
        String::from_utf8_lossy(&done.stdout).trim_end().to_owned()
    }

    fn wait_until_ready(&self) {
        if self.arguments.iter().any(|argument| argument.starts_with("--tls-port") || argument == "--requirepass") {
            return self.wait_until_it_listens();
        }
        let began = Instant::now();
        while self.command(&["ping"]) != "PONG" {
            assert!(began.elapsed() < PATIENCE, "the server does not answer");
            thread::sleep(Duration::from_millis(10));
        }
    }

    fn wait_until_it_listens(&self) {
        let began = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(began.elapsed() < PATIENCE, "the server does not listen");
            thread::sleep(Duration::from_millis(10));
        }
    }

    pub fn kill(&mut self) {
        self.child.kill().expect("a child");
        self.child.wait().expect("a child");
    }

    /// Starts it again, on the same port.
    pub fn start_again(&mut self) {
        self.child = spawn(self.directory.path(), self.port, &self.arguments).expect("a server");
        self.wait_until_ready();
    }

    /// Deletes what it has kept on its disk.
    pub fn lose_data(&self) {
        fs::remove_dir_all(self.directory.path().join("appendonlydir")).expect("its data");
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

fn spawn(directory: &Path, port: u16, arguments: &[String]) -> std::io::Result<Child> {
    let is_tls = arguments.iter().any(|argument| argument == "--tls-port");
    // A server with TLS has its own port for that.
    let arguments =
        arguments.iter().map(|argument| if argument == "PORT" { port.to_string() } else { argument.clone() });
    Command::new("redis-server")
        .args(["--port", &if is_tls { 0 } else { port }.to_string(), "--bind", "127.0.0.1", "--save", "", "--dir"])
        .arg(directory)
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}
