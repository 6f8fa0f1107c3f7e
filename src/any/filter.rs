//! A filter of any kind.

use std::fmt;
use std::ops::RangeInclusive;

#[cfg(doc)]
use crate::AdaptiveError;
use crate::exact::ExactList;
use crate::format::{Decoder, Encoder, FormatError, Kind, Persist, Runs};
use crate::{
    Adaptation, Adaptive, Authority, BuildError, Digest, Filter, FilterStats, Insert, InsertManyError,
    InvariantError, Key, KeyHasher, Merge, MergeError, Remote, RemoteResult, Settled, SipHash, Xxh3,
};

use super::object::{Adapting, Fixed, Object, Plain};
use super::remote::Lent;
use super::{Abilities, Config, Configured, DynFilter, Visit, visit};

/// A filter whose kind is chosen at run time.
///
/// It does what a filter of its kind does, for one more indirect call per operation. Filters without a remote ignore the
/// one that they are given, and answer [`Adaptation::Unfixable`] where others repair. What a kind cannot do, it refuses
/// with [`AdaptiveError::Unsupported`].
///
/// Reading is that of [`Persist`]: [`load`](Persist::load), [`from_bytes`](Persist::from_bytes),
/// [`open`](Persist::open). The hash function is a type parameter; [`inspect`](crate::format::inspect) says which one a
/// file has. A file of [`Sharded`](crate::Sharded) filters is one of `Sharded<AnyFilter>`.
pub struct AnyFilter<H: KeyHasher = Xxh3> {
    object: Box<dyn Object<H>>,
}

impl<H: AnyHasher> AnyFilter<H> {
    /// Builds the filter that a configuration asks for. The hash function is the type's.
    ///
    /// # Errors
    ///
    /// What the builder refuses, and [`BuildError::Unsupported`] for options that it does not have. Exact lists and
    /// sharded filters are not built from parameters.
    ///
    /// ```
    /// use besom::any::AnyFilter;
    /// use besom::Filter;
    ///
    /// let filter = AnyFilter::<besom::Xxh3>::build(&"bloom:capacity=1000,rate=0.01".parse()?)?;
    /// assert_eq!((filter.capacity(), filter.is_adaptive()), (1000, false));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn build(config: &Config) -> Result<Self, BuildError> {
        H::build(config)
    }
}

impl<H: KeyHasher> AnyFilter<H> {
    /// Returns a list in the form of a filter of any kind.
    #[must_use]
    pub fn from_list(list: ExactList<H>) -> Self {
        Self { object: Box::new(Fixed { filter: list, abilities: Abilities::default() }) }
    }

    /// Returns whether the filter has a remote.
    #[must_use]
    pub fn is_adaptive(&self) -> bool {
        self.object.is_adaptive()
    }

    /// Returns the filter as the object-safe trait has it: by the bytes of keys, which are not copied.
    ///
    /// ```
    /// use besom::Xxh3;
    /// use besom::any::AnyFilter;
    ///
    /// let filter = AnyFilter::<Xxh3>::build(&"bloom:capacity=1000".parse()?)?;
    /// let mut answers = Vec::new();
    /// filter.as_dyn().contains_words(&[7, 8], &mut answers);
    /// assert_eq!(answers, [false, false]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn as_dyn(&self) -> &dyn DynFilter {
        &*self.object
    }

    /// Returns the filter behind the object-safe trait.
    #[must_use]
    pub fn into_dyn(self) -> Box<dyn DynFilter> {
        self.object.into_dyn()
    }

    /// Inserts keys by their digests, as [`Insert::insert_digests`] does. `None`, and nothing happens, if the filter
    /// needs the keys themselves.
    pub fn insert_digests(&mut self, digests: &[Digest]) -> Option<Result<usize, InsertManyError>> {
        self.object.insert_digests(digests)
    }

    /// The items of the filter, if it consists of runs.
    pub(crate) fn runs(&self) -> Option<Runs> {
        self.object.runs()
    }

    /// The filter of the same measures with these items.
    pub(crate) fn with_runs(&self, runs: &Runs) -> Option<Self> {
        self.object.with_runs(runs).map(|object| Self { object })
    }
}

/// A hash function for which filters of every kind are compiled, so that an [`AnyFilter`] can have it.
///
/// [`Xxh3`] and [`SipHash`] have it. Code that is generic over the hash function of an [`AnyFilter`] asks for it, as
/// here, where the file says which function to call:
///
/// ```
/// use besom::any::{AnyFilter, AnyHasher, Config};
/// use besom::format::{FormatError, Persist, ReadOptions, WriteOptions, inspect};
/// use besom::{Filter, HashKind, SipHash, Xxh3};
///
/// fn capacity<H: AnyHasher>(file: &[u8]) -> Result<usize, FormatError> {
///     let (filter, _) = AnyFilter::<H>::from_bytes(file, &ReadOptions::new())?;
///     Ok(filter.capacity())
/// }
///
/// let config: Config = "bins:capacity=1000".parse()?;
/// let file = AnyFilter::<SipHash>::build(&config)?.to_bytes(&WriteOptions::new())?;
/// let capacity = match inspect(&mut &file[..])?.hash {
///     HashKind::SipHash => capacity::<SipHash>(&file)?,
///     _ => capacity::<Xxh3>(&file)?,
/// };
/// assert_eq!(capacity, 1000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// For a [function of your own](KeyHasher), write `impl AnyHasher for Mine {}`. This compiles every filter of the
/// roster into your crate, a good deal of code; those of the two functions above are compiled once, in this one.
pub trait AnyHasher: KeyHasher {
    /// Builds a filter; what [`AnyFilter::build`] calls.
    ///
    /// # Errors
    ///
    /// Those of [`AnyFilter::build`].
    fn build(config: &Config) -> Result<AnyFilter<Self>, BuildError> {
        build(config)
    }

    /// Reads a filter; what [`AnyFilter::decode`] calls.
    ///
    /// # Errors
    ///
    /// Those of [`Persist::decode`].
    fn decode(decoder: &mut Decoder<'_>) -> Result<AnyFilter<Self>, FormatError> {
        decode(decoder)
    }
}

macro_rules! compiled_here {
    ($($hasher:ty),*) => {$(
        // Methods of its own, and never inlined: those of the trait would be compiled again by every crate that calls
        // them.
        impl AnyHasher for $hasher {
            #[inline(never)]
            fn build(config: &Config) -> Result<AnyFilter<Self>, BuildError> {
                build(config)
            }

            #[inline(never)]
            fn decode(decoder: &mut Decoder<'_>) -> Result<AnyFilter<Self>, FormatError> {
                decode(decoder)
            }
        }
    )*};
}
compiled_here!(Xxh3, SipHash);

fn build<H: KeyHasher>(config: &Config) -> Result<AnyFilter<H>, BuildError> {
    visit(config.kind(), Build(config)).unwrap_or_else(|| Err(not_built(config.kind())))
}

fn decode<H: KeyHasher>(decoder: &mut Decoder<'_>) -> Result<AnyFilter<H>, FormatError> {
    let kind = decoder.kind();
    let wrong = FormatError::WrongKind { found: kind, expected: AnyFilter::<Xxh3>::KIND };
    visit(kind, Decode(decoder)).unwrap_or(Err(wrong))
}

fn not_built(kind: Kind) -> BuildError {
    BuildError::Unsupported { filter: kind.name(), option: "a configuration" }
}

/// Builds the filter of a configuration.
struct Build<'c>(&'c Config);

impl<H: KeyHasher> Visit<H> for Build<'_> {
    type Output = Result<AnyFilter<H>, BuildError>;

    fn plain<F: Configured<Hasher = H> + Insert>(self, abilities: Abilities<F>) -> Self::Output {
        Ok(AnyFilter { object: Box::new(Plain { filter: F::configured(self.0)?, abilities }) })
    }

    fn adaptive<F: Configured<Hasher = H> + Adaptive>(self, abilities: Abilities<F>) -> Self::Output {
        Ok(AnyFilter { object: Box::new(Adapting { filter: F::configured(self.0)?, abilities }) })
    }

    fn list(self, _: Abilities<ExactList<H>>) -> Self::Output {
        Err(not_built(Kind::Exact))
    }
}

/// Reads the filter of a file.
struct Decode<'d, 'r>(&'d mut Decoder<'r>);

impl<H: KeyHasher> Visit<H> for Decode<'_, '_> {
    type Output = Result<AnyFilter<H>, FormatError>;

    fn plain<F: Configured<Hasher = H> + Insert>(self, abilities: Abilities<F>) -> Self::Output {
        Ok(AnyFilter { object: Box::new(Plain { filter: F::decode(self.0)?, abilities }) })
    }

    fn adaptive<F: Configured<Hasher = H> + Adaptive>(self, abilities: Abilities<F>) -> Self::Output {
        Ok(AnyFilter { object: Box::new(Adapting { filter: F::decode(self.0)?, abilities }) })
    }

    fn list(self, abilities: Abilities<ExactList<H>>) -> Self::Output {
        Ok(AnyFilter { object: Box::new(Fixed { filter: ExactList::decode(self.0)?, abilities }) })
    }
}

impl<H: AnyHasher> Persist for AnyFilter<H> {
    const KIND: Kind = Kind::Extension;

    fn kind(&self) -> Kind {
        self.object.kind()
    }

    fn may_be(kind: Kind) -> bool {
        kind != Kind::Sharded
    }

    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), FormatError> {
        self.object.encode(encoder)
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, FormatError> {
        H::decode(decoder)
    }
}

impl<H: KeyHasher> Clone for AnyFilter<H> {
    fn clone(&self) -> Self {
        Self { object: self.object.boxed() }
    }
}

impl<H: KeyHasher> fmt::Debug for AnyFilter<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::filter::describe(&format!("AnyFilter<{}>", self.object.kind()), self, f)
    }
}

/// Keys that are handed on at once.
const BATCH: usize = 1024;

/// The bytes of an integer of 64 bits.
const WORD: usize = 8;

impl<H: KeyHasher> Filter for AnyFilter<H> {
    type Hasher = H;
    type Place = Digest;

    fn hasher(&self) -> &H {
        self.object.hasher()
    }

    fn place(&self, digest: Digest) -> Digest {
        digest
    }

    fn contains_at(&self, place: Digest, _: impl FnOnce() -> Digest) -> bool {
        self.object.contains_digest(place)
    }

    fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        // One call, in which the hash function is known, in place of one for it and one for the digest.
        key.with_bytes(|key| self.object.contains(key))
    }

    fn contains_many<K: Key>(&self, keys: &[K], answers: &mut Vec<bool>) {
        answers.clear();
        let (mut bytes, mut ends, mut words, mut part) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for keys in keys.chunks(BATCH) {
            bytes.clear();
            ends.clear();
            for key in keys {
                key.with_bytes(|key| bytes.extend_from_slice(key));
                ends.push(bytes.len());
            }
            let are_words = ends.iter().zip(1..).all(|(&end, number)| end == WORD * number);
            if are_words {
                words.clear();
                words.extend(bytes.as_chunks().0.iter().copied().map(u64::from_le_bytes));
                self.object.contains_words(&words, &mut part);
            } else {
                let starts = std::iter::once(&0).chain(&ends);
                let slices: Vec<&[u8]> = starts.zip(&ends).map(|(&start, &end)| &bytes[start..end]).collect();
                self.object.contains_many(&slices, &mut part);
            }
            answers.extend_from_slice(&part);
        }
    }

    fn len(&self) -> usize {
        self.object.len()
    }

    fn capacity(&self) -> usize {
        self.object.capacity()
    }

    fn false_positive_rate(&self) -> f64 {
        self.object.false_positive_rate()
    }

    fn stats(&self) -> FilterStats {
        self.object.stats()
    }

    fn verify(&self) -> Result<(), InvariantError> {
        self.object.verify()
    }
}

impl<H: KeyHasher> Merge for AnyFilter<H> {
    /// [`MergeError::Unsupported`] for kinds that cannot be merged, and for two filters of different kinds; otherwise
    /// what filters of this kind do.
    fn merge(&mut self, other: &Self) -> Result<(), MergeError> {
        self.object.merge(&*other.object)
    }
}

/// Filters without a remote leave it alone. They cannot tell a key that was inserted from one that they merely accept:
/// remove only what was inserted, as [`Remove::remove`](crate::Remove::remove) says. A guard and the stores do so.
impl<H: KeyHasher> Adaptive for AnyFilter<H> {
    fn is_hash_addressed(&self) -> bool {
        self.object.is_hash_addressed()
    }

    fn insert_bytes<R: Remote>(&mut self, key: &[u8], remote: &mut R) -> RemoteResult<bool, R> {
        Lent::to(remote, |remote| self.object.insert(key, remote))
    }

    fn insert_new_bytes<R: Remote>(&mut self, key: &[u8], remote: &mut R) -> RemoteResult<(), R> {
        Lent::to(remote, |remote| self.object.insert_new(key, remote))
    }

    fn remove_stored_bytes<R: Remote>(&mut self, key: &[u8], remote: &mut R) -> RemoteResult<bool, R> {
        Lent::to(remote, |remote| self.object.remove_stored(key, remote))
    }

    fn remove_bytes<R: Remote>(&mut self, key: &[u8], remote: &mut R) -> RemoteResult<bool, R> {
        Lent::to(remote, |remote| self.object.remove(key, remote))
    }

    fn adapt_bytes<R: Remote>(&mut self, key: &[u8], remote: &mut R) -> RemoteResult<Adaptation, R> {
        Lent::to(remote, |remote| self.object.adapt(key, remote))
    }

    fn clear<R: Remote>(&mut self, remote: &mut R) -> RemoteResult<(), R> {
        Lent::to(remote, |remote| self.object.clear(remote))
    }

    fn verify_remote<R: Remote>(&self, remote: &mut R) -> RemoteResult<(), R> {
        Lent::to(remote, |remote| self.object.verify_remote(remote))
    }

    fn settle<R: Remote>(
        &mut self,
        addresses: RangeInclusive<u64>,
        authority: Authority,
        remote: &mut R,
    ) -> RemoteResult<Settled, R> {
        Lent::to(remote, |remote| self.object.settle(addresses, authority, remote))
    }

    fn home(&self, digest: Digest) -> Option<RangeInclusive<u64>> {
        self.object.home(digest)
    }

    fn rebuild_sorted<R: Remote>(&mut self, remote: &mut R) -> RemoteResult<bool, R> {
        Lent::to(remote, |remote| self.object.rebuild_sorted(remote))
    }

    fn emptied(&self) -> Result<Self, BuildError> {
        self.object.emptied().map(|object| Self { object })
    }
}
