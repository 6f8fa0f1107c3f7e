//! Many keys at once beside one after the other.

use std::error::Error;

use besom::bloom::BlockedBloomFilter;
use besom::quotient::QuotientFilter;
use besom::testing::NullRemote;
use besom::tinyset::TinySet;
use besom::{Adaptive, BinFilter, ExtensionFilter, Filter, Insert, Table, TelescopingFilter};

use rayon::ThreadPool;

use super::{Built, Comparison, Scale};

pub(super) fn run(scale: &Scale) -> Result<Vec<Comparison>, Box<dyn Error>> {
    // This thread itself: to wake another one takes as long as a small filter.
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build()?;
    Ok(vec![
        quotient(scale, &one)?,
        telescoping(scale, &one)?,
        extension(scale, &one)?,
        extension_bins(scale, &one)?,
        bins(scale, &one)?,
        inserting(scale, "blocked-bloom: insertion", |items| {
            BlockedBloomFilter::builder().capacity(items).build()
        })?,
        inserting(scale, "tinyset: insertion", |items| TinySet::builder().capacity(items).build())?,
    ])
}

fn quotient(scale: &Scale, one: &ThreadPool) -> Result<Comparison, Box<dyn Error>> {
    let builder = QuotientFilter::builder().capacity(scale.items).max_load(scale.load).seed(1_u64);
    let two = rayon::ThreadPoolBuilder::new().num_threads(2).build()?;
    scale.compare(
        "quotient: insertion",
        scale.items,
        &mut [
            ("insert", &mut || {
                let mut filter = builder.clone().build()?;
                scale.members.iter().try_for_each(|key| filter.insert(key).map(drop))?;
                Ok(filter.len())
            }),
            ("insert_many", &mut || {
                let mut filter = builder.clone().build()?;
                filter.insert_many(&scale.members)?;
                Ok(filter.len())
            }),
            ("from_keys, one thread", &mut || {
                let filter = one.install(|| builder.clone().from_keys(&scale.members))?;
                Ok(filter.len())
            }),
            ("from_keys, two threads", &mut || {
                let filter = elsewhere(&two, || builder.clone().from_keys(&scale.members))?;
                Ok(filter.len())
            }),
        ],
    )
}

fn bins(scale: &Scale, one: &ThreadPool) -> Result<Comparison, Box<dyn Error>> {
    let builder = BinFilter::builder().capacity(scale.items).max_load(scale.load).seed(1_u64);
    let two = rayon::ThreadPoolBuilder::new().num_threads(2).build()?;
    scale.compare(
        "bins: insertion",
        scale.items,
        &mut [
            ("insert", &mut || {
                let mut filter = builder.clone().build()?;
                scale.members.iter().try_for_each(|key| filter.insert(key).map(drop))?;
                Ok(filter.len())
            }),
            ("inserter", &mut || {
                let mut filter = builder.clone().build()?;
                let mut inserter = filter.inserter();
                scale.members.iter().try_for_each(|key| inserter.insert(key))?;
                inserter.finish()?;
                Ok(filter.len())
            }),
            ("extend", &mut || {
                let mut filter = builder.clone().build()?;
                filter.extend(scale.members.iter().copied());
                Ok(filter.len())
            }),
            ("insert_many", &mut || {
                let mut filter = builder.clone().build()?;
                filter.insert_many(&scale.members)?;
                Ok(filter.len())
            }),
            ("from_keys, one thread", &mut || {
                let filter = one.install(|| builder.clone().from_keys(&scale.members))?;
                Ok(filter.len())
            }),
            ("from_keys, two threads", &mut || {
                let filter = elsewhere(&two, || builder.clone().from_keys(&scale.members))?;
                Ok(filter.len())
            }),
            ("qfilter: insert", &mut || {
                let mut filter = qfilter::Filter::new(scale.items as u64, 1.0 / 256.0)?;
                scale.members.iter().try_for_each(|key| filter.insert(key).map(drop))?;
                Ok(filter.len() as usize)
            }),
        ],
    )
}

macro_rules! adaptive {
    ($name:ident, $filter:ident, $title:literal $(, $call:ident($value:expr))?) => {
        fn $name(scale: &Scale, one: &ThreadPool) -> Result<Comparison, Box<dyn Error>> {
            let builder = $filter::builder().capacity(scale.items).max_load(scale.load).seed(1_u64);
            $(let builder = builder.$call($value);)?
            let two = rayon::ThreadPoolBuilder::new().num_threads(2).build()?;
            let bulk = || builder.clone().from_keys(&scale.members, &mut NullRemote).map(|filter| filter.len());
            scale.compare(
                $title,
                scale.items,
                &mut [
                    ("insert", &mut || {
                        let mut filter = builder.clone().build()?;
                        scale
                            .members
                            .iter()
                            .try_for_each(|key| filter.insert(key, &mut NullRemote).map(drop))?;
                        Ok(filter.len())
                    }),
                    ("from_keys, one thread", &mut || Ok(one.install(bulk)?)),
                    ("from_keys, two threads", &mut || Ok(elsewhere(&two, bulk)?)),
                ],
            )
        }
    };
}

adaptive!(telescoping, TelescopingFilter, "telescoping: insertion, with a remote that stores nothing");
adaptive!(
    extension,
    ExtensionFilter,
    "extension-quotient: insertion, with a remote that stores nothing",
    table(Table::Quotient)
);
adaptive!(
    extension_bins,
    ExtensionFilter,
    "extension-bins: insertion, with a remote that stores nothing",
    table(Table::Bins)
);

fn inserting<F: Insert>(
    scale: &Scale,
    title: &'static str,
    build: impl Fn(usize) -> Built<F>,
) -> Result<Comparison, Box<dyn Error>> {
    scale.compare(
        title,
        scale.items,
        &mut [
            ("insert", &mut || {
                let mut filter = build(scale.items)?;
                scale.members.iter().try_for_each(|key| filter.insert(key).map(drop))?;
                Ok(filter.len())
            }),
            ("insert_many", &mut || {
                let mut filter = build(scale.items)?;
                filter.insert_many(&scale.members)?;
                Ok(filter.len())
            }),
        ],
    )
}

/// Works in a pool while this thread sleeps: as one of another pool's it would go round in circles until it is done.
fn elsewhere<T: Send>(pool: &ThreadPool, work: impl FnOnce() -> T + Send) -> T {
    let done = std::thread::scope(|scope| scope.spawn(|| pool.install(work)).join());
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
