//! Keys on their way to the remote or out of it, a few hundred at a time.

use crate::{AdaptiveError, Change, Remote};

/// A group is full at so many keys, or so many bytes of them.
const KEYS: usize = 256;
const BYTES: usize = 1 << 16;

/// Keys with their addresses. Its memory is used again for the next group.
pub(super) struct Group {
    bytes: Vec<u8>,
    /// The address of each key, and where its bytes end; they begin where those of the one before it end.
    entries: Vec<(u64, usize)>,
}

impl Group {
    pub(super) fn new() -> Self {
        Self { bytes: Vec::new(), entries: Vec::with_capacity(KEYS) }
    }

    pub(super) fn add(&mut self, address: u64, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.entries.push((address, self.bytes.len()));
    }

    pub(super) fn is_full(&self) -> bool {
        self.entries.len() >= KEYS || self.bytes.len() >= BYTES
    }

    /// Appends each key to the list at its address, and forgets them.
    pub(super) fn push_all<R: Remote>(&mut self, remote: &mut R) -> Result<(), AdaptiveError<R::Error>> {
        self.apply(remote, |address, key| Change::Push { address, key })
    }

    /// Takes each key out of the list at its address, and forgets them. They are all of the list, in order: each is
    /// the first one when its turn comes.
    pub(super) fn remove_all<R: Remote>(&mut self, remote: &mut R) -> Result<(), AdaptiveError<R::Error>> {
        self.apply(remote, |address, key| Change::Remove { address, rank: 0, key })
    }

    fn apply<R: Remote>(
        &mut self,
        remote: &mut R,
        change: impl for<'k> Fn(u64, &'k [u8]) -> Change<'k>,
    ) -> Result<(), AdaptiveError<R::Error>> {
        if self.entries.is_empty() {
            return Ok(());
        }
        let mut start = 0;
        let changes = self.entries.iter().map(|&(address, end)| {
            let key = &self.bytes[start..end];
            start = end;
            change(address, key)
        });
        remote.apply(&changes.collect::<Vec<_>>()).map_err(AdaptiveError::Remote)?;
        self.bytes.clear();
        self.entries.clear();
        Ok(())
    }
}
