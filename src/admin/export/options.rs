//! What is to be exported, and the query parameters of `/export` that say so.

use super::super::protocol::Failure;
use super::history::HistoryRange;
use crate::model::{Timestamp, World};

/// What is to be exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportOptions {
    World(World),
    History(HistoryRange),
}

impl ExportOptions {
    pub(in crate::admin) fn parse(query: &str) -> Result<Self, Failure> {
        let (mut is_history, mut range) = (false, HistoryRange { world: World::Live, from: None, to: None });
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let takes = |what: &str| Failure::bad_request(format!("{name} takes {what}"));
            let time = || value.parse().map(Timestamp::from_unix).map_err(|_| takes("seconds since 1970"));
            match name {
                "world" => range.world = World::parse(value).ok_or_else(|| takes("live or sandbox"))?,
                "history" => is_history = value.parse().map_err(|_| takes("true or false"))?,
                "from" => range.from = Some(time()?),
                "to" => range.to = Some(time()?),
                _ => return Err(Failure::bad_request("export takes world, history, from and to")),
            }
        }
        if !is_history && (range.from.is_some() || range.to.is_some()) {
            return Err(Failure::bad_request("from and to are for history=true only"));
        }
        Ok(if is_history { ExportOptions::History(range) } else { ExportOptions::World(range.world) })
    }

    /// The path of an export with its query.
    pub(in crate::admin) fn target(self) -> String {
        match self {
            ExportOptions::World(world) => format!("/export?world={}", world.name()),
            ExportOptions::History(HistoryRange { world, from, to }) => {
                let mut target = format!("/export?world={}&history=true", world.name());
                for (name, time) in [("from", from), ("to", to)] {
                    target.extend(time.map(|time| format!("&{name}={}", time.unix())));
                }
                target
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_sent_and_read() {
        let time = |unix| Some(Timestamp::from_unix(unix));
        let history = |from, to| ExportOptions::History(HistoryRange { world: World::Sandbox, from, to });
        for options in [
            ExportOptions::World(World::Live),
            ExportOptions::World(World::Sandbox),
            history(None, None),
            history(time(1), None),
            history(time(1), time(2)),
        ] {
            let target = options.target();
            let (_, query) = target.split_once('?').unwrap();
            assert_eq!(ExportOptions::parse(query).unwrap(), options);
        }
        assert_eq!(ExportOptions::parse("").unwrap(), ExportOptions::World(World::Live));
        for wrong in ["world=mars", "history=1", "from=1", "history=true&from=now", "wrold=live"] {
            assert!(ExportOptions::parse(wrong).is_err(), "{wrong}");
        }
    }
}
