//! Redis or Valkey as the engine. Everything that must be decided at once is a script.
//!
//! | key, after the name of the cluster | |
//! |---|---|
//! | `:cluster` | the identity of the log, its last entry, the last that was removed, the last fence, the settings of the nodes, which server has it since when |
//! | `:log` | a stream with the entries |
//! | `:nodes`, `:leases` | what each node reported last, and when its lease ends |
//! | `:duty` | who polls and publishes; gone when its lease ends |
//! | `:burst:KEY`, `:day:KEY:DAY:RESETS`, `:month:KEY:MONTH:RESETS` | what all nodes, and each of them, have of a limit |
//! | `:resets` | how often what a key has used was reset |
//! | `:restated` | for each node, the last restart of the server after which it has reported its shares of limits |
//! | `:streams:NODE` | how many streams of each key are open on a node |
//! | `:asked`, `:copy:NAME` | copies of a file that nodes which join have asked for, and the pieces of each that are on their way |
//! | `:recalls`, `:recalled` | a stream with recalls, and which of them each node has answered |

mod link;
mod replies;

use std::time::Duration;

use redis::streams::StreamReadReply;
use redis::{
    Client, ClientTlsConfig, Cmd, ConnectionAddr, FromRedisValue, IntoConnectionInfo, RedisError, Script,
    ScriptInvocation, TlsCertificates,
};

use self::link::Link;
use self::replies::{
    SHARE_NUMBERS, ViewFields, identity_text, limits_text, need_arguments, read_entry, read_id, read_identity,
    read_limits, read_share, unexpected,
};
use super::{ClusterView, CopyRelay, Engine, EngineError, EngineOptions, Heartbeat, LogEntry, LogIdentity, NewEntry};
use crate::cluster::millis;
use crate::keys::{KeyId, KeyNeed, KeyShare, LimitSet, Recall, Unused};
use crate::model::EntryId;

/// How long an answer may take that the server does not wait with.
const ANSWER: Duration = Duration::from_secs(2);
/// So many recalls are kept: a node that is further behind has given nothing back for long.
const RECALLS_KEPT: usize = 10_000;
/// The most keys in one call that reports the shares of a node.
const RESTATED_AT_ONCE: usize = 500;
/// How long a copy counts as asked for, unless it is asked for again.
const ASKED_FOR: Duration = Duration::from_secs(5);
/// How long pieces of a copy are kept that nobody takes.
const COPY_KEPT: Duration = Duration::from_secs(60);

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
    trim: Script,
    beat: Script,
    leave: Script,
    duty: Script,
    drop_duty: Script,
    share: Script,
    give_back: Script,
    reset_usage: Script,
    streams: Script,
    recalled: Script,
    ask: Script,
}

impl RedisEngine {
    /// The engine that is reached so. It is not asked for anything yet.
    pub fn connect(options: &EngineOptions) -> Result<Self, EngineError> {
        let invalid = |error: RedisError| EngineError::Refused(error.to_string().into());
        let info = (&*options.url).into_connection_info().map_err(invalid)?;
        let mut settings = info.redis_settings().clone();
        if let Some(user) = &options.user {
            settings = settings.set_username(user);
        }
        if let Some(password) = &options.password {
            settings = settings.set_password(password);
        }
        let info = info.set_redis_settings(settings);
        let client = if matches!(info.addr(), ConnectionAddr::TcpTls { .. }) {
            let client_tls = options.client.as_ref().map(|client| ClientTlsConfig {
                client_cert: client.certificate.clone(),
                client_key: client.key.clone(),
            });
            Client::build_with_tls(info, TlsCertificates { client_tls, root_cert: options.ca.clone() })
        } else {
            Client::open(info)
        };
        Ok(RedisEngine::new(client.map_err(invalid)?, &options.name))
    }

    /// An engine for the cluster of a name. It is not asked for anything yet.
    pub fn new(client: Client, name: &str) -> Self {
        RedisEngine {
            client,
            name: name.to_owned(),
            scripts: Scripts {
                create: Script::new(include_str!("create.lua")),
                append: Script::new(include_str!("append.lua")),
                trim: Script::new(include_str!("trim.lua")),
                beat: Script::new(include_str!("beat.lua")),
                leave: Script::new(include_str!("leave.lua")),
                duty: Script::new(include_str!("duty.lua")),
                drop_duty: Script::new(include_str!("drop_duty.lua")),
                share: Script::new(include_str!("share.lua")),
                give_back: Script::new(include_str!("give_back.lua")),
                reset_usage: Script::new(include_str!("reset_usage.lua")),
                streams: Script::new(include_str!("streams.lua")),
                recalled: Script::new(include_str!("recalled.lua")),
                ask: Script::new(include_str!("ask.lua")),
            },
            calls: Link::default(),
            entries: Link::default(),
            recalls: Link::default(),
        }
    }

    /// How its server is set up in ways that cost data. None if it does not say.
    pub async fn shortcomings(&self) -> Result<Vec<&'static str>, EngineError> {
        let mut info = String::new();
        for section in ["memory", "persistence"] {
            let asked = redis::cmd("INFO").arg(section).to_owned();
            info += &self.query::<String>(&self.calls, &asked, ANSWER).await?;
        }
        Ok(replies::shortcomings(&info))
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

    async fn begin(&self, log: LogIdentity, in_place_of: String) -> Result<Option<EntryId>, EngineError> {
        let mut call = self.script(&self.scripts.create);
        let begun: Option<String> = self.invoke(call.arg(identity_text(log)).arg(in_place_of)).await?;
        begun.map(|id| read_id(&id)).transpose()
    }

    async fn call_share(
        &self,
        log: LogIdentity,
        node: &str,
        restates: &str,
        needs: &[(KeyId, KeyNeed)],
    ) -> Result<Vec<i64>, EngineError> {
        let mut call = self.script(&self.scripts.share);
        call.arg(identity_text(log)).arg(node).arg(restates);
        for (key, need) in needs {
            call.arg(key.as_str()).arg(need_arguments(need));
        }
        self.invoke(&call).await
    }

    async fn view(&self, call: &ScriptInvocation<'_>) -> Result<ClusterView, EngineError> {
        let view: String = self.invoke(call).await?;
        let view: ViewFields = serde_json::from_str(&view).map_err(unexpected)?;
        view.view()
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
        self.begin(log, String::new()).await
    }

    async fn create_anew(&self, lost: LogIdentity, log: LogIdentity) -> Result<Option<EntryId>, EngineError> {
        self.begin(log, identity_text(lost)).await
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

    async fn trim(&self, log: LogIdentity, keep: Duration, bytes_max: u64) -> Result<(), EngineError> {
        let mut call = self.script(&self.scripts.trim);
        let _: bool = self.invoke(call.arg(identity_text(log)).arg(millis(keep)).arg(bytes_max)).await?;
        Ok(())
    }

    async fn beat(&self, log: LogIdentity, beat: Heartbeat<'_>) -> Result<ClusterView, EngineError> {
        let mut call = self.script(&self.scripts.beat);
        call.arg(identity_text(log)).arg(beat.node).arg(beat.applied.ms).arg(beat.applied.number);
        call.arg(beat.details).arg(millis(beat.lease)).arg(format!("{:016x}", beat.file)).arg(beat.settings);
        self.view(&call).await
    }

    async fn look(&self, log: LogIdentity) -> Result<ClusterView, EngineError> {
        let mut call = self.script(&self.scripts.beat);
        call.arg(identity_text(log)).arg("").arg(0).arg(0).arg("").arg(0).arg("").arg("");
        self.view(&call).await
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
        let numbers = self.call_share(log, node, "", needs).await?;
        if numbers.len() != needs.len() * SHARE_NUMBERS {
            return Err(unexpected("another number of shares"));
        }
        needs.iter().zip(numbers.chunks(SHARE_NUMBERS)).map(|((_, need), numbers)| read_share(need, numbers)).collect()
    }

    async fn restate(
        &self,
        log: LogIdentity,
        node: &str,
        holdings: &[(KeyId, KeyNeed)],
        since_ms: u64,
    ) -> Result<(), EngineError> {
        let mut batches = holdings.chunks(RESTATED_AT_ONCE).peekable();
        while let Some(batch) = batches.next_if(|batch| batch.len() == RESTATED_AT_ONCE) {
            // All but the last one do not say that this is all.
            self.call_share(log, node, "0", batch).await?;
        }
        let rest = batches.next().unwrap_or_default();
        self.call_share(log, node, &since_ms.to_string(), rest).await.map(|_| ())
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

    async fn put_streams(
        &self,
        log: LogIdentity,
        node: &str,
        key: &KeyId,
        open: u32,
        streams_max: u32,
    ) -> Result<bool, EngineError> {
        let mut call = self.script(&self.scripts.streams);
        self.invoke(call.arg(identity_text(log)).arg(node).arg(key.as_str()).arg(open).arg(streams_max)).await
    }

    async fn end_streams(&self, node: &str) -> Result<(), EngineError> {
        let end = redis::cmd("DEL").arg(self.key(&format!("streams:{node}"))).to_owned();
        let _: u64 = self.query(&self.calls, &end, ANSWER).await?;
        Ok(())
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

impl CopyRelay for RedisEngine {
    async fn ask_for_copy(&self, copy: &str) -> Result<(), EngineError> {
        let mut ask = self.script(&self.scripts.ask);
        let _: Option<String> = self.invoke(ask.arg(copy).arg(millis(ASKED_FOR))).await?;
        Ok(())
    }

    async fn withdraw_ask(&self, copy: &str) -> Result<(), EngineError> {
        let withdraw = redis::cmd("ZREM").arg(self.key("asked")).arg(copy).to_owned();
        let _: u64 = self.query(&self.calls, &withdraw, ANSWER).await?;
        Ok(())
    }

    async fn next_asked(&self) -> Result<Option<String>, EngineError> {
        let mut next = self.script(&self.scripts.ask);
        self.invoke(next.arg("").arg(millis(ASKED_FOR))).await
    }

    async fn put_piece(&self, copy: &str, piece: &[u8]) -> Result<usize, EngineError> {
        let key = self.key(&format!("copy:{copy}"));
        let push = redis::cmd("RPUSH").arg(&key).arg(piece).to_owned();
        let expire = redis::cmd("PEXPIRE").arg(&key).arg(millis(COPY_KEPT)).to_owned();
        let waiting = self.query(&self.calls, &push, ANSWER).await?;
        let _: bool = self.query(&self.calls, &expire, ANSWER).await?;
        Ok(waiting)
    }

    async fn pieces_waiting(&self, copy: &str) -> Result<usize, EngineError> {
        let waiting = redis::cmd("LLEN").arg(self.key(&format!("copy:{copy}"))).to_owned();
        self.query(&self.calls, &waiting, ANSWER).await
    }

    async fn take_piece(&self, copy: &str, wait: Duration) -> Result<Option<Vec<u8>>, EngineError> {
        let mut take = redis::cmd("BLPOP");
        // To wait for zero seconds is to wait for ever.
        take.arg(self.key(&format!("copy:{copy}"))).arg(wait.as_secs_f64().max(0.01));
        let taken: Option<(String, Vec<u8>)> = self.query(&self.entries, &take, wait + ANSWER).await?;
        Ok(taken.map(|(_, piece)| piece))
    }

    async fn drop_pieces(&self, copy: &str) -> Result<(), EngineError> {
        let drop = redis::cmd("DEL").arg(self.key(&format!("copy:{copy}"))).to_owned();
        let _: u64 = self.query(&self.calls, &drop, ANSWER).await?;
        Ok(())
    }
}
