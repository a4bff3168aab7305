//! Which outcomes of a market belong together, and how many of them win.

use super::super::odds::{Outcome, Point};

/// How the outcomes of a market relate to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MarketShape {
    /// Named sides, perhaps with a draw.
    Ways,
    /// Two sides with opposite handicaps.
    Spread,
    /// Over and Under with the same line.
    OverUnder,
    /// Over alone.
    OverOnly,
    /// Yes and No.
    YesNo,
    /// Many names.
    Field,
}

impl MarketShape {
    pub const fn key(self) -> &'static str {
        match self {
            MarketShape::Ways => "ways",
            MarketShape::Spread => "spread",
            MarketShape::OverUnder => "over_under",
            MarketShape::OverOnly => "over_only",
            MarketShape::YesNo => "yes_no",
            MarketShape::Field => "field",
        }
    }
}

/// What the catalogue says of a market.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarketTraits {
    pub shape: MarketShape,
    pub settlement: Settlement,
}

/// How a market's outcomes settle: they form groups of size `group` (`None` for groups by shape), and `winners` of each
/// group win.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settlement {
    pub group: Option<usize>,
    pub winners: usize,
}

impl Settlement {
    pub const ONE_WINNER: Settlement = Settlement { group: None, winners: 1 };
}

/// Outcomes of a record that settle together, by their positions. A group of one has no opposite side.
pub type OutcomeGroup = Vec<usize>;

/// Groups the outcomes of a record so that each group is one bet with all of its sides. Outcomes of different
/// descriptions or lines are never in the same group. The groups are in the order of their first outcomes.
pub fn groups(traits: MarketTraits, outcomes: &[Outcome]) -> Vec<OutcomeGroup> {
    if let Some(size) = traits.settlement.group.filter(|size| *size > 0) {
        let positions: Vec<usize> = (0..outcomes.len()).collect();
        return positions.chunks(size).map(<[usize]>::to_vec).collect();
    }
    let mut groups: Vec<OutcomeGroup> = Vec::new();
    for (at, outcome) in outcomes.iter().enumerate() {
        let fits = |group: &&mut OutcomeGroup| belongs(traits.shape, outcomes, group, outcome);
        match groups.iter_mut().find(fits) {
            Some(group) => group.push(at),
            None => groups.push(vec![at]),
        }
    }
    groups
}

/// Whether an outcome is a further side of a group.
fn belongs(shape: MarketShape, outcomes: &[Outcome], group: &OutcomeGroup, outcome: &Outcome) -> bool {
    let members = || group.iter().map(|at| &outcomes[*at]);
    let Some(first) = members().next() else { return true };
    if first.name.description() != outcome.name.description() || members().any(|member| member.name == outcome.name) {
        return false;
    }
    let milli = |outcome: &Outcome| outcome.point.map(Point::milli);
    match shape {
        MarketShape::OverOnly => false,
        MarketShape::OverUnder | MarketShape::YesNo => group.len() < 2 && first.point == outcome.point,
        MarketShape::Spread => group.len() < 2 && milli(first).map(|point| -point) == milli(outcome),
        MarketShape::Ways | MarketShape::Field => first.point == outcome.point,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{OutcomeName, Point, Price};

    fn outcome(name: &str, description: Option<&str>, point: Option<&str>) -> Outcome {
        let price = Price::from_american(-110).unwrap();
        Outcome {
            name: OutcomeName::new(name, description),
            price,
            point: point.map(|text| Point::parse(text).unwrap()),
        }
    }

    fn grouped(shape: MarketShape, outcomes: &[Outcome]) -> Vec<OutcomeGroup> {
        groups(MarketTraits { shape, settlement: Settlement::ONE_WINNER }, outcomes)
    }

    #[test]
    fn lines_of_an_alternate_market_are_separate_groups() {
        let totals = [("Over", "40.5"), ("Over", "41.5"), ("Under", "40.5"), ("Under", "42.5")];
        let totals = totals.map(|(name, point)| outcome(name, None, Some(point)));
        assert_eq!(grouped(MarketShape::OverUnder, &totals), [vec![0, 2], vec![1], vec![3]]);
        let spreads = [("A", "-3.5"), ("B", "3.5"), ("A", "-4.5"), ("B", "5.5"), ("B", "-3.5"), ("A", "3.5")];
        let spreads = spreads.map(|(name, point)| outcome(name, None, Some(point)));
        assert_eq!(grouped(MarketShape::Spread, &spreads), [vec![0, 1], vec![2], vec![3], vec![4, 5]]);
    }

    #[test]
    fn players_and_teams_are_separate_groups() {
        let props = [("Over", "A"), ("Under", "A"), ("Over", "B"), ("Under", "B")];
        let props = props.map(|(name, player)| outcome(name, Some(player), Some("20.5")));
        assert_eq!(grouped(MarketShape::OverUnder, &props), [[0, 1], [2, 3]]);
        assert_eq!(grouped(MarketShape::OverOnly, &props[..1]), [[0]]);
        let scorers = [("Yes", "A"), ("Yes", "B"), ("No", "A")].map(|(name, player)| outcome(name, Some(player), None));
        assert_eq!(grouped(MarketShape::YesNo, &scorers), [vec![0, 2], vec![1]]);
    }

    #[test]
    fn ways_and_fields_are_one_group() {
        let sides = ["Home", "Draw", "Away"].map(|name| outcome(name, None, None));
        assert_eq!(grouped(MarketShape::Ways, &sides), [[0, 1, 2]]);
        let pairs = ["A", "B", "C", "D"].map(|name| outcome(name, None, None));
        let settlement = Settlement { group: Some(2), winners: 1 };
        assert_eq!(groups(MarketTraits { shape: MarketShape::Ways, settlement }, &pairs), [[0, 1], [2, 3]]);
    }
}
