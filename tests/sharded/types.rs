//! Catches: a type that cannot go to another thread, or be asked by several.

use std::sync::{Arc, Mutex};

use besom::any::*;
use besom::bloom::*;
use besom::cascade::*;
use besom::cuckoo::{
    AdaptiveCuckooFilterBuilder, CuckooFilter, CuckooingFilter, CyclicFilter, RemoteCuckooFilter,
    SwappingFilter,
};
use besom::isa::*;
use besom::quotient::*;
use besom::sharded::*;
use besom::telescoping::*;
use besom::tinyset::*;
use besom::whitelist::*;
use besom::*;

fn shared<T: Send + Sync>() {}

#[test]
fn every_public_type_goes_to_other_threads_and_is_shared_by_them() {
    shared::<(QuotientFilter, QuotientFilterBuilder, BinFilter, BinFilterBuilder)>();
    shared::<(TelescopingFilter, TelescopingFilterBuilder, UncompressedTelescopingFilter)>();
    shared::<(UncompressedTelescopingFilterBuilder, ExtensionFilter, ExtensionFilterBuilder)>();
    shared::<(
        RemoteCuckooFilter,
        CuckooingFilter,
        CyclicFilter<1>,
        CyclicFilter<2>,
        CyclicFilter<3>,
        SwappingFilter,
    )>();
    shared::<(CuckooFilter, AdaptiveCuckooFilterBuilder<cuckoo::Inert>)>();
    shared::<(BloomFilter, BloomFilterBuilder, BlockedBloomFilter, BlockedBloomFilterBuilder)>();
    shared::<(
        AdaptiveBloomFilter,
        Cascade<QuotientFilter>,
        CascadeBuilder<QuotientFilter>,
        LevelStats,
        Schedule,
    )>();
    shared::<(WhitelistFilter, WhitelistFilterBuilder, WhitelistError, TinySet, TinySetBuilder)>();
    shared::<(Sharded<QuotientFilter>, ShardedError<FullError>)>();
    shared::<WithRemote<'_, TelescopingFilter, &Mutex<MemoryRemote>>>();
    shared::<(MemoryRemote, Change<'_>, AnyRemote<MemoryRemote>, AnyRemoteError)>();
    shared::<(Guard<TelescopingFilter, MemoryDictionary<u64>>, GuardError<FullError, FullError>, GuardStats)>(
    );
    shared::<(BuildError, FullError, MergeError, AdaptiveError<FullError>, InvariantError, InsertManyError)>(
    );
    shared::<(RebuildError<FullError, FullError>, DynFilterError, RemovalDisabled, IsaError)>();
    shared::<(
        Adaptation,
        FilterStats,
        Settled,
        Authority,
        play::Play,
        play::Evidence,
        Overflow,
        Isa,
        HashKind,
        Digest,
        Seed,
        SipHash,
        Xxh3,
    )>();
    shared::<(format::FormatError, format::Header, format::Kind, format::UnknownKind, format::Region)>();
    shared::<(format::ReadOptions, format::WriteOptions)>();
    shared::<(testing::Random, testing::Damage, testing::Faults, testing::Faulty<MemoryRemote>)>();
}

/// A frozen filter needs no locks.
#[test]
fn a_filter_in_an_arc_is_asked_by_all_threads() {
    let mut filter = QuotientFilter::with_capacity(10_000).unwrap();
    filter.insert_many(&(0..10_000_u64).collect::<Vec<_>>()).unwrap();
    let filter = Arc::new(filter);
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let filter = Arc::clone(&filter);
            std::thread::spawn(move || (0..10_000_u64).all(|key| filter.contains(&key)))
        })
        .collect();
    assert!(threads.into_iter().all(|thread| thread.join().unwrap()));
}
