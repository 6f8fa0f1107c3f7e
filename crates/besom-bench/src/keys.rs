//! Keys that look random, are all different, and of which members and non-members never meet.
//!
//! A key is the image of a counter under a seeded bijection of the 64-bit words. Counters of different ranges give
//! different keys, so that "a non-member" is a fact and no matter of luck, and a billion of them take no memory.

/// The bijection of one seed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Keys {
    seed: u64,
}

/// What keys are for: each role has counters of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Keys to be stored.
    Member = 0,
    /// Keys that are asked for and never stored.
    Stranger = 1,
    /// Non-members that are asked for again and again while a filter adapts.
    Regular = 2,
    /// Not keys at all: choices that a measurement makes, such as the order of its queries.
    Choice = 3,
}

/// How many keys a role has: 2^62.
const ROLE_BITS: u32 = 62;

impl Keys {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed: mix(seed) }
    }

    /// The key number `index` of a role.
    pub(crate) fn key(self, role: Role, index: u64) -> u64 {
        debug_assert!(index >> ROLE_BITS == 0);
        let counter = (role as u64) << ROLE_BITS | index;
        // The golden ratio's multiples are far apart, which consecutive counters are not.
        mix(counter.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(self.seed))
    }

    /// `count` keys of a role, from `start` on.
    pub(crate) fn range(self, role: Role, start: u64, count: usize) -> Vec<u64> {
        (start..start + count as u64).map(|index| self.key(role, index)).collect()
    }

    /// A source of random choices; different numbers give independent ones.
    pub(crate) fn choices(self, number: u64) -> Random {
        Random { keys: Keys { seed: self.key(Role::Choice, number) }, next: 0 }
    }
}

/// An invertible scrambling: each step (xor with a shift of itself, an odd factor) can be undone.
fn mix(mut word: u64) -> u64 {
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

/// Random numbers from a seed.
#[derive(Debug, Clone)]
pub(crate) struct Random {
    keys: Keys,
    next: u64,
}

impl Random {
    fn word(&mut self) -> u64 {
        self.next += 1;
        self.keys.key(Role::Choice, self.next)
    }

    /// A number below `bound`, which is not 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.word()) * u128::from(bound)) >> 64) as u64
    }

    /// A number from 0 to 1, 1 excluded.
    fn unit(&mut self) -> f64 {
        (self.word() >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

/// Zipf's law with exponent 1: rank k of `ranks` comes with a probability proportional to 1/k.
///
/// Drawn without a table, by rejection-inversion (Hörmann and Derflinger, 1996): a point under the hyperbola 1/x
/// is found by inverting its integral, the logarithm, and is rejected if it lies above the bar of its rank.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Zipf {
    ranks: u64,
    /// The integral of 1/x at the left end of what is drawn from: just so far left that rank 1 gets its bar.
    low: f64,
    /// The integral at the right end.
    high: f64,
    /// Points that lie at most this far left of their rank need no second look.
    squeeze: f64,
}

impl Zipf {
    /// At least one rank.
    pub(crate) fn new(ranks: u64) -> Self {
        let ranks = ranks.max(1);
        Self {
            ranks,
            low: 1.5_f64.ln() - 1.0,
            high: (ranks as f64 + 0.5).ln(),
            squeeze: 2.0 - (2.5_f64.ln() - 0.5).exp(),
        }
    }

    /// A rank, counted from 0.
    pub(crate) fn draw(self, random: &mut Random) -> u64 {
        loop {
            let area = self.high + random.unit() * (self.low - self.high);
            let point = area.exp();
            let rank = point.round().clamp(1.0, self.ranks as f64);
            if rank - point <= self.squeeze || area >= (rank + 0.5).ln() - 1.0 / rank {
                return rank as u64 - 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn roles_never_share_a_key() {
        let keys = Keys::new(1);
        let roles = [Role::Member, Role::Stranger, Role::Regular, Role::Choice];
        let all: HashSet<u64> = roles.iter().flat_map(|&role| keys.range(role, 0, 10_000)).collect();
        assert_eq!(all.len(), 40_000);
    }

    #[test]
    fn seeds_give_different_keys_and_the_same_seed_the_same() {
        assert_eq!(Keys::new(7).range(Role::Member, 5, 10), Keys::new(7).range(Role::Member, 5, 10));
        assert_ne!(Keys::new(7).key(Role::Member, 5), Keys::new(8).key(Role::Member, 5));
    }

    #[test]
    fn shuffling_keeps_everything() {
        let mut items: Vec<u32> = (0..100).collect();
        Keys::new(3).choices(0).shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn zipf_gives_every_rank_its_share() {
        const DRAWS: usize = 1_000_000;
        for ranks in [1_u64, 2, 3, 10, 1000] {
            let (zipf, mut random) = (Zipf::new(ranks), Keys::new(11).choices(ranks));
            let mut seen = vec![0_usize; ranks as usize];
            for _ in 0..DRAWS {
                seen[zipf.draw(&mut random) as usize] += 1;
            }
            let harmonic: f64 = (1..=ranks).map(|rank| 1.0 / rank as f64).sum();
            for (rank, &seen) in (1..).zip(&seen) {
                let expected = DRAWS as f64 / harmonic / f64::from(rank);
                let deviation = (seen as f64 - expected) / expected.sqrt().max(1.0);
                assert!(deviation.abs() < 5.0, "rank {rank} of {ranks}: {seen} of {expected}");
            }
        }
    }

    #[test]
    fn zipf_stays_in_range_at_the_extremes() {
        let mut random = Keys::new(5).choices(0);
        for ranks in [0, 1, 1 << 40] {
            let zipf = Zipf::new(ranks);
            assert!((0..10_000).all(|_| zipf.draw(&mut random) < ranks.max(1)));
        }
    }
}
