//! The active set of the Firehose benchmark: keys that come into fashion and go out of it.

use crate::random::{Random, mix};

/// A drifting set of live keys. Each has a life of this many emissions; it comes rarely at first, at every step of
/// the ring when 29% of its life is over, and rarely again at the end, when a new key takes its place.
///
/// ```
/// use besom_lab::workload::ActiveSet;
///
/// let keys: std::collections::HashSet<u64> = ActiveSet::new(1).take(100_000).collect();
/// assert!(keys.len() > 30_000 && keys.len() < 100_000);
/// ```
#[derive(Debug, Clone)]
pub struct ActiveSet {
    random: Random,
    shape: ActiveSetShape,
    /// 65536^e, and the lengths of the wait by age.
    last_power: f64,
    waits: Vec<u32>,
    /// First live key in each slot of the ring; the rest follow by `Live::next`. Lists are last in, first out.
    ring: Vec<u32>,
    live: Vec<Live>,
    current: usize,
    /// What is left of the list that is being emitted.
    list: u32,
    born: u64,
    salt: u64,
}

/// Sizes of an [`ActiveSet`]. The default is the benchmark's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ActiveSetShape {
    /// Keys alive at any time.
    pub live: u32,
    /// Slots of the ring.
    pub slots: u32,
    /// The exponent e of the lengths of life (`POW_EXP`). −0.5 gives 54 emissions a key in ten million, near to
    /// the 57 that the telescoping paper reports (where it prints 0.5, which would give 76).
    pub exponent: f64,
}

impl Default for ActiveSetShape {
    fn default() -> Self {
        Self { live: 131_072, slots: 16_384, exponent: -0.5 }
    }
}

impl ActiveSetShape {
    /// The same shape with everything smaller: `factor` times fewer live keys and slots (at least one of each).
    #[must_use]
    pub fn scaled_down(self, factor: u32) -> Self {
        let part = |number: u32| (number / factor.max(1)).max(1);
        Self { live: part(self.live), slots: part(self.slots), ..self }
    }
}

#[derive(Debug, Clone, Copy)]
struct Live {
    key: u64,
    emitted: u32,
    total: u32,
    next: u32,
}

const END: u32 = u32::MAX;
const LONGEST_LIFE: u64 = 65_536;
const AGES: usize = 1024;

impl ActiveSet {
    /// The benchmark's stream with this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self::with_shape(ActiveSetShape::default(), seed)
    }

    /// A stream of another shape.
    #[must_use]
    pub fn with_shape(shape: ActiveSetShape, seed: u64) -> Self {
        let shape = ActiveSetShape { live: shape.live.max(1), slots: shape.slots.max(1), ..shape };
        let mut set = Self {
            random: Random::new(seed),
            shape,
            last_power: (LONGEST_LIFE as f64).powf(shape.exponent),
            waits: waits(shape.slots),
            ring: vec![END; shape.slots as usize],
            live: Vec::with_capacity(shape.live as usize),
            current: 0,
            list: END,
            born: 0,
            salt: mix(seed ^ 0x6a09_e667_f3bc_c909),
        };
        for index in 0..shape.live {
            let key = set.new_key();
            set.live.push(key);
            set.settle(index);
        }
        set
    }

    fn new_key(&mut self) -> Live {
        self.born += 1;
        let i = self.random.below(LONGEST_LIFE) + 1;
        let share = ((i as f64).powf(self.shape.exponent) - self.last_power) / (1.0 - self.last_power);
        let total = 1 + (LONGEST_LIFE as f64 * share) as u32;
        Live { key: mix(self.salt ^ self.born), emitted: 0, total, next: END }
    }

    /// Puts a newborn key into a random slot.
    fn settle(&mut self, index: u32) {
        let slot = self.random.below(u64::from(self.shape.slots)) as usize;
        self.push(index, slot);
    }

    fn push(&mut self, index: u32, slot: usize) {
        self.live[index as usize].next = self.ring[slot];
        self.ring[slot] = index;
    }
}

impl Iterator for ActiveSet {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        while self.list == END {
            self.current = (self.current + 1) % self.ring.len();
            self.list = std::mem::replace(&mut self.ring[self.current], END);
        }
        let index = self.list;
        let live = &mut self.live[index as usize];
        self.list = live.next;
        live.emitted += 1;
        let Live { key, emitted, total, .. } = *live;
        if emitted == total {
            self.live[index as usize] = self.new_key();
            self.settle(index);
        } else {
            let age = AGES as u64 * u64::from(emitted) / u64::from(total);
            let slot = (self.current + self.waits[age as usize] as usize) % self.ring.len();
            self.push(index, slot);
        }
        Some(key)
    }
}

/// How many slots a key waits for its next emission, by its age in 1024ths of its life: half of the ring less a
/// bump, the difference of two logistic curves.
fn waits(slots: u32) -> Vec<u32> {
    let logistic = |x: f64| 1.0 / (1.0 + (-x).exp());
    let bump = |age: usize| {
        let x = 12.0 * age as f64 / AGES as f64;
        logistic(x - 2.0) - logistic(x - 5.0)
    };
    let top = (0..AGES).map(bump).fold(0.0, f64::max);
    (0..AGES).map(|age| ((f64::from(slots) / 2.0 * (top - bump(age)) / top) as u32).max(1)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn distinct(exponent: f64, draws: usize) -> usize {
        let shape = ActiveSetShape { exponent, ..ActiveSetShape::default() };
        ActiveSet::with_shape(shape, 1).take(draws).collect::<HashSet<u64>>().len()
    }

    /// The original's counts, from its own generator; ours differ by chance only.
    #[test]
    fn distinct_keys_in_ten_million_are_the_benchmarks() {
        for (exponent, expected) in [(-1.5, 8_110_000), (-0.5, 185_612), (0.5, 131_452)] {
            let found = distinct(exponent, 10_000_000);
            let allowed = expected / 100;
            assert!(found.abs_diff(expected) < allowed, "e = {exponent}: {found}, not {expected}");
        }
    }

    #[test]
    fn a_key_is_fashionable_at_29_percent_of_its_life() {
        let waits = waits(16_384);
        let (age, wait) = waits.iter().enumerate().min_by_key(|(_, wait)| **wait).unwrap();
        assert_eq!(*wait, 1);
        assert!((age as f64 / 1024.0 - 0.29).abs() < 0.01, "{age}");
        assert!(waits[0] > 6000 && waits[1023] > 7900);
    }

    #[test]
    fn the_smallest_shape_works() {
        let shape = ActiveSetShape { live: 0, slots: 0, exponent: -0.5 };
        assert_eq!(ActiveSet::with_shape(shape, 1).take(1000).count(), 1000);
    }
}
