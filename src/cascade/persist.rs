//! Cascades in files.
//!
//! ```text
//! parameters    lists, filters, capacity of the last level, kind of the filters, repairs made, rebuilds, digests of the
//!               last level
//! section       for every filter: rate (as bits), keys, home cells, cells that may die
//! section       a byte for every list
//! every filter  the filter: 2 + 8 numbers, then its own sections; blocks of its dead cells, how many cells are dead; their words
//! section       the digests of the last level in ascending order
//! ```

use crate::KeyHasher;
use crate::digest_set::DigestSet;
use crate::format::{Decoder, Encoder, FormatError, Kind, Persist, in_range, number, unsound};

use super::filter::Cascade;
use super::ledger::Ledger;
use super::level::LevelFilter;
use super::levels::Levels;
use super::sizes::{LevelSize, Sizes};

/// More than any builder makes.
const MAX_LEVELS: u64 = 64;

/// More than any filter comes to, and few enough that no sum overflows.
const MAX_COUNT: u64 = 1 << 56;

impl<F: LevelFilter + Persist, H: KeyHasher> Persist for Cascade<F, H> {
    const KIND: Kind = match F::KIND {
        Kind::Bloom => Kind::AdaptiveBloom,
        _ => Kind::Cascade,
    };

    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), FormatError> {
        let Sizes { lists, levels, last } = &self.sizes;
        encoder.parameters(&[
            *lists,
            levels.len() as u64,
            *last as u64,
            F::KIND.code().into(),
            self.adaptations,
            self.rebuilds,
            self.levels.last().len() as u64,
        ]);
        let sizes = levels.iter().flat_map(|level| level.to_numbers());
        encoder.words(&sizes.collect::<Vec<u64>>())?;
        self.ledger.encode(encoder)?;
        self.levels.encode(encoder)?;
        Ok(encoder.words(&self.levels.last().to_words())?)
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, FormatError> {
        let [lists, levels, last, kind, adaptations, rebuilds, digests] = decoder.parameters()?;
        let hasher = decoder.hasher()?;
        let (len, capacity) = (decoder.len()?, decoder.capacity()?);
        let found = Kind::from_code(kind as u16).filter(|found| u64::from(found.code()) == kind);
        let found = found.ok_or(FormatError::BadNumber { name: "kind of the filters", value: kind })?;
        if found != F::KIND {
            return Err(FormatError::WrongKind { found, expected: F::KIND });
        }
        let adaptations = in_range("repairs", adaptations, 0..=MAX_COUNT)?;
        let rebuilds = in_range("rebuilds", rebuilds, 0..=MAX_COUNT)?;
        let sizes = Sizes::decode(decoder, lists, levels, last)?;
        let ledger = Ledger::decode(decoder, sizes.lists, len)?;
        let levels = Levels::decode(decoder, &sizes, &hasher, (rebuilds, digests))?;
        Ok(Self::from_parts(hasher, sizes, (levels, ledger), capacity, (adaptations, rebuilds)))
    }
}

impl LevelSize {
    fn to_numbers(self) -> [u64; 4] {
        [self.rate.to_bits(), self.keys as u64, self.cells, self.dead as u64]
    }

    fn from_numbers([rate, keys, cells, dead]: [u64; 4]) -> Result<Self, FormatError> {
        let rate_is_one = (0.0..=1.0).contains(&f64::from_bits(rate));
        if !rate_is_one {
            return Err(FormatError::BadNumber { name: "rate of a level", value: rate });
        }
        // Dead cells are few among all cells: that is what their set is made for.
        let cells: u64 = in_range("home cells", cells, super::dead::DeadCells::SPARSITY..=MAX_COUNT)?;
        Ok(Self {
            rate: f64::from_bits(rate),
            keys: in_range("keys of a level", keys, 1..=MAX_COUNT)?,
            cells,
            dead: in_range("cells that may die", dead, 1..=cells / super::dead::DeadCells::SPARSITY)?,
        })
    }
}

impl Sizes {
    fn decode(decoder: &mut Decoder<'_>, lists: u64, levels: u64, last: u64) -> Result<Self, FormatError> {
        let lists = in_range("lists", lists, 1..=MAX_COUNT)?;
        let levels: u64 = in_range("filters", levels, 1..=MAX_LEVELS)?;
        let last = in_range("capacity of the last level", last, 0..=MAX_COUNT)?;
        let numbers = decoder.words(4 * levels)?;
        let levels = numbers.as_chunks::<4>().0.iter().map(|&numbers| LevelSize::from_numbers(numbers));
        let levels = levels.collect::<Result<Vec<_>, _>>()?;
        // The keys of one home are in one list, and in one home of every level above.
        let mut above = lists;
        for level in &levels {
            if !level.cells.is_multiple_of(above) {
                return Err(unsound(format!(
                    "{} home cells do not divide {above} into equal parts",
                    level.cells
                )));
            }
            above = level.cells;
        }
        Ok(Self { lists, levels, last })
    }
}

impl<F: LevelFilter + Persist> Levels<F> {
    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), FormatError> {
        self.parts().try_for_each(|(filter, dead)| {
            encoder.nested(filter)?;
            dead.encode(encoder)
        })
    }

    fn decode<H: KeyHasher>(
        decoder: &mut Decoder<'_>,
        sizes: &Sizes,
        hasher: &H,
        (rebuilds, digests): (u64, u64),
    ) -> Result<Self, FormatError> {
        let mut parts = Vec::with_capacity(sizes.levels.len());
        for size in &sizes.levels {
            let filter: F = decoder.nested()?;
            in_range::<u64>(
                "capacity of a level",
                filter.capacity() as u64,
                size.keys as u64..=size.keys as u64,
            )?;
            parts.push((filter, super::dead::DeadCells::decode(decoder, size.cells, size.dead)?));
        }
        let digests = in_range::<u64>("digests of the last level", digests, 0..=MAX_COUNT)?;
        let last = DigestSet::from_words(&decoder.words(2 * digests)?)?;
        number("digests of the last level", digests)?;
        Self::from_parts(parts, last, sizes, hasher, rebuilds)
            .ok_or_else(|| unsound("a cascade without levels"))
    }
}
