//! What became of a batch of news, counted.

use crate::model::Reason;

/// How many messages of a batch changed something, said what was known, or were turned away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IngestReport {
    pub changed: u64,
    pub unchanged: u64,
    /// By [`Reason`].
    rejected: [u64; Reason::COUNT],
}

impl Default for IngestReport {
    fn default() -> Self {
        IngestReport { changed: 0, unchanged: 0, rejected: [0; Reason::COUNT] }
    }
}

impl IngestReport {
    pub fn reject(&mut self, reason: Reason) {
        self.rejected[reason as usize] += 1;
    }

    pub fn accepted(&self) -> u64 {
        self.changed + self.unchanged
    }

    pub fn rejected(&self) -> u64 {
        self.rejected.iter().sum()
    }

    /// The reasons that occurred, with how often.
    pub fn reasons(&self) -> impl Iterator<Item = (Reason, u64)> {
        Reason::ALL.into_iter().map(|reason| (reason, self.rejected[reason as usize])).filter(|(_, count)| *count > 0)
    }

    pub fn add(&mut self, other: &IngestReport) {
        self.changed += other.changed;
        self.unchanged += other.unchanged;
        for (own, other) in self.rejected.iter_mut().zip(other.rejected) {
            *own += other;
        }
    }
}
