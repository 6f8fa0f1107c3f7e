//! Insertion, removal and repair: what is to change is worked out first, then the remote is told, then memory changes,
//! which cannot fail.

use crate::{Adaptation, AdaptiveError, Change, Digest, FullError, KeyHasher, Remote, RemoteResult};

use super::keys::Seen;
use super::matching::pair;
use super::{Homed, grow};

/// Inserts a key that one look at its block or line did not suffice for; `false` if it was stored before.
#[inline(never)]
pub(crate) fn insert_anywhere<G: Homed, R: Remote>(
    table: &mut G,
    digest: Digest,
    key: &[u8],
    remote: &mut R,
) -> RemoteResult<bool, R> {
    if has_item(table, digest, key, remote)? {
        return Ok(false);
    }
    insert_new(table, digest, key, remote)?;
    Ok(true)
}

/// Inserts a key that is not stored. Reads nothing unless the filter has to grow.
#[inline]
pub(crate) fn insert_new<G: Homed, R: Remote>(
    table: &mut G,
    digest: Digest,
    key: &[u8],
    remote: &mut R,
) -> RemoteResult<(), R> {
    let changes = [Change::Insert { address: digest.hi, key }];
    if table.len() >= table.capacity() {
        make_room(table, remote)?;
        // Its row may have been there already. Then it came along.
        if has_item(table, digest, key, remote)? {
            return super::tell(&changes, remote);
        }
    }
    table.insert_item(digest, &changes, remote)
}

/// Lets a full filter grow, if it may.
#[cold]
pub(super) fn make_room<G: Homed, R: Remote>(table: &mut G, remote: &mut R) -> RemoteResult<(), R> {
    if !table.is_growable() {
        return Err(FullError { len: table.len(), capacity: table.capacity() }.into());
    }
    grow(table, remote)
}

/// Whether a key has an item of its own. The pairing answers that: its row may be there although the filter has never
/// heard of it, so of the keys of its home it is the last to be given an item.
fn has_item<G: Homed, R: Remote>(
    table: &G,
    digest: Digest,
    key: &[u8],
    remote: &mut R,
) -> RemoteResult<bool, R> {
    if !table.contains_digest(digest) {
        return Ok(false);
    }
    let home = Home::read(table, digest, key, remote)?;
    // A key that the remote does not have is new, whatever accepts it: one item more is never one too few.
    Ok(home.has_key && home.item_of_key().is_some())
}

/// Removes a key; `false` if it was not stored.
pub(crate) fn remove<G: Homed, R: Remote>(
    table: &mut G,
    key: &[u8],
    remote: &mut R,
) -> RemoteResult<bool, R> {
    let digest = table.hasher().digest(key);
    if !table.contains_digest(digest) {
        return Ok(false);
    }
    let home = Home::read(table, digest, key, remote)?;
    if !home.has_key {
        return Ok(false);
    }
    let changes = [Change::Remove { address: digest.hi, key }];
    let Some(item) = home.item_of_key() else {
        // The filter has never heard of it.
        super::tell(&changes, remote)?;
        return Ok(false);
    };
    let accepting = accepting(table, &home.items, digest);
    let item = match dispensable::<G>(&home.items, &accepting) {
        Some(item) => item,
        None if home.spare_items() == 0 => item,
        None => return Err(home.inconsistent()),
    };
    table.remove_item(home.number, item, &changes, remote)?;
    Ok(true)
}

/// Removes a key that is stored, which the caller knows; `false` if no item accepts it. Reads only where which item
/// goes depends on the other keys.
pub(crate) fn remove_stored<G: Homed, R: Remote>(
    table: &mut G,
    key: &[u8],
    remote: &mut R,
) -> RemoteResult<bool, R> {
    let digest = table.hasher().digest(key);
    let number = table.homes().of(digest.hi);
    let items = table.items(number);
    let accepting = accepting(table, &items, digest);
    if accepting.is_empty() {
        return Ok(false);
    }
    let item = match dispensable::<G>(&items, &accepting) {
        Some(item) => item,
        None => {
            let home = Home::read(table, digest, key, remote)?;
            let item = home.item_of_key().filter(|_| home.spare_items() == 0);
            item.ok_or_else(|| home.inconsistent())?
        }
    };
    table.remove_item(number, item, &[Change::Remove { address: digest.hi, key }], remote)?;
    Ok(true)
}

/// Which items accept a key.
fn accepting<G: Homed>(table: &G, items: &[G::Item], digest: Digest) -> Vec<usize> {
    (0..items.len()).filter(|&item| table.accepts(items[item], digest)).collect()
}

/// Which of some items can go when a key that all of them accept is removed; `None` if that depends on the other keys.
fn dispensable<G: Homed>(items: &[G::Item], accepting: &[usize]) -> Option<usize> {
    match *accepting {
        [only] => Some(only),
        _ => {
            let items: Vec<G::Item> = accepting.iter().map(|&item| items[item]).collect();
            G::dispensable(&items).map(|item| accepting[item])
        }
    }
}

/// Repairs a false positive.
pub(crate) fn adapt<G: Homed, R: Remote>(
    table: &mut G,
    key: &[u8],
    remote: &mut R,
) -> RemoteResult<Adaptation, R> {
    let digest = table.hasher().digest(key);
    if !table.contains_digest(digest) {
        return Ok(Adaptation::NotFalsePositive);
    }
    let home = table.homes().of(digest.hi);
    let seen = Seen::read(table.homes().addresses(home), Some(key), table.hasher(), remote)?;
    if seen.has_key {
        return Ok(Adaptation::NotFalsePositive);
    }
    let (_, item_of) = paired(table, home, &seen.others);
    // Keys that the filter has never heard of could take the items of those that are stored: each must have its own.
    for (&unknown, _) in seen.others.iter().zip(&item_of).filter(|(_, item)| item.is_none()) {
        take_in(table, unknown, remote)?;
    }
    let stored = keys_of_items(table, home, &seen.others)?;
    table.repair(home, &stored, digest, remote)
}

/// Gives a key that the remote has already, and the filter has not, an item.
pub(super) fn take_in<G: Homed, R: Remote>(
    table: &mut G,
    digest: Digest,
    remote: &mut R,
) -> RemoteResult<(), R> {
    // A filter that can grow does so at the next insertion.
    if table.len() >= table.capacity() && !table.is_growable() {
        return Err(FullError { len: table.len(), capacity: table.capacity() }.into());
    }
    table.insert_item(digest, &[], remote)
}

/// The keys of all items of a home, by item. An item without one is in question.
fn keys_of_items<G: Homed, E>(
    table: &G,
    home: u64,
    keys: &[Digest],
) -> Result<Vec<Digest>, AdaptiveError<E>> {
    let (items, item_of) = paired(table, home, keys);
    let mut key_of = vec![None; items.len()];
    for (&digest, item) in keys.iter().zip(item_of) {
        item.into_iter().for_each(|item| key_of[item] = Some(digest));
    }
    let address = *table.homes().addresses(home).start();
    let inconsistent = AdaptiveError::Inconsistent { address, expected: items.len(), found: keys.len() };
    key_of.into_iter().collect::<Option<Vec<Digest>>>().ok_or(inconsistent)
}

/// The keys of all items of a home, by item, as the remote has them.
pub(crate) fn paired_in<G: Homed, R: Remote>(
    table: &G,
    home: u64,
    remote: &mut R,
) -> RemoteResult<Vec<Digest>, R> {
    let seen = Seen::read(table.homes().addresses(home), None, table.hasher(), remote)?;
    keys_of_items(table, home, &seen.others)
}

/// The items of a home, and which of them is whose.
pub(super) fn paired<G: Homed>(table: &G, home: u64, keys: &[Digest]) -> (Vec<G::Item>, Vec<Option<usize>>) {
    let items = table.items(home);
    let item_of = pair(keys.len(), items.len(), |key, item| table.accepts(items[item], keys[key]));
    (items, item_of)
}

/// A home with its keys, as the remote has them, paired.
struct Home<I> {
    number: u64,
    address: u64,
    /// Whether the remote has the key that was looked for.
    has_key: bool,
    /// All other keys of the remote, and that one last.
    keys: Vec<Digest>,
    items: Vec<I>,
    /// By key.
    item_of: Vec<Option<usize>>,
}

impl<I: Copy> Home<I> {
    /// Reads the home of a key, and pairs all other keys, then that one.
    fn read<G: Homed<Item = I>, R: Remote>(
        table: &G,
        digest: Digest,
        key: &[u8],
        remote: &mut R,
    ) -> RemoteResult<Self, R> {
        let number = table.homes().of(digest.hi);
        let addresses = table.homes().addresses(number);
        let address = *addresses.start();
        let Seen { others: mut keys, has_key } = Seen::read(addresses, Some(key), table.hasher(), remote)?;
        keys.push(digest);
        let (items, item_of) = paired(table, number, &keys);
        Ok(Self { number, address, has_key, keys, items, item_of })
    }

    /// The item of the key that was looked for.
    fn item_of_key(&self) -> Option<usize> {
        self.item_of.last().copied().flatten()
    }

    /// How many items have no key.
    fn spare_items(&self) -> usize {
        self.items.len() - self.item_of.iter().flatten().count()
    }

    fn inconsistent<E>(&self) -> AdaptiveError<E> {
        AdaptiveError::Inconsistent {
            address: self.address,
            expected: self.items.len(),
            found: self.keys.len(),
        }
    }
}
