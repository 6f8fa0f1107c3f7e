//! Side stores in files: which blocks have records, and the records as they lie in memory.
//!
//! ```text
//! | a bit for every block, in whole words | record of the first block that has one | of the second | …
//! ```

use crate::bits::{copy_bits, read_bits};
use crate::format::{Decoder, Encoder, FormatError, in_range, unsound};

use super::record::{Draft, Entry, Layout, Record};
use super::{GROUP, RECORDS_AT, SideStore, UNIT, span};

impl SideStore {
    /// Writes the records of a table of this many blocks: a section that says how many words there are, and one of
    /// these words.
    pub(crate) fn encode(&self, blocks: usize, encoder: &mut Encoder<'_>) -> Result<(), FormatError> {
        let words = self.to_words(blocks);
        encoder.words(&[words.len() as u64])?;
        Ok(encoder.words(&words)?)
    }

    fn to_words(&self, blocks: usize) -> Vec<u64> {
        if self.len == 0 {
            return Vec::new();
        }
        let mut end = 64 * blocks.div_ceil(64);
        // The ends in the groups are not written.
        let bits =
            64 * self.words - self.groups.iter().filter(|group| !group.is_empty()).count() * RECORDS_AT;
        let mut words = vec![0; (end + bits).div_ceil(64)];
        for block in self.blocks() {
            words[block / 64] |= 1 << (block % 64);
            let (first, behind) = span(self.group(block), block % GROUP);
            let len = UNIT * (behind - first);
            copy_bits(self.group(block), RECORDS_AT + UNIT * first, &mut words, end, len);
            end += len;
        }
        words.truncate(end.div_ceil(64));
        words
    }

    /// Reads what [`encode`](Self::encode) wrote. `flags` returns those of a block that the caller keeps.
    pub(crate) fn decode(
        decoder: &mut Decoder<'_>,
        layout: Layout,
        blocks: usize,
        flags: impl Fn(usize) -> u64,
    ) -> Result<Self, FormatError> {
        let [len] = decoder.counts(["words of the side store"])?;
        let words = decoder.words(len)?;
        let mut store = Self::new(layout);
        if len == 0 {
            return Ok(store);
        }
        let (bitmap, records) = words
            .split_at_checked(blocks.div_ceil(64))
            .ok_or_else(|| unsound("a side store without blocks"))?;
        let mut at = 0;
        for block in set_bits(bitmap) {
            in_range::<u64>("a block of the side store", block as u64, 0..=blocks as u64 - 1)?;
            let entries = read_record(layout, records, &mut at, flags(block)).ok_or_else(|| {
                unsound(format!("block {block} has a record in the side store that nothing writes"))
            })?;
            store.set(block, blocks, Some(&entries));
        }
        let ends_there = store.len > 0 && records.len() == at.div_ceil(64);
        let rest = read_bits(records, at, (records.len() * 64).saturating_sub(at).min(64) as u32);
        if ends_there && rest == 0 {
            Ok(store)
        } else {
            Err(unsound("more words in the side store than records"))
        }
    }
}

/// The places of the bits that are set, ascending.
fn set_bits(words: &[u64]) -> impl Iterator<Item = usize> {
    (0..64 * words.len()).filter(|&bit| words[bit / 64] >> (bit % 64) & 1 == 1)
}

/// The entries of the record that begins at `at`, which becomes its end. `None` if it is not what these entries are
/// written as.
fn read_record(layout: Layout, words: &[u64], at: &mut usize, flags: u64) -> Option<Vec<Entry>> {
    let record = Record::new(layout, words, *at, flags);
    let entries: Vec<Entry> = record.entries().collect();
    let sound = |entry: &Entry| entry.slot < layout.slots && entry.number > 0;
    if entries.is_empty() || !entries.iter().all(sound) {
        return None;
    }
    let draft = Draft::new(layout, &entries);
    let parts = (0..draft.len()).step_by(64).map(|done| (done, (draft.len() - done).min(64) as u32));
    let same = parts
        .into_iter()
        .all(|(done, len)| read_bits(words, *at + done, len) == read_bits(draft.words(), done, len));
    let (end, behind) = (*at + draft.len(), draft.len().next_multiple_of(UNIT) - draft.len());
    let padded = read_bits(words, end, behind as u32) == 0;
    *at = end + behind;
    (same && padded && *at <= 64 * words.len()).then_some(entries)
}
