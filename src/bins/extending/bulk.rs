//! Filters of many keys at once.

use crate::filter::clear_remote;
use crate::homes::{Failed, Gather};
use crate::{AdaptiveError, FullError, Key, KeyHasher, Remote};

use super::super::bulk::fill;
use super::ExtendingBins;

impl<H: KeyHasher> ExtendingBins<H> {
    /// The empty filter with all these keys, each once. The remote is emptied first, and has them then.
    pub(crate) fn filled<K, R>(self, keys: &[K], remote: &mut R) -> Result<Self, AdaptiveError<R::Error>>
    where
        K: Key + Sync,
        R: Remote,
    {
        clear_remote(remote)?;
        let units = self.table.bins() * u64::from(self.table.shape().classes);
        let (gather, hasher) = (Gather::new(keys, units), &self.hasher);
        let item = |number| gather.item(hasher, number);
        let settle = |items: &mut Vec<_>| gather.settle(items);
        let table = fill(self.table, keys.len(), item, settle, |pushes| pushes.apply(remote));
        let table = table.map_err(|Failed(error)| error)?;
        let (len, capacity) = (table.len, self.capacity);
        if len > capacity {
            return Err(FullError { len, capacity }.into());
        }
        Ok(Self { table, ..self })
    }
}
