//! What can be a key.
//!
//! A key *is* its bytes. Filters hash them, remotes store them, and they are the same on every platform, in
//! every version of this crate and in every language that binds to it. [`std::hash::Hash`] promises none of
//! this, so it is not used.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

/// Something whose stable bytes identify it.
///
/// Two keys of any types with equal bytes are the same key: `"ab"`, `b"ab"` and `[0x61_u8, 0x62]` are one key.
/// Integers are their little-endian bytes at their own width, so `5_u32` and `5_u64` are different keys;
/// `usize` and `isize` count as 64 bits wide everywhere. A tuple of up to four keys is the bytes of its parts, each but
/// the last behind its length as 8 little-endian bytes, so that `("ab", "c")` and `("a", "bc")` are different keys.
/// (A tuple that ends with a tuple is the longer tuple.)
///
/// ```
/// use besom::Key;
///
/// assert_eq!(258_u32.with_bytes(<[u8]>::to_vec), [2, 1, 0, 0]);
/// assert_eq!("ab".with_bytes(<[u8]>::to_vec), b"ab");
/// ```
///
/// A type of your own is a key as soon as it can show its bytes:
///
/// ```
/// use besom::Key;
///
/// struct Ipv4Flow { source: [u8; 4], target: [u8; 4] }
///
/// impl Key for Ipv4Flow {
///     fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
///         let mut bytes = [0; 8];
///         bytes[..4].copy_from_slice(&self.source);
///         bytes[4..].copy_from_slice(&self.target);
///         f(&bytes)
///     }
/// }
/// ```
pub trait Key {
    /// Calls `f` with the bytes of this key. The bytes must depend on nothing but the key.
    fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R;
}

impl Key for [u8] {
    #[inline]
    fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
        f(self)
    }
}

impl<const N: usize> Key for [u8; N] {
    #[inline]
    fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
        f(self)
    }
}

impl Key for Vec<u8> {
    #[inline]
    fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
        f(self)
    }
}

impl Key for str {
    #[inline]
    fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
        f(self.as_bytes())
    }
}

impl Key for String {
    #[inline]
    fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
        f(self.as_bytes())
    }
}

macro_rules! pointer_keys {
    ($($pointer:ty),*) => {$(
        impl<K: Key + ?Sized> Key for $pointer {
            #[inline]
            fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
                (**self).with_bytes(f)
            }
        }
    )*};
}

pointer_keys!(&K, &mut K, Box<K>, Rc<K>, Arc<K>);

impl<K: Key + ToOwned + ?Sized> Key for Cow<'_, K> {
    #[inline]
    fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
        (**self).with_bytes(f)
    }
}

macro_rules! tuple_keys {
    ($($($first:ident)+, $last:ident;)*) => {$(
        impl<$($first: Key,)+ $last: Key> Key for ($($first,)+ $last,) {
            fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
                #[expect(non_snake_case, reason = "a part is called by its type")]
                let ($($first,)+ $last,) = self;
                let mut bytes = Vec::new();
                $($first.with_bytes(|part| {
                    bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
                    bytes.extend_from_slice(part);
                });)+
                $last.with_bytes(|part| bytes.extend_from_slice(part));
                f(&bytes)
            }
        }
    )*};
}

tuple_keys!(A, B; A B, C; A B C, D;);

macro_rules! integer_keys {
    ($($int:ty as $wire:ty),*) => {$(
        impl Key for $int {
            #[inline]
            fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
                f(&(*self as $wire).to_le_bytes())
            }
        }
    )*};
}

integer_keys!(
    u8 as u8,
    u16 as u16,
    u32 as u32,
    u64 as u64,
    u128 as u128,
    usize as u64,
    i8 as i8,
    i16 as i16,
    i32 as i32,
    i64 as i64,
    i128 as i128,
    isize as i64
);

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes<K: Key + ?Sized>(key: &K) -> Vec<u8> {
        key.with_bytes(<[u8]>::to_vec)
    }

    #[test]
    fn equal_bytes_are_equal_keys_whatever_their_type() {
        let expected = b"key".to_vec();
        assert_eq!(bytes("key"), expected);
        assert_eq!(bytes(&String::from("key")), expected);
        assert_eq!(bytes(b"key"), expected);
        assert_eq!(bytes(&b"key"[..]), expected);
        assert_eq!(bytes(&vec![b'k', b'e', b'y']), expected);
        assert_eq!(bytes(&&"key"), expected);
        assert_eq!(bytes(&Box::<[u8]>::from(&b"key"[..])), expected);
        assert_eq!(bytes(&Cow::Borrowed("key")), expected);
        assert_eq!(bytes(&Rc::<str>::from("key")), expected);
        assert_eq!(bytes(&Arc::new(String::from("key"))), expected);
    }

    #[test]
    fn the_parts_of_a_tuple_do_not_run_into_each_other() {
        assert_eq!(bytes(&("ab", 1_u16)), [2, 0, 0, 0, 0, 0, 0, 0, b'a', b'b', 1, 0]);
        assert_ne!(bytes(&("ab", "c")), bytes(&("a", "bc")));
        assert_ne!(bytes(&("a", "", "b")), bytes(&("", "a", "b")));
        assert_eq!(bytes(&("a", ("b", "c"))), bytes(&("a", "b", "c")));
        assert_ne!(bytes(&(("a", "b"), "c")), bytes(&("a", "b", "c")));
        assert_eq!(bytes(&(1_u8, 2_u8, 3_u8, 4_u8)).len(), 4 + 3 * 8);
    }

    #[test]
    fn integers_are_little_endian_at_their_own_width() {
        assert_eq!(bytes(&0x0102_u16), [2, 1]);
        assert_eq!(bytes(&-2_i32), [0xfe, 0xff, 0xff, 0xff]);
        assert_eq!(bytes(&1_usize), [1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes(&-1_isize), [0xff; 8]);
        assert_eq!(bytes(&1_u128).len(), 16);
        assert_eq!(bytes(&1_i8), [1]);
    }
}
