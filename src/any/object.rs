//! What stands behind [`AnyFilter`](super::AnyFilter): one wrapper for each way in which filters are used.

use std::any::Any;
use std::ops::RangeInclusive;

use crate::format::{Encoder, FormatError, Kind, Persist, Runs};
use crate::{
    Adaptation, Adaptive, AdaptiveError, Authority, BuildError, Digest, Filter, FilterStats, Insert,
    InsertManyError, InvariantError, KeyHasher, MergeError, Remote, Seed, Settled,
};

use super::{Abilities, AnyRemoteError, DynFilter, DynFilterError};

type DynRemote<'r> = &'r mut dyn Remote<Error = AnyRemoteError>;
type Outcome<T> = Result<T, DynFilterError>;

/// A filter of the roster whose type is not known.
pub(super) trait Object<H: KeyHasher>: DynFilter {
    fn kind(&self) -> Kind;
    fn hasher(&self) -> &H;
    fn contains_digest(&self, digest: Digest) -> bool;
    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), FormatError>;
    fn boxed(&self) -> Box<dyn Object<H>>;
    fn emptied(&self) -> Result<Box<dyn Object<H>>, BuildError>;
    fn into_dyn(self: Box<Self>) -> Box<dyn DynFilter>;
    fn as_any(&self) -> &dyn Any;
    fn is_hash_addressed(&self) -> bool {
        false
    }
    fn home(&self, _: Digest) -> Option<RangeInclusive<u64>> {
        None
    }
    fn rebuild_sorted(&mut self, _: DynRemote<'_>) -> Outcome<bool> {
        Ok(false)
    }
    fn runs(&self) -> Option<Runs>;
    fn with_runs(&self, runs: &Runs) -> Option<Box<dyn Object<H>>>;
    /// `None` if the filter wants the keys themselves.
    fn insert_digests(&mut self, digests: &[Digest]) -> Option<Result<usize, InsertManyError>>;
    fn merge(&mut self, other: &dyn Object<H>) -> Result<(), MergeError>;
}

/// A filter with a remote.
#[derive(Clone)]
pub(super) struct Adapting<F> {
    pub(super) filter: F,
    pub(super) abilities: Abilities<F>,
}

/// A filter that works alone.
#[derive(Clone)]
pub(super) struct Plain<F> {
    pub(super) filter: F,
    pub(super) abilities: Abilities<F>,
}

/// A filter that does not change.
#[derive(Clone)]
pub(super) struct Fixed<F> {
    pub(super) filter: F,
    pub(super) abilities: Abilities<F>,
}

/// The questions, which are the same for all.
macro_rules! forward_questions {
    () => {
        fn contains(&self, key: &[u8]) -> bool {
            self.filter.contains(key)
        }

        fn contains_many(&self, keys: &[&[u8]], answers: &mut Vec<bool>) {
            self.filter.contains_many(keys, answers);
        }

        fn contains_words(&self, keys: &[u64], answers: &mut Vec<bool>) {
            self.filter.contains_many(keys, answers);
        }

        fn verify(&self) -> Result<(), InvariantError> {
            self.filter.verify()
        }

        fn false_positive_rate(&self) -> f64 {
            self.filter.false_positive_rate()
        }

        fn stats(&self) -> FilterStats {
            self.filter.stats()
        }

        fn len(&self) -> usize {
            self.filter.len()
        }

        fn capacity(&self) -> usize {
            self.filter.capacity()
        }

        fn seed(&self) -> Seed {
            self.filter.seed()
        }
    };
}

/// What every filter of the roster has.
macro_rules! forward_object {
    ($wrapper:ident) => {
        fn kind(&self) -> Kind {
            self.filter.kind()
        }

        fn hasher(&self) -> &F::Hasher {
            self.filter.hasher()
        }

        fn contains_digest(&self, digest: Digest) -> bool {
            self.filter.contains_digest(digest)
        }

        fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), FormatError> {
            self.filter.encode(encoder)
        }

        fn boxed(&self) -> Box<dyn Object<F::Hasher>> {
            Box::new(self.clone())
        }

        fn into_dyn(self: Box<Self>) -> Box<dyn DynFilter> {
            self
        }

        fn as_any(&self) -> &dyn Any {
            self
        }

        fn runs(&self) -> Option<Runs> {
            self.abilities.runs.and_then(|(runs, _)| runs(&self.filter))
        }

        fn with_runs(&self, runs: &Runs) -> Option<Box<dyn Object<F::Hasher>>> {
            let (_, with_runs) = self.abilities.runs?;
            Some(Box::new($wrapper { filter: with_runs(&self.filter, runs)?, ..self.clone() }))
        }

        fn merge(&mut self, other: &dyn Object<F::Hasher>) -> Result<(), MergeError> {
            let merge = self.abilities.merge.ok_or(MergeError::Unsupported)?;
            let other = other.as_any().downcast_ref::<Self>().ok_or(MergeError::Unsupported)?;
            merge(&mut self.filter, &other.filter)
        }
    };
}

impl<F: Adaptive + Send + Sync> DynFilter for Adapting<F> {
    forward_questions!();

    fn insert(&mut self, key: &[u8], mut remote: DynRemote<'_>) -> Outcome<bool> {
        self.filter.insert(key, &mut remote)
    }

    fn insert_new(&mut self, key: &[u8], mut remote: DynRemote<'_>) -> Outcome<()> {
        self.filter.insert_new(key, &mut remote)
    }

    fn remove(&mut self, key: &[u8], mut remote: DynRemote<'_>) -> Outcome<bool> {
        self.filter.remove(key, &mut remote)
    }

    fn remove_stored(&mut self, key: &[u8], mut remote: DynRemote<'_>) -> Outcome<bool> {
        self.filter.remove_stored(key, &mut remote)
    }

    fn adapt(&mut self, key: &[u8], mut remote: DynRemote<'_>) -> Outcome<Adaptation> {
        self.filter.adapt(key, &mut remote)
    }

    fn clear(&mut self, mut remote: DynRemote<'_>) -> Outcome<()> {
        self.filter.clear(&mut remote)
    }

    fn verify_remote(&self, mut remote: DynRemote<'_>) -> Outcome<()> {
        self.filter.verify_remote(&mut remote)
    }

    fn settle(
        &mut self,
        addresses: RangeInclusive<u64>,
        authority: Authority,
        mut remote: DynRemote<'_>,
    ) -> Outcome<Settled> {
        self.filter.settle(addresses, authority, &mut remote)
    }

    fn is_adaptive(&self) -> bool {
        true
    }
}

impl<F> Object<F::Hasher> for Adapting<F>
where
    F: Adaptive + Persist + Clone + Send + Sync + 'static,
{
    forward_object!(Adapting);

    fn is_hash_addressed(&self) -> bool {
        self.filter.is_hash_addressed()
    }

    fn home(&self, digest: Digest) -> Option<RangeInclusive<u64>> {
        self.filter.home(digest)
    }

    fn rebuild_sorted(&mut self, mut remote: DynRemote<'_>) -> Outcome<bool> {
        self.filter.rebuild_sorted(&mut remote)
    }

    fn emptied(&self) -> Result<Box<dyn Object<F::Hasher>>, BuildError> {
        Ok(Box::new(Self { filter: self.filter.emptied()?, ..*self }))
    }

    fn insert_digests(&mut self, _: &[Digest]) -> Option<Result<usize, InsertManyError>> {
        None
    }
}

impl<F: Insert + Send + Sync> DynFilter for Plain<F> {
    forward_questions!();

    fn insert(&mut self, key: &[u8], _: DynRemote<'_>) -> Outcome<bool> {
        Ok(self.filter.insert(key)?)
    }

    fn remove(&mut self, key: &[u8], _: DynRemote<'_>) -> Outcome<bool> {
        const CANNOT: DynFilterError = AdaptiveError::Unsupported { what: "remove keys" };
        let remove = self.abilities.remove.ok_or(CANNOT)?;
        remove(&mut self.filter, key).map_err(|_| CANNOT)
    }

    fn adapt(&mut self, key: &[u8], _: DynRemote<'_>) -> Outcome<Adaptation> {
        Ok(match self.abilities.adapt {
            Some(adapt) => adapt(&mut self.filter, key),
            None if self.filter.contains(key) => Adaptation::Unfixable,
            None => Adaptation::NotFalsePositive,
        })
    }

    fn clear(&mut self, _: DynRemote<'_>) -> Outcome<()> {
        self.filter.clear();
        Ok(())
    }

    fn verify_remote(&self, _: DynRemote<'_>) -> Outcome<()> {
        Ok(())
    }

    fn settle(&mut self, _: RangeInclusive<u64>, _: Authority, _: DynRemote<'_>) -> Outcome<Settled> {
        Ok(Settled::Agreed)
    }

    fn is_adaptive(&self) -> bool {
        false
    }
}

impl<F> Object<F::Hasher> for Plain<F>
where
    F: Insert + Persist + Clone + Send + Sync + 'static,
{
    forward_object!(Plain);

    fn emptied(&self) -> Result<Box<dyn Object<F::Hasher>>, BuildError> {
        let mut empty = self.clone();
        empty.filter.clear();
        Ok(Box::new(empty))
    }

    fn insert_digests(&mut self, digests: &[Digest]) -> Option<Result<usize, InsertManyError>> {
        Some(self.filter.insert_digests(digests))
    }
}

impl<F: Filter + Send + Sync> Fixed<F> {
    const CANNOT: DynFilterError = AdaptiveError::Unsupported { what: "change" };
}

impl<F: Filter + Send + Sync> DynFilter for Fixed<F> {
    forward_questions!();

    fn insert(&mut self, _: &[u8], _: DynRemote<'_>) -> Outcome<bool> {
        Err(Self::CANNOT)
    }

    fn remove(&mut self, _: &[u8], _: DynRemote<'_>) -> Outcome<bool> {
        Err(Self::CANNOT)
    }

    fn adapt(&mut self, key: &[u8], _: DynRemote<'_>) -> Outcome<Adaptation> {
        let accepted = self.filter.contains(key);
        Ok(if accepted { Adaptation::Unfixable } else { Adaptation::NotFalsePositive })
    }

    fn clear(&mut self, _: DynRemote<'_>) -> Outcome<()> {
        Err(Self::CANNOT)
    }

    fn verify_remote(&self, _: DynRemote<'_>) -> Outcome<()> {
        Ok(())
    }

    fn settle(&mut self, _: RangeInclusive<u64>, _: Authority, _: DynRemote<'_>) -> Outcome<Settled> {
        Ok(Settled::Agreed)
    }

    fn is_adaptive(&self) -> bool {
        false
    }
}

impl<F> Object<F::Hasher> for Fixed<F>
where
    F: Persist + Clone + Send + Sync + 'static,
{
    forward_object!(Fixed);

    fn emptied(&self) -> Result<Box<dyn Object<F::Hasher>>, BuildError> {
        Err(BuildError::Unsupported { filter: self.filter.kind().name(), option: "clear" })
    }

    fn insert_digests(&mut self, _: &[Digest]) -> Option<Result<usize, InsertManyError>> {
        None
    }
}
