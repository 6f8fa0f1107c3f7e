//! What the builders of all filters with values have in common.

use crate::quotient::{
    CodeShare, DEFAULT_LOAD, DEFAULT_RATE, Geometry, Table, fraction_bits, remainder_bits, slots_for,
};
use crate::{BuildError, KeyHasher, Seed};

use super::{Core, Overflow, Scheme};

/// The parameters of a filter.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parameters {
    pub(crate) capacity: usize,
    pub(crate) rate: f64,
    pub(crate) load: f64,
    pub(crate) seed: Option<Seed>,
    pub(crate) overflow: Overflow,
    /// How much code a block has, if it has one.
    pub(crate) code: CodeShare,
    pub(crate) growable: bool,
}

impl Default for Parameters {
    fn default() -> Self {
        let (rate, load, code) = (DEFAULT_RATE, DEFAULT_LOAD, CodeShare::USUAL);
        Self { capacity: 0, rate, load, seed: None, overflow: Overflow::default(), code, growable: false }
    }
}

impl Parameters {
    /// How many slots the filter has, and how wide their remainders are.
    fn shape(self) -> Result<(u64, u32), BuildError> {
        let slots = slots_for(self.capacity, self.load)?;
        let bits = remainder_bits(self.rate, self.load)?;
        if bits > fraction_bits(slots) {
            // As many slots as leave enough of the hash's 64 bits for the remainder.
            let max = ((1_u64 << (64 - bits)).min(Geometry::MAX_SLOTS) as f64 * self.load) as usize;
            return Err(BuildError::CapacityTooLarge { capacity: self.capacity, max });
        }
        Ok((slots, bits))
    }

    /// The memory of the filter with a code for every block, or with this many bits for every slot beside it.
    pub(crate) fn size_in_bits(self, coded: bool, value_bits: usize) -> Result<usize, BuildError> {
        let (slots, bits) = self.shape()?;
        let size = Table::size(slots, bits, if coded { self.code } else { CodeShare::NONE });
        let beside = (value_bits * size.blocks * size.slots_per_block).next_multiple_of(64);
        Ok(size.bits + beside)
    }

    /// The filter on a table with or without codes. `make` gets the table and says what goes with it; `None` if
    /// the memory is not available.
    pub(crate) fn build<S: Scheme, H: KeyHasher>(
        self,
        coded: bool,
        make: impl FnOnce(&Table) -> Option<(S, S::Store)>,
    ) -> Result<Core<S, H>, BuildError> {
        let (slots, bits) = self.shape()?;
        let table = Table::new(slots, bits, if coded { self.code } else { CodeShare::NONE })?;
        let bytes = table.physical_slots() as usize;
        let (scheme, values) = make(&table).ok_or(BuildError::OutOfMemory { bytes })?;
        let hasher = H::with_seed(self.seed.unwrap_or_else(Seed::random));
        let core = Core::new(table, values, scheme, hasher, self.capacity);
        Ok(Core { growable: self.growable, ..core })
    }
}

/// The least code with which fewer than one block in a hundred outgrows it after this many repairs per key; the usual
/// share if none is enough, for then the side store takes the values. `holds` says by share, ascending, how many
/// repairs per key it holds so.
pub(crate) fn code_for(repairs: f64, holds: &[(CodeShare, f64)]) -> CodeShare {
    let enough = holds.iter().find(|(_, holds)| repairs <= *holds);
    enough.map_or(CodeShare::USUAL, |&(share, _)| share)
}

/// The methods that the builders of filters with values have in common.
macro_rules! common_parameters {
    ($filter:ident, coded: $coded:expr, value_bits: $value_bits:expr) => {
        $crate::values::common_parameters!();

        /// Builds the filter of these keys, each of which counts once, or one with room for more if a larger
        /// [`capacity`](Self::capacity) was asked for. The remote is emptied first and then has them.
        ///
        /// Several times faster than inserting them one by one: they are sorted by place first, and table and remote
        /// are written in one pass; with the feature `rayon`, on all cores. Takes 16 bytes a key meanwhile.
        ///
        /// # Errors
        ///
        /// [`BulkError`](crate::BulkError) says what cannot be met, or how the remote failed. It may have any part of
        /// the keys then: clear it, or do this again.
        pub fn from_keys<K, R>(
            mut self,
            keys: &[K],
            remote: &mut R,
        ) -> Result<$filter<H>, $crate::BulkError<R::Error>>
        where
            K: $crate::Key + Sync,
            R: $crate::Remote,
        {
            self.parameters.capacity = self.parameters.capacity.max(keys.len()).max(1);
            let $filter { core } = self.build()?;
            Ok($filter { core: core.filled(keys, remote)? })
        }

        /// Builds the filter of all keys that a remote has: the way back when its file is lost. Repairs are forgotten.
        /// One sequential pass over the remote, which is only read; two if there are more keys than the capacity and
        /// the filter is [growable](Self::growable). No memory but the filter's.
        ///
        /// The seed must be the one that the addresses were made with; the other parameters may be others.
        ///
        /// # Errors
        ///
        /// [`BulkError`](crate::BulkError) if the remote failed, has more keys than the filter is for, or has keys at
        /// addresses that are not theirs.
        pub fn from_sorted<R: $crate::Remote>(
            self,
            remote: &mut R,
        ) -> Result<$filter<H>, $crate::BulkError<R::Error>> {
            let $filter { core } = self.build()?;
            Ok($filter { core: $crate::homes::from_sorted(core, remote)? })
        }

        /// Returns the memory that the filter is going to take, known before it is built:
        /// [`FilterStats::bits`](crate::FilterStats::bits) of the empty filter. Keys do not add to it, but for a longer
        /// tail in rare cases; repairs do where a side store takes them, and growth does.
        ///
        /// # Errors
        ///
        /// [`BuildError`] as [`build`](Self::build), except that no memory is asked for.
        pub fn size_in_bits(&self) -> Result<usize, BuildError> {
            self.parameters.size_in_bits($coded, $value_bits)
        }
    };
    () => {
        /// Sets how many keys the filter holds. Any number, not only powers of two.
        pub fn capacity(mut self, keys: usize) -> Self {
            self.parameters.capacity = keys;
            self
        }

        /// The largest share of other keys that may be taken for stored ones when the filter is full and was told
        /// of none of them; 1/256 unless given. Remainders have whole bits, so the true rate can be as low as half
        /// of this.
        pub fn false_positive_rate(mut self, rate: f64) -> Self {
            self.parameters.rate = rate;
            self
        }

        /// The share of the slots in use when the filter is full; 0.95 unless given. Less is faster and larger.
        pub fn max_load(mut self, load: f64) -> Self {
            self.parameters.load = load;
            self
        }

        /// Sets the seed of the hash function; the operating system chooses one unless given.
        pub fn seed(mut self, seed: impl Into<$crate::Seed>) -> Self {
            self.parameters.seed = Some(seed.into());
            self
        }

        /// Lets a full filter double instead of refusing keys, as often as it takes, at the same rate and the same bits
        /// per key. A doubling scans the remote once and writes nothing to it.
        ///
        /// Plain filters have [`growable_to`](crate::BinFilterBuilder::growable_to), with a limit, instead: without a
        /// remote to ask for more of a key's hash, they have to keep the bits for their largest size from the
        /// beginning.
        pub fn growable(mut self) -> Self {
            self.parameters.growable = true;
            self
        }
    };
}
pub(crate) use common_parameters;

/// Implements the traits of a filter by its field `core`, and the methods that have no trait.
macro_rules! forward_to_core {
    ($filter:ident, $kind:ident) => {
        /// Parameters: quotients, remainder bits, blocks, growable, overflow, code bits.
        impl<H: $crate::KeyHasher> $crate::format::Persist for $filter<H> {
            const KIND: $crate::format::Kind = $crate::format::Kind::$kind;

            fn encode(
                &self,
                encoder: &mut $crate::format::Encoder<'_>,
            ) -> Result<(), $crate::format::FormatError> {
                self.core.encode(encoder)
            }

            fn decode(
                decoder: &mut $crate::format::Decoder<'_>,
            ) -> Result<Self, $crate::format::FormatError> {
                Ok(Self { core: $crate::values::Core::decode(decoder)? })
            }
        }

        impl<H: $crate::KeyHasher> $crate::format::HasRuns for $filter<H> {
            fn runs(&self) -> Option<$crate::format::Runs> {
                Some(self.core.runs())
            }

            fn with_runs(&self, runs: &$crate::format::Runs) -> Option<Self> {
                self.core.with_runs(runs).map(|core| Self { core })
            }
        }

        impl<H: $crate::KeyHasher> $crate::Filter for $filter<H> {
            type Hasher = H;
            type Place = $crate::quotient::Place;

            #[inline]
            fn hasher(&self) -> &H {
                self.core.hasher()
            }

            #[inline(always)]
            fn place(&self, digest: $crate::Digest) -> Self::Place {
                self.core.place(digest)
            }

            #[inline]
            fn prefetch(&self, place: Self::Place) {
                self.core.prefetch(place);
            }

            #[inline(always)]
            fn contains_at(&self, place: Self::Place, digest: impl FnOnce() -> $crate::Digest) -> bool {
                self.core.contains_at(place, digest)
            }

            /// Nearly always the upper half of the digest is enough, and the hash need not compute the other one. In
            /// the few other cases the key is hashed once more.
            #[inline(always)]
            fn contains<K: $crate::Key + ?Sized>(&self, key: &K) -> bool {
                let digest = || self.hasher().digest_key(key);
                self.core.contains_at(self.core.place(digest()), digest)
            }

            fn len(&self) -> usize {
                self.core.len()
            }

            fn capacity(&self) -> usize {
                self.core.capacity()
            }

            fn false_positive_rate(&self) -> f64 {
                self.core.false_positive_rate()
            }

            fn stats(&self) -> $crate::FilterStats {
                self.core.stats()
            }

            fn verify(&self) -> Result<(), $crate::InvariantError> {
                self.core.verify()
            }
        }

        impl<H: $crate::KeyHasher> $crate::Adaptive for $filter<H> {
            const HASH_ADDRESSED: bool = true;

            #[inline]
            fn insert<K, R>(
                &mut self,
                key: &K,
                remote: &mut R,
            ) -> Result<bool, $crate::AdaptiveError<R::Error>>
            where
                K: $crate::Key + ?Sized,
                R: $crate::Remote,
            {
                key.with_bytes(|bytes| self.core.insert(bytes, remote))
            }

            fn insert_new<K, R>(
                &mut self,
                key: &K,
                remote: &mut R,
            ) -> Result<(), $crate::AdaptiveError<R::Error>>
            where
                K: $crate::Key + ?Sized,
                R: $crate::Remote,
            {
                key.with_bytes(|bytes| self.core.insert_new(bytes, remote))
            }

            fn remove_stored<K, R>(
                &mut self,
                key: &K,
                remote: &mut R,
            ) -> Result<bool, $crate::AdaptiveError<R::Error>>
            where
                K: $crate::Key + ?Sized,
                R: $crate::Remote,
            {
                key.with_bytes(|bytes| $crate::homes::remove_stored(&mut self.core, bytes, remote))
            }

            fn remove<K, R>(
                &mut self,
                key: &K,
                remote: &mut R,
            ) -> Result<bool, $crate::AdaptiveError<R::Error>>
            where
                K: $crate::Key + ?Sized,
                R: $crate::Remote,
            {
                key.with_bytes(|bytes| $crate::homes::remove(&mut self.core, bytes, remote))
            }

            fn adapt<K, R>(
                &mut self,
                key: &K,
                remote: &mut R,
            ) -> Result<$crate::Adaptation, $crate::AdaptiveError<R::Error>>
            where
                K: $crate::Key + ?Sized,
                R: $crate::Remote,
            {
                key.with_bytes(|bytes| $crate::homes::adapt(&mut self.core, bytes, remote))
            }

            fn clear<R: $crate::Remote>(
                &mut self,
                remote: &mut R,
            ) -> Result<(), $crate::AdaptiveError<R::Error>> {
                self.core.clear(remote)
            }

            fn verify_remote<R: $crate::Remote>(
                &self,
                remote: &mut R,
            ) -> Result<(), $crate::AdaptiveError<R::Error>> {
                $crate::homes::verify_remote(&self.core, remote)
            }

            fn settle<R: $crate::Remote>(
                &mut self,
                addresses: std::ops::RangeInclusive<u64>,
                authority: $crate::Authority,
                remote: &mut R,
            ) -> Result<$crate::Settled, $crate::AdaptiveError<R::Error>> {
                $crate::homes::settle(&mut self.core, addresses, authority, remote)
            }

            fn rebuild_sorted<R: $crate::Remote>(
                &mut self,
                remote: &mut R,
            ) -> Result<bool, $crate::AdaptiveError<R::Error>> {
                let empty = self.core.emptied().map_err($crate::filter::out_of_memory)?;
                self.core = $crate::homes::from_sorted(empty, remote)?;
                Ok(true)
            }

            fn home(&self, digest: $crate::Digest) -> Option<std::ops::RangeInclusive<u64>> {
                Some($crate::homes::home(&self.core, digest))
            }

            fn emptied(&self) -> Result<Self, $crate::BuildError> {
                Ok(Self { core: self.core.emptied()? })
            }
        }

        impl<H: $crate::KeyHasher> $crate::HashAddressed for $filter<H> {}

        /// Equal filters have the same parameters, hash function, keys (as far as they can tell) and repairs, in the
        /// same slots.
        impl<H: $crate::KeyHasher> PartialEq for $filter<H> {
            fn eq(&self, other: &Self) -> bool {
                self.core == other.core
            }
        }

        impl<H: $crate::KeyHasher> $crate::Growable for $filter<H> {
            fn grow<R: $crate::Remote>(
                &mut self,
                remote: &mut R,
            ) -> Result<(), $crate::AdaptiveError<R::Error>> {
                $crate::homes::grow(&mut self.core, remote)
            }
        }
    };
}
pub(crate) use forward_to_core;
