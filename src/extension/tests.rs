//! Catches: a builder that stands on another table than it says, announces the size of another one, or drops a wish; a
//! rule that chooses bins where they are much larger.

use crate::{Adaptive, BuildError, ExtensionFilter, Filter, MemoryRemote, Overflow, SipHash, Table};

#[test]
fn wishes_that_only_one_table_can_meet_choose_it() {
    let builder = ExtensionFilter::builder().capacity(20_000);
    let table = |builder: &super::ExtensionFilterBuilder| {
        let (filter, size) = (builder.clone().build().unwrap(), builder.size_in_bits().unwrap());
        assert_eq!(filter.stats().bits, size);
        filter.table()
    };
    assert_eq!(table(&builder), Table::Bins);
    assert_eq!(table(&builder.clone().growable().overflow(Overflow::Spill)), Table::Bins);
    assert_eq!(builder.clone().hasher::<SipHash>().build().unwrap().table(), Table::Bins);
    assert_eq!(table(&builder.clone().table(Table::Quotient)), Table::Quotient);
    let small = builder.clone().capacity(100);
    assert_eq!(table(&small), Table::Quotient);
    assert_eq!(table(&small.table(Table::Bins)), Table::Bins);
    for (asked, call) in [
        (builder.clone().overflow(Overflow::Reset), "overflow(Reset)"),
        (builder.clone().repairs_per_key(0.01), "repairs_per_key"),
    ] {
        assert_eq!(table(&asked), Table::Quotient);
        assert_eq!(table(&asked.clone().table(Table::Quotient)), Table::Quotient);
        let forced = asked.table(Table::Bins);
        let conflict = BuildError::Conflict { first: "table(Bins)", second: call };
        assert_eq!(forced.size_in_bits(), Err(conflict.clone()));
        assert_eq!(forced.hasher::<SipHash>().build().map(drop), Err(conflict));
    }
    // A wish that was taken back is none.
    assert_eq!(table(&builder.overflow(Overflow::Reset).overflow(Overflow::Spill)), Table::Bins);
}

#[test]
fn the_keys_of_a_filter_count_as_its_capacity() {
    let keys: Vec<u64> = (0..10_000).collect();
    let builder = ExtensionFilter::builder().seed(1_u64);
    let mut remote = MemoryRemote::new();
    let filter = builder.clone().from_keys(&keys, &mut remote).unwrap();
    assert_eq!((filter.table(), filter.capacity()), (Table::Bins, 10_000));
    let back = builder.capacity(10_000).from_sorted(&mut remote).unwrap();
    assert!(back == filter && back.emptied().unwrap().table() == Table::Bins);
}

/// Bits per key by rate and size, as `docs/tables.md` has them: `cargo test --lib tables_beside -- --nocapture`.
#[test]
fn tables_beside_each_other() {
    const SIZES: [usize; 8] = [10, 100, 1_000, 3_000, 10_000, 100_000, 1_000_000, 10_000_000];
    println!("quotient table / bins, load 0.95, keys: {SIZES:?}");
    for rate in [16.0, 64.0, 80.0, 100.0, 256.0, 1_000.0, 4_096.0, 65_536.0] {
        let mut row = format!("1/{rate:<6}");
        for capacity in SIZES {
            let builder = ExtensionFilter::builder().capacity(capacity).false_positive_rate(1.0 / rate);
            let bits = |table| builder.clone().table(table).size_in_bits().unwrap() as f64;
            let (quotient, bins) = (bits(Table::Quotient), bits(Table::Bins));
            row += &format!("  {:.1} / {:.1}", quotient / capacity as f64, bins / capacity as f64);
            let chosen = builder.size_in_bits().unwrap() as f64;
            assert!(chosen <= 1.14 * quotient.min(bins), "{capacity} keys at 1/{rate}");
        }
        println!("{row}");
    }
}
