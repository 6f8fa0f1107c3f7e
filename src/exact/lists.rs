//! Where the keys of a list come from.

use std::convert::Infallible;

use crate::Key;

/// One of the two lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum List {
    /// Keys that must be accepted.
    Yes,
    /// Keys that must be rejected.
    No,
}

/// Two lists of keys that can be read more than once: files, tables, ranges.
///
/// [`ExactListBuilder::build_from`](super::ExactListBuilder::build_from) reads the shorter list first and keeps 16
/// bytes of each of its keys; the other one is streamed past it, and only the keys that the first table lets through
/// are kept. Neither list needs to be in memory.
///
/// ```
/// use besom::exact::{ExactList, List, Lists};
/// use besom::Filter;
///
/// /// Even numbers are accepted, odd ones rejected.
/// struct Numbers(u64);
///
/// impl Lists for Numbers {
///     type Error = std::convert::Infallible;
///
///     fn visit(&mut self, list: List, mut visit: impl FnMut(&[u8])) -> Result<(), Self::Error> {
///         let odd = u64::from(list == List::No);
///         (0..self.0).filter(|number| number % 2 == odd).for_each(|number| visit(&number.to_le_bytes()));
///         Ok(())
///     }
/// }
///
/// let list = ExactList::builder().build_from(&mut Numbers(2000))?;
/// assert!((0..2000_u64).all(|number| list.contains(&number) == (number % 2 == 0)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Lists {
    /// Why a list cannot be read.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Calls `visit` with every key of a list, in any order. A key may come more than once.
    ///
    /// Called up to three times for a list. It must hand out the same keys every time.
    ///
    /// # Errors
    ///
    /// Whatever goes wrong. Nothing is built then.
    fn visit(&mut self, list: List, visit: impl FnMut(&[u8])) -> Result<(), Self::Error>;

    /// How many keys a list has; about as many is enough. Reads the list unless there is a better way.
    ///
    /// # Errors
    ///
    /// Whatever goes wrong. Nothing is built then.
    fn count(&mut self, list: List) -> Result<u64, Self::Error> {
        let mut count = 0;
        self.visit(list, |_| count += 1)?;
        Ok(count)
    }
}

/// Two collections of keys.
pub(super) struct Pair<Y, N>(pub(super) Y, pub(super) N);

impl<Y, N> Lists for Pair<Y, N>
where
    Y: IntoIterator<Item: Key> + Clone,
    N: IntoIterator<Item: Key> + Clone,
{
    type Error = Infallible;

    #[inline]
    fn visit(&mut self, list: List, mut visit: impl FnMut(&[u8])) -> Result<(), Infallible> {
        match list {
            List::Yes => self.0.clone().into_iter().for_each(|key| key.with_bytes(&mut visit)),
            List::No => self.1.clone().into_iter().for_each(|key| key.with_bytes(&mut visit)),
        }
        Ok(())
    }

    fn count(&mut self, list: List) -> Result<u64, Infallible> {
        Ok(match list {
            List::Yes => self.0.clone().into_iter().count() as u64,
            List::No => self.1.clone().into_iter().count() as u64,
        })
    }
}
