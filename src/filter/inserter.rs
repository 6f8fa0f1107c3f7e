//! Insertion one by one with memory fetched ahead: keys wait a little before they are inserted.

use crate::{Digest, FullError, Key, KeyHasher};

use super::{Filter, Insert};

/// How many keys wait: enough to cover the latency of a miss, few enough for the processor's fill buffers.
const WAITING: usize = 24;

/// Filters of this many keys lie in the processor's cache: there is nothing to wait for.
pub(crate) const SMALL: usize = 1 << 17;

/// The digests that wait, the oldest first.
#[derive(Debug, Clone)]
struct Waiting {
    digests: [Digest; WAITING],
    /// Where the next one goes; if all places are taken, the oldest is there.
    next: usize,
    len: usize,
}

impl Waiting {
    fn new() -> Self {
        Self { digests: [Digest { hi: 0, lo: 0 }; WAITING], next: 0, len: 0 }
    }

    /// Lets a digest wait. The one that has waited longest comes back if there is no room for both.
    #[inline(always)]
    fn push(&mut self, digest: Digest) -> Option<Digest> {
        let oldest = std::mem::replace(&mut self.digests[self.next], digest);
        self.next = if self.next + 1 == WAITING { 0 } else { self.next + 1 };
        if self.len < WAITING {
            self.len += 1;
            return None;
        }
        Some(oldest)
    }

    /// Takes the last [`push`](Self::push) back, which returned `oldest`.
    fn take_back(&mut self, oldest: Digest) {
        self.next = (self.next + WAITING - 1) % WAITING;
        self.digests[self.next] = oldest;
    }

    /// Takes the one that has waited longest.
    fn pop(&mut self) -> Option<Digest> {
        let place = (self.next + WAITING).checked_sub(self.len).filter(|_| self.len > 0)?;
        self.len -= 1;
        Some(self.digests[place % WAITING])
    }
}

/// Inserts keys one by one at the speed of many at once: see [`Insert::inserter`].
///
/// A key is inserted up to two dozen keys later than it was given; until then its memory is on its way.
/// [`finish`](Self::finish) inserts those that still wait, and so does dropping this.
#[derive(Debug)]
pub struct Inserter<'f, F: Insert> {
    filter: &'f mut F,
    waiting: Waiting,
    /// Whether keys wait at all.
    waits: bool,
}

impl<'f, F: Insert> Inserter<'f, F> {
    pub(super) fn new(filter: &'f mut F) -> Self {
        let waits = filter.capacity() > SMALL;
        Self { filter, waiting: Waiting::new(), waits }
    }

    /// Inserts a key, though perhaps not yet.
    ///
    /// # Errors
    ///
    /// [`FullError`] without room for it, or without memory for one that waits. This key is not in the filter then; all
    /// that were given before are, or wait still.
    #[inline]
    pub fn insert<K: Key + ?Sized>(&mut self, key: &K) -> Result<(), FullError> {
        let digest = self.filter.hasher().digest_key(key);
        if !self.waits {
            return self.filter.insert_digest(digest).map(drop);
        }
        if self.filter.len() + self.waiting.len >= self.filter.capacity() {
            return self.insert_now(digest);
        }
        self.filter.prefetch(self.filter.place(digest));
        match self.waiting.push(digest) {
            Some(oldest) => {
                self.filter.insert_digest(oldest).map(drop).inspect_err(|_| self.waiting.take_back(oldest))
            }
            None => Ok(()),
        }
    }

    /// Where the filter is full with those that wait, or has to grow for them.
    #[cold]
    fn insert_now(&mut self, digest: Digest) -> Result<(), FullError> {
        self.flush()?;
        self.filter.insert_digest(digest).map(drop)
    }

    /// Inserts all keys that wait.
    ///
    /// # Errors
    ///
    /// [`FullError`] if the filter lacks memory for one of them, which is lost then, as are those that were given after
    /// it. For lack of capacity [`insert`](Self::insert) has refused before.
    pub fn finish(mut self) -> Result<(), FullError> {
        self.flush()
    }

    fn flush(&mut self) -> Result<(), FullError> {
        while let Some(digest) = self.waiting.pop() {
            self.filter.insert_digest(digest)?;
        }
        Ok(())
    }
}

/// Inserts the keys that still wait.
impl<F: Insert> Drop for Inserter<'_, F> {
    fn drop(&mut self) {
        let flushed = self.flush();
        // They had room when they came. A key that is lost in silence would be worse than a panic.
        assert!(flushed.is_ok() || std::thread::panicking(), "no memory for keys that were accepted");
    }
}

/// Inserts all keys by `insert`, which cannot fail, each a little later than it came. If the iterator panics, those
/// that came before are inserted all the same.
pub(crate) fn extend<F: Filter, K: Key>(
    filter: &mut F,
    keys: impl IntoIterator<Item = K>,
    insert: impl Fn(&mut F, Digest),
) {
    struct Ahead<'f, F, I: Fn(&mut F, Digest)> {
        filter: &'f mut F,
        waiting: Waiting,
        insert: I,
    }
    impl<F, I: Fn(&mut F, Digest)> Drop for Ahead<'_, F, I> {
        fn drop(&mut self) {
            while let Some(digest) = self.waiting.pop() {
                (self.insert)(self.filter, digest);
            }
        }
    }
    let waits = filter.capacity() > SMALL;
    let mut ahead = Ahead { filter, waiting: Waiting::new(), insert };
    for key in keys {
        let digest = ahead.filter.hasher().digest_key(&key);
        let next = if waits {
            ahead.filter.prefetch(ahead.filter.place(digest));
            ahead.waiting.push(digest)
        } else {
            Some(digest)
        };
        if let Some(digest) = next {
            (ahead.insert)(ahead.filter, digest);
        }
    }
}

#[cfg(test)]
mod tests {
    //! Catches: keys that are forgotten while they wait, or inserted twice.
    use super::*;
    use crate::{BinFilter, QuotientFilter};

    #[test]
    fn digests_come_back_in_their_order() {
        for count in [0_u64, 1, 5, 23, 24, 25, 100] {
            let mut waiting = Waiting::new();
            let digest = |hi| Digest { hi, lo: !hi };
            let mut back: Vec<u64> =
                (0..count).filter_map(|hi| waiting.push(digest(hi))).map(|d| d.hi).collect();
            back.extend(std::iter::from_fn(|| waiting.pop()).map(|digest| digest.hi));
            assert!(back.into_iter().eq(0..count));
            assert!(waiting.push(digest(7)).is_none() && waiting.pop() == Some(digest(7)));
            // Once it is full, a push can be taken back.
            for hi in 0..WAITING as u64 + count {
                waiting.push(digest(hi));
            }
            let oldest = waiting.push(digest(999)).unwrap();
            waiting.take_back(oldest);
            assert!(
                std::iter::from_fn(|| waiting.pop())
                    .map(|digest| digest.hi)
                    .eq(count..count + WAITING as u64)
            );
        }
    }

    /// Filters that are full, that grow, and that are dropped in the middle.
    fn agrees<F: Insert + Clone + PartialEq>(empty: &F, same: impl Fn(&F, &F) -> bool) {
        for count in [0, 1, 24, 25, empty.capacity(), 3 * empty.capacity()] {
            let (mut expected, mut filter) = (empty.clone(), empty.clone());
            let results: Vec<_> = (0..count as u64).map(|key| expected.insert(&key).map(drop)).collect();
            let mut inserter = filter.inserter();
            // So small ones would not let anything wait.
            inserter.waits = true;
            let mut found: Vec<_> = Vec::new();
            for key in 0..count as u64 {
                found.push(inserter.insert(&key));
            }
            if count % 2 == 0 {
                inserter.finish().unwrap();
            } else {
                drop(inserter);
            }
            assert_eq!(found, results);
            filter.verify().unwrap();
            assert!(same(&filter, &expected), "{count} keys");
        }
    }

    #[test]
    fn filters_are_those_that_insertion_makes() {
        let bins = BinFilter::builder().seed(1_u64);
        agrees(&bins.clone().capacity(300).build().unwrap(), |one, two| one == two);
        agrees(&bins.capacity(200).growable_to(500).build().unwrap(), |one, two| one == two);
        let quotient = QuotientFilter::builder().seed(1_u64);
        agrees(&quotient.clone().capacity(10).build().unwrap(), |one, two| one == two);
        agrees(&quotient.capacity(50).growable_to(200).build().unwrap(), |one, two| one == two);
    }
}
