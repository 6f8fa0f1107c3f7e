//! An index that the store keeps itself.

use std::error::Error;
use std::ops::{ControlFlow, RangeInclusive};

use super::{Change, Remote};

/// A remote that is an index on a hash column of the data: it is read, and never written.
///
/// For filters that are [`HashAddressed`](crate::HashAddressed), whose address of a key never changes. The store writes
/// the column with the row: [`Digest::hi`](crate::Digest), by the filter's [hasher](crate::Filter::hasher). All that is
/// needed of it is a function that visits the keys of a range in ascending order. Other filters move keys, and lose
/// them if nobody writes that down.
///
/// Write the row before the filter learns of the key, or with it in one transaction, and remove it so too: what a
/// [`Remote`] owes, the index owes.
///
/// ```
/// use std::collections::BTreeMap;
/// use std::convert::Infallible;
/// use besom::{Adaptive, Filter, KeyHasher, StoreIndex, TelescopingFilter};
///
/// let mut filter = TelescopingFilter::builder().capacity(1_000).seed(7_u64).build()?;
/// let mut rows: BTreeMap<(u64, Vec<u8>), u32> = BTreeMap::new(); // the data, keyed by (hash, key)
/// for number in 0..1_000_u32 {
///     let key = number.to_le_bytes().to_vec();
///     rows.insert((filter.hasher().digest(&key).hi, key.clone()), number);
///     filter.insert_new(&key, &mut StoreIndex(|_, _: &mut besom::Visit<'_>| Ok::<_, Infallible>(())))?; // reads nothing
/// }
/// let mut index = StoreIndex(|addresses: std::ops::RangeInclusive<u64>, visit: &mut besom::Visit<'_>| {
///     let rows = rows.range((*addresses.start(), Vec::new())..);
///     let mut rows = rows.map(|(row, _)| row).take_while(|row| row.0 <= *addresses.end());
///     let _ = rows.try_for_each(|(address, key)| visit(*address, key));
///     Ok::<_, Infallible>(())
/// });
/// let stranger = (1_000..).find(|key: &u32| filter.contains(key)).unwrap_or_default();
/// assert!(filter.adapt(&stranger, &mut index)?.is_fixed());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct StoreIndex<F>(
    /// Visits the pairs of a range of addresses, as [`Remote::range`] does.
    pub F,
);

/// What [`Remote::range`] calls with each pair.
pub type Visit<'v> = dyn FnMut(u64, &[u8]) -> ControlFlow<()> + 'v;

impl<F, E> Remote for StoreIndex<F>
where
    F: FnMut(RangeInclusive<u64>, &mut Visit<'_>) -> Result<(), E>,
    E: Error + Send + Sync + 'static,
{
    type Error = E;

    fn range(&mut self, addresses: RangeInclusive<u64>, visit: &mut Visit<'_>) -> Result<(), E> {
        (self.0)(addresses, visit)
    }

    /// Does nothing: the store keeps the column itself.
    fn apply(&mut self, _: &[Change<'_>]) -> Result<(), E> {
        Ok(())
    }
}
