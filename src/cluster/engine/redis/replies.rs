//! The arguments of the scripts, and their replies.

use redis::streams::StreamId;
use serde::Deserialize;

use super::super::{ClusterView, DutyHolder, EngineError, LogEntry, LogIdentity, NodeView};
use crate::keys::{BurstNeed, BurstShare, KeyNeed, KeyShare, LimitSet, QuotaNeed, QuotaShare};
use crate::model::EntryId;

#[derive(Debug, Deserialize)]
pub(super) struct ViewFields {
    now: u64,
    since: u64,
    last: String,
    trimmed: String,
    duty: Option<String>,
    #[serde(default)]
    nodes: Vec<NodeFields>,
}

#[derive(Debug, Deserialize)]
struct NodeFields {
    node: Box<str>,
    applied: String,
    behind: u64,
    details: Box<str>,
    ends: u64,
    #[serde(default)]
    left: bool,
    // Its file concerns the script alone.
}

impl ViewFields {
    pub(super) fn view(self) -> Result<ClusterView, EngineError> {
        let ViewFields { now, since, last, trimmed, duty, nodes } = self;
        let node = |fields: NodeFields| {
            let NodeFields { node, applied, behind, details, ends, left } = fields;
            let (applied, lease_ms) = (read_id(&applied)?, ends.saturating_sub(now));
            Ok(NodeView { node, applied, behind_ms: behind, details, lease_ms, has_left: left })
        };
        let mut nodes: Vec<NodeView> = nodes.into_iter().map(node).collect::<Result<_, EngineError>>()?;
        nodes.sort_by(|one, other| one.node.cmp(&other.node));
        let duty = duty.map(|held| {
            let (node, fence) = held.rsplit_once(' ').ok_or_else(|| unexpected(&held))?;
            Ok(DutyHolder { node: node.into(), fence: fence.parse().map_err(unexpected)? })
        });
        let (last, trimmed) = (read_id(&last)?, read_id(&trimmed)?);
        Ok(ClusterView { now_ms: now, since_ms: since, last, trimmed, nodes, duty: duty.transpose()? })
    }
}

/// What a server's own report says that costs data.
pub(super) fn shortcomings(info: &str) -> Vec<&'static str> {
    let has = |field: &str| info.lines().any(|line| line.trim_end() == field);
    let says = |name: &str| info.contains(name);
    let mut all = Vec::new();
    if says("maxmemory_policy:") && !has("maxmemory_policy:noeviction") && !has("maxmemory:0") {
        all.push(
            "the engine evicts keys when it is full, and loses what the nodes share: set maxmemory-policy noeviction",
        );
    }
    if has("aof_enabled:0") {
        all.push("the engine does not keep what it acknowledges when it is restarted: set appendonly yes, appendfsync always");
    }
    all
}

/// So many numbers answer for a key.
pub(super) const SHARE_NUMBERS: usize = 14;

/// The arguments of a need: resets; window or period, what the node has, wanted, limit and stored, for each of three limits.
pub(super) fn need_arguments(need: &KeyNeed) -> Vec<i64> {
    let none = [0, 0, 0, -1, 0];
    let quota = |need: QuotaNeed| {
        let [own, wanted, limit, stored] = [need.own, need.wanted, need.limit, need.stored].map(u64::cast_signed);
        [need.period.into(), own, wanted, limit, stored]
    };
    let burst =
        |need: BurstNeed| [need.window.cast_signed(), need.own.into(), need.wanted.into(), need.limit.into(), 0];
    let limits = [need.burst.map_or(none, burst), need.day.map_or(none, quota), need.month.map_or(none, quota)];
    std::iter::once(need.resets.cast_signed()).chain(limits.into_iter().flatten()).collect()
}

/// The shares of a key, for each limit of which it needed more.
pub(super) fn read_share(need: &KeyNeed, numbers: &[i64]) -> Result<KeyShare, EngineError> {
    let &[resets, window, elapsed, b_before, b_after, b_total, ref quotas @ ..] = numbers else {
        return Err(unexpected("no share"));
    };
    let &[day, d_before, d_after, d_total, month, m_before, m_after, m_total] = quotas else {
        return Err(unexpected("a share of another length"));
    };
    let quota = |period: i64, before: i64, after: i64, total| {
        let period = u32::try_from(period).map_err(unexpected)?;
        Ok::<_, EngineError>(QuotaShare { period, before: whole(before)?, after: whole(after)?, total })
    };
    let burst = || {
        Ok::<_, EngineError>(BurstShare {
            window: whole(window)?,
            elapsed_ms: whole(elapsed)?,
            before: u32::try_from(b_before).map_err(unexpected)?,
            after: u32::try_from(b_after).map_err(unexpected)?,
            total: b_total,
        })
    };
    Ok(KeyShare {
        resets: whole(resets)?,
        burst: need.burst.map(|_| burst()).transpose()?,
        day: need.day.map(|_| quota(day, d_before, d_after, d_total)).transpose()?,
        month: need.month.map(|_| quota(month, m_before, m_after, m_total)).transpose()?,
    })
}

fn whole(number: i64) -> Result<u64, EngineError> {
    u64::try_from(number).map_err(unexpected)
}

pub(super) fn read_entry(entry: &StreamId) -> Result<LogEntry, EngineError> {
    let text = |name: &str| entry.get::<String>(name).ok_or_else(|| unexpected(format!("an entry without {name}")));
    let fence = text("fence")?;
    Ok(LogEntry {
        id: read_id(&entry.id)?,
        previous: read_id(&text("after")?)?,
        node: text("node")?.into(),
        number: text("number")?.parse().map_err(unexpected)?,
        fence: if fence.is_empty() { None } else { Some(fence.parse().map_err(unexpected)?) },
        bytes: entry.get("entry").ok_or_else(|| unexpected("an entry without its content"))?,
    })
}

pub(super) fn read_id(text: &str) -> Result<EntryId, EngineError> {
    EntryId::parse(text).ok_or_else(|| unexpected(format!("{text:?} for the id of an entry")))
}

pub(super) fn identity_text(LogIdentity { cluster, epoch }: LogIdentity) -> String {
    format!("{cluster:016x}-{epoch}")
}

pub(super) fn read_identity(text: &str) -> Result<LogIdentity, EngineError> {
    let parts = text.split_once('-').and_then(|(cluster, epoch)| {
        Some(LogIdentity { cluster: u64::from_str_radix(cluster, 16).ok()?, epoch: epoch.parse().ok()? })
    });
    parts.ok_or_else(|| unexpected(format!("{text:?} for the identity of a log")))
}

/// Which limits a recall is about.
pub(super) fn limits_text(limits: LimitSet) -> String {
    let names = [(limits.burst, "burst"), (limits.day, "day"), (limits.month, "month")];
    names.iter().filter(|(is_in, _)| *is_in).map(|(_, name)| *name).collect::<Vec<_>>().join(" ")
}

pub(super) fn read_limits(text: &str) -> LimitSet {
    let is_in = |name: &str| text.split(' ').any(|word| word == name);
    LimitSet { burst: is_in("burst"), day: is_in("day"), month: is_in("month") }
}

/// For an answer that none of these scripts gives.
pub(super) fn unexpected(answer: impl ToString) -> EngineError {
    EngineError::Refused(format!("an answer that was not expected: {}", answer.to_string()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_that_evicts_or_forgets_is_noticed() {
        let good = "maxmemory:1000\r\nmaxmemory_policy:noeviction\r\naof_enabled:1\r\n";
        assert!(shortcomings(good).is_empty());
        assert!(shortcomings("").is_empty(), "one that says nothing");
        assert!(shortcomings("maxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\n").is_empty(), "one that is never full");
        assert_eq!(shortcomings("maxmemory:9\r\nmaxmemory_policy:allkeys-lru\r\naof_enabled:0\r\n").len(), 2);
    }
}
