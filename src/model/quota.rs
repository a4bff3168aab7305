//! Quotas on what one feeder may add to its world.

/// The quota of one feeder. Prices, scores and repeated announcements are not counted: they add no lasting rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeederQuota {
    /// New bookmakers in a UTC day, and in all.
    pub bookmakers_per_day: u32,
    pub bookmakers: u32,
    /// New events in a UTC day, and at one time.
    pub events_per_day: u32,
    pub events: u32,
    /// New competitions and markets, together, in a UTC day, and in all.
    pub names_per_day: u32,
    pub names: u32,
}

impl Default for FeederQuota {
    fn default() -> Self {
        FeederQuota {
            bookmakers_per_day: 200,
            bookmakers: 500,
            events_per_day: 20_000,
            events: 50_000,
            names_per_day: 500,
            names: 1_000,
        }
    }
}

/// How much of its quota a feeder has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeederUse {
    /// The UTC day of the daily counts, in days since 1970.
    pub day: u32,
    pub bookmakers_today: u32,
    pub bookmakers: u32,
    pub events_today: u32,
    /// Existing events that this feeder announced first.
    pub events: u32,
    /// Competitions and markets.
    pub names_today: u32,
    pub names: u32,
}

impl FeederUse {
    /// The usage on `day`: the daily counts start at zero on a new day.
    #[must_use]
    pub fn on(self, day: u32) -> Self {
        if self.day == day {
            self
        } else {
            FeederUse { day, bookmakers_today: 0, events_today: 0, names_today: 0, ..self }
        }
    }

    /// Whether nothing has been added, leaving aside the events that are there now: their owners say how many those are.
    pub fn is_unused(self) -> bool {
        FeederUse { day: 0, events: 0, ..self } == FeederUse::default()
    }

    /// What was used at least, of two counts of the same feeder; the events that are there now are of the first.
    #[must_use]
    pub fn joined(self, other: Self) -> Self {
        let day = self.day.max(other.day);
        let (one, other) = (self.on(day), other.on(day));
        FeederUse {
            day,
            bookmakers_today: one.bookmakers_today.max(other.bookmakers_today),
            bookmakers: one.bookmakers.max(other.bookmakers),
            events_today: one.events_today.max(other.events_today),
            events: one.events,
            names_today: one.names_today.max(other.names_today),
            names: one.names.max(other.names),
        }
    }

    /// Counts a new bookmaker, if the quota has room for it.
    pub fn add_bookmaker(&mut self, quota: FeederQuota) -> bool {
        let fits = self.bookmakers_today < quota.bookmakers_per_day && self.bookmakers < quota.bookmakers;
        if fits {
            self.bookmakers_today += 1;
            self.bookmakers += 1;
        }
        fits
    }

    /// Counts a new competition or market, if the quota has room for it.
    pub fn add_name(&mut self, quota: FeederQuota) -> bool {
        let fits = self.names_today < quota.names_per_day && self.names < quota.names;
        if fits {
            self.names_today += 1;
            self.names += 1;
        }
        fits
    }

    /// Counts a new event, if the quota has room for it.
    pub fn add_event(&mut self, quota: FeederQuota) -> bool {
        let fits = self.events_today < quota.events_per_day && self.events < quota.events;
        if fits {
            self.events_today += 1;
            self.events += 1;
        }
        fits
    }
}
