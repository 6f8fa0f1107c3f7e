//! A snapshot that is behind its store is made a filter of the store as it is now.
//!
//! The log says what the commits since the snapshot have changed. From the lists as they are now the changes are taken back,
//! last one first; that gives the lists that the snapshot belongs to. On these the operations are made again. Each must make the
//! very changes that it made then: if one does not (an operation may depend on repairs, which are not logged), or
//! if anything else does not fit, the filter is built anew instead.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::ControlFlow;

use besom::{Adaptive, Change, Remote};
use thiserror::Error;

use super::log::{self, Step};
use super::rehearsal::OwnedChange;
use crate::engine::View;

type Lists = HashMap<u64, Vec<Box<[u8]>>>;

/// Why a snapshot could not be caught up.
#[derive(Debug, Error)]
pub(crate) enum CatchUpError<E> {
    #[error("the store did not write down all that it did since then")]
    Gap,
    #[error("what the store wrote down does not fit its lists")]
    Differs,
    #[error("the store failed: {0}")]
    Engine(E),
}

/// Brings a filter from one commit to another.
pub(crate) fn catch_up<F: Adaptive, V: View>(
    filter: &mut F,
    view: &V,
    from: u64,
    to: u64,
) -> Result<(), CatchUpError<V::Error>>
where
    V::Error: std::error::Error + Send + Sync + 'static,
{
    let steps = steps(view, from, to)?;
    let mut lists = Lists::new();
    for step in steps.iter().rev() {
        for change in step.changes.iter().rev() {
            undo(&mut lists, change, view)?;
        }
    }
    let mut past = Past { view, lists, expected: &[] };
    for step in &steps {
        past.expected = &step.changes;
        step.op.run(filter, &step.key, &mut past).map_err(|_| CatchUpError::Differs)?;
        if !past.expected.is_empty() {
            return Err(CatchUpError::Differs);
        }
    }
    Ok(())
}

/// All steps between two commits.
fn steps<V: View>(view: &V, from: u64, to: u64) -> Result<Vec<Step>, CatchUpError<V::Error>> {
    let (mut all, mut last, mut whole) = (Vec::new(), from, true);
    let read = view.log(from, &mut |number, entry| {
        let steps = log::steps(entry).filter(|_| last.checked_add(1) == Some(number));
        whole &= steps.is_some();
        all.extend(steps.into_iter().flatten());
        last = number;
    });
    read.map_err(CatchUpError::Engine)?;
    if whole && last == to { Ok(all) } else { Err(CatchUpError::Gap) }
}

/// The list at an address, as far as it was taken back.
fn list<'l, V: View>(
    lists: &'l mut Lists,
    address: u64,
    view: &V,
) -> Result<&'l mut Vec<Box<[u8]>>, CatchUpError<V::Error>> {
    match lists.entry(address) {
        Entry::Occupied(list) => Ok(list.into_mut()),
        Entry::Vacant(vacant) => {
            let mut list = Vec::new();
            view.list(address, &mut |key| list.push(key.into())).map_err(CatchUpError::Engine)?;
            Ok(vacant.insert(list))
        }
    }
}

/// Takes one change back.
fn undo<V: View>(lists: &mut Lists, change: &OwnedChange, view: &V) -> Result<(), CatchUpError<V::Error>> {
    let fits = match change {
        OwnedChange::Push { address, key } => list(lists, *address, view)?.pop().as_ref() == Some(key),
        OwnedChange::Remove { address, rank, key } => {
            let list = list(lists, *address, view)?;
            let fits = *rank <= list.len();
            if fits {
                list.insert(*rank, key.clone());
            }
            fits
        }
        OwnedChange::Replace { address, rank, old, key } => {
            let place = list(lists, *address, view)?.get_mut(*rank);
            place.is_some_and(|place| std::mem::replace(place, old.clone()) == *key)
        }
        // What there was is not written down.
        OwnedChange::Clear => false,
    };
    if fits { Ok(()) } else { Err(CatchUpError::Differs) }
}

/// The lists as they were.
struct Past<'p, V> {
    view: &'p V,
    /// Those that have changed since.
    lists: Lists,
    /// The changes that come next.
    expected: &'p [OwnedChange],
}

impl<V: View> Past<'_, V> {
    fn change(&mut self, change: &Change<'_>) -> Result<(), CatchUpError<V::Error>> {
        match self.expected.split_first() {
            Some((expected, rest)) if expected.borrowed() == *change => self.expected = rest,
            _ => return Err(CatchUpError::Differs),
        }
        let done = match *change {
            Change::Push { address, key } => {
                list(&mut self.lists, address, self.view)?.push(key.into());
                true
            }
            Change::Remove { address, rank, key } => {
                let list = list(&mut self.lists, address, self.view)?;
                rank < list.len() && *list.remove(rank) == *key
            }
            Change::Replace { address, rank, old, key } => {
                let place = list(&mut self.lists, address, self.view)?.get_mut(rank);
                place.is_some_and(|place| *std::mem::replace(place, key.into()) == *old)
            }
            Change::Clear => false,
        };
        if done { Ok(()) } else { Err(CatchUpError::Differs) }
    }
}

impl<V: View> Remote for Past<'_, V>
where
    V::Error: std::error::Error + Send + Sync + 'static,
{
    type Error = CatchUpError<V::Error>;

    fn read(&mut self, address: u64, visit: &mut dyn FnMut(&[u8])) -> Result<(), Self::Error> {
        match self.lists.get(&address) {
            Some(list) => list.iter().for_each(|key| visit(key)),
            None => self.view.list(address, visit).map_err(CatchUpError::Engine)?,
        }
        Ok(())
    }

    fn apply(&mut self, changes: &[Change<'_>]) -> Result<(), Self::Error> {
        changes.iter().try_for_each(|change| self.change(change))
    }

    /// Growth needs all lists as they were. Building the filter anew is as quick.
    fn scan(&mut self, _: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>) -> Result<(), Self::Error> {
        Err(CatchUpError::Differs)
    }
}
