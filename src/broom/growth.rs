//! Growing and merging: the two operations that read all keys from the remote and write them anew.
//!
//! A fingerprint of a broom filter cannot simply be cut anew, as that of a plain quotient filter can: remainders
//! would lose a bit with every doubling, adaptivity bits would have to take its place, and the addresses in the
//! remote change anyhow. Merging two filters needs the keys for another reason: their fingerprints were made
//! free of prefixes each for itself, and the frontiers stand at different places. So both operations read the keys and
//! insert them into a second filter, under fresh hash functions; neither asks that the seeds of two filters agree.
//!
//! The lists of the second filter have addresses of another **generation** (the upper 16 bits), so that they come to
//! lie beside the old ones. A list is read, its keys are pushed in groups, and nothing else is kept in memory. When all
//! keys are written the second filter takes the place of the first, and the old lists are removed. Whatever fails
//! before that moment leaves the filter and its lists as they were, and whatever fails after it has no say. What such
//! a failure leaves behind in the remote are lists of another generation: no operation reads them, and the next growth,
//! `clear` or `rebuild` removes them.

use crate::filter::Grouped;
use crate::format::{FormatError, flag, in_range};
use crate::quotient::Geometry;
use crate::{AdaptiveError, Change, Growable, KeyHasher, Remote};

use super::core::Core;
use super::ground::Ground;
use super::lists::{self, Outcome};
use super::local::address;

/// Removals that go to the remote in one group.
const GROUP: usize = 256;

/// Lists in the remote that are no longer, or not yet, the filter's: those of all quotients of one generation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Leftovers {
    generation: u16,
    slots: u64,
}

impl Leftovers {
    /// As they are written to files.
    pub(super) fn to_numbers(leftovers: Option<Self>) -> [u64; 3] {
        leftovers.map_or([0; 3], |left| [1, left.generation.into(), left.slots])
    }

    /// As they were written.
    pub(super) fn from_numbers([left, generation, slots]: [u64; 3]) -> Result<Option<Self>, FormatError> {
        let most = if flag("lists left over", left)? { Geometry::MAX_SLOTS } else { 0 };
        let generation = in_range("generation left over", generation, 0..=most.min(u16::MAX.into()))?;
        let slots = in_range("slots left over", slots, left..=most)?;
        Ok((left == 1).then_some(Self { generation, slots }))
    }
}

impl<G: Ground, H: KeyHasher> Core<G, H> {
    /// See [`BroomFilter::merge`](super::BroomFilter::merge).
    pub(super) fn merge<G2: Ground, H2: KeyHasher, R: Remote>(
        &mut self,
        remote: &mut R,
        other: &Core<G2, H2>,
        other_remote: &mut R,
    ) -> Result<(), AdaptiveError<R::Error>> {
        let mut capacity = self.capacity;
        loop {
            let merged = self.become_anew(capacity, remote, |fresh, remote| {
                for quotient in other.quotients() {
                    for stored in other.local.list(quotient, other_remote)? {
                        fresh.insert_in_place(&stored.key, remote)?;
                    }
                }
                Ok(())
            });
            match merged {
                // How many keys both have is not known before.
                Err(AdaptiveError::Full(full)) if self.growable => {
                    capacity = capacity.checked_mul(2).ok_or(full)?;
                }
                merged => return merged,
            }
        }
    }

    /// All quotients that have keys.
    fn quotients(&self) -> impl Iterator<Item = u64> {
        (0..self.local.quotients()).filter(|&quotient| self.local.ground.stored_at(quotient) > 0)
    }

    /// Becomes a filter of this capacity, under hash functions that were never used, for its own keys and those that
    /// `more` inserts.
    fn become_anew<R: Remote>(
        &mut self,
        capacity: usize,
        remote: &mut R,
        more: impl FnOnce(&mut Self, &mut Grouped<'_, R>) -> Outcome<(), R>,
    ) -> Outcome<(), R> {
        self.sweep(remote)?;
        let mut fresh = self.successor(capacity)?;
        // If this fails, the generation has lists that nobody reads.
        self.generations = fresh.generations;
        self.leftovers = Some(fresh.lists());
        let mut grouped = Grouped::new(remote);
        for quotient in self.quotients() {
            for stored in self.local.list(quotient, &mut grouped)? {
                fresh.insert_in_place(&stored.key, &mut grouped)?;
            }
        }
        more(&mut fresh, &mut grouped)?;
        grouped.flush().map_err(AdaptiveError::Remote)?;
        fresh.leftovers = Some(self.lists());
        *self = fresh;
        // It is done. Old lists that cannot be removed now are removed later.
        let _ = self.sweep(remote);
        Ok(())
    }

    /// An empty filter of this capacity whose lists will lie beside those of this one.
    fn successor<E>(&self, capacity: usize) -> Result<Self, AdaptiveError<E>> {
        // A capacity that the hash has no bits for is refused like a key that there is no room for.
        G::columns(self.blueprint, capacity).map_err(|_| self.full())?;
        let mut fresh = self.anew(capacity).map_err(|_| self.local.out_of_memory())?;
        fresh.generations = self.generations.wrapping_add(1);
        fresh.local.generation = fresh.generations;
        (fresh.adaptations, fresh.growths) = (self.adaptations, self.growths);
        Ok(fresh)
    }

    fn lists(&self) -> Leftovers {
        Leftovers { generation: self.local.generation, slots: self.local.quotients() }
    }

    /// Removes the lists that an earlier growth has left behind, if any.
    fn sweep<R: Remote>(&mut self, remote: &mut R) -> Outcome<(), R> {
        let Some(Leftovers { generation, slots }) = self.leftovers else { return Ok(()) };
        let mut group: Vec<(u64, Vec<u8>)> = Vec::with_capacity(GROUP);
        for quotient in 0..slots {
            let address = address(generation, quotient);
            group.extend(lists::read(address, remote)?.into_iter().map(|key| (address, key)));
            if group.len() >= GROUP || quotient + 1 == slots {
                // Each is the first of its list when its turn comes.
                let removals =
                    group.iter().map(|&(address, ref key)| Change::Remove { address, rank: 0, key });
                let changes: Vec<Change<'_>> = removals.collect();
                if !changes.is_empty() {
                    remote.apply(&changes).map_err(AdaptiveError::Remote)?;
                }
                group.clear();
            }
        }
        self.leftovers = None;
        Ok(())
    }
}

impl<G: Ground, H: KeyHasher> Growable for Core<G, H> {
    fn grow<R: Remote>(&mut self, remote: &mut R) -> Result<(), AdaptiveError<R::Error>> {
        let capacity = self.capacity.checked_mul(2).ok_or_else(|| self.full())?;
        self.become_anew(capacity, remote, |_, _| Ok(()))?;
        self.growths += 1;
        Ok(())
    }
}
