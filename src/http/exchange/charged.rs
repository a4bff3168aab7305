//! What a request is charged: one unit, and more for a long answer. It is refunded unless it is kept.

use crate::clock::Moment;
use crate::keys::{Charge, PaidCharge, Refusal, Standing, UNITS_MAX};

/// How many rows of history an answer has for each unit of its cost.
const ROWS_OF_UNIT: usize = 500;

/// One for each 500 begun, and one for an answer without any. The longest lists of `/v4` have about 40,000 rows: beyond what
/// one lease pays for, more rows cost no more.
pub(super) fn units_of(rows: usize) -> u64 {
    (rows.div_ceil(ROWS_OF_UNIT) as u64).clamp(1, UNITS_MAX)
}

/// A charge that is refunded if handling panics.
#[derive(Debug)]
pub(super) struct Charged<'m> {
    charge: Option<Charge<'m>>,
    pub(super) standing: Standing,
}

impl<'m> Charged<'m> {
    pub(super) fn new(charge: Charge<'m>) -> Self {
        Charged { standing: *charge.standing(), charge: Some(charge) }
    }

    pub(super) fn units(&self) -> u64 {
        self.charge.as_ref().map_or(0, Charge::units)
    }

    /// Charges for the length of an answer.
    pub(super) fn add_rows(&mut self, rows: usize, now: Moment) -> Result<(), Refusal> {
        let more = units_of(rows) - 1;
        let Some(charge) = self.charge.as_mut().filter(|_| more > 0) else { return Ok(()) };
        charge.add(more, now)?;
        self.standing = *charge.standing();
        Ok(())
    }

    /// Charges for the call of a tool, which was charged for the minute only. One that has waited was charged before.
    pub(super) fn count_call(&mut self, now: Moment) -> Result<(), Refusal> {
        let Some(charge) = self.charge.as_mut().filter(|charge| charge.units() == 0) else { return Ok(()) };
        charge.add(1, now)?;
        self.standing = *charge.standing();
        Ok(())
    }

    /// Makes the charge final.
    pub(super) fn keep(mut self) -> Standing {
        self.charge = None;
        self.standing
    }

    pub(super) fn detach(mut self) -> Option<PaidCharge> {
        self.charge.take().map(Charge::detach)
    }

    pub(super) fn refund(mut self) -> Standing {
        self.charge.take().map_or(self.standing, Charge::refund)
    }
}

impl Drop for Charged<'_> {
    fn drop(&mut self) {
        if std::thread::panicking()
            && let Some(charge) = self.charge.take()
        {
            charge.refund();
        }
    }
}
