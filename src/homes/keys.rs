//! Keys as they come from a remote.

use std::ops::{ControlFlow, RangeInclusive};

use crate::{AdaptiveError, Digest, KeyHasher, Remote, RemoteResult};

/// Keys, one behind the other.
#[derive(Debug, Clone, Default)]
pub(crate) struct Keys {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Keys {
    /// With room for some keys, of as many bytes together.
    pub(crate) fn with_capacity(keys: usize, bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes), ends: Vec::with_capacity(keys) }
    }

    pub(crate) fn push(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
    }

    pub(crate) fn get(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.bytes[start..self.ends[index]]
    }
}

/// What the remote says of the keys of a range.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    /// The digests of all keys but the one that was looked for, in order.
    pub(crate) others: Vec<Digest>,
    /// Whether that one is there.
    pub(crate) has_key: bool,
}

impl Seen {
    /// Reads the keys of a range, and looks for one. Every key must have its address.
    pub(crate) fn read<R: Remote>(
        addresses: RangeInclusive<u64>,
        key: Option<&[u8]>,
        hasher: &impl KeyHasher,
        remote: &mut R,
    ) -> RemoteResult<Self, R> {
        let mut seen = Self::default();
        visit(addresses, hasher, remote, &mut |digest, stored| {
            if Some(stored) == key {
                seen.has_key = true;
            } else {
                seen.others.push(digest);
            }
            Ok(())
        })?;
        Ok(seen)
    }
}

/// What is done with each key, of which digest and bytes are given.
pub(crate) type VisitKey<'v, E> = dyn FnMut(Digest, &[u8]) -> Result<(), AdaptiveError<E>> + 'v;

/// Calls `visit` with every key of a range, in the order of their addresses. What comes from outside is checked: a key
/// whose address is not its own, or that comes out of order, is an error.
pub(crate) fn visit<R: Remote>(
    addresses: RangeInclusive<u64>,
    hasher: &impl KeyHasher,
    remote: &mut R,
    visit: &mut VisitKey<'_, R::Error>,
) -> RemoteResult<(), R> {
    let (mut failed, mut last) = (None, *addresses.start());
    let end = *addresses.end();
    let mut take = |address: u64, key: &[u8]| {
        let digest = hasher.digest(key);
        if digest.hi != address || address < last || address > end {
            return Err(AdaptiveError::Inconsistent { address, expected: 0, found: 1 });
        }
        last = address;
        visit(digest, key)
    };
    let visited = remote.range(addresses, &mut |address, key| match take(address, key) {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            failed = Some(error);
            ControlFlow::Break(())
        }
    });
    match failed {
        Some(error) => Err(error),
        None => visited.map_err(AdaptiveError::Remote),
    }
}
