//! The filters of this project, behind three adapters: one for plain filters, two for adaptive ones.
//!
//! ```text
//! plain("quotient", "its footnote", |shape| builder….build(), |filter, key| filter.insert(key))
//! adaptive("telescoping", "its footnote", |shape| builder….build())
//! adaptive_with_keys("swapping", "its footnote", |shape| builder….build())
//! ```

use std::convert::Infallible;

use besom::{Adaptive, BuildError, Change, Filter, FilterStats, FullError, MemoryRemote, Remote};

use crate::heap;
use crate::subject::{BATCH, Build, Entry, Failure, Shape, Subject};

/// An entry for a filter that works alone. `insert` is the filter's own method; as a closure it is compiled into
/// the loop over the keys.
pub(crate) fn plain<F: Filter + 'static>(
    name: &'static str,
    note: &'static str,
    build: impl Fn(&Shape) -> Result<F, BuildError> + 'static,
    insert: impl Fn(&mut F, &u64) -> Result<(), FullError> + Copy + 'static,
) -> Entry {
    let build: Build = Box::new(move |shape| Ok(Box::new(Plain { filter: build(shape)?, insert })));
    Entry { name, note, build, remote: false, bare: None }
}

/// An entry for an adaptive filter that can insert without looking at the keys that are stored.
///
/// Queries are measured with a [`MemoryRemote`] behind the filter; insertion with it and, to see what it costs the
/// filter itself, with a remote that stores nothing.
pub(crate) fn adaptive<F: Adaptive + 'static>(
    name: &'static str,
    note: &'static str,
    build: impl Fn(&Shape) -> Result<F, BuildError> + Copy + 'static,
) -> Entry {
    let bare: Build =
        Box::new(move |shape| Ok(Box::new(Adapting { filter: build(shape)?, remote: NullRemote })));
    Entry { bare: Some(bare), ..adaptive_with_keys(name, note, build) }
}

/// An entry for an adaptive filter that has to know the stored keys to insert another one (to kick one out, or to
/// tell the newcomer from it). Everything is measured with a [`MemoryRemote`].
pub(crate) fn adaptive_with_keys<F: Adaptive + 'static>(
    name: &'static str,
    note: &'static str,
    build: impl Fn(&Shape) -> Result<F, BuildError> + 'static,
) -> Entry {
    let build: Build = Box::new(move |shape| {
        let remote = Metered::<MemoryRemote>::default();
        Ok(Box::new(Adapting { filter: build(shape)?, remote }))
    });
    Entry { name, note, build, remote: true, bare: None }
}

struct Plain<F, I> {
    filter: F,
    insert: I,
}

impl<F, I> Subject for Plain<F, I>
where
    F: Filter,
    I: Fn(&mut F, &u64) -> Result<(), FullError>,
{
    fn insert_all(&mut self, keys: &[u64]) -> Result<(), Failure> {
        for key in keys {
            (self.insert)(&mut self.filter, key)?;
        }
        Ok(())
    }

    fn count(&self, keys: &[u64]) -> usize {
        count(&self.filter, keys)
    }

    fn count_batched(&self, keys: &[u64]) -> Option<usize> {
        Some(count_batched(&self.filter, keys))
    }

    fn stats(&self) -> Option<FilterStats> {
        Some(self.filter.stats())
    }
}

struct Adapting<F, R> {
    filter: F,
    remote: R,
}

impl<F: Adaptive, R: MeasuredRemote> Subject for Adapting<F, R> {
    fn insert_all(&mut self, keys: &[u64]) -> Result<(), Failure> {
        for key in keys {
            self.filter.insert(key, &mut self.remote)?;
        }
        Ok(())
    }

    fn count(&self, keys: &[u64]) -> usize {
        count(&self.filter, keys)
    }

    fn count_batched(&self, keys: &[u64]) -> Option<usize> {
        Some(count_batched(&self.filter, keys))
    }

    fn stats(&self) -> Option<FilterStats> {
        Some(self.filter.stats())
    }

    fn adapt_all(&mut self, strangers: &[u64]) -> Result<usize, Failure> {
        let mut hits = 0;
        for key in strangers {
            if self.filter.contains(key) {
                hits += 1;
                if R::KEEPS_KEYS {
                    self.filter.adapt(key, &mut self.remote)?;
                }
            }
        }
        Ok(hits)
    }

    fn foreign_bytes(&self) -> isize {
        self.remote.bytes()
    }

    fn settle(&mut self) {
        self.remote = R::default();
    }
}

fn count<F: Filter>(filter: &F, keys: &[u64]) -> usize {
    keys.iter().filter(|key| filter.contains(*key)).count()
}

fn count_batched<F: Filter>(filter: &F, keys: &[u64]) -> usize {
    let mut answers = Vec::with_capacity(BATCH);
    let mut count = |batch: &[u64]| {
        filter.contains_many(batch, &mut answers);
        answers.iter().map(|&answer| usize::from(answer)).sum::<usize>()
    };
    keys.chunks(BATCH).map(&mut count).sum()
}

/// A remote whose memory is not the filter's.
trait MeasuredRemote: Remote + Default {
    /// Whether it holds what a filter needs to adapt.
    const KEEPS_KEYS: bool;

    /// The memory that it holds.
    fn bytes(&self) -> isize;
}

/// A remote that stores nothing.
#[derive(Default)]
struct NullRemote;

impl Remote for NullRemote {
    type Error = Infallible;

    fn read(&mut self, _: u64, _: &mut dyn FnMut(&[u8])) -> Result<(), Infallible> {
        Ok(())
    }

    fn apply(&mut self, _: &[Change<'_>]) -> Result<(), Infallible> {
        Ok(())
    }
}

impl MeasuredRemote for NullRemote {
    const KEEPS_KEYS: bool = false;

    fn bytes(&self) -> isize {
        0
    }
}

/// A remote that watches the heap while it changes: what grows there belongs to it.
#[derive(Default)]
struct Metered<R> {
    remote: R,
    bytes: isize,
}

impl<R: Remote> Remote for Metered<R> {
    type Error = R::Error;

    fn read(&mut self, address: u64, visit: &mut dyn FnMut(&[u8])) -> Result<(), R::Error> {
        self.remote.read(address, visit)
    }

    fn apply(&mut self, changes: &[Change<'_>]) -> Result<(), R::Error> {
        let before = heap::live();
        let result = self.remote.apply(changes);
        self.bytes += heap::live() - before;
        result
    }

    fn prefetch(&self, address: u64) {
        self.remote.prefetch(address);
    }
}

impl<R: Remote + Default> MeasuredRemote for Metered<R> {
    const KEEPS_KEYS: bool = true;

    fn bytes(&self) -> isize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    //! Catches: an adapter that counts wrongly, that does not adapt, or that takes the remote's memory for the
    //! filter's.
    use std::collections::HashSet;

    use besom::{Adaptation, AdaptiveError, Digest, Key, KeyHasher, Xxh3};

    use super::*;
    use crate::keys::{Keys, Role};

    /// Knows its keys exactly but accepts everything else of an even digest too, until it is told of it.
    struct Parity {
        hash: Xxh3,
        members: HashSet<Digest>,
        repaired: HashSet<Digest>,
        capacity: usize,
    }

    fn parity(shape: &Shape) -> Result<Parity, BuildError> {
        Ok(Parity {
            hash: Xxh3::with_seed(shape.seed.into()),
            members: HashSet::with_capacity(shape.items),
            repaired: HashSet::new(),
            capacity: shape.items,
        })
    }

    impl Parity {
        fn store(&mut self, key: &u64) -> Result<(), FullError> {
            if self.members.len() == self.capacity {
                return Err(FullError { len: self.capacity, capacity: self.capacity });
            }
            self.members.insert(self.hash.digest_key(key));
            Ok(())
        }
    }

    impl Filter for Parity {
        fn digest(&self, bytes: &[u8]) -> Digest {
            self.hash.digest(bytes)
        }

        fn contains_digest(&self, digest: Digest) -> bool {
            self.members.contains(&digest) || digest.lo.is_multiple_of(2) && !self.repaired.contains(&digest)
        }

        fn len(&self) -> usize {
            self.members.len()
        }

        fn capacity(&self) -> usize {
            self.capacity
        }

        fn stats(&self) -> FilterStats {
            FilterStats::default()
        }
    }

    impl Adaptive for Parity {
        fn insert<K, R>(&mut self, key: &K, remote: &mut R) -> Result<bool, AdaptiveError<R::Error>>
        where
            K: Key + ?Sized,
            R: Remote,
        {
            let digest = self.hash.digest_key(key);
            key.with_bytes(|key| remote.apply(&[Change::Push { address: digest.hi >> 50, key }]))
                .map_err(AdaptiveError::Remote)?;
            Ok(self.members.insert(digest))
        }

        fn remove<K, R>(&mut self, key: &K, _: &mut R) -> Result<bool, AdaptiveError<R::Error>>
        where
            K: Key + ?Sized,
            R: Remote,
        {
            Ok(self.members.remove(&self.hash.digest_key(key)))
        }

        fn adapt<K, R>(&mut self, key: &K, _: &mut R) -> Result<Adaptation, AdaptiveError<R::Error>>
        where
            K: Key + ?Sized,
            R: Remote,
        {
            self.repaired.insert(self.hash.digest_key(key));
            Ok(Adaptation::Fixed { slots: 1 })
        }
    }

    const SHAPE: Shape = Shape { items: 3_000, load: 0.9, rate: 0.5, seed: 7 };

    #[test]
    fn a_plain_filter_is_counted_and_its_errors_come_through() {
        let entry = plain("parity", "", parity, Parity::store);
        let keys = Keys::new(1);
        let (members, strangers) = (keys.range(Role::Member, 0, 3_000), keys.range(Role::Stranger, 0, 5_000));
        let mut subject = (entry.build)(&SHAPE).unwrap();
        subject.insert_all(&members).unwrap();
        assert_eq!(subject.count(&members), 3_000);
        let hits = subject.count(&strangers);
        assert!((2_000..3_000).contains(&hits), "{hits}");
        assert_eq!(subject.count_batched(&strangers), Some(hits));
        assert_eq!(subject.adapt_all(&strangers).unwrap(), hits);
        let error = subject.insert_all(&strangers).unwrap_err();
        assert!(error.to_string().contains("full"), "{error}");
    }

    #[test]
    fn an_adaptive_filter_adapts_and_leaves_the_remote_out_of_its_memory() {
        let entry = adaptive("parity", "", parity);
        let keys = Keys::new(1);
        let (members, strangers) = (keys.range(Role::Member, 0, 3_000), keys.range(Role::Stranger, 0, 5_000));
        let held = |build: &Build| {
            let before = heap::live();
            let mut subject = build(&SHAPE).unwrap();
            subject.insert_all(&members).unwrap();
            (heap::live() - before - subject.foreign_bytes(), subject)
        };
        let (bare_bytes, _) = held(entry.bare.as_ref().unwrap());
        let (bytes, mut subject) = held(&entry.build);
        assert!(subject.foreign_bytes() > 3_000 * 8);
        // The two differ by the small structs themselves.
        assert!(bytes.abs_diff(bare_bytes) < 256, "{bytes} and {bare_bytes}");
        let hits = subject.count(&strangers);
        assert_eq!(subject.adapt_all(&strangers).unwrap(), hits);
        assert_eq!(subject.count(&strangers), 0);
        assert_eq!(subject.count(&members), 3_000);
    }
}
