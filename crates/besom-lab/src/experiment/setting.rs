//! How large, with which seed and on which data a run is made.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::random;

/// How much work a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Size {
    /// All experiments together in a few minutes: smaller sets, fewer repetitions.
    Quick,
    /// The papers' sizes and repetitions.
    Full,
}

/// What all experiments of a run share.
#[derive(Debug, Clone)]
pub struct Setting {
    /// How much work.
    pub size: Size,
    /// Everything random follows from it.
    pub seed: u64,
    /// How often everything is repeated with other seeds, if not as the size says.
    pub runs: Option<u32>,
    /// Where real traces lie, if anywhere.
    pub data: Option<PathBuf>,
}

impl Setting {
    /// The setting with this size, seed 1, the size's own repetitions and no real traces.
    #[must_use]
    pub fn new(size: Size) -> Self {
        Self { size, seed: 1, runs: None, data: None }
    }

    /// How often to repeat: the caller's wish, else `quick` or `full` by size.
    #[must_use]
    pub fn repetitions(&self, quick: u32, full: u32) -> u32 {
        self.runs.unwrap_or_else(|| self.pick(quick, full)).max(1)
    }

    /// One of two values by size.
    pub fn pick<T>(&self, quick: T, full: T) -> T {
        match self.size {
            Size::Quick => quick,
            Size::Full => full,
        }
    }

    /// The seed of repetition `run` for the purpose `label`. Filters that are compared get the same keys when
    /// they are asked for under the same label.
    #[must_use]
    pub fn seed(&self, label: &str, run: u32) -> u64 {
        random::derive(self.seed, label, run)
    }

    /// A real trace by its file name, if it is there.
    #[must_use]
    pub fn trace(&self, file: &str) -> Option<PathBuf> {
        let path = self.data.as_ref()?.join(file);
        path.is_file().then_some(path)
    }
}
