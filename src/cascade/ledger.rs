//! What the filter remembers of the remote's lists, to notice when one is not what it was.

use crate::error::ensure;
use crate::format::{Decoder, Encoder, FormatError, unsound};
use crate::{BuildError, Digest, InvariantError};

/// How many keys there are, and the sum of their digests modulo 2¹²⁸.
///
/// Digests are random bits that nobody outside knows: two sets of keys with one tally are one set, but for a chance of
/// 2⁻¹²⁸.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Tally {
    pub(super) keys: usize,
    sum: u128,
}

impl Tally {
    #[inline]
    pub(super) fn add(&mut self, digest: Digest) {
        self.keys += 1;
        self.sum = self.sum.wrapping_add(digest.to_u128());
    }

    /// Takes a key out; there must be one.
    pub(super) fn take(&mut self, digest: Digest) {
        self.keys -= 1;
        self.sum = self.sum.wrapping_sub(digest.to_u128());
    }

    /// The digest of the one key that this has and `other` has not, if they differ by one key.
    pub(super) fn surplus(&self, other: &Self) -> Option<Digest> {
        let one = other.keys.checked_add(1) == Some(self.keys);
        one.then(|| Digest::from_u128(self.sum.wrapping_sub(other.sum)))
    }
}

/// The sum of the marks of a list's keys, modulo 256.
///
/// Marks are odd. So a list that lacks a key, or has one more, never has the right sum; any other wrong list has it once
/// in 256 times at most (in 128, if the number of keys is right).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ListSum(u8);

impl ListSum {
    #[inline]
    pub(super) fn add(&mut self, digest: Digest) {
        self.0 = self.0.wrapping_add(digest.lo as u8 | 1);
    }

    #[inline]
    fn take(&mut self, digest: Digest) {
        self.0 = self.0.wrapping_sub(digest.lo as u8 | 1);
    }
}

/// A sum for every list, and the tally of all keys.
///
/// A cascade has no slot per key that would tell what a list must hold, and a key that is missing when its home dies is
/// lost. A byte for every list settles it: a sixteenth of a bit per key.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ledger {
    /// By the address of the list.
    sums: Vec<ListSum>,
    tally: Tally,
}

impl Ledger {
    /// Empty lists.
    pub(super) fn new(lists: u64) -> Result<Self, BuildError> {
        let bytes = Self::bits(lists) / 8;
        let mut sums = Vec::new();
        sums.try_reserve_exact(bytes).map_err(|_| BuildError::OutOfMemory { bytes })?;
        sums.resize(bytes, ListSum::default());
        Ok(Self { sums, tally: Tally::default() })
    }

    /// Writes the sum of all digests and the sums of the lists.
    pub(super) fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), FormatError> {
        let Digest { hi, lo } = Digest::from_u128(self.tally.sum);
        encoder.words(&[hi, lo])?;
        Ok(encoder.bytes(&self.sums.iter().map(|sum| sum.0).collect::<Vec<u8>>())?)
    }

    /// Reads the sums of so many lists that hold so many keys.
    pub(super) fn decode(decoder: &mut Decoder<'_>, lists: u64, keys: usize) -> Result<Self, FormatError> {
        let [hi, lo] = decoder.numbers()?;
        let bytes = decoder.bytes(lists)?;
        let (sums, rest) = bytes.as_bytes().split_at(lists as usize);
        if rest.iter().any(|&byte| byte != 0) {
            return Err(unsound("sums of lists that there are not"));
        }
        let sums = sums.iter().map(|&sum| ListSum(sum)).collect();
        Ok(Self { sums, tally: Tally { keys, sum: Digest { hi, lo }.to_u128() } })
    }

    /// The memory for so many lists, in bits.
    pub(super) fn bits(lists: u64) -> usize {
        usize::try_from(lists).unwrap_or(usize::MAX).saturating_mul(size_of::<ListSum>() * 8)
    }

    pub(super) fn memory_bits(&self) -> usize {
        self.sums.len() * size_of::<ListSum>() * 8
    }

    /// How many lists there are.
    #[inline]
    pub(super) fn lists(&self) -> u64 {
        self.sums.len() as u64
    }

    /// The address of the list that a key belongs to.
    #[inline]
    pub(super) fn address(&self, digest: Digest) -> u64 {
        super::levels::part(digest, self.lists())
    }

    /// The sum of the list at an address; that of an empty one where there is no list.
    pub(super) fn sum(&self, address: u64) -> ListSum {
        let index = usize::try_from(address).unwrap_or(usize::MAX);
        self.sums.get(index).copied().unwrap_or_default()
    }

    pub(super) fn tally(&self) -> Tally {
        self.tally
    }

    /// How many keys there are.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.tally.keys
    }

    /// Writes down a key that has been pushed to its list.
    #[inline]
    pub(super) fn insert(&mut self, digest: Digest) {
        let list = self.address(digest) as usize;
        self.sums[list].add(digest);
        self.tally.add(digest);
    }

    /// Strikes out a key that has been removed from its list.
    pub(super) fn remove(&mut self, digest: Digest) {
        let list = self.address(digest) as usize;
        self.sums[list].take(digest);
        self.tally.take(digest);
    }

    pub(super) fn clear(&mut self) {
        self.sums.fill(ListSum::default());
        self.tally = Tally::default();
    }

    pub(super) fn verify(&self) -> Result<(), InvariantError> {
        let (keys, odd) = (self.len(), self.sums.iter().filter(|sum| sum.0 % 2 == 1).count());
        ensure!(keys % 2 == odd % 2, "{keys} keys cannot make the sums of {odd} lists odd");
        ensure!(keys > 0 || self.tally == Tally::default(), "no keys, but a sum of their digests");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    #[test]
    fn one_key_more_or_less_always_shows() {
        let mut random = Random::new(29);
        let mut ledger = Ledger::new(3).unwrap();
        let mut keys = Vec::new();
        for _ in 0..2_000 {
            let digest = Digest { hi: random.next(), lo: random.next() };
            let (before, sum) = (ledger.tally(), ledger.sum(ledger.address(digest)));
            ledger.insert(digest);
            keys.push(digest);
            assert_ne!(ledger.sum(ledger.address(digest)), sum);
            assert_eq!(ledger.tally().surplus(&before), Some(digest));
            assert_eq!(before.surplus(&ledger.tally()), None);
            if random.one_in(3) {
                let gone = keys.swap_remove(random.below(keys.len() as u64) as usize);
                ledger.remove(gone);
            }
            ledger.verify().unwrap();
            let (mut sum, mut tally) = (ListSum::default(), Tally::default());
            keys.iter().for_each(|&key| tally.add(key));
            keys.iter().filter(|&&key| ledger.address(key) == 1).for_each(|&key| sum.add(key));
            assert_eq!((ledger.sum(1), ledger.tally()), (sum, tally));
        }
        ledger.clear();
        assert_eq!(ledger, Ledger::new(3).unwrap());
        assert_eq!(ledger.sum(3), ListSum::default());
    }
}
