//! What the builders of all filters with values have in common.

use crate::quotient::{
    DEFAULT_LOAD, DEFAULT_RATE, Geometry, Table, fraction_bits, remainder_bits, slots_for,
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
    pub(crate) growable: bool,
}

impl Default for Parameters {
    fn default() -> Self {
        let (rate, load) = (DEFAULT_RATE, DEFAULT_LOAD);
        Self { capacity: 0, rate, load, seed: None, overflow: Overflow::default(), growable: false }
    }
}

impl Parameters {
    /// The filter on a table with or without codes. `make` gets the table and says what goes with it; `None` if
    /// the memory is not to be had.
    pub(crate) fn build<S: Scheme, H: KeyHasher>(
        self,
        coded: bool,
        make: impl FnOnce(&Table) -> Option<(S, S::Store)>,
    ) -> Result<Core<S, H>, BuildError> {
        let slots = slots_for(self.capacity, self.load)?;
        let bits = remainder_bits(self.rate, self.load)?;
        if bits > fraction_bits(slots) {
            // As many slots as leave enough of the hash's 64 bits for the remainder.
            let max = ((1_u64 << (64 - bits)).min(Geometry::MAX_SLOTS) as f64 * self.load) as usize;
            return Err(BuildError::CapacityTooLarge { capacity: self.capacity, max });
        }
        let table = Table::new(slots, bits, coded)?;
        let bytes = table.physical_slots() as usize;
        let (scheme, values) = make(&table).ok_or(BuildError::OutOfMemory { bytes })?;
        let hasher = H::with_seed(self.seed.unwrap_or_else(Seed::random));
        let core = Core::new(table, values, scheme, hasher, self.capacity);
        Ok(Core { growable: self.growable, ..core })
    }
}

/// The methods that the builders of filters with values have in common.
macro_rules! common_parameters {
    () => {
        /// How many keys the filter shall hold. Any number, not only powers of two.
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

        /// The seed of the hash function; the operating system chooses one unless given.
        pub fn seed(mut self, seed: impl Into<$crate::Seed>) -> Self {
            self.parameters.seed = Some(seed.into());
            self
        }

        /// Lets a full filter double instead of refusing keys. Doubling reads every key from the remote and writes
        /// all of them back in one group.
        pub fn growable(mut self) -> Self {
            self.parameters.growable = true;
            self
        }
    };
}
pub(crate) use common_parameters;

/// Implements the traits of a filter by its field `core`, and the methods that have no trait.
macro_rules! forward_to_core {
    ($filter:ident) => {
        impl<H: $crate::KeyHasher> $filter<H> {
            /// Removes all keys and repairs, from the remote as well; capacity and hash function stay.
            ///
            /// # Errors
            ///
            /// [`AdaptiveError::Remote`](crate::AdaptiveError::Remote) if the remote failed; nothing has changed.
            pub fn clear<R: $crate::Remote>(
                &mut self,
                remote: &mut R,
            ) -> Result<(), $crate::AdaptiveError<R::Error>> {
                self.core.clear(remote)
            }

            /// Doubles the capacity now: reads every key from the remote, and writes all of them back in one group.
            ///
            /// # Errors
            ///
            /// [`AdaptiveError`](crate::AdaptiveError) if the remote failed, memory is lacking, or the hash has no
            /// bits left for more slots; filter and remote are as they were.
            pub fn grow<R: $crate::Remote>(
                &mut self,
                remote: &mut R,
            ) -> Result<(), $crate::AdaptiveError<R::Error>> {
                self.core.grow(remote)
            }

            /// The seed of the hash function.
            pub fn seed(&self) -> $crate::Seed {
                self.core.hasher().seed()
            }

            /// Checks all invariants that can be checked without the remote. Walks the whole filter.
            ///
            /// # Errors
            ///
            /// [`InvariantError`](crate::InvariantError) with the first violation found.
            pub fn verify(&self) -> Result<(), $crate::InvariantError> {
                self.core.verify()
            }

            /// Checks that every slot holds the key that the remote has for it. Reads every list.
            ///
            /// # Errors
            ///
            /// The outer error is the remote's, the inner one the first violation found.
            pub fn verify_remote<R: $crate::Remote>(
                &self,
                remote: &mut R,
            ) -> Result<Result<(), $crate::InvariantError>, R::Error> {
                self.core.verify_remote(remote)
            }
        }

        impl<H: $crate::KeyHasher> $crate::Filter for $filter<H> {
            #[inline]
            fn digest(&self, bytes: &[u8]) -> $crate::Digest {
                self.core.digest(bytes)
            }

            #[inline]
            fn contains_digest(&self, digest: $crate::Digest) -> bool {
                self.core.contains_digest(digest)
            }

            fn contains_many<K: $crate::Key>(&self, keys: &[K], answers: &mut Vec<bool>) {
                self.core.contains_many(keys, answers);
            }

            fn len(&self) -> usize {
                self.core.len()
            }

            fn capacity(&self) -> usize {
                self.core.capacity()
            }

            fn stats(&self) -> $crate::FilterStats {
                self.core.stats()
            }
        }

        impl<H: $crate::KeyHasher> $crate::Adaptive for $filter<H> {
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

            fn remove<K, R>(
                &mut self,
                key: &K,
                remote: &mut R,
            ) -> Result<bool, $crate::AdaptiveError<R::Error>>
            where
                K: $crate::Key + ?Sized,
                R: $crate::Remote,
            {
                key.with_bytes(|bytes| self.core.remove(bytes, remote))
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
                key.with_bytes(|bytes| self.core.adapt(bytes, remote))
            }
        }
    };
}
pub(crate) use forward_to_core;
