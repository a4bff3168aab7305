//! What a request was charged, until it is answered.

use super::burst::Window;
use super::quota::PeriodCount;
use super::{Meter, Refusal, Standing, UNITS_MAX};
use crate::clock::Moment;

/// A request that has been charged.
#[derive(Debug)]
pub struct Charge<'m> {
    meter: &'m Meter,
    pub(super) paid: PaidCharge,
}

/// A charge that is kept while its request waits.
#[derive(Debug)]
pub struct PaidCharge {
    /// What it takes of the day and of the month.
    pub(super) units: u64,
    pub(super) window: Window,
    pub(super) day: PeriodCount,
    pub(super) month: PeriodCount,
    pub(super) standing: Standing,
}

impl PaidCharge {
    /// The charge again, of the meter that it was taken from.
    pub fn attach(self, meter: &Meter) -> Charge<'_> {
        Charge { meter, paid: self }
    }
}

impl Charge<'_> {
    /// The key's standing after this request.
    pub fn standing(&self) -> &Standing {
        &self.paid.standing
    }

    pub fn units(&self) -> u64 {
        self.paid.units
    }

    /// The charge without its meter, for a request that has to wait. Dropping it does not refund it.
    pub fn detach(self) -> PaidCharge {
        self.paid
    }

    /// Takes more units of the day and of the month, all of them or none. At most [`UNITS_MAX`] in all, so that one lease
    /// is enough.
    pub fn add(&mut self, units: u64, now: Moment) -> Result<(), Refusal> {
        let paid = &mut self.paid;
        debug_assert!(paid.units + units <= UNITS_MAX);
        let dates = self.meter.dates(now);
        (paid.day, paid.month) = self.meter.take_quotas(&dates, units)?;
        paid.units += units;
        self.meter.recorder.count(units);
        let Meter { day, month, .. } = self.meter;
        paid.standing.day = day.standing(paid.day, dates.until_day_ends(paid.day.period()));
        paid.standing.month = month.standing(paid.month, dates.until_month_ends(paid.month.period()));
        Ok(())
    }

    /// Refunds a request that failed through no fault of the client, and returns the standing without it.
    pub fn refund(self) -> Standing {
        let PaidCharge { units, window, day, month, standing } = self.paid;
        self.meter.burst.refund(window);
        self.meter.day.refund(day, units);
        self.meter.month.refund(month, units);
        self.meter.recorder.refund(units);
        standing.without(units)
    }
}
