//! The whitelist filter behind [`DynFilter`]: it adapts, but without a remote.

use besom::{
    Adaptation, AnyRemoteError, DynFilter, DynFilterError, Filter, FilterStats, Insert, InvariantError,
    Remote, RemovalDisabled, Resync, Seed, WhitelistFilter,
};

/// A whitelist filter behind [`DynFilter`]. Once its list is full, it answers [`Adaptation::Unfixable`].
pub(super) fn dyn_whitelist(filter: WhitelistFilter) -> Box<dyn DynFilter> {
    Box::new(Listing(filter))
}

struct Listing(WhitelistFilter);

type DynRemote<'r> = &'r mut dyn Remote<Error = AnyRemoteError>;

impl DynFilter for Listing {
    fn contains(&self, key: &[u8]) -> bool {
        self.0.contains(key)
    }

    fn contains_many(&self, keys: &[&[u8]], answers: &mut Vec<bool>) {
        self.0.contains_many(keys, answers);
    }

    fn insert(&mut self, key: &[u8], _: DynRemote<'_>) -> Result<bool, DynFilterError> {
        Ok(self.0.insert(key)?)
    }

    fn remove(&mut self, _: &[u8], _: DynRemote<'_>) -> Result<bool, DynFilterError> {
        Err(RemovalDisabled.into())
    }

    fn adapt(&mut self, key: &[u8], _: DynRemote<'_>) -> Result<Adaptation, DynFilterError> {
        Ok(self.0.adapt(key).unwrap_or(Adaptation::Unfixable))
    }

    fn clear(&mut self, _: DynRemote<'_>) -> Result<(), DynFilterError> {
        self.0.clear();
        Ok(())
    }

    fn verify_remote(&self, _: DynRemote<'_>) -> Result<(), DynFilterError> {
        Ok(())
    }

    fn resync(&mut self, _: &[u64], _: DynRemote<'_>) -> Result<Resync, DynFilterError> {
        Ok(Resync::Agreed)
    }

    fn is_adaptive(&self) -> bool {
        false
    }

    fn verify(&self) -> Result<(), InvariantError> {
        self.0.verify()
    }

    fn stats(&self) -> FilterStats {
        self.0.stats()
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn capacity(&self) -> usize {
        self.0.capacity()
    }

    fn seed(&self) -> Seed {
        self.0.seed()
    }
}
