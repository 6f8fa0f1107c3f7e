//! Bins that send several items to another level, each of another class, send them to different places.

/// How far a class is turned: by multiples of the golden section of all bins, which lie far apart.
fn turn(class: u32, bins: u64) -> u64 {
    ((u128::from(class.wrapping_mul(0x9e37_79b9)) * u128::from(bins)) >> 32) as u64
}

/// The number of a bin as the class sees it: a permutation of the bins.
pub(super) fn turned(bin: u64, class: u32, bins: u64) -> u64 {
    let turned = bin + turn(class, bins);
    if turned < bins { turned } else { turned - bins }
}

/// The bin of a turned number.
pub(super) fn turned_back(turned: u64, class: u32, bins: u64) -> u64 {
    let turn = turn(class, bins);
    if turned < turn { turned + bins - turn } else { turned - turn }
}
