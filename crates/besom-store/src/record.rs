//! What a store says of itself: a header, and one row for each of its last commits.
//!
//! ```text
//! state   (empty key)       magic, format, layout, what the index holds, hash function, seed
//!         number of commit  branch, keys in the store, the hashes that the commit inserted or removed
//! ```
//!
//! The last row is the state that the store is in. Those before it are kept from the last snapshot on, so that a snapshot that is
//! behind can be caught up: the hashes say which homes to settle. One row a commit, and rows that nobody needs go with later
//! commits.
//!
//! A state is named by its branch and its number. The branch is drawn at random whenever a store is opened. So two histories
//! that begin with the same state, as those of a copy and its original do, share no name behind it.

use std::hash::{BuildHasher, Hasher, RandomState};

use besom::{HashKind, KeyHasher, Seed};

use crate::Layout;

/// The tables as they are now. Other versions of this crate may have others.
pub(crate) const FORMAT: u16 = 2;

const MAGIC: &[u8; 12] = b"besom store\0";
const FORMAT_AT: usize = MAGIC.len();
const LAYOUT_AT: usize = FORMAT_AT + size_of::<u16>();
const INDEX_AT: usize = LAYOUT_AT + 1;
const HASH_AT: usize = INDEX_AT + 1;
const SEED_AT: usize = HASH_AT + 1;
const HEADER_LEN: usize = SEED_AT + size_of::<u128>();

/// What the table of the index holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Index {
    /// Nothing: the data is in the order of hashes, and serves.
    None,
    /// The hashes of all keys.
    Hashes,
    /// The addresses that the filter has chosen.
    Chosen,
}

/// The header of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) layout: Layout,
    pub(crate) index: Index,
    /// The hash function whose upper half the rows are ordered by.
    hash: u8,
    pub(crate) seed: Seed,
}

/// Why a row is no header of a store that can be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoHeader {
    Foreign,
    OtherFormat(u16),
}

fn code(kind: HashKind) -> u8 {
    match kind {
        HashKind::Xxh3 => 1,
        HashKind::SipHash => 2,
        HashKind::Integer => 3,
        _ => u8::MAX,
    }
}

impl Header {
    pub(crate) fn new<H: KeyHasher>(layout: Layout, index: Index, hasher: &H) -> Self {
        Self { layout, index, hash: code(H::KIND), seed: hasher.seed() }
    }

    /// Whether rows are ordered by this hash function.
    pub(crate) fn has_hash<H: KeyHasher>(&self, hasher: &H) -> bool {
        self.hash == code(H::KIND) && self.seed == hasher.seed()
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut row = MAGIC.to_vec();
        row.extend_from_slice(&FORMAT.to_le_bytes());
        row.push(match self.layout {
            Layout::Hashed => 0,
            Layout::Ordered => 1,
        });
        row.push(match self.index {
            Index::None => 0,
            Index::Hashes => 1,
            Index::Chosen => 2,
        });
        row.push(self.hash);
        row.extend_from_slice(&self.seed.to_u128().to_le_bytes());
        row
    }

    pub(crate) fn decode(row: &[u8]) -> Result<Self, NoHeader> {
        let rest = row.strip_prefix(MAGIC).ok_or(NoHeader::Foreign)?;
        let (format, _) = rest.split_first_chunk().ok_or(NoHeader::Foreign)?;
        let format = u16::from_le_bytes(*format);
        if format != FORMAT {
            return Err(NoHeader::OtherFormat(format));
        }
        let row: &[u8; HEADER_LEN] = row.try_into().map_err(|_| NoHeader::Foreign)?;
        let layout = match row[LAYOUT_AT] {
            0 => Layout::Hashed,
            1 => Layout::Ordered,
            _ => return Err(NoHeader::Foreign),
        };
        let index = match row[INDEX_AT] {
            0 => Index::None,
            1 => Index::Hashes,
            2 => Index::Chosen,
            _ => return Err(NoHeader::Foreign),
        };
        let mut seed = [0; size_of::<u128>()];
        seed.copy_from_slice(&row[SEED_AT..]);
        Ok(Self { layout, index, hash: row[HASH_AT], seed: Seed::from(u128::from_le_bytes(seed)) })
    }
}

/// Which state a store is in. Two that are equal are the same state of the same history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[non_exhaustive]
pub struct Position {
    /// How many commits were made before this state was reached.
    pub number: u64,
    /// Drawn at random when the store was opened that made the last of them.
    pub branch: u64,
}

impl Position {
    /// The state before the first commit.
    pub(crate) const ORIGIN: Self = Self { number: 0, branch: 0 };

    /// Both numbers in one, for the header of a snapshot.
    pub(crate) fn name(self) -> u64 {
        mix(self.branch ^ mix(self.number))
    }
}

/// Spreads every bit over all, one to one.
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ bits >> 32).wrapping_mul(0x9fb2_1c65_1e98_df25);
    bits = (bits ^ bits >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits ^ bits >> 32
}

/// A branch that no other opening has.
pub(crate) fn draw_branch() -> u64 {
    // Its keys are the operating system's.
    RandomState::new().build_hasher().finish()
}

/// Hashes that one commit is logged with, at most: those of more would outweigh what they save.
const MAX_HASHES: usize = 1 << 17;

/// The row of one commit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Entry {
    pub(crate) branch: u64,
    /// How many keys the store has behind it; no more than that if they were not counted.
    pub(crate) keys: u64,
    pub(crate) uncounted: bool,
    /// The upper halves of the digests of all keys that it inserted or removed. `None` if that was not written down.
    pub(crate) hashes: Option<Vec<u64>>,
}

impl Entry {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let hashes = self.hashes.as_deref().filter(|hashes| hashes.len() <= MAX_HASHES);
        let flags = u64::from(hashes.is_some()) | u64::from(self.uncounted) << 1;
        let words = [self.branch, self.keys, flags];
        let words = words.iter().chain(hashes.unwrap_or_default());
        words.flat_map(|word| word.to_le_bytes()).collect()
    }

    pub(crate) fn decode(row: &[u8]) -> Option<Self> {
        let (words, []) = row.as_chunks() else { return None };
        let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
        let (branch, keys, flags) = (words.next()?, words.next()?, words.next()?);
        let (hashes, uncounted): (Vec<u64>, _) = (words.collect(), flags & 2 != 0);
        match flags & !2 {
            0 if hashes.is_empty() => Some(Self { branch, keys, uncounted, hashes: None }),
            1 => Some(Self { branch, keys, uncounted, hashes: Some(hashes) }),
            _ => None,
        }
    }
}

/// The number in the key of a commit's row; `None` if it is another row.
pub(crate) fn number(key: &[u8]) -> Option<u64> {
    key.try_into().ok().map(u64::from_be_bytes)
}

/// The key of a commit's row.
pub(crate) fn key_of(number: u64) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    //! Catches: a header or a row that is read as another one, a panic on damage, names that two states share.
    use super::*;
    use besom::testing::Random;
    use besom::{SipHash, Xxh3};

    #[test]
    fn headers_come_back_and_others_are_refused() {
        let hasher = Xxh3::with_seed(Seed::from(7_u64));
        for layout in [Layout::Hashed, Layout::Ordered] {
            for index in [Index::None, Index::Hashes, Index::Chosen] {
                let header = Header::new(layout, index, &hasher);
                let row = header.encode();
                assert_eq!(Header::decode(&row), Ok(header));
                assert!(header.has_hash(&hasher));
                assert!(!header.has_hash(&Xxh3::with_seed(Seed::from(8_u64))));
                assert!(!header.has_hash(&SipHash::with_seed(Seed::from(7_u64))));
                for len in 0..row.len() {
                    assert_eq!(Header::decode(&row[..len]), Err(NoHeader::Foreign), "{len} bytes");
                }
                let mut other = row.clone();
                other[FORMAT_AT] += 1;
                assert_eq!(Header::decode(&other), Err(NoHeader::OtherFormat(FORMAT + 1)));
                for at in [LAYOUT_AT, INDEX_AT] {
                    let mut other = row.clone();
                    other[at] = 3;
                    assert_eq!(Header::decode(&other), Err(NoHeader::Foreign));
                }
            }
        }
    }

    #[test]
    fn entries_come_back_and_long_ones_are_left_out() {
        for hashes in [None, Some(vec![]), Some(vec![1, u64::MAX])] {
            let entry = Entry { branch: 5, keys: 6, uncounted: hashes.is_none(), hashes };
            let row = entry.encode();
            assert_eq!(Entry::decode(&row), Some(entry));
            assert_eq!(Entry::decode(&row[1..]), None);
        }
        let long = Entry { branch: 5, keys: 6, uncounted: true, hashes: Some(vec![0; MAX_HASHES + 1]) };
        assert_eq!(Entry::decode(&long.encode()).unwrap().hashes, None);
        let mut random = Random::new(3);
        for _ in 0..10_000 {
            let bytes: Vec<u8> = (0..random.below(50)).map(|_| random.next() as u8).collect();
            let _ = (Entry::decode(&bytes), Header::decode(&bytes));
        }
    }

    #[test]
    fn no_two_states_share_a_name() {
        let branches = [0, 1, 2, draw_branch(), draw_branch()];
        let names: std::collections::HashSet<u64> = branches
            .iter()
            .flat_map(|&branch| (0..10_000).map(move |number| Position { branch, number }.name()))
            .collect();
        assert_eq!(names.len(), 50_000);
    }
}
