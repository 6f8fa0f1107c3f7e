//! Whether remote and filter hold the same keys, and the way back if they do not.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use super::filter::Cascade;
use super::ledger::{ListSum, Tally};
use super::level::LevelFilter;
use super::levels::NoRoom;
use super::list::List;
use super::operations::disagreement;
use crate::{AdaptiveError, Change, Digest, Filter, KeyHasher, Remote, Resync};

type Outcome<T, R> = Result<T, AdaptiveError<<R as Remote>::Error>>;

/// Lists of the remote by their address.
type Lists = BTreeMap<u64, List>;

impl<F: LevelFilter, H: KeyHasher> Cascade<F, H> {
    /// One scan: every key at home, accepted, and all of them those of the ledger.
    pub(super) fn verify_lists<R: Remote>(&self, remote: &mut R) -> Outcome<(), R> {
        let (mut found, mut at, mut good) = (Tally::default(), 0, true);
        let mut visit = |address, key: &[u8]| {
            let digest = self.hasher.digest(key);
            at = address;
            found.add(digest);
            good = self.ledger.address(digest) == address && self.contains_digest(digest);
            if good { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        remote.scan(&mut visit).map_err(AdaptiveError::Remote)?;
        let expected = self.ledger.tally();
        if good && found == expected { Ok(()) } else { Err(disagreement(at, expected, found)) }
    }

    /// Nothing is ever taken out of the filter here: to answer "agreed" too early would be wrong, and yet lose no key.
    pub(super) fn resync_lists<R: Remote>(
        &mut self,
        addresses: &[u64],
        remote: &mut R,
    ) -> Outcome<Resync, R> {
        let mut lists: Lists = addresses.iter().map(|&address| (address, List::new(address))).collect();
        for list in lists.values_mut() {
            remote
                .read(list.address, &mut |key| list.push(key, &self.hasher))
                .map_err(AdaptiveError::Remote)?;
        }
        let mut adopt = self.known_by_sums(&lists).then(|| self.strangers(&lists));
        if adopt.is_none() {
            // A key is lacking, or one that the filter does not know is accepted all the same. The sum of all digests
            // tells which.
            lists.values_mut().for_each(|list| *list = List::new(list.address));
            let found = self.scan_into(&mut lists, remote)?;
            adopt = found.and_then(|found| self.surplus(&lists, found));
            if adopt.is_none() {
                let slots = found.map_or(1, |found| self.len().saturating_sub(found.keys).max(1));
                return Ok(Resync::InQuestion { slots });
            }
        }
        match self.mend(&lists, &adopt.unwrap_or_default(), remote) {
            // There is no room without fresh levels, and those need every key: one of another list is lacking.
            Err(AdaptiveError::Inconsistent { expected, found, .. }) => {
                Ok(Resync::InQuestion { slots: expected.saturating_sub(found).max(1) })
            }
            result => result.map(|()| Resync::Agreed),
        }
    }

    /// The digests of the keys that belong into these lists.
    fn belonging<'a>(&'a self, lists: &'a Lists) -> impl Iterator<Item = Digest> + 'a {
        lists.values().flat_map(|list| list.belonging(&self.ledger))
    }

    /// Those of them that the filter rejects, and so cannot know.
    fn strangers(&self, lists: &Lists) -> Vec<Digest> {
        self.belonging(lists).filter(|&digest| !self.contains_digest(digest)).collect()
    }

    /// Whether the keys that belong into the lists and that the filter accepts make the sums of the ledger.
    fn known_by_sums(&self, lists: &Lists) -> bool {
        lists.values().all(|list| {
            let mut sum = ListSum::default();
            let known = list.belonging(&self.ledger).filter(|&digest| self.contains_digest(digest));
            known.for_each(|digest| sum.add(digest));
            sum == self.ledger.sum(list.address)
        })
    }

    /// Reads these lists from one scan of all. Returns the tally of all keys that belong where they are, or `None` if one
    /// in another list does not.
    fn scan_into<R: Remote>(&self, lists: &mut Lists, remote: &mut R) -> Outcome<Option<Tally>, R> {
        let (mut found, mut good) = (Tally::default(), true);
        let mut visit = |address, key: &[u8]| {
            if let Some(list) = lists.get_mut(&address) {
                list.push(key, &self.hasher);
                return ControlFlow::Continue(());
            }
            let digest = self.hasher.digest(key);
            found.add(digest);
            good = self.ledger.address(digest) == address;
            if good { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        remote.scan(&mut visit).map_err(AdaptiveError::Remote)?;
        self.belonging(lists).for_each(|digest| found.add(digest));
        Ok(good.then_some(found))
    }

    /// The keys of these lists that the filter does not know, if all other keys of the remote, `found` in all, are the
    /// filter's.
    ///
    /// A key that the filter rejects is none of its keys. One that it accepts may be, and of those one at most is found
    /// out: the digest that is left over.
    fn surplus(&self, lists: &Lists, found: Tally) -> Option<Vec<Digest>> {
        let (mut adopt, mut known) = (self.strangers(lists), found);
        adopt.iter().for_each(|&digest| known.take(digest));
        if let Some(digest) = known.surplus(&self.ledger.tally()) {
            // Were it no key of these lists, it would not be one of a group that failed.
            adopt.push(self.belonging(lists).find(|&candidate| candidate == digest)?);
            known.take(digest);
        }
        (known == self.ledger.tally()).then_some(adopt)
    }

    /// Takes keys in, and takes out of the lists what does not belong there.
    fn mend<R: Remote>(&mut self, lists: &Lists, adopt: &[Digest], remote: &mut R) -> Outcome<(), R> {
        if self.len() + adopt.len() > self.capacity() {
            return Err(self.full().into());
        }
        let rebuilt = match self.levels.reserve_all(adopt) {
            Ok(()) => None,
            Err(NoRoom) => Some(self.rebuilt_with(lists, adopt, remote)?),
        };
        let drops: Vec<Change<'_>> = lists.values().flat_map(|list| list.drops(&self.ledger)).collect();
        if !drops.is_empty() {
            remote.apply(&drops).map_err(AdaptiveError::Remote)?;
        }
        let in_place = rebuilt.is_none();
        if let Some(levels) = rebuilt {
            self.take(levels, 1);
        }
        for &digest in adopt {
            if in_place {
                self.levels.insert(digest).map_err(|NoRoom| self.full())?;
            }
            self.ledger.insert(digest);
        }
        Ok(())
    }

    /// Fresh levels with all keys of the ledger and those that are to be taken in.
    fn rebuilt_with<R: Remote>(
        &self,
        lists: &Lists,
        adopt: &[Digest],
        remote: &mut R,
    ) -> Outcome<super::levels::Levels<F>, R> {
        let mut expected = self.ledger.tally();
        adopt.iter().for_each(|&digest| expected.add(digest));
        let mut last = (0, 0);
        self.rebuilt(remote, 1, expected, |address, _| {
            let rank = if last.0 == address { last.1 } else { 0 };
            last = (address, rank + 1);
            // Should the list be another one now, the tally will not be the expected one.
            lists.get(&address).is_none_or(|list| list.belongs(rank, &self.ledger))
        })
    }
}
