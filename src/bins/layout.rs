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
//! first, then come the planes, then the bytes.
//!
//! The number of classes need be no power of two: the class is a digit in base C, found by a multiplication. So a line
//! has as many classes as its slots leave room for, or a few less, for flags. Where C is a power of two, a table can
//! double its bins and give up one digit, for which there is a narrower cut.

use crate::BuildError;
#[cfg(target_arch = "x86_64")]
use crate::bits::low_mask;

/// The largest rate that can be asked for: above it a filter is hardly one.
const MAX_RATE: f64 = 0.5;

/// The bits of a line.
const LINE_BITS: u32 = 512;

/// A cut of the line, as constants.
pub(super) trait Layout: Copy + 'static {
    /// S: the items that fit into a line.
    const SLOTS: u32;
    /// C: the classes of a line.
    const CLASSES: u32;
    /// B: the whole bytes of a tag.
    const BYTES: u32;
    /// P: the further bits of a tag.
    const PLANES: u32;

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
    /// At [c] the bits of a line's last word that stand for the classes below c. Loading one is cheaper than shifting:
    /// deposits, multiplications and shifts by a variable compete for the same ports.
    #[cfg(target_arch = "x86_64")]
    const BELOW: &'static [u64; 65] = &{
        let mut below = [0; 65];
        let mut class = 0;
        while class <= Self::CLASSES {
            below[class as usize] = low_mask(class) << (64 - Self::CLASSES);
            class += 1;
        }
        below
    };
    /// All flags.
    const FLAGS: u64 = ((1 << Self::SPARE) - 1) << (Self::SLOTS + 1);

    /// Fails to compile for a cut that does not fit.
    const SOUND: () = {
        assert!(Self::SLOTS < 64 && Self::CLASSES <= 64 && Self::BYTES >= 1 && Self::BYTES <= 2);
        assert!(8 * Self::BORDERS_AT + Self::SLOTS < LINE_BITS - Self::CLASSES);
        // Fields are read as the words that begin at their first byte.
        assert!(Self::BORDERS_AT <= 56 && Self::PLANES < 8 && (Self::PLANES == 0 || Self::SLOTS <= 56));
        assert!(Self::SLOTS + 1 + Self::SPARE <= 64);
        // What the last word has below the classes is in the word of the borders too.
        assert!(Self::CLASSES == 64 || Self::BORDERS_AT > 48);
    };
}

/// A cut of the line, as a type.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cut<const SLOTS: u32, const CLASSES: u32, const BYTES: u32, const PLANES: u32>;

impl<const S: u32, const C: u32, const B: u32, const P: u32> Layout for Cut<S, C, B, P> {
    const SLOTS: u32 = S;
    const CLASSES: u32 = C;
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
    pub(crate) classes: u32,
    pub(super) bytes: u32,
    pub(super) planes: u32,
    /// The bits of a line that are free for flags.
    pub(super) spare: u32,
}

/// The cuts for a rate of 1/100, without flags and with ten.
#[cfg(target_arch = "x86_64")]
pub(super) type CentiCut = Cut<54, 25, 1, 0>;
#[cfg(target_arch = "x86_64")]
pub(super) type FlaggedCentiCut = Cut<53, 24, 1, 0>;

/// The cuts for the default rate, without flags and with eleven.
#[cfg(any(test, target_arch = "x86_64"))]
pub(super) type DefaultCut = Cut<51, 52, 1, 0>;
#[cfg(any(test, target_arch = "x86_64"))]
pub(super) type FlaggedCut = Cut<50, 50, 1, 0>;

/// The cut for a rate of 1/1000, with four flags.
#[cfg(target_arch = "x86_64")]
pub(super) type MilliCut = Cut<42, 41, 1, 2>;

/// Calls a macro with all cuts that are worth having, from the one with the most slots to the one with the fewest.
///
/// The rates that people ask for have cuts of their own, whose classes are as many as fit. Few classes with tags of a
/// byte serve 1/64 and 1/100 better than narrower tags would, which cannot be compared at once. The cuts of 64 classes
/// are for tables that double, each digit for one doubling, and for the second level, whose items have up to
/// [`GROUP_BITS`] bits more than those that overflow: the last five are for nothing else.
macro_rules! for_each_cut {
    ($then:ident) => {
        $then! {
            (55, 16, 1, 0),
            (54, 25, 1, 0),
            (53, 24, 1, 0),
            (53, 32, 1, 0),
            (51, 52, 1, 0),
            (50, 50, 1, 0),
            (49, 64, 1, 0),
            (44, 64, 1, 1),
            (42, 41, 1, 2),
            (40, 64, 1, 2),
            (37, 64, 1, 3),
            (34, 64, 1, 4),
            (31, 64, 1, 5),
            (29, 64, 1, 6),
            (27, 64, 1, 7),
            (26, 64, 2, 0),
            (24, 64, 2, 1),
            (23, 64, 2, 2),
            (22, 64, 2, 3),
            (21, 64, 2, 4),
            (20, 64, 2, 5)
        }
    };
}
pub(super) use for_each_cut;

macro_rules! list {
    ($(($slots:literal, $classes:literal, $bytes:literal, $planes:literal)),*) => {
        /// All cuts, from the one with the most slots to the one with the fewest.
        pub(super) const CUTS: &[Shape] = &[$({
            // A cut that does not fit stops the compiler here.
            let () = <Cut<$slots, $classes, $bytes, $planes> as Layout>::SOUND;
            Shape::of::<Cut<$slots, $classes, $bytes, $planes>>()
        }),*];
    };
}
for_each_cut!(list);

impl Shape {
    /// A cut as numbers.
    pub(super) const fn of<L: Layout>() -> Self {
        Self { slots: L::SLOTS, classes: L::CLASSES, bytes: L::BYTES, planes: L::PLANES, spare: L::SPARE }
    }

    /// The width of a tag.
    pub(crate) fn tag_bits(self) -> u32 {
        8 * self.bytes + self.planes
    }

    /// How many different classes and tags there are.
    pub(crate) fn entries(self) -> u64 {
        u64::from(self.classes) << self.tag_bits()
    }

    /// The width of class and tag.
    pub(crate) fn entry_bits(self) -> u32 {
        self.class_bits() + self.tag_bits()
    }

    /// The width of a class.
    fn class_bits(self) -> u32 {
        self.classes.next_power_of_two().trailing_zeros()
    }

    /// What files call the number of [entries](Self::entries): its logarithm, where it is a power of two.
    pub(crate) fn code(self) -> u64 {
        if self.classes.is_power_of_two() { self.entry_bits().into() } else { self.entries() }
    }

    /// Whether lines of the first level are cut so, if they need so many bits for flags.
    pub(super) fn is_first_level(self, spare: u32) -> bool {
        self.entry_bits() <= ENTRY_BITS && self.spare >= spare
    }

    /// How often another key is taken for a stored one at this load, at most: each of the keys has the same bin, class
    /// and tag with probability 1 in bins · classes · 2^tag bits.
    pub(crate) fn rate(self, load: f64) -> f64 {
        load * f64::from(self.slots) / self.entries() as f64
    }

    /// The cut with so many digits less, in a table of twice as many bins for each. Only a number of classes that is a
    /// power of two has a digit to give up.
    pub(super) fn after(self, doublings: u32) -> Option<Self> {
        if doublings == 0 {
            return Some(self);
        }
        let digits = self.tag_bits().checked_sub(doublings)?;
        let fits = |cut: &&Self| (cut.tag_bits(), cut.classes) == (digits, self.classes);
        CUTS.iter().find(fits).copied().filter(|cut| cut.classes.is_power_of_two())
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
        CUTS.iter().copied().find(|cut| cut.classes == 64 && cut.entry_bits() == bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_are_ordered_by_slots_and_no_two_are_alike_in_files() {
        for pair in CUTS.windows(2) {
            assert!(pair[0].slots >= pair[1].slots, "{pair:?}");
        }
        for (number, cut) in CUTS.iter().enumerate() {
            let alike = |other: &&Shape| (other.slots, other.code()) == (cut.slots, cut.code());
            assert_eq!(CUTS.iter().position(|other| alike(&other)), Some(number), "{cut:?}");
        }
    }

    #[test]
    fn the_rates_that_people_ask_for_are_met_by_tags_of_a_byte_and_few_planes() {
        let slots = |rate: f64| Shape::choose(rate, 0.9, 0).map(|cut| cut.slots);
        let rates = [0.5, 1.0 / 16.0, 1.0 / 64.0, 0.01, 1.0 / 256.0, 0.001, 1e-4, 0.5_f64.powi(16)];
        assert_eq!(rates.map(|rate| slots(rate).unwrap()), [55, 55, 55, 54, 51, 42, 31, 27]);
        for (rate, cut) in [(0.01, (53, 24, 10)), (1.0 / 256.0, (50, 50, 11)), (0.001, (42, 41, 4))] {
            let flagged = Shape::choose_with(rate, 0.9, 0, 1).unwrap();
            assert_eq!((flagged.slots, flagged.classes, flagged.spare), cut);
        }
        assert!(
            slots(0.51).is_err() && slots(1e-9).is_err() && slots(0.0).is_err() && slots(f64::NAN).is_err()
        );
    }

    #[test]
    fn a_table_that_is_to_grow_has_a_digit_for_each_doubling() {
        for doublings in 0..=8 {
            let cut = Shape::choose(1.0 / 256.0, 0.95, doublings).unwrap();
            let last = cut.after(doublings).unwrap();
            assert_eq!((cut.tag_bits(), last.slots), (8 + doublings, if doublings == 0 { 51 } else { 49 }));
        }
        assert!(Shape::choose(1.0 / 256.0, 0.95, 9).is_err());
    }
}
