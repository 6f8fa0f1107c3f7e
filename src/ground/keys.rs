//! Lists of keys as they come from a remote.

use std::ops::ControlFlow;

use crate::{AdaptiveError, Digest, KeyHasher, Remote};

/// Keys, one behind the other.
#[derive(Debug, Clone, Default)]
pub(crate) struct Keys {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Keys {
    /// With room for so many keys of so many bytes together.
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

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|index| self.get(index))
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}

/// So many keys are compared with each other; more are sorted.
const FEW: usize = 16;

/// One list of the remote.
#[derive(Debug, Clone, Default)]
pub(crate) struct List {
    pub(crate) address: u64,
    pub(crate) keys: Keys,
    /// The digests of the keys, by rank.
    pub(crate) digests: Vec<Digest>,
}

impl List {
    fn begin(&mut self, address: u64) {
        self.address = address;
        self.keys.clear();
        self.digests.clear();
    }

    fn push(&mut self, key: &[u8], hasher: &impl KeyHasher) {
        self.keys.push(key);
        self.digests.push(hasher.digest(key));
    }

    /// The rank of a key in the whole list.
    pub(crate) fn rank(&self, key: &[u8]) -> Option<usize> {
        self.keys.iter().position(|other| other == key)
    }

    pub(crate) fn has_duplicates(&self) -> bool {
        if self.keys.len() <= FEW {
            let equal = |one: usize, other: usize| {
                self.digests[one] == self.digests[other] && self.keys.get(one) == self.keys.get(other)
            };
            return (1..self.keys.len()).any(|later| (0..later).any(|earlier| equal(earlier, later)));
        }
        let mut keys: Vec<&[u8]> = self.keys.iter().collect();
        keys.sort_unstable();
        keys.windows(2).any(|pair| pair[0] == pair[1])
    }
}

impl List {
    /// Reads a list as it is.
    pub(crate) fn read<R: Remote>(
        address: u64,
        hasher: &impl KeyHasher,
        remote: &mut R,
    ) -> Result<Self, AdaptiveError<R::Error>> {
        let mut list = Self { address, ..Self::default() };
        remote.read(address, &mut |key| list.push(key, hasher)).map_err(AdaptiveError::Remote)?;
        Ok(list)
    }
}

/// What is done with each list of a scan.
pub(crate) type Visit<'v, E> = dyn FnMut(&List) -> Result<(), AdaptiveError<E>> + 'v;

/// Calls `visit` with every list of a scan, in the order of addresses, whatever is in it. `expected` says, for an error,
/// how many keys there should be at an address.
pub(crate) fn scan_lists<R: Remote>(
    hasher: &impl KeyHasher,
    expected: impl Fn(u64) -> usize,
    remote: &mut R,
    visit: &mut Visit<'_, R::Error>,
) -> Result<(), AdaptiveError<R::Error>> {
    let (mut list, mut failed) = (List::default(), None);
    let mut take = |address: u64, key: &[u8]| {
        if list.keys.len() > 0 && list.address != address {
            // Addresses ascend: a list that came twice would be taken twice.
            if address < list.address {
                return Err(AdaptiveError::Inconsistent { address, expected: expected(address), found: 0 });
            }
            visit(&list)?;
            list.begin(address);
        }
        list.address = address;
        list.push(key, hasher);
        Ok(())
    };
    let scanned = remote.scan(&mut |address, key| match take(address, key) {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            failed = Some(error);
            ControlFlow::Break(())
        }
    });
    if let Some(error) = failed {
        return Err(error);
    }
    scanned.map_err(AdaptiveError::Remote)?;
    if list.keys.len() > 0 { visit(&list) } else { Ok(()) }
}
