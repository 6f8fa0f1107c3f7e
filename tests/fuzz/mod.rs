//! Fuzzing of what comes from outside: bytes, and operations with stores that fail. `docs/fuzzing.md` says how to run it for
//! long.

mod decoding;
mod operations;
