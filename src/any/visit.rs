//! From a kind to the type of its filter.

use crate::exact::ExactList;
use crate::format::{HasRuns, Kind, Persist, Runs};
use crate::roster::roster;
use crate::{
    Adaptation, Adaptive, AdaptiveBloomFilter, BinFilter, BlockedBloomFilter, BloomFilter, BroomFilter,
    BuildError, Cascade, CuckooFilter, CuckooingFilter, CyclicFilter, ExtensionFilter, Insert, KeyHasher,
    Merge, MergeError, QuotientFilter, RemoteCuckooFilter, RemovalDisabled, Remove, SwappingFilter,
    TelescopingFilter, TinySet, UncompressedTelescopingFilter, WhitelistFilter, Xxh3,
};

use super::Config;

/// A filter that can be built from a [`Config`].
pub trait Configured: Persist + Clone + std::fmt::Debug + Send + Sync + 'static {
    /// Builds the filter. The kind and the hash function that the configuration names are not looked at.
    ///
    /// # Errors
    ///
    /// What the builder refuses; [`BuildError::Unsupported`] for options that it does not have.
    fn configured(config: &Config) -> Result<Self, BuildError>;
}

/// Does something with the type of a filter that is known by its kind only; see [`visit`].
pub trait Visit<H: KeyHasher> {
    /// What comes of it.
    type Output;

    /// Called for a filter that works alone.
    fn plain<F: Configured<Hasher = H> + Insert>(self, abilities: Abilities<F>) -> Self::Output;

    /// Called for a filter with a remote.
    fn adaptive<F: Configured<Hasher = H> + Adaptive>(self, abilities: Abilities<F>) -> Self::Output;

    /// Called for the list that is built from two lists and does not change.
    fn list(self, abilities: Abilities<ExactList<H>>) -> Self::Output;
}

/// What a filter can do beyond what all do that are used in its way.
#[derive(Debug)]
pub struct Abilities<F> {
    pub(super) remove: Option<Removing<F>>,
    pub(super) adapt: Option<fn(&mut F, &[u8]) -> Adaptation>,
    pub(super) merge: Option<Merging<F>>,
    pub(super) runs: Option<Taken<F>>,
}

type Removing<F> = fn(&mut F, &[u8]) -> Result<bool, RemovalDisabled>;

type Merging<F> = fn(&mut F, &F) -> Result<(), MergeError>;

/// A filter taken apart into runs, and put together again.
type Taken<F> = (fn(&F) -> Option<Runs>, fn(&F, &Runs) -> Option<F>);

impl<F> Clone for Abilities<F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F> Copy for Abilities<F> {}

impl<F> Default for Abilities<F> {
    fn default() -> Self {
        Self { remove: None, adapt: None, merge: None, runs: None }
    }
}

impl<F> Abilities<F> {
    /// Returns whether keys can be removed without a remote.
    #[must_use]
    pub fn can_remove(&self) -> bool {
        self.remove.is_some()
    }

    /// Returns whether it repairs false positives without a remote.
    #[must_use]
    pub fn can_adapt(&self) -> bool {
        self.adapt.is_some()
    }

    /// Returns whether it can be merged with another of its kind.
    #[must_use]
    pub fn can_merge(&self) -> bool {
        self.merge.is_some()
    }

    pub(super) fn and_remove(self) -> Self
    where
        F: Remove,
    {
        Self { remove: Some(F::remove), ..self }
    }

    fn and_merge(self) -> Self
    where
        F: Merge,
    {
        Self { merge: Some(F::merge), ..self }
    }

    fn and_runs(self) -> Self
    where
        F: HasRuns,
    {
        Self { runs: Some((F::runs, F::with_runs)), ..self }
    }
}

impl<H: KeyHasher> Abilities<WhitelistFilter<H>> {
    fn and_adapt(self) -> Self {
        Self { adapt: Some(|filter, key| filter.adapt(key).unwrap_or(Adaptation::Unfixable)), ..self }
    }
}

/// Adds abilities, one after the other.
macro_rules! with {
    ($abilities:expr) => {
        $abilities
    };
    ($abilities:expr, inert $($more:tt)*) => {
        with!($abilities $($more)*)
    };
    ($abilities:expr, remove $($more:tt)*) => {
        with!($abilities.and_remove() $($more)*)
    };
    ($abilities:expr, adapt $($more:tt)*) => {
        with!($abilities.and_adapt() $($more)*)
    };
    ($abilities:expr, merge $($more:tt)*) => {
        with!($abilities.and_merge() $($more)*)
    };
    ($abilities:expr, runs $($more:tt)*) => {
        with!($abilities.and_runs() $($more)*)
    };
}

/// Sets one option of a builder, if the configuration has it.
macro_rules! set {
    ($builder:ident, $config:ident, growable) => {
        if $config.growable == Some(true) {
            $builder = $builder.growable();
        }
    };
    ($builder:ident, $config:ident, shape) => {
        if let Some((tables, slots)) = $config.shape {
            $builder = $builder.shape(tables, slots);
        }
    };
    ($builder:ident, $config:ident, $option:ident) => {
        if let Some(value) = $config.$option {
            $builder = $builder.$option(value);
        }
    };
}

/// Makes a filter of the roster one that can be configured.
macro_rules! configured {
    (plain, $kind:ident, $filter:ty, { $($option:ident)* }) => {
        impl<H: KeyHasher> Configured for $filter {
            fn configured(config: &Config) -> Result<Self, BuildError> {
                type Hashing<H> = $filter;
                config.check(Kind::$kind)?;
                let mut builder = Hashing::<Xxh3>::builder().capacity(config.capacity);
                set!(builder, config, seed);
                set!(builder, config, false_positive_rate);
                $(set!(builder, config, $option);)*
                builder.hasher::<H>().build()
            }
        }
    };
    (adaptive, $($rest:tt)*) => {
        configured!(plain, $($rest)*);
    };
    ($other:ident, $($rest:tt)*) => {};
}

/// Calls the visitor with the type of a row.
macro_rules! call {
    ($visitor:ident, parts, $filter:ty, [$($ability:ident)*]) => {
        None
    };
    ($visitor:ident, $way:ident, $filter:ty, [$($ability:ident)*]) => {{
        Some($visitor.$way(with!(Abilities::<$filter>::default() $(, $ability)*)))
    }};
}

macro_rules! rows {
    ($($kind:ident = $code:literal, $name:literal, $way:ident $abilities:tt [$($module:ident)?] $filter:ident $(<$($argument:tt),*>)?
        { $($option:ident)* };)*) => {
        $(configured!($way, $kind, $filter $(<$($argument),*>)?, { $($option)* });)*

        /// Calls the visitor with the type of the filters of this kind, and what they can do. `None` for
        /// [`Kind::Sharded`], whose parts are of any other kind.
        ///
        /// This is for code that has to be compiled for each filter, such as a loop that is measured. What a call for
        /// each operation does not hurt is better off with an [`AnyFilter`](super::AnyFilter).
        ///
        /// ```
        /// use besom::any::{Abilities, Config, Configured, Visit, visit};
        /// use besom::exact::ExactList;
        /// use besom::format::Kind;
        /// use besom::{Adaptive, BuildError, Insert, Xxh3};
        ///
        /// /// The size of a filter without keys.
        /// struct Size(Config);
        ///
        /// impl Visit<Xxh3> for Size {
        ///     type Output = Result<usize, BuildError>;
        ///
        ///     fn plain<F: Configured<Hasher = Xxh3> + Insert>(self, _: Abilities<F>) -> Self::Output {
        ///         Ok(F::configured(&self.0)?.stats().bits)
        ///     }
        ///
        ///     fn adaptive<F: Configured<Hasher = Xxh3> + Adaptive>(self, _: Abilities<F>) -> Self::Output {
        ///         Ok(F::configured(&self.0)?.stats().bits)
        ///     }
        ///
        ///     fn list(self, _: Abilities<ExactList>) -> Self::Output {
        ///         Ok(0)
        ///     }
        /// }
        ///
        /// let config: Config = "blocked-bloom:capacity=1000".parse()?;
        /// let bits = visit(config.kind(), Size(config)).expect("a filter of one part")?;
        /// assert!((8_000..16_000).contains(&bits));
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        pub fn visit<H: KeyHasher, V: Visit<H>>(kind: Kind, visitor: V) -> Option<V::Output> {
            match kind {
                $(Kind::$kind => call!(visitor, $way, $filter $(<$($argument),*>)?, $abilities),)*
            }
        }
    };
}
roster!(rows);
