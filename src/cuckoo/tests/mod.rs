//! Tests of the family that need to look inside. What can be seen from outside is in `tests/cuckoo`.

mod faults;
mod model;
mod partial;
mod rehash;
mod repair;
mod search;
mod settle;
mod table;
