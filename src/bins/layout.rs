//! How a line is cut into tags and metadata, and which cut meets a rate.
//!
//! A fingerprint is a bin, a class and a tag, the leading digits of one number. The more classes a line has, the fewer
//! keys a query is compared with; the wider the tags, the fewer of them it takes for its own. Both cost room for slots:
//!
//! ```text
//! bit 0                         8·S·B           +S·P      (byte)                          512−C      512
//!     | S bytes, B times over   | P planes of S | (gap) | S+1 borders | spare bits      | C classes |
//! ```
//!
//! Tags are B whole bytes, which are compared with one instruction for all slots, and P bits more, each of them in a
//! *plane* with that bit of all slots, which costs two instructions. Of the digits behind the bin the class takes the
//! first, then come the planes, then the bytes: so a table can double its bins and give up one digit, for which there
//! is a narrower cut.

use crate::BuildError;

/// The largest rate that can be asked for: above it a filter is hardly one.
const MAX_RATE: f64 = 0.5;

/// The bits of a line.
const LINE_BITS: u32 = 512;

/// A cut of the line, as constants.
pub(super) trait Layout: Copy + 'static {
    /// S: the items that fit into a line.
    const SLOTS: u32;
    /// The classes are 2 to the power of this.
    const CLASS_BITS: u32;
    /// B: the whole bytes of a tag.
    const BYTES: u32;
    /// P: the further bits of a tag.
    const PLANES: u32;

    /// C: the classes of a line.
    const CLASSES: u32 = 1 << Self::CLASS_BITS;
    /// The width of a tag.
    const TAG_BITS: u32 = 8 * Self::BYTES + Self::PLANES;
    /// The bit where the planes begin.
    const PLANES_AT: u32 = 8 * Self::BYTES * Self::SLOTS;
    /// The byte where the borders begin.
    const BORDERS_AT: u32 = (Self::PLANES_AT + Self::PLANES * Self::SLOTS).div_ceil(8);
    /// The border behind the last slot: it is there if the bin is full.
    const FULL: u64 = 1 << Self::SLOTS;
    /// All borders that a line can have.
    const BORDERS: u64 = (Self::FULL << 1).wrapping_sub(1);
    /// The bits between the borders and the classes, which say that items have something kept beside the bins.
    const SPARE: u32 = LINE_BITS - Self::CLASSES - 8 * Self::BORDERS_AT - (Self::SLOTS + 1);
    /// The flag of each class, in the word that begins with the borders: one of the spare bits, which several classes
    /// share. Nothing if there are no spare bits.
    const FLAG_OF: [u64; 64] = {
        let mut flags = [0; 64];
        let mut class = 0;
        while class < Self::CLASSES && Self::SPARE > 0 {
            flags[class as usize] = 1 << (Self::SLOTS + 1 + class % Self::SPARE);
            class += 1;
        }
        flags
    };
    /// All flags.
    const FLAGS: u64 = ((1 << Self::SPARE) - 1) << (Self::SLOTS + 1);

    /// Fails to compile for a cut that does not fit.
    const SOUND: () = {
        assert!(Self::SLOTS < 64 && Self::CLASS_BITS <= 6 && Self::BYTES >= 1 && Self::BYTES <= 2);
        assert!(8 * Self::BORDERS_AT + Self::SLOTS < LINE_BITS - Self::CLASSES);
        // Fields are read as the words that begin at their first byte.
        assert!(Self::BORDERS_AT <= 56 && Self::PLANES < 8 && (Self::PLANES == 0 || Self::SLOTS <= 56));
        assert!(Self::SLOTS + 1 + Self::SPARE <= 64);
    };
}

/// A cut of the line, as a type.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cut<const SLOTS: u32, const CLASS_BITS: u32, const BYTES: u32, const PLANES: u32>;

impl<const S: u32, const C: u32, const B: u32, const P: u32> Layout for Cut<S, C, B, P> {
    const SLOTS: u32 = S;
    const CLASS_BITS: u32 = C;
    const BYTES: u32 = B;
    const PLANES: u32 = P;
}

/// The most bits that the number of a bin in its group has in the second level.
pub(super) const GROUP_BITS: u32 = 5;

/// The most bits of class and tag in the first level.
const ENTRY_BITS: u32 = 22;

/// A cut of the line, as numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) slots: u32,
    pub(crate) class_bits: u32,
    pub(super) bytes: u32,
    pub(super) planes: u32,
    /// The bits of a line that are free for flags.
    pub(super) spare: u32,
}

/// The cut for a rate of 1/100.
#[cfg(target_arch = "x86_64")]
pub(super) type CentiCut = Cut<53, 5, 1, 0>;

/// The cut for the default rate.
#[cfg(any(test, target_arch = "x86_64"))]
pub(super) type DefaultCut = Cut<49, 6, 1, 0>;

/// The cut for a rate of 1/1000.
#[cfg(target_arch = "x86_64")]
pub(super) type MilliCut = Cut<40, 6, 1, 2>;

/// Calls a macro with all cuts that are worth having, from the coarsest rate to the finest.
///
/// Sixteen and 32 classes with tags of a byte serve 1/64 and 1/100 better than narrower tags would, which cannot be
/// compared at once. From 64 classes on, tags get wider; each digit makes one more doubling possible. The last five are
/// for the second level, whose items have up to [`GROUP_BITS`] bits more than those that overflow.
macro_rules! for_each_cut {
    ($then:ident) => {
        $then! {
            (55, 4, 1, 0),
            (53, 5, 1, 0),
            (49, 6, 1, 0),
            (44, 6, 1, 1),
            (40, 6, 1, 2),
            (37, 6, 1, 3),
            (34, 6, 1, 4),
            (31, 6, 1, 5),
            (29, 6, 1, 6),
            (27, 6, 1, 7),
            (26, 6, 2, 0),
            (24, 6, 2, 1),
            (23, 6, 2, 2),
            (22, 6, 2, 3),
            (21, 6, 2, 4),
            (20, 6, 2, 5)
        }
    };
}
pub(super) use for_each_cut;

macro_rules! list {
    ($(($slots:literal, $class_bits:literal, $bytes:literal, $planes:literal)),*) => {
        /// All cuts, from the coarsest rate to the finest.
        pub(super) const CUTS: &[Shape] = &[$({
            // A cut that does not fit stops the compiler here.
            let () = <Cut<$slots, $class_bits, $bytes, $planes> as Layout>::SOUND;
            Shape::of::<Cut<$slots, $class_bits, $bytes, $planes>>()
        }),*];
    };
}
for_each_cut!(list);

impl Shape {
    /// A cut as numbers.
    pub(super) const fn of<L: Layout>() -> Self {
        Self {
            slots: L::SLOTS,
            class_bits: L::CLASS_BITS,
            bytes: L::BYTES,
            planes: L::PLANES,
            spare: L::SPARE,
        }
    }

    /// The width of a tag.
    pub(crate) fn tag_bits(self) -> u32 {
        8 * self.bytes + self.planes
    }

    /// The width of class and tag.
    pub(crate) fn entry_bits(self) -> u32 {
        self.class_bits + self.tag_bits()
    }

    /// Whether lines of the first level are cut so, if they need so many bits for flags.
    pub(super) fn is_first_level(self, spare: u32) -> bool {
        self.entry_bits() <= ENTRY_BITS && self.spare >= spare
    }

    /// How often another key is taken for a stored one at this load, at most: each of the keys has the same bin, class
    /// and tag with probability 1 in bins · classes · 2^tag bits.
    pub(crate) fn rate(self, load: f64) -> f64 {
        load * f64::from(self.slots) / 2_f64.powi(self.entry_bits() as i32)
    }

    /// The cut with so many digits less, in a table of twice as many bins for each.
    pub(super) fn after(self, doublings: u32) -> Option<Self> {
        let digits = self.entry_bits().checked_sub(doublings)?;
        let fits = |cut: &&Self| (cut.entry_bits(), cut.class_bits) == (digits, self.class_bits);
        CUTS.iter().find(fits).copied()
    }

    /// The cut with the most slots that meets a rate at this load after so many doublings.
    pub(super) fn choose(rate: f64, load: f64, doublings: u32) -> Result<Self, BuildError> {
        Self::choose_with(rate, load, doublings, 0)
    }

    /// The same with at least so many bits that are free for flags.
    pub(super) fn choose_with(rate: f64, load: f64, doublings: u32, spare: u32) -> Result<Self, BuildError> {
        let enough = |cut: &Self| cut.is_first_level(spare);
        let first_level = || CUTS.iter().copied().filter(enough);
        let last_rate = |cut: Self| cut.after(doublings).map(|last| last.rate(load));
        let meets = |cut: &Self| rate <= MAX_RATE && last_rate(*cut).is_some_and(|last| last <= rate);
        first_level().find(meets).ok_or_else(|| {
            let min = first_level().filter_map(last_rate).fold(MAX_RATE, f64::min);
            BuildError::RateOutOfRange { rate, min, max: MAX_RATE }
        })
    }

    /// The cut of 64 classes whose entries have so many bits.
    pub(super) fn with_entry_bits(bits: u32) -> Option<Self> {
        CUTS.iter().copied().find(|cut| cut.class_bits == 6 && cut.entry_bits() == bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_are_ordered_by_rate_and_each_is_larger_than_the_one_before() {
        for pair in CUTS.windows(2) {
            assert!(pair[0].rate(0.9) > pair[1].rate(0.9) && pair[0].slots > pair[1].slots, "{pair:?}");
        }
    }

    #[test]
    fn the_rates_that_people_ask_for_are_met_by_tags_of_a_byte_and_few_planes() {
        let slots = |rate: f64| Shape::choose(rate, 0.9, 0).map(|cut| cut.slots);
        let rates = [0.5, 1.0 / 16.0, 1.0 / 64.0, 0.01, 1.0 / 256.0, 0.001, 1e-4, 0.5_f64.powi(16)];
        assert_eq!(rates.map(|rate| slots(rate).unwrap()), [55, 55, 55, 53, 49, 40, 31, 27]);
        assert!(
            slots(0.51).is_err() && slots(1e-9).is_err() && slots(0.0).is_err() && slots(f64::NAN).is_err()
        );
    }

    #[test]
    fn a_table_that_is_to_grow_has_a_digit_for_each_doubling() {
        for doublings in 0..=8 {
            let cut = Shape::choose(1.0 / 256.0, 0.95, doublings).unwrap();
            assert_eq!((cut.tag_bits(), cut.class_bits), (8 + doublings, 6));
            assert_eq!(cut.after(doublings).unwrap().slots, 49);
        }
        assert!(Shape::choose(1.0 / 256.0, 0.95, 9).is_err());
    }
}
