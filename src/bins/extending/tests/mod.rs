//! Extension filters on bins: what the tests that all tables share need of them (see `values::tests`), and tests of
//! what only bins have.

mod lines;

use crate::KeyHasher;
use crate::values::Parameters;
use crate::values::testing::{Tested, forward_to_filter};

use super::{BinParameters, ExtendingBins};

/// The filter that a filter with values would be on bins.
pub(crate) fn extension_bins<H: KeyHasher>(parameters: Parameters) -> ExtendingBins<H> {
    let Parameters { capacity, rate, load, seed, growable, .. } = parameters;
    BinParameters { capacity, rate, load, growable }.build(seed).unwrap()
}

impl<H: KeyHasher> Tested for ExtendingBins<H> {
    forward_to_filter!();
}
