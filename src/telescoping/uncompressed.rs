//! The telescoping filter with a byte for every selector.

use crate::builder::{Build, Builder, built_by};
use crate::values::{Core, Parameters, ValueOptions, forward_to_core};
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

forward_to_core!(UncompressedTelescopingFilter, TelescopingUncompressed);

/// Builds an [`UncompressedTelescopingFilter`]. Its [load](Builder::max_load) is 0.95 unless given.
///
/// ```
/// use besom::telescoping::UncompressedTelescopingFilter;
/// use besom::Filter;
///
/// let filter = UncompressedTelescopingFilter::builder().capacity(500).max_load(0.9).seed(7_u64).build()?;
/// assert_eq!(filter.capacity(), 500);
/// # Ok::<(), besom::BuildError>(())
/// ```
pub type UncompressedTelescopingFilterBuilder<H = Xxh3> = Builder<UncompressedTelescopingFilter<H>>;

built_by!(UncompressedTelescopingFilterBuilder, [] UncompressedTelescopingFilter);

impl<H: KeyHasher> Build for UncompressedTelescopingFilter<H> {
    type Options = ();
    type With<G: KeyHasher> = UncompressedTelescopingFilter<G>;

    fn build(builder: &Builder<Self>) -> Result<Self, BuildError> {
        SelectingExplicitly::core(Parameters::of(builder, ValueOptions::default())).map(|core| Self { core })
    }

    fn size_in_bits(builder: &Builder<Self>) -> Result<usize, BuildError> {
        Parameters::of(builder, ValueOptions::default()).size_in_bits(false, 8)
    }
}
