//! What filters of the registry are built from.

/// How much space a filter of the registry gets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Space {
    /// Bits per *slot*, metadata and adaptivity bits included: how the papers compare at equal space. With 11, a
    /// telescoping or extension filter has remainders of 8 bits, a swapping or cuckooing filter fingerprints of
    /// 11, a cyclic filter with s selector bits fingerprints of 11 − s.
    SlotBits(u32),
    /// As much as the filter needs for this false-positive rate.
    Rate(f64),
}

/// What a filter of the registry is built from. Filters that are compared get the same one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spec {
    /// How many keys will be stored.
    pub keys: usize,
    /// How much space they get.
    pub space: Space,
    /// The share of slots in use when all keys are stored.
    pub load: f64,
    /// The seed of the filter's hash function.
    pub seed: u64,
}

impl Spec {
    /// The papers' setting: 11 bits a slot at load 0.95.
    #[must_use]
    pub fn new(keys: usize, seed: u64) -> Self {
        Self { keys: keys.max(1), space: Space::SlotBits(11), load: 0.95, seed }
    }

    /// The same spec with other bits per slot.
    #[must_use]
    pub fn slot_bits(self, bits: u32) -> Self {
        Self { space: Space::SlotBits(bits), ..self }
    }

    /// The same spec with the space that a false-positive rate takes.
    #[must_use]
    pub fn rate(self, rate: f64) -> Self {
        Self { space: Space::Rate(rate), ..self }
    }

    /// The same spec with another load.
    #[must_use]
    pub fn load(self, load: f64) -> Self {
        Self { load, ..self }
    }
}
