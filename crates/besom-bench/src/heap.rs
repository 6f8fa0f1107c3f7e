//! The allocator of the benchmark: it knows how much memory a filter really holds, and hands out memory that is
//! already there.
//!
//! *Space* is what the allocator gave and did not get back, for all filters by the same measure, whatever a
//! filter says of itself. *Speed* must not depend on who gets fresh pages from the system and who gets used ones:
//! large blocks are touched before they are handed out, so that no filter pays for page faults while it is timed.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static LIVE: Cell<isize> = const { Cell::new(0) };
}

/// Bytes that this thread allocated and did not free, if [`Meter`] is the allocator. Only differences mean something.
#[must_use]
pub fn live() -> isize {
    LIVE.get()
}

/// The system's allocator, metered.
#[derive(Debug)]
pub struct Meter;

/// The smallest page size of the machines that this runs on; with larger ones some pages are touched twice.
const PAGE: usize = 4096;
/// From here on blocks come from fresh pages; smaller ones mostly do not.
const LARGE: usize = 16 * PAGE;

fn count(bytes: isize) {
    // A thread that is being torn down has lost its counter, and nobody measures it any more.
    let _ = LIVE.try_with(|live| live.set(live.get() + bytes));
}

/// Writes zero to one byte of every page from `start` on.
///
/// # Safety
///
/// `block..block + size` must be allocated, and its bytes from `start` on unused or zero.
unsafe fn touch(block: *mut u8, start: usize, size: usize) {
    if block.is_null() || size < LARGE {
        return;
    }
    for offset in (start..size).step_by(PAGE) {
        // SAFETY: `offset < size`, so the byte lies within the block; it is unused or zero already. The write is
        // volatile because nothing reads it, which the compiler would notice.
        unsafe { block.add(offset).write_volatile(0) };
    }
}

// SAFETY: every call is passed on to the system's allocator unchanged; the counter allocates nothing.
unsafe impl GlobalAlloc for Meter {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are the system allocator's; the new block is unused.
        unsafe {
            let block = System.alloc(layout);
            // Who asks for whole pages wants to say something about them first (that they be huge, for example).
            if layout.align() < PAGE {
                touch(block, 0, layout.size());
            }
            count(if block.is_null() { 0 } else { layout.size() as isize });
            block
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as for `alloc`; the new block is zero and stays zero.
        unsafe {
            let block = System.alloc_zeroed(layout);
            touch(block, 0, layout.size());
            count(if block.is_null() { 0 } else { layout.size() as isize });
            block
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller's promises are the system allocator's.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promises are the system allocator's; beyond the old size the block is unused.
        unsafe {
            let moved = System.realloc(block, layout, size);
            touch(moved, layout.size(), size);
            count(if moved.is_null() { 0 } else { size as isize - layout.size() as isize });
            moved
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Meter, live};

    #[global_allocator]
    static HEAP: Meter = Meter;

    #[test]
    fn the_meter_counts_what_is_held() {
        let before = live();
        let mut block = vec![0_u8; 1 << 20];
        assert_eq!(live() - before, 1 << 20);
        assert!(block.iter().all(|&byte| byte == 0));
        block.push(1);
        assert_eq!(live() - before, block.capacity() as isize);
        drop(block);
        assert_eq!(live(), before);
    }
}
