//! Catches: a key that is not in the range that its filter says, after growth or repairs; an address that changes; a store that
//! keeps the addresses itself, or a set of a few lines, that does not suffice.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::ops::{ControlFlow, RangeInclusive};

use besom::any::{AnyRemote, DynFilter, dyn_adaptive};
use besom::cascade::{AdaptiveBloomFilter, Cascade};
use besom::cuckoo::{CuckooingFilter, CyclicFilter, RemoteCuckooFilter, SwappingFilter};
use besom::quotient::QuotientFilter;
use besom::telescoping::UncompressedTelescopingFilter;
use besom::testing::Random;
use besom::{
    Adaptive, BroomFilter, Change, ExtensionFilter, Filter, HashAddressed, KeyHasher, MemoryRemote, Remote,
    StoreIndex, Table, TelescopingFilter, Visit,
};

/// All that a filter needs of a store.
#[derive(Debug, Default)]
struct Sorted(BTreeSet<(u64, Vec<u8>)>);

impl Remote for Sorted {
    type Error = Infallible;

    fn range(&mut self, addresses: RangeInclusive<u64>, visit: &mut Visit<'_>) -> Result<(), Infallible> {
        let mut pairs =
            self.0.range((*addresses.start(), vec![])..).take_while(|pair| pair.0 <= *addresses.end());
        let _ = pairs.try_for_each(|(address, key)| visit(*address, key));
        Ok(())
    }

    fn apply(&mut self, changes: &[Change<'_>]) -> Result<(), Infallible> {
        changes.iter().for_each(|change| match *change {
            Change::Insert { address, key } => drop(self.0.insert((address, key.to_vec()))),
            Change::Remove { address, key } => drop(self.0.remove(&(address, key.to_vec()))),
        });
        Ok(())
    }
}

/// Every stored key has its hash for an address, and lies in the range that the filter says.
fn check<F: HashAddressed>(filter: &F, remote: &mut impl Remote<Error = Infallible>) {
    let visit = &mut |address: u64, key: &[u8]| {
        let digest = filter.hasher().digest(key);
        assert_eq!(address, digest.hi);
        assert!(filter.home(digest).unwrap().contains(&address));
        ControlFlow::Continue(())
    };
    remote.range(0..=u64::MAX, visit).unwrap();
    filter.verify_remote(remote).unwrap();
}

fn play<F: Adaptive, R: Remote<Error = Infallible> + Default>(
    filter: &mut F,
    keys: u64,
    check: impl Fn(&F, &mut R),
) {
    let (mut remote, mut random) = (R::default(), Random::new(5));
    let mut stored = BTreeSet::new();
    for step in 0..8 * keys {
        let key = random.below(keys);
        match random.below(4) {
            0 | 1 => assert_eq!(filter.insert(&key, &mut remote).unwrap(), stored.insert(key)),
            2 => assert_eq!(filter.remove(&key, &mut remote).unwrap(), stored.remove(&key)),
            _ => drop(filter.adapt(&(keys + random.below(100 * keys)), &mut remote).unwrap()),
        }
        if step % 64 == 0 {
            check(filter, &mut remote);
        }
        assert!(stored.iter().all(|key| filter.contains(key)), "a stored key was lost");
    }
    check(filter, &mut remote);
}

fn extensions(table: Table) -> ExtensionFilter {
    ExtensionFilter::builder().capacity(4).growable().seed(2_u64).table(table).build().unwrap()
}

#[test]
fn keys_are_where_the_filter_says() {
    let growable = || TelescopingFilter::builder().capacity(4).growable().seed(1_u64);
    play(&mut growable().build().unwrap(), 500, check::<_> as fn(&_, &mut MemoryRemote));
    for table in [Table::Quotient, Table::Bins] {
        play(&mut extensions(table), 500, check::<_> as fn(&_, &mut MemoryRemote));
    }
    let mut bloom = AdaptiveBloomFilter::builder().capacity(500).seed(4_u64).build().unwrap();
    play(&mut bloom, 500, check::<_> as fn(&_, &mut MemoryRemote));
}

#[test]
fn a_key_of_a_cuckoo_filter_has_no_single_address() {
    let filter = CuckooingFilter::with_capacity(10).unwrap();
    assert_eq!(filter.home(filter.hasher().digest_key("key")), None);
}

#[test]
fn a_set_of_pairs_serves_every_adaptive_filter() {
    fn agrees<F: Adaptive>(filter: &F, remote: &mut Sorted) {
        filter.verify_remote(remote).unwrap();
    }
    macro_rules! serve {
        ($($filter:ty $(, $call:ident($($value:expr)?))*;)*) => {$(
            let builder = <$filter>::builder().capacity(300)$(.$call($($value)?))*.seed(3_u64);
            play(&mut builder.false_positive_rate(0.05).build().unwrap(), 300, agrees);
        )*};
    }
    serve! {
        TelescopingFilter, growable();
        UncompressedTelescopingFilter, growable();
        ExtensionFilter, table(Table::Quotient), growable();
        ExtensionFilter, table(Table::Bins), growable();
        RemoteCuckooFilter;
        CuckooingFilter;
        CyclicFilter<2>;
        SwappingFilter;
        AdaptiveBloomFilter;
        Cascade<QuotientFilter>;
    }
}

/// A store whose data is keyed by (hash, key), and which writes its rows before the filter learns of them.
fn index_of_its_own<F: HashAddressed>(mut filter: F) {
    let mut rows: BTreeMap<(u64, Vec<u8>), u64> = BTreeMap::new();
    let mut random = Random::new(6);
    for step in 0..20_000_u64 {
        let key = random.below(600);
        let row = (filter.hasher().digest(&key.to_le_bytes()).hi, key.to_le_bytes().to_vec());
        let action = random.below(5);
        let was = rows.contains_key(&row);
        if action < 2 {
            rows.insert(row.clone(), step);
        } else if action == 2 {
            rows.remove(&row);
        }
        let mut index = StoreIndex(|addresses: RangeInclusive<u64>, visit: &mut Visit<'_>| {
            let from = rows.range((*addresses.start(), vec![])..).map(|(row, _)| row);
            let mut range = from.take_while(|row| row.0 <= *addresses.end());
            let _ = range.try_for_each(|(address, key)| visit(*address, key));
            Ok::<_, Infallible>(())
        });
        match action {
            0 => assert_eq!(filter.insert(&key, &mut index).unwrap(), !was),
            1 if !was => filter.insert_new(&key, &mut index).unwrap(),
            2 if was => assert!(filter.remove_stored(&key, &mut index).unwrap()),
            3 | 4 => drop(filter.adapt(&(1_000 + random.below(100_000)), &mut index).unwrap()),
            _ => {}
        }
        if step % 1_000 == 0 {
            filter.verify().unwrap();
            filter.verify_remote(&mut index).unwrap();
            if step % 4_000 == 0 {
                assert!(filter.rebuild_sorted(&mut index).unwrap());
                filter.verify_remote(&mut index).unwrap();
            }
        }
        assert_eq!(filter.len(), rows.len());
        assert!(rows.keys().all(|(_, key)| filter.contains(&key[..])), "a stored key was lost");
    }
}

#[test]
fn an_index_that_the_store_keeps_is_enough() {
    index_of_its_own(TelescopingFilter::builder().capacity(20).growable().seed(1_u64).build().unwrap());
    index_of_its_own(extensions(Table::Quotient));
    index_of_its_own(extensions(Table::Bins));
    index_of_its_own(Cascade::<QuotientFilter>::builder().capacity(700).seed(1_u64).build().unwrap());
    index_of_its_own(AdaptiveBloomFilter::builder().capacity(700).seed(1_u64).build().unwrap());
}

/// A filter behind a pointer asks the same of its remote as the filter itself.
#[test]
fn a_filter_behind_a_pointer_notices_a_remote_that_is_not_its_own() {
    let filters: [Box<dyn DynFilter>; 4] = [
        dyn_adaptive(TelescopingFilter::with_capacity(100).unwrap()),
        dyn_adaptive(BroomFilter::with_capacity(100).unwrap()),
        dyn_adaptive(CuckooingFilter::with_capacity(100).unwrap()),
        dyn_adaptive(AdaptiveBloomFilter::with_capacity(100).unwrap()),
    ];
    for mut filter in filters {
        let mut remote = AnyRemote(MemoryRemote::new());
        for key in 0..50_u64 {
            assert!(filter.insert(&key.to_le_bytes(), &mut remote).unwrap());
        }
        filter.verify_remote(&mut remote).unwrap();
        let (address, key) = remote.0.iter().next().map(|(address, key)| (address, key.to_vec())).unwrap();
        remote.0.apply(&[Change::Remove { address, key: &key }]).unwrap();
        assert!(filter.verify_remote(&mut remote).is_err(), "a pair is missing");
    }
}
