//! Where in the remote the keys of the slots lie.

use std::ops::{Range, RangeInclusive};

/// Twice as many addresses as slots: the keys lie in one half of them, in the order of the slots. A rehash copies
/// them to the other half and then changes over, so that a failure at any point leaves one half whole.
///
/// ```text
/// addresses   0 … slots−1 | slots … 2·slots−1
///             first half  | second half, from the first rehash on; then the first again
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Addresses {
    /// The address of slot 0: 0, or the number of slots.
    first: u64,
    slots: u64,
}

impl Addresses {
    /// The first half: addresses are slot numbers.
    pub(super) fn new(slots: usize) -> Self {
        Self { first: 0, slots: slots as u64 }
    }

    /// Whether it is the second half.
    pub(super) fn is_second(self) -> bool {
        self.first > 0
    }

    /// The half that is not in use.
    pub(super) fn other(self) -> Self {
        Self { first: self.slots - self.first, ..self }
    }

    /// The address of a slot.
    #[inline]
    pub(super) fn of(self, slot: usize) -> u64 {
        self.first + slot as u64
    }

    /// The slots of a range of addresses, of this many; `None` without any in the half in use.
    pub(super) fn of_range(self, addresses: &RangeInclusive<u64>, slots: usize) -> Option<Range<usize>> {
        let last = (*addresses.end()).min(self.of(slots - 1));
        let first = (*addresses.start()).max(self.first);
        (first <= last).then(|| (first - self.first) as usize..(last - self.first) as usize + 1)
    }

    /// The addresses of all slots.
    pub(super) fn all(self) -> RangeInclusive<u64> {
        self.first..=self.first + self.slots - 1
    }

    /// The ranges of addresses outside of the half in use.
    pub(super) fn elsewhere(self) -> [RangeInclusive<u64>; 2] {
        [self.other().all(), 2 * self.slots..=u64::MAX]
    }

    /// The slot of an address; `None` if it is not in the half in use.
    pub(super) fn slot(self, address: u64) -> Option<usize> {
        let slot = address.checked_sub(self.first)?;
        (slot < self.slots).then_some(slot as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_halves_lie_side_by_side() {
        let (first, second) = (Addresses::new(10), Addresses::new(10).other());
        assert_eq!((first.of(3), second.of(3), second.other()), (3, 13, first));
        for address in 0..30 {
            assert_eq!(first.slot(address), (address < 10).then_some(address as usize));
            assert_eq!(second.slot(address), (10..20).contains(&address).then(|| address as usize - 10));
        }
        assert_eq!((first.slot(u64::MAX), second.slot(u64::MAX)), (None, None));
        for half in [first, second] {
            for address in 0..40 {
                let elsewhere = half.elsewhere().iter().any(|range| range.contains(&address));
                assert_eq!(elsewhere, half.slot(address).is_none());
            }
            assert_eq!(half.of_range(&(0..=u64::MAX), 10), Some(0..10));
            assert_eq!(half.of_range(&(half.of(3)..=half.of(3)), 10), Some(3..4));
            assert_eq!(half.of_range(&half.elsewhere()[1], 10), None);
        }
    }
}
