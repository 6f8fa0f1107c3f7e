//! The core of all builders: what every filter can be asked for. Each filter adds its own options.

use crate::{AdaptiveError, BuildError, BulkError, Filter, Growable, Key, KeyHasher, Remote, Seed};

/// The false-positive rate of a filter that was asked for none.
pub(crate) const DEFAULT_RATE: f64 = 1.0 / 256.0;

/// Builds a filter of type `F`.
///
/// A filter's `builder()` returns one, and each kind has a name for its own, such as
/// [`ExtensionFilterBuilder`](crate::ExtensionFilterBuilder), whose page lists the options and their defaults. Only the
/// [capacity](Self::capacity) must be given. Setters check nothing: [`build`](Self::build) and
/// [`size_in_bits`](Self::size_in_bits) do, and their error says which parameter cannot be met, and what can.
///
/// Filters that are built several times faster from all their keys at once have a method `from_keys`. For the others,
/// build an empty filter and call [`insert_many`](crate::Insert::insert_many): nothing would be faster.
///
/// ```
/// use besom::{BinFilter, Filter, SipHash};
///
/// let builder = BinFilter::builder().capacity(10_000).false_positive_rate(0.001).hasher::<SipHash>();
/// let bits = builder.size_in_bits()?; // known before anything is built
/// let filter = builder.build()?;
/// assert_eq!((filter.capacity(), filter.stats().bits), (10_000, bits));
/// # Ok::<(), besom::BuildError>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until build is called"]
pub struct Builder<F: Build> {
    pub(crate) capacity: usize,
    pub(crate) max_capacity: Option<usize>,
    pub(crate) growable: bool,
    pub(crate) rate: Option<f64>,
    pub(crate) load: Option<f64>,
    pub(crate) seed: Option<Seed>,
    pub(crate) options: F::Options,
}

/// A filter that a [`Builder`] builds. Only this crate implements it.
pub trait Build: Filter + Sized {
    /// What filters of this kind can be asked for beyond the options that several kinds have.
    #[doc(hidden)]
    type Options: Options;

    /// The same filter with another hash function.
    type With<G: KeyHasher>: Build<Options = Self::Options, Hasher = G>;

    /// See [`Builder::build`].
    #[doc(hidden)]
    fn build(builder: &Builder<Self>) -> Result<Self, BuildError>;

    /// See [`Builder::size_in_bits`].
    #[doc(hidden)]
    fn size_in_bits(builder: &Builder<Self>) -> Result<usize, BuildError>;
}

/// What nobody outside can name keeps [`Build`] this crate's own.
mod sealed {
    /// Options of one kind of filter.
    pub trait Options: Default + Clone + std::fmt::Debug + Send + Sync {}

    /// The options of a filter that has none of its own.
    impl Options for () {}
}
pub(crate) use sealed::Options;

/// A filter whose keys lie in slots, so that its builder can set their [load](Builder::max_load).
pub trait Slotted: Build {}

/// A filter without a remote that can [grow](Builder::growable_to) up to a limit.
pub trait GrowableTo: Build {}

/// An adaptive filter that can be built from [all keys](Builder::from_keys) or from its [remote](Builder::from_sorted).
pub trait FromRemote: Build {
    /// The empty filter with all these keys, each once. The remote is emptied first, and has them then.
    #[doc(hidden)]
    fn filled<K: Key + Sync, R: Remote>(
        self,
        keys: &[K],
        remote: &mut R,
    ) -> Result<Self, AdaptiveError<R::Error>>;

    /// The empty filter with all keys of a remote, which is only read.
    #[doc(hidden)]
    fn refilled<R: Remote>(self, remote: &mut R) -> Result<Self, AdaptiveError<R::Error>>;
}

impl<F: Build> Builder<F> {
    pub(crate) fn new() -> Self {
        let (max_capacity, growable, rate, load, seed) = (None, false, None, None, None);
        Self { capacity: 0, max_capacity, growable, rate, load, seed, options: F::Options::default() }
    }

    /// Sets how many keys the filter holds at its false-positive rate. Any number from 1, not only powers of two.
    /// Must be given.
    pub fn capacity(mut self, keys: usize) -> Self {
        self.capacity = keys;
        self
    }

    /// Sets the largest share of absent keys that the full filter may accept; 1/256 unless given. Fingerprints have
    /// whole bits, so the true rate can be as low as half of this: [`Filter::false_positive_rate`] returns it. An
    /// adaptive filter accepts this share of the keys that it was not told of; those it was told of are repaired.
    ///
    /// ```
    /// use besom::{Filter, TelescopingFilter};
    ///
    /// let filter = TelescopingFilter::builder().capacity(10_000).false_positive_rate(0.001).build()?;
    /// assert!((0.0005..=0.001).contains(&filter.false_positive_rate()));
    /// # Ok::<(), besom::BuildError>(())
    /// ```
    pub fn false_positive_rate(mut self, rate: f64) -> Self {
        self.rate = Some(rate);
        self
    }

    /// Sets the seed of the hash function, which makes the filter repeatable. Unless given, the operating system
    /// chooses one, so that nobody outside can aim at the filter.
    ///
    /// ```
    /// use besom::BroomFilter;
    ///
    /// let build = |seed: u64| BroomFilter::builder().capacity(100).seed(seed).build();
    /// assert!(build(7)? == build(7)? && build(7)? != build(8)?);
    /// # Ok::<(), besom::BuildError>(())
    /// ```
    pub fn seed(mut self, seed: impl Into<Seed>) -> Self {
        self.seed = Some(seed.into());
        self
    }

    /// Chooses another hash function than [`Xxh3`](crate::Xxh3), such as [`SipHash`](crate::SipHash).
    ///
    /// ```
    /// use besom::{ExtensionFilter, SipHash};
    ///
    /// let filter: ExtensionFilter<SipHash> = ExtensionFilter::builder().capacity(100).hasher::<SipHash>().build()?;
    /// # Ok::<(), besom::BuildError>(())
    /// ```
    pub fn hasher<G: KeyHasher>(self) -> Builder<F::With<G>> {
        let Self { capacity, max_capacity, growable, rate, load, seed, options } = self;
        Builder { capacity, max_capacity, growable, rate, load, seed, options }
    }

    /// Returns the memory that the filter will take, known before it is built:
    /// [`FilterStats::bits`](crate::FilterStats::bits) of the empty filter. Keys add to it only in rare cases, if more
    /// of them than usual find no place in their part of the table. Repairs add to it in adaptive filters, and growth
    /// does. Allocates nothing.
    ///
    /// # Errors
    ///
    /// [`BuildError`] says which parameter cannot be met, and what can.
    pub fn size_in_bits(&self) -> Result<usize, BuildError> {
        F::size_in_bits(self)
    }

    /// Builds the empty filter.
    ///
    /// # Errors
    ///
    /// [`BuildError`] says which parameter cannot be met, and what can, or how much memory could not be allocated.
    pub fn build(self) -> Result<F, BuildError> {
        F::build(&self)
    }

    /// The rate that was asked for.
    pub(crate) fn rate(&self) -> f64 {
        self.rate.unwrap_or(DEFAULT_RATE)
    }

    /// The capacity that was asked for, if it is one.
    pub(crate) fn checked_capacity(&self) -> Result<usize, BuildError> {
        if self.capacity == 0 { Err(BuildError::ZeroCapacity) } else { Ok(self.capacity) }
    }

    /// The hash function, with the seed that was asked for or a random one.
    pub(crate) fn hash_function(&self) -> F::Hasher {
        F::Hasher::with_seed(self.seed.unwrap_or_else(Seed::random))
    }

    /// A builder of a filter for all of these keys, or for more if that was asked for.
    pub(crate) fn for_keys<K>(mut self, keys: &[K]) -> Self {
        self.capacity = self.capacity.max(keys.len()).max(1);
        self
    }
}

impl<F: Slotted> Builder<F> {
    /// Sets the share of the slots in use when the filter is full, between 0 and 1. Less is faster and larger.
    ///
    /// ```
    /// use besom::BinFilter;
    ///
    /// let size = |load| BinFilter::builder().capacity(10_000).max_load(load).size_in_bits();
    /// assert!(size(0.95)? < size(0.5)?);
    /// # Ok::<(), besom::BuildError>(())
    /// ```
    pub fn max_load(mut self, load: f64) -> Self {
        self.load = Some(load);
        self
    }
}

impl<F: Build + Growable> Builder<F> {
    /// Lets a full filter double instead of refusing keys, as often as it takes, at the same rate and the same bits per
    /// key. A doubling reads every key from the remote, in one scan. Filters that are [addressed by
    /// hash](crate::HashAddressed) write nothing to it; a [`BroomFilter`](crate::BroomFilter) writes every key again,
    /// and this is its one operation that is not pauseless.
    ///
    /// Plain filters have [`growable_to`](Self::growable_to), with a limit, instead: without a remote to ask for more
    /// of a key's hash, they have to keep the bits for their largest size from the beginning.
    ///
    /// ```
    /// use besom::{Adaptive, ExtensionFilter, Filter, MemoryRemote};
    ///
    /// let (mut filter, mut remote) = (ExtensionFilter::builder().capacity(100).growable().build()?, MemoryRemote::new());
    /// (0..1000_u64).try_for_each(|key| filter.insert(&key, &mut remote).map(drop))?;
    /// assert!(filter.capacity() >= 1000 && filter.contains(&999_u64));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn growable(mut self) -> Self {
        self.growable = true;
        self
    }
}

impl<F: GrowableTo> Builder<F> {
    /// Lets the filter grow on demand, by doubling, until it holds this many keys. It meets the requested rate all
    /// the way, and pays for that with one bit more per key for every doubling that is still to come.
    ///
    /// Adaptive filters have [`growable`](Self::growable), without a limit, instead: they ask their remote for more of
    /// a key's hash. A plain filter has none to ask and has to keep the bits for its largest size from the beginning,
    /// so it must be told that size.
    ///
    /// ```
    /// use besom::{BinFilter, Filter, Insert};
    ///
    /// let mut filter = BinFilter::builder().capacity(100).growable_to(1000).build()?;
    /// (0..1000_u64).try_for_each(|key| filter.insert(&key).map(drop))?;
    /// assert!(filter.capacity() >= 1000 && filter.contains(&999_u64));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn growable_to(mut self, keys: usize) -> Self {
        self.max_capacity = Some(keys);
        self
    }
}

impl<F: FromRemote> Builder<F> {
    /// Builds the filter of these keys, each of which counts once, or one with room for more if a larger
    /// [`capacity`](Self::capacity) was asked for. The remote is emptied first and then has them.
    ///
    /// Several times faster than inserting them one by one: they are sorted by place first, and table and remote are
    /// written in one pass; with the feature `rayon`, on all cores. Takes 16 bytes a key meanwhile. Where the builder
    /// chooses the table, this many keys count as capacity.
    ///
    /// ```
    /// use besom::{Adaptive, ExtensionFilter, Filter, MemoryRemote};
    ///
    /// let (keys, mut remote) = ((0..10_000).collect::<Vec<u64>>(), MemoryRemote::new());
    /// let mut filter = ExtensionFilter::builder().from_keys(&keys, &mut remote)?;
    /// assert!(filter.len() == 10_000 && keys.iter().all(|key| filter.contains(key)));
    /// assert!(filter.remove(&7_u64, &mut remote)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`BulkError`] says what cannot be met, or how the remote failed. It may have any part of the keys then: clear
    /// it, or do this again.
    pub fn from_keys<K, R>(self, keys: &[K], remote: &mut R) -> Result<F, BulkError<R::Error>>
    where
        K: Key + Sync,
        R: Remote,
    {
        Ok(self.for_keys(keys).build()?.filled(keys, remote)?)
    }

    /// Builds the filter of all keys that a remote has: the way back when its file is lost. Repairs are forgotten. One
    /// sequential pass over the remote, which is only read; two if there are more keys than the capacity and the filter
    /// is [growable](Self::growable). No memory but the filter's.
    ///
    /// The seed must be the one that the addresses were made with; the other parameters may be others.
    ///
    /// ```
    /// use besom::{Adaptive, Filter, MemoryRemote, TelescopingFilter};
    ///
    /// let (builder, mut remote) = (TelescopingFilter::builder().capacity(100).seed(7_u64), MemoryRemote::new());
    /// let mut filter = builder.clone().build()?;
    /// filter.insert("key", &mut remote)?;
    /// drop(filter); // a crash
    /// assert!(builder.from_sorted(&mut remote)?.contains("key"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`BulkError`] if the remote failed, has more keys than the filter is for, or has keys at addresses that are not
    /// theirs.
    pub fn from_sorted<R: Remote>(self, remote: &mut R) -> Result<F, BulkError<R::Error>> {
        Ok(self.build()?.refilled(remote)?)
    }
}

/// Refuses a value out of its range, and NaN.
pub(crate) fn in_range(name: &'static str, value: f64, min: f64, max: f64) -> Result<(), BuildError> {
    if (min..=max).contains(&value) { Ok(()) } else { Err(BuildError::OutOfRange { name, value, min, max }) }
}

/// Gives a filter `builder` and `with_capacity`, with the hash function that is used unless another one is chosen.
macro_rules! built_by {
    ($builder:ident, [$($generics:tt)*] $filter:ty) => {
        impl<$($generics)*> $filter {
            #[doc = concat!("Returns a builder; see [`", stringify!($builder), "`].")]
            pub fn builder() -> $crate::builder::Builder<Self> {
                $crate::builder::Builder::new()
            }

            /// Returns an empty filter for this many keys, with a false-positive rate of 1/256 and a random seed.
            ///
            /// # Errors
            ///
            /// [`BuildError`](crate::BuildError) for capacity 0, and for more than memory holds.
            pub fn with_capacity(keys: usize) -> Result<Self, $crate::BuildError> {
                Self::builder().capacity(keys).build()
            }
        }
    };
}
pub(crate) use built_by;
