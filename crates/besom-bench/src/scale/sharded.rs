//! One filter for several threads.

use std::error::Error;

use besom::quotient::QuotientFilter;
use besom::testing::NullRemote;
use besom::{Filter, Insert, Sharded, TelescopingFilter};

use super::{Built, Comparison, Scale, count, count_single};

const SHARDS: usize = 64;

fn sharded(scale: &Scale) -> Built<Sharded<QuotientFilter>> {
    Sharded::build(SHARDS, scale.items, |capacity, _| {
        QuotientFilter::builder().capacity(capacity).max_load(scale.load).seed(1_u64).build()
    })
}

/// Lets two threads work on halves of the keys.
fn on_two(keys: &[u64], work: impl Fn(&[u64]) -> usize + Sync) -> usize {
    let (one, two) = keys.split_at(keys.len() / 2);
    std::thread::scope(|scope| {
        let one = scope.spawn(|| work(one));
        work(two) + one.join().unwrap_or(0)
    })
}

pub(super) fn run(scale: &Scale) -> Result<Vec<Comparison>, Box<dyn Error>> {
    Ok(vec![queries(scale)?, insertion(scale)?, with_remote(scale)?])
}

fn queries(scale: &Scale) -> Result<Comparison, Box<dyn Error>> {
    let builder = QuotientFilter::builder().capacity(scale.items).max_load(scale.load).seed(1_u64);
    let (alone, shared) = (builder.from_keys(&scale.members)?, sharded(scale)?);
    shared.insert_many(&scale.members)?;
    let strangers = &scale.strangers[..];
    scale.compare::<Box<dyn Error>>(
        "quotient in 64 shards: negative queries",
        strangers.len(),
        &mut [
            ("unsharded, in batches", &mut || Ok(count(&alone, strangers))),
            ("one thread, in batches", &mut || Ok(count(&shared, strangers))),
            ("two threads, in batches", &mut || Ok(on_two(strangers, |keys| count(&shared, keys)))),
            ("unsharded, one by one", &mut || Ok(count_single(&alone, strangers))),
            ("one thread, one by one", &mut || Ok(count_single(&shared, strangers))),
            ("two threads, one by one", &mut || Ok(on_two(strangers, |keys| count_single(&shared, keys)))),
            ("reader: one thread, one by one", &mut || Ok(count_by_reader(&shared, strangers))),
            ("reader: two threads, one by one", &mut || {
                Ok(on_two(strangers, |keys| count_by_reader(&shared, keys)))
            }),
            ("frozen: two threads, one by one", &mut || {
                Ok(on_two(strangers, |keys| count_single(&alone, keys)))
            }),
        ],
    )
}

/// Counts the answers of a reader of its own.
fn count_by_reader(shared: &Sharded<QuotientFilter>, keys: &[u64]) -> usize {
    let mut reader = shared.reader();
    keys.iter().filter(|key| reader.contains(*key)).count()
}

fn insertion(scale: &Scale) -> Result<Comparison, Box<dyn Error>> {
    let members = &scale.members[..];
    let insert = |shared: &Sharded<QuotientFilter>, keys: &[u64]| {
        keys.iter().filter(|key| shared.insert(*key).is_ok()).count()
    };
    scale.compare(
        "quotient in 64 shards: insertion",
        members.len(),
        &mut [
            ("unsharded, insert", &mut || {
                let mut filter =
                    QuotientFilter::builder().capacity(scale.items).max_load(scale.load).build()?;
                members.iter().try_for_each(|key| filter.insert(key).map(drop))?;
                Ok(filter.len())
            }),
            ("one thread, insert", &mut || Ok(insert(&sharded(scale)?, members))),
            ("two threads, insert", &mut || {
                let shared = sharded(scale)?;
                Ok(on_two(members, |keys| insert(&shared, keys)))
            }),
            ("one thread, insert_many", &mut || Ok(sharded(scale)?.insert_many(members)?)),
            ("two threads, insert_many", &mut || {
                let shared = sharded(scale)?;
                Ok(on_two(members, |keys| shared.insert_many(keys).unwrap_or(0)))
            }),
        ],
    )
}

/// An adaptive filter, to see what it costs that nobody waits for the remote.
fn with_remote(scale: &Scale) -> Result<Comparison, Box<dyn Error>> {
    let members = &scale.members[..];
    let build = || {
        Sharded::build(SHARDS, scale.items, |capacity, _| {
            TelescopingFilter::builder().capacity(capacity).max_load(scale.load).seed(1_u64).build()
        })
    };
    let insert = |shared: &Sharded<TelescopingFilter>, keys: &[u64]| {
        let mut shared = shared.with_remote(NullRemote);
        keys.iter().filter(|key| shared.insert(*key).is_ok()).count()
    };
    scale.compare(
        "telescoping in 64 shards: insertion, with a remote that stores nothing",
        members.len(),
        &mut [
            ("one thread", &mut || Ok(insert(&build()?, members))),
            ("two threads", &mut || {
                let shared = build()?;
                Ok(on_two(members, |keys| insert(&shared, keys)))
            }),
        ],
    )
}
