//! Sharded filters in files: one part after the other.

use crate::format::{self, Decoder, Encoder, FormatError, Kind, Persist, WriteOptions, in_range, unsound};
use crate::{Filter, InvariantError};

use super::address::MAX_SHARDS;
use super::{Sharded, ShardedError};

/// Added to the kind of the shards: the upper half of a digest names a key's shard.
const BY_UPPER_HALF: u64 = 1 << 16;

/// Parameters: shards, kind of the filters in them and that the upper half of a digest names a key's shard.
///
/// Writing takes a [copy](Sharded::snapshot) first, and the memory for it: queries and changes go on meanwhile.
impl<F: Persist + Clone> Persist for Sharded<F> {
    const KIND: Kind = Kind::Sharded;

    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), FormatError> {
        let kind = self.look(0, F::kind).map_err(in_doubt)?;
        encoder.parameters(&[self.shards.len() as u64, BY_UPPER_HALF + u64::from(kind.code())]);
        for shard in 0..self.shards.len() {
            self.look(shard, |filter| encoder.part(filter)).map_err(in_doubt)??;
        }
        Ok(())
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, FormatError> {
        let [shards, kind] = decoder.parameters()?;
        let shards: usize = in_range("shards", shards, 1..=MAX_SHARDS as u64)?;
        let found = kind.checked_sub(BY_UPPER_HALF).and_then(|kind| u16::try_from(kind).ok());
        let found = found.and_then(Kind::from_code);
        let found = found.filter(|&found| F::may_be(found));
        let found = found.ok_or(FormatError::BadNumber { name: "kind of the shards", value: kind })?;
        // Not with room for all of them at once: that is what the header says, and they may not come.
        let mut filters = Vec::new();
        for _ in 0..shards {
            filters.push(decoder.part::<F>(found)?);
        }
        let total = |count: fn(&F) -> usize| {
            filters
                .iter()
                .map(count)
                .try_fold(0_usize, usize::checked_add)
                .ok_or_else(|| unsound("too many keys"))
        };
        total(F::len)?;
        total(F::capacity)?;
        Self::from_filters(filters).map_err(|error| unsound(error.to_string()))
    }

    fn write_to(&self, writer: &mut impl std::io::Write, options: &WriteOptions) -> Result<(), FormatError> {
        format::write(&self.snapshot().map_err(in_doubt)?, writer, options)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the shape that `map_err` wants")]
fn in_doubt(error: ShardedError<std::convert::Infallible>) -> FormatError {
    FormatError::Unsound(InvariantError::new(error.to_string()))
}

/// A [copy](Sharded::snapshot).
///
/// # Panics
///
/// If a shard is in doubt.
impl<F: Filter + Clone> Clone for Sharded<F> {
    fn clone(&self) -> Self {
        self.snapshot::<std::convert::Infallible>().unwrap_or_else(|error| panic!("{error}"))
    }
}
