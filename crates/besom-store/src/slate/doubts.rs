//! Where filter and reverse map may disagree, since a write failed or was broken off.

use std::collections::BTreeSet;

/// One unexplained slot in so many keys makes the store build its filter anew by itself.
const REBUILD_SHARE: usize = 64;

/// What is not known of the lists.
#[derive(Debug, Default)]
pub(super) struct Doubts {
    /// Addresses whose lists may have changed or not. Those of a write stand here while it is under way, so that they do
    /// when its future is dropped.
    open: BTreeSet<u64>,
    /// Addresses that were looked at, and whose lists do not explain the filter. Only a scan helps.
    closed: BTreeSet<u64>,
    /// Slots there.
    unexplained: usize,
    /// Lists and filter have nothing to do with each other any more: work on the whole filter failed half-way.
    pub(super) lost: bool,
    /// Failed attempts to build the filter anew are made less and less often.
    left: u64,
    next: u64,
}

impl Doubts {
    /// Puts addresses in question.
    pub(super) fn ask(&mut self, addresses: impl IntoIterator<Item = u64>) {
        self.open.extend(addresses);
        if self.closed.iter().any(|address| self.open.contains(address)) {
            self.open.append(&mut self.closed);
            self.unexplained = 0;
        }
    }

    /// A write of these addresses went well. Those that were in question before stay so.
    pub(super) fn forget(&mut self, addresses: &[u64], before: &BTreeSet<u64>) {
        addresses.iter().filter(|address| !before.contains(address)).for_each(|address| {
            self.open.remove(address);
        });
    }

    /// The addresses in question.
    pub(super) fn open(&self) -> &BTreeSet<u64> {
        &self.open
    }

    /// Filter and lists agree at all addresses that were in question.
    pub(super) fn agreed(&mut self) {
        self.open.clear();
    }

    /// The lists that were in question do not explain so many slots.
    pub(super) fn unexplained_by_lists(&mut self, slots: usize) {
        self.closed.append(&mut self.open);
        self.unexplained += slots.max(1);
    }

    pub(super) fn slots(&self) -> usize {
        self.unexplained
    }

    pub(super) fn are_settled(&self) -> bool {
        self.open.is_empty() && self.closed.is_empty() && !self.lost
    }

    /// Whether the filter should be built anew, and it is time for an attempt.
    pub(super) fn want_rebuild(&mut self, keys: usize) -> bool {
        if !self.lost && self.unexplained * REBUILD_SHARE <= keys {
            return false;
        }
        if self.left > 0 {
            self.left -= 1;
            return false;
        }
        self.next = (2 * self.next).clamp(1, 1 << 16);
        self.left = self.next;
        true
    }

    /// Filter and lists were made anew.
    pub(super) fn settle(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    //! Catches: doubts that are forgotten, and rebuildings that are tried at every turn.
    use super::*;

    #[test]
    fn what_was_in_question_before_a_write_stays_so() {
        let mut doubts = Doubts::default();
        doubts.ask([1, 2]);
        let before = doubts.open().clone();
        doubts.ask([2, 3]);
        doubts.forget(&[2, 3], &before);
        assert!(doubts.open().iter().eq(&[1, 2]));
        doubts.agreed();
        assert!(doubts.are_settled());
    }

    #[test]
    fn new_doubts_open_old_ones_and_rebuildings_are_rare() {
        let mut doubts = Doubts::default();
        doubts.ask([1, 2]);
        doubts.unexplained_by_lists(3);
        assert_eq!((doubts.slots(), doubts.open().len(), doubts.are_settled()), (3, 0, false));
        doubts.ask([2]);
        assert_eq!((doubts.slots(), doubts.open().len()), (0, 2));
        doubts.unexplained_by_lists(3);
        assert!(!doubts.want_rebuild(3 * REBUILD_SHARE));
        let attempts = (0..1000).filter(|_| doubts.want_rebuild(3 * REBUILD_SHARE - 1)).count();
        assert_eq!(attempts, 10, "after 1, 2, 4 and so on");
    }
}
