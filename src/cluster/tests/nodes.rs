//! Nodes on an engine in memory: whatever one of them is asked for, all of them do.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;

use super::engines::{LOG, member_options};
use super::{BEGIN, Node, START_MS, new_key};
use crate::clock::Clock;
use crate::cluster::engine::Engine;
use crate::cluster::engine::memory::MemoryEngine;
use crate::cluster::member::{Member, MemberParts};
use crate::cluster::node::Standing;
use crate::model::{EntryId, Membership, World};
use crate::writer::{Stopped, WriteError, WriterHandle, spawn};

/// Far beyond what any wait here takes, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

struct RunningNode {
    member: Arc<Member<MemoryEngine>>,
    /// For whoever asks for something.
    writer: WriterHandle,
    following: JoinHandle<()>,
    stopped: Stopped,
    file: Node,
}

impl RunningNode {
    fn start(mut file: Node, name: &str, engine: &Arc<MemoryEngine>) -> RunningNode {
        file.open(0);
        let writer = file.writer.take().unwrap();
        let membership = writer.membership().unwrap();
        let (boards, keyring) = (Arc::clone(writer.boards()), Arc::clone(writer.keyring()));
        let (writer, stopped) = spawn(writer).unwrap();
        let parts = MemberParts {
            catalogue: Arc::clone(&file.catalogue),
            writer,
            boards,
            keyring,
            clock: Clock::manual(i64::try_from(START_MS).unwrap()),
        };
        let member = Member::new(Arc::clone(engine), member_options(name), membership, parts, 1 << 40);
        let following = tokio::spawn({
            let member = Arc::clone(&member);
            async move { member.node().follow().await }
        });
        RunningNode { writer: member.writer(), member, following, stopped, file }
    }

    /// Waits until it has applied an entry.
    async fn reached(&self, id: EntryId) {
        let mut applied = self.member.node().applied();
        let reached = applied.wait_for(|applied| *applied >= id);
        tokio::time::timeout(PATIENCE, reached).await.unwrap().unwrap();
    }

    /// Waits until it stands so.
    async fn stands(&self, expected: &Standing) {
        let mut standing = self.member.node().standing();
        let stands = standing.wait_for(|standing| standing == expected);
        tokio::time::timeout(PATIENCE, stands).await.unwrap().unwrap();
    }

    async fn stop(self) -> Node {
        let RunningNode { member, writer, following, stopped, file } = self;
        following.abort();
        let _ = following.await;
        drop((writer, member));
        tokio::task::spawn_blocking(|| stopped.join()).await.unwrap().unwrap();
        file
    }
}

/// Three nodes on the same file at the beginning of a new log.
async fn start(engine: &Arc<MemoryEngine>) -> Vec<RunningNode> {
    let begin = engine.create(LOG).await.unwrap().unwrap();
    let mut first = Node::new();
    let membership = Membership { applied: begin, fence: 0, ..BEGIN };
    first.writer().set_membership(Some(membership)).unwrap();
    let files = [Node::copy(&mut first), Node::copy(&mut first), first];
    files.into_iter().zip(["a", "b", "c"]).map(|(file, name)| RunningNode::start(file, name, engine)).collect()
}

async fn all_reached(nodes: &[RunningNode], engine: &MemoryEngine) {
    for node in nodes {
        node.reached(engine.last()).await;
    }
}

/// An engine, and its clock.
fn engine() -> (Arc<MemoryEngine>, Clock) {
    let clock = Clock::manual(i64::try_from(START_MS).unwrap());
    (Arc::new(MemoryEngine::new(clock.clone())), clock)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_node_is_asked_for_all_do() {
    let (engine, _clock) = engine();
    let nodes = start(&engine).await;
    let issued = nodes[0].writer.issue_key(new_key(), "ada").await.unwrap();
    let id = issued.key.id().clone();
    // Another node may not have applied the issue yet, and does the revocation after it nevertheless.
    let revoked = nodes[1].writer.revoke_key(id.as_str(), "bob").await.unwrap();
    assert!(revoked.record().revoked.is_some());
    let refused = nodes[2].writer.rotate_token("nobody", 0, "eve").await;
    assert!(refused.unwrap_err().to_string().contains("nobody"));
    let lines = [
        r#"{"type":"event","sport":"tennis","id":"e1","competition":"Open","commence_time":"2026-11-20T10:00:00Z","home":"A","away":"B","status":"scheduled"}"#,
        r#"{"type":"odds","sport":"tennis","event":"e1","bookmaker":"one","market":"moneyline","last_update":"2026-11-14T12:00:00Z","format":"decimal","outcomes":[{"name":"A","price":1.5,"point":null},{"name":"B","price":2.7,"point":null}]}"#,
    ];
    let catalogue = Arc::clone(&nodes[0].file.catalogue);
    let news =
        || lines.iter().map(|line| crate::ingest::wire::read(line.as_bytes(), &catalogue).unwrap().news).collect();
    let ingests = nodes.iter().map(|node| node.writer.ingest(World::Live, news(), true));
    let reports: Vec<_> = futures_join(ingests).await;
    assert_eq!(reports.iter().map(|report| report.changed).sum::<u64>(), 2, "the others repeat it: {reports:?}");
    nodes[2].writer.publish_now(World::Live).await.unwrap();
    all_reached(&nodes, &engine).await;
    let mut shown = Vec::new();
    for node in nodes {
        let mut file = node.stop().await;
        file.open(0);
        shown.push(file.shown().await);
    }
    assert!(shown[0].iter().any(|line| line.contains("live tennis published") && line.contains("moneyline")));
    assert!(shown.iter().all(|one| *one == shown[0]), "{shown:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn revocation_does_not_wait_for_what_was_entered_after_it() {
    let (engine, clock) = engine();
    let nodes = start(&engine).await;
    // Since the engine has the log, every lease of before has ended.
    clock.advance(Duration::from_secs(60));
    let issued = nodes[0].writer.issue_key(new_key(), "ada").await.unwrap();
    nodes[0].writer.revoke_key(issued.key.id().as_str(), "ada").await.unwrap();
    all_reached(&nodes, &engine).await;
    let settled = |node: usize| tokio::time::timeout(PATIENCE, nodes[node].member.lease().settled());
    // The first report of a node gets no lease yet.
    for node in [1, 2, 1, 2] {
        assert!(settled(node).await.unwrap().unwrap().is_empty());
    }
    nodes[2].writer.publish_now(World::Live).await.unwrap();
    assert!(engine.look(LOG).await.unwrap().nodes.iter().any(|node| node.lease_ms > 0 && node.applied < engine.last()));
    assert!(settled(0).await.expect("the others have reported the revocation").unwrap().is_empty());
    for node in nodes {
        node.stop().await;
    }
}

/// Waits for all, one after the other.
async fn futures_join<T>(all: impl Iterator<Item = impl Future<Output = Result<T, WriteError>>>) -> Vec<T> {
    let mut done = Vec::new();
    for one in all {
        done.push(one.await.unwrap());
    }
    done
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn node_that_was_cut_off_catches_up_by_itself() {
    let (engine, _clock) = engine();
    let nodes = start(&engine).await;
    engine.set_unreachable(true);
    let refused = nodes[0].writer.issue_key(new_key(), "ada").await.unwrap_err();
    assert!(refused.to_string().contains("may have been done"), "{refused}");
    for node in &nodes {
        node.stands(&Standing::CutOff).await;
    }
    engine.set_unreachable(false);
    nodes[0].writer.issue_key(new_key(), "ada").await.unwrap();
    all_reached(&nodes, &engine).await;
    for node in &nodes {
        node.stands(&Standing::Following).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn node_goes_no_further_when_the_engine_has_lost_what_it_applied() {
    let (engine, _clock) = engine();
    let nodes = start(&engine).await;
    nodes[0].writer.issue_key(new_key(), "ada").await.unwrap();
    all_reached(&nodes, &engine).await;
    engine.lose(1);
    for node in &nodes {
        node.stands(&Standing::Lost).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn node_that_applied_another_entry_than_the_log_has_goes_no_further() {
    let (engine, clock) = engine();
    let mut nodes = start(&engine).await;
    nodes[0].writer.issue_key(new_key(), "ada").await.unwrap();
    all_reached(&nodes, &engine).await;
    let file = nodes.pop().unwrap().stop().await;
    let behind = nodes.pop().unwrap();
    // The engine comes back without the entry, and goes on before this node is there again.
    behind.following.abort();
    engine.lose(1);
    let other = crate::cluster::entry::encode(
        crate::writer::operation::MarkSimulated { who: "eve".into() }.into(),
        &behind.file.catalogue,
    );
    let entry = crate::cluster::engine::NewEntry { node: "x", number: 1, fence: None, bytes: &other.unwrap() };
    clock.advance(Duration::from_secs(1));
    engine.append(LOG, entry).await.unwrap();
    let node = RunningNode::start(file, "c", &engine);
    node.stands(&Standing::Lost).await;
}
