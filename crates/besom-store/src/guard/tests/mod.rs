//! The guard on databases that fail.

mod disk;
mod faulty;
mod play;
