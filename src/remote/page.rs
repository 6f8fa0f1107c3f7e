//! The lists of 256 neighbouring addresses, packed.
//!
//! ```text
//! heads   | address 0 | address 1 | … | address 255 |     0: empty; else where the entries begin in the log;
//!              |                                          with the top bit set: its number among the long lists
//!              v
//! log     |len | entry | entry |len | entry | …           a list: its length in bytes, then its entries
//! entry   | length of the key | key |
//! ```
//!
//! A list that grows is written again at the end of the log; what it leaves behind is reclaimed when it makes up
//! half of the log. So a new list touches a head of two bytes and the end of a log, places that are so small in
//! all that they tend to stay in the processor's cache; the keys' own memory is only written, in order. Lists
//! beyond 120 bytes have memory of their own.

use crate::bits::prefetch;

/// How many addresses a page has.
pub(super) const PAGE: usize = 256;

/// The longest list in the log.
const MAX_SHORT: usize = 120;

/// The longest log, in bytes: what a head can lead to.
const MAX_LOG: usize = LONG as usize - 1;

/// Marks the head of a list that is not in the log.
const LONG: u16 = 1 << 15;

const _: () =
    assert!(PAGE * (1 + MAX_SHORT) + 1 + MAX_SHORT <= MAX_LOG, "a compacted log has room for a list");

/// See the [module](self).
#[derive(Debug, Clone)]
#[repr(C)]
pub(super) struct Page {
    /// First, together with `dead`, so that what every change needs shares a cache line.
    log: Vec<u8>,
    /// Bytes of the log that no head leads to.
    dead: usize,
    long: Vec<Vec<u8>>,
    /// Numbers of long lists that are not in use.
    free: Vec<u16>,
    heads: [u16; PAGE],
}

impl Page {
    /// A page of empty lists.
    pub(super) fn new() -> Self {
        let (log, long, free) = (Vec::new(), Vec::new(), Vec::new());
        Self { heads: [0; PAGE], log, dead: 0, long, free }
    }

    /// The keys of one list, in order.
    #[inline]
    pub(super) fn list(&self, index: usize) -> Entries<'_> {
        Entries { rest: self.bytes(index) }
    }

    /// The entries of a list.
    #[inline]
    fn bytes(&self, index: usize) -> &[u8] {
        match self.heads[index] {
            0 => &[],
            head if head & LONG != 0 => &self.long[(head & !LONG) as usize],
            head => {
                let start = head as usize;
                &self.log[start..start + usize::from(self.log[start - 1])]
            }
        }
    }

    /// Asks the processor for the entries of a list.
    #[inline]
    pub(super) fn prefetch(&self, index: usize) {
        let head = self.heads[index];
        if head & LONG == 0 {
            prefetch(self.log.as_ptr().wrapping_add(usize::from(head)));
        }
    }

    /// Appends a key to a list.
    #[inline]
    pub(super) fn push(&mut self, index: usize, key: &[u8]) {
        // One length byte for the list and one for the key.
        let needed = key.len() + 2;
        if self.heads[index] == 0 && needed <= MAX_SHORT && self.log.len() + needed <= MAX_LOG {
            self.heads[index] = self.log.len() as u16 + 1;
            self.log.reserve(needed);
            self.log.extend_from_slice(&[key.len() as u8 + 1, key.len() as u8]);
            self.log.extend_from_slice(key);
        } else {
            self.splice(index, self.bytes(index).len(), 0, Some(key));
        }
    }

    /// Puts a key before the one of this rank.
    pub(super) fn insert(&mut self, index: usize, rank: usize, key: &[u8]) {
        let (start, _) = self.list(index).span(rank);
        self.splice(index, start, 0, Some(key));
    }

    /// Takes the key of this rank out.
    pub(super) fn remove(&mut self, index: usize, rank: usize) {
        let (start, len) = self.list(index).span(rank);
        self.splice(index, start, len, None);
    }

    /// Puts another key in the place of the one of this rank.
    pub(super) fn replace(&mut self, index: usize, rank: usize, key: &[u8]) {
        let (start, len) = self.list(index).span(rank);
        self.splice(index, start, len, Some(key));
    }

    /// Replaces `removed` bytes at `start` of a list by the entry of `key`.
    fn splice(&mut self, index: usize, start: usize, removed: usize, key: Option<&[u8]>) {
        let (prefix, prefix_len) = key.map_or(([0; 10], 0), |key| length_prefix(key.len()));
        let (prefix, key) = (&prefix[..prefix_len], key.unwrap_or_default());
        let added = prefix_len + key.len();
        let head = self.heads[index];
        if head & LONG != 0 {
            self.splice_long(index, start..start + removed, prefix.iter().chain(key).copied());
        } else if added == removed {
            let at = head as usize + start;
            self.log[at..at + prefix_len].copy_from_slice(prefix);
            self.log[at + prefix_len..at + added].copy_from_slice(key);
        } else {
            self.rewrite(index, start, removed, &[prefix, key]);
        }
    }

    fn splice_long(
        &mut self,
        index: usize,
        removed: std::ops::Range<usize>,
        added: impl Iterator<Item = u8>,
    ) {
        let number = self.heads[index] & !LONG;
        let list = &mut self.long[number as usize];
        list.splice(removed, added);
        if list.is_empty() {
            *list = Vec::new();
            self.free.push(number);
            self.heads[index] = 0;
        }
    }

    /// Writes a short or empty list again, with `removed` bytes at `start` replaced by the parts in `added`.
    fn rewrite(&mut self, index: usize, start: usize, removed: usize, added: &[&[u8]; 2]) {
        if self.log.len() + 1 + MAX_SHORT > MAX_LOG {
            self.compact();
        }
        let old = match self.heads[index] as usize {
            0 => 0..0,
            head => head..head + self.bytes(index).len(),
        };
        let before = old.start..old.start + start;
        let after = before.end + removed..old.end;
        let len = before.len() + added[0].len() + added[1].len() + after.len();
        if len == 0 {
            self.heads[index] = 0;
        } else if len <= MAX_SHORT {
            self.log.reserve(1 + len);
            self.log.push(len as u8);
            self.heads[index] = self.log.len() as u16;
            self.log.extend_from_within(before);
            added.iter().for_each(|part| self.log.extend_from_slice(part));
            self.log.extend_from_within(after);
        } else {
            let list = [&self.log[before], added[0], added[1], &self.log[after]].concat();
            let number = self.free.pop().unwrap_or_else(|| {
                self.long.push(Vec::new());
                self.long.len() as u16 - 1
            });
            self.long[number as usize] = list;
            self.heads[index] = number | LONG;
        }
        self.dead += if old.start == 0 { 0 } else { 1 + old.len() };
        if self.dead > 64 + self.log.len() / 2 {
            self.compact();
        }
    }

    /// Leaves out what no head leads to.
    fn compact(&mut self) {
        let mut log = Vec::with_capacity(2 * (self.log.len() - self.dead));
        for head in self.heads.iter_mut().filter(|head| **head != 0 && **head & LONG == 0) {
            let start = *head as usize;
            let len = usize::from(self.log[start - 1]);
            *head = log.len() as u16 + 1;
            log.extend_from_slice(&self.log[start - 1..start + len]);
        }
        self.log = log;
        self.dead = 0;
    }

    /// The memory of the page in bytes.
    pub(super) fn memory(&self) -> usize {
        let long = self.long.iter().map(|list| size_of::<Vec<u8>>() + list.capacity()).sum::<usize>();
        size_of::<Self>() + self.log.capacity() + long + self.free.capacity() * size_of::<u16>()
    }
}

/// The entries of a list from some point on: for each key its length (7 bits a byte, the top bit says that another
/// length byte follows), then its bytes.
#[derive(Clone)]
pub(super) struct Entries<'a> {
    rest: &'a [u8],
}

impl Entries<'_> {
    /// Where the entry of this rank starts, and how long it is with its length bytes.
    fn span(mut self, rank: usize) -> (usize, usize) {
        let total = self.rest.len();
        self.by_ref().take(rank).for_each(drop);
        let start = total - self.rest.len();
        self.next();
        (start, total - self.rest.len() - start)
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let (mut len, mut shift) = (0, 0);
        loop {
            let (&byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            len |= usize::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
        }
        let (key, rest) = self.rest.split_at(len);
        self.rest = rest;
        Some(key)
    }
}

/// The length bytes of an entry and how many they are.
fn length_prefix(mut len: usize) -> ([u8; 10], usize) {
    let (mut prefix, mut count) = ([0; 10], 0);
    while len >= 0x80 {
        prefix[count] = len as u8 | 0x80;
        len >>= 7;
        count += 1;
    }
    prefix[count] = len as u8;
    (prefix, count + 1)
}
