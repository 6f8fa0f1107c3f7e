//! Which instruction set the hot functions are to use: the processor's best, or the one that was asked for.

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

/// A version in which the hot functions of the filters exist.
///
/// All versions give the same answers and keep the same bits; they differ in speed only. A process uses one of them:
/// [`Isa::active`]. It is the best that the processor runs, unless another was asked for
///
/// - by the environment variable `BESOM_ISA` (`portable`, `neon`, `avx2` or `avx512`), which is read once, when the
///   first filter is built; or
/// - by [`Isa::force`] before that.
///
/// What the processor cannot run is never run. `BESOM_ISA` with a name that nobody knows, or of a version that the
/// processor lacks, changes nothing; [`Isa::requested`] says what is wrong with it, for programs that would rather
/// stop.
///
/// ```
/// use besom::isa::Isa;
///
/// assert!(Isa::available().contains(&Isa::active()));
/// println!("this process uses {} of {:?}", Isa::active(), Isa::available());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Isa {
    /// Plain Rust, on every processor.
    Portable,
    /// 64-bit ARM with NEON: all of them, when they run little-endian.
    Neon,
    /// x86-64 with AVX2, BMI1, BMI2, POPCNT and LZCNT (Haswell, Zen and later).
    Avx2,
    /// The same with AVX-512 F, BW, DQ, VL and VBMI (Ice Lake, Zen 4 and later).
    Avx512,
}

/// Why a version cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IsaError {
    /// There is no version of this name.
    #[error("no instruction set is called {name:?}; use portable, neon, avx2 or avx512")]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// This processor does not run it.
    #[error("this processor cannot run {wanted}; the best it can run is {best}")]
    Unavailable {
        /// What was asked for.
        wanted: Isa,
        /// The best version here.
        best: Isa,
    },
    /// Filters of this process may be using another version already.
    #[error("this process already uses {active}; choose {wanted} before you build the first filter")]
    Late {
        /// What was asked for.
        wanted: Isa,
        /// What this process uses.
        active: Isa,
    },
}

/// The version of this process, once it is chosen.
static ACTIVE: OnceLock<Isa> = OnceLock::new();

impl Isa {
    /// The name of the environment variable.
    pub const VARIABLE: &'static str = "BESOM_ISA";

    const ALL: [Self; 4] = [Self::Portable, Self::Neon, Self::Avx2, Self::Avx512];

    /// The version that this process uses. The first call chooses it.
    #[must_use]
    pub fn active() -> Self {
        // A wish that cannot be met is as good as none: answers do not depend on it.
        *ACTIVE.get_or_init(|| Self::requested().ok().flatten().unwrap_or_else(Self::best))
    }

    /// The best version that this processor runs.
    #[must_use]
    pub fn best() -> Self {
        Self::ALL.into_iter().rev().find(|isa| isa.is_available()).unwrap_or(Self::Portable)
    }

    /// Every version that this processor runs, the best last.
    #[must_use]
    pub fn available() -> Vec<Self> {
        Self::ALL.into_iter().filter(|isa| isa.is_available()).collect()
    }

    /// What the environment asks for; `None` if it asks for nothing.
    ///
    /// # Errors
    ///
    /// [`IsaError::Unknown`] or [`IsaError::Unavailable`]: the wish is not going to be met.
    pub fn requested() -> Result<Option<Self>, IsaError> {
        let Some(name) = std::env::var_os(Self::VARIABLE).filter(|name| !name.is_empty()) else {
            return Ok(None);
        };
        name.to_string_lossy().parse::<Self>()?.runnable().map(Some)
    }

    /// Makes this process use this version, whatever the environment says. Must come before the first filter.
    ///
    /// ```
    /// use besom::isa::{Isa, IsaError};
    ///
    /// Isa::Portable.force()?;
    /// assert_eq!(Isa::active(), Isa::Portable);
    /// # Ok::<(), IsaError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`IsaError::Unavailable`] if the processor does not run it, [`IsaError::Late`] if the process uses another one
    /// already. Nothing changes then.
    pub fn force(self) -> Result<(), IsaError> {
        let wanted = self.runnable()?;
        match *ACTIVE.get_or_init(|| wanted) {
            active if active == wanted => Ok(()),
            active => Err(IsaError::Late { wanted, active }),
        }
    }

    /// Whether this processor runs this version.
    fn is_available(self) -> bool {
        match self {
            Self::Portable => true,
            Self::Neon => {
                cfg!(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))
            }
            Self::Avx2 => has_avx2(),
            Self::Avx512 => has_avx2() && has_avx512(),
        }
    }

    fn runnable(self) -> Result<Self, IsaError> {
        if self.is_available() {
            return Ok(self);
        }
        Err(IsaError::Unavailable { wanted: self, best: Self::best() })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Neon => "neon",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    use std::arch::is_x86_feature_detected as has;
    has!("avx2") && has!("bmi1") && has!("bmi2") && has!("popcnt") && has!("lzcnt")
}

#[cfg(target_arch = "x86_64")]
fn has_avx512() -> bool {
    use std::arch::is_x86_feature_detected as has;
    has!("avx512f") && has!("avx512dq") && has!("avx512bw") && has!("avx512vl") && has!("avx512vbmi")
}

#[cfg(not(target_arch = "x86_64"))]
fn has_avx2() -> bool {
    false
}

#[cfg(not(target_arch = "x86_64"))]
fn has_avx512() -> bool {
    false
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// By its name, in any case: whether this processor runs it is another question.
impl FromStr for Isa {
    type Err = IsaError;

    fn from_str(name: &str) -> Result<Self, IsaError> {
        let found = Self::ALL.into_iter().find(|isa| isa.name().eq_ignore_ascii_case(name.trim()));
        found.ok_or_else(|| IsaError::Unknown { name: name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    //! Catches: a version that the processor does not run, a wish that is lost or that changes its mind.
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for isa in Isa::ALL {
            assert_eq!(isa.to_string().parse(), Ok(isa));
            assert_eq!(isa.to_string().to_uppercase().parse(), Ok(isa));
        }
        assert_eq!("sse9".parse::<Isa>(), Err(IsaError::Unknown { name: "sse9".into() }));
    }

    #[test]
    fn what_the_processor_lacks_is_refused() {
        let available = Isa::available();
        assert_eq!((available.first(), available.last()), (Some(&Isa::Portable), Some(&Isa::best())));
        let lacking: Vec<Isa> = Isa::ALL.into_iter().filter(|isa| !available.contains(isa)).collect();
        // No processor is both.
        assert!(!lacking.is_empty());
        for wanted in lacking {
            assert_eq!(wanted.force(), Err(IsaError::Unavailable { wanted, best: Isa::best() }));
        }
    }

    #[test]
    fn the_first_choice_stays() {
        let active = Isa::active();
        assert_eq!(active.force(), Ok(()));
        for wanted in Isa::available().into_iter().filter(|&isa| isa != active) {
            assert_eq!(wanted.force(), Err(IsaError::Late { wanted, active }));
        }
        assert_eq!(Isa::active(), active);
    }
}
