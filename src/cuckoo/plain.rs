//! The plain cuckoo filter that needs no remote: partial-key cuckoo hashing.

use std::convert::Infallible;

use crate::{
    Digest, Filter, FilterStats, FullError, Insert, InvariantError, KeyHasher, RemovalDisabled, Remove, Xxh3,
};

use super::layout::promised_rate;
use super::place::CuckooPlace;
use super::search::{BUDGET, Search, World};
use super::table::SlotTable;
use super::variant::{PartialKey, bin, first_bin, partial_bin, stride};

/// The cuckoo filter that people know: the fingerprint alone says where else its key may lie (partial-key cuckoo
/// hashing), so it needs no remote.
///
/// It repairs nothing, and keys are counted as often as they were inserted (a multiset): a key fits up to b·k
/// times, and each [`remove`](Remove::remove) takes one of them away. Removing a key that was never inserted may
/// remove another one with the same fingerprint, so remove only what was inserted.
///
/// A query reads k bins, an insertion the same and seldom more. Without the keys there is no way to rebuild
/// with other hash functions: an insertion that finds no room is refused, and the filter is unchanged. At the default
/// load of 0.95 that is rare, but a filter for a few dozen keys may refuse the last of them, and any filter refuses a
/// key that is inserted again and again. That is why there is no `Extend` and no `FromIterator`: neither could say
/// which keys were refused.
///
/// Two filters are equal if they have the same parameters, the same hash function and the same slots; the same keys in
/// another order of insertion may lie in other slots.
///
/// ```
/// use besom::cuckoo::CuckooFilter;
/// use besom::{Filter, Insert, Remove};
///
/// let mut filter = CuckooFilter::with_capacity(1000)?;
/// filter.insert("besom")?;
/// assert!(filter.contains("besom"));
/// assert!(filter.remove("besom")?);
/// assert!(filter.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Paper: Fan, Andersen, Kaminsky, Mitzenmacher, "Cuckoo Filter: Practically Better Than Bloom", CoNEXT 2014;
/// here with k separate tables of any size, the bins of a key lying one stride apart.
#[derive(Clone)]
pub struct CuckooFilter<H: KeyHasher = Xxh3> {
    pub(super) table: SlotTable<PartialKey>,
    hasher: H,
    pub(super) len: usize,
    capacity: usize,
    search: Search<Tag>,
}

crate::filter::debug_by_figures!([H: KeyHasher] CuckooFilter<H>);

impl<H: KeyHasher> CuckooFilter<H> {
    pub(super) fn from_parts(table: SlotTable<PartialKey>, hasher: H, capacity: usize) -> Self {
        Self { table, hasher, len: 0, capacity, search: Search::new() }
    }

    /// Bits of one slot.
    #[must_use]
    pub fn slot_bits(&self) -> u32 {
        self.table.layout().width
    }

    #[cold]
    fn insert_by_chain(&mut self, place: CuckooPlace) -> Option<()> {
        let layout = *self.table.layout();
        let fingerprint = place.fingerprint(0, layout.width);
        let newcomer = Tag { fingerprint, first: bin::<PartialKey>(place, 0, &layout) };
        let mut tags = Tags(&self.table);
        let Ok(found) = self.search.run(&mut tags, &layout, newcomer, 0..layout.tables, BUDGET);
        if found {
            self.search.moves().for_each(|step| self.table.set(step.slot, step.item.fingerprint));
        }
        self.search.trim();
        found.then_some(())
    }

    /// The bits of a slot.
    #[cfg(test)]
    pub(super) fn raw(&self, slot: usize) -> u64 {
        self.table.get(slot)
    }
}

impl<H: KeyHasher> PartialEq for CuckooFilter<H> {
    fn eq(&self, other: &Self) -> bool {
        self.table == other.table
            && self.hasher == other.hasher
            && (self.len, self.capacity) == (other.len, other.capacity)
    }
}

impl<H: KeyHasher> Filter for CuckooFilter<H> {
    type Hasher = H;
    type Place = CuckooPlace;

    #[inline]
    fn hasher(&self) -> &H {
        &self.hasher
    }

    #[inline]
    fn place(&self, digest: Digest) -> CuckooPlace {
        CuckooPlace::new(digest)
    }

    #[inline]
    fn prefetch(&self, place: CuckooPlace) {
        self.table.prefetch(place);
    }

    #[inline]
    fn contains_at(&self, place: CuckooPlace, _: impl FnOnce() -> Digest) -> bool {
        self.table.contains(place)
    }

    fn len(&self) -> usize {
        self.len
    }

    fn capacity(&self) -> usize {
        self.capacity
    }

    fn false_positive_rate(&self) -> f64 {
        promised_rate::<PartialKey>(self.table.layout(), self.capacity)
    }

    fn stats(&self) -> FilterStats {
        let slots = self.table.layout().slots();
        FilterStats {
            items: self.len,
            slots,
            load: self.len as f64 / slots as f64,
            bits: 8 * self.table.memory(),
            working_bits: 8 * self.search.memory(),
            ..FilterStats::default()
        }
    }

    fn verify(&self) -> Result<(), InvariantError> {
        self.table.verify(self.len)
    }
}

impl<H: KeyHasher> Insert for CuckooFilter<H> {
    /// A key that is there already is inserted once more.
    fn insert_digest(&mut self, digest: Digest) -> Result<bool, FullError> {
        let full = FullError { len: self.len, capacity: self.capacity };
        if self.len >= self.capacity {
            return Err(full);
        }
        let place = CuckooPlace::new(digest);
        let look = self.table.look(place);
        match look.vacancy {
            Some(slot) => self.table.put(slot, place, 0),
            None => self.insert_by_chain(place).ok_or(full)?,
        }
        self.len += 1;
        Ok(!look.hit)
    }

    fn clear(&mut self) {
        self.table.clear();
        self.len = 0;
    }
}

impl<H: KeyHasher> Remove for CuckooFilter<H> {
    fn remove_digest(&mut self, digest: Digest) -> Result<bool, RemovalDisabled> {
        let Some(&slot) = self.table.hits(CuckooPlace::new(digest)).first() else { return Ok(false) };
        self.table.erase(slot);
        self.len -= 1;
        Ok(true)
    }
}

/// All that is known of a stored key.
#[derive(Debug, Clone, Copy)]
struct Tag {
    fingerprint: u64,
    /// Its bin in the first table.
    first: usize,
}

/// The table as keys that are known by their fingerprints.
struct Tags<'a>(&'a SlotTable<PartialKey>);

impl World for Tags<'_> {
    type Item = Tag;
    type Error = Infallible;

    fn is_vacant(&self, slot: usize) -> bool {
        self.0.is_vacant(slot)
    }

    fn item(&mut self, slot: usize) -> Result<Tag, Infallible> {
        let layout = self.0.layout();
        let fingerprint = self.0.get(slot);
        let (table, bin) = layout.bin_of(slot);
        Ok(Tag { fingerprint, first: first_bin(bin, stride(fingerprint, layout), table, layout) })
    }

    fn first_slot(&self, item: Tag, table: usize) -> usize {
        let layout = self.0.layout();
        layout.first_slot(table, partial_bin(item.first, stride(item.fingerprint, layout), table, layout))
    }
}
