//! Read-only bytes that several filters may look at: a file in memory, or one that is mapped.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use super::AlignedWords;

/// Bytes that never change and live as long as anybody looks at them. Cheap to clone.
///
/// A filter that is [opened](crate::format::Persist::open) on a region answers straight from it, and copies what it
/// needs when it is changed for the first time.
///
/// ```
/// use besom::format::{Persist, ReadOptions, Region};
/// use besom::bloom::BloomFilter;
/// use besom::{Filter, Insert};
///
/// let mut filter = BloomFilter::with_capacity(100)?;
/// filter.insert("key")?;
/// let region = Region::copy_of(&filter.to_bytes(&Default::default())?)?;
/// let (mut opened, _) = BloomFilter::<besom::Xxh3>::open(&region, &ReadOptions::default())?;
/// assert!(opened.contains("key"));
/// opened.insert("another")?; // a copy from here on; the region stays as it is
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Region(Arc<Memory>);

/// Whose bytes they are. None of these moves or changes its bytes while it lives.
enum Memory {
    Static(&'static [u8]),
    Shared(Arc<[u8]>),
    /// This many bytes of these words.
    Words(AlignedWords, usize),
    #[cfg(feature = "mmap")]
    Map(memmap2::Mmap),
}

impl Region {
    /// A copy of these bytes on a cache-line boundary, where filters can look at them in place.
    ///
    /// # Errors
    ///
    /// [`OutOfMemory`](std::io::ErrorKind::OutOfMemory) if there is no memory for it.
    pub fn copy_of(bytes: &[u8]) -> std::io::Result<Self> {
        let out_of_memory = || std::io::Error::from(std::io::ErrorKind::OutOfMemory);
        let mut words = AlignedWords::zeroed(bytes.len().div_ceil(8)).ok_or_else(out_of_memory)?;
        words.as_bytes_mut()[..bytes.len()].copy_from_slice(bytes);
        Ok(Self(Arc::new(Memory::Words(words, bytes.len()))))
    }

    /// Maps a file into memory: no byte is read before it is asked for.
    ///
    /// # Errors
    ///
    /// What the operating system says.
    ///
    /// # Safety
    ///
    /// Nobody, in this process or another, may change or shorten the file while the region or a filter on it
    /// lives. [`save`](crate::format::Persist::save) does neither: it puts a new file in the place of the old one, and
    /// the map keeps the old one.
    #[cfg(feature = "mmap")]
    pub unsafe fn map(file: &std::fs::File) -> std::io::Result<Self> {
        // SAFETY: the caller promises that the file stays as it is.
        let map = unsafe { memmap2::Mmap::map(file)? };
        Ok(Self(Arc::new(Memory::Map(map))))
    }
}

impl Deref for Region {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &*self.0 {
            Memory::Static(bytes) => bytes,
            Memory::Shared(bytes) => bytes,
            Memory::Words(words, len) => &words.as_bytes()[..*len],
            #[cfg(feature = "mmap")]
            Memory::Map(map) => map,
        }
    }
}

impl From<&'static [u8]> for Region {
    fn from(bytes: &'static [u8]) -> Self {
        Self(Arc::new(Memory::Static(bytes)))
    }
}

impl From<Arc<[u8]>> for Region {
    fn from(bytes: Arc<[u8]>) -> Self {
        Self(Arc::new(Memory::Shared(bytes)))
    }
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Region({} bytes)", self.len())
    }
}
