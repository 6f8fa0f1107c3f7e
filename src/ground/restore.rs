//! A filter from the lists that a remote has of it: the way back when its file is lost.

use std::ops::ControlFlow;

use crate::{AdaptiveError, FullError, KeyHasher, Remote};

use super::grow::MAX_KEPT;
use super::keys::{List, scan_lists};
use super::list::Addresses;
use super::{Filling, Listed, Moved};

/// The empty filter with the keys that the remote has for it, which is only read: twice.
pub(crate) fn restore<G: Listed, R: Remote>(
    mut empty: G,
    remote: &mut R,
) -> Result<G, AdaptiveError<R::Error>> {
    let Some((doublings, addresses)) = measure(&empty, remote)? else { return Ok(empty) };
    let capacity = empty.capacity() << doublings;
    let mut filling = empty.filling(doublings, addresses.kept(), capacity)?;
    scan_lists(empty.hasher(), |_| 0, remote, &mut |list| take(&empty, list, addresses, &mut filling))?;
    filling.complete(&empty)?;
    empty.become_filled(filling, addresses, capacity);
    Ok(empty)
}

/// What one look over a remote tells.
#[derive(Default)]
struct Seen {
    keys: usize,
    /// The last address, and its last key.
    last: u64,
    last_key: Vec<u8>,
}

impl Seen {
    fn look_over<R: Remote>(remote: &mut R) -> Result<Self, AdaptiveError<R::Error>> {
        let mut seen = Self::default();
        let visit = &mut |address: u64, key: &[u8]| {
            (seen.keys, seen.last) = (seen.keys + 1, address);
            key.clone_into(&mut seen.last_key);
            ControlFlow::Continue(())
        };
        remote.scan(visit).map_err(AdaptiveError::Remote)?;
        Ok(seen)
    }
}

/// How often the filter had doubled, and which addresses it had, when it wrote the lists; `None` without any.
///
/// A list keeps its address for [`MAX_KEPT`] doublings and is written anew with the next: so the addresses say how often
/// that happened, and the number of keys how often the filter has doubled since.
fn measure<G: Listed, R: Remote>(
    empty: &G,
    remote: &mut R,
) -> Result<Option<(u32, Addresses)>, AdaptiveError<R::Error>> {
    let Seen { keys, last, last_key } = Seen::look_over(remote)?;
    if keys == 0 {
        return Ok(None);
    }
    let ((generation, below), capacity) = (Addresses::parts(last), empty.capacity());
    let (units, class_bits) = empty.units();
    let fits = |times: u32| empty.can_double(times) && capacity.checked_mul(1 << times).is_some();
    let mut doublings = 0;
    while fits(doublings) && below >> class_bits >= units << doublings {
        doublings += MAX_KEPT + 1;
    }
    let mut kept = 0;
    while fits(doublings + kept) && kept < MAX_KEPT && capacity << (doublings + kept) < keys {
        kept += 1;
    }
    let grown = doublings + kept;
    if !fits(grown) || capacity << grown < keys || (grown > 0 && !empty.is_growable()) {
        return Err(FullError { len: keys, capacity }.into());
    }
    // An address that is far too large would ask for as much memory: it must be that of its key.
    let product = u128::from(empty.hasher().digest(&last_key).hi) * u128::from(units << doublings);
    if (product >> 64) as u64 != below >> class_bits {
        return Err(AdaptiveError::Inconsistent { address: last, expected: 0, found: 1 });
    }
    Ok(Some((grown, Addresses::new(generation, kept))))
}

/// Takes the keys of one list, each of which must belong there.
fn take<G: Listed, E>(
    empty: &G,
    list: &List,
    addresses: Addresses,
    filling: &mut G::Filling,
) -> Result<(), AdaptiveError<E>> {
    let item = G::Item::default();
    let keys = list.digests.iter().map(|&digest| Moved { home: filling.home(digest), digest, item });
    let mut keys: Vec<Moved<G>> = keys.collect();
    let (address, found) = (list.address, list.keys.len());
    let expected = keys.iter().filter(|key| filling.address(key.home, addresses) == address).count();
    if expected < found || list.has_duplicates() {
        return Err(AdaptiveError::Inconsistent { address, expected, found });
    }
    keys.sort_by_key(|key| key.home);
    filling.take(&keys, empty)
}
