//! Files: every filter comes back from its bytes as it was, damaged bytes do no harm, and a file is there as a whole.

mod fixtures;
pub(crate) mod memory;
mod mutations;
mod open;
mod round_trip;
mod save;
mod size;
mod subjects;

/// How many times a loop is to run: a hundredth of the full number unless `BESOM_FULL` is set.
fn times(full: u64) -> u64 {
    if std::env::var_os("BESOM_FULL").is_some() { full } else { full.div_ceil(50) }
}
