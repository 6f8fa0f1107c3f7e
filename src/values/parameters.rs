//! What the builders of all filters with values have in common.

use crate::builder::{Build, Builder, DEFAULT_RATE, Options};
use crate::quotient::{CodeShare, DEFAULT_LOAD, Geometry, Table, fraction_bits, remainder_bits, slots_for};
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

/// What filters with codes can be asked for.
#[derive(Debug, Clone, Copy, Default)]
pub struct ValueOptions {
    pub(crate) overflow: Overflow,
    /// If room for repairs was asked for.
    pub(crate) code: Option<CodeShare>,
}

impl Options for ValueOptions {}

impl Parameters {
    /// What a builder was asked for.
    pub(crate) fn of<F: Build>(builder: &Builder<F>, options: ValueOptions) -> Self {
        let &Builder { capacity, seed, growable, .. } = builder;
        let (rate, load) = (builder.rate(), builder.load.unwrap_or(DEFAULT_LOAD));
        let (overflow, code) = (options.overflow, options.code.unwrap_or(CodeShare::USUAL));
        Self { capacity, rate, load, seed, overflow, code, growable }
    }

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

        impl<H: $crate::KeyHasher> $crate::builder::Slotted for $filter<H> {}

        impl<H: $crate::KeyHasher> $crate::builder::FromRemote for $filter<H> {
            fn filled<K, R>(self, keys: &[K], remote: &mut R) -> $crate::RemoteResult<Self, R>
            where
                K: $crate::Key + Sync,
                R: $crate::Remote,
            {
                self.core.filled(keys, remote).map(|core| Self { core })
            }

            fn refilled<R: $crate::Remote>(self, remote: &mut R) -> $crate::RemoteResult<Self, R> {
                $crate::homes::from_sorted(self.core, remote).map(|core| Self { core })
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
            fn insert_bytes<R: $crate::Remote>(
                &mut self,
                key: &[u8],
                remote: &mut R,
            ) -> $crate::RemoteResult<bool, R> {
                self.core.insert(key, remote)
            }

            fn insert_new_bytes<R: $crate::Remote>(
                &mut self,
                key: &[u8],
                remote: &mut R,
            ) -> $crate::RemoteResult<(), R> {
                self.core.insert_new(key, remote)
            }

            fn remove_stored_bytes<R: $crate::Remote>(
                &mut self,
                key: &[u8],
                remote: &mut R,
            ) -> $crate::RemoteResult<bool, R> {
                $crate::homes::remove_stored(&mut self.core, key, remote)
            }

            fn remove_bytes<R: $crate::Remote>(
                &mut self,
                key: &[u8],
                remote: &mut R,
            ) -> $crate::RemoteResult<bool, R> {
                $crate::homes::remove(&mut self.core, key, remote)
            }

            fn adapt_bytes<R: $crate::Remote>(
                &mut self,
                key: &[u8],
                remote: &mut R,
            ) -> $crate::RemoteResult<$crate::Adaptation, R> {
                $crate::homes::adapt(&mut self.core, key, remote)
            }

            fn clear<R: $crate::Remote>(&mut self, remote: &mut R) -> $crate::RemoteResult<(), R> {
                self.core.clear(remote)
            }

            fn verify_remote<R: $crate::Remote>(&self, remote: &mut R) -> $crate::RemoteResult<(), R> {
                $crate::homes::verify_remote(&self.core, remote)
            }

            fn settle<R: $crate::Remote>(
                &mut self,
                addresses: std::ops::RangeInclusive<u64>,
                authority: $crate::Authority,
                remote: &mut R,
            ) -> $crate::RemoteResult<$crate::Settled, R> {
                $crate::homes::settle(&mut self.core, addresses, authority, remote)
            }

            fn rebuild_sorted<R: $crate::Remote>(&mut self, remote: &mut R) -> $crate::RemoteResult<bool, R> {
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
            fn grow<R: $crate::Remote>(&mut self, remote: &mut R) -> $crate::RemoteResult<(), R> {
                $crate::homes::grow(&mut self.core, remote)
            }
        }
    };
}
pub(crate) use forward_to_core;
