//! Lists by group: each group at its own rate.

use std::collections::BTreeMap;

use xxhash_rust::xxh3::xxh3_64;

use crate::format::{FormatError, Persist, ReadOptions, WriteOptions, unsound};
use crate::{Filter, Key, KeyHasher, Xxh3};

use super::{ExactList, ExactListBuilder, ExactListError, limit_bits};

/// Exact lists by group: certificates by their issuer, packages by their registry.
///
/// Where groups differ in their share of accepted keys, one list for all is larger than it must be: it spends on every
/// key what the mean share asks for. Here every group has an [`ExactList`] of its own, as large as its own share asks
/// for. A group costs 128 to 256 bytes more, so groups should have a thousand keys and more. Keys of groups without an
/// accepted key are rejected, and take nothing.
///
/// ```
/// use besom::exact::{ExactGroups, ExactList};
///
/// // One issuer has revoked half of its certificates, the other one in a hundred.
/// let revoked = (0..5_000_u64).map(|key| ("hasty", key)).chain((0..500).map(|key| ("careful", key)));
/// let valid = (5_000..10_000_u64).map(|key| ("hasty", key)).chain((500..50_000).map(|key| ("careful", key)));
/// let groups = ExactGroups::build(&ExactList::builder(), revoked.clone(), valid.clone())?;
/// assert!(revoked.clone().all(|(group, key)| groups.contains(group, &key)));
/// assert!(valid.clone().all(|(group, key)| !groups.contains(group, &key)));
/// assert!(!groups.contains("unheard of", &7_u64));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq)]
pub struct ExactGroups<H = Xxh3> {
    lists: BTreeMap<Vec<u8>, ExactList<H>>,
}

/// What a file of groups begins with.
const MAGIC: [u8; 8] = *b"BESOMg\r\n";

/// The keys of one group.
type Pair = [Vec<Vec<u8>>; 2];

impl<H: KeyHasher> ExactGroups<H> {
    /// Builds a list for every group that has accepted keys. Takes memory for all keys while it is built.
    ///
    /// # Errors
    ///
    /// As for [`ExactListBuilder::build`]; a key may be accepted in one group and rejected in another.
    pub fn build<G: Key, K: Key>(
        builder: &ExactListBuilder<H>,
        yes: impl IntoIterator<Item = (G, K)>,
        no: impl IntoIterator<Item = (G, K)>,
    ) -> Result<Self, ExactListError> {
        let mut groups: BTreeMap<Vec<u8>, Pair> = BTreeMap::new();
        for (group, key) in yes {
            let [accepted, _] = groups.entry(group.with_bytes(<[u8]>::to_vec)).or_default();
            accepted.push(key.with_bytes(<[u8]>::to_vec));
        }
        for (group, key) in no {
            let lists = group.with_bytes(|group| groups.get_mut(group));
            lists.into_iter().for_each(|[_, rejected]| rejected.push(key.with_bytes(<[u8]>::to_vec)));
        }
        let build = |(group, [yes, no]): (Vec<u8>, Pair)| Ok((group, builder.clone().build(&yes, &no)?));
        Ok(Self { lists: groups.into_iter().map(build).collect::<Result<_, ExactListError>>()? })
    }

    /// Whether a key of a group is accepted.
    #[must_use]
    pub fn contains<G: Key + ?Sized, K: Key + ?Sized>(&self, group: &G, key: &K) -> bool {
        group.with_bytes(|group| self.lists.get(group).is_some_and(|list| list.contains(key)))
    }

    /// The groups that have accepted keys, with their lists.
    pub fn groups(&self) -> impl Iterator<Item = (&[u8], &ExactList<H>)> {
        self.lists.iter().map(|(group, list)| (&group[..], list))
    }

    /// The limit of any list that knows the groups, in bits: the sum of [`limit_bits`] over them.
    #[must_use]
    pub fn limit_bits(&self) -> f64 {
        self.lists.values().map(|list| limit_bits(list.len() as u64, list.rejected())).sum()
    }

    /// All lists as bytes: a table of names and lengths with a checksum, then the files of the lists, each with
    /// checksums of its own.
    ///
    /// # Errors
    ///
    /// [`FormatError`], which writing to memory has no reason for.
    pub fn to_bytes(&self, options: &WriteOptions) -> Result<Vec<u8>, FormatError> {
        let (mut names, mut files) = (MAGIC.to_vec(), Vec::new());
        names.extend((self.lists.len() as u64).to_le_bytes());
        for (name, list) in &self.lists {
            let file = list.to_bytes(options)?;
            names.extend((name.len() as u32).to_le_bytes());
            names.extend((file.len() as u64).to_le_bytes());
            names.extend(name);
            files.extend(file);
        }
        names.extend(xxh3_64(&names).to_le_bytes());
        names.append(&mut files);
        Ok(names)
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote.
    ///
    /// ```
    /// use besom::exact::{ExactGroups, ExactList};
    ///
    /// let groups = ExactGroups::build(&ExactList::builder(), [("a", "yes")], [("a", "no")])?;
    /// let bytes = groups.to_bytes(&Default::default())?;
    /// assert!(ExactGroups::from_bytes(&bytes, &Default::default())? == groups);
    /// assert!(ExactGroups::<besom::Xxh3>::from_bytes(&bytes[1..], &Default::default()).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`FormatError`] says what is damaged.
    pub fn from_bytes(bytes: &[u8], options: &ReadOptions) -> Result<Self, FormatError> {
        let mut rest = bytes;
        let found =
            take(&mut rest, MAGIC.len()).and_then(|magic| magic.first_chunk().copied()).unwrap_or_default();
        if found != MAGIC {
            return Err(FormatError::NotBesom { found });
        }
        let table = Table::read(bytes, rest).ok_or_else(|| unsound("the table of the groups is damaged"))?;
        let (mut lists, mut files) = (BTreeMap::new(), table.files);
        for (name, len) in table.groups {
            let cut = || FormatError::Truncated { found: files.len() as u64, expected: len };
            let file =
                usize::try_from(len).ok().and_then(|len| files.split_at_checked(len)).ok_or_else(cut)?;
            files = file.1;
            lists.insert(name.to_vec(), ExactList::from_bytes(file.0, options)?.0);
        }
        if files.is_empty() { Ok(Self { lists }) } else { Err(unsound("there is more than the groups have")) }
    }
}

impl<H: KeyHasher> std::fmt::Debug for ExactGroups<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ExactGroups({} groups)", self.lists.len())
    }
}

/// Names and lengths of the lists, and what is behind them.
struct Table<'b> {
    groups: Vec<(&'b [u8], u64)>,
    files: &'b [u8],
}

impl<'b> Table<'b> {
    /// `rest` is what is behind the magic in `bytes`.
    fn read(bytes: &'b [u8], mut rest: &'b [u8]) -> Option<Self> {
        let mut groups = Vec::new();
        for _ in 0..number(&mut rest, 8)? {
            let (name, len) = (number(&mut rest, 4)?, number(&mut rest, 8)?);
            groups.push((take(&mut rest, usize::try_from(name).ok()?)?, len));
        }
        let table = &bytes[..bytes.len() - rest.len()];
        let checksum = number(&mut rest, 8)?;
        let ascending = groups.is_sorted_by(|one, other| one.0 < other.0);
        (ascending && checksum == xxh3_64(table)).then_some(Self { groups, files: rest })
    }
}

/// The next bytes, if there are this many.
fn take<'b>(rest: &mut &'b [u8], len: usize) -> Option<&'b [u8]> {
    let (taken, behind) = rest.split_at_checked(len)?;
    *rest = behind;
    Some(taken)
}

/// The next number of this many bytes.
fn number(rest: &mut &[u8], bytes: usize) -> Option<u64> {
    Some(take(rest, bytes)?.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
}

#[cfg(test)]
mod tests {
    //! Catches: keys that are looked for in another group's list, groups that gain nothing, damaged files that are
    //! read.
    use super::*;
    use crate::testing::Random;

    /// (group, key) pairs of groups whose shares differ much.
    fn lists(random: &mut Random) -> [Vec<(u64, u64)>; 2] {
        let mut lists = [Vec::new(), Vec::new()];
        for (group, (yes, no)) in
            [(6000, 6000), (300, 60_000), (20_000, 400), (1, 50), (0, 10)].into_iter().enumerate()
        {
            lists[0].extend((0..yes).map(|_| (group as u64, random.next() | 1)));
            lists[1].extend((0..no).map(|_| (group as u64, random.next() & !1)));
        }
        // One key is accepted here and rejected there.
        lists[0].push((0, 77));
        lists[1].push((1, 77));
        lists
    }

    #[test]
    fn every_group_is_exact_and_smaller_than_one_list_for_all() {
        let [yes, no] = lists(&mut Random::new(31));
        let builder = ExactList::builder().seed(1_u64);
        let groups = ExactGroups::build(&builder, yes.clone(), no.clone()).unwrap();
        assert!(yes.iter().all(|(group, key)| groups.contains(group, key)));
        assert!(no.iter().all(|(group, key)| !groups.contains(group, key)));
        assert_eq!((groups.groups().count(), groups.contains(&4_u64, &1_u64)), (4, false));
        let bytes = groups.to_bytes(&WriteOptions::new()).unwrap();
        let joined = |list: &[(u64, u64)]| -> Vec<Vec<u8>> {
            list.iter().map(|(group, key)| [group.to_le_bytes(), key.to_le_bytes()].concat()).collect()
        };
        let one = builder.build(&joined(&yes), &joined(&no)).unwrap().to_bytes(&WriteOptions::new()).unwrap();
        let (bits, limit) = (8.0 * bytes.len() as f64, groups.limit_bits());
        // A header and what fills up lines for each of four groups.
        let most = 1.1 * limit + 4.0 * 2048.0;
        assert!(
            bits < most && bytes.len() < one.len() / 2,
            "{bits} bits, at most {most}, {} bytes in one list",
            one.len()
        );
    }

    #[test]
    fn damaged_files_are_errors_or_the_right_groups() {
        let mut random = Random::new(32);
        let yes: Vec<(u64, u64)> = (0..60).map(|key| (key % 3, key)).collect();
        let no: Vec<(u64, u64)> = (100..200).map(|key| (key % 3, key)).collect();
        let groups = ExactGroups::build(&ExactList::builder().seed(1_u64), yes, no).unwrap();
        let bytes = groups.to_bytes(&WriteOptions::new()).unwrap();
        for _ in 0..5000 {
            let mut damaged = bytes.clone();
            let at = random.below(damaged.len() as u64) as usize;
            match random.below(3) {
                0 => damaged.truncate(at),
                1 => damaged.push(0),
                _ => damaged[at] ^= 1 << random.below(8),
            }
            assert!(ExactGroups::<Xxh3>::from_bytes(&damaged, &ReadOptions::new()).is_err(), "{at}");
        }
        assert!(ExactGroups::from_bytes(&bytes, &ReadOptions::new()).unwrap() == groups);
    }
}
