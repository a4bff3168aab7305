//! The outcome of a batch of news, counted.

use crate::model::{FeederQuota, FeederUse, Reason};

/// How many rejections of each reason a report lists, so that a frequent one hides no other.
const LISTED_MAX: u64 = 10;

/// How many messages of a batch changed something, repeated what was known, or were rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IngestReport {
    pub changed: u64,
    pub unchanged: u64,
    /// By [`Reason`].
    rejected: [u64; Reason::COUNT],
    /// The first of each reason, with the positions of their messages, in that order.
    listed: Vec<(u64, Reason)>,
    /// What the sender has used of its quota, for one that has a quota.
    pub added: Option<(FeederUse, FeederQuota)>,
}

impl Default for IngestReport {
    fn default() -> Self {
        IngestReport { changed: 0, unchanged: 0, rejected: [0; Reason::COUNT], listed: Vec::new(), added: None }
    }
}

impl IngestReport {
    pub fn reject(&mut self, reason: Reason) {
        if self.rejected[reason as usize] < LISTED_MAX {
            self.listed.push((self.messages(), reason));
        }
        self.rejected[reason as usize] += 1;
    }

    pub fn accepted(&self) -> u64 {
        self.changed + self.unchanged
    }

    pub fn rejected(&self) -> u64 {
        self.rejected.iter().sum()
    }

    /// All messages counted so far.
    pub fn messages(&self) -> u64 {
        self.accepted() + self.rejected()
    }

    /// The first rejections of each reason: the position of each message, counted from 0, and why it was rejected.
    pub fn first_rejected(&self) -> &[(u64, Reason)] {
        &self.listed
    }

    /// The reasons that occurred, with how often.
    pub fn reasons(&self) -> impl Iterator<Item = (Reason, u64)> {
        Reason::ALL.into_iter().map(|reason| (reason, self.rejected[reason as usize])).filter(|(_, count)| *count > 0)
    }

    /// Counts what came after this as well.
    pub fn add(&mut self, other: &IngestReport) {
        let before = self.messages();
        let mut counts = self.rejected;
        for (at, reason) in &other.listed {
            if counts[*reason as usize] < LISTED_MAX {
                self.listed.push((before + at, *reason));
                counts[*reason as usize] += 1;
            }
        }
        self.added = other.added.or(self.added);
        self.changed += other.changed;
        self.unchanged += other.unchanged;
        for (own, other) in self.rejected.iter_mut().zip(other.rejected) {
            *own += other;
        }
    }
}
