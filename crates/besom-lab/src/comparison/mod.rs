//! Filters that the papers compare with and that nobody needs in production: correct and tested, not tuned.
//!
//! Each is a subject ([`PlainFilter`](crate::subject::PlainFilter)) and has a line in the
//! [registry](crate::subject::registry()).
