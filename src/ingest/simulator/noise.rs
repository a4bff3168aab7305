//! Stateless random numbers and value noise. Every number is a hash of the seed and the path of names and indexes that
//! leads to it, in integer arithmetic only, so any of them can be computed at any time and on any machine.

/// A node of the tree of seeds. [`Seed::named`] and [`Seed::nth`] derive independent ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seed(u64);

/// The largest absolute value of [`Seed::wave`] and [`Seed::drift`].
pub(super) const AMPLITUDE: i64 = 1000;

impl Seed {
    pub(super) const fn new(seed: u64) -> Self {
        Seed(mix(seed))
    }

    /// The seed for a named purpose.
    pub(super) fn named(self, purpose: &str) -> Self {
        let name = purpose
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
        Seed(mix(self.0 ^ name))
    }

    /// The seed of one item of a sequence.
    pub(super) const fn nth(self, number: i64) -> Self {
        Seed(mix(self.0.rotate_left(23) ^ number.cast_unsigned()))
    }

    /// The seed of a pair.
    pub(super) const fn joined(self, other: Seed) -> Self {
        Seed(mix(self.0 ^ other.0.rotate_left(31)))
    }

    /// From 0 to below `bound`, which must be above zero.
    pub(super) const fn below(self, bound: i64) -> i64 {
        (self.0 >> 1).cast_signed() % bound
    }

    /// From `low` to `high`, both included.
    pub(super) const fn within(self, low: i64, high: i64) -> i64 {
        low + self.below(high - low + 1)
    }

    pub(super) const fn one_in(self, many: i64) -> bool {
        self.below(many) == 0
    }

    /// An index below `len`; zero where there is nothing to choose.
    pub(super) fn pick(self, len: usize) -> usize {
        let bound = i64::try_from(len).unwrap_or(i64::MAX).max(1);
        usize::try_from(self.below(bound)).unwrap_or(0)
    }

    /// The numbers below `len` in a random order.
    pub(super) fn shuffled(self, len: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..len).collect();
        for (step, last) in (0..).zip((1..len).rev()) {
            order.swap(last, self.nth(step).pick(last + 1));
        }
        order
    }

    /// 128 bits in hexadecimal, for use as an identifier.
    pub(super) fn identifier(self) -> String {
        format!("{:016x}{:016x}", self.0, self.nth(1).0)
    }

    /// Value noise over time: a smooth curve between `-AMPLITUDE` and `AMPLITUDE` through a random value every `period`
    /// seconds.
    pub(super) fn wave(self, at: i64, period: i64) -> i64 {
        let step = at.div_euclid(period);
        let (from, to) = (self.value_at(step), self.value_at(step + 1));
        let x = at.rem_euclid(period) * 1024 / period;
        let eased = x * x * (3072 - 2 * x) / (1024 * 1024);
        from + (to - from) * eased / 1024
    }

    const fn value_at(self, step: i64) -> i64 {
        self.nth(step).within(-AMPLITUDE, AMPLITUDE)
    }

    /// Fractal noise, the movement of market opinion: octaves of [`Seed::wave`] that sum to at most `AMPLITUDE`.
    pub(super) fn drift(self, at: i64) -> i64 {
        const OCTAVES: [(i64, i64); 4] = [(172_800, 45), (25_200, 30), (3_300, 17), (420, 8)];
        OCTAVES.into_iter().map(|(period, weight)| self.nth(period).wave(at, period) * weight).sum::<i64>() / 100
    }
}

/// The finaliser of `SplitMix64`: each bit of the result depends on each bit of the input.
const fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derived_seeds_are_stable() {
        let seed = Seed::new(7).named("test").nth(-3);
        assert_eq!(seed.identifier(), Seed::new(7).named("test").nth(-3).identifier());
        assert_eq!(seed.identifier(), "5fbc7b6d08ba99ce48141546e4d89fdc");
    }

    #[test]
    fn waves_are_smooth_and_bounded() {
        let seed = Seed::new(1).named("wave");
        let mut before = seed.wave(-5_000, 600);
        for at in -4_999..5_000 {
            let now = seed.wave(at, 600);
            assert!((-AMPLITUDE..=AMPLITUDE).contains(&now) && (now - before).abs() < 12, "{at}: {before} {now}");
            before = now;
            assert!(seed.drift(at).abs() <= AMPLITUDE);
        }
    }

    #[test]
    fn shuffle_is_a_permutation() {
        let mut order = Seed::new(3).shuffled(60);
        assert_ne!(order, (0..60).collect::<Vec<_>>());
        order.sort_unstable();
        assert_eq!(order, (0..60).collect::<Vec<_>>());
    }
}
