//! Keys as people read them.

use super::super::output::{Output, or_dash, pairs};
use crate::admin::KeyAnswer;

/// A secret, this once, and a line that tries it out.
pub(super) fn secret(output: Output, done: &str, key: &KeyAnswer, base: &str) -> String {
    let secret = key.key.as_ref().map_or("", |secret| secret.expose());
    let grace = match &key.old_secret_until {
        Some(until) => format!("The old secret works until {until}.\n\n"),
        None => String::new(),
    };
    format!(
        "{done} {id} ({kind}, {name}).\n\n    {shown}\n\n{warning}\n\n{grace}Try it:\n\n    curl -H 'X-API-Key: {secret}' {base}/v1/sports\n",
        id = key.id,
        kind = key.kind,
        name = key.name,
        shown = output.bold(secret),
        warning = output.bold("Store it now: it is not shown again."),
    )
}

pub(super) fn list(output: Output, keys: &[KeyAnswer]) -> String {
    let header = ["ID", "KIND", "NAME", "STATUS", "KEY", "TODAY", "MONTH", "LAST USED", "EXPIRES", "GROUPS"];
    let row = |key: &KeyAnswer| {
        vec![
            key.id.clone(),
            key.kind.clone(),
            key.name.clone(),
            key.status.clone(),
            key.hint.clone(),
            used(key.used_today, key.limits.requests_per_day),
            used(key.used_this_month, key.limits.requests_per_month),
            or_dash(key.last_used.as_ref()),
            or_dash(key.expires.as_ref()),
            groups(key),
        ]
    };
    output.table(&header, &keys.iter().map(row).collect::<Vec<_>>())
}

/// `12/10000`, or `12` where there is no limit.
fn used(used: u64, limit: Option<u64>) -> String {
    limit.map_or_else(|| used.to_string(), |limit| format!("{used}/{limit}"))
}

fn groups(key: &KeyAnswer) -> String {
    if key.groups.is_empty() { "all".to_owned() } else { key.groups.join(",") }
}

pub(super) fn key(key: &KeyAnswer) -> String {
    pairs(&[
        ("id", key.id.clone()),
        ("kind", key.kind.clone()),
        ("name", key.name.clone()),
        ("status", key.status.clone()),
        ("key", key.hint.clone()),
        ("scope", key.scope.clone()),
        ("groups", groups(key)),
        ("a minute", key.limits.burst_per_minute.to_string()),
        ("today", used(key.used_today, key.limits.requests_per_day)),
        ("this month", used(key.used_this_month, key.limits.requests_per_month)),
        ("last used", or_dash(key.last_used.as_ref())),
        ("created", key.created.clone()),
        ("expires", or_dash(key.expires.as_ref())),
        ("revoked", or_dash(key.revoked.as_ref())),
        ("approved by", or_dash(key.approved_by.as_ref())),
        ("old secret until", or_dash(key.old_secret_until.as_ref())),
    ])
}
