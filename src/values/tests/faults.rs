//! Catches: a filter that is out of step with its remote after the remote failed in the middle of an operation.

use thiserror::Error;

use super::*;
use crate::AdaptiveError;
use crate::extension::testing::extension_core;
use crate::telescoping::testing::{explicit_core, telescoping_core};

#[derive(Debug, Error)]
#[error("out of order")]
struct OutOfOrder;

/// A remote that fails at the access whose number is `fuse`.
struct Faulty {
    remote: MemoryRemote,
    fuse: u64,
}

impl Faulty {
    fn burn(&mut self) -> Result<(), OutOfOrder> {
        self.fuse = self.fuse.wrapping_sub(1);
        if self.fuse == u64::MAX { Err(OutOfOrder) } else { Ok(()) }
    }
}

impl Remote for Faulty {
    type Error = OutOfOrder;

    fn read(&mut self, address: u64, visit: &mut dyn FnMut(&[u8])) -> Result<(), OutOfOrder> {
        self.burn()?;
        self.remote.read(address, visit).map_err(|_| OutOfOrder)
    }

    fn apply(&mut self, changes: &[Change<'_>]) -> Result<(), OutOfOrder> {
        self.burn()?;
        self.remote.apply(changes).map_err(|_| OutOfOrder)
    }

    fn scan(
        &mut self,
        visit: &mut dyn FnMut(u64, &[u8]) -> std::ops::ControlFlow<()>,
    ) -> Result<(), Self::Error> {
        self.burn()?;
        self.remote.scan(visit).map_err(|_| OutOfOrder)
    }
}

fn a_failing_remote_changes_nothing<S: Scheme>(mut core: Core<S, Xxh3>) {
    let mut random = Random::new(61);
    let mut remote = Faulty { remote: MemoryRemote::new(), fuse: 0 };
    let mut stored = HashSet::new();
    let mut failures = [0; 4];
    for step in 0..6_000 {
        remote.fuse = random.below(6);
        let number = random.below(4 * core.capacity() as u64);
        let key = number.to_le_bytes();
        let action = random.below(40).min(3);
        let before = (core.stats(), remote.remote.len());
        let failed = match action {
            0 => core.insert(&key, &mut remote).map(|new| assert_eq!(new, stored.insert(number))),
            1 => core.remove(&key, &mut remote).map(|old| assert_eq!(old, stored.remove(&number))),
            2 if core.capacity() < 500 && step % 64 == 0 => core.grow(&mut remote),
            _ if action < 3 => {
                core.insert(&key, &mut remote).map(|new| assert_eq!(new, stored.insert(number)))
            }
            _ => core.adapt(&key, &mut remote).map(drop),
        };
        if let Err(error) = failed {
            assert!(matches!(error, AdaptiveError::Remote(OutOfOrder) | AdaptiveError::Full(_)), "{error}");
            assert_eq!(before, (core.stats(), remote.remote.len()));
            failures[action as usize] += 1;
        }
        if step % 4 == 0 {
            core.check(&mut remote.remote);
        }
        assert_eq!(core.len(), stored.len());
    }
    assert!(stored.iter().all(|number| core.contains_digest(core.hasher.digest(&number.to_le_bytes()))));
    assert!(failures.iter().all(|&count| count > 3), "{failures:?}");
}

#[test]
fn after_an_error_filter_and_remote_are_as_they_were() {
    for overflow in [Overflow::Reset, Overflow::Spill] {
        a_failing_remote_changes_nothing(telescoping_core(parameters(150, 3, 0.95, overflow, 7)));
        a_failing_remote_changes_nothing(extension_core(parameters(150, 3, 0.95, overflow, 7)));
    }
    a_failing_remote_changes_nothing(explicit_core(parameters(150, 3, 0.95, Overflow::Spill, 7)));
}

#[test]
fn another_filters_remote_is_noticed() {
    let mut core = telescoping_core::<Xxh3>(parameters(100, 2, 0.95, Overflow::Spill, 7));
    let mut remote = MemoryRemote::new();
    for number in 0..90_u64 {
        core.insert(&number.to_le_bytes(), &mut remote).unwrap();
    }
    let mut other = MemoryRemote::new();
    let stranger = (1_000_u64..)
        .find(|number| core.contains_digest(core.hasher.digest(&number.to_le_bytes())))
        .unwrap()
        .to_le_bytes();
    let inconsistent = AdaptiveError::Inconsistent {
        address: core.locate(core.hasher.digest(&stranger)).0,
        expected: 0,
        found: 0,
    };
    for result in [core.adapt(&stranger, &mut other).map(drop), core.remove(&stranger, &mut other).map(drop)]
    {
        let error = result.unwrap_err();
        assert_eq!(std::mem::discriminant(&error), std::mem::discriminant(&inconsistent), "{error}");
    }
    assert!(core.grow(&mut other).is_err());
    core.check(&mut remote);
    assert!(core.verify_remote(&mut other).is_err());
}
