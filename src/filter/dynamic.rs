//! Any filter behind one object-safe trait, by bytes: for code that chooses a filter at run time.

use std::error::Error;
use std::fmt;
use std::ops::{ControlFlow, RangeInclusive};

use thiserror::Error as ThisError;

use crate::{
    Adaptation, Adaptive, AdaptiveError, Authority, Change, Filter, FilterStats, FullError, Insert,
    InvariantError, KeyHasher, Remote, RemovalDisabled, Remove, Seed, Settled, WhitelistFilter,
};

/// The error of some remote.
#[derive(Debug)]
pub struct AnyRemoteError(Box<dyn Error + Send + Sync>);

impl fmt::Display for AnyRemoteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for AnyRemoteError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}

impl AnyRemoteError {
    /// The error itself, to be downcast.
    #[must_use]
    pub fn into_inner(self) -> Box<dyn Error + Send + Sync> {
        self.0
    }
}

/// A remote whose error is [`AnyRemoteError`], so that a [`DynFilter`] can use it.
///
/// ```
/// use besom::{AnyRemote, ExtensionFilter, MemoryRemote, dyn_adaptive};
///
/// let mut filter = dyn_adaptive(ExtensionFilter::with_capacity(100)?);
/// let mut remote = AnyRemote(MemoryRemote::new());
/// filter.insert(b"key", &mut remote)?;
/// assert!(filter.contains(b"key"));
/// assert_eq!(remote.0.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct AnyRemote<R>(pub R);

fn erase<E: Error + Send + Sync + 'static>(error: E) -> AnyRemoteError {
    AnyRemoteError(Box::new(error))
}

impl<R: Remote> Remote for AnyRemote<R> {
    type Error = AnyRemoteError;

    fn range(
        &mut self,
        addresses: RangeInclusive<u64>,
        visit: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>,
    ) -> Result<(), AnyRemoteError> {
        self.0.range(addresses, visit).map_err(erase)
    }

    fn apply(&mut self, changes: &[Change<'_>]) -> Result<(), AnyRemoteError> {
        self.0.apply(changes).map_err(erase)
    }
}

/// An operation of a [`DynFilter`] failed. The filter is unchanged.
#[derive(Debug, ThisError)]
#[non_exhaustive]
pub enum DynFilterError {
    /// What an adaptive filter reports.
    #[error(transparent)]
    Adaptive(#[from] AdaptiveError<AnyRemoteError>),
    /// There was no room for the key.
    #[error(transparent)]
    Full(#[from] FullError),
    /// The filter cannot remove keys.
    #[error(transparent)]
    RemovalDisabled(#[from] RemovalDisabled),
}

type Outcome<T> = Result<T, DynFilterError>;

/// Any filter of the crate, by the bytes of keys. Filters without a remote do not touch the one that they are given.
pub trait DynFilter: Send + Sync {
    /// See [`Filter::contains`](crate::Filter::contains).
    fn contains(&self, key: &[u8]) -> bool;

    /// See [`Filter::contains_many`](crate::Filter::contains_many).
    fn contains_many(&self, keys: &[&[u8]], answers: &mut Vec<bool>);

    /// See [`Insert::insert`] and [`Adaptive::insert`].
    ///
    /// # Errors
    ///
    /// [`DynFilterError`] if there is no room or the remote failed.
    fn insert(&mut self, key: &[u8], remote: &mut dyn Remote<Error = AnyRemoteError>) -> Outcome<bool>;

    /// See [`Remove::remove`] and [`Adaptive::remove`].
    ///
    /// # Errors
    ///
    /// [`DynFilterError`] if the filter cannot remove keys or the remote failed.
    fn remove(&mut self, key: &[u8], remote: &mut dyn Remote<Error = AnyRemoteError>) -> Outcome<bool>;

    /// See [`Adaptive::adapt`]. A filter that does not adapt answers [`Adaptation::Unfixable`].
    ///
    /// # Errors
    ///
    /// [`DynFilterError`] if the remote failed.
    fn adapt(&mut self, key: &[u8], remote: &mut dyn Remote<Error = AnyRemoteError>) -> Outcome<Adaptation>;

    /// See [`Insert::clear`] and [`Adaptive::clear`].
    ///
    /// # Errors
    ///
    /// [`DynFilterError`] if the remote failed.
    fn clear(&mut self, remote: &mut dyn Remote<Error = AnyRemoteError>) -> Outcome<()>;

    /// See [`Adaptive::verify_remote`]. A filter without a remote agrees with any.
    ///
    /// # Errors
    ///
    /// [`DynFilterError`] if filter and remote disagree, or the remote failed.
    fn verify_remote(&self, remote: &mut dyn Remote<Error = AnyRemoteError>) -> Outcome<()>;

    /// See [`Adaptive::settle`]. A filter without a remote agrees with any.
    ///
    /// # Errors
    ///
    /// [`DynFilterError`] if the remote failed.
    fn settle(
        &mut self,
        addresses: RangeInclusive<u64>,
        authority: Authority,
        remote: &mut dyn Remote<Error = AnyRemoteError>,
    ) -> Outcome<Settled>;

    /// Whether the filter has a remote.
    fn is_adaptive(&self) -> bool;

    /// See [`Filter::verify`](crate::Filter::verify).
    ///
    /// # Errors
    ///
    /// [`InvariantError`] with the first violation found.
    fn verify(&self) -> Result<(), InvariantError>;

    /// See [`Filter::stats`](crate::Filter::stats).
    fn stats(&self) -> FilterStats;

    /// See [`Filter::len`](crate::Filter::len).
    fn len(&self) -> usize;

    /// See [`Filter::is_empty`](crate::Filter::is_empty).
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// See [`Filter::capacity`](crate::Filter::capacity).
    fn capacity(&self) -> usize;

    /// See [`Filter::seed`](crate::Filter::seed).
    fn seed(&self) -> Seed;
}

/// An adaptive filter behind [`DynFilter`].
pub fn dyn_adaptive<F: Adaptive + Send + Sync + 'static>(filter: F) -> Box<dyn DynFilter> {
    Box::new(Adapting(filter))
}

/// A filter without a remote and without removal behind [`DynFilter`].
///
/// ```
/// let filter = besom::dyn_plain(besom::BloomFilter::with_capacity(100)?);
/// assert!(filter.is_empty() && !filter.is_adaptive());
/// # Ok::<(), besom::BuildError>(())
/// ```
pub fn dyn_plain<F: Insert + Send + Sync + 'static>(filter: F) -> Box<dyn DynFilter> {
    Box::new(Plain { filter, remove: |_, _| Err(RemovalDisabled), adapt: unrepaired })
}

/// A filter without a remote that removes keys behind [`DynFilter`].
pub fn dyn_removable<F: Remove + Send + Sync + 'static>(filter: F) -> Box<dyn DynFilter> {
    Box::new(Plain { filter, remove: |filter, key| filter.remove(key), adapt: unrepaired })
}

/// A [`WhitelistFilter`] behind [`DynFilter`]. It adapts without a remote, and answers [`Adaptation::Unfixable`] when its list
/// is as long as it may be. **Adapt only what is not stored**: see [`WhitelistFilter::adapt`].
///
/// ```
/// use besom::{AnyRemote, MemoryRemote, WhitelistFilter, dyn_whitelist};
///
/// let builder = WhitelistFilter::builder().capacity(100).false_positive_rate(0.5).whitelist_bound(1);
/// let mut filter = dyn_whitelist(builder.build()?);
/// let mut remote = AnyRemote(MemoryRemote::new());
/// (0..100_u64).try_for_each(|key| filter.insert(&key.to_le_bytes(), &mut remote).map(drop))?;
/// let strangers = (100..200_u64).map(u64::to_le_bytes).filter(|key| filter.contains(key));
/// let strangers: Vec<_> = strangers.take(2).collect();
/// assert!(filter.adapt(&strangers[0], &mut remote)?.is_fixed());
/// assert!(!filter.adapt(&strangers[1], &mut remote)?.is_fixed());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn dyn_whitelist<H: KeyHasher>(filter: WhitelistFilter<H>) -> Box<dyn DynFilter> {
    let adapt =
        |filter: &mut WhitelistFilter<H>, key: &[u8]| filter.adapt(key).unwrap_or(Adaptation::Unfixable);
    Box::new(Plain { filter, remove: |_, _| Err(RemovalDisabled), adapt })
}

/// The answer of a filter that does not adapt.
fn unrepaired<F: Filter>(filter: &mut F, key: &[u8]) -> Adaptation {
    if filter.contains(key) { Adaptation::Unfixable } else { Adaptation::NotFalsePositive }
}

struct Adapting<F>(F);

struct Plain<F> {
    filter: F,
    remove: fn(&mut F, &[u8]) -> Result<bool, RemovalDisabled>,
    adapt: fn(&mut F, &[u8]) -> Adaptation,
}

/// The questions, which are the same for both.
macro_rules! forward_questions {
    ($self:ident => $filter:expr) => {
        fn contains(&$self, key: &[u8]) -> bool {
            $filter.contains(key)
        }

        fn contains_many(&$self, keys: &[&[u8]], answers: &mut Vec<bool>) {
            $filter.contains_many(keys, answers);
        }

        fn verify(&$self) -> Result<(), InvariantError> {
            $filter.verify()
        }

        fn stats(&$self) -> FilterStats {
            $filter.stats()
        }

        fn len(&$self) -> usize {
            $filter.len()
        }

        fn capacity(&$self) -> usize {
            $filter.capacity()
        }

        fn seed(&$self) -> Seed {
            $filter.seed()
        }
    };
}

impl<F: Adaptive + Send + Sync> DynFilter for Adapting<F> {
    forward_questions!(self => self.0);

    fn insert(&mut self, key: &[u8], mut remote: &mut dyn Remote<Error = AnyRemoteError>) -> Outcome<bool> {
        Ok(self.0.insert(key, &mut remote)?)
    }

    fn remove(&mut self, key: &[u8], mut remote: &mut dyn Remote<Error = AnyRemoteError>) -> Outcome<bool> {
        Ok(self.0.remove(key, &mut remote)?)
    }

    fn adapt(
        &mut self,
        key: &[u8],
        mut remote: &mut dyn Remote<Error = AnyRemoteError>,
    ) -> Outcome<Adaptation> {
        Ok(self.0.adapt(key, &mut remote)?)
    }

    fn clear(&mut self, mut remote: &mut dyn Remote<Error = AnyRemoteError>) -> Outcome<()> {
        Ok(self.0.clear(&mut remote)?)
    }

    fn verify_remote(&self, mut remote: &mut dyn Remote<Error = AnyRemoteError>) -> Outcome<()> {
        Ok(self.0.verify_remote(&mut remote)?)
    }

    fn settle(
        &mut self,
        addresses: RangeInclusive<u64>,
        authority: Authority,
        mut remote: &mut dyn Remote<Error = AnyRemoteError>,
    ) -> Outcome<Settled> {
        Ok(self.0.settle(addresses, authority, &mut remote)?)
    }

    fn is_adaptive(&self) -> bool {
        true
    }
}

impl<F: Insert + Send + Sync> DynFilter for Plain<F> {
    forward_questions!(self => self.filter);

    fn insert(&mut self, key: &[u8], _: &mut dyn Remote<Error = AnyRemoteError>) -> Outcome<bool> {
        Ok(self.filter.insert(key)?)
    }

    fn remove(&mut self, key: &[u8], _: &mut dyn Remote<Error = AnyRemoteError>) -> Outcome<bool> {
        Ok((self.remove)(&mut self.filter, key)?)
    }

    fn adapt(&mut self, key: &[u8], _: &mut dyn Remote<Error = AnyRemoteError>) -> Outcome<Adaptation> {
        Ok((self.adapt)(&mut self.filter, key))
    }

    fn clear(&mut self, _: &mut dyn Remote<Error = AnyRemoteError>) -> Outcome<()> {
        self.filter.clear();
        Ok(())
    }

    fn verify_remote(&self, _: &mut dyn Remote<Error = AnyRemoteError>) -> Outcome<()> {
        Ok(())
    }

    fn settle(
        &mut self,
        _: RangeInclusive<u64>,
        _: Authority,
        _: &mut dyn Remote<Error = AnyRemoteError>,
    ) -> Outcome<Settled> {
        Ok(Settled::Agreed)
    }

    fn is_adaptive(&self) -> bool {
        false
    }
}
