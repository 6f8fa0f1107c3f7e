//! Where filter and remote may disagree, and a remote that is watched for it.

use std::ops::ControlFlow;

use super::GuardStats;
use crate::{Change, Remote};

/// What is not known of the remote since an operation failed half-way.
#[derive(Debug, Clone, Default)]
pub(super) struct Doubts {
    /// The addresses of the group that is being applied. Still there after the operation: it failed, or panicked.
    pending: Vec<u64>,
    /// The addresses of failed groups. Groups that share an address are one.
    questions: Vec<Question>,
    /// The remote may hold any part of the keys: a rebuilding failed half-way.
    pub(super) lost: bool,
}

/// The addresses of one failed group.
#[derive(Debug, Clone)]
pub(super) struct Question {
    pub(super) addresses: Vec<u64>,
    /// Slots that the lists do not explain, once that was looked at. Only a scan helps then.
    pub(super) unexplained: usize,
}

impl Doubts {
    /// Whether there is none.
    pub(super) fn are_settled(&self) -> bool {
        self.pending.is_empty() && self.questions.is_empty() && !self.lost
    }

    /// The addresses of a group that failed are in question.
    pub(super) fn adopt_pending(&mut self) {
        if !self.pending.is_empty() {
            let addresses = std::mem::take(&mut self.pending);
            self.ask(addresses);
        }
    }

    /// Puts addresses in question.
    pub(super) fn ask(&mut self, mut addresses: Vec<u64>) {
        self.questions.retain_mut(|question| {
            let shared = question.addresses.iter().any(|address| addresses.contains(address));
            if shared {
                addresses.append(&mut question.addresses);
            }
            !shared
        });
        addresses.sort_unstable();
        addresses.dedup();
        self.questions.push(Question { addresses, unexplained: 0 });
    }

    /// A question that the lists may answer, taken out.
    pub(super) fn take_open(&mut self) -> Option<Question> {
        let open = self.questions.iter().position(|question| question.unexplained == 0)?;
        Some(self.questions.swap_remove(open))
    }

    /// Takes the question of these addresses out.
    pub(super) fn forget(&mut self, addresses: &[u64]) {
        self.questions.retain(|question| question.addresses != addresses);
    }

    /// Puts a question back.
    pub(super) fn put_back(&mut self, question: Question) {
        self.questions.push(question);
    }

    /// Slots that only a scan can settle.
    pub(super) fn unexplained(&self) -> usize {
        self.questions.iter().map(|question| question.unexplained).sum()
    }

    pub(super) fn addresses(&self) -> usize {
        self.pending.len() + self.questions.iter().map(|question| question.addresses.len()).sum::<usize>()
    }

    /// Filter and remote were made anew, and agree.
    pub(super) fn settle(&mut self) {
        *self = Self::default();
    }
}

/// A remote that counts its accesses and remembers the addresses of a group until it has succeeded.
pub(super) struct Watched<'a, R> {
    pub(super) remote: &'a mut R,
    pub(super) stats: &'a mut GuardStats,
    pub(super) doubts: &'a mut Doubts,
}

impl<R: Remote> Remote for Watched<'_, R> {
    type Error = R::Error;

    fn read(&mut self, address: u64, visit: &mut dyn FnMut(&[u8])) -> Result<(), R::Error> {
        self.stats.remote_reads += 1;
        self.remote.read(address, visit)
    }

    fn apply(&mut self, changes: &[Change<'_>]) -> Result<(), R::Error> {
        self.stats.remote_writes += 1;
        self.doubts.adopt_pending();
        let lost = self.doubts.lost;
        for change in changes {
            match *change {
                Change::Push { address, .. }
                | Change::Remove { address, .. }
                | Change::Replace { address, .. } => {
                    self.doubts.pending.push(address);
                }
                Change::Clear => self.doubts.lost = true,
            }
        }
        self.remote.apply(changes)?;
        self.doubts.pending.clear();
        self.doubts.lost = lost;
        Ok(())
    }

    fn scan(&mut self, visit: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>) -> Result<(), R::Error> {
        self.stats.remote_reads += 1;
        self.remote.scan(visit)
    }

    fn prefetch(&self, address: u64) {
        self.remote.prefetch(address);
    }
}
