//! The filters of this project, as its roster has them: one subject for all.

use std::ops::{ControlFlow, RangeInclusive};
use std::time::Instant;

use besom::any::{Abilities, Config, Configured, Visit, visit};
use besom::exact::ExactList;
use besom::format::Kind;
use besom::testing::NullRemote;
use besom::{
    Adaptive, AdaptiveError, BuildError, Change, Filter, FilterStats, Insert, MemoryRemote, Remote, Xxh3,
};

use crate::heap;
use crate::subject::{Adapting, BATCH, Build, Entry, Failure, Shape, Subject};

/// Every filter of the roster that is built from parameters.
pub(crate) fn all() -> impl Iterator<Item = Entry> {
    // To reset blocks changes nothing that is measured here.
    let names = Config::names().filter(|name| !name.ends_with("-reset"));
    names.filter_map(|name| {
        let config: Config = name.parse().ok()?;
        let note = note(&config);
        visit(config.kind(), Register { name, note, config })?
    })
}

/// How a filter is configured, for the footnotes.
fn note(config: &Config) -> String {
    let kind = config.kind();
    let load = match (config.accepts("max_load"), wants_keys(kind)) {
        (true, true) => ", max_load(load up to 0.96)",
        (true, false) => ", max_load(load)",
        (false, _) => "",
    };
    let table = config.table.map_or_else(String::new, |table| format!(", table({table:?})"));
    let shape =
        config.shape.map_or_else(String::new, |(tables, slots)| format!(", shape({tables}, {slots})"));
    let remark = match kind {
        Kind::Broom => {
            "; an insertion that collides reads the remote, and is left out where that stores nothing"
        }
        Kind::Whitelist => "; measured as it is built: no false positive is listed",
        _ => "",
    };
    let name = kind.type_name();
    format!("besom::{name}: capacity(items), false_positive_rate(rate){load}{table}{shape}{remark}")
}

/// Whether filters of this kind have to know the stored keys to insert another one, in order to move them.
fn wants_keys(kind: Kind) -> bool {
    kind.options().contains(&"slot_bits")
}

/// The configuration of a filter for this shape.
fn shaped(config: &Config, shape: &Shape) -> Config {
    // No cuckoo filter can be filled further, so a higher load is measured there.
    let load = if wants_keys(config.kind()) { shape.load.min(0.96) } else { shape.load };
    let mut shaped = config.clone().capacity(shape.items).false_positive_rate(shape.rate).seed(shape.seed);
    shaped.max_load = config.accepts("max_load").then_some(load);
    shaped
}

/// Makes an entry of the type of a filter.
struct Register {
    name: &'static str,
    note: String,
    config: Config,
}

impl Visit<Xxh3> for Register {
    type Output = Option<Entry>;

    fn plain<F: Configured<Hasher = Xxh3> + Insert>(self, _: Abilities<F>) -> Option<Entry> {
        let Self { name, note, config } = self;
        Some(plain(name, note, move |shape| F::configured(&shaped(&config, shape))))
    }

    fn adaptive<F: Configured<Hasher = Xxh3> + Adaptive>(self, _: Abilities<F>) -> Option<Entry> {
        let Self { name, note, config } = self;
        let wants_keys = wants_keys(config.kind());
        let build = move |shape: &Shape| F::configured(&shaped(&config, shape));
        Some(if wants_keys { adaptive_with_keys(name, note, build) } else { adaptive(name, note, build) })
    }

    fn list(self, _: Abilities<ExactList>) -> Option<Entry> {
        None
    }
}

/// An entry for a filter that works alone.
fn plain<F: Insert + 'static>(
    name: &'static str,
    note: String,
    build: impl Fn(&Shape) -> Result<F, BuildError> + 'static,
) -> Entry {
    let build: Build = Box::new(move |shape| {
        Ok(Box::new(Measured {
            filter: build(shape)?,
            remote: (),
            insert: |filter: &mut F, (): &mut (), key: &u64| {
                filter.insert(key)?;
                Ok(())
            },
            adapt: |_: &mut F, (): &mut (), _: &u64| Ok(false),
            weigh: |()| 0,
        }))
    });
    Entry { name, note, build, remote: false, bare: None }
}

/// An entry for an adaptive filter that can insert without looking at the keys that are stored, but for a few that it
/// has to tell from them: these are left out where the remote stores nothing.
///
/// Queries are measured with a [`MemoryRemote`] behind the filter; insertion with it and, to see what it costs the
/// filter itself, with a remote that stores nothing.
fn adaptive<F: Adaptive + 'static>(
    name: &'static str,
    note: String,
    build: impl Fn(&Shape) -> Result<F, BuildError> + Clone + 'static,
) -> Entry {
    let make = build.clone();
    let bare: Build = Box::new(move |shape| {
        Ok(Box::new(Measured {
            filter: make(shape)?,
            remote: NullRemote,
            insert: |filter: &mut F, remote: &mut NullRemote, key: &u64| match filter.insert(key, remote) {
                Ok(_) | Err(AdaptiveError::Inconsistent { .. }) => Ok(()),
                Err(error) => Err(error.into()),
            },
            // There is nothing to repair with.
            adapt: |_: &mut F, _: &mut NullRemote, _: &u64| Ok(false),
            weigh: |_| 0,
        }))
    });
    Entry { bare: Some(bare), ..adaptive_with_keys(name, note, build) }
}

/// An entry for an adaptive filter that has to know the stored keys to insert another one (to kick one out, or to
/// tell the newcomer from it). Everything is measured with a [`MemoryRemote`].
fn adaptive_with_keys<F: Adaptive + 'static>(
    name: &'static str,
    note: String,
    build: impl Fn(&Shape) -> Result<F, BuildError> + 'static,
) -> Entry {
    type Kept = Metered<MemoryRemote>;
    let build: Build = Box::new(move |shape| {
        Ok(Box::new(Measured {
            filter: build(shape)?,
            remote: Kept::default(),
            insert: |filter: &mut F, remote: &mut Kept, key: &u64| {
                filter.insert(key, remote)?;
                Ok(())
            },
            adapt: |filter: &mut F, remote: &mut Kept, key: &u64| Ok(filter.adapt(key, remote)?.is_fixed()),
            weigh: |remote| remote.bytes,
        }))
    });
    Entry { name, note, build, remote: true, bare: None }
}

/// A filter with its remote, if it has one, and what is done with one key: closures, which are compiled into the loops
/// over the keys.
struct Measured<F, R, I, A> {
    filter: F,
    remote: R,
    insert: I,
    /// Whether there was something to repair, and it was.
    adapt: A,
    /// The memory of the remote.
    weigh: fn(&R) -> isize,
}

impl<F, R, I, A> Subject for Measured<F, R, I, A>
where
    F: Filter,
    R: Default,
    I: Fn(&mut F, &mut R, &u64) -> Result<(), Failure>,
    A: Fn(&mut F, &mut R, &u64) -> Result<bool, Failure>,
{
    fn insert_all(&mut self, keys: &[u64]) -> Result<(), Failure> {
        for key in keys {
            (self.insert)(&mut self.filter, &mut self.remote, key)?;
        }
        Ok(())
    }

    fn count(&self, keys: &[u64]) -> usize {
        keys.iter().filter(|key| self.filter.contains(*key)).count()
    }

    fn count_batched(&self, keys: &[u64]) -> Option<usize> {
        let mut answers = Vec::with_capacity(BATCH);
        let mut count = |batch: &[u64]| {
            self.filter.contains_many(batch, &mut answers);
            answers.iter().map(|&answer| usize::from(answer)).sum::<usize>()
        };
        Some(keys.chunks(BATCH).map(&mut count).sum())
    }

    fn stats(&self) -> Option<FilterStats> {
        Some(self.filter.stats())
    }

    fn adapt_all(&mut self, strangers: &[u64]) -> Result<Adapting, Failure> {
        let mut adapting = Adapting::default();
        for key in strangers {
            if self.filter.contains(key) {
                let start = Instant::now();
                let repaired = (self.adapt)(&mut self.filter, &mut self.remote, key)?;
                adapting += Adapting { hits: 1, repairs: repaired.into(), time: start.elapsed() };
            }
        }
        Ok(adapting)
    }

    fn foreign_bytes(&self) -> isize {
        (self.weigh)(&self.remote)
    }

    fn settle(&mut self) {
        self.remote = R::default();
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

    fn range(
        &mut self,
        addresses: RangeInclusive<u64>,
        visit: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>,
    ) -> Result<(), R::Error> {
        self.remote.range(addresses, visit)
    }

    fn apply(&mut self, changes: &[Change<'_>]) -> Result<(), R::Error> {
        let before = heap::live();
        let result = self.remote.apply(changes);
        self.bytes += heap::live() - before;
        result
    }
}

#[cfg(test)]
mod tests {
    //! Catches: a subject that counts wrongly, that does not adapt, or that takes the remote's memory for the
    //! filter's.
    use besom::ExtensionFilter;
    use besom::quotient::QuotientFilter;

    use super::*;
    use crate::keys::{Keys, Role};

    const SHAPE: Shape = Shape { items: 3_000, load: 0.9, rate: 0.5, seed: 7 };

    fn quotient(shape: &Shape) -> Result<QuotientFilter, BuildError> {
        let builder = QuotientFilter::builder().capacity(shape.items).max_load(shape.load);
        builder.false_positive_rate(shape.rate).seed(shape.seed).build()
    }

    fn extension(shape: &Shape) -> Result<ExtensionFilter, BuildError> {
        let builder = ExtensionFilter::builder().capacity(shape.items).max_load(shape.load);
        builder.false_positive_rate(shape.rate).seed(shape.seed).build()
    }

    #[test]
    fn a_plain_filter_is_counted_and_its_errors_come_through() {
        let entry = plain("quotient", String::new(), quotient);
        let keys = Keys::new(1);
        let (members, strangers) = (keys.range(Role::Member, 0, 3_000), keys.range(Role::Stranger, 0, 5_000));
        let mut subject = (entry.build)(&SHAPE).unwrap();
        subject.insert_all(&members).unwrap();
        assert_eq!(subject.count(&members), 3_000);
        let hits = subject.count(&strangers);
        assert!((500..2_500).contains(&hits), "{hits}");
        assert_eq!(subject.count_batched(&strangers), Some(hits));
        let adapting = subject.adapt_all(&strangers).unwrap();
        assert_eq!((adapting.hits, adapting.repairs), (hits, 0));
        let error = subject.insert_all(&strangers).unwrap_err();
        assert!(error.to_string().contains("is full"), "{error}");
    }

    #[test]
    fn an_adaptive_filter_adapts_and_leaves_the_remote_out_of_its_memory() {
        let entry = adaptive("extension", String::new(), extension);
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
        // A repair may repair others with it.
        let (hits, met) = (subject.count(&strangers), subject.adapt_all(&strangers).unwrap());
        assert!((hits / 4..=hits).contains(&met.hits), "{met:?} of {hits}");
        assert!(met.repairs == met.hits && !met.time.is_zero(), "{met:?}");
        assert_eq!(subject.count(&strangers), 0);
        assert_eq!(subject.count(&members), 3_000);
    }
}
