//! Settling: table and remote are brought together where they may differ.

use std::ops::RangeInclusive;

use crate::{Authority, Digest, Remote, RemoteResult, Settled};

use super::Homed;
use super::keys::visit;
use super::update::{paired, take_in};

/// The units whose keys are read at once: enough to make a long range worth its reads, few enough to keep.
const UNITS: u64 = 1024;

/// Gives every key that the remote has in a range an item. Items without a key go if the read is authoritative.
pub(crate) fn settle<G: Homed, R: Remote>(
    table: &mut G,
    addresses: RangeInclusive<u64>,
    authority: Authority,
    remote: &mut R,
) -> RemoteResult<Settled, R> {
    let homes = table.homes();
    let [first, last] = [*addresses.start(), *addresses.end()].map(|address| homes.unit(homes.of(address)));
    let mut slots = 0;
    for start in (first..=last).step_by(UNITS as usize) {
        let units = start..=last.min(start.saturating_add(UNITS - 1));
        let mut digests = Vec::new();
        visit(homes.of_units(units.clone()), table.hasher(), remote, &mut |digest, _| {
            digests.push(digest);
            Ok(())
        })?;
        for (home, keys) in by_home(table, units, &digests) {
            slots += settle_home(table, home, keys, authority, remote)?;
        }
    }
    Ok(if slots == 0 { Settled::Agreed } else { Settled::InQuestion { slots } })
}

/// The homes of some units that have keys or items, with their keys.
fn by_home<'k, G: Homed>(
    table: &G,
    units: RangeInclusive<u64>,
    digests: &'k [Digest],
) -> Vec<(u64, &'k [Digest])> {
    let homes = table.homes();
    let home_of = |digest: &Digest| homes.of(digest.hi);
    let keys = digests.chunk_by(|one, other| home_of(one) == home_of(other));
    let mut by_home: Vec<(u64, &[Digest])> = keys.map(|keys| (home_of(&keys[0]), keys)).collect();
    let mut items = Vec::new();
    units.for_each(|unit| table.items_of_unit(unit, &mut items));
    by_home.extend(items.into_iter().map(|(home, _)| (home, &[][..])));
    // Of a home with keys the entry with the keys comes first.
    by_home.sort_by_key(|&(home, keys)| (home, keys.is_empty()));
    by_home.dedup_by_key(|&mut (home, _)| home);
    by_home
}

/// Settles one home. How many of its items stay without a key.
fn settle_home<G: Homed, R: Remote>(
    table: &mut G,
    home: u64,
    keys: &[Digest],
    authority: Authority,
    remote: &mut R,
) -> RemoteResult<usize, R> {
    let (items, item_of) = paired(table, home, keys);
    let mut spare: Vec<usize> = (0..items.len()).filter(|&item| !item_of.contains(&Some(item))).collect();
    let unknown = keys.iter().zip(&item_of).filter(|(_, item)| item.is_none());
    // The last one first, so that the others stay where they are.
    while authority == Authority::Authoritative
        && let Some(item) = spare.pop()
    {
        table.remove_item(home, item, &[], remote)?;
    }
    for (&digest, _) in unknown {
        take_in(table, digest, remote)?;
    }
    Ok(spare.len())
}
