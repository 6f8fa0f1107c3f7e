//! Streams of keys: seeded generators, and files.
