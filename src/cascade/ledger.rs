//! What the filter remembers of the keys in the remote, to notice when one is missing.
//!
//! A *list* is the keys of one of many ranges of addresses.

use crate::error::ensure;
use crate::format::{Decoder, Encoder, FormatError, unsound};
use crate::homes::Homes;
use crate::{AdaptiveError, BuildError, Digest, InvariantError};

/// The sum of the marks of a list's keys, modulo 256.
///
/// Marks are odd. So a list that lacks a key, or has one more, never has the right sum; any other wrong list has it
/// once in 256 times at most (in 128, if the number of keys is right).
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

    /// The sum of these keys.
    pub(super) fn of(keys: impl IntoIterator<Item = Digest>) -> Self {
        let mut sum = Self::default();
        keys.into_iter().for_each(|key| sum.add(key));
        sum
    }

    /// The sum with one key more.
    pub(super) fn with(mut self, key: Digest) -> Self {
        self.add(key);
        self
    }
}

/// A sum for every list, and the number of all keys.
///
/// A cascade has no slot per key that would tell what a list must hold, and a key that is missing when its home dies is
/// lost. A byte for every list of 16 keys settles it: half a bit per key.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ledger {
    /// By the number of the list.
    sums: Vec<ListSum>,
    len: usize,
}

impl Ledger {
    /// Empty lists.
    pub(super) fn new(lists: u64) -> Result<Self, BuildError> {
        let bytes = Self::bits(lists) / 8;
        let mut sums = Vec::new();
        sums.try_reserve_exact(bytes).map_err(|_| BuildError::OutOfMemory { bytes })?;
        sums.resize(bytes, ListSum::default());
        Ok(Self { sums, len: 0 })
    }

    /// Writes the sums of the lists.
    pub(super) fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), FormatError> {
        Ok(encoder.bytes(&self.sums.iter().map(|sum| sum.0).collect::<Vec<u8>>())?)
    }

    /// Reads the sums of this many lists that hold this many keys.
    pub(super) fn decode(decoder: &mut Decoder<'_>, lists: u64, keys: usize) -> Result<Self, FormatError> {
        let bytes = decoder.bytes(lists)?;
        let (sums, rest) = bytes.as_bytes().split_at(lists as usize);
        if rest.iter().any(|&byte| byte != 0) {
            return Err(unsound("sums of lists that there are not"));
        }
        let sums = sums.iter().map(|&sum| ListSum(sum)).collect();
        Ok(Self { sums, len: keys })
    }

    /// The memory for this many lists, in bits.
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

    /// How addresses are cut into lists.
    pub(super) fn homes(&self) -> Homes {
        Homes { units: self.lists(), parts: 1, digits: 0 }
    }

    /// The number of the list that a key belongs to.
    #[inline]
    pub(super) fn list(&self, digest: Digest) -> u64 {
        super::levels::part(digest, self.lists())
    }

    /// The sum of a list.
    pub(super) fn sum(&self, list: u64) -> ListSum {
        self.sums[list as usize]
    }

    /// The error for a remote with other keys than these; `found` are its own.
    #[cold]
    pub(super) fn disagreement<E>(&self, found: &Self) -> AdaptiveError<E> {
        let differ = |list: &u64| self.sum(*list) != found.sum(*list);
        let list = (0..self.lists()).find(differ).unwrap_or(0);
        // Where the numbers agree and the keys do not, one key at least is lacking.
        let lacking = usize::from(found.len == self.len).min(found.len);
        let address = *self.homes().addresses(list).start();
        AdaptiveError::Inconsistent { address, expected: self.len, found: found.len - lacking }
    }

    /// How many keys there are.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Writes down a key that the remote has.
    #[inline]
    pub(super) fn insert(&mut self, digest: Digest) {
        let list = self.list(digest) as usize;
        self.sums[list].add(digest);
        self.len += 1;
    }

    /// Strikes out a key that the remote has no more. There must be one.
    pub(super) fn remove(&mut self, digest: Digest) {
        let list = self.list(digest) as usize;
        self.sums[list].take(digest);
        self.len -= 1;
    }

    pub(super) fn clear(&mut self) {
        self.sums.fill(ListSum::default());
        self.len = 0;
    }

    pub(super) fn verify(&self) -> Result<(), InvariantError> {
        let (keys, odd) = (self.len(), self.sums.iter().filter(|sum| sum.0 % 2 == 1).count());
        ensure!(keys % 2 == odd % 2, "{keys} keys cannot make the sums of {odd} lists odd");
        let empty = self.sums.iter().all(|sum| *sum == ListSum::default());
        ensure!(keys > 0 || empty, "no keys, but sums of their marks");
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
            let (before, list) = (ledger.clone(), ledger.list(digest));
            ledger.insert(digest);
            keys.push(digest);
            assert_ne!(ledger.sum(list), before.sum(list));
            assert_eq!(ledger.sum(list), before.sum(list).with(digest));
            if random.one_in(3) {
                let gone = keys.swap_remove(random.below(keys.len() as u64) as usize);
                ledger.remove(gone);
            }
            ledger.verify().unwrap();
            let own = keys.iter().copied().filter(|&key| ledger.list(key) == 1);
            assert_eq!((ledger.sum(1), ledger.len()), (ListSum::of(own), keys.len()));
        }
        ledger.clear();
        assert_eq!(ledger, Ledger::new(3).unwrap());
    }
}
