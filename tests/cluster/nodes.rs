//! Nodes in processes of their own, each with its own way to the engine.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::engine::RedisServer;
use super::network::Link;
use crate::harness::Answer;
use crate::process::client::get;
use crate::process::command::{Directory, Done, Issued, Server, until};

/// Short, so that tests need not wait for long until it has ended.
pub const LEASE: Duration = Duration::from_secs(3);

/// A node, whose process may run.
#[derive(Debug)]
pub struct Node {
    pub name: &'static str,
    pub directory: Directory,
    pub link: Link,
    variables: Vec<(&'static str, String)>,
    server: Option<Server>,
}

impl Node {
    /// A node that does not run, with further variables.
    pub fn new(engine: &RedisServer, name: &'static str, further: &[(&'static str, &str)]) -> Node {
        let link = Link::to(engine.port());
        let mut variables = vec![
            ("ODDSBOX_CLUSTER_URL", format!("redis://{}", link.address())),
            ("ODDSBOX_CLUSTER_NODE", name.to_owned()),
            ("ODDSBOX_CLUSTER_LEASE", "3s".to_owned()),
            ("ODDSBOX_REFRESH", "1s".to_owned()),
            ("ODDSBOX_LOG", "info,access=warn".to_owned()),
        ];
        variables.extend(further.iter().map(|(name, value)| (*name, (*value).to_owned())));
        Node { name, directory: Directory::new(), link, variables, server: None }
    }

    fn variables(&self) -> Vec<(&str, &str)> {
        // The last of a name counts.
        self.variables.iter().map(|(name, value)| (*name, value.as_str())).collect()
    }

    /// Runs a command to its end.
    pub fn run(&self, line: &str) -> Done {
        self.directory.run_with(&self.variables(), line)
    }

    pub fn json(&self, line: &str) -> Value {
        self.run(&format!("{line} --json")).succeeded().document()
    }

    /// Starts it, and waits until it serves.
    pub fn serve(&mut self) -> &Server {
        self.server = Some(self.directory.serve_with(&self.variables()));
        self.server()
    }

    /// Starts it without waiting.
    pub fn spawn(&mut self) -> &mut Server {
        self.server = Some(self.directory.spawn_with(&self.variables()));
        self.server.as_mut().expect("a server")
    }

    /// Starts it, and waits for it to fail; returns the last line that it has written.
    pub fn refused(&self) -> String {
        let (code, _, log) = self.directory.spawn_with(&self.variables()).end();
        assert_eq!(code, Some(1), "{log}");
        log.lines().last().unwrap_or_default().to_owned()
    }

    pub fn is_running(&self) -> bool {
        self.server.is_some()
    }

    pub fn server(&self) -> &Server {
        self.server.as_ref().expect("a node that runs")
    }

    pub fn wait_until_ready(&mut self) {
        self.server.as_mut().expect("a node that runs").wait_until_ready();
    }

    pub fn kill(&mut self) -> String {
        self.server.take().expect("a node that runs").kill()
    }

    pub fn stop(&mut self) -> String {
        self.server.take().expect("a node that runs").stop()
    }

    /// Takes its process.
    pub fn take(&mut self) -> Server {
        self.server.take().expect("a node that runs")
    }

    pub fn address(&self) -> SocketAddr {
        self.server().address()
    }

    pub async fn get(&self, path: &str, key: &Issued) -> Answer {
        get(self.address(), path, &key.secret).await
    }

    /// Issues a sandbox key with flags.
    pub fn issue(&self, flags: &str) -> Issued {
        let flags = format!("keys issue --sandbox --name test {flags}");
        Issued::from(&self.json(flags.trim_end()))
    }

    /// Its cluster as it sees it.
    pub fn cluster(&self) -> Value {
        self.json("cluster")
    }

    pub fn standing(&self) -> String {
        self.cluster()["standing"].as_str().expect("a standing").to_owned()
    }
}

/// An engine and the nodes `a`, `b` and `c`, which serve.
pub struct Cluster {
    pub engine: RedisServer,
    pub nodes: Vec<Node>,
}

impl Cluster {
    /// `None` if there is no Redis server on this machine.
    pub fn start(test: &str) -> Option<Cluster> {
        Cluster::start_with(test, &[])
    }

    pub fn start_with(test: &str, further: &[(&'static str, &str)]) -> Option<Cluster> {
        let engine = RedisServer::start(test)?;
        let mut nodes = ["a", "b", "c"].map(|name| Node::new(&engine, name, further));
        nodes[0].run("cluster init").succeeded();
        for node in &mut nodes {
            node.spawn();
        }
        for node in &mut nodes {
            node.wait_until_ready();
        }
        Some(Cluster { engine, nodes: nodes.into() })
    }

    pub fn node(&mut self, name: &str) -> &mut Node {
        self.nodes.iter_mut().find(|node| node.name == name).expect("a node of that name")
    }

    /// The name of the node that polls and publishes, if there is one.
    pub fn on_duty(&self) -> Option<String> {
        let running = self.nodes.iter().find(|node| node.server.is_some()).expect("a node that runs");
        let cluster = running.cluster();
        let nodes = cluster["nodes"].as_array().expect("nodes");
        nodes.iter().find(|node| node["on_duty"] == true).map(|node| node["name"].as_str().expect("a name").to_owned())
    }

    /// Waits until a path is answered alike by every node, and returns that answer.
    pub async fn same(&self, path: &str, key: &Issued) -> Answer {
        let mut same = None;
        until("all nodes answer alike", async || {
            let mut answers = Vec::new();
            for node in &self.nodes {
                answers.push(node.get(path, key).await);
            }
            let part =
                |answer: &Answer| (answer.status, answer.header("etag").map(str::to_owned), answer.text().to_owned());
            let is_same = answers.iter().all(|answer| part(answer) == part(&answers[0]));
            same = is_same.then(|| answers.remove(0));
            is_same && same.as_ref().is_some_and(|answer| answer.status == 200)
        })
        .await;
        same.expect("an answer")
    }
}

/// Waits until a node answers with a status; returns how long it took.
pub async fn answers(node: &Node, path: &str, key: &Issued, status: u16) -> Duration {
    let began = Instant::now();
    until(&format!("{} answers {status}", node.name), async || node.get(path, key).await.status == status).await;
    began.elapsed()
}
