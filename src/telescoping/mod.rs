//! The telescoping filter (Lee, McCauley, Singh and Stein, ESA 2021): a quotient filter in which a repaired slot
//! moves on to another part of its key's hash.

mod compressed;
mod selecting;
mod uncompressed;

pub use compressed::{TelescopingFilter, TelescopingFilterBuilder};
pub use uncompressed::{UncompressedTelescopingFilter, UncompressedTelescopingFilterBuilder};

/// Bare cores for the tests that all schemes share.
#[cfg(test)]
pub(crate) mod testing {
    use super::selecting::{Selecting, SelectingExplicitly};
    use crate::KeyHasher;
    use crate::values::{Core, Parameters, Scheme};

    pub(crate) fn telescoping_core<H: KeyHasher>(parameters: Parameters) -> Core<impl Scheme, H> {
        Selecting::core(parameters).unwrap()
    }

    pub(crate) fn explicit_core<H: KeyHasher>(parameters: Parameters) -> Core<impl Scheme, H> {
        SelectingExplicitly::core(parameters).unwrap()
    }
}
