//! What a broom filter asks of the table that its fingerprints stand on.
//!
//! Everything that makes it a broom filter is written once, over this trait: functions and frontier, transactions,
//! lists, growth, the way back. A table stores fingerprints and ghosts, and finds them again; it knows nothing of keys
//! or of the remote.
//!
//! | | `on_quotients` | `on_bins` |
//! |---|---|---|
//! | fingerprints | a primary level, and others elsewhere | a table of bins, which has its own second level |
//! | adaptivity bits | by block and slot, with the table | by bin and rank, in the side store of extension filters |
//! | ghosts | with the strings of the quotient's block | by bin |

use std::fmt::Debug;

use crate::bits::BitString;
use crate::{BuildError, Digest, InvariantError, Key, KeyHasher};

use super::builder::Blueprint;
use super::columns::Columns;
use super::fingerprint::{Fingerprint, Remainders};
use super::functions::Step;
use super::lists::Claims;
use super::local::Local;

/// Where a query looks on a table.
pub(super) type PlaceOn<G> = <<G as BroomTable>::Columns as Columns>::Place;

/// There was no memory for one more fingerprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NoMemory;

/// Room for a newcomer, which was taken.
#[derive(Debug)]
pub(super) struct Room<G: BroomTable> {
    pub(super) site: G::Site,
    /// What had to grow, as it was before.
    pub(super) outgrown: Option<G::Outgrown>,
}

/// Where keys are; see [`BroomLevels`](super::filter::BroomLevels).
#[derive(Debug, Clone, Copy)]
pub(super) struct Levels {
    pub(super) primary: usize,
    pub(super) elsewhere: usize,
    pub(super) hinted: f64,
    pub(super) bound: u64,
    pub(super) longest_shift: u64,
    pub(super) longest_secondary_shift: u64,
    pub(super) large_remainders: bool,
}

/// See the [module](self). Equal tables have the same fingerprints and ghosts.
pub(super) trait BroomTable: Clone + Debug + PartialEq {
    /// How fingerprints are cut: what stays the same when the filter grows.
    type Cut: Copy + Debug + PartialEq;
    /// How hashes are cut into quotients.
    type Columns: Columns;
    /// Where a stored fingerprint stands, until another one comes or goes.
    type Spot: Copy + Ord + Debug;
    /// Where a fingerprint can be put. Unlike a spot it stays what it is when other fingerprints move.
    type Site: Copy + Debug + PartialEq;
    /// A part that had to grow, as it was.
    type Outgrown: Debug;

    /// The columns of a filter for so many keys.
    fn columns(blueprint: Blueprint<Self::Cut>, capacity: usize) -> Result<Self::Columns, BuildError>;

    /// The remainders that are cut so.
    fn remainders(cut: Self::Cut) -> Remainders;

    /// An empty table.
    fn new(
        blueprint: Blueprint<Self::Cut>,
        columns: Self::Columns,
        capacity: usize,
    ) -> Result<Self, BuildError>;

    /// The memory that [`new`](Self::new) takes, in bits.
    fn size_in_bits(blueprint: Blueprint<Self::Cut>, columns: Self::Columns, capacity: usize) -> usize;

    /// How many fingerprints there are.
    fn len(&self) -> usize;

    /// How many slots a table has for them.
    fn slots(&self) -> usize;

    /// All memory, in bits.
    fn memory_bits(&self) -> usize;

    /// Fetches what a query is going to read.
    fn prefetch(&self, place: PlaceOn<Self>);

    /// Whether a stored fingerprint is a prefix of the key that belongs to this place.
    fn contains<H: KeyHasher>(
        local: &Local<Self, H>,
        place: PlaceOn<Self>,
        digest: impl FnOnce() -> Digest,
    ) -> bool;

    /// The same for many keys, one answer for each.
    fn contains_many<H: KeyHasher, K: Key>(local: &Local<Self, H>, keys: &[K], answers: &mut Vec<bool>);

    /// Where the stored fingerprint stands that is a prefix of this one. There is at most one on each level.
    fn find(&self, key: &Fingerprint) -> Option<Self::Spot>;

    /// How many stored fingerprints are prefixes of this one: more than one if keys have the same digest.
    fn count_matches(&self, key: &Fingerprint) -> usize;

    /// Where these keys of one quotient are stored, those that have a fingerprint which none before has claimed.
    fn claim_all(&self, keys: &[Fingerprint]) -> Vec<Option<Self::Spot>> {
        let mut claims = Claims::new();
        keys.iter().map(|key| claims.claim(self, key)).collect()
    }

    /// All fingerprints of a quotient: where they stand, and what a key would be whose hash ended with its fingerprint.
    fn items_of(&self, quotient: u64) -> Vec<(Self::Spot, Fingerprint)>;

    /// How many keys of a quotient are stored.
    fn stored_at(&self, quotient: u64) -> usize;

    /// How many adaptivity bits of the key a stored fingerprint with its baseline has too, at most; `None` without one.
    fn closest(&self, key: &Fingerprint) -> Option<u32>;

    /// Whether a look at its place says that no fingerprint or ghost has to do with a key. `false` if it takes more
    /// than a look.
    fn is_alone(&self, place: PlaceOn<Self>) -> bool;

    /// Whether what stands here can be told from others by more adaptivity bits.
    fn is_extensible(spot: Self::Spot) -> bool;

    /// Where a fingerprint would have to be put in order to stand here.
    fn site(spot: Self::Spot) -> Self::Site;

    /// Inserts a newcomer without adaptivity bits if one look can tell that this is all there is to do, and `agree`,
    /// which is asked then, says so. Whether it was asked; `None` if this is to be asked by
    /// [pointer](Self::insert_fresh_by_pointer).
    fn insert_fresh(&mut self, place: PlaceOn<Self>, agree: impl FnMut() -> bool) -> Option<bool>;

    /// [`insert_fresh`](Self::insert_fresh) where no version for the processor is compiled into its caller.
    fn insert_fresh_by_pointer(&mut self, place: PlaceOn<Self>, agree: &mut dyn FnMut() -> bool) -> bool;

    /// [`insert_fresh`](Self::insert_fresh) where the fingerprint's place is full and nothing else, on tables that know
    /// such a way.
    fn insert_fresh_full(&mut self, _: PlaceOn<Self>, _: &mut dyn FnMut() -> bool) -> bool {
        false
    }

    /// Whether nothing is stored of a newcomer but where it belongs.
    const PLACES_SAY_ALL: bool;

    /// [`insert_bare`](Self::insert_bare), where places say all.
    fn insert_at(&mut self, place: PlaceOn<Self>, agree: impl FnOnce() -> bool) -> Result<(), NoMemory>;

    /// Inserts a newcomer without adaptivity bits, whom none is a prefix of and no ghost agrees with, if `agree`, which
    /// is asked when there is memory for it, says so. Nothing changes if it does not, or panics.
    fn insert_bare(&mut self, key: &Fingerprint, agree: impl FnOnce() -> bool) -> Result<(), NoMemory>;

    /// From here on all steps may be taken back, the last one first, and [`restore`](Self::restore) must not fail.
    fn begin(&mut self) {}

    /// No step is going to be taken back any more.
    fn end(&mut self) {}

    /// Stores a fingerprint with so many adaptivity bits. Nothing changes without memory.
    fn put(&mut self, key: &Fingerprint, len: u32) -> Result<Room<Self>, NoMemory>;

    /// Takes the fingerprint of a stored key out; returns its adaptivity bits.
    fn take(&mut self, key: &Fingerprint, site: Self::Site) -> BitString;

    /// Puts a fingerprint back to where it was [taken](Self::take) from.
    fn restore(&mut self, key: &Fingerprint, len: u32, site: Self::Site);

    /// Puts back what had to grow, after all was taken out again that it had grown for.
    fn shrink(&mut self, outgrown: Self::Outgrown);

    /// Gives a stored key so many adaptivity bits, and returns how many it had.
    fn set_length(&mut self, key: &Fingerprint, len: u32) -> u32;

    /// How many adaptivity bits a newcomer must take for the sake of the ghosts.
    fn ghost_length(&self, key: &Fingerprint) -> u32;

    /// Remembers the adaptivity bits of a key of this step and function that was removed.
    fn add_ghost(&mut self, step: Step, function: u64, bits: BitString);

    /// Lets the ghosts of a step and a function die, and returns their adaptivity bits.
    fn kill_ghosts(&mut self, step: Step, function: u64) -> Vec<BitString>;

    /// The steps of all ghosts, with the parity of their functions.
    fn ghosts(&self) -> Vec<(Step, u64)>;

    /// How many ghosts there are, and their adaptivity bits.
    fn ghost_counts(&self) -> [usize; 2];

    /// How many stored fingerprints have adaptivity bits, and how many these are.
    fn string_counts(&self) -> [usize; 2];

    fn levels(&self) -> Levels;

    /// Walks everything.
    fn verify(&self) -> Result<(), InvariantError>;
}
