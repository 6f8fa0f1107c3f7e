//! Which instruction set the processor has, found out at run time.

/// The versions in which the hot functions exist. Each includes the ones before it.
///
/// A table asks once, when it is built, and keeps the answer: [`Isa::detect`] is an atomic load, but the answer
/// in the table's own cache line is cheaper still.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "other processors have one version"))]
pub(crate) enum Isa {
    /// Plain Rust, on every processor.
    Portable,
    /// x86-64 with AVX2, BMI1, BMI2, POPCNT and LZCNT (Haswell, Zen and later).
    Avx2,
    /// The same with AVX-512 F, BW, VL and VBMI (Ice Lake, Zen 4 and later).
    Avx512,
}

impl Isa {
    /// The best version that this processor runs.
    pub(crate) fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::is_x86_feature_detected as has;
            let avx2 = has!("avx2") && has!("bmi1") && has!("bmi2") && has!("popcnt") && has!("lzcnt");
            let avx512 = has!("avx512f") && has!("avx512bw") && has!("avx512vl") && has!("avx512vbmi");
            if avx2 && avx512 {
                return Self::Avx512;
            } else if avx2 {
                return Self::Avx2;
            }
        }
        Self::Portable
    }

    /// Every version that this processor runs, for tests that compare them.
    #[cfg(test)]
    pub(crate) fn available() -> Vec<Self> {
        let all = [Self::Portable, Self::Avx2, Self::Avx512];
        all.into_iter().filter(|&isa| isa <= Self::detect()).collect()
    }
}
