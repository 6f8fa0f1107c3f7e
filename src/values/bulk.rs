//! Filters of many keys at once.

use crate::filter::{clear_remote, out_of_memory};
use crate::homes::{Copies, Failed, Gather};
use crate::quotient::bulk;
use crate::{AdaptiveError, FullError, Key, KeyHasher, Remote, RemoteResult};

use super::core::Core;
use super::{Scheme, ValueStore};

impl<S: Scheme, H: KeyHasher> Core<S, H> {
    /// The empty filter with all these keys, each once. The remote is emptied first, and has them then.
    pub(crate) fn filled<K, R>(self, keys: &[K], remote: &mut R) -> RemoteResult<Self, R>
    where
        K: Key + Sync,
        R: Remote,
    {
        let empty = self.table.like(self.table.slots()).map_err(out_of_memory)?;
        clear_remote(remote)?;
        let (gather, hasher) = (Gather::new(keys, self.table.slots()), &self.hasher);
        let item = |number| gather.item(hasher, number);
        let settle = |items: &mut Vec<_>| gather.settle(items);
        let tell = |copies: Copies, items: &[_]| copies.tell(items, remote);
        let table = bulk::fill(empty, keys.len(), item, settle, tell);
        let table = table.map_err(|Failed(error)| error)?;
        let (len, capacity) = (table.len(), self.capacity);
        if len > capacity {
            return Err(FullError { len, capacity }.into());
        }
        let bytes = table.physical_slots() as usize;
        let values = self.values.emptied(&table).ok_or(AdaptiveError::OutOfMemory { bytes })?;
        let mut core = Self { table, values, ..self };
        core.choose_probe();
        Ok(core)
    }
}
