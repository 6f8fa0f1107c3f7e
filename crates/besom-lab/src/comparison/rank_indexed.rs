//! Rank-indexed hashing (Hua, Zhao, Lin and Xu, 2008), plain and counting.

use besom::{
    Digest, Filter, FilterStats, FullError, Insert, InvariantError, KeyHasher, RemovalDisabled, Remove, Xxh3,
};

use super::{Packed, answer_alike, below, collision_rate, ensure, poisson, stats};

/// Chains of a bin at most, and unless told otherwise: one word of index.
const CHAINS: usize = 64;

/// The bits of a counter, in the counting variant.
const COUNTER_BITS: u32 = 2;

/// How many standard deviations the pool of extensions is larger than it is used on average.
const MARGIN: f64 = 6.0;

/// Slots and bits of pointers that a key takes in the shapes that the search chooses.
const SLOTS_PER_KEY: f64 = 1.08;
const POINTERS: f64 = 0.45;

/// The end of a list of extensions.
const NONE: u32 = 0;

/// Bins of chains without pointers: a bit per chain says whether it is in use, a bit per item whether it is the
/// last of its chain, and ranks in these bits lead to an item. A bin has some slots of its own; one with more items
/// takes *extensions* from a pool that all bins share, so that few slots are empty in sum.
///
/// ```
/// use besom::{Filter, Insert, Remove};
/// use besom_lab::comparison::RankIndexedFilter;
///
/// let mut filter = RankIndexedFilter::counting(1000, 8, 7);
/// filter.insert("key")?;
/// assert!(filter.remove("key")?);
/// assert!(!filter.contains("key"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct RankIndexedFilter {
    hash: Xxh3,
    shape: Shape,
    /// A bit per chain, a word per bin.
    index: Vec<u64>,
    /// Remainder, counter, isLast; first the slots of all bins, then those of all extensions.
    slots: Packed,
    /// For each bin, then for each extension, the number of its next extension plus one.
    next: Packed,
    /// The first extension that nobody uses, plus one; the others follow by `next`.
    unused: u32,
    remainder_bits: u32,
    counting: bool,
    items: usize,
    capacity: usize,
}

/// What an exhaustive search chose.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Shape {
    bins: usize,
    /// Chains of a bin.
    chains: usize,
    /// Slots of a bin.
    slots: usize,
    /// Extensions in the pool, and slots of each.
    extensions: usize,
    extension_slots: usize,
}

impl Shape {
    /// The smallest for this many keys and slots of this many bits: λ = 1 item a chain, as the paper has it.
    fn smallest(keys: usize, chains: usize, slot_bits: u32) -> Self {
        let bins = keys.div_ceil(chains).max(1);
        let load = keys as f64 / bins as f64;
        let shapes = (chains / 2..2 * chains).flat_map(|slots| {
            (2..=32).map(move |extension_slots| {
                let taken = |items: usize| items.saturating_sub(slots).div_ceil(extension_slots) as f64;
                let moment = |power: i32| -> f64 {
                    poisson(load).enumerate().map(|(items, p)| p * taken(items).powi(power)).sum()
                };
                let (mean, square) = (moment(1), moment(2));
                let deviation = (bins as f64 * (square - mean * mean).max(0.0)).sqrt();
                let extensions = (bins as f64 * mean + MARGIN * deviation).ceil() as usize + 2;
                Self { bins, chains, slots, extensions, extension_slots }
            })
        });
        shapes.min_by_key(|shape| shape.bits(slot_bits)).expect("there are many shapes")
    }

    fn pointer_bits(&self) -> u32 {
        (self.extensions as u32 + 1).next_power_of_two().trailing_zeros()
    }

    fn bits(&self, slot_bits: u32) -> usize {
        let slots = self.bins * self.slots + self.extensions * self.extension_slots;
        let pointers = self.bins + self.extensions;
        self.bins * self.chains + slots * slot_bits as usize + pointers * self.pointer_bits() as usize
    }
}

/// An item in its slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Item {
    remainder: u32,
    /// How often it was inserted beyond the first time.
    count: u32,
    last: bool,
}

impl RankIndexedFilter {
    /// A filter for that many keys with remainders of that many bits (clamped to 1..=24); nothing is removed.
    #[must_use]
    pub fn plain(keys: usize, remainder_bits: u32, seed: u64) -> Self {
        Self::with_bins(CHAINS, keys, remainder_bits, false, seed)
    }

    /// The same with a counter for each remainder, so that keys can be removed.
    #[must_use]
    pub fn counting(keys: usize, remainder_bits: u32, seed: u64) -> Self {
        Self::with_bins(CHAINS, keys, remainder_bits, true, seed)
    }

    /// About how many bits a key takes with remainders of this many bits.
    #[must_use]
    pub fn bits_per_key(remainder_bits: f64, counting: bool) -> f64 {
        let counter = if counting { f64::from(COUNTER_BITS) } else { 0.0 };
        SLOTS_PER_KEY * (remainder_bits + 1.0 + counter) + POINTERS + 1.0
    }

    /// The longest remainders in about this many bits a key.
    #[must_use]
    pub fn remainder_bits(bits_per_key: f64, counting: bool) -> u32 {
        (1..=24).rev().find(|&bits| Self::bits_per_key(bits.into(), counting) <= bits_per_key).unwrap_or(1)
    }

    /// A filter with bins of so many chains (clamped to 2..=64): smaller ones vary more, and need more room.
    #[must_use]
    pub fn with_bins(chains: usize, keys: usize, remainder_bits: u32, counting: bool, seed: u64) -> Self {
        let chains = chains.clamp(2, CHAINS);
        let remainder_bits = remainder_bits.clamp(1, 24);
        let slot_bits = remainder_bits + 1 + if counting { COUNTER_BITS } else { 0 };
        let shape = Shape::smallest(keys, chains, slot_bits);
        let slots = shape.bins * shape.slots + shape.extensions * shape.extension_slots;
        let mut filter = Self {
            hash: Xxh3::with_seed(seed.into()),
            shape,
            index: vec![0; shape.bins],
            slots: Packed::new(slots, slot_bits),
            next: Packed::new(shape.bins + shape.extensions, shape.pointer_bits()),
            unused: NONE,
            remainder_bits,
            counting,
            items: 0,
            capacity: keys,
        };
        filter.free_extensions();
        filter
    }

    /// Puts all extensions into the list of those that nobody uses.
    fn free_extensions(&mut self) {
        let Shape { bins, extensions, .. } = self.shape;
        self.next.clear();
        for extension in 1..extensions {
            self.next.set(bins + extension - 1, extension as u32 + 1);
        }
        self.unused = if extensions > 0 { 1 } else { NONE };
    }

    /// The numbers of a bin's extensions, plus one, in order.
    fn extensions(&self, bin: usize) -> impl Iterator<Item = u32> + '_ {
        let follow = |&extension: &u32| Some(self.next.get(self.shape.bins + extension as usize - 1));
        let first = Some(self.next.get(bin)).filter(|&first| first != NONE);
        std::iter::successors(first, move |extension| follow(extension).filter(|&next| next != NONE))
    }

    /// The slots of a bin, in order.
    fn slots_of(&self, bin: usize) -> impl Iterator<Item = usize> + '_ {
        let Shape { bins, slots, extension_slots, .. } = self.shape;
        let own = bin * slots..(bin + 1) * slots;
        let of_extension = move |extension: u32| {
            let start = bins * slots + (extension as usize - 1) * extension_slots;
            start..start + extension_slots
        };
        own.chain(self.extensions(bin).flat_map(of_extension))
    }

    /// The items of a bin, chain by chain: as many as there are chains in use, each to its last one.
    fn items_of(&self, bin: usize) -> Vec<Item> {
        let mut chains = self.index[bin].count_ones();
        let mut items = Vec::new();
        for slot in self.slots_of(bin) {
            if chains == 0 {
                break;
            }
            let bits = self.slots.get(slot);
            let (last, rest) = (bits & 1 == 1, bits >> 1);
            let (count, remainder) = if self.counting { (rest & 3, rest >> COUNTER_BITS) } else { (0, rest) };
            items.push(Item { remainder, count, last });
            chains -= u32::from(last);
        }
        items
    }

    /// Where the items of a chain lie among those of its bin.
    fn chain_of(&self, bin: usize, chain: u32, items: &[Item]) -> std::ops::Range<usize> {
        let before = (self.index[bin] & ((1 << chain) - 1)).count_ones() as usize;
        let ends: Vec<usize> = (1..=items.len()).filter(|&end| items[end - 1].last).collect();
        let start = if before == 0 { 0 } else { ends[before - 1] };
        let occupied = self.index[bin] >> chain & 1 == 1;
        start..if occupied { ends[before] } else { start }
    }

    /// Writes the items of a bin back, taking and giving back extensions as needed; `false` without one to take.
    fn write(&mut self, bin: usize, items: &[Item]) -> bool {
        let Shape { bins, slots, extension_slots, .. } = self.shape;
        let needed = items.len().saturating_sub(slots).div_ceil(extension_slots);
        let taken: Vec<u32> = self.extensions(bin).collect();
        let mut tail = taken.last().map_or(bin, |&last| bins + last as usize - 1);
        for _ in taken.len()..needed {
            if self.unused == NONE {
                return false;
            }
            let extension = self.unused;
            let place = bins + extension as usize - 1;
            self.unused = self.next.get(place);
            self.next.set(tail, extension);
            self.next.set(place, NONE);
            tail = place;
        }
        for &surplus in taken.get(needed..).unwrap_or_default().iter().rev() {
            let place = bins + surplus as usize - 1;
            self.next.set(place, self.unused);
            self.unused = surplus;
        }
        if needed < taken.len() {
            let end = if needed == 0 { bin } else { bins + taken[needed - 1] as usize - 1 };
            self.next.set(end, NONE);
        }
        let places: Vec<usize> = self.slots_of(bin).take(items.len()).collect();
        for (slot, item) in places.into_iter().zip(items) {
            let value =
                if self.counting { item.remainder << COUNTER_BITS | item.count } else { item.remainder };
            self.slots.set(slot, value << 1 | u32::from(item.last));
        }
        true
    }
}

impl Filter for RankIndexedFilter {
    answer_alike!();

    /// The bin, the chain and the remainder of a key.
    type Place = (usize, u32, u32);

    fn place(&self, digest: Digest) -> Self::Place {
        let chain = below(digest.hi, self.shape.bins * self.shape.chains);
        (
            chain / self.shape.chains,
            (chain % self.shape.chains) as u32,
            (digest.lo >> (64 - self.remainder_bits)) as u32,
        )
    }

    fn contains_at(&self, (bin, chain, remainder): Self::Place, _: impl FnOnce() -> Digest) -> bool {
        if self.index[bin] >> chain & 1 == 0 {
            return false;
        }
        let items = self.items_of(bin);
        items[self.chain_of(bin, chain, &items)].iter().any(|item| item.remainder == remainder)
    }

    fn false_positive_rate(&self) -> f64 {
        let chains = (self.shape.bins * self.shape.chains) as f64;
        collision_rate(self.capacity, chains * 2_f64.powi(self.remainder_bits as i32))
    }

    fn stats(&self) -> FilterStats {
        let bits = self.index.len() * self.shape.chains + self.slots.bits() + self.next.bits();
        stats(self.items, self.slots.len(), bits)
    }

    fn verify(&self) -> Result<(), InvariantError> {
        let mut counted = 0;
        for bin in 0..self.shape.bins {
            let items = self.items_of(bin);
            let (chains, ends) =
                (self.index[bin].count_ones() as usize, items.iter().filter(|item| item.last).count());
            ensure(chains == ends, || {
                format!("bin {bin} has {chains} chains in use and {ends} ends of one")
            })?;
            counted += items.iter().map(|item| item.count as usize + 1).sum::<usize>();
        }
        // Without counters a remainder stands for any number of keys.
        let agrees = counted == self.items || !self.counting && counted < self.items;
        ensure(agrees, || format!("{counted} keys are counted, {} stored", self.items))
    }
}

impl Insert for RankIndexedFilter {
    fn insert_digest(&mut self, digest: Digest) -> Result<bool, FullError> {
        let (bin, chain, remainder) = self.place(digest);
        let mut items = self.items_of(bin);
        let range = self.chain_of(bin, chain, &items);
        let most = if self.counting { (1 << COUNTER_BITS) - 1 } else { 0 };
        let counted =
            range.clone().find(|&item| items[item].remainder == remainder && items[item].count < most);
        let known = items[range.clone()].iter().any(|item| item.remainder == remainder);
        match counted {
            Some(item) => items[item].count += 1,
            // Without counters a remainder that is there already says all.
            None if !self.counting && known => {}
            None => items.insert(range.start, Item { remainder, count: 0, last: range.is_empty() }),
        }
        if !self.write(bin, &items) {
            return Err(FullError { len: self.items, capacity: self.capacity });
        }
        self.index[bin] |= 1 << chain;
        self.items += 1;
        Ok(!known)
    }

    fn clear(&mut self) {
        self.index.fill(0);
        self.slots.clear();
        self.free_extensions();
        self.items = 0;
    }
}

impl Remove for RankIndexedFilter {
    fn remove_digest(&mut self, digest: Digest) -> Result<bool, RemovalDisabled> {
        if !self.counting {
            return Err(RemovalDisabled);
        }
        let (bin, chain, remainder) = self.place(digest);
        let mut items = self.items_of(bin);
        let range = self.chain_of(bin, chain, &items);
        let Some(item) = range.clone().find(|&item| items[item].remainder == remainder) else {
            return Ok(false);
        };
        if items[item].count > 0 {
            items[item].count -= 1;
        } else {
            let removed = items.remove(item);
            match (range.len(), removed.last) {
                (1, _) => self.index[bin] &= !(1 << chain),
                (_, true) => items[item - 1].last = true,
                _ => {}
            }
        }
        self.items -= 1;
        // Fewer items never take an extension more.
        Ok(self.write(bin, &items))
    }
}
