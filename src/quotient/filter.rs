//! The plain quotient filter.

use crate::filter::{PART, collision_rate, insert_in_order, insert_in_parts, insert_one_by_one};
use crate::{
    BuildError, Digest, Filter, FilterStats, FullError, Insert, InsertManyError, InvariantError, Key,
    KeyHasher, Merge, MergeError, RemovalDisabled, Remove, Seed, Xxh3,
};

use super::builder::doublings_to;
use super::bulk;
use super::geometry::Geometry;
use super::table::{Place, Run, Table};

/// What a core has of the processor's cache, in bytes: tables below are not worth sorting for.
const CACHE: usize = 1 << 22;

/// So many keys at once are worth sorting for an empty table of any size.
const FILLED_FROM: usize = 256;

/// What a core has to itself, and a little more: nothing is to be fetched ahead, which costs more than it saves.
const OWN_CACHE: usize = 1 << 21;

/// Keys that are sorted together.
const SORTED_PART: usize = 1 << 20;

/// A quotient filter: compact, exact in its counts, with removal, growth and merging.
///
/// It does not adapt, and needs no remote for that: it is what the adaptive filters of this crate are measured
/// against, and a good choice where false positives do not repeat. A query reads one cache line, nearly always.
///
/// **Multiset semantics**: a key inserted twice must be removed twice.
///
/// Space: 10.24 bits a slot at the default rate of 1/256, which makes 10.8 bits per key at load 0.95.
///
/// ```
/// use besom::quotient::QuotientFilter;
/// use besom::{Filter, Insert, Remove};
///
/// let mut filter = QuotientFilter::with_capacity(1000)?;
/// filter.insert("here")?;
/// assert!(filter.contains("here"));
/// assert!(filter.remove("here")?);
/// assert!(!filter.contains("here"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct QuotientFilter<H = Xxh3> {
    pub(super) table: Table,
    hasher: H,
    capacity: usize,
    /// How many times the table may still double. Each takes one bit from the remainders.
    pub(super) doublings: u32,
}

crate::filter::debug_by_figures!([H: KeyHasher] QuotientFilter<H>);

impl<H: KeyHasher> QuotientFilter<H> {
    pub(super) fn from_parts(table: Table, hasher: H, capacity: usize, doublings: u32) -> Self {
        Self { table, hasher, capacity, doublings }
    }

    /// How often the key may have been inserted: never less than the truth.
    #[must_use]
    pub fn count<K: Key + ?Sized>(&self, key: &K) -> usize {
        let place = self.table.locate(self.hasher.digest_key(key).hi);
        let remainder = self.table.remainder_of(place.fraction);
        let slots = self.table.run(place.quotient).into_iter().flat_map(|run| run.slots());
        slots.filter(|&slot| self.table.remainder(slot) == remainder).count()
    }

    /// Whether doubling makes the two filters alike. A table that doubles has a bit less for every remainder.
    fn check_shapes(&self, other: &Self) -> Result<(), MergeError> {
        let slots = |filter: &Self| filter.table.slots();
        let bits = |filter: &Self| filter.table.remainder_bits();
        let (small, large) = if slots(self) <= slots(other) { (self, other) } else { (other, self) };
        let doublings = doublings_to(slots(small), slots(large));
        let grows = slots(small) << doublings == slots(large) && bits(small) == bits(large) + doublings;
        // The other filter is doubled for this purpose only, this one for good.
        if grows && (slots(self) >= slots(other) || doublings <= self.doublings) {
            return Ok(());
        }
        let (what, left, right) = if doublings == 0 {
            ("remainder bits", bits(self).into(), bits(other).into())
        } else {
            ("slots", slots(self), slots(other))
        };
        Err(MergeError::ShapeMismatch { what, left, right })
    }

    #[cold]
    fn grow(&mut self) -> Result<(), FullError> {
        let full = FullError { len: self.table.len(), capacity: self.capacity };
        if self.doublings == 0 {
            return Err(full);
        }
        self.table = self.table.doubled().map_err(|_| full)?;
        self.capacity *= 2;
        self.doublings -= 1;
        Ok(())
    }

    /// Whether so many keys are worth sorting before they are inserted.
    fn sorts(&self, keys: usize) -> bool {
        keys >= bulk::PAYS_FROM && self.table.memory_bits() / 8 > CACHE
    }

    /// Writes the table of an empty filter, and says how many of the keys it would not have accepted when they came;
    /// `None`, and nothing changes, without memory.
    fn fill(&mut self, hashes: &[u64]) -> Option<usize> {
        let (table, mut fresh) = (self.table.like(self.table.slots()).ok()?, 0);
        let filled = bulk::fill(
            table,
            hashes.len(),
            |number| hashes[number],
            |sorted: &mut Vec<u64>| self.different(sorted),
            |different, _| {
                fresh += different;
                Ok::<(), BuildError>(())
            },
        );
        self.table = filled.ok()?;
        Some(fresh)
    }

    /// How many items these keys are, which come by quotient.
    fn different(&self, sorted: &[u64]) -> usize {
        let is_first = |&index: &usize| {
            let own = self.table.locate(sorted[index]);
            let run = sorted[..index].iter().rev().map(|&hash| self.table.locate(hash));
            let mut run = run.take_while(|other| other.quotient == own.quotient);
            let remainder = |place: Place| self.table.remainder_of(place.fraction);
            !run.any(|other| remainder(other) == remainder(own))
        };
        (0..sorted.len()).filter(is_first).count()
    }

    /// Inserts even beyond capacity: with a higher rate, and if there is no bit left to grow by, more slowly.
    fn insert_anyway(&mut self, digest: Digest) {
        if self.table.len() >= self.capacity
            && self.table.remainder_bits() > *Geometry::REMAINDER_BITS.start()
        {
            self.doublings = self.doublings.max(1);
            // Without memory to grow, the keys go on into the tail of the table as it is.
            let _ = self.grow();
        }
        let place = self.table.locate(digest.hi);
        let inserted = self.table.insert(place.quotient, self.table.remainder_of(place.fraction));
        assert!(inserted.is_ok(), "out of memory for one more key, like every collection");
    }
}

/// One side of a merge, doubled as often as it takes, while the filter itself stays as it is.
struct Side<'f> {
    original: &'f Table,
    grown: Option<Table>,
    capacity: usize,
    doublings: u32,
}

impl<'f> Side<'f> {
    fn of<H>(filter: &'f QuotientFilter<H>) -> Self {
        let QuotientFilter { table, capacity, doublings, .. } = filter;
        Self { original: table, grown: None, capacity: *capacity, doublings: *doublings }
    }

    fn table(&self) -> &Table {
        self.grown.as_ref().unwrap_or(self.original)
    }

    /// The remainders must have a bit to spare, which [`QuotientFilter::check_shapes`] and `doublings` see to.
    fn double(&mut self) -> Result<(), MergeError> {
        let bytes = self.table().memory_bits() / 4;
        let doubled = self.table().doubled().map_err(|_| MergeError::OutOfMemory { bytes })?;
        self.grown = Some(doubled);
        self.capacity *= 2;
        self.doublings = self.doublings.saturating_sub(1);
        Ok(())
    }
}

/// Equal filters have the same parameters, hash function and contents, in whichever order the keys came.
impl<H: KeyHasher> PartialEq for QuotientFilter<H> {
    fn eq(&self, other: &Self) -> bool {
        let parameters = |filter: &Self| {
            (filter.table.slots(), filter.table.remainder_bits(), filter.capacity, filter.doublings)
        };
        let sorted = |filter: &Self, run: Run| {
            let mut remainders: Vec<u64> = run.slots().map(|slot| filter.table.remainder(slot)).collect();
            remainders.sort_unstable();
            remainders
        };
        // Runs of the same lengths stand in the same slots.
        parameters(self) == parameters(other)
            && self.hasher == other.hasher
            && self.table.runs().eq(other.table.runs())
            && self.table.runs().all(|(_, run)| sorted(self, run) == sorted(other, run))
    }
}

impl<H: KeyHasher> Filter for QuotientFilter<H> {
    type Hasher = H;
    type Place = Place;

    #[inline]
    fn hasher(&self) -> &H {
        &self.hasher
    }

    #[inline]
    fn place(&self, digest: Digest) -> Place {
        self.table.locate(digest.hi)
    }

    #[inline]
    fn prefetch(&self, place: Place) {
        self.table.prefetch(place.quotient);
    }

    #[inline]
    fn contains_at(&self, place: Place, _: impl FnOnce() -> Digest) -> bool {
        self.table.contains_place(place)
    }

    fn len(&self) -> usize {
        self.table.len()
    }

    fn capacity(&self) -> usize {
        self.capacity
    }

    fn false_positive_rate(&self) -> f64 {
        collision_rate(self.capacity, self.table.slots(), self.table.remainder_bits())
    }

    fn stats(&self) -> FilterStats {
        let (items, slots) = (self.table.len(), self.table.slots() as usize);
        let (load, bits) = (items as f64 / slots as f64, self.table.memory_bits());
        FilterStats { items, slots, load, bits, ..FilterStats::default() }
    }

    fn verify(&self) -> Result<(), InvariantError> {
        self.table.verify()
    }
}

impl<H: KeyHasher> Insert for QuotientFilter<H> {
    /// A key that is there already is inserted once more.
    #[inline]
    fn insert_digest(&mut self, digest: Digest) -> Result<bool, FullError> {
        if self.table.len() >= self.capacity {
            self.grow()?;
        }
        let place = self.table.locate(digest.hi);
        let remainder = self.table.remainder_of(place.fraction);
        if let Some(known) = self.table.insert_here(place.quotient, remainder) {
            return Ok(!known);
        }
        let known = self.table.contains_place(place);
        self.table.insert(place.quotient, remainder).map(|_| !known)
    }

    /// The table of an empty filter is written at once, if the keys have room. Otherwise keys that are sorted are taken
    /// by the million, others a few at a time, or one by one into a small table.
    fn insert_many<K: Key>(&mut self, keys: &[K]) -> Result<usize, InsertManyError> {
        if self.is_empty() && (FILLED_FROM..=self.capacity).contains(&keys.len()) {
            let hashes: Vec<u64> = keys.iter().map(|key| self.hasher.digest_key(key).hi).collect();
            if let Some(fresh) = self.fill(&hashes) {
                return Ok(fresh);
            }
        }
        let tables = keys.len().div_ceil(self.capacity.max(1)).max(1);
        if (self.table.memory_bits() / 8).saturating_mul(tables) <= OWN_CACHE {
            return insert_one_by_one(self, keys);
        }
        insert_in_parts(self, keys, if self.sorts(keys.len()) { SORTED_PART } else { PART })
    }

    /// Keys that have room are sorted by the part of the table that they go to, if it is larger than a cache.
    fn insert_digests(&mut self, digests: &[Digest]) -> Result<usize, InsertManyError> {
        let fits = |filter: &Self| digests.len() <= filter.capacity - filter.len().min(filter.capacity);
        while !fits(self) && self.grow().is_ok() {}
        if !self.sorts(digests.len()) || !fits(self) {
            return insert_in_order(self, digests);
        }
        let Ok(sorted) = bulk::by_bucket(&self.table, digests.len(), |number| digests[number].hi) else {
            return insert_in_order(self, digests);
        };
        let mut fresh = 0;
        for (inserted, &hi) in sorted.iter().enumerate() {
            if let Some(&ahead) = sorted.get(inserted + bulk::AHEAD) {
                self.table.prefetch(self.table.locate(ahead).quotient);
            }
            match self.insert_digest(Digest { hi, lo: 0 }) {
                Ok(new) => fresh += usize::from(new),
                // There is room, so that only memory for the tail can be lacking. Which keys are in, nobody could say.
                Err(full) => {
                    for &hi in &sorted[..inserted] {
                        let _ = self.remove_digest(Digest { hi, lo: 0 });
                    }
                    return Err(InsertManyError { inserted: 0, full });
                }
            }
        }
        Ok(fresh)
    }

    fn clear(&mut self) {
        self.table.clear();
    }
}

impl<H: KeyHasher> Remove for QuotientFilter<H> {
    fn remove_digest(&mut self, digest: Digest) -> Result<bool, RemovalDisabled> {
        let place = self.table.locate(digest.hi);
        let remainder = self.table.remainder_of(place.fraction);
        let Some(run) = self.table.run(place.quotient) else { return Ok(false) };
        let rank = run.slots().position(|slot| self.table.remainder(slot) == remainder);
        Ok(rank.map(|rank| self.table.remove(place.quotient, rank)).is_some())
    }
}

impl<H: KeyHasher> Merge for QuotientFilter<H> {
    /// Filters that have grown differently can be merged if they were built with the same parameters. The filter grows
    /// as far as it must and was built for.
    fn merge(&mut self, other: &Self) -> Result<(), MergeError> {
        if self.hasher != other.hasher {
            return Err(MergeError::HashMismatch);
        }
        self.check_shapes(other)?;
        let needed = self.table.len() + other.table.len();
        let mut left = Side::of(self);
        let mut right = Side::of(other);
        while left.table().slots() < right.table().slots() || needed > left.capacity {
            if left.doublings == 0 {
                return Err(MergeError::Full { needed, capacity: left.capacity });
            }
            left.double()?;
        }
        while right.table().slots() < left.table().slots() {
            right.double()?;
        }
        let merged = left.table().merged(right.table());
        let table = merged.map_err(|_| MergeError::OutOfMemory { bytes: left.table().memory_bits() / 8 })?;
        (self.capacity, self.doublings) = (left.capacity, left.doublings);
        self.table = table;
        Ok(())
    }
}

/// Inserts all keys, whatever happens: since no key may be lost and this trait knows no errors, a filter at its
/// capacity doubles even if it was not built to grow, and its false-positive rate with it. Where that must not
/// happen, [`insert`](QuotientFilter::insert) says when the filter is full.
impl<K: Key, H: KeyHasher> Extend<K> for QuotientFilter<H> {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        crate::filter::extend(self, keys, Self::insert_anyway);
    }
}

/// A filter of just the size that the keys need, at the default false-positive rate of 1/256.
///
/// ```
/// use besom::quotient::QuotientFilter;
/// use besom::Filter;
///
/// let filter: QuotientFilter = ["a", "b", "c"].into_iter().collect();
/// assert_eq!(filter.len(), 3);
/// assert!(filter.contains("b"));
/// ```
impl<K: Key> FromIterator<K> for QuotientFilter<Xxh3> {
    fn from_iter<I: IntoIterator<Item = K>>(keys: I) -> Self {
        let hasher = Xxh3::with_seed(Seed::random());
        let digests: Vec<Digest> = keys.into_iter().map(|key| hasher.digest_key(&key)).collect();
        let builder = Self::builder().capacity(digests.len().max(1)).seed(hasher.seed());
        let mut filter = builder.build().unwrap_or_else(|error| {
            // Only memory can be lacking, with an eighth of what the digests took: like every collection.
            panic!("{error}")
        });
        for digest in digests {
            filter.insert_anyway(digest);
        }
        filter
    }
}
