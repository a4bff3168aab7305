//! What a node of a cluster asks for and gets of a key's limits.

/// More of a day or of a month.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaNeed {
    pub period: u32,
    /// What this node has of it.
    pub own: u64,
    /// What all nodes had used of it when this one was started: for an engine that knows nothing of it.
    pub stored: u64,
    /// How much more would be good.
    pub wanted: u64,
    pub limit: u64,
}

/// What the cluster gave of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaShare {
    pub period: u32,
    /// What this node had of it, also before it was last started.
    pub before: u64,
    pub after: u64,
    /// What all nodes have, without what they gave back.
    pub total: i64,
}

/// More of the minute that begins with the first request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BurstNeed {
    /// The cluster's number of the last window of which this node had anything.
    pub window: u64,
    pub own: u32,
    pub wanted: u32,
    pub limit: u32,
}

/// What the cluster gave of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BurstShare {
    pub window: u64,
    /// How long ago the window was opened.
    pub elapsed_ms: u64,
    pub before: u32,
    pub after: u32,
    pub total: i64,
}

/// Some of the limits of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitSet {
    pub burst: bool,
    pub day: bool,
    pub month: bool,
}

impl LimitSet {
    pub const ALL: LimitSet = LimitSet { burst: true, day: true, month: true };
    pub const QUOTAS: LimitSet = LimitSet { burst: false, ..LimitSet::ALL };
}

/// What a key needs more of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyNeed {
    /// How often the cluster had reset what was used of the day and of the month, as far as this node knows.
    pub resets: u64,
    pub burst: Option<BurstNeed>,
    pub day: Option<QuotaNeed>,
    pub month: Option<QuotaNeed>,
}

/// What it got, for each limit of which it needed more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyShare {
    pub resets: u64,
    pub burst: Option<BurstShare>,
    pub day: Option<QuotaShare>,
    pub month: Option<QuotaShare>,
}

/// What a node had of a key and has not used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unused {
    pub resets: u64,
    /// The cluster's number of the window, and how many.
    pub burst: (u64, u32),
    /// The period, and how many.
    pub day: (u32, u64),
    pub month: (u32, u64),
}

impl KeyNeed {
    /// The limits that are used up or held by other nodes, so that the share has nothing of them.
    #[must_use]
    pub fn unmet(&self, share: &KeyShare) -> KeyNeed {
        let burst = self.burst.filter(|need| {
            share.burst.is_some_and(|share| share.after == share.before && share.total >= i64::from(need.limit))
        });
        let quota = |need: Option<QuotaNeed>, share: Option<QuotaShare>| {
            let is_out =
                |limit: u64, share: QuotaShare| share.after == share.before && share.total >= limit.cast_signed();
            need.filter(|need| share.is_some_and(|share| is_out(need.limit, share)))
        };
        KeyNeed { burst, day: quota(self.day, share.day), month: quota(self.month, share.month), resets: share.resets }
    }

    pub fn limits(&self) -> LimitSet {
        LimitSet { burst: self.burst.is_some(), day: self.day.is_some(), month: self.month.is_some() }
    }

    pub fn is_empty(&self) -> bool {
        self.limits() == LimitSet::default()
    }
}

impl Unused {
    pub fn is_empty(&self) -> bool {
        self.burst.1 == 0 && self.day.1 == 0 && self.month.1 == 0
    }
}
