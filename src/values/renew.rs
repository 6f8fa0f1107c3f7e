//! Growth with new lists, where the old ones have become long.
//!
//! The keys are written to lists of the next generation, a few hundred in a group, then the filter changes over, then the
//! old lists are removed. No list of the old generation is touched before the filter has changed over, so a failure
//! half-way leaves the filter and its lists as they were.
//!
//! It also leaves keys behind: new lists that nobody uses, or, if the failure comes after the change, old ones. They
//! do no harm. No operation reads them, a doubling passes over them, and
//!
//! - the next renewal begins with removing them, as does `clear` and a rebuild;
//! - `verify_remote` reports them, as every key that no slot stands for;
//! - `resync` of such an address removes what is there. A key from there is used only where a slot would have none
//!   otherwise: it may have been removed from the filter since.

use std::ops::ControlFlow;

use crate::{AdaptiveError, Change, KeyHasher, Remote};

use super::Scheme;
use super::core::Core;
use super::grow::Doubling;
use super::keys::{Keys, List};

/// Changes that go to the remote in one group; a list that is removed stays whole.
const GROUP: usize = 256;

/// Addresses of lists that were left behind are taken up in portions of at least so many.
const PORTION: usize = 1 << 12;

/// Changes that wait until there are enough of them.
#[derive(Default)]
pub(crate) struct Group {
    keys: Keys,
    /// The address of each key, and its rank if it is to be removed.
    places: Vec<(u64, Option<usize>)>,
}

impl Group {
    pub(crate) fn push<R: Remote>(
        &mut self,
        address: u64,
        key: &[u8],
        remote: &mut R,
    ) -> Result<(), AdaptiveError<R::Error>> {
        self.keys.push(key);
        self.places.push((address, None));
        self.apply_if(GROUP, remote)
    }

    /// Removes all keys of a list, the last one first.
    fn remove<R: Remote>(&mut self, list: &List, remote: &mut R) -> Result<(), AdaptiveError<R::Error>> {
        for rank in (0..list.keys.len()).rev() {
            self.keys.push(list.keys.get(rank));
            self.places.push((list.address, Some(rank)));
        }
        self.apply_if(GROUP, remote)
    }

    /// Makes the changes if there are at least so many.
    fn apply_if<R: Remote>(&mut self, enough: usize, remote: &mut R) -> Result<(), AdaptiveError<R::Error>> {
        if self.places.len() < enough {
            return Ok(());
        }
        let change = |(&(address, rank), key)| match rank {
            None => Change::Push { address, key },
            Some(rank) => Change::Remove { address, rank, key },
        };
        let changes: Vec<Change<'_>> = self.places.iter().zip(self.keys.iter()).map(change).collect();
        remote.apply(&changes).map_err(AdaptiveError::Remote)?;
        self.keys.clear();
        self.places.clear();
        Ok(())
    }

    pub(crate) fn finish<R: Remote>(mut self, remote: &mut R) -> Result<(), AdaptiveError<R::Error>> {
        self.apply_if(1, remote)
    }
}

impl<S: Scheme, H: KeyHasher> Core<S, H> {
    /// [`grow`](Self::grow) with lists under new addresses.
    pub(super) fn grow_and_renew<R: Remote>(
        &mut self,
        slots: u64,
        capacity: usize,
        remote: &mut R,
    ) -> Result<(), AdaptiveError<R::Error>> {
        self.sweep(remote)?;
        let addresses = self.addresses.renewed();
        let (mut doubling, mut group) = (Doubling::new(self, slots)?, Group::default());
        let mut last = None;
        for (quotient, _) in self.table.runs() {
            let address = self.addresses.of(quotient);
            if last.replace(address) == Some(address) {
                continue;
            }
            let list = self.read(quotient, remote)?;
            doubling.take(&list)?;
            for (key, &digest) in list.keys.iter().zip(&list.digests) {
                group.push(addresses.of(doubling.locate(digest).0), key, remote)?;
            }
        }
        group.finish(remote)?;
        let doubled = doubling.finish();
        self.become_doubled(doubled, addresses, capacity);
        // The filter has grown, whatever comes of this. What cannot be removed now is when lists are renewed again.
        let _ = self.sweep(remote);
        Ok(())
    }

    /// Removes all lists of other generations.
    fn sweep<R: Remote>(&self, remote: &mut R) -> Result<(), AdaptiveError<R::Error>> {
        // In portions of a few bits per slot, so that neither memory nor the number of scans gets large.
        let portion = (self.table.slots() / 16) as usize;
        sweep(&|address| self.addresses.is_stale(address), portion, &self.hasher, remote)
    }
}

/// Removes all lists whose addresses are stale, in portions of about so many.
pub(crate) fn sweep<R: Remote>(
    is_stale: &impl Fn(u64) -> bool,
    portion: usize,
    hasher: &impl KeyHasher,
    remote: &mut R,
) -> Result<(), AdaptiveError<R::Error>> {
    let portion = portion.max(PORTION);
    let mut after = None;
    loop {
        let stale = stale_addresses(is_stale, after, portion, remote)?;
        let mut group = Group::default();
        for &address in &stale {
            group.remove(&List::read(address, hasher, remote)?, remote)?;
        }
        group.finish(remote)?;
        if stale.len() < portion {
            return Ok(());
        }
        after = stale.last().copied();
    }
}

/// The first addresses behind `after` that are stale and have keys.
fn stale_addresses<R: Remote>(
    is_stale: &impl Fn(u64) -> bool,
    after: Option<u64>,
    count: usize,
    remote: &mut R,
) -> Result<Vec<u64>, AdaptiveError<R::Error>> {
    let mut stale = Vec::new();
    let visit = &mut |address: u64, _: &[u8]| {
        if is_stale(address) && stale.last().copied().or(after) < Some(address) {
            stale.push(address);
        }
        if stale.len() < count { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    remote.scan(visit).map_err(AdaptiveError::Remote)?;
    Ok(stale)
}
