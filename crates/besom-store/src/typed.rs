//! Typed keys and values over the bytes of a store.

use std::marker::PhantomData;

use besom::Key;
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::engine::Engine;
use crate::guard::{Store, StoreFilter};
use crate::{Redb, RedbStore, StoreError};

/// An operation of a [typed](Typed) store failed. `E` is the error of the database.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TypedError<E> {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError<E>),
    /// The value cannot be written as bytes. Nothing was changed.
    #[error("the value cannot be written as bytes: {0}")]
    Encode(#[source] postcard::Error),
    /// The bytes of a stored value are not of this type: they were written as another type, or as bytes. The operation itself was
    /// done.
    #[error(
        "the {length} bytes of the stored value are no value of the wanted type: {source}; read them as bytes"
    )]
    Decode {
        /// How many bytes there are.
        length: usize,
        /// What is wrong with them.
        source: postcard::Error,
    },
}

type Outcome<T, E> = Result<T, TypedError<<E as Engine>::Error>>;

/// A store with keys of type `K` and values of type `V`: a view of [`RedbStore`] with its words, or of [`Store`] with the same
/// words to be awaited.
///
/// Keys are the bytes that [`Key`] gives, the ones that the filter hashes. Values are written with serde in the format of
/// [`postcard`]: compact, and without names, so a type whose fields change needs a version of its own. Costs one encoding or decoding
/// more than the store itself.
///
/// ```
/// use besom::TelescopingFilter;
/// use besom_store::{RedbStore, Typed};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Debug, PartialEq, Serialize, Deserialize)]
/// struct Person { name: String, born: u16 }
///
/// let folder = tempfile::tempdir()?;
/// let make = |_, seed| TelescopingFilter::builder().capacity(1000).seed(seed).build();
/// let store = RedbStore::open(folder.path().join("people"), make)?;
/// let people: Typed<_, u64, Person> = Typed::new(&store);
/// let ada = || Person { name: "Ada".into(), born: 1815 };
/// assert_eq!(people.insert(&7, &ada())?, None);
/// assert_eq!(people.get(&7)?, Some(ada()));
/// assert_eq!(people.get(&8)?, None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Typed<S, K: ?Sized, V> {
    store: S,
    types: PhantomData<fn(&K) -> V>,
}

impl<S, K: Key + ?Sized, V: Serialize + DeserializeOwned> Typed<S, K, V> {
    /// A view of a store. It is the caller's part that the store has no keys and values of other types: what is there as
    /// something else is reported as [`TypedError::Decode`], or taken for a value if the bytes happen to be one.
    pub fn new(store: S) -> Self {
        Self { store, types: PhantomData }
    }
}

fn encode<V: Serialize, E>(value: &V) -> Result<Vec<u8>, TypedError<E>> {
    postcard::to_allocvec(value).map_err(TypedError::Encode)
}

/// All of the bytes must be the value's.
fn decode<V: DeserializeOwned, E>(bytes: &[u8]) -> Result<V, TypedError<E>> {
    let error = |source| TypedError::Decode { length: bytes.len(), source };
    match postcard::take_from_bytes(bytes).map_err(error)? {
        (value, []) => Ok(value),
        _ => Err(error(postcard::Error::DeserializeBadEncoding)),
    }
}

fn decode_all<V: DeserializeOwned, E>(bytes: Option<impl AsRef<[u8]>>) -> Result<Option<V>, TypedError<E>> {
    bytes.map(|bytes| decode(bytes.as_ref())).transpose()
}

impl<F: StoreFilter, K: Key + ?Sized, V: Serialize + DeserializeOwned> Typed<&RedbStore<F>, K, V> {
    /// The value of a key.
    ///
    /// # Errors
    ///
    /// As [`RedbStore::get`], and [`TypedError::Decode`].
    pub fn get(&self, key: &K) -> Outcome<Option<V>, Redb> {
        decode_all(key.with_bytes(|key| self.store.get(key))?)
    }

    /// Whether the store has a key. Reads no value.
    ///
    /// # Errors
    ///
    /// As [`RedbStore::contains_key`].
    pub fn contains_key(&self, key: &K) -> Outcome<bool, Redb> {
        Ok(key.with_bytes(|key| self.store.contains_key(key))?)
    }

    /// Stores a value, and returns the one that was there.
    ///
    /// # Errors
    ///
    /// As [`RedbStore::insert`]; [`TypedError::Encode`], [`TypedError::Decode`].
    pub fn insert(&self, key: &K, value: &V) -> Outcome<Option<V>, Redb> {
        let value = encode(value)?;
        decode_all(key.with_bytes(|key| self.store.insert(key, &value))?)
    }

    /// Stores a value, and does not ask which one was there.
    ///
    /// # Errors
    ///
    /// As [`RedbStore::put`], and [`TypedError::Encode`].
    pub fn put(&self, key: &K, value: &V) -> Outcome<(), Redb> {
        let value = encode(value)?;
        Ok(key.with_bytes(|key| self.store.put(key, &value))?)
    }

    /// Removes a key, and returns its value.
    ///
    /// # Errors
    ///
    /// As [`RedbStore::remove`], and [`TypedError::Decode`].
    pub fn remove(&self, key: &K) -> Outcome<Option<V>, Redb> {
        decode_all(key.with_bytes(|key| self.store.remove(key))?)
    }

    /// Removes a key, and does not ask whether it is there.
    ///
    /// # Errors
    ///
    /// As [`RedbStore::delete`].
    pub fn delete(&self, key: &K) -> Outcome<(), Redb> {
        Ok(key.with_bytes(|key| self.store.delete(key))?)
    }
}

impl<F, E, K, V> Typed<&Store<F, E>, K, V>
where
    F: StoreFilter,
    E: Engine,
    K: Key + ?Sized,
    V: Serialize + DeserializeOwned,
{
    /// The value of a key.
    ///
    /// # Errors
    ///
    /// As [`Store::get`], and [`TypedError::Decode`].
    pub async fn get(&self, key: &K) -> Outcome<Option<V>, E> {
        decode_all(self.store.get(&bytes(key)).await?)
    }

    /// Whether the store has a key. Reads no value.
    ///
    /// # Errors
    ///
    /// As [`Store::contains_key`].
    pub async fn contains_key(&self, key: &K) -> Outcome<bool, E> {
        Ok(self.store.contains_key(&bytes(key)).await?)
    }

    /// Stores a value, and returns the one that was there.
    ///
    /// # Errors
    ///
    /// As [`Store::insert`]; [`TypedError::Encode`], [`TypedError::Decode`].
    pub async fn insert(&self, key: &K, value: &V) -> Outcome<Option<V>, E> {
        decode_all(self.store.insert(&bytes(key), &encode(value)?).await?)
    }

    /// Stores a value, and does not ask which one was there.
    ///
    /// # Errors
    ///
    /// As [`Store::put`], and [`TypedError::Encode`].
    pub async fn put(&self, key: &K, value: &V) -> Outcome<(), E> {
        Ok(self.store.put(&bytes(key), &encode(value)?).await?)
    }

    /// Removes a key, and returns its value.
    ///
    /// # Errors
    ///
    /// As [`Store::remove`], and [`TypedError::Decode`].
    pub async fn remove(&self, key: &K) -> Outcome<Option<V>, E> {
        decode_all(self.store.remove(&bytes(key)).await?)
    }

    /// Removes a key, and does not ask whether it is there.
    ///
    /// # Errors
    ///
    /// As [`Store::delete`].
    pub async fn delete(&self, key: &K) -> Outcome<(), E> {
        Ok(self.store.delete(&bytes(key)).await?)
    }
}

/// The bytes of a key, for as long as a future runs.
fn bytes<K: Key + ?Sized>(key: &K) -> Vec<u8> {
    key.with_bytes(<[u8]>::to_vec)
}

#[cfg(test)]
mod tests {
    //! Catches: values that do not come back, old values that are not returned, bytes of another type that are taken for a value.
    use std::collections::BTreeMap;

    use besom::ExtensionFilter;
    use besom::testing::Random;
    use serde::Deserialize;

    use super::*;
    use crate::{MemoryEngine, Options, wait};

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    enum Value {
        Number(u64),
        Names(Vec<String>),
    }

    fn value(random: &mut Random) -> Value {
        match random.below(2) {
            0 => Value::Number(random.next()),
            _ => Value::Names((0..random.below(4)).map(|name| format!("name {name}")).collect()),
        }
    }

    #[test]
    fn values_come_back_as_they_were_stored() {
        let make =
            |_, seed| ExtensionFilter::builder().capacity(200).seed(seed).false_positive_rate(0.1).build();
        let store = wait(Store::open(MemoryEngine::new(), make, Options::new())).unwrap();
        let typed: Typed<_, u64, Value> = Typed::new(&store);
        let (mut model, mut random) = (BTreeMap::new(), Random::new(5));
        for _ in 0..3_000 {
            let (key, value) = (random.below(150), value(&mut random));
            match random.below(6) {
                0 => assert_eq!(wait(typed.insert(&key, &value)).unwrap(), model.insert(key, value)),
                1 => {
                    wait(typed.put(&key, &value)).unwrap();
                    model.insert(key, value);
                }
                2 => assert_eq!(wait(typed.remove(&key)).unwrap(), model.remove(&key)),
                3 => {
                    wait(typed.delete(&key)).unwrap();
                    model.remove(&key);
                }
                4 => assert_eq!(wait(typed.contains_key(&key)).unwrap(), model.contains_key(&key)),
                _ => assert_eq!(wait(typed.get(&key)).unwrap().as_ref(), model.get(&key)),
            }
        }
    }

    #[test]
    fn bytes_of_another_type_are_reported_and_stay() {
        let make = |_, seed| ExtensionFilter::builder().capacity(200).seed(seed).build();
        let store = wait(Store::open(MemoryEngine::new(), make, Options::new())).unwrap();
        let typed: Typed<_, str, Value> = Typed::new(&store);
        // No such variant; a number that ends too early; bytes that are left over.
        for wrong in [&[9][..], &[0, 0x80], &[0, 1, 1]] {
            wait(store.insert(b"key", wrong)).unwrap();
            let error = wait(typed.get("key")).unwrap_err();
            assert!(matches!(error, TypedError::Decode { length, .. } if length == wrong.len()), "{error}");
            assert_eq!(wait(store.get(b"key")).unwrap().as_deref(), Some(wrong));
        }
    }
}
