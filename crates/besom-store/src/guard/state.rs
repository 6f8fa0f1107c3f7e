//! What a guard keeps in memory, behind one lock that is held for the time of a change to memory and never longer.

use std::collections::{BTreeSet, HashSet};

use besom::{Adaptive, KeyHasher};

/// Repairs that wait for a write to end. Beyond these they are given up: the query will come again, or it does not matter.
const MAX_WAITING: usize = 4096;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct State<F> {
    pub(super) filter: F,
    /// The commit whose lists are the filter's. Lists that were read in a view of the same number are what the filter stands for.
    pub(super) sequence: u64,
    /// A write has been rehearsed on the filter and will be made for good: nothing else may change the filter until then.
    pub(super) frozen: bool,
    /// The keys that a commit under way, or in doubt, may add. They are in the store, perhaps, and not in the filter.
    pub(super) doubts: HashSet<Box<[u8]>>,
    /// The store may have gone back to an earlier state: keys that the filter does not have may be there. Every key
    /// is a "maybe" until the filter was built anew.
    pub(super) blind: bool,
    /// Filter and lists disagree. No key of the store is rejected, but only building the filter anew helps.
    pub(super) lost: bool,
    /// False positives that wait for their repair, each once however often it is asked for.
    pub(super) waiting: BTreeSet<Box<[u8]>>,
}

impl<F: Adaptive> State<F> {
    pub(super) fn new(filter: F, sequence: u64) -> Self {
        Self {
            filter,
            sequence,
            frozen: false,
            doubts: HashSet::new(),
            blind: false,
            lost: false,
            waiting: BTreeSet::new(),
        }
    }

    /// Whether the store may have a key. `false` is certain.
    #[inline]
    pub(super) fn may_have(&self, key: &[u8]) -> bool {
        self.filter.contains(key) || self.may_have_besides(key)
    }

    fn may_have_besides(&self, key: &[u8]) -> bool {
        self.blind || (!self.doubts.is_empty() && self.doubts.contains(key))
    }

    /// Where the key's list is, for engines that need to know.
    pub(super) fn address_of(&self, key: &[u8]) -> Option<u64> {
        self.filter.address_of(self.filter.hasher().digest(key))
    }

    /// Whether the filter may be repaired now.
    pub(super) fn is_settled(&self) -> bool {
        !(self.frozen || self.blind || self.lost)
    }

    /// Lets a repair wait. Whether there was room.
    pub(super) fn postpone(&mut self, key: &[u8]) -> bool {
        let room = self.waiting.len() < MAX_WAITING;
        if room {
            self.waiting.insert(key.into());
        }
        room || self.waiting.contains(key)
    }

    /// Nothing is under way any more.
    pub(super) fn thaw(&mut self) {
        self.frozen = false;
        if !self.lost {
            self.doubts.clear();
        }
    }
}
