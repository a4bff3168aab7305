//! Starting the binary: commands that end, and servers that run until they are stopped.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use oddsbox::admin::{self, AdminAccess, AdminError, DataDir, FieldSetting, IssueKey, KeyAnswer};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The maximum time for a process to start or end, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// A data directory that is deleted after the test.
#[derive(Debug)]
pub struct Directory(TempDir);

impl Directory {
    pub fn new() -> Directory {
        Directory(tempfile::tempdir().expect("a directory"))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn data(&self) -> DataDir {
        DataDir::new(self.path())
    }

    pub fn file(&self) -> PathBuf {
        self.data().file()
    }

    pub fn socket(&self) -> PathBuf {
        self.data().socket().expect("a short path")
    }

    /// Runs a command to its end; `line` is split at spaces.
    pub fn run(&self, line: &str) -> Done {
        run(self.path(), line)
    }

    /// The same with environment variables, on the sports of [`Directory::serve_with`].
    #[cfg(feature = "cluster")]
    pub fn run_with(&self, variables: &[(&str, &str)], line: &str) -> Done {
        let catalogue = self.few_sports();
        let variables = [&[("ODDSBOX_CATALOGUE", catalogue.as_str())], variables].concat();
        let arguments: Vec<&str> = line.split(' ').collect();
        Started::from(binary(self.path(), &variables), &arguments).done()
    }

    /// Runs a command with `--json`. It must succeed and print exactly one document.
    pub fn json(&self, line: &str) -> Value {
        self.run(&format!("{line} --json")).succeeded().document()
    }

    pub fn serve(&self) -> Server {
        self.serve_with(&[])
    }

    /// Starts a server with environment variables, and waits until it listens. It has three sports: most of the start of a debug
    /// build is the simulation of the sandbox world.
    pub fn serve_with(&self, variables: &[(&str, &str)]) -> Server {
        let mut server = self.spawn_with(variables);
        server.wait_until_ready();
        server
    }

    /// The same without waiting.
    pub fn spawn_with(&self, variables: &[(&str, &str)]) -> Server {
        let catalogue = self.few_sports();
        Server::spawn(self.path(), &[&[("ODDSBOX_CATALOGUE", catalogue.as_str())], variables].concat())
    }

    /// The path of a catalogue with three sports.
    fn few_sports(&self) -> String {
        let file = self.path().join("few_sports.toml");
        if !file.exists() {
            fs::write(&file, few_sports()).expect("a file");
        }
        file.to_str().expect("a text").to_owned()
    }

    /// The same with the built-in catalogue.
    pub fn serve_all_sports(&self, variables: &[(&str, &str)]) -> Server {
        let mut server = Server::spawn(self.path(), variables);
        server.wait_until_ready();
        server
    }

    /// The admin socket of the running server.
    pub async fn access(&self) -> AdminAccess {
        AdminAccess::server(&self.data()).await.expect("a socket").expect("a server")
    }
}

/// The built-in catalogue with three of its sports.
fn few_sports() -> String {
    let text = include_str!("../../data/catalogue.toml");
    let (sports, rest) = text.split_once("\ncompetitions = [").expect("competitions after sports");
    let (competitions, rest) = rest.split_once("\n]\n").expect("the end of the list");
    let keep = |text: &str, kept: [&str; 3]| -> String {
        let is_kept = |line: &str| {
            !line.starts_with("  { key") || kept.iter().any(|key| line.contains(&format!("key = \"{key}")))
        };
        text.split_inclusive('\n').filter(|line| is_kept(line)).collect()
    };
    let sports = keep(sports, ["mma\"", "tennis\"", "golf\""]);
    let competitions = keep(competitions, ["mma_", "tennis_", "golf_"]);
    format!("replace = true\n{sports}competitions = [{competitions}]\n{rest}")
}

/// Runs a command on any data path to its end.
pub fn run(data: &Path, line: &str) -> Done {
    Started::new(data, line.split(' ')).done()
}

/// Runs a command in a working directory with the default data directory.
pub fn run_in(directory: &Path, line: &str) -> Done {
    let mut binary = bare_binary();
    binary.current_dir(directory);
    Started::from(binary, &line.split(' ').collect::<Vec<_>>()).done()
}

/// A command that may still be running.
#[derive(Debug)]
pub struct Started {
    running: Running,
    stdin: Option<ChildStdin>,
    stdout: JoinHandle<String>,
    stderr: JoinHandle<String>,
}

impl Started {
    pub fn new<A: AsRef<OsStr>>(data: &Path, arguments: impl IntoIterator<Item = A>) -> Started {
        Started::from(binary(data, &[]), &arguments.into_iter().collect::<Vec<A>>())
    }

    fn from<A: AsRef<OsStr>>(mut binary: Command, arguments: &[A]) -> Started {
        refuse_default_port(arguments);
        let mut child = binary
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a process");
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (stdout, stderr) = (stdout.expect("an output"), stderr.expect("an output"));
        Started { running: Running(child), stdin, stdout: collect(stdout), stderr: collect(stderr) }
    }

    /// Writes to its input. It may have ended already.
    pub fn write(&mut self, text: &str) {
        let stdin = self.stdin.as_mut().expect("an open input");
        let _ = stdin.write_all(text.as_bytes()).and_then(|()| stdin.flush());
    }

    pub fn has_ended(&mut self) -> bool {
        self.running.0.try_wait().expect("a child").is_some()
    }

    /// Presses Ctrl-C and waits for it to end, its input still open.
    pub fn interrupted(mut self) -> Done {
        signal("INT", self.running.0.id());
        let stdin = self.stdin.take();
        let done = self.done();
        drop(stdin);
        done
    }

    pub fn kill(&mut self) {
        self.running.kill();
    }

    /// Closes its input and waits for it to end.
    pub fn done(mut self) -> Done {
        drop(self.stdin.take());
        let status = self.running.wait();
        Done {
            code: status.code(),
            stdout: self.stdout.join().expect("an output"),
            stderr: self.stderr.join().expect("an output"),
        }
    }
}

/// The default port may be in use, for example by a demo in another terminal, so test servers use any free port.
fn refuse_default_port<A: AsRef<OsStr>>(arguments: &[A]) {
    let has = |word: &str| arguments.iter().any(|argument| argument.as_ref() == word);
    let is_server = has("serve") || (has("demo") && !has("clear"));
    assert!(!is_server || has("--listen"), "a test must pass --listen 127.0.0.1:0 to serve and demo");
}

/// A finished command.
#[derive(Debug)]
pub struct Done {
    /// `None` if it was ended by a signal.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Done {
    /// Asserts exit code 0 and an empty standard error.
    pub fn succeeded(self) -> Done {
        assert_eq!((self.code, self.stderr.as_str()), (Some(0), ""), "{self:?}");
        self
    }

    /// Asserts exit code 1, one line on standard error and nothing on standard output; returns the line.
    pub fn failed(self) -> String {
        assert_eq!((self.code, self.stdout.as_str()), (Some(1), ""), "{self:?}");
        self.complaint()
    }

    /// The message of the only line on standard error, which with `--json` is an object.
    pub fn complaint(&self) -> String {
        if let Ok(error) = serde_json::from_str::<Value>(&self.stderr) {
            let message = error["error"]["message"].as_str().unwrap_or_else(|| panic!("no message: {self:?}"));
            assert_eq!(error, json!({"error": {"message": message}}), "{self:?}");
            return message.to_owned();
        }
        let line = self.stderr.strip_prefix("error: ").and_then(|line| line.strip_suffix('\n'));
        let line = line.unwrap_or_else(|| panic!("not one line that says error: {self:?}"));
        assert!(!line.contains('\n'), "{self:?}");
        line.to_owned()
    }

    /// Standard output as one JSON document.
    pub fn document(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// A running server, killed on drop.
#[derive(Debug)]
pub struct Server {
    running: Running,
    address: Option<SocketAddr>,
    scheme: String,
    lines: Receiver<String>,
    log: Arc<Mutex<String>>,
    logging: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts it without waiting until it listens.
    pub fn spawn(data: &Path, variables: &[(&str, &str)]) -> Server {
        Server::spawn_on(data, "127.0.0.1:0", variables)
    }

    pub fn spawn_on(data: &Path, listen: &str, variables: &[(&str, &str)]) -> Server {
        Server::spawn_as("serve", data, listen, variables)
    }

    /// Starts `serve` or `demo`, which may have flags after it.
    pub fn spawn_as(command: &str, data: &Path, listen: &str, variables: &[(&str, &str)]) -> Server {
        let mut binary = binary(data, variables);
        binary.args(command.split(' ')).args(["--listen", listen]).stdout(Stdio::piped()).stderr(Stdio::piped());
        Server::spawn_command(binary)
    }

    /// Starts `serve` or `demo` in a working directory with the command's default data directory.
    pub fn spawn_in(directory: &Path, command: &str) -> Server {
        let mut binary = bare_binary();
        binary.current_dir(directory).args([command, "--listen", "127.0.0.1:0"]);
        binary.stdout(Stdio::piped()).stderr(Stdio::piped());
        Server::spawn_command(binary)
    }

    /// Starts `serve` with these outputs; only new pipes are read here.
    pub fn spawn_onto(data: &Path, stdout: Stdio, stderr: Stdio, variables: &[(&str, &str)]) -> Server {
        let mut binary = binary(data, variables);
        binary.args(["serve", "--listen", "127.0.0.1:0"]).stdout(stdout).stderr(stderr);
        Server::spawn_command(binary)
    }

    /// Starts `serve` under limits set by the shell, such as `ulimit -n 128`.
    pub fn spawn_limited(data: &Path, limits: &str, variables: &[(&str, &str)]) -> Server {
        let binary = binary(data, variables);
        let mut shell = Command::new("sh");
        for (name, value) in binary.get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        shell.arg("-c").arg(format!("{limits}; exec \"$0\" \"$@\"")).arg(binary.get_program()).args(binary.get_args());
        shell.args(["serve", "--listen", "127.0.0.1:0"]).stdout(Stdio::piped()).stderr(Stdio::piped());
        Server::spawn_command(shell)
    }

    fn spawn_command(mut binary: Command) -> Server {
        let mut child = binary.stdin(Stdio::null()).spawn().expect("a process");
        let (sender, lines) = channel();
        if let Some(stdout) = child.stdout.take() {
            thread::spawn(move || {
                for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                    let _ = sender.send(line);
                }
            });
        }
        let log = Arc::new(Mutex::new(String::new()));
        let written = Arc::clone(&log);
        let logging = child.stderr.take().map(|stderr| {
            thread::spawn(move || {
                for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                    let mut log = written.lock().expect("a log");
                    log.push_str(&line);
                    log.push('\n');
                }
            })
        });
        Server { running: Running(child), address: None, scheme: String::new(), lines, log, logging }
    }

    /// Waits for the line with its address.
    pub fn wait_until_ready(&mut self) {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => {
                let url = line.strip_prefix("listening on ").and_then(|url| url.split_once("://"));
                let (scheme, address) = url.unwrap_or_else(|| panic!("no address: {line:?}"));
                scheme.clone_into(&mut self.scheme);
                self.address = Some(address.parse().unwrap_or_else(|_| panic!("no address: {line:?}")));
            }
            Err(RecvTimeoutError::Timeout) => panic!("it does not start: {}", self.log()),
            Err(RecvTimeoutError::Disconnected) => {
                let status = self.running.wait();
                panic!("it ended ({status}): {}", self.whole_log());
            }
        }
    }

    /// Its output up to the line that contains `part`.
    pub fn lines_until(&self, part: &str) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        while !lines.last().is_some_and(|line| line.contains(part)) {
            let line = self.lines.recv_timeout(PATIENCE);
            lines.push(line.unwrap_or_else(|error| panic!("{error} after {lines:?}: {}", self.log())));
        }
        lines
    }

    pub fn address(&self) -> SocketAddr {
        self.address.expect("a server that is ready")
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.running.0.id()
    }

    /// The scheme of its address.
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// Makes it reload its configuration.
    pub fn hang_up(&self) {
        signal("HUP", self.running.0.id());
    }

    /// Its log so far.
    pub fn log(&self) -> String {
        self.log.lock().expect("a log").clone()
    }

    /// Sends SIGKILL and waits for it to end.
    pub fn kill(mut self) -> String {
        self.running.kill();
        self.whole_log()
    }

    /// Stops its threads where they are, until it is resumed.
    #[cfg(feature = "cluster")]
    pub fn pause(&self) {
        signal("STOP", self.running.0.id());
    }

    #[cfg(feature = "cluster")]
    pub fn resume(&self) {
        signal("CONT", self.running.0.id());
    }

    pub fn terminate(&self) {
        signal("TERM", self.running.0.id());
    }

    /// Stops it gracefully with exit code 0; returns the whole log.
    pub fn stop(self) -> String {
        self.terminate();
        let (code, _, log) = self.end();
        assert_eq!(code, Some(0), "{log}");
        log
    }

    /// Waits for it to end; returns the exit code, the rest of standard output and the whole log.
    pub fn end(mut self) -> (Option<i32>, Vec<String>, String) {
        let code = self.running.wait().code();
        let log = self.whole_log();
        (code, self.lines.iter().collect(), log)
    }

    /// Has it end by itself; returns the exit code, the rest of standard output and the whole log.
    #[cfg(feature = "cluster")]
    pub fn terminated(self) -> (Option<i32>, Vec<String>, String) {
        self.terminate();
        self.end()
    }

    /// Waits for it to fail; returns the only line on standard error.
    pub fn failed(self) -> String {
        let (code, stdout, stderr) = self.end();
        Done { code, stdout: stdout.concat(), stderr }.failed()
    }

    pub fn has_ended(&mut self) -> bool {
        self.running.0.try_wait().expect("a child").is_some()
    }

    fn whole_log(&mut self) -> String {
        if let Some(logging) = self.logging.take() {
            logging.join().expect("a log");
        }
        self.log()
    }
}

/// A process that does not outlive the test.
#[derive(Debug)]
struct Running(Child);

impl Running {
    fn wait(&mut self) -> ExitStatus {
        let began = Instant::now();
        loop {
            if let Some(status) = self.0.try_wait().expect("a child") {
                return status;
            }
            assert!(began.elapsed() < PATIENCE, "process {} does not end", self.0.id());
            thread::sleep(LOOK_AGAIN);
        }
    }

    fn kill(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        self.0.wait().expect("a child");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The binary with a data directory.
fn binary(data: &Path, variables: &[(&str, &str)]) -> Command {
    let mut command = bare_binary();
    command.arg("--data").arg(data).envs(variables.iter().copied());
    command
}

/// The binary without the environment variables that configure these tests or another oddsbox.
fn bare_binary() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oddsbox"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("ODDSBOX_") || name == "NOTIFY_SOCKET" || name == "WATCHDOG_USEC" {
            command.env_remove(name);
        }
    }
    command
}

fn signal(name: &str, id: u32) {
    let status = Command::new("sh").args(["-c", &format!("kill -{name} {id}")]).status().expect("a shell");
    assert!(status.success(), "kill -{name} {id}: {status}");
}

fn collect(mut output: impl Read + Send + 'static) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut text = String::new();
        output.read_to_string(&mut text).expect("a text");
        text
    })
}

/// Waits until a condition holds.
pub async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while !holds().await {
        assert!(began.elapsed() < PATIENCE, "it did not come to pass: {what}");
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// Runs blocking code without blocking the test's other tasks.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// A sandbox key limited only by its daily quota.
pub fn sandbox(per_day: u64) -> IssueKey {
    IssueKey {
        kind: "sandbox".into(),
        name: "test".into(),
        approved_by: None,
        groups: Vec::new(),
        burst_per_minute: Some(10_000_000),
        requests_per_day: FieldSetting::To(per_day),
        requests_per_month: FieldSetting::Keep,
        streams: None,
        expires_in_s: None,
        self_service: false,
    }
}

/// Issues a key.
pub async fn issue(access: &AdminAccess, new: IssueKey) -> Result<Issued, AdminError> {
    Ok(Issued::from(access.ask::<KeyAnswer>(admin::Command::KeysIssue(new)).await?))
}

pub async fn show(access: &AdminAccess, id: &str) -> KeyAnswer {
    access.ask(admin::Command::KeysShow { id: id.to_owned() }).await.expect("a key")
}

pub async fn revoke(access: &AdminAccess, id: &str) -> Result<KeyAnswer, AdminError> {
    access.ask(admin::Command::KeysRevoke { id: id.to_owned() }).await
}

/// Rotates without a grace period.
pub async fn rotate(access: &AdminAccess, id: &str) -> Result<Issued, AdminError> {
    let rotated = access.ask::<KeyAnswer>(admin::Command::KeysRotate { id: id.to_owned(), grace_s: 0 }).await?;
    Ok(Issued::from(rotated))
}

/// A key and its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issued {
    pub id: String,
    pub secret: String,
}

impl From<KeyAnswer> for Issued {
    fn from(answer: KeyAnswer) -> Self {
        Issued { id: answer.id, secret: answer.key.expect("a secret").expose().to_owned() }
    }
}

impl From<&Value> for Issued {
    fn from(answer: &Value) -> Self {
        let text = |name: &str| answer[name].as_str().unwrap_or_else(|| panic!("no {name} in {answer}")).to_owned();
        Issued { id: text("id"), secret: text("key") }
    }
}

/// A file with contents, in a temporary directory.
pub fn file_with(contents: &[u8]) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("file");
    fs::write(&path, contents).expect("a file");
    (directory, path)
}
