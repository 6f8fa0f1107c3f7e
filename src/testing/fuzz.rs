//! A harness for fuzzing: seeded cases, as many as there is time for, each of which can be repeated.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

use super::Random;

/// Runs a target on many random cases. A case that panics is a finding: what it takes to repeat it is printed.
///
/// An ordinary run makes `cases` of them, always the same. The environment asks for more:
///
/// | variable | |
/// |---|---|
/// | `BESOM_FUZZ_SECONDS` | run for this many seconds, with other cases each time |
/// | `BESOM_FUZZ_CASE` | this case alone, to repeat a finding |
///
/// ```
/// use besom::testing::fuzz;
///
/// fuzz("sorting", 10, |random| {
///     let mut numbers: Vec<u64> = (0..random.below(20)).map(|_| random.next()).collect();
///     numbers.sort_unstable();
///     assert!(numbers.is_sorted());
/// });
/// ```
///
/// # Panics
///
/// As the first case that does.
pub fn fuzz(target: &str, cases: u64, mut case: impl FnMut(&mut Random)) {
    let mut run = |number: u64| {
        let outcome = catch_unwind(AssertUnwindSafe(|| case(&mut Random::new(number))));
        if let Err(panic) = outcome {
            eprintln!("fuzzing {target} found something: repeat it with BESOM_FUZZ_CASE={number}");
            resume_unwind(panic);
        }
    };
    if let Some(number) = variable("BESOM_FUZZ_CASE") {
        return run(number);
    }
    let Some(seconds) = variable("BESOM_FUZZ_SECONDS") else { return (0..cases).for_each(run) };
    // Far from those of ordinary runs and of each other.
    let mut numbers = Random::new(crate::Seed::random().to_u128() as u64);
    let (start, mut done) = (Instant::now(), 0_u64);
    while start.elapsed() < Duration::from_secs(seconds) {
        run(numbers.next());
        done += 1;
    }
    println!("{target}: {done} cases in {seconds} s");
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}
