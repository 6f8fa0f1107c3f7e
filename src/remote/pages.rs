//! All pages by their numbers.

use std::ops::RangeInclusive;

use crate::bits::NumberMap;

use super::page::Page;

/// Pages lie side by side, in the order of their creation, so that their heads share as little memory as they can.
/// Low numbers, which is what dense addresses have, lead to them through an array, the others through a hash map.
#[derive(Debug, Clone, Default)]
pub(super) struct Pages {
    pages: Vec<Page>,
    /// The number of each page.
    numbers: Vec<u64>,
    /// For each number below its length: where the page is, plus 1, or 0.
    near: Vec<u32>,
    /// The same for numbers from [`NEAR`] on.
    far: NumberMap<u32>,
}

/// Page numbers below it are near: 2^26 addresses of 256 a page, for which the array takes a mebibyte at most.
const NEAR: u64 = 1 << 18;

impl Pages {
    /// The page of this number, if there is one.
    #[inline]
    pub(super) fn get(&self, number: u64) -> Option<&Page> {
        self.pages.get(self.place(number)?)
    }

    /// The page of this number; a new one if there was none.
    #[inline]
    pub(super) fn get_or_insert(&mut self, number: u64) -> &mut Page {
        let place = self.place(number).unwrap_or_else(|| self.insert(number));
        &mut self.pages[place]
    }

    #[inline]
    fn place(&self, number: u64) -> Option<usize> {
        let place = if number < NEAR { self.near.get(number as usize) } else { self.far.get(&number) };
        (*place? as usize).checked_sub(1)
    }

    #[cold]
    fn insert(&mut self, number: u64) -> usize {
        self.pages.push(Page::new());
        self.numbers.push(number);
        let place = self.pages.len() as u32;
        if number < NEAR {
            if self.near.len() as u64 <= number {
                self.near.resize(number as usize + 1, 0);
            }
            self.near[number as usize] = place;
        } else {
            self.far.insert(number, place);
        }
        place as usize - 1
    }

    /// The pages of these numbers, ascending.
    pub(super) fn sorted(&self, range: RangeInclusive<u64>) -> Vec<(u64, &Page)> {
        let pages = self.numbers.iter().copied().zip(&self.pages);
        let mut pages: Vec<_> = pages.filter(|(number, _)| range.contains(number)).collect();
        pages.sort_unstable_by_key(|&(number, _)| number);
        pages
    }

    /// The memory in use, in bytes.
    pub(super) fn memory(&self) -> usize {
        let spare = (self.pages.capacity() - self.pages.len()) * size_of::<Page>();
        let places = self.near.capacity() * size_of::<u32>() + self.far.capacity() * size_of::<(u64, u32)>();
        let pages = self.pages.iter().map(Page::memory).sum::<usize>();
        pages + spare + places + self.numbers.capacity() * size_of::<u64>()
    }
}
