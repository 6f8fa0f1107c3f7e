//! Remotes and dictionaries in which things go wrong.

use std::collections::HashMap;
use std::ops::{ControlFlow, RangeInclusive};

use thiserror::Error;

use super::Random;
use crate::{Change, Dictionary, Remote, Visit};

/// One way in which an access goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// An error, and nothing was done.
    FailBefore,
    /// An error, although everything was done: a time-out.
    FailAfter,
    /// An error after half of a group of changes was made. For other accesses the same as
    /// [`FailBefore`](Self::FailBefore).
    FailMiddle,
    /// A panic, and nothing was done.
    PanicBefore,
    /// A panic after everything was done.
    PanicAfter,
    /// An answer in which a key is another one, or a value is missing (a dictionary). Writes go well.
    Wrong,
    /// An answer in which a key is missing. Writes go well.
    Missing,
    /// An answer with a key more. Writes go well.
    Surplus,
    /// Pairs in another order. Other accesses go well.
    Reordered,
}

impl Fault {
    /// All faults.
    pub const ALL: [Self; 9] = [
        Self::FailBefore,
        Self::FailAfter,
        Self::FailMiddle,
        Self::PanicBefore,
        Self::PanicAfter,
        Self::Wrong,
        Self::Missing,
        Self::Surplus,
        Self::Reordered,
    ];

    /// Those that are no lies: what is answered is true.
    pub const HONEST: [Self; 5] =
        [Self::FailBefore, Self::FailAfter, Self::FailMiddle, Self::PanicBefore, Self::PanicAfter];
}

/// When which faults happen, and how many there were.
#[derive(Debug, Clone)]
pub struct Faults {
    random: Random,
    /// One access in this many goes wrong; none if 0.
    one_in: u64,
    kinds: Vec<Fault>,
    /// The accesses until this one happens for certain.
    fuse: Option<(u64, Fault)>,
    counts: HashMap<Fault, u64>,
}

impl Faults {
    /// None.
    #[must_use]
    pub fn none() -> Self {
        Self::random(0, 0, &[])
    }

    /// One access in `one_in` goes wrong in one of these ways, as the seed has it.
    #[must_use]
    pub fn random(seed: u64, one_in: u64, kinds: &[Fault]) -> Self {
        let (random, kinds) = (Random::new(seed), kinds.to_vec());
        Self { random, one_in, kinds, fuse: None, counts: HashMap::new() }
    }

    /// Changes how often faults happen; 0 for never.
    pub fn set_one_in(&mut self, one_in: u64) {
        self.one_in = one_in;
    }

    /// The access after `accesses` others goes wrong in this way.
    pub fn light_fuse(&mut self, accesses: u64, fault: Fault) {
        self.fuse = Some((accesses, fault));
    }

    /// Puts the fuse out.
    pub fn put_out(&mut self) {
        self.fuse = None;
    }

    /// How often a fault has happened.
    #[must_use]
    pub fn count(&self, fault: Fault) -> u64 {
        self.counts.get(&fault).copied().unwrap_or(0)
    }

    /// How many faults have happened.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.values().sum()
    }

    /// What happens to the next access.
    fn draw(&mut self) -> Option<Fault> {
        let burnt = match &mut self.fuse {
            Some((0, fault)) => Some(*fault),
            Some((left, _)) => {
                *left -= 1;
                None
            }
            None => None,
        };
        let fault = if burnt.is_some() {
            self.fuse = None;
            burnt
        } else if self.one_in > 0 && !self.kinds.is_empty() && self.random.one_in(self.one_in) {
            Some(self.kinds[self.random.below(self.kinds.len() as u64) as usize])
        } else {
            None
        };
        if let Some(fault) = fault {
            *self.counts.entry(fault).or_default() += 1;
        }
        fault
    }

    /// A key that nobody stored: 17 bytes, which is longer than an integer.
    fn stranger(&mut self) -> Vec<u8> {
        let mut key = vec![0xee; 17];
        key[..8].copy_from_slice(&self.random.next().to_le_bytes());
        key
    }

    fn falsify(&mut self, fault: Option<Fault>, pairs: &mut Vec<(u64, Vec<u8>)>) {
        let at = self.random.below(pairs.len().max(1) as u64) as usize;
        match fault {
            Some(Fault::Wrong) if !pairs.is_empty() => pairs[at].1 = self.stranger(),
            Some(Fault::Missing) if !pairs.is_empty() => drop(pairs.remove(at)),
            Some(Fault::Surplus) => {
                let address = pairs.get(at).map_or(0, |pair| pair.0);
                pairs.insert(at, (address, self.stranger()));
            }
            Some(Fault::Reordered) => pairs.reverse(),
            _ => {}
        }
    }
}

/// The error of something [`Faulty`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FaultError<E> {
    /// It was made to fail.
    #[error("made to fail: {0:?}")]
    Injected(Fault),
    /// What it wraps failed by itself.
    #[error(transparent)]
    Inner(E),
}

/// A remote or a dictionary in which things go wrong.
///
/// ```
/// use besom::testing::{Fault, Faults, Faulty};
/// use besom::{Change, MemoryRemote, Remote};
///
/// let mut remote = Faulty::new(MemoryRemote::new(), Faults::none());
/// remote.faults.light_fuse(0, Fault::FailAfter);
/// assert!(remote.apply(&[Change::Insert { address: 1, key: b"key" }]).is_err());
/// assert_eq!(remote.inner.len(), 1); // and yet it was done
/// ```
#[derive(Debug, Clone)]
pub struct Faulty<T> {
    /// What it really is.
    pub inner: T,
    /// What goes wrong.
    pub faults: Faults,
}

impl<T> Faulty<T> {
    /// Lets things go wrong with `inner`.
    pub fn new(inner: T, faults: Faults) -> Self {
        Self { inner, faults }
    }

    /// Does something, or fails before or after it.
    fn act<A, E>(
        &mut self,
        fault: Option<Fault>,
        act: impl FnOnce(&mut T) -> Result<A, E>,
    ) -> Result<A, FaultError<E>> {
        match fault {
            Some(fault @ (Fault::FailBefore | Fault::FailMiddle)) => Err(FaultError::Injected(fault)),
            Some(Fault::PanicBefore) => panic!("made to panic before acting"),
            Some(fault @ Fault::FailAfter) => {
                act(&mut self.inner).map_err(FaultError::Inner)?;
                Err(FaultError::Injected(fault))
            }
            Some(Fault::PanicAfter) => {
                act(&mut self.inner).map_err(FaultError::Inner)?;
                panic!("made to panic after acting")
            }
            _ => act(&mut self.inner).map_err(FaultError::Inner),
        }
    }
}

impl<R: Remote> Remote for Faulty<R> {
    type Error = FaultError<R::Error>;

    /// A lie is told about all pairs of the range, which are kept in memory for it.
    fn range(&mut self, addresses: RangeInclusive<u64>, visit: &mut Visit<'_>) -> Result<(), Self::Error> {
        let fault = self.faults.draw();
        if fault.is_none_or(|fault| Fault::HONEST.contains(&fault)) {
            return self.act(fault, |remote| remote.range(addresses, visit));
        }
        let mut pairs = Vec::new();
        self.act(fault, |remote| {
            remote.range(addresses, &mut |address, key| {
                pairs.push((address, key.to_vec()));
                ControlFlow::Continue(())
            })
        })?;
        self.faults.falsify(fault, &mut pairs);
        let _ = pairs.iter().try_for_each(|(address, key)| visit(*address, key));
        Ok(())
    }

    fn apply(&mut self, changes: &[Change<'_>]) -> Result<(), Self::Error> {
        let fault = self.faults.draw();
        if fault == Some(Fault::FailMiddle) {
            let half = &changes[..changes.len() / 2];
            self.act(None, |remote| remote.apply(half))?;
        }
        self.act(fault, |remote| remote.apply(changes))
    }
}

/// A lie of a dictionary is a stale read: it answers that a key is absent. What it says of writes is true.
impl<D: Dictionary> Dictionary for Faulty<D> {
    type Value = D::Value;
    type Error = FaultError<D::Error>;

    fn get(&mut self, key: &[u8]) -> Result<Option<D::Value>, Self::Error> {
        let fault = self.faults.draw();
        let found = self.act(fault, |dictionary| dictionary.get(key))?;
        Ok(found.filter(|_| !matches!(fault, Some(Fault::Missing | Fault::Wrong))))
    }

    fn insert(&mut self, key: &[u8], value: D::Value) -> Result<Option<D::Value>, Self::Error> {
        let fault = self.faults.draw();
        self.act(fault, |dictionary| dictionary.insert(key, value))
    }

    fn remove(&mut self, key: &[u8]) -> Result<Option<D::Value>, Self::Error> {
        let fault = self.faults.draw();
        self.act(fault, |dictionary| dictionary.remove(key))
    }

    fn scan(&mut self, visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>) -> Result<(), Self::Error> {
        let fault = self.faults.draw();
        self.act(fault, |dictionary| dictionary.scan(visit))
    }
}
