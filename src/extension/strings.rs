//! Extensions and the hash strings that they are cut from, on every table: an extension is the bits of a key's string
//! from some place on, which is where the fingerprint of the table ends.

use crate::KeyHasher;
use crate::coding::Extension;
use crate::hash_string::HashString;

impl Extension {
    /// The `len` bits of a key's string from `start` on.
    #[inline]
    pub(crate) fn of<H: KeyHasher>(key: &HashString<'_, H>, start: u32, len: u32) -> Self {
        Self::new(key.bits(start.into(), len), len)
    }

    /// Whether a key's string goes on with it from `start` on.
    #[inline]
    pub(crate) fn begins<H: KeyHasher>(self, key: &HashString<'_, H>, start: u32) -> bool {
        self == Self::default() || self == Self::of(key, start, self.len())
    }

    /// The shortest extension of a stored key, which has this one so far, that is not the query's too; `None` if the
    /// two strings agree as far as extensions go.
    pub(crate) fn against<H: KeyHasher>(
        self,
        query: &HashString<'_, H>,
        stored: &HashString<'_, H>,
        start: u32,
    ) -> Option<Self> {
        let from = u64::from(start + self.len());
        let place = stored.first_difference(query, from, u64::from(start + Self::MAX_LEN))?;
        Some(Self::of(stored, start, place as u32 - start + 1))
    }

    /// The same after a doubling, in which the fingerprint has taken one bit of it. `key` is the stored one, in the
    /// larger table.
    pub(crate) fn doubled<H: KeyHasher>(self, key: &HashString<'_, H>, start: u32) -> Self {
        Self::of(key, start, self.len().saturating_sub(1))
    }
}
