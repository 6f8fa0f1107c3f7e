//! The way back for a few addresses: makes filter and lists agree where a failed operation may have changed one of them.
//!
//! The keys of the lists are matched with the items. If every item has a key, the homes are written anew in the order of
//! the lists: a key that was matched keeps the value of its item, one that the filter did not know gets the initial one.
//! In the lists, keys that stand twice or do not belong there are removed, and keys that were found elsewhere only are
//! pushed; the pushes come first, so that a group which was made by half loses nothing. All of this happens to a copy of
//! the filter, which takes its place when the remote has been told.

use std::collections::BTreeMap;

use crate::{AdaptiveError, Change, Digest, Remote, Resync};

use super::keys::List;
use super::list::{address_of, check, inconsistent};
use super::matching::match_slots;
use super::{Agreed, Listed, Settled};

/// Keys that belong elsewhere are followed to their own lists so often. What is still not at home then was never written
/// by this filter.
const ROUNDS: usize = 4;

type Lists = BTreeMap<u64, List>;

/// A key that the filter is going to have.
struct Member<'l> {
    key: &'l [u8],
    digest: Digest,
    /// Whether its own list has it.
    listed: bool,
    /// Whether it was seen in lists of another generation only.
    stale: bool,
}

/// The keys of each home in question, in the order that its items are going to have.
type Members<'l, G> = BTreeMap<<G as Listed>::Home, Vec<Member<'l>>>;

/// Makes filter and lists agree at these addresses, as far as the lists have a key for every item.
pub(crate) fn resync<G: Listed, R: Remote>(
    ground: &mut G,
    addresses: &[u64],
    remote: &mut R,
) -> Result<Resync, AdaptiveError<R::Error>> {
    let lists = gather(ground, addresses, remote)?;
    if lists.values().all(|list| check::<G, R::Error>(ground, list).is_ok()) {
        return Ok(Resync::Agreed);
    }
    let mut members = sort_out(ground, &lists);
    let (mut agreed, mut unexplained) = (Agreed::<G>::new(), 0);
    for (&home, members) in &mut members {
        let (settled, missing) = explain(ground, home, members);
        agreed.insert(home, settled);
        unexplained += missing;
    }
    if unexplained > 0 {
        return Ok(Resync::InQuestion { slots: unexplained });
    }
    let copied = ground.with_items(&agreed, remote)?;
    let changes = corrections(ground, &lists, &members);
    if !changes.is_empty() {
        remote.apply(&changes).map_err(AdaptiveError::Remote)?;
    }
    *ground = copied;
    Ok(Resync::Agreed)
}

/// Reads these lists, and those that their keys belong to.
fn gather<G: Listed, R: Remote>(
    ground: &G,
    addresses: &[u64],
    remote: &mut R,
) -> Result<Lists, AdaptiveError<R::Error>> {
    let (mut lists, mut wanted) = (Lists::new(), addresses.to_vec());
    for _ in 0..ROUNDS {
        let mut own = Vec::new();
        for address in wanted {
            if lists.contains_key(&address) {
                continue;
            }
            let list = List::read(address, ground.hasher(), remote)?;
            own.extend(list.digests.iter().map(|&digest| address_of(ground, digest)));
            lists.insert(address, list);
        }
        wanted = own;
    }
    match wanted.into_iter().find(|address| !lists.contains_key(address)) {
        Some(address) => Err(inconsistent(ground, address, 0)),
        None => Ok(lists),
    }
}

/// The keys of every home that has one of these addresses: first those of its own list, in order, then the others. Homes that
/// have items and no key are there too.
fn sort_out<'l, G: Listed>(ground: &G, lists: &'l Lists) -> Members<'l, G> {
    let mut members = Members::<G>::new();
    for &address in lists.keys() {
        ground.all_items(address, |home, _| {
            members.entry(home).or_default();
            true
        });
    }
    for at_home in [true, false] {
        for list in lists.values() {
            let stale = ground.addresses().is_stale(list.address);
            for (key, &digest) in list.keys.iter().zip(&list.digests) {
                if (address_of(ground, digest) == list.address) != at_home {
                    continue;
                }
                let members = members.entry(ground.home(digest)).or_default();
                match members.iter_mut().find(|member| member.key == key) {
                    Some(member) => member.stale &= stale,
                    None => members.push(Member { key, digest, listed: at_home, stale }),
                }
            }
        }
    }
    members
}

/// Finds a key for every item of a home. Keeps the keys that the home is going to have, and returns them with their items, and
/// how many items have no key.
fn explain<G: Listed>(
    ground: &G,
    home: G::Home,
    members: &mut Vec<Member<'_>>,
) -> (Vec<Settled<G::Item>>, usize) {
    let mut items = Vec::new();
    ground.all_items(ground.address(home), |other, item| {
        items.extend((other == home).then_some(item));
        true
    });
    let accepts = |item: usize, member: usize| ground.accepts(items[item], members[member].digest);
    let matched = match_slots(items.len(), members.len(), accepts);
    let mut item_of = vec![None; members.len()];
    for (&item, &member) in items.iter().zip(&matched) {
        member.into_iter().for_each(|member| item_of[member] = Some(item));
    }
    let (mut settled, mut item_of) = (Vec::with_capacity(members.len()), item_of.into_iter());
    members.retain(|member| {
        let item = item_of.next().flatten();
        // A key that was left behind is taken only where an item would have none.
        let needed = item.is_some() || !member.stale;
        settled.extend(needed.then_some(Settled { digest: member.digest, item }));
        needed
    });
    (settled, matched.iter().filter(|member| member.is_none()).count())
}

/// What is to change in the lists.
fn corrections<'l, G: Listed>(ground: &G, lists: &'l Lists, members: &Members<'l, G>) -> Vec<Change<'l>> {
    let mut changes = Vec::new();
    for (&home, members) in members {
        let address = ground.address(home);
        let unlisted = members.iter().filter(|member| !member.listed);
        changes.extend(unlisted.map(|member| Change::Push { address, key: member.key }));
    }
    for (&address, list) in lists {
        // The last rank first, so that the others stay right. Of a key that stands twice the first one stays.
        for rank in (0..list.keys.len()).rev() {
            let key = list.keys.get(rank);
            if address_of(ground, list.digests[rank]) != address || list.rank(key) != Some(rank) {
                changes.push(Change::Remove { address, rank, key });
            }
        }
    }
    changes
}
