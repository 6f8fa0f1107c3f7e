//! The extension filter on cache-line bins.
//!
//! A key's number is cut into a fingerprint, which the table holds, and an endless string behind it:
//!
//! ```text
//! upper half · bins     bin . class | tag | string …      the fraction of the product, as far as it is worth using;
//! lower half            … string                          then rehashed bits
//! ```
//!
//! An item has an *extension*: the first bits of its key's string, none at first. A query is accepted by an item whose
//! fingerprint and extension are its own. Extensions lie beside the bins, known by the ranks of their items
//! ([`Values`]); a bin none of whose items has one takes no more memory than a plain one, and a query there reads no
//! more than the line.
//!
//! | | |
//! |---|---|
//! | queries, and the filter as a whole | this file |
//! | extensions by rank | `bins::values` |
//! | insertion, and what changes in a bin | `update` |
//! | growth; many keys at once | `grow`, `bulk` |
//! | what is the same on every table: homes, removal, repair, the way back | [`table`](crate::homes), by `homed` |
//! | files | `persist` |

mod bulk;
mod grow;
mod homed;
mod persist;
mod runs;
#[cfg(test)]
pub(super) mod tests;
mod update;

use crate::coding::Extension;
use crate::hash_string::HashString;
use crate::quotient::fraction_bits;
use crate::{
    AdaptiveError, BuildError, Digest, FilterStats, InvariantError, Key, KeyHasher, Remote, Seed,
    error::ensure, filter::clear_remote,
};

use super::ahead::{Ahead, Doubts};
use super::builder::Plan;
use super::flagged::Items;
use super::layout::Shape;
use super::line::{Entry, Found};
use super::table::{Place, STEP, Table};
use super::values::Values;

/// An extension filter on bins. See the [module](self).
#[derive(Debug, Clone)]
pub(crate) struct ExtendingBins<H> {
    table: Table,
    values: Values,
    hasher: H,
    capacity: usize,
    growable: bool,
    adaptations: u64,
}

/// What an extension filter on bins is built from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BinParameters {
    pub(crate) capacity: usize,
    pub(crate) rate: f64,
    pub(crate) load: f64,
    pub(crate) growable: bool,
}

impl BinParameters {
    /// A line needs a bit for flags at least.
    fn plan(self) -> Result<Plan, BuildError> {
        Plan::fixed(self.rate, self.load, self.capacity, 1)
    }

    /// The memory of the filter before anything was repaired.
    pub(crate) fn size_in_bits(self) -> Result<usize, BuildError> {
        let Plan { shape, bins, .. } = self.plan()?;
        Ok(Table::size_for_keys(bins, shape, self.capacity))
    }

    pub(crate) fn build<H: KeyHasher>(self, seed: Option<Seed>) -> Result<ExtendingBins<H>, BuildError> {
        let Plan { shape, bins, .. } = self.plan()?;
        let table = Table::for_keys(bins, shape, self.capacity)?;
        let hasher = H::with_seed(seed.unwrap_or_else(Seed::random));
        Ok(ExtendingBins::new(table, hasher, self.capacity, self.growable))
    }
}

impl<H: KeyHasher> ExtendingBins<H> {
    fn new(table: Table, hasher: H, capacity: usize, growable: bool) -> Self {
        let values = Values::new(table.shape().slots);
        Self { table, values, hasher, capacity, growable, adaptations: 0 }
    }

    pub(crate) fn hasher(&self) -> &H {
        &self.hasher
    }

    pub(crate) fn len(&self) -> usize {
        self.table.len
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Where a query looks.
    #[inline(always)]
    pub(crate) fn place(&self, digest: Digest) -> Place {
        self.table.place(digest)
    }

    #[inline(always)]
    pub(crate) fn prefetch(&self, place: Place) {
        self.table.prefetch(place.bin);
    }

    #[inline(always)]
    pub(crate) fn contains_at(&self, place: Place, digest: impl FnOnce() -> Digest) -> bool {
        self.table.ask_flagged(self.table.line(place.bin), place, |found| self.answer(found, digest))
    }

    #[inline(always)]
    pub(crate) fn contains_digest(&self, digest: Digest) -> bool {
        self.contains_hashed(|| digest)
    }

    /// The upper half of the digest is nearly always enough, and need be all that is computed: in the few other cases
    /// the key is hashed once more.
    #[inline(always)]
    pub(crate) fn contains_hashed(&self, digest: impl Fn() -> Digest) -> bool {
        let (place, line) = self.table.place_and_line(digest());
        self.table.ask_flagged(line, place, |found| self.answer(found, digest))
    }

    /// The answer to a query of which this was found. Two branches, both nearly never taken, and none on the match;
    /// they lead to different functions, or the compiler would make one of them and work its condition out with twice
    /// the instructions.
    #[inline(always)]
    fn answer(&self, found: Found, digest: impl FnOnce() -> Digest) -> bool {
        if found.is_only_beyond() {
            return self.settle_beyond(digest());
        }
        if found.is_flagged() {
            return self.settle(digest());
        }
        found.is_here()
    }

    /// The machine is chosen once for a batch, and what one line does not settle is settled at its end.
    #[inline]
    pub(crate) fn contains_many<K: Key>(&self, keys: &[K], answers: &mut Vec<bool>) {
        answers.clear();
        answers.resize(keys.len(), false);
        for (keys, answers) in keys.chunks(Doubts::MOST).zip(answers.chunks_mut(Doubts::MOST)) {
            let (mut ahead, mut doubts) = (
                Ahead::new(keys, &self.table, |table, key| table.place(self.hasher.digest_key(key))),
                Doubts::new(),
            );
            for answers in answers.chunks_mut(STEP) {
                self.table.find_many_flagged(ahead.next(&self.table), answers, &mut doubts);
            }
            for query in doubts.iter() {
                answers[query] = self.settle(self.hasher.digest_key(&keys[query]));
            }
        }
    }

    /// Whether an item beyond the line accepts the key, where the line has none like it.
    #[cold]
    #[inline(never)]
    fn settle_beyond(&self, digest: Digest) -> bool {
        let place = self.table.place(digest);
        if self.values.adapted() == 0 {
            return self.table.contains_beyond(place);
        }
        self.accepts_beyond(place, &self.string(digest))
    }

    /// Whether an item accepts the key, where the line alone does not say. Apart from its caller, which shall need few
    /// registers: where the key belongs is worked out again.
    #[cold]
    #[inline(never)]
    fn settle(&self, digest: Digest) -> bool {
        let place = self.table.place(digest);
        let Found { mut slots, beyond, .. } = self.table.find_flagged(place);
        // A flag stands for several classes, and most items of a class have no extension.
        if self.values.any_empty(place.bin, slots) {
            return true;
        }
        let key = self.string(digest);
        while slots != 0 {
            if self.values.get(place.bin, slots.trailing_zeros() as usize).begins(&key, 0) {
                return true;
            }
            slots &= slots - 1;
        }
        beyond && self.accepts_beyond(place, &key)
    }

    /// Whether an item beyond the line accepts the key.
    fn accepts_beyond(&self, place: Place, key: &HashString<'_, H>) -> bool {
        let entry = self.table.entry(place);
        if !self.table.next.contains(place.bin, entry) {
            return false;
        }
        // Most have no extension, and then their ranks do not matter.
        let slots = self.table.shape().slots as usize;
        if self.values.first_from(place.bin, slots).is_none() {
            return true;
        }
        let ranks = self.table.items_of(place.bin).equal(entry);
        (ranks.start.max(slots)..ranks.end).any(|rank| self.values.get(place.bin, rank).begins(key, 0))
    }

    /// The hash bits of a key that follow its fingerprint.
    #[inline]
    fn string(&self, digest: Digest) -> HashString<'_, H> {
        string(&self.hasher, digest, self.table.bins(), self.table.shape())
    }

    /// The extensions of all items of a bin.
    fn load(&self, bin: u64, items: &Items) -> Vec<Extension> {
        self.values.load(bin, items.len())
    }

    /// Changes the extensions of all items of a bin.
    fn store(&mut self, bin: u64, items: &Items, values: &[Extension]) {
        debug_assert_eq!(items.len(), values.len());
        self.values.store(bin, self.table.bins(), values);
        self.table.set_flags(bin, classes_with_values(items, values, |entry| self.table.class(entry)));
    }

    /// How many keys have extensions of each length.
    pub(crate) fn extension_lengths(&self) -> Vec<usize> {
        let mut counts = vec![self.table.len - self.values.adapted()];
        for (_, _, extension) in self.values.iter() {
            let len = extension.len() as usize;
            counts.resize(counts.len().max(len + 1), 0);
            counts[len] += 1;
        }
        counts
    }

    pub(crate) fn false_positive_rate(&self) -> f64 {
        self.table.collision_rate(self.capacity)
    }

    pub(crate) fn stats(&self) -> FilterStats {
        let (items, slots) = (self.table.len, self.table.bins() as usize * self.table.shape().slots as usize);
        let adaptivity_bits = self.values.memory_bits();
        FilterStats {
            items,
            slots,
            load: items as f64 / slots as f64,
            bits: self.table.memory_bits() + adaptivity_bits,
            adaptations: self.adaptations,
            spills: self.values.bins(),
            adapted_slots: self.values.adapted(),
            adaptivity_bits,
            ..FilterStats::default()
        }
    }

    /// Removes all keys and repairs from filter and remote.
    pub(crate) fn clear<R: Remote>(&mut self, remote: &mut R) -> Result<(), AdaptiveError<R::Error>> {
        clear_remote(remote)?;
        self.table.clear();
        self.values = Values::new(self.table.shape().slots);
        Ok(())
    }

    /// An empty filter of the same parameters.
    pub(crate) fn emptied(&self) -> Result<Self, BuildError> {
        let (bins, shape) = (self.table.bins(), self.table.shape());
        let table = Table::for_keys(bins, shape, self.capacity)?;
        let empty = Self::new(table, self.hasher.clone(), self.capacity, self.growable);
        Ok(Self { adaptations: self.adaptations, ..empty })
    }

    pub(crate) fn verify(&self) -> Result<(), InvariantError> {
        self.table.verify()?;
        let (mut adapted, mut bins) = (0, 0);
        for bin in 0..self.table.bins() {
            let items = self.table.items_of(bin);
            self.values.verify(bin, items.len())?;
            let values = self.load(bin, &items);
            let count = values.iter().filter(|&&value| value != Extension::default()).count();
            (adapted, bins) = (adapted + count, bins + usize::from(count > 0));
            let classes = classes_with_values(&items, &values, |entry| self.table.class(entry));
            let (flags, expected) = (self.table.flags(bin), self.table.flags_of(classes));
            ensure!(flags == expected, "bin {bin} has the flags {flags:#x} instead of {expected:#x}");
        }
        ensure!(adapted == self.values.adapted(), "{adapted} extensions, {} counted", self.values.adapted());
        ensure!(bins == self.values.bins(), "{bins} bins with extensions, {} counted", self.values.bins());
        Ok(())
    }
}

/// The classes of the items that have an extension, as bits.
fn classes_with_values(items: &Items, values: &[Extension], class: impl Fn(Entry) -> u32) -> u64 {
    let adapted = items.iter().zip(values).filter(|(_, value)| **value != Extension::default());
    adapted.fold(0, |classes, (entry, _)| classes | 1 << class(entry))
}

/// The hash bits that follow a key's fingerprint in a table of so many bins with lines of this shape.
#[inline]
fn string<H: KeyHasher>(hasher: &H, digest: Digest, bins: u64, shape: Shape) -> HashString<'_, H> {
    // The product as in `Table::place`, without the digits of class and tag.
    let fraction = digest.hi.wrapping_mul(bins).wrapping_mul(shape.classes.into()) << shape.tag_bits();
    HashString::new(hasher, digest, fraction, fraction_bits(bins) - shape.entry_bits())
}

/// Two filters are equal if they have the same parameters, hash function, items and extensions. What was counted so far
/// is not compared.
impl<H: KeyHasher> PartialEq for ExtendingBins<H> {
    fn eq(&self, other: &Self) -> bool {
        (self.capacity, self.growable) == (other.capacity, other.growable)
            && self.hasher == other.hasher
            && self.table == other.table
            && self.values == other.values
    }
}
