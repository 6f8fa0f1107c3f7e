//! Zeroed words on cache-line boundaries.

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// The size of a cache line in bytes, and the alignment of [`AlignedWords`].
pub(crate) const LINE: usize = 64;

/// A fixed number of 64-bit words that start on a cache-line boundary; all zero at first.
///
/// Small ones come zeroed from the allocator; large ones (16 MiB and more, on Linux) lie on huge pages where the
/// system grants them.
pub(crate) struct AlignedWords {
    /// Allocated with [`layout`]`(len)`; dangling and never read if `len` is 0.
    words: NonNull<u64>,
    len: usize,
}

impl AlignedWords {
    /// `len` zeros, or `None` if the memory is not to be had.
    pub(crate) fn zeroed(len: usize) -> Option<Self> {
        if len == 0 {
            return Some(Self { words: NonNull::dangling(), len });
        }
        let layout = layout(len)?;
        if layout.align() > LINE {
            return Self::zeroed_on_huge_pages(len, layout);
        }
        // SAFETY: the layout's size is not 0, since `len` is not.
        let words = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        Some(Self { words: words.cast(), len })
    }

    /// A table of many megabytes that is read at random spends much of a query on looking up its page: ask for
    /// huge pages before the memory is touched.
    fn zeroed_on_huge_pages(len: usize, layout: Layout) -> Option<Self> {
        // SAFETY: the layout's size is not 0, since `len` is not.
        let words = NonNull::new(unsafe { alloc(layout) })?;
        advise_huge_pages(words.as_ptr(), layout.size());
        // SAFETY: the allocation has this size and is nobody else's.
        unsafe { words.as_ptr().write_bytes(0, layout.size()) };
        Some(Self { words: words.cast(), len })
    }

    /// A copy with room for `len` words, the further ones zero; `None` if the memory is not to be had.
    pub(crate) fn resized(&self, len: usize) -> Option<Self> {
        let mut words = Self::zeroed(len)?;
        let kept = len.min(self.len);
        words[..kept].copy_from_slice(&self[..kept]);
        Some(words)
    }
}

/// The size of a huge page in bytes.
const HUGE_PAGE: usize = 2 << 20;

/// From this size on, the part of a huge page that is wasted at the end is small.
const HUGE_FROM: usize = 8 * HUGE_PAGE;

/// The layout of `len` words; `None` if it exceeds the address space.
fn layout(len: usize) -> Option<Layout> {
    let size = len.checked_mul(size_of::<u64>())?;
    let align = if cfg!(target_os = "linux") && size >= HUGE_FROM { HUGE_PAGE } else { LINE };
    Layout::from_size_align(size, align).ok()
}

/// Asks the operating system to back this memory with huge pages. A request that is refused changes nothing.
#[cfg(target_os = "linux")]
fn advise_huge_pages(start: *mut u8, size: usize) {
    const MADV_HUGEPAGE: i32 = 14;
    unsafe extern "C" {
        fn madvise(address: *mut u8, length: usize, advice: i32) -> i32;
    }
    // SAFETY: this is the signature of the C library that `std` itself is linked to, and this advice changes no
    // memory. The range is ours.
    let _ = unsafe { madvise(start, size, MADV_HUGEPAGE) };
}

#[cfg(not(target_os = "linux"))]
fn advise_huge_pages(_: *mut u8, _: usize) {}

impl Deref for AlignedWords {
    type Target = [u64];

    #[inline(always)]
    fn deref(&self) -> &[u64] {
        // SAFETY: `words` points to `len` initialised words that this value owns (or is dangling but aligned
        // for `len` = 0), and they live as long as the borrow of `self`.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr(), self.len) }
    }
}

impl DerefMut for AlignedWords {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [u64] {
        // SAFETY: as in `deref`, and the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.words.as_ptr(), self.len) }
    }
}

impl Drop for AlignedWords {
    fn drop(&mut self) {
        if let Some(layout) = layout(self.len).filter(|layout| layout.size() > 0) {
            // SAFETY: `words` was allocated in `zeroed` with this very layout and is not used again.
            unsafe { dealloc(self.words.as_ptr().cast(), layout) }
        }
    }
}

impl Clone for AlignedWords {
    fn clone(&self) -> Self {
        self.resized(self.len).unwrap_or_else(|| std::alloc::handle_alloc_error(Layout::new::<u64>()))
    }
}

impl PartialEq for AlignedWords {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl fmt::Debug for AlignedWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AlignedWords({} words)", self.len)
    }
}

// SAFETY: the words are owned exclusively, like those of a `Vec<u64>`.
unsafe impl Send for AlignedWords {}
// SAFETY: shared access only reads, like that to a `Vec<u64>`.
unsafe impl Sync for AlignedWords {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_zero_aligned_and_keep_their_values_when_resized() {
        for len in [0, 1, 8, 9, 1000] {
            let mut words = AlignedWords::zeroed(len).unwrap();
            assert_eq!((words.len(), words.as_ptr() as usize % LINE * len), (len, 0));
            assert!(words.iter().all(|&word| word == 0));
            words.iter_mut().zip(1..).for_each(|(word, value)| *word = value);
            let larger = words.resized(len + 5).unwrap();
            assert_eq!((&larger[..len], &larger[len..]), (&words[..], &[0; 5][..]));
            assert_eq!(words.clone(), words);
        }
    }

    #[test]
    fn absurd_sizes_are_refused() {
        assert!(AlignedWords::zeroed(usize::MAX).is_none());
        assert!(AlignedWords::zeroed(usize::MAX / 16).is_none());
    }
}
