//! Databases that fail, against exact models.

mod disk;
mod faulty;
mod play;
