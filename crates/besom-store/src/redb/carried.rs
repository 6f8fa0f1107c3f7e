//! Values on their way from one list to another.

use std::collections::HashMap;

/// The values that a transaction has seen last, by key.
///
/// A filter that moves keys reads a list, and pushes its keys elsewhere within the next few hundred changes. It knows of
/// no values, so those of the lists that were read are kept until then: the last [`KEPT`] at least, and twice as many at most.
#[derive(Debug, Default)]
pub(super) struct Carried {
    young: HashMap<Box<[u8]>, Vec<u8>>,
    old: HashMap<Box<[u8]>, Vec<u8>>,
}

const KEPT: usize = 1 << 13;

impl Carried {
    pub(super) fn keep(&mut self, key: &[u8], value: &[u8]) {
        if self.young.len() >= KEPT {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key.into(), value.to_vec());
    }

    pub(super) fn get(&self, key: &[u8]) -> Option<&[u8]> {
        self.young.get(key).or_else(|| self.old.get(key)).map(Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    //! Catches: a value that is forgotten too early, or an old one that hides a new one.
    use super::*;

    #[test]
    fn the_last_values_are_kept() {
        let mut carried = Carried::default();
        for number in 0..5 * KEPT as u64 {
            carried.keep(&number.to_le_bytes(), &[number as u8]);
            carried.keep(b"same", &number.to_le_bytes());
            let first = number.saturating_sub(KEPT as u64 - 2);
            assert_eq!(carried.get(&first.to_le_bytes()), Some(&[first as u8][..]));
            assert_eq!(carried.get(b"same"), Some(&number.to_le_bytes()[..]));
        }
        assert!(carried.young.len() + carried.old.len() <= 2 * KEPT + 1);
    }
}
