//! The telescoping filter with a byte for every selector.

use std::marker::PhantomData;

use crate::values::{Core, Parameters, common_parameters, forward_to_core};
use crate::{BuildError, KeyHasher, Xxh3};

use super::selecting::SelectingExplicitly;

/// A [`TelescopingFilter`](crate::TelescopingFilter) that keeps its selectors in an array of bytes.
///
/// It never overflows and never decodes, and pays with 8 bits a slot and a second cache line for queries that find
/// something in their run. Selectors count to 255 and then begin again at 0. The paper uses it to show what the
/// compression costs.
///
/// ```
/// use besom::telescoping::UncompressedTelescopingFilter;
/// use besom::{Adaptive, Filter, MemoryRemote};
///
/// let mut remote = MemoryRemote::new();
/// let mut filter = UncompressedTelescopingFilter::with_capacity(1_000)?;
/// filter.insert("here", &mut remote)?;
/// assert!(filter.contains("here"));
/// assert!(filter.remove("here", &mut remote)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct UncompressedTelescopingFilter<H = Xxh3> {
    core: Core<SelectingExplicitly, H>,
}

crate::filter::debug_by_figures!([H: KeyHasher] UncompressedTelescopingFilter<H>);

impl UncompressedTelescopingFilter<Xxh3> {
    /// Returns a builder; see [`UncompressedTelescopingFilterBuilder`].
    pub fn builder() -> UncompressedTelescopingFilterBuilder<Xxh3> {
        UncompressedTelescopingFilterBuilder { parameters: Parameters::default(), hasher: PhantomData }
    }

    /// Returns a filter for this many keys, with a false-positive rate of 1/256.
    ///
    /// # Errors
    ///
    /// [`BuildError`] for capacity 0 and for more than memory holds.
    pub fn with_capacity(keys: usize) -> Result<Self, BuildError> {
        Self::builder().capacity(keys).build()
    }
}

forward_to_core!(UncompressedTelescopingFilter, TelescopingUncompressed);

/// Builds a [`UncompressedTelescopingFilter`].
///
/// ```
/// use besom::telescoping::UncompressedTelescopingFilter;
/// use besom::Filter;
///
/// let filter = UncompressedTelescopingFilter::builder().capacity(500).max_load(0.9).seed(7_u64).build()?;
/// assert_eq!(filter.capacity(), 500);
/// # Ok::<(), besom::BuildError>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until build is called"]
pub struct UncompressedTelescopingFilterBuilder<H = Xxh3> {
    parameters: Parameters,
    hasher: PhantomData<H>,
}

impl<H: KeyHasher> UncompressedTelescopingFilterBuilder<H> {
    common_parameters!(UncompressedTelescopingFilter, coded: false, value_bits: 8);

    /// Uses another hash function.
    pub fn hasher<G: KeyHasher>(self) -> UncompressedTelescopingFilterBuilder<G> {
        UncompressedTelescopingFilterBuilder { parameters: self.parameters, hasher: PhantomData }
    }

    /// Builds the filter.
    ///
    /// # Errors
    ///
    /// [`BuildError`] says which parameter cannot be met, and what can.
    pub fn build(self) -> Result<UncompressedTelescopingFilter<H>, BuildError> {
        Ok(UncompressedTelescopingFilter { core: SelectingExplicitly::core(self.parameters)? })
    }
}
