//! Insertion, removal and repair: what is to change is worked out first, then the remote is told, then memory changes, which
//! cannot fail.

use crate::{Adaptation, AdaptiveError, Change, Digest, FullError, KeyHasher, Remote};

use super::keys::List;
use super::list::{self, address_of, members_of};
use super::{Listed, grow};

/// Inserts a key that one look at its block or line did not suffice for; `false` if it was stored before.
#[inline(never)]
pub(crate) fn insert_anywhere<G: Listed, R: Remote>(
    ground: &mut G,
    digest: Digest,
    key: &[u8],
    remote: &mut R,
) -> Result<bool, AdaptiveError<R::Error>> {
    if ground.contains_digest(digest) && is_listed(ground, digest, key, remote)? {
        return Ok(false);
    }
    if ground.len() >= ground.capacity() {
        if !ground.is_growable() {
            return Err(FullError { len: ground.len(), capacity: ground.capacity() }.into());
        }
        grow(ground, remote)?;
    }
    ground.insert_new(digest, key, remote)?;
    Ok(true)
}

/// Whether a key that some item accepts is the one that it holds.
fn is_listed<G: Listed, R: Remote>(
    ground: &G,
    digest: Digest,
    key: &[u8],
    remote: &mut R,
) -> Result<bool, AdaptiveError<R::Error>> {
    let list = List::read(address_of(ground, digest), ground.hasher(), remote)?;
    // A remote that stores nothing at all may be inserted into: one key more is never one too few.
    if list.keys.len() > 0 {
        list::check(ground, &list)?;
    }
    Ok(list.rank(key).is_some())
}

/// Removes a key; `false` if it was not stored.
pub(crate) fn remove<G: Listed, R: Remote>(
    ground: &mut G,
    key: &[u8],
    remote: &mut R,
) -> Result<bool, AdaptiveError<R::Error>> {
    let digest = ground.hasher().digest(key);
    if !ground.contains_digest(digest) {
        return Ok(false);
    }
    let home = ground.home(digest);
    let list = list::read(ground, home, remote)?;
    let Some(rank) = list.rank(key) else { return Ok(false) };
    let before = members_of(ground, &list, home).take_while(|&(other, _)| other < rank).count();
    ground.remove_item(home, before, Change::Remove { address: list.address, rank, key }, remote)?;
    Ok(true)
}

/// Repairs a false positive.
pub(crate) fn adapt<G: Listed, R: Remote>(
    ground: &mut G,
    key: &[u8],
    remote: &mut R,
) -> Result<Adaptation, AdaptiveError<R::Error>> {
    let digest = ground.hasher().digest(key);
    if !ground.contains_digest(digest) {
        return Ok(Adaptation::NotFalsePositive);
    }
    let home = ground.home(digest);
    let list = list::read(ground, home, remote)?;
    if list.rank(key).is_some() {
        return Ok(Adaptation::NotFalsePositive);
    }
    let stored: Vec<Digest> = members_of(ground, &list, home).map(|(_, digest)| digest).collect();
    ground.repair(home, &stored, digest, remote)
}
