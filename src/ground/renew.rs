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
//! - `verify_remote` reports them, as every key that no item stands for;
//! - `resync` of such an address removes what is there. A key from there is used only where an item would have none
//!   otherwise: it may have been removed from the filter since.

use std::ops::ControlFlow;

use crate::{AdaptiveError, Change, Remote};

use super::grow::take;
use super::keys::{Keys, List};
use super::list::{self, Addresses};
use super::{Filling, Listed};

/// Changes that go to the remote in one group; a list that is removed stays whole.
const GROUP: usize = 256;

/// Addresses of lists that were left behind are taken up in portions of at least so many.
const PORTION: usize = 1 << 12;

/// Changes that wait until there are enough of them.
#[derive(Default)]
struct Group {
    keys: Keys,
    /// The address of each key, and its rank if it is to be removed.
    places: Vec<(u64, Option<usize>)>,
}

impl Group {
    fn push<R: Remote>(
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

    fn finish<R: Remote>(mut self, remote: &mut R) -> Result<(), AdaptiveError<R::Error>> {
        self.apply_if(1, remote)
    }
}

/// [`grow`](super::grow()) with lists under new addresses.
pub(super) fn grow_and_renew<G: Listed, R: Remote>(
    ground: &mut G,
    capacity: usize,
    remote: &mut R,
) -> Result<(), AdaptiveError<R::Error>> {
    sweep(ground, remote)?;
    let addresses = ground.addresses().renewed();
    let kept = ground.addresses().kept() + 1;
    let (mut doubled, mut group) = (ground.filling(1, kept, capacity)?, Group::default());
    let mut last = None;
    for address in ground.expected_addresses() {
        if last.replace(address) == Some(address) {
            continue;
        }
        let list = List::read(address, ground.hasher(), remote)?;
        list::check(ground, &list)?;
        take(ground, &list, &mut doubled)?;
        for (key, &digest) in list.keys.iter().zip(&list.digests) {
            group.push(doubled.address(doubled.home(digest), addresses), key, remote)?;
        }
    }
    group.finish(remote)?;
    doubled.complete(ground)?;
    ground.become_filled(doubled, addresses, capacity);
    // The filter has grown, whatever comes of this. What cannot be removed now is when lists are renewed again.
    let _ = sweep(ground, remote);
    Ok(())
}

/// Removes all lists of other generations.
fn sweep<G: Listed, R: Remote>(ground: &G, remote: &mut R) -> Result<(), AdaptiveError<R::Error>> {
    let addresses = ground.addresses();
    // A few bits per key, so that neither memory nor the number of scans gets large.
    let portion = (ground.capacity() / 16).max(PORTION);
    let mut after = None;
    loop {
        let stale = stale_addresses(addresses, after, portion, remote)?;
        let mut group = Group::default();
        for &address in &stale {
            group.remove(&List::read(address, ground.hasher(), remote)?, remote)?;
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
    addresses: Addresses,
    after: Option<u64>,
    count: usize,
    remote: &mut R,
) -> Result<Vec<u64>, AdaptiveError<R::Error>> {
    let mut stale = Vec::new();
    let visit = &mut |address: u64, _: &[u8]| {
        if addresses.is_stale(address) && stale.last().copied().or(after) < Some(address) {
            stale.push(address);
        }
        if stale.len() < count { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    remote.scan(visit).map_err(AdaptiveError::Remote)?;
    Ok(stale)
}
