//! The guard on databases that fail.

mod costs;
mod disk;
#[path = "../../../tests/shared/play.rs"]
mod driver;
#[path = "../../../tests/shared/faulty.rs"]
mod faulty;
mod losses;
mod play;
mod races;
