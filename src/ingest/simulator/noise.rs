//! Chance without memory: every throw is a hash of what it is a throw for, so it can be thrown again on any machine and
//! at any time with the same result. Nothing is walked or accumulated, and everything is integer arithmetic.

/// A named place in the tree of throws. Descending with [`Dice::of`] and [`Dice::nth`] gives independent ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dice(u64);

/// What a wave swings between, up and down.
pub(super) const SWING: i64 = 1000;

impl Dice {
    pub(super) const fn new(seed: u64) -> Self {
        Dice(mix(seed))
    }

    /// The throws for a named purpose.
    pub(super) fn of(self, purpose: &str) -> Self {
        let name = purpose
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
        Dice(mix(self.0 ^ name))
    }

    /// The throws for one of many like things.
    pub(super) const fn nth(self, number: i64) -> Self {
        Dice(mix(self.0.rotate_left(23) ^ number.cast_unsigned()))
    }

    /// The throws for a pair of things.
    pub(super) const fn joined(self, other: Dice) -> Self {
        Dice(mix(self.0 ^ other.0.rotate_left(31)))
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

    /// Sixteen bytes as hexadecimal digits: an identifier that nothing else has.
    pub(super) fn identifier(self) -> String {
        format!("{:016x}{:016x}", self.0, self.nth(1).0)
    }

    /// A smooth curve over time between `-SWING` and `SWING`, with a bend about every `period` seconds.
    pub(super) fn wave(self, at: i64, period: i64) -> i64 {
        let step = at.div_euclid(period);
        let (from, to) = (self.height(step), self.height(step + 1));
        let x = at.rem_euclid(period) * 1024 / period;
        let eased = x * x * (3072 - 2 * x) / (1024 * 1024);
        from + (to - from) * eased / 1024
    }

    const fn height(self, step: i64) -> i64 {
        self.nth(step).within(-SWING, SWING)
    }

    /// How opinion moves: slow waves with ever smaller and faster ones on top, between `-SWING` and `SWING`.
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
    fn throws_are_the_same_for_ever() {
        let dice = Dice::new(7).of("test").nth(-3);
        assert_eq!(dice.identifier(), Dice::new(7).of("test").nth(-3).identifier());
        assert_eq!(dice.identifier(), "5fbc7b6d08ba99ce48141546e4d89fdc");
    }

    #[test]
    fn waves_are_smooth_and_bounded() {
        let dice = Dice::new(1).of("wave");
        let mut before = dice.wave(-5_000, 600);
        for at in -4_999..5_000 {
            let now = dice.wave(at, 600);
            assert!((-SWING..=SWING).contains(&now) && (now - before).abs() < 12, "{at}: {before} {now}");
            before = now;
            assert!(dice.drift(at).abs() <= SWING);
        }
    }

    #[test]
    fn a_shuffle_holds_each_number_once() {
        let mut order = Dice::new(3).shuffled(60);
        assert_ne!(order, (0..60).collect::<Vec<_>>());
        order.sort_unstable();
        assert_eq!(order, (0..60).collect::<Vec<_>>());
    }
}
