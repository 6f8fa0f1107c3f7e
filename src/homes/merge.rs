//! Table and remote side by side: two streams in the order of addresses, merged in one pass.
//!
//! Growth fills a table of twice the size so, and every key takes its item along; verification only compares; a filter
//! is built from a scan without items. No random access, nothing written to the remote, and no memory but that of the
//! tables and of the keys of one unit.

use crate::{AdaptiveError, Digest, FullError, Remote, RemoteResult};

use super::keys::visit;
use super::matching::Pairs;
use super::{Filling, Homed};

/// Doubles table and capacity; on an error the filter is as it was.
pub(crate) fn grow<G: Homed, R: Remote>(table: &mut G, remote: &mut R) -> RemoteResult<(), R> {
    let full = FullError { len: table.len(), capacity: table.capacity() };
    let capacity = table.capacity().checked_mul(2).filter(|_| table.can_double(1)).ok_or(full)?;
    let mut doubled = table.filling(1, capacity)?;
    merge(table, remote, &mut |digest, item| doubled.take(digest, item, table))?;
    doubled.complete()?;
    table.become_filled(doubled, capacity);
    Ok(())
}

/// Checks that every key of the remote has an item of its own, and every item a key.
pub(crate) fn verify_remote<G: Homed, R: Remote>(table: &G, remote: &mut R) -> RemoteResult<(), R> {
    merge(table, remote, &mut |digest, item| match item {
        Some(_) => Ok(()),
        None => Err(AdaptiveError::Inconsistent { address: digest.hi, expected: 0, found: 1 }),
    })
}

/// What is done with each key, and the item that it has.
type Merge<'v, G, E> = dyn FnMut(Digest, Option<<G as Homed>::Item>) -> Result<(), AdaptiveError<E>> + 'v;

/// Calls `take` with every key of the remote and its item, in the order of addresses. An item that has no key is an
/// error.
fn merge<G: Homed, R: Remote>(
    table: &G,
    remote: &mut R,
    take: &mut Merge<'_, G, R::Error>,
) -> RemoteResult<(), R> {
    let homes = table.homes();
    let mut unit = Unit { number: 0, keys: Vec::new(), items: Vec::new(), pairs: Pairs::default(), used: 0 };
    visit(0..=u64::MAX, table.hasher(), remote, &mut |digest, _| {
        let number = homes.unit_of(digest.hi);
        if number != unit.number {
            unit.flush(table, take)?;
            unit.number = number;
        }
        unit.keys.push((homes.of(digest.hi), digest));
        Ok(())
    })?;
    unit.flush(table, take)?;
    let (expected, found) = (table.len(), unit.used);
    if found == expected { Ok(()) } else { Err(AdaptiveError::Inconsistent { address: 0, expected, found }) }
}

/// The keys and items of one unit.
struct Unit<I> {
    number: u64,
    /// With their homes.
    keys: Vec<(u64, Digest)>,
    items: Vec<(u64, I)>,
    pairs: Pairs,
    /// How many items had a key, in all units.
    used: usize,
}

impl<I: Copy> Unit<I> {
    /// Pairs keys and items, which both ascend by home.
    fn flush<G: Homed<Item = I>, E>(
        &mut self,
        table: &G,
        take: &mut Merge<'_, G, E>,
    ) -> Result<(), AdaptiveError<E>> {
        if self.keys.is_empty() {
            return Ok(());
        }
        self.items.clear();
        table.items_of_unit(self.number, &mut self.items);
        let mut items = &self.items[..];
        for keys in self.keys.chunk_by(|one, other| one.0 == other.0) {
            let home = keys[0].0;
            while let [(before, _), rest @ ..] = items
                && *before < home
            {
                items = rest;
            }
            let (own, rest) = items.split_at(items.iter().take_while(|item| item.0 == home).count());
            items = rest;
            if let (&[(_, key)], &[(_, item)]) = (keys, own) {
                let item = Some(item).filter(|&item| table.accepts(item, key));
                self.used += usize::from(item.is_some());
                take(key, item)?;
                continue;
            }
            let accepts = |key: usize, item: usize| table.accepts(own[item].1, keys[key].1);
            for (&(_, key), item) in keys.iter().zip(self.pairs.find(keys.len(), own.len(), accepts)) {
                self.used += usize::from(item.is_some());
                take(key, item.map(|item| own[item].1))?;
            }
        }
        self.keys.clear();
        Ok(())
    }
}

/// The empty filter with all keys of a remote, which is only read: once if its capacity suffices, else twice. One that
/// can grow is as large then as if it had.
pub(crate) fn from_sorted<G: Homed, R: Remote>(mut empty: G, remote: &mut R) -> RemoteResult<G, R> {
    let mut doublings = 0;
    loop {
        let capacity = empty.capacity() << doublings;
        let mut filling = empty.filling(doublings, capacity)?;
        let mut keys = 0;
        visit(0..=u64::MAX, empty.hasher(), remote, &mut |digest, _| {
            keys += 1;
            // Those that do not fit are counted.
            if keys <= capacity { filling.take(digest, None, &empty) } else { Ok(()) }
        })?;
        if keys <= capacity {
            filling.complete()?;
            empty.become_filled(filling, capacity);
            return Ok(empty);
        }
        let full = FullError { len: keys, capacity };
        let fits = |&more: &u32| empty.capacity().checked_mul(1 << more).is_none_or(|room| room >= keys);
        let enough = (doublings + 1..usize::BITS).find(fits).filter(|&more| empty.can_double(more));
        doublings = enough.filter(|_| empty.is_growable()).ok_or(full)?;
    }
}
