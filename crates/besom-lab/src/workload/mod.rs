//! Streams of keys: seeded generators, and files.
//!
//! Generators are endless (or, for [`FlowTrace`], finite) iterators of 64-bit keys. Files have keys of any bytes.
//! [`KeyStream`] is the interface of both, one key at a time: nothing is ever held in memory as a whole.
//!
//! | stream | what it is like |
//! |---|---|
//! | [`Uniform`] | fresh keys, none ever twice |
//! | [`Repeated`] | one key forever |
//! | [`Zipf`] | independent draws, rank i in proportion to i^-s |
//! | [`PowerLaw`] | the biased power law of the Firehose benchmark |
//! | [`ActiveSet`] | the drifting active set of the Firehose benchmark: keys come into fashion and go out of it |
//! | [`FlowTrace`] | packets of network flows: Zipf sizes, the packets of a flow close together in time |
//! | [`Lines`], [`CsvColumn`], [`JsonField`], [`ArcTrace`], [`Capture`] | files: a key a line, columns of tables, fields of JSON lines, disk traces, packet captures ([`open`] finds out which) |

mod active_set;
mod arc;
mod capture;
mod csv;
mod error;
mod file;
mod flow;
mod json;
mod lines;
mod power_law;
mod simple;
mod zipf;

pub use active_set::{ActiveSet, ActiveSetShape};
pub use arc::ArcTrace;
pub use capture::Capture;
pub use csv::{CsvColumn, Separator};
pub use error::WorkloadError;
pub use file::{Format, open, open_as, read};
pub use flow::{FlowShape, FlowTrace};
pub use json::JsonField;
pub use lines::Lines;
pub use power_law::PowerLaw;
pub use simple::{Repeated, Uniform};
pub use zipf::Zipf;

/// A stream of keys of any bytes.
///
/// ```
/// use besom_lab::workload::{KeyStream, Numbers, Uniform};
///
/// let mut stream = Numbers(Uniform::new(7).take(2));
/// let mut key = Vec::new();
/// assert!(stream.next_key(&mut key)? && key.len() == 8);
/// assert!(stream.next_key(&mut key)?);
/// assert!(!stream.next_key(&mut key)?);
/// # Ok::<(), besom_lab::workload::WorkloadError>(())
/// ```
pub trait KeyStream: Send {
    /// Replaces the content of `key` by the next key; `false` at the end of the stream.
    ///
    /// # Errors
    ///
    /// What is wrong with the file, and where in it.
    fn next_key(&mut self, key: &mut Vec<u8>) -> Result<bool, WorkloadError>;

    /// How many blank lines were passed over so far.
    fn skipped(&self) -> u64 {
        0
    }
}

/// A generator of numbers as a stream of keys: 8 bytes each, little-endian, as [`besom::Key`] has them.
#[derive(Debug, Clone)]
pub struct Numbers<I>(pub I);

impl<I: Iterator<Item = u64> + Send> KeyStream for Numbers<I> {
    fn next_key(&mut self, key: &mut Vec<u8>) -> Result<bool, WorkloadError> {
        let Some(number) = self.0.next() else { return Ok(false) };
        key.clear();
        key.extend_from_slice(&number.to_le_bytes());
        Ok(true)
    }
}

impl<S: KeyStream + ?Sized> KeyStream for Box<S> {
    fn next_key(&mut self, key: &mut Vec<u8>) -> Result<bool, WorkloadError> {
        (**self).next_key(key)
    }

    fn skipped(&self) -> u64 {
        (**self).skipped()
    }
}
