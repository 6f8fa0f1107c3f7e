//! Tests of the family that need to look inside. What can be seen from outside is in `tests/cuckoo_*.rs`.

mod model;
mod partial;
mod search;
mod table;
