//! Some keys, by their bytes.

/// Some keys of one kind.
pub(crate) enum Chunk {
    /// Integers of 64 bits.
    Words(Vec<u64>),
    /// Any others.
    Bytes(Packed),
}

impl Default for Chunk {
    fn default() -> Self {
        Self::Bytes(Packed::default())
    }
}

impl Chunk {
    /// Forgets the keys, and keeps the memory.
    pub(super) fn clear(&mut self) {
        match self {
            Self::Words(words) => words.clear(),
            Self::Bytes(packed) => packed.clear(),
        }
    }

    /// An empty chunk, made one of integers.
    pub(super) fn words(&mut self) -> &mut Vec<u64> {
        if let Self::Bytes(_) = self {
            *self = Self::Words(Vec::new());
        }
        match self {
            Self::Words(words) => words,
            Self::Bytes(_) => unreachable!("it was just made one of integers"),
        }
    }

    /// An empty chunk, made one of bytes.
    pub(super) fn packed(&mut self) -> &mut Packed {
        if let Self::Words(_) = self {
            *self = Self::default();
        }
        match self {
            Self::Bytes(packed) => packed,
            Self::Words(_) => unreachable!("it was just made one of bytes"),
        }
    }

    pub(super) fn into_packed(self) -> Packed {
        match self {
            Self::Bytes(packed) => packed,
            Self::Words(_) => Packed::default(),
        }
    }
}

/// The bytes of some keys, one after the other.
#[derive(Default, Clone)]
pub(crate) struct Packed {
    bytes: Vec<u8>,
    /// Where each key ends.
    ends: Vec<usize>,
}

impl Packed {
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Appends a key.
    pub(crate) fn push(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
    }

    /// Appends the key whose bytes `write` appends. If it fails, there is none.
    pub(crate) fn try_push_with<E>(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let start = self.bytes.len();
        let written = write(&mut self.bytes);
        match &written {
            Ok(()) => self.ends.push(self.bytes.len()),
            Err(_) => self.bytes.truncate(start),
        }
        written
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(&0).chain(&self.ends);
        starts.zip(&self.ends).map(|(&start, &end)| &self.bytes[start..end])
    }
}
