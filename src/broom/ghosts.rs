//! What is remembered of removed keys (section 4.3 of the paper).
//!
//! A removed key leaves a *ghost*: its quotient and adaptivity bits, without its remainder. A newcomer whose hash
//! agrees with a ghost takes at least as many adaptivity bits as the ghost has, so a key that comes back has the
//! bits that it had, and no query that was told apart from it collides with it again. Who was told apart from it
//! does not matter, so equal ghosts of one quotient are one ghost. A ghost is not used up when a newcomer agrees
//! with it: the newcomer may be another key. It dies when its hash function does.
//!
//! The ghosts of 64 quotients lie together, each as a string that begins with the quotient and the function:
//!
//! ```text
//! | quotient mod 64: 6 bits | function: 1 bit | adaptivity bits |
//! ```
//!
//! so that finding those that agree with a newcomer is one prefix match (Lemma 29).

use std::collections::BTreeMap;

use crate::bits::{BitString, Strings, StringsMut};
use crate::{InvariantError, error::ensure};

const QUOTIENT_BITS: u32 = 6;
const HEAD_BITS: u32 = QUOTIENT_BITS + 1;

/// The ghosts of all removed keys; see the [module](self).
#[derive(Debug, Clone, Default)]
pub(super) struct Ghosts {
    /// By quotient / 64: packed strings.
    groups: BTreeMap<u64, Vec<u64>>,
    count: usize,
    /// Adaptivity bits of all ghosts.
    bits: usize,
}

/// What all ghosts of a quotient and a function begin with.
fn head(quotient: u64, function: u64) -> BitString {
    let bits = (quotient % (1 << QUOTIENT_BITS)) | ((function & 1) << QUOTIENT_BITS);
    BitString::new(bits.into(), HEAD_BITS)
}

fn group(quotient: u64) -> u64 {
    quotient >> QUOTIENT_BITS
}

impl Ghosts {
    /// How many ghosts there are.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// The adaptivity bits of all ghosts.
    pub(super) fn bits(&self) -> usize {
        self.bits
    }

    /// The memory in use, in bits; an entry of the map counts as four words: its number, and where its strings are, how
    /// many words, and room for how many.
    pub(super) fn memory_bits(&self) -> usize {
        self.groups.values().map(|words| (words.capacity() + 4) * 64).sum()
    }

    /// How many bits a newcomer with these adaptivity bits must take: those of the longest ghost that agrees.
    pub(super) fn longest(&self, quotient: u64, function: u64, bits: BitString) -> u32 {
        let Some(words) = self.groups.get(&group(quotient)) else { return 0 };
        let strings = Strings::new(words);
        let query = bits.after(head(quotient, function));
        let mut longest = HEAD_BITS;
        for start in (0..strings.count()).step_by(64) {
            let mut agree = strings.prefixes(start..strings.count().min(start + 64), query);
            while agree != 0 {
                longest = longest.max(strings.span(start + agree.trailing_zeros() as usize).1);
                agree &= agree - 1;
            }
        }
        longest - HEAD_BITS
    }

    /// Remembers the adaptivity bits of a removed key. Without bits there is nothing to remember.
    pub(super) fn add(&mut self, quotient: u64, function: u64, bits: BitString) {
        let ghost = bits.after(head(quotient, function));
        let words = self.groups.get(&group(quotient)).map_or(&[][..], Vec::as_slice);
        let strings = Strings::new(words);
        if bits.is_empty() || (0..strings.count()).any(|rank| strings.get(rank) == ghost) {
            return;
        }
        let rank = strings.count();
        let needed = (strings.used() + ghost.len() as usize + 1).div_ceil(64);
        let words = self.groups.entry(group(quotient)).or_default();
        resize(words, needed.max(words.len() / 2));
        StringsMut::new(words).insert(rank, ghost);
        self.count += 1;
        self.bits += bits.len() as usize;
    }

    /// Lets the ghosts of a quotient and a function die, and returns their adaptivity bits.
    pub(super) fn kill(&mut self, quotient: u64, function: u64) -> Vec<BitString> {
        let ranks = self.ranks(quotient, function);
        let Some(words) = self.groups.get_mut(&group(quotient)) else { return Vec::new() };
        let mut strings = StringsMut::new(words);
        let mut dead = Vec::with_capacity(ranks.len());
        for &rank in ranks.iter().rev() {
            let ghost = strings.remove(rank);
            dead.push(BitString::new(ghost.bits() >> HEAD_BITS, ghost.len() - HEAD_BITS));
        }
        let used = strings.as_ref().used();
        if used == 0 {
            self.groups.remove(&group(quotient));
        } else if !dead.is_empty() {
            resize(words, used.div_ceil(64));
        }
        self.count -= dead.len();
        self.bits -= dead.iter().map(|bits| bits.len() as usize).sum::<usize>();
        dead
    }

    fn ranks(&self, quotient: u64, function: u64) -> Vec<usize> {
        let Some(words) = self.groups.get(&group(quotient)) else { return Vec::new() };
        let (strings, head) = (Strings::new(words), head(quotient, function));
        (0..strings.count()).filter(|&rank| head.is_prefix_of(strings.get(rank))).collect()
    }

    /// The counts are right; no ghost is without bits or there twice, and each one may live, of which `may_live`
    /// is told the quotient and the lowest bit of the function.
    pub(super) fn verify(&self, may_live: impl Fn(u64, u64) -> bool) -> Result<(), InvariantError> {
        let (mut count, mut bits) = (0, 0);
        for (group, words) in &self.groups {
            let strings = Strings::new(words);
            let mut ghosts: Vec<BitString> = (0..strings.count()).map(|rank| strings.get(rank)).collect();
            ensure!(ghosts.iter().all(|ghost| ghost.len() > HEAD_BITS), "a ghost without bits in {group}");
            for ghost in &ghosts {
                let head = ghost.prefix(HEAD_BITS).bits() as u64;
                let quotient = (group << QUOTIENT_BITS) | (head % (1 << QUOTIENT_BITS));
                ensure!(
                    may_live(quotient, head >> QUOTIENT_BITS),
                    "a ghost of {quotient} outlived its function"
                );
            }
            count += ghosts.len();
            bits += ghosts.iter().map(|ghost| (ghost.len() - HEAD_BITS) as usize).sum::<usize>();
            ghosts.sort_by_key(|ghost| (ghost.bits(), ghost.len()));
            ensure!(ghosts.windows(2).all(|pair| pair[0] != pair[1]), "two equal ghosts in group {group}");
        }
        ensure!(
            (count, bits) == (self.count, self.bits),
            "{count} ghosts with {bits} bits, but {} with {} counted",
            self.count,
            self.bits
        );
        Ok(())
    }
}

/// The same ghosts. Their order means nothing.
impl PartialEq for Ghosts {
    fn eq(&self, other: &Self) -> bool {
        let sorted = |words: &Vec<u64>| {
            let strings = Strings::new(words);
            let mut ghosts: Vec<BitString> = (0..strings.count()).map(|rank| strings.get(rank)).collect();
            ghosts.sort_unstable_by_key(|ghost| (ghost.bits(), ghost.len()));
            ghosts
        };
        let mut groups = self.groups.iter().zip(&other.groups);
        self.groups.len() == other.groups.len()
            && groups.all(|(a, b)| a.0 == b.0 && sorted(a.1) == sorted(b.1))
    }
}

/// Gives packed strings halves of `half` words each. They must fit.
fn resize(words: &mut Vec<u64>, half: usize) {
    let old = words.len() / 2;
    let mut marks = words.split_off(old);
    words.resize(half, 0);
    marks.resize(half, 0);
    words.append(&mut marks);
}

#[cfg(test)]
mod tests {
    //! Catches: ghosts that are lost among their neighbours, that outlive their function, or that multiply.
    use super::*;
    use crate::testing::Random;

    #[test]
    fn ghosts_behave_like_a_list_of_strings() {
        let mut random = Random::new(43);
        let mut ghosts = Ghosts::default();
        let mut model: Vec<(u64, u64, BitString)> = Vec::new();
        for _ in 0..20_000 {
            let (quotient, function) = (random.below(130), random.below(2));
            let bits = BitString::new(random.next().into(), random.below(7) as u32);
            match random.below(8) {
                0 => {
                    let dead = ghosts.kill(quotient, function);
                    let before = model.len();
                    model.retain(|&(q, f, _)| (q, f) != (quotient, function));
                    assert_eq!(dead.len(), before - model.len());
                }
                1..=4 => {
                    ghosts.add(quotient, function, bits);
                    if !bits.is_empty() && !model.contains(&(quotient, function, bits)) {
                        model.push((quotient, function, bits));
                    }
                }
                _ => {
                    let here = model.iter().filter(|&&(q, f, _)| (q, f) == (quotient, function));
                    assert_eq!(ghosts.ranks(quotient, function).len(), here.clone().count());
                    let query = BitString::new(random.next().into(), 60);
                    let longest =
                        here.filter(|(.., ghost)| ghost.is_prefix_of(query)).map(|g| g.2.len()).max();
                    assert_eq!(ghosts.longest(quotient, function, query), longest.unwrap_or(0));
                }
            }
            assert_eq!(ghosts.len(), model.len());
        }
        ghosts.verify(|quotient, _| quotient < 130).unwrap();
        for quotient in 0..130 {
            (0..2).for_each(|function| drop(ghosts.kill(quotient, function)));
        }
        assert_eq!((ghosts.len(), ghosts.bits(), ghosts.memory_bits()), (0, 0, 0));
    }
}
