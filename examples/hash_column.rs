//! Adapting by hand: the rows of a table are keyed by (hash, key), and that is all that a filter needs to repair itself.
//!
//! ```text
//! cargo run --release --example hash_column
//! ```

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::error::Error;
use std::ops::RangeInclusive;

use besom::{Adaptive, ExtensionFilter, Filter, KeyHasher, StoreIndex, Visit};

/// The table. An SQL index on a hash column is the same.
type Rows = BTreeMap<(u64, String), u32>;

/// Visits the keys whose hashes lie in a range: the only question that a repair asks.
fn visit_range(rows: &Rows, hashes: &RangeInclusive<u64>, visit: &mut Visit<'_>) -> Result<(), Infallible> {
    let rows = rows.range((*hashes.start(), String::new())..);
    let mut rows = rows.map(|(row, _)| row).take_while(|(hash, _)| hash <= hashes.end());
    let _ = rows.try_for_each(|(hash, key)| visit(*hash, key.as_bytes()));
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut filter = ExtensionFilter::builder().capacity(50_000).build()?;
    let mut rows = Rows::new();
    for number in 0..50_000 {
        let name = format!("package-{number}");
        rows.insert((filter.hasher().digest_key(&name).hi, name.clone()), number);
        filter.insert(
            &name,
            &mut StoreIndex(|range, visit: &mut Visit<'_>| visit_range(&rows, &range, visit)),
        )?;
    }
    let mut useless = [0_u32; 2];
    for round in &mut useless {
        for number in 0..100_000 {
            let name = format!("pakcage-{number}");
            if !filter.contains(&name) {
                continue;
            }
            let hash = filter.hasher().digest_key(&name).hi;
            if !rows.contains_key(&(hash, name.clone())) {
                *round += 1;
                let mut index = StoreIndex(|range, visit: &mut Visit<'_>| visit_range(&rows, &range, visit));
                filter.adapt(&name, &mut index)?;
            }
        }
    }
    println!("useless reads: {} in the first round, {} in the second", useless[0], useless[1]);
    if useless[1] == 0 { Ok(()) } else { Err("a false positive came back".into()) }
}
