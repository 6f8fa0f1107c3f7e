//! The class `ExactList`.

use besom::any::AnyFilter;
use besom::exact::ExactList as List;
use besom::{KeyHasher, SipHash, Xxh3};
use pyo3::prelude::*;

use crate::adaptive::packed;
use crate::error::{BuildException, Raise};
use crate::filter::Filter;
use crate::keys::Packed;
use crate::remote::Beside;
use crate::state::{Hashed, State};

/// A list that accepts all keys of one collection and rejects all keys of another, without a single mistake among them.
///
/// For two lists that are known and do not change, such as revoked and valid certificates. It takes two to twelve bits
/// for each key that is accepted. Keys of neither list are answered by chance; ``unknown_rate`` bounds the share that
/// is accepted. Without keys to reject it is a static filter.
///
/// >>> from besom import ExactList
/// >>> revoked = ExactList(range(100), range(100, 1000), seed=1)
/// >>> revoked.contains_many(list(range(98, 102)))
/// array([ True,  True, False, False])
#[pyclass(frozen, extends = Filter, subclass, module = "besom", name = "ExactList")]
pub(crate) struct ExactList;

#[pymethods]
impl ExactList {
    #[new]
    #[pyo3(signature = (accepted, rejected=None, *, unknown_rate=None, seed=None, hash="xxh3"))]
    fn new(
        accepted: &Bound<'_, PyAny>,
        rejected: Option<&Bound<'_, PyAny>>,
        unknown_rate: Option<f64>,
        seed: Option<u128>,
        hash: &str,
    ) -> PyResult<PyClassInitializer<Self>> {
        let (yes, no) = (packed(accepted)?, rejected.map(packed).transpose()?);
        let filter = accepted.py().detach(|| match hash {
            "xxh3" => build::<Xxh3>(&yes, no.as_ref(), unknown_rate, seed).map(Hashed::Xxh3),
            "siphash" => build::<SipHash>(&yes, no.as_ref(), unknown_rate, seed).map(Hashed::SipHash),
            other => {
                Err(BuildException::new_err(format!("hash cannot be {other:?}; it must be xxh3 or siphash")))
            }
        })?;
        let state = State { filter, beside: Beside::Nothing };
        Ok(PyClassInitializer::from(Filter::of(state)).add_subclass(Self))
    }
}

fn build<H: KeyHasher>(
    yes: &Packed,
    no: Option<&Packed>,
    unknown_rate: Option<f64>,
    seed: Option<u128>,
) -> PyResult<AnyFilter<H>> {
    let mut builder = List::builder().hasher::<H>();
    if let Some(rate) = unknown_rate {
        builder = builder.unknown_rate(rate);
    }
    if let Some(seed) = seed {
        builder = builder.seed(seed);
    }
    let yes: Vec<&[u8]> = yes.iter().collect();
    let list = match no {
        Some(no) => builder.build(yes.iter(), no.iter().collect::<Vec<_>>().iter()),
        None => builder.build_filter(yes.iter()),
    };
    list.map(AnyFilter::from_list).map_err(Raise::raise)
}
