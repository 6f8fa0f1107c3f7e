//! The guard on databases that fail.

mod costs;
mod disk;
mod faulty;
mod play;
