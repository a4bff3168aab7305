//! Parsers of flag values.

use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::admin::FieldSetting;
use crate::model::{OddsFormat, Region, Regions, Timestamp, World};

/// `30m`, `24h`, `90d`: a number of seconds.
pub(super) fn seconds(text: &str) -> Result<u32, String> {
    let duration =
        humantime::parse_duration(text).map_err(|_| "takes a duration such as 30m, 24h or 90d".to_owned())?;
    if duration.subsec_nanos() > 0 {
        return Err("takes whole seconds".to_owned());
    }
    u32::try_from(duration.as_secs()).map_err(|_| "is too long: 100 years at most".to_owned())
}

/// A number of seconds above zero.
pub(super) fn some_seconds(text: &str) -> Result<u32, String> {
    seconds(text).and_then(|seconds| if seconds == 0 { Err("takes 1s or more".to_owned()) } else { Ok(seconds) })
}

/// A number of requests, or `none`.
pub(super) fn quota(text: &str) -> Result<FieldSetting<u64>, String> {
    if text == "none" {
        return Ok(FieldSetting::Remove);
    }
    match text.parse() {
        Ok(number) if number > 0 => Ok(FieldSetting::To(number)),
        _ => Err("takes a whole number of 1 or more, or none".to_owned()),
    }
}

/// A time from now, or `never`.
pub(super) fn expiry(text: &str) -> Result<FieldSetting<u32>, String> {
    match text {
        "never" => Ok(FieldSetting::Remove),
        _ => some_seconds(text).map(FieldSetting::To).map_err(|message| format!("{message}, or never")),
    }
}

/// The beginning of a period that ends now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Since {
    /// A number of seconds before now.
    Ago(u32),
    At(Timestamp),
}

impl Since {
    pub(super) fn timestamp(self, now: Timestamp) -> Timestamp {
        match self {
            Since::Ago(seconds) => Timestamp::from_unix(now.unix().saturating_sub(seconds)),
            Since::At(time) => time,
        }
    }
}

/// `2h`, `2026-11-14` or `2026-11-14T18:00:00Z`.
pub(super) fn since(text: &str) -> Result<Since, String> {
    if let Ok(seconds) = seconds(text) {
        return Ok(Since::Ago(seconds));
    }
    let time = if text.contains(['T', 't', ' ']) { text.to_owned() } else { format!("{text}T00:00:00Z") };
    let time = time.parse::<jiff::Timestamp>().ok().and_then(|time| Timestamp::checked_from_unix(time.as_second()));
    time.map(Since::At).ok_or_else(|| {
        "takes a duration such as 2h, a date such as 2026-11-14, or a time such as 2026-11-14T18:00:00Z".to_owned()
    })
}

/// A list of sport groups; empty for `none`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Groups(pub(super) Vec<String>);

/// `combat,tennis`, or `none`.
pub(super) fn groups(text: &str) -> Result<Groups, String> {
    if text == "none" {
        return Ok(Groups::default());
    }
    let groups: Vec<String> = text.split(',').map(|group| group.trim().to_owned()).collect();
    if groups.iter().any(String::is_empty) {
        return Err("takes groups separated by commas, or none".to_owned());
    }
    Ok(Groups(groups))
}

/// `us,uk`.
pub(super) fn regions(text: &str) -> Result<Regions, String> {
    let regions: Option<Regions> = text.split(',').map(|region| Region::parse(region.trim())).collect();
    regions.ok_or_else(|| "takes us, us2, us_dfs, us_ex, uk, eu, fr, se, au, separated by commas".to_owned())
}

pub(super) fn odds_format(text: &str) -> Result<OddsFormat, String> {
    OddsFormat::parse(text).ok_or_else(|| "takes american, decimal or fractional".to_owned())
}

/// A sport's key, of the catalogue or of The Odds API. Whether the sport exists is checked later, against the
/// catalogue.
pub(super) fn sport(text: &str) -> Result<String, String> {
    let is_clean = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if is_clean { Ok(text.to_owned()) } else { Err("takes a sport's key, such as mma".to_owned()) }
}

/// A world by its name. The help lists the names, and shells complete them.
pub(super) fn world() -> impl TypedValueParser<Value = World> {
    let names = World::ALL.map(World::name);
    PossibleValuesParser::new(names).try_map(|name| World::parse(&name).ok_or("takes live or sandbox"))
}

/// Formats a duration as `1h 30m`.
pub(super) fn shown_seconds(seconds: u64) -> String {
    humantime::format_duration(Duration::from_secs(seconds)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed_with_units() {
        assert_eq!(seconds("90d"), Ok(90 * 86_400));
        assert_eq!(seconds("1h 30m"), Ok(5400));
        assert_eq!(seconds("0s"), Ok(0));
        for wrong in ["", "30", "soon", "-1h", "1ms", "1000000d"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
        assert!(some_seconds("0s").is_err());
    }

    #[test]
    fn limits_and_expiries_can_be_removed() {
        assert_eq!(quota("none"), Ok(FieldSetting::Remove));
        assert_eq!(quota("5000"), Ok(FieldSetting::To(5000)));
        assert!(quota("0").is_err() && quota("-1").is_err() && quota("many").is_err());
        assert_eq!(expiry("never"), Ok(FieldSetting::Remove));
        assert_eq!(expiry("1d"), Ok(FieldSetting::To(86_400)));
        assert!(expiry("0s").is_err() && expiry("none").is_err());
    }

    #[test]
    fn since_is_a_duration_a_date_or_a_time() {
        let at = |seconds| Ok(Since::At(Timestamp::from_unix(seconds)));
        assert_eq!(since("2h"), Ok(Since::Ago(7200)));
        assert_eq!(since("2026-11-14"), at(1_794_614_400));
        assert_eq!(since("2026-11-14T23:39:00Z"), at(1_794_699_540));
        assert_eq!(since("2026-11-15T01:39:00+02:00"), at(1_794_699_540));
        for wrong in ["", "yesterday", "2026-13-01", "2026-11-14T23:39:00", "1960-01-01"] {
            assert!(since(wrong).is_err(), "{wrong}");
        }
        let now = Timestamp::from_unix(1_794_699_540);
        assert_eq!(Since::Ago(540).timestamp(now), Timestamp::from_unix(1_794_699_000));
        assert_eq!(Since::Ago(u32::MAX).timestamp(now), Timestamp::from_unix(0));
    }

    #[test]
    fn groups_are_separated_by_commas() {
        assert_eq!(groups("combat, golf"), Ok(Groups(vec!["combat".into(), "golf".into()])));
        assert_eq!(groups("none"), Ok(Groups::default()));
        assert!(groups("").is_err() && groups("combat,").is_err());
    }
}
