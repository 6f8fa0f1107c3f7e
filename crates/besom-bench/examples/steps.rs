//! This many operations of one kind on a quotient filter, or on bins, for counting what they execute.
//!
//! Under an emulator that logs instructions, or a tool that counts them, the difference between two numbers of
//! operations is what those cost:
//!
//! ```sh
//! cargo build --release --target aarch64-unknown-linux-gnu -p besom-bench --example steps
//! qemu-aarch64 -L /usr/aarch64-linux-gnu -singlestep -d exec,nochain -D /dev/stdout steps negative 1000 | grep -c '^Trace'
//! qemu-aarch64 -L /usr/aarch64-linux-gnu -singlestep -d exec,nochain -D /dev/stdout steps negative 2000 | grep -c '^Trace'
//! BESOM_ISA=avx2 valgrind --tool=callgrind steps negative 1000 bins
//! ```

use std::error::Error;

use besom::quotient::QuotientFilter;
use besom::{BinFilter, Insert};

/// Fills the filter to load 0.90.
const KEYS: u64 = 58_000;

/// This many of them are left for those who count insertions.
const LAST: u64 = 6_000;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(what), Some(count)) = (args.next(), args.next()) else {
        return Err("steps insert|positive|negative COUNT [quotient|bins]".into());
    };
    let (count, capacity) = (count.parse()?, KEYS as usize);
    let found = match args.next().as_deref() {
        None | Some("quotient") => steps(
            QuotientFilter::builder().capacity(capacity).max_load(0.9).seed(1_u64).build()?,
            &what,
            count,
        ),
        Some("bins") => {
            steps(BinFilter::builder().capacity(capacity).max_load(0.9).seed(1_u64).build()?, &what, count)
        }
        Some(other) => Err(format!("{other}: quotient or bins").into()),
    };
    println!("{}", found?);
    Ok(())
}

/// Fills a filter and does this many operations. How many keys it accepted, or has.
fn steps(mut filter: impl Insert, what: &str, count: u64) -> Result<u64, Box<dyn Error>> {
    let key = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let filled = if what == "insert" { KEYS - LAST } else { KEYS };
    for number in 0..filled {
        filter.insert(&key(number))?;
    }
    Ok(match what {
        "insert" => {
            (filled..filled + count.min(LAST))
                .try_for_each(|number| filter.insert(&key(number)).map(drop))?;
            filter.len() as u64
        }
        "positive" => (0..count).filter(|&number| filter.contains(&key(number % KEYS))).count() as u64,
        "negative" => (0..count).filter(|&number| filter.contains(&key(KEYS + number))).count() as u64,
        _ => return Err(format!("{what}: insert, positive or negative").into()),
    })
}
