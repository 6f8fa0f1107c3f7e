//! False positives without waiting: queries that are random but for the bits in which they must agree with a stored
//! key.
//!
//! The bits that a filter cuts fingerprints from are, in a table of 2^q slots, the digest without its first q bits, and
//! then the words that rehashing gives. Here a digest is the key itself, and every further word is a bijection of the
//! digest's second half: any of them can be chosen.

use besom::{Digest, KeyHasher, Seed};

use crate::random::Random;

/// A hash function whose digests are the keys, which have 16 bytes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Chosen(Seed);

impl KeyHasher for Chosen {
    fn with_seed(seed: Seed) -> Self {
        Self(seed)
    }

    fn seed(&self) -> Seed {
        self.0
    }

    fn digest(&self, bytes: &[u8]) -> Digest {
        let mut digest = [0; 16];
        digest.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        Digest::from_u128(u128::from_be_bytes(digest))
    }

    fn rehash(&self, digest: Digest, counter: u64) -> Digest {
        Digest { hi: word(digest.lo, 2 * counter), lo: word(digest.lo, 2 * counter + 1) }
    }
}

const FACTORS: [u64; 2] = [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53];

/// The inverse of an odd number modulo 2^64, by Newton's method.
const fn inverse(odd: u64) -> u64 {
    let (mut inverse, mut round) = (odd, 0);
    while round < 6 {
        inverse = inverse.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(inverse)));
        round += 1;
    }
    inverse
}

/// A bijection that mixes well (the finaliser of `MurmurHash3`), another one for every number.
fn word(half: u64, number: u64) -> u64 {
    let mut word = half ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for factor in FACTORS {
        word = (word ^ word >> 33).wrapping_mul(factor);
    }
    word ^ word >> 33
}

/// What [`word`] was made of.
fn half_of(word: u64, number: u64) -> u64 {
    let mut half = word ^ word >> 33;
    for factor in [inverse(FACTORS[1]), inverse(FACTORS[0])] {
        half = half.wrapping_mul(factor);
        half ^= half >> 33;
    }
    half ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// What a filter remembers of its repairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Telescoping,
    Extension,
    /// Extensions beside cache-line bins.
    OnBins,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Telescoping => "telescoping",
            Self::Extension => "extension-quotient",
            Self::OnBins => "extension-bins",
        }
    }

    /// Whether the values are extensions.
    pub(super) fn extends(self) -> bool {
        self != Self::Telescoping
    }
}

/// How a digest is cut, in a table whose quotients or bins are a power of two.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cut {
    /// The bits of a quotient, or of a bin.
    pub(super) home: u32,
    /// The bits of a remainder, or of a tag.
    pub(super) behind: u32,
    /// How many fingerprints there are: the upper half of a digest times this is the fingerprint and, behind the point,
    /// the string of a key.
    pub(super) fingerprints: u64,
}

impl Cut {
    /// The beginning of a key's string.
    fn string(self, digest: u128) -> u64 {
        ((digest >> 64) as u64).wrapping_mul(self.fingerprints)
    }

    /// A random digest with the fingerprint of this one, and so many bits of its string, as far as the upper half goes.
    fn stranger(self, digest: u128, extension: u32, random: &mut Random) -> u128 {
        let longest = self.fingerprints.leading_zeros().saturating_sub(2);
        let parts = u128::from(self.fingerprints) << extension.min(longest);
        let first = |part: u128| (part << 64).div_ceil(parts);
        let part = ((digest >> 64) * parts) >> 64;
        let (first, next) = (first(part), first(part + 1));
        (first + u128::from(random.next_u64()) % (next - first)) << 64 | u128::from(random.next_u64())
    }
}

/// A source of false positives, and what it knows of the values that the slots have.
#[derive(Debug)]
pub(super) struct Strangers {
    kind: Kind,
    cut: Cut,
    keys: Vec<[u8; 16]>,
    /// The selector of each key's slot, or the length of its extension, as far as the repairs tell.
    values: Vec<u32>,
    /// Of an extension filter: the keys by the length of their extensions.
    by_length: Vec<Vec<usize>>,
    random: Random,
}

/// Selectors and lengths that are worth trying.
const MOST: u32 = 62;

impl Strangers {
    pub(super) fn new(kind: Kind, cut: Cut, keys: usize, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let stored = (0..keys).map(|_| draw(&mut random).to_be_bytes()).collect();
        let mut by_length = vec![Vec::new(); MOST as usize + 1];
        by_length[0] = (0..keys).collect();
        Self { kind, cut, keys: stored, values: vec![0; keys], by_length, random }
    }

    /// The keys to be stored.
    pub(super) fn stored(&self) -> &[[u8; 16]] {
        &self.keys
    }

    /// The value of each key, as far as the repairs tell.
    pub(super) fn values(&self) -> &[u32] {
        &self.values
    }

    /// Whether a fresh filter takes strangers for the keys that they agree with as far as fingerprints go. If it does
    /// not, no false positive would ever be found.
    pub(super) fn are_met(&self, contains: impl Fn(&[u8; 16]) -> bool) -> bool {
        let mut random = Random::new(1);
        self.keys.iter().take(64).all(|key| {
            let stranger = self.cut.stranger(u128::from_be_bytes(*key), 0, &mut random);
            contains(&stranger.to_be_bytes())
        })
    }

    /// The next false positive, which is going to be repaired.
    pub(super) fn next(&mut self, contains: impl Fn(&[u8; 16]) -> bool) -> [u8; 16] {
        loop {
            let key = self.choose();
            let stored = u128::from_be_bytes(self.keys[key]);
            let value = self.values[key];
            let found = match self.kind {
                Kind::Extension | Kind::OnBins => {
                    let stranger = self.cut.stranger(stored, value, &mut self.random);
                    Some(stranger).filter(|stranger| contains(&stranger.to_be_bytes()))
                }
                Kind::Telescoping => self.with_chunk(stored, value, &contains),
            };
            // What was not accepted had been repaired with another key: the slot has gone on, or forgotten.
            let next = match (found, self.kind) {
                (Some(stranger), kind) => self.after(kind, stored, stranger, value),
                (None, Kind::Extension | Kind::OnBins) => value + 1,
                (None, Kind::Telescoping) => (value + 1) % MOST,
            };
            self.set(key, next.min(MOST));
            if let Some(stranger) = found {
                return stranger.to_be_bytes();
            }
        }
    }

    /// A key whose slot is met next: each alike, or by how many queries an extension lets through.
    fn choose(&mut self) -> usize {
        if self.kind == Kind::Telescoping {
            return self.random.below(self.keys.len() as u64) as usize;
        }
        let weight = |(length, keys): (usize, &Vec<usize>)| keys.len() as f64 * 0.5_f64.powf(length as f64);
        let total: f64 = self.by_length.iter().enumerate().map(weight).sum();
        let mut place = self.random.unit() * total;
        let length = self.by_length.iter().enumerate().position(|entry| {
            place -= weight(entry);
            place < 0.0
        });
        let last = self.by_length.iter().rposition(|keys| !keys.is_empty()).unwrap_or(0);
        let keys = &self.by_length[length.unwrap_or(last)];
        keys[self.random.below(keys.len() as u64) as usize]
    }

    /// A query that is accepted and has this chunk of a key.
    fn with_chunk(
        &mut self,
        stored: u128,
        chunk: u32,
        contains: &impl Fn(&[u8; 16]) -> bool,
    ) -> Option<u128> {
        let (start, len) = (self.cut.home + chunk * self.cut.behind, self.cut.behind);
        // A chunk may lie in two words, of which one can be chosen, and the rest must come by chance.
        let in_first = (word_end(start) - start).min(len);
        let tries = 8_u32 << (len - in_first.max(len - in_first));
        let (from, part) =
            if 2 * in_first >= len { (start, in_first) } else { (start + in_first, len - in_first) };
        for _ in 0..tries {
            let stranger = if from < 128 {
                agreeing(stored, from, part, &mut self.random)
            } else {
                let (number, at) = (u64::from((from - 128) / 64 + 2), (from - 128) % 64);
                let mask = u64::MAX << (64 - part) >> at;
                let wanted = word(stored as u64, number) & mask | self.random.next_u64() & !mask;
                draw(&mut self.random) << 64 | u128::from(half_of(wanted, number))
            };
            let home = u128::MAX << (128 - self.cut.home);
            let stranger = stored & home | stranger & !home;
            if contains(&stranger.to_be_bytes()) {
                return Some(stranger);
            }
        }
        None
    }

    /// The value after the repair.
    fn after(&self, kind: Kind, stored: u128, stranger: u128, value: u32) -> u32 {
        match kind {
            Kind::Extension | Kind::OnBins => {
                let agree = (self.cut.string(stored) ^ self.cut.string(stranger)).leading_zeros();
                (agree + 1).max(value)
            }
            // One chunk in 2^r is the same by chance, which the next try finds.
            Kind::Telescoping => value + 1,
        }
    }

    fn set(&mut self, key: usize, value: u32) {
        if self.kind.extends() {
            let old = &mut self.by_length[self.values[key] as usize];
            old.iter().position(|other| *other == key).map(|place| old.swap_remove(place));
            self.by_length[value as usize].push(key);
        }
        self.values[key] = value;
    }
}

fn draw(random: &mut Random) -> u128 {
    u128::from(random.next_u64()) << 64 | u128::from(random.next_u64())
}

/// A number that agrees with another one in its first bits, and in `len` bits from `start` on.
fn agreeing(with: u128, start: u32, len: u32, random: &mut Random) -> u128 {
    let mask = if len == 0 { 0 } else { u128::MAX << (128 - len.min(128)) >> start };
    with & mask | draw(random) & !mask
}

/// Where the word (of the string that begins with the digest) ends in which a bit lies.
fn word_end(bit: u32) -> u32 {
    if bit < 128 { 128 } else { (bit / 64 + 1) * 64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_can_be_chosen() {
        let mut random = Random::new(3);
        for number in 2..60 {
            let half = random.next_u64();
            assert_eq!(half_of(word(half, number), number), half);
        }
    }
}
