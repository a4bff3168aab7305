//! Odds records and closed marks.

use super::NumberNames;
use crate::model::{Closed, OddsFormat, Outcome, OutcomeName, Point, Price, Record, Timestamp};
use crate::store::codec::{Flaw, OddsRow, OutcomeRow, PointsRow, QuotedRow};
use crate::store::id_maps::NamesByNumber;

impl OddsRow {
    pub(in crate::store) fn of(record: &Record, names: &mut impl NumberNames) -> Self {
        let outcome = |outcome: &Outcome| {
            let (profit, stake) = outcome.price.fraction();
            OutcomeRow { name: names.number(outcome.name.as_stored()), profit, stake }
        };
        OddsRow {
            outcomes: record.outcomes.iter().map(outcome).collect(),
            last_update: record.last_update.unix().to_le_bytes(),
            quoted: QuotedRow::of(&record.outcomes),
            points: PointsRow::of(&record.outcomes),
            bookmaker_later_s: seconds(record.effective_bookmaker_update()) - seconds(record.last_update),
        }
    }

    /// What stays of a record that closed.
    pub(in crate::store) fn closed(closed: Closed) -> Self {
        OddsRow {
            outcomes: Vec::new(),
            last_update: closed.at.unix().to_le_bytes(),
            quoted: QuotedRow::American,
            points: PointsRow::None,
            bookmaker_later_s: 0,
        }
    }

    pub(in crate::store) fn last_update(&self) -> Timestamp {
        Timestamp::from_unix(u32::from_le_bytes(self.last_update))
    }

    pub(in crate::store) fn bookmaker_update(&self) -> Result<Option<Timestamp>, Flaw> {
        if self.bookmaker_later_s == 0 {
            return Ok(None);
        }
        let at = seconds(self.last_update()).checked_add(self.bookmaker_later_s).and_then(Timestamp::checked_from_unix);
        at.map(Some).ok_or(Flaw::Invalid("its bookmaker's time is invalid"))
    }

    pub(in crate::store) fn outcomes(&self, names: &NamesByNumber) -> Result<Box<[Outcome]>, Flaw> {
        if self.outcomes.len() > Record::OUTCOMES_MAX {
            return Err(Flaw::Invalid("it has too many outcomes"));
        }
        // Collecting results would allocate for a guessed size, and then move everything to fit.
        let mut outcomes = Vec::with_capacity(self.outcomes.len());
        for (at, row) in self.outcomes.iter().enumerate() {
            outcomes.push(self.outcome(at, row, names)?);
        }
        Ok(outcomes.into_boxed_slice())
    }

    fn outcome(&self, at: usize, row: &OutcomeRow, names: &NamesByNumber) -> Result<Outcome, Flaw> {
        let quoted = self.quoted.at(at)?;
        let price = Price::from_fraction(row.profit.into(), row.stake.into(), quoted);
        Ok(Outcome {
            name: OutcomeName::from_stored(names.get(row.name)?),
            price: price.map_err(|_| Flaw::Invalid("one of its prices is invalid"))?,
            point: self.points.at(at)?,
        })
    }
}

fn seconds(at: Timestamp) -> i64 {
    i64::from(at.unix())
}

impl QuotedRow {
    fn of(outcomes: &[Outcome]) -> Self {
        let Some(first) = outcomes.first().map(|outcome| outcome.price.quoted()) else { return QuotedRow::American };
        if outcomes.iter().any(|outcome| outcome.price.quoted() != first) {
            return QuotedRow::Each(outcomes.iter().map(|outcome| outcome.price.quoted() as u8).collect());
        }
        match first {
            OddsFormat::American => QuotedRow::American,
            OddsFormat::Decimal => QuotedRow::Decimal,
            OddsFormat::Fractional => QuotedRow::Fractional,
        }
    }

    fn at(&self, at: usize) -> Result<OddsFormat, Flaw> {
        match self {
            QuotedRow::American => Ok(OddsFormat::American),
            QuotedRow::Decimal => Ok(OddsFormat::Decimal),
            QuotedRow::Fractional => Ok(OddsFormat::Fractional),
            QuotedRow::Each(formats) => formats
                .get(at)
                .and_then(|format| OddsFormat::ALL.get(usize::from(*format)).copied())
                .ok_or(Flaw::Invalid("the format of a price is unknown")),
        }
    }
}

impl PointsRow {
    fn of(outcomes: &[Outcome]) -> Self {
        let points = || outcomes.iter().map(|outcome| outcome.point.map(Point::milli));
        if points().all(|point| point.is_none()) {
            return PointsRow::None;
        }
        match points().collect::<Option<Vec<i32>>>() {
            Some(all) => PointsRow::All(all),
            None => PointsRow::Some(points().collect()),
        }
    }

    fn at(&self, at: usize) -> Result<Option<Point>, Flaw> {
        let milli = match self {
            PointsRow::None => return Ok(None),
            PointsRow::All(points) => points.get(at).copied().map(Some),
            PointsRow::Some(points) => points.get(at).copied(),
        };
        match milli.ok_or(Flaw::Invalid("a point is missing"))? {
            Some(milli) => Point::from_milli(milli).map(Some).ok_or(Flaw::Invalid("one of its points is invalid")),
            None => Ok(None),
        }
    }
}
