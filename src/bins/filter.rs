//! The plain filter on bins.

use crate::{
    BuildError, Digest, Filter, FilterStats, FullError, Insert, InsertManyError, InvariantError, Key,
    KeyHasher, Merge, MergeError, RemovalDisabled, Remove, Seed, Xxh3, parallel,
};

use super::ahead::{Ahead, Doubts};
use super::builder::capacity_of;
use super::bulk::fill_parts;
use super::next::Refused;
use super::table::{Place, STEP, Table};

/// A filter on cache-line bins: the fastest of this crate, with removal, growth and merging.
///
/// Every key belongs to one bin, which is one cache line; a query reads that line and, but for one in fifty at
/// load 0.90, nothing else. What does not fit into a bin goes to a small second level, and comes back when there is
/// room again. It does not adapt, and needs no remote for that.
///
/// **Multiset semantics**: a key inserted twice must be removed twice.
///
/// # Space and rate
///
/// At the default rate of 1/256 a bin has 51 slots, each with a tag of 8 bits, in 52 classes. With n keys in b bins a
/// query takes another key for its own with probability
///
/// ε = 1 − (1 − 1 / (b · classes · 2^tag bits))^n ≤ load · slots / (classes · 2^tag bits),
///
/// which makes 1/290 at load 0.90 and 1/264 at load 0.99. A key takes 10.04 bits / load, and the second level 0.4 bits
/// more at load 0.90: 11.6 bits, or 11.25 at load 0.95. Filters that shall [grow](crate::BinFilterBuilder::growable_to) have
/// 64 classes, which can be halved, and end with 49 slots: 12.1 bits at load 0.90.
///
/// ```
/// use besom::{BinFilter, Filter, Insert, Remove};
///
/// let mut filter = BinFilter::with_capacity(1000)?;
/// filter.insert("here")?;
/// assert!(filter.contains("here"));
/// assert!(filter.remove("here")?);
/// assert!(!filter.contains("here"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct BinFilter<H = Xxh3> {
    pub(super) table: Table,
    hasher: H,
    capacity: usize,
    pub(super) load: f64,
    /// How many times the table may still double. Each takes one digit from the tags.
    pub(super) doublings: u32,
}

crate::filter::debug_by_figures!([H: KeyHasher] BinFilter<H>);

impl<H: KeyHasher> BinFilter<H> {
    pub(super) fn from_parts(table: Table, hasher: H, capacity: usize, load: f64, doublings: u32) -> Self {
        Self { table, hasher, capacity, load, doublings }
    }

    /// How often the key may have been inserted: never less than the truth.
    #[must_use]
    pub fn count<K: Key + ?Sized>(&self, key: &K) -> usize {
        self.table.count(self.place(self.hasher.digest_key(key)))
    }

    /// The false-positive rate that is to be expected with so many keys. What is promised is that of a full filter:
    /// [`false_positive_rate`](Filter::false_positive_rate).
    ///
    /// ```
    /// use besom::{BinFilter, Filter};
    ///
    /// let filter: BinFilter = (0..1000_u64).collect();
    /// assert!(filter.expected_rate(100) < filter.expected_rate(filter.len()));
    /// assert_eq!(filter.expected_rate(filter.capacity()), filter.false_positive_rate());
    /// ```
    #[must_use]
    pub fn expected_rate(&self, keys: usize) -> f64 {
        self.table.collision_rate(keys)
    }

    /// How many keys are in the second level at present.
    #[must_use]
    pub fn overflown(&self) -> usize {
        self.table.next.len()
    }

    /// The empty filter with all these keys, for which it has room: by one thread, or by all if the keys are many.
    pub(super) fn filled<K: Key + Sync>(mut self, keys: &[K]) -> Result<Self, BuildError> {
        if parallel::threads_for(keys.len()) == 1 {
            let bytes = self.table.memory_bits() / 8;
            let inserted = self.insert_many(keys);
            return inserted.map(|_| self).map_err(|_| BuildError::OutOfMemory { bytes });
        }
        let hash = |number: usize| self.hasher.digest_key(&keys[number]).hi;
        Ok(Self { table: fill_parts(self.table, keys.len(), hash)?, ..self })
    }

    fn full(&self) -> FullError {
        FullError { len: self.table.len, capacity: self.capacity }
    }

    /// Whether doubling makes the two filters alike.
    fn check_shapes(&self, other: &Self) -> Result<(), MergeError> {
        let (left, right) = (&self.table, &other.table);
        let (small, large) = if left.bins() <= right.bins() { (left, right) } else { (right, left) };
        let doublings = (large.bins() / small.bins()).ilog2();
        let alike = small.bins() << doublings == large.bins();
        let grows = alike && small.shape().after(doublings) == Some(large.shape());
        // The other filter is doubled for this purpose only, this one for good.
        if grows && (left.bins() >= right.bins() || doublings <= self.doublings) {
            return Ok(());
        }
        let (what, left, right) = if left.bins() == right.bins() {
            ("classes and tags of a bin", left.shape().entries(), right.shape().entries())
        } else {
            ("bins", left.bins(), right.bins())
        };
        Err(MergeError::ShapeMismatch { what, left, right })
    }

    #[cold]
    fn grow(&mut self) -> Result<(), FullError> {
        if self.doublings == 0 {
            return Err(self.full());
        }
        let mut side = Side::of(self);
        side.double(self).map_err(|_| self.full())?;
        side.settle(self);
        Ok(())
    }

    /// Inserts even beyond capacity: with a higher rate, and if there is no bit left to grow by, more slowly.
    fn insert_anyway(&mut self, digest: Digest) {
        if self.table.len >= self.capacity && self.table.shape().after(1).is_some() {
            self.doublings = self.doublings.max(1);
            // Without memory to grow, the keys go on into the second level.
            let _ = self.grow();
        }
        let inserted = self.table.insert(self.table.place(digest));
        assert!(inserted.is_ok(), "out of memory for one more key, like every collection");
    }
}

/// A filter that is doubled as often as it takes, while the filter itself stays as it is.
struct Side {
    grown: Option<Table>,
    capacity: usize,
    doublings: u32,
}

impl Side {
    fn of<H>(filter: &BinFilter<H>) -> Self {
        Self { grown: None, capacity: filter.capacity, doublings: filter.doublings }
    }

    fn table<'t, H>(&'t self, filter: &'t BinFilter<H>) -> &'t Table {
        self.grown.as_ref().unwrap_or(&filter.table)
    }

    /// The tags must have a digit to spare, which [`BinFilter::check_shapes`] and `doublings` see to.
    fn double<H>(&mut self, filter: &BinFilter<H>) -> Result<(), MergeError> {
        let table = self.table(filter);
        let slots = table.shape().after(1).map_or(0, |shape| shape.slots);
        let capacity = capacity_of(2 * table.bins(), slots, filter.load);
        let bytes = table.memory_bits() / 4;
        let doubled = table.doubled(capacity).map_err(|_| MergeError::OutOfMemory { bytes })?;
        self.grown = Some(doubled);
        self.capacity = capacity;
        self.doublings = self.doublings.saturating_sub(1);
        Ok(())
    }

    /// Makes it the filter.
    fn settle<H>(self, filter: &mut BinFilter<H>) {
        if let Some(table) = self.grown {
            filter.table = table;
        }
        (filter.capacity, filter.doublings) = (self.capacity, self.doublings);
    }
}

impl<H: KeyHasher> Filter for BinFilter<H> {
    type Hasher = H;
    type Place = Place;

    #[inline]
    fn hasher(&self) -> &H {
        &self.hasher
    }

    #[inline]
    fn place(&self, digest: Digest) -> Place {
        self.table.place(digest)
    }

    #[inline]
    fn prefetch(&self, place: Place) {
        self.table.prefetch(place.bin);
    }

    #[inline(always)]
    fn contains_at(&self, place: Place, _: impl FnOnce() -> Digest) -> bool {
        self.table.contains(place)
    }

    #[inline(always)]
    fn contains_digest(&self, digest: Digest) -> bool {
        self.table.contains_digest(digest)
    }

    /// As for all filters, but the machine is chosen once for a batch, and the second level is asked at its end.
    #[inline]
    fn contains_many<K: Key>(&self, keys: &[K], answers: &mut Vec<bool>) {
        answers.clear();
        answers.resize(keys.len(), false);
        for (keys, answers) in keys.chunks(Doubts::MOST).zip(answers.chunks_mut(Doubts::MOST)) {
            let (mut ahead, mut doubts) = (
                Ahead::new(keys, &self.table, |table, key| table.place(self.hasher.digest_key(key))),
                Doubts::new(),
            );
            for answers in answers.chunks_mut(STEP) {
                self.table.contains_many(ahead.next(&self.table), answers, &mut doubts);
            }
            for query in doubts.iter() {
                // All other places are forgotten, so these keys are hashed again.
                answers[query] = self.table.contains(self.table.place(self.hasher.digest_key(&keys[query])));
            }
        }
    }

    fn len(&self) -> usize {
        self.table.len
    }

    fn capacity(&self) -> usize {
        self.capacity
    }

    fn false_positive_rate(&self) -> f64 {
        self.expected_rate(self.capacity)
    }

    fn stats(&self) -> FilterStats {
        let (items, slots) = (self.table.len, self.table.bins() as usize * self.table.shape().slots as usize);
        let (load, bits) = (items as f64 / slots as f64, self.table.memory_bits());
        FilterStats { items, slots, load, bits, ..FilterStats::default() }
    }

    fn verify(&self) -> Result<(), InvariantError> {
        self.table.verify()
    }
}

impl<H: KeyHasher> Insert for BinFilter<H> {
    /// A key that is there already is inserted once more.
    // Compiled into every caller, however many there are: called, it takes half as long again.
    #[inline(always)]
    fn insert_digest(&mut self, digest: Digest) -> Result<bool, FullError> {
        if self.table.len >= self.capacity {
            self.grow()?;
        }
        self.table.insert(self.table.place(digest)).map_err(|Refused| self.full())
    }

    /// Memory accesses of neighbouring keys overlap, so on tables beyond the processor's cache this is several times
    /// faster than inserting one by one.
    fn insert_many<K: Key>(&mut self, keys: &[K]) -> Result<usize, InsertManyError> {
        let needed = self.table.len.saturating_add(keys.len());
        while self.capacity < needed && self.grow().is_ok() {}
        let fitting = &keys[..keys.len().min(self.capacity.saturating_sub(self.table.len))];
        let (mut inserted, mut new) = (0, 0);
        let mut ahead =
            Ahead::new(fitting, &self.table, |table, key| table.place(self.hasher.digest_key(key)));
        while inserted < fitting.len() {
            let places = ahead.next(&self.table);
            let batch = self.table.insert_many(places);
            (inserted, new) = (inserted + batch.inserted, new + batch.new);
            if batch.inserted < places.len() {
                break;
            }
        }
        if inserted < keys.len() {
            return Err(InsertManyError { inserted, full: self.full() });
        }
        Ok(new)
    }

    fn clear(&mut self) {
        self.table.clear();
    }
}

impl<H: KeyHasher> Remove for BinFilter<H> {
    #[inline]
    fn remove_digest(&mut self, digest: Digest) -> Result<bool, RemovalDisabled> {
        Ok(self.table.remove(self.table.place(digest)))
    }
}

/// Equal if they hold the same fingerprints, in whichever order the keys came and went, under the same hash function,
/// and have the same room left.
impl<H: KeyHasher> PartialEq for BinFilter<H> {
    fn eq(&self, other: &Self) -> bool {
        (self.capacity, self.doublings) == (other.capacity, other.doublings)
            && self.hasher == other.hasher
            && self.table == other.table
    }
}

impl<H: KeyHasher> Merge for BinFilter<H> {
    /// Filters that have grown differently can be merged if they were built with the same parameters. The filter grows
    /// as far as it must and was built for.
    fn merge(&mut self, other: &Self) -> Result<(), MergeError> {
        if self.hasher != other.hasher {
            return Err(MergeError::HashMismatch);
        }
        self.check_shapes(other)?;
        let needed = self.table.len + other.table.len;
        let (mut left, mut right) = (Side::of(self), Side::of(other));
        while left.table(self).bins() < right.table(other).bins() || needed > left.capacity {
            if left.doublings == 0 {
                return Err(MergeError::Full { needed, capacity: left.capacity });
            }
            left.double(self)?;
        }
        while right.table(other).bins() < left.table(self).bins() {
            right.double(other)?;
        }
        let target = left.grown.as_mut().unwrap_or(&mut self.table);
        let bytes = target.memory_bits() / 8;
        target.absorb(right.table(other)).map_err(|Refused| MergeError::OutOfMemory { bytes })?;
        left.settle(self);
        Ok(())
    }
}

/// Inserts all keys, whatever happens: since no key may be lost and this trait knows no errors, a filter at its
/// capacity gives up bits of its tags to double, and when it has none to spare, sends what does not fit into the bins
/// to the second level, which makes it slower and larger. Where that must not happen, [`insert`](Insert::insert) says
/// when the filter is full.
impl<K: Key, H: KeyHasher> Extend<K> for BinFilter<H> {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        crate::filter::extend(self, keys, Self::insert_anyway);
    }
}

/// A filter of just the size that the keys need, at the default false-positive rate of 1/256.
///
/// ```
/// use besom::{BinFilter, Filter};
///
/// let filter: BinFilter = ["a", "b", "c"].into_iter().collect();
/// assert_eq!(filter.len(), 3);
/// assert!(filter.contains("b"));
/// ```
impl<K: Key> FromIterator<K> for BinFilter<Xxh3> {
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
