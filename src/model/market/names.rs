//! The two names of a market: the service's own key and the one in The Odds API. They differ in five families.

use super::super::sport::SportKind;

/// Families that have another name in The Odds API. `total_rounds` is the name of `totals` in a fight.
const RENAMED: [(&str, &str); 6] = [
    ("moneyline", "h2h"),
    ("spread", "spreads"),
    ("total_points", "totals"),
    ("total_rounds", "totals"),
    ("team_total_points", "team_totals"),
    ("outright", "outrights"),
];

pub(super) const ALTERNATE: &str = "alternate_";

/// The key in The Odds API, if it differs.
pub(super) fn to_v4(key: &str) -> Option<String> {
    renamed(key, RENAMED.into_iter())
}

/// The service's own key for events of a kind, if it differs from the one in The Odds API.
pub(super) fn from_v4(key: &str, kind: SportKind) -> Option<String> {
    let suits = |(own, _): &(&str, &str)| match *own {
        "total_points" => kind != SportKind::Fight,
        "total_rounds" => kind == SportKind::Fight,
        _ => true,
    };
    renamed(key, RENAMED.into_iter().filter(suits).map(|(own, v4)| (v4, own)))
}

/// Whether events of a kind can have a market: points and rounds exclude each other.
pub(super) fn is_of(key: &str, kind: SportKind) -> bool {
    let family = key.strip_prefix(ALTERNATE).unwrap_or(key);
    match kind {
        SportKind::Fight => after_family(family, "total_points").is_none(),
        _ => after_family(family, "total_rounds").is_none(),
    }
}

fn renamed<'n>(key: &str, names: impl Iterator<Item = (&'n str, &'n str)>) -> Option<String> {
    let (prefix, family) = match key.strip_prefix(ALTERNATE) {
        Some(family) => (ALTERNATE, family),
        None => ("", key),
    };
    let mut names = names;
    names.find_map(|(from, to)| after_family(family, from).map(|rest| [prefix, to, rest].concat()))
}

/// What follows the family in a key: nothing, or further words.
fn after_family<'k>(key: &'k str, family: &str) -> Option<&'k str> {
    key.strip_prefix(family).filter(|rest| rest.is_empty() || rest.starts_with('_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_renamed_in_any_key() {
        for (own, v4) in [
            ("moneyline", "h2h"),
            ("moneyline_3_way_q1", "h2h_3_way_q1"),
            ("alternate_spread_h1", "alternate_spreads_h1"),
            ("alternate_team_total_points_q1", "alternate_team_totals_q1"),
            ("total_points_1st_5_innings", "totals_1st_5_innings"),
            ("outright_lay", "outrights_lay"),
        ] {
            assert_eq!(to_v4(own).as_deref(), Some(v4));
            assert_eq!(from_v4(v4, SportKind::HeadToHead).as_deref(), Some(own));
        }
        for key in ["player_points", "btts_h1", "top5", "spreading", "moneylines"] {
            assert_eq!(to_v4(key), None, "{key}");
            assert_eq!(from_v4(key, SportKind::HeadToHead), None, "{key}");
        }
    }

    #[test]
    fn totals_are_rounds_in_a_fight() {
        assert_eq!(from_v4("totals", SportKind::Fight).as_deref(), Some("total_rounds"));
        assert_eq!(from_v4("alternate_totals", SportKind::Fight).as_deref(), Some("alternate_total_rounds"));
        assert_eq!(from_v4("totals", SportKind::Tournament).as_deref(), Some("total_points"));
        assert!(is_of("total_rounds", SportKind::Fight) && !is_of("total_rounds", SportKind::HeadToHead));
        assert!(is_of("alternate_total_points_q1", SportKind::HeadToHead));
        assert!(!is_of("alternate_total_points", SportKind::Fight) && is_of("moneyline", SportKind::Fight));
    }
}
