//! What the commits since the last snapshot have done, so that a snapshot that is behind can be caught up.
//!
//! ```text
//! entry of one commit: items, one after the other
//!   0 insert | 1 remove | 2 adapt   key            an operation of the filter
//!   3 push                          address, key   the changes that it made
//!   4 remove                        address, rank, key
//!   5 replace                       address, rank, old key, key
//!   6 clear
//! numbers: 8 bytes, little-endian; keys: length in 4 bytes, then the bytes
//! ```

use besom::Change;

use super::rehearsal::{Op, OwnedChange};

/// A commit that does more than fits in so many bytes is not written down. A snapshot before it cannot be caught up then.
const MAX_BYTES: usize = 1 << 20;

/// An entry that is being written.
#[derive(Debug, Default)]
pub(super) struct Log {
    bytes: Vec<u8>,
    too_long: bool,
}

impl Log {
    /// Writes down that an operation begins.
    pub(super) fn op(&mut self, op: Op, key: &[u8]) {
        let tag = match op {
            Op::Insert => 0,
            Op::Remove => 1,
            Op::Adapt => 2,
        };
        self.item(tag, &[], &[key]);
    }

    /// Writes down what it changes.
    pub(super) fn changes<'c>(&mut self, changes: impl IntoIterator<Item = &'c Change<'c>>) {
        for change in changes {
            match *change {
                Change::Push { address, key } => self.item(3, &[address], &[key]),
                Change::Remove { address, rank, key } => self.item(4, &[address, rank as u64], &[key]),
                Change::Replace { address, rank, old, key } => {
                    self.item(5, &[address, rank as u64], &[old, key]);
                }
                Change::Clear => self.item(6, &[], &[]),
            }
        }
    }

    fn item(&mut self, tag: u8, numbers: &[u64], keys: &[&[u8]]) {
        let bytes: usize = keys.iter().map(|key| key.len()).sum();
        self.too_long |= self.bytes.len() + bytes > MAX_BYTES;
        if self.too_long {
            return;
        }
        self.bytes.push(tag);
        numbers.iter().for_each(|number| self.bytes.extend_from_slice(&number.to_le_bytes()));
        for key in keys {
            self.bytes.extend_from_slice(&(key.len() as u32).to_le_bytes());
            self.bytes.extend_from_slice(key);
        }
    }

    /// The entry, unless it became too long.
    pub(super) fn finish(&self) -> Option<&[u8]> {
        (!self.too_long).then_some(&self.bytes)
    }
}

/// An operation and what it changed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) op: Op,
    pub(super) key: Box<[u8]>,
    pub(super) changes: Vec<OwnedChange>,
}

/// The steps of an entry. `None` if it is none.
pub(super) fn steps(entry: &[u8]) -> Option<Vec<Step>> {
    let (mut reader, mut steps) = (Reader(entry), Vec::<Step>::new());
    while let Some((&tag, rest)) = reader.0.split_first() {
        reader.0 = rest;
        let op = match tag {
            0 => Op::Insert,
            1 => Op::Remove,
            2 => Op::Adapt,
            _ => {
                let change = reader.change(tag)?;
                steps.last_mut()?.changes.push(change);
                continue;
            }
        };
        steps.push(Step { op, key: reader.key()?, changes: Vec::new() });
    }
    Some(steps)
}

struct Reader<'b>(&'b [u8]);

impl Reader<'_> {
    fn change(&mut self, tag: u8) -> Option<OwnedChange> {
        Some(match tag {
            3 => OwnedChange::Push { address: self.number()?, key: self.key()? },
            4 => OwnedChange::Remove { address: self.number()?, rank: self.rank()?, key: self.key()? },
            5 => {
                let (address, rank) = (self.number()?, self.rank()?);
                OwnedChange::Replace { address, rank, old: self.key()?, key: self.key()? }
            }
            6 => OwnedChange::Clear,
            _ => return None,
        })
    }

    fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }

    fn rank(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok()
    }

    fn key(&mut self) -> Option<Box<[u8]>> {
        let (length, rest) = self.0.split_first_chunk()?;
        let (key, rest) = rest.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)?;
        self.0 = rest;
        Some(key.into())
    }
}

#[cfg(test)]
mod tests {
    //! Catches: an entry that is read as something else than what was written, and a panic on one that is damaged.
    use super::*;
    use besom::testing::Random;

    #[test]
    fn what_is_written_is_read() {
        let mut log = Log::default();
        log.op(Op::Insert, b"one");
        log.changes(&[Change::Push { address: 7, key: b"one" }]);
        log.op(Op::Remove, b"");
        log.changes(&[
            Change::Remove { address: u64::MAX, rank: 3, key: b"" },
            Change::Replace { address: 1, rank: 0, old: b"old", key: b"new" },
        ]);
        log.op(Op::Adapt, b"key");
        log.changes(&[Change::Clear]);
        let entry = log.finish().unwrap();
        let steps = steps(entry).unwrap();
        assert_eq!(steps.iter().map(|step| step.op).collect::<Vec<_>>(), [Op::Insert, Op::Remove, Op::Adapt]);
        assert_eq!(steps[0].changes, [OwnedChange::Push { address: 7, key: (*b"one").into() }]);
        assert_eq!(steps[1].changes.len(), 2);
        assert_eq!((&*steps[2].key, &steps[2].changes[..]), (&b"key"[..], &[OwnedChange::Clear][..]));
        let mut random = Random::new(3);
        for _ in 0..10_000 {
            let mut damaged = entry.to_vec();
            let at = random.below(damaged.len() as u64) as usize;
            damaged[at] ^= 1 << random.below(8);
            damaged.truncate(random.below(damaged.len() as u64 + 1) as usize);
            let _ = super::steps(&damaged);
        }
    }

    #[test]
    fn a_commit_that_is_too_long_is_left_out() {
        let mut log = Log::default();
        log.op(Op::Insert, &vec![0; MAX_BYTES]);
        assert!(log.finish().is_some());
        log.op(Op::Insert, b"one more");
        assert!(log.finish().is_none());
    }
}
