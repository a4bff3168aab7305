//! Redis or Valkey as the engine. Everything that must be decided at once is a script.
//!
//! | key, after the name of the cluster | |
//! |---|---|
//! | `:cluster` | the identity of the log, its last entry, the last fence, which server has it since when |
//! | `:log` | a stream with the entries |
//! | `:nodes`, `:leases` | what each node reported last, and when its lease ends |
//! | `:duty` | who polls and publishes; gone when its lease ends |
//! | `:burst:KEY`, `:day:KEY:DAY:RESETS`, `:month:KEY:MONTH:RESETS` | what all nodes, and each of them, have of a limit |
//! | `:resets` | how often what a key has used was reset |
//! | `:recalls`, `:recalled` | a stream with recalls, and which of them each node has answered |

mod link;
mod replies;

use std::time::Duration;

use redis::streams::StreamReadReply;
use redis::{Client, Cmd, FromRedisValue, Script, ScriptInvocation};

use self::link::Link;
use self::replies::{
    SHARE_NUMBERS, ViewFields, identity_text, limits_text, need_arguments, read_entry, read_id, read_identity,
    read_limits, read_share, unexpected,
};
use super::{ClusterView, Engine, EngineError, Heartbeat, LogEntry, LogIdentity, NewEntry};
use crate::cluster::millis;
use crate::keys::{KeyId, KeyNeed, KeyShare, LimitSet, Recall, Unused};
use crate::model::EntryId;

/// How long an answer may take that the server does not wait with.
const ANSWER: Duration = Duration::from_secs(2);
/// So many recalls are kept: a node that is further behind has given nothing back for long.
const RECALLS_KEPT: usize = 10_000;

/// See the module.
#[derive(Debug)]
pub struct RedisEngine {
    client: Client,
    name: String,
    scripts: Scripts,
    calls: Link,
    /// A reading that waits holds up everything else on its connection.
    entries: Link,
    recalls: Link,
}

#[derive(Debug)]
struct Scripts {
    create: Script,
    append: Script,
    beat: Script,
    leave: Script,
    duty: Script,
    drop_duty: Script,
    share: Script,
    give_back: Script,
    reset_usage: Script,
    recalled: Script,
}

impl RedisEngine {
    /// An engine for the cluster of a name. It is not asked for anything yet.
    pub fn new(client: Client, name: &str) -> Self {
        RedisEngine {
            client,
            name: name.to_owned(),
            scripts: Scripts {
                create: Script::new(include_str!("create.lua")),
                append: Script::new(include_str!("append.lua")),
                beat: Script::new(include_str!("beat.lua")),
                leave: Script::new(include_str!("leave.lua")),
                duty: Script::new(include_str!("duty.lua")),
                drop_duty: Script::new(include_str!("drop_duty.lua")),
                share: Script::new(include_str!("share.lua")),
                give_back: Script::new(include_str!("give_back.lua")),
                reset_usage: Script::new(include_str!("reset_usage.lua")),
                recalled: Script::new(include_str!("recalled.lua")),
            },
            calls: Link::default(),
            entries: Link::default(),
            recalls: Link::default(),
        }
    }

    fn key(&self, suffix: &str) -> String {
        format!("{}:{suffix}", self.name)
    }

    /// A script, with the name of the cluster.
    fn script<'s>(&self, script: &'s Script) -> ScriptInvocation<'s> {
        script.key(&self.name)
    }

    async fn invoke<T: FromRedisValue>(&self, script: &ScriptInvocation<'_>) -> Result<T, EngineError> {
        let mut connection = self.calls.connection(&self.client, ANSWER).await?;
        let answer = script.invoke_async(&mut connection).await;
        self.calls.checked(answer).await
    }

    async fn query<T: FromRedisValue>(&self, link: &Link, command: &Cmd, answer: Duration) -> Result<T, EngineError> {
        let mut connection = link.connection(&self.client, answer).await?;
        let answer = command.query_async(&mut connection).await;
        link.checked(answer).await
    }

    /// Reads a stream; waits if there is nothing after an entry.
    async fn read_stream(
        &self,
        (link, stream): (&Link, &str),
        after: EntryId,
        count: usize,
        wait: Duration,
    ) -> Result<impl Iterator<Item = redis::streams::StreamId>, EngineError> {
        let mut read = redis::cmd("XREAD");
        // To wait for zero milliseconds is to wait for ever.
        read.arg("COUNT").arg(count).arg("BLOCK").arg(millis(wait).max(1));
        read.arg("STREAMS").arg(self.key(stream)).arg(after.to_string());
        let reply: Option<StreamReadReply> = self.query(link, &read, wait + ANSWER).await?;
        Ok(reply.into_iter().flat_map(|reply| reply.keys).flat_map(|stream| stream.ids))
    }
}

impl Engine for RedisEngine {
    async fn create(&self, log: LogIdentity) -> Result<Option<EntryId>, EngineError> {
        let mut call = self.script(&self.scripts.create);
        let begun: Option<String> = self.invoke(call.arg(identity_text(log))).await?;
        begun.map(|id| read_id(&id)).transpose()
    }

    async fn identity(&self) -> Result<Option<LogIdentity>, EngineError> {
        let asked = redis::cmd("HGET").arg(self.key("cluster")).arg("log").to_owned();
        let text: Option<String> = self.query(&self.calls, &asked, ANSWER).await?;
        text.map(|text| read_identity(&text)).transpose()
    }

    async fn append(&self, log: LogIdentity, entry: NewEntry<'_>) -> Result<EntryId, EngineError> {
        let mut call = self.script(&self.scripts.append);
        call.arg(identity_text(log)).arg(entry.node).arg(entry.number);
        call.arg(entry.fence.map_or_else(String::new, |fence| fence.to_string())).arg(entry.bytes);
        let id: String = self.invoke(&call).await?;
        read_id(&id)
    }

    async fn read(&self, after: EntryId, count: usize, wait: Duration) -> Result<Vec<LogEntry>, EngineError> {
        let entries = self.read_stream((&self.entries, "log"), after, count, wait).await?;
        entries.map(|entry| read_entry(&entry)).collect()
    }

    async fn beat(&self, log: LogIdentity, beat: Heartbeat<'_>) -> Result<ClusterView, EngineError> {
        let mut call = self.script(&self.scripts.beat);
        call.arg(identity_text(log)).arg(beat.node).arg(beat.applied.ms).arg(beat.applied.number);
        let view: String = self.invoke(call.arg(beat.details).arg(millis(beat.lease))).await?;
        let view: ViewFields = serde_json::from_str(&view).map_err(unexpected)?;
        view.view()
    }

    async fn hold_duty(&self, log: LogIdentity, node: &str, lease: Duration) -> Result<Option<u64>, EngineError> {
        let mut call = self.script(&self.scripts.duty);
        self.invoke(call.arg(identity_text(log)).arg(node).arg(millis(lease))).await
    }

    async fn drop_duty(&self, node: &str) -> Result<(), EngineError> {
        let _: bool = self.invoke(self.script(&self.scripts.drop_duty).arg(node)).await?;
        Ok(())
    }

    async fn end_lease(&self, node: &str, is_forgotten: bool) -> Result<bool, EngineError> {
        let mut call = self.script(&self.scripts.leave);
        let changed: u64 = self.invoke(call.arg(node).arg(u8::from(is_forgotten))).await?;
        Ok(changed > 0)
    }

    async fn share(
        &self,
        log: LogIdentity,
        node: &str,
        needs: &[(KeyId, KeyNeed)],
    ) -> Result<Vec<KeyShare>, EngineError> {
        let mut call = self.script(&self.scripts.share);
        call.arg(identity_text(log)).arg(node);
        for (key, need) in needs {
            call.arg(key.as_str()).arg(need_arguments(need));
        }
        let numbers: Vec<i64> = self.invoke(&call).await?;
        if numbers.len() != needs.len() * SHARE_NUMBERS {
            return Err(unexpected("another number of shares"));
        }
        needs.iter().zip(numbers.chunks(SHARE_NUMBERS)).map(|((_, need), numbers)| read_share(need, numbers)).collect()
    }

    async fn give_back(
        &self,
        log: LogIdentity,
        node: &str,
        unused: &[(KeyId, Unused)],
        answered: Option<EntryId>,
    ) -> Result<(), EngineError> {
        let mut call = self.script(&self.scripts.give_back);
        call.arg(identity_text(log)).arg(node).arg(answered.map_or_else(String::new, |id| id.to_string()));
        for (key, Unused { resets, burst, day, month }) in unused {
            call.arg(key.as_str())
                .arg(*resets)
                .arg(burst.0)
                .arg(burst.1)
                .arg(day.0)
                .arg(day.1)
                .arg(month.0)
                .arg(month.1);
        }
        let _: bool = self.invoke(&call).await?;
        Ok(())
    }

    async fn reset_usage(&self, log: LogIdentity, key: &KeyId) -> Result<EntryId, EngineError> {
        let mut call = self.script(&self.scripts.reset_usage);
        let id: String = self
            .invoke(call.arg(identity_text(log)).arg(key.as_str()).arg(RECALLS_KEPT).arg(limits_text(LimitSet::QUOTAS)))
            .await?;
        read_id(&id)
    }

    async fn recall(&self, key: &KeyId, limits: LimitSet) -> Result<EntryId, EngineError> {
        let mut add = redis::cmd("XADD");
        add.arg(self.key("recalls")).arg("MAXLEN").arg("~").arg(RECALLS_KEPT).arg("*");
        add.arg("key").arg(key.as_str()).arg("limits").arg(limits_text(limits));
        let id: String = self.query(&self.calls, &add, ANSWER).await?;
        read_id(&id)
    }

    async fn is_recalled(&self, but: Option<&str>, recall: EntryId) -> Result<bool, EngineError> {
        let mut call = self.script(&self.scripts.recalled);
        self.invoke(call.arg(but.unwrap_or_default()).arg(recall.ms).arg(recall.number)).await
    }

    async fn last_recall(&self) -> Result<EntryId, EngineError> {
        let last = redis::cmd("XREVRANGE").arg(self.key("recalls")).arg("+").arg("-").arg("COUNT").arg(1).to_owned();
        let reply: redis::streams::StreamRangeReply = self.query(&self.calls, &last, ANSWER).await?;
        reply.ids.first().map_or(Ok(EntryId::default()), |recall| read_id(&recall.id))
    }

    async fn recalls(&self, after: EntryId, wait: Duration) -> Result<Vec<Recall>, EngineError> {
        let recalls = self.read_stream((&self.recalls, "recalls"), after, RECALLS_KEPT, wait).await?;
        let recall = |entry: redis::streams::StreamId| {
            let key = entry.get::<String>("key").and_then(|key| KeyId::new(&key));
            let key = key.ok_or_else(|| unexpected("a recall without its key"))?;
            let limits = read_limits(&entry.get::<String>("limits").unwrap_or_default());
            Ok(Recall { id: read_id(&entry.id)?, key, limits, is_reset: entry.contains_key("reset") })
        };
        recalls.map(recall).collect()
    }
}
