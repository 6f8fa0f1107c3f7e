//! Words on cache-line boundaries: a filter's own, or somebody else's until they are written to.

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use super::Region;

/// The size of a cache line in bytes, and the alignment of [`AlignedWords`].
pub(crate) const LINE: usize = 64;

/// A fixed number of 64-bit words that start on a cache-line boundary.
///
/// **Its own words** are all zero at first. Few come zeroed from the allocator; many (16 MiB and more, on Linux) lie on
/// huge pages where the system grants them.
///
/// **Shared words** are bytes of a [`Region`]. They are copied, all at once, before the first of them is written to;
/// reading does not ask whose they are.
pub(crate) struct AlignedWords {
    /// Without `shared`: allocated with [`layout`]`(len)`, or dangling and never read if `len` is 0. With it: `len`
    /// words of the region, which are never written to through this.
    words: NonNull<u64>,
    len: usize,
    shared: Option<Region>,
}

impl AlignedWords {
    /// `len` zeros, or `None` if the memory is not available.
    pub(crate) fn zeroed(len: usize) -> Option<Self> {
        if len == 0 {
            return Some(Self { words: NonNull::dangling(), len, shared: None });
        }
        let layout = layout(len)?;
        if layout.align() > LINE {
            return Self::zeroed_on_huge_pages(len, layout);
        }
        // SAFETY: the layout's size is not 0, since `len` is not.
        let words = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        Some(Self { words: words.cast(), len, shared: None })
    }

    /// A table of many megabytes that is read at random spends much of a query on looking up its page: ask for
    /// huge pages before the memory is touched.
    fn zeroed_on_huge_pages(len: usize, layout: Layout) -> Option<Self> {
        // SAFETY: the layout's size is not 0, since `len` is not.
        let words = NonNull::new(unsafe { alloc(layout) })?;
        advise_huge_pages(words.as_ptr(), layout.size());
        // SAFETY: the allocation has this size and is nobody else's.
        unsafe { words.as_ptr().write_bytes(0, layout.size()) };
        Some(Self { words: words.cast(), len, shared: None })
    }

    /// The `len` words that begin at byte `at` of a region, without copying them.
    ///
    /// `None` where that cannot be: behind the region's end, off a cache line, or on a processor whose words are not
    /// little-endian as the region's are.
    pub(crate) fn shared(region: &Region, at: usize, len: usize) -> Option<Self> {
        let bytes = region.get(at..at.checked_add(len.checked_mul(size_of::<u64>())?)?)?;
        if len == 0 {
            return Self::zeroed(0);
        }
        let words = NonNull::from(bytes).cast::<u64>();
        let in_place = cfg!(target_endian = "little") && words.addr().get().is_multiple_of(LINE);
        in_place.then(|| Self { words, len, shared: Some(region.clone()) })
    }

    /// Makes this longer, with zeros. Without memory for them the program ends, as with every collection that cannot
    /// grow.
    pub(crate) fn grow(&mut self, len: usize) {
        *self = self.resized(len).unwrap_or_else(|| out_of_memory(len));
    }

    /// Whether the words are somebody else's still.
    #[cfg(test)]
    pub(crate) fn is_shared(&self) -> bool {
        self.shared.is_some()
    }

    /// Makes shared words this value's own. Without memory for them the program ends, as with every collection that
    /// cannot grow: anyone who must not risk that does not open filters on regions, but reads them.
    #[cold]
    #[inline(never)]
    fn own(&mut self) {
        self.grow(self.len);
    }

    /// The words as bytes, in the order in which they are in memory.
    #[inline(always)]
    pub(crate) fn as_bytes(&self) -> &[u8] {
        let words: &[u64] = self;
        // SAFETY: these are the very bytes of the words, and every byte is a `u8`.
        unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words)) }
    }

    /// The words as bytes, in the order in which they are in memory.
    #[inline(always)]
    pub(crate) fn as_bytes_mut(&mut self) -> &mut [u8] {
        let words: &mut [u64] = self;
        // SAFETY: these are the very bytes of the words, borrowed exclusively, and any bytes are words.
        unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), size_of_val(words)) }
    }

    /// A copy with room for `len` words, the further ones zero; `None` if the memory is not available.
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
        // SAFETY: `words` points to `len` initialised words that this value owns, or that its region keeps alive and
        // unchanged (or is dangling but aligned for `len` = 0), and they live as long as the borrow of `self`.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr(), self.len) }
    }
}

impl DerefMut for AlignedWords {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [u64] {
        if self.shared.is_some() {
            self.own();
        }
        // SAFETY: as in `deref`; the words are this value's own by now, and the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.words.as_ptr(), self.len) }
    }
}

impl Drop for AlignedWords {
    fn drop(&mut self) {
        if self.shared.is_some() {
            return;
        }
        if let Some(layout) = layout(self.len).filter(|layout| layout.size() > 0) {
            // SAFETY: `words` is not shared, so it was allocated in `zeroed` with this very layout; it is not used
            // again.
            unsafe { dealloc(self.words.as_ptr().cast(), layout) }
        }
    }
}

impl Clone for AlignedWords {
    /// Shared words stay shared.
    fn clone(&self) -> Self {
        if let Some(region) = &self.shared {
            return Self { words: self.words, len: self.len, shared: Some(region.clone()) };
        }
        self.resized(self.len).unwrap_or_else(|| out_of_memory(self.len))
    }
}

/// Ends the program as the standard library's collections do when they cannot grow.
fn out_of_memory(len: usize) -> ! {
    std::alloc::handle_alloc_error(layout(len).unwrap_or(Layout::new::<u64>()))
}

impl PartialEq for AlignedWords {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for AlignedWords {}

impl fmt::Debug for AlignedWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AlignedWords({} words)", self.len)
    }
}

// SAFETY: the words are owned exclusively, like those of a `Vec<u64>`, or are a region's, which is `Send` and `Sync`.
unsafe impl Send for AlignedWords {}
// SAFETY: shared access only reads, like that to a `Vec<u64>`.
unsafe impl Sync for AlignedWords {}

#[cfg(test)]
mod tests {
    //! Catches: words that lose their values, writes that reach a region, regions that are read off their lines.
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
    fn shared_words_are_read_in_place_and_copied_when_written_to() {
        let bytes: Vec<u8> = (0..200).collect();
        let region = Region::copy_of(&bytes).unwrap();
        let mut words = AlignedWords::shared(&region, 64, 9).unwrap();
        assert_eq!(words.as_ptr().cast(), region[64..].as_ptr());
        assert_eq!(words[8], u64::from_le_bytes(bytes[128..136].try_into().unwrap()));
        let twin = words.clone();
        words[8] = 7;
        assert!(twin.is_shared() && !words.is_shared());
        assert_eq!((words[8], &words[..8]), (7, &twin[..8]));
        assert_eq!(&region[..], bytes);
        // The words keep the region alive.
        drop(region);
        assert_eq!(twin.as_bytes(), &bytes[64..136]);
    }

    #[test]
    fn words_that_cannot_be_shared_are_not() {
        let region = Region::copy_of(&[1; 200]).unwrap();
        assert!(AlignedWords::shared(&region, 8, 1).is_none());
        assert!(AlignedWords::shared(&region, 64, 18).is_none());
        assert!(AlignedWords::shared(&region, 64, usize::MAX / 4).is_none());
        assert!(AlignedWords::shared(&region, usize::MAX, 1).is_none());
        assert!(AlignedWords::shared(&region, 201, 0).is_none());
        assert!(AlignedWords::shared(&region, 64, 17).is_some());
        assert!(AlignedWords::shared(&region, 5, 0).is_some_and(|words| words.is_empty()));
    }

    #[test]
    fn absurd_sizes_are_refused() {
        assert!(AlignedWords::zeroed(usize::MAX).is_none());
        assert!(AlignedWords::zeroed(usize::MAX / 16).is_none());
    }
}
