//! The roster: every filter of the crate in one row, and the only list of them.
//!
//! ```text
//! Kind = number in files, "name on command lines", how it is used [what else it can do] [module] type {options of its builder};
//! ```
//!
//! `roster!(rows)` hands all rows to the macro `rows`, which takes what it needs: [`format`](crate::format) makes
//! [`Kind`](crate::format::Kind) of numbers and names, [`any`](crate::any) does the rest. A row names a type where it
//! is used and not here, so this module stands below all others.
//!
//! A filter is `plain` if it works alone and `adaptive` if it has a remote. Beyond that it can `remove` keys, `adapt`
//! without a remote, `merge` with another of its kind, and be taken apart into `runs` for deltas; an `inert` one
//! repairs nothing although it has a remote. `list` and `parts` are not built from parameters: the one is made of two
//! lists, the other of any other filter.

macro_rules! roster {
    ($rows:ident) => {
        $rows! {
            Quotient = 1, "quotient", plain [remove merge runs] [quotient] QuotientFilter<H> { max_load growable_to };
            Telescoping = 2, "telescoping", adaptive [runs] [] TelescopingFilter<H>
                { max_load growable overflow repairs_per_key };
            TelescopingUncompressed = 3, "telescoping-uncompressed", adaptive [runs] [telescoping] UncompressedTelescopingFilter<H>
                { max_load growable };
            Extension = 4, "extension", adaptive [runs] [] ExtensionFilter<H>
                { max_load growable overflow table repairs_per_key };
            Broom = 5, "broom", adaptive [] [] BroomFilter<H> { max_load growable table adaptivity_budget };
            Bins = 6, "bins", plain [remove merge runs] [] BinFilter<H> { max_load growable_to };
            CuckooRemote = 16, "cuckoo-remote", adaptive [inert] [cuckoo] RemoteCuckooFilter<H> { max_load shape slot_bits };
            Cuckoo = 17, "cuckoo", plain [remove] [cuckoo] CuckooFilter<H> { max_load shape slot_bits };
            Cuckooing = 18, "cuckooing", adaptive [] [cuckoo] CuckooingFilter<H> { max_load shape slot_bits };
            Swapping = 19, "swapping", adaptive [] [cuckoo] SwappingFilter<H> { max_load shape slot_bits };
            Cyclic1 = 20, "cyclic-1", adaptive [] [cuckoo] CyclicFilter<1, H> { max_load shape slot_bits };
            Cyclic2 = 21, "cyclic-2", adaptive [] [cuckoo] CyclicFilter<2, H> { max_load shape slot_bits };
            Cyclic3 = 22, "cyclic-3", adaptive [] [cuckoo] CyclicFilter<3, H> { max_load shape slot_bits };
            Bloom = 32, "bloom", plain [merge] [bloom] BloomFilter<H> {};
            BlockedBloom = 33, "blocked-bloom", plain [merge] [bloom] BlockedBloomFilter<H> {};
            AdaptiveBloom = 34, "adaptive-bloom", adaptive [] [cascade] AdaptiveBloomFilter<H> { levels };
            Cascade = 35, "cascade", adaptive [] [cascade] Cascade<QuotientFilter, H> { levels };
            Whitelist = 36, "whitelist", plain [adapt] [whitelist] WhitelistFilter<H> { whitelist_bound };
            TinySet = 48, "tinyset", plain [remove] [tinyset] TinySet<H> { removal block_bits items_per_block };
            Exact = 52, "exact", list [] [exact] ExactList<H> {};
            Sharded = 64, "sharded", parts [] [] Sharded {};
        }
    };
}
pub(crate) use roster;
