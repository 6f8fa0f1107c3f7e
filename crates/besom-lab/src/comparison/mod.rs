//! Filters that the papers compare with and that nobody needs in production: correct and tested, not tuned.
//!
//! Each is a subject ([`PlainFilter`](crate::subject::PlainFilter)) and has a line in the
//! [registry](crate::subject::registry()).

mod cached;
mod packed;
mod vacuum;

pub use cached::Cached;
pub use packed::Packed;
pub use vacuum::VacuumFilter;
