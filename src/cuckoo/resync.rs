//! The way back after a group of changes that may have happened or not: some slots, the lists that the remote has for
//! them, and what must be done so that the two agree again.

use std::collections::HashMap;

use crate::{AdaptiveError, Change, KeyHasher, Remote, Resync};

use super::AdaptiveCuckooFilter;
use super::draft::{Draft, Resident};
use super::filter::Scratch;
use super::matching::Matching;
use super::variant::Variant;

/// One address in question.
struct List {
    address: u64,
    /// The slot that it belongs to; `None` if the address is not in use.
    slot: Option<usize>,
    /// The keys that the remote has there, by their numbers.
    keys: Vec<usize>,
    /// The key that the slot holds, once that is known.
    owner: Option<usize>,
}

/// All addresses in question, and the keys found there.
struct Question {
    /// In the order of their addresses.
    lists: Vec<List>,
    /// No key twice. Their bytes are in the draft.
    keys: Vec<Resident>,
}

impl<V: Variant, H: KeyHasher> AdaptiveCuckooFilter<V, H> {
    /// See [`Adaptive::resync`](crate::Adaptive::resync).
    pub(super) fn resync_addresses<R: Remote>(
        &mut self,
        addresses: &[u64],
        remote: &mut R,
    ) -> Result<Resync, AdaptiveError<R::Error>> {
        if self.littered {
            self.sweep(remote)?;
        }
        let mut asked = addresses.to_vec();
        asked.sort_unstable();
        asked.dedup();
        match self.resync_sorted(&asked, remote) {
            // A slot elsewhere is in question, too. To draw it in could explain it by a newcomer here that happens to
            // fit, and its own key would be lost: the keys of one failed group explain each other, and no more.
            Err(AdaptiveError::Inconsistent { .. }) => Ok(Resync::InQuestion { slots: 1 }),
            result => result,
        }
    }

    fn resync_sorted<R: Remote>(
        &mut self,
        asked: &[u64],
        remote: &mut R,
    ) -> Result<Resync, AdaptiveError<R::Error>> {
        let mut scratch = Scratch::new();
        let mut question = self.read_question(asked, &mut scratch.draft, remote)?;
        let slots = self.explain(&mut question, &mut scratch.draft);
        if slots > 0 {
            return Ok(Resync::InQuestion { slots });
        }
        let mut taken_in = 0;
        for number in self.unknown(&question, &scratch.draft, remote)? {
            let room = self.len + taken_in < self.capacity;
            let tables = 0..self.table.layout().tables;
            if !room || !self.plan_chain(question.keys[number], tables, None, &mut scratch, remote)? {
                return Err(self.full().into());
            }
            taken_in += 1;
        }
        let changes = self.changes(&question, &scratch.draft);
        if !changes.is_empty() {
            remote.apply(&changes).map_err(AdaptiveError::Remote)?;
        }
        scratch.draft.change(&mut self.table);
        self.len += taken_in;
        Ok(Resync::Agreed)
    }

    fn read_question<R: Remote>(
        &self,
        asked: &[u64],
        draft: &mut Draft,
        remote: &mut R,
    ) -> Result<Question, AdaptiveError<R::Error>> {
        let (mut lists, mut keys) = (Vec::with_capacity(asked.len()), Vec::new());
        let mut numbers: HashMap<Box<[u8]>, usize> = HashMap::new();
        for &address in asked {
            let mut list =
                List { address, slot: self.addresses.slot(address), keys: Vec::new(), owner: None };
            let read = remote.read(address, &mut |key| {
                let number = *numbers.entry(key.into()).or_insert_with(|| {
                    keys.push(draft.resident(key, self.place_of(self.hasher.digest(key))));
                    keys.len() - 1
                });
                list.keys.push(number);
            });
            read.map_err(AdaptiveError::Remote)?;
            lists.push(list);
        }
        Ok(Question { lists, keys })
    }

    /// Finds a key for every occupied slot in question, and says how many have none. A key in the slot's own list is
    /// preferred; but the chain that failed may have moved it to another one.
    fn explain(&self, question: &mut Question, draft: &mut Draft) -> usize {
        let Question { lists, keys } = question;
        let is_occupied = |list: &&mut List| list.slot.is_some_and(|slot| !self.table.is_vacant(slot));
        let mut occupied: Vec<&mut List> = lists.iter_mut().filter(is_occupied).collect();
        let candidates = |list: &&mut List| {
            let holds =
                |number: &usize| list.slot.is_some_and(|slot| self.table.holds(slot, keys[*number].place));
            let others = (0..keys.len()).filter(|number| !list.keys.contains(number));
            list.keys.iter().copied().chain(others).filter(holds).collect()
        };
        let candidates: Vec<Vec<usize>> = occupied.iter().map(candidates).collect();
        let matching = Matching::new(&candidates, keys.len());
        for (thing, list) in occupied.iter_mut().enumerate() {
            list.owner = matching.of(thing);
            if let (Some(slot), Some(owner)) = (list.slot, list.owner) {
                draft.set_occupant(slot, keys[owner]);
            }
        }
        matching.unexplained()
    }

    /// The keys that the filter must take in: those that explain no slot here and lie in no other one.
    ///
    /// Those of a list that they cannot have been put into by this filter are left out, unless the filter accepts them
    /// because of a slot in question: then they may be the ones that it held.
    fn unknown<R: Remote>(
        &self,
        question: &Question,
        draft: &Draft,
        remote: &mut R,
    ) -> Result<Vec<usize>, AdaptiveError<R::Error>> {
        let mut unknown = Vec::new();
        for (number, &resident) in question.keys.iter().enumerate() {
            if question.lists.iter().any(|list| list.owner == Some(number)) {
                continue;
            }
            let at_home = question.lists.iter().any(|list| {
                let is_candidate = |slot| self.table.is_candidate(slot, resident.place);
                list.keys.contains(&number) && list.slot.is_some_and(is_candidate)
            });
            let mut wanted = at_home;
            for slot in self.table.hits(resident.place) {
                if question.lists.iter().any(|list| list.slot == Some(slot)) {
                    wanted = true;
                } else if self.read_slot(slot, remote, |key, _| key == draft.key(resident))? {
                    wanted = false;
                    break;
                }
            }
            unknown.extend(wanted.then_some(number));
        }
        Ok(unknown)
    }

    /// What the remote has to do: at the addresses in question, whatever makes one key or none of what it has there; in
    /// the other slots, the moves.
    fn changes<'d>(&self, question: &'d Question, draft: &'d Draft) -> Vec<Change<'d>> {
        let mut changes = Vec::new();
        for list in &question.lists {
            let owner = list.owner.map(|number| question.keys[number]);
            let resident = list.slot.and_then(|slot| draft.planned(slot)).unwrap_or(owner);
            let keys: Vec<&[u8]> = list.keys.iter().map(|&number| draft.key(question.keys[number])).collect();
            reduce(list.address, &keys, resident.map(|resident| draft.key(resident)), &mut changes);
        }
        let is_asked = |change: &Change<'_>| {
            let (Change::Push { address, .. }
            | Change::Remove { address, .. }
            | Change::Replace { address, .. }) = *change
            else {
                return false;
            };
            question.lists.binary_search_by_key(&address, |list| list.address).is_ok()
        };
        changes.extend(draft.changes(self.addresses).filter(|change| !is_asked(change)));
        changes
    }
}

/// Makes the list `keys` a list of `key` alone, or of nothing.
fn reduce<'k>(address: u64, keys: &[&'k [u8]], key: Option<&'k [u8]>, changes: &mut Vec<Change<'k>>) {
    let kept = keys.iter().position(|&listed| Some(listed) == key);
    // A list without the key gives its first entry up for it, an empty one gets it at the end.
    let replaced = (kept.is_none() && key.is_some() && !keys.is_empty()).then_some(0);
    // From the end, so that the ranks of those before stay what they are.
    for (rank, &old) in keys.iter().enumerate().rev() {
        match key {
            Some(key) if Some(rank) == replaced => changes.push(Change::Replace { address, rank, old, key }),
            _ if Some(rank) == kept => {}
            _ => changes.push(Change::Remove { address, rank, key: old }),
        }
    }
    if let (Some(key), true) = (key, keys.is_empty()) {
        changes.push(Change::Push { address, key });
    }
}
