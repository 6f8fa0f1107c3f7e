//! Growth: a table of twice the size, filled again from one scan of the remote.
//!
//! A doubling writes nothing to the remote, because lists keep their addresses (see `list`). It reads every list once, in
//! the order of addresses, which is the order in which a table is filled; so it needs the memory of both tables and of one
//! list. After [`MAX_KEPT`] doublings the next one goes another way (see `renew`).

use crate::{AdaptiveError, FullError, Remote};

use super::keys::List;
use super::list::{Stale, members, scan};
use super::renew::grow_and_renew;
use super::{Filling, Listed, Moved};

/// How many doublings leave the lists where they are. A list has the keys of 8 quotients then, which is still one short
/// read: with lists in memory a removal takes a tenth longer than from lists of 2. A renewal, which writes every key, takes
/// three times as long as a doubling there, and happens at one in four.
pub(crate) const MAX_KEPT: u32 = 3;

/// Doubles table and capacity; on an error the filter is as it was.
pub(crate) fn grow<G: Listed, R: Remote>(
    ground: &mut G,
    remote: &mut R,
) -> Result<(), AdaptiveError<R::Error>> {
    let full = FullError { len: ground.len(), capacity: ground.capacity() };
    let capacity = ground.capacity().checked_mul(2).filter(|_| ground.can_double(1)).ok_or(full)?;
    if ground.addresses().kept() >= MAX_KEPT {
        return grow_and_renew(ground, capacity, remote);
    }
    let addresses = ground.addresses().doubled();
    let mut doubled = ground.filling(1, addresses.kept(), capacity)?;
    scan(&*ground, remote, Stale::Skipped, &mut |list| take(&*ground, list, &mut doubled))?;
    doubled.complete(ground)?;
    ground.become_filled(doubled, addresses, capacity);
    Ok(())
}

/// Moves the keys of a list, which was checked.
pub(super) fn take<G: Listed, E>(
    ground: &G,
    list: &List,
    doubled: &mut G::Filling,
) -> Result<(), AdaptiveError<E>> {
    let members = members(ground, list);
    let (mut members, mut moved) = (members.iter(), Vec::with_capacity(members.len()));
    ground.all_items(list.address, |_, item| {
        let digests = members.next().map(|&(_, rank)| list.digests[rank]);
        moved.extend(digests.map(|digest| Moved { home: doubled.home(digest), digest, item }));
        true
    });
    // Two keys of one new home had one home before: they stay in their order.
    moved.sort_by_key(|moved: &Moved<G>| moved.home);
    doubled.take(&moved, ground)
}
