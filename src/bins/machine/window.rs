//! The bytes of one run, eight at a time, for machines that cannot compare a whole line at once.
//!
//! Runs are short: at load 0.90 one in a million has more than eight items.

use super::super::line::{Line, Run};

/// What `test` says of the bytes of a run's slots, if those of all slots begin with byte `first` of the line: it is
/// given eight of them, and answers with a bit for each.
#[inline(always)]
pub(super) fn of_run(line: &Line, first: u32, run: Run, test: impl Fn(&[u8; 8]) -> u64) -> u64 {
    let at = run.first.trailing_zeros() & 63;
    let slots = run.slots() >> at;
    let mut found = test(line.window(first + at));
    let mut done = 8;
    while slots >> done != 0 {
        found |= test(line.window(first + at + done)) << done;
        done += 8;
    }
    (found & slots) << at
}
