//! Lists of the reverse map, as far as they were fetched, with what is going to change in them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use besom::Change;
use slatedb::WriteBatch;

use super::replay::Paused;
use super::rows;

/// One list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct List {
    /// What the database has; `None` as long as it was not asked.
    stored: Option<Vec<Box<[u8]>>>,
    /// What was pushed behind that.
    pushed: Vec<Box<[u8]>>,
    /// `stored` is not what the database has any more.
    rewritten: bool,
}

impl List {
    /// The keys as one sequence that can be changed; `None` if the database was not asked.
    fn rewrite(&mut self) -> Option<&mut Vec<Box<[u8]>>> {
        let stored = self.stored.as_mut()?;
        stored.append(&mut self.pushed);
        self.rewritten = true;
        Some(stored)
    }

    fn put(&self, row: slatedb::bytes::Bytes, batch: &mut WriteBatch) {
        let pushed = self.pushed.iter().map(AsRef::as_ref);
        match &self.stored {
            Some(stored) if self.rewritten => {
                if stored.is_empty() && self.pushed.is_empty() {
                    batch.delete(&row);
                } else {
                    let keys = stored.iter().map(AsRef::as_ref).chain(pushed);
                    batch.put_bytes(row, rows::encode_list(keys));
                }
            }
            _ if self.pushed.is_empty() => {}
            // No need to know what was there.
            _ => batch.merge(&row, rows::encode_list(pushed)),
        }
    }
}

/// Lists by address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Lists(HashMap<u64, List>);

impl Lists {
    /// Takes in what the database has. What was pushed in the meantime stays behind it.
    pub(super) fn store(&mut self, address: u64, keys: Vec<Box<[u8]>>) {
        self.0.entry(address).or_default().stored.get_or_insert(keys);
    }

    /// Calls `visit` with each key of a list. `false` if the database has to be asked first.
    pub(super) fn visit(&self, address: u64, visit: &mut dyn FnMut(&[u8])) -> bool {
        let Some(list) = self.0.get(&address) else { return false };
        let Some(stored) = &list.stored else { return false };
        stored.iter().chain(&list.pushed).for_each(|key| visit(key));
        true
    }

    /// The lists that a group of changes touches, as they are after it. Nothing changes here.
    ///
    /// # Errors
    ///
    /// The addresses that the database has to be asked for are `needed`; or a key is not where the group says.
    pub(super) fn draft(&self, changes: &[Change<'_>], needed: &mut Vec<u64>) -> Result<Self, Paused> {
        let mut draft = Self::default();
        for change in changes {
            let (address, change) = match *change {
                Change::Push { address, key } => (address, Step::Push(key)),
                Change::Remove { address, rank, key } => (address, Step::Take { rank, old: key, key: None }),
                Change::Replace { address, rank, old, key } => {
                    (address, Step::Take { rank, old, key: Some(key) })
                }
                Change::Clear => return Err(Paused::Scan),
            };
            let list = match draft.0.entry(address) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => entry.insert(self.0.get(&address).cloned().unwrap_or_default()),
            };
            change.make(address, list, needed)?;
        }
        if needed.is_empty() { Ok(draft) } else { Err(Paused::Need) }
    }

    /// Takes over lists that were drafted. What they were before.
    pub(super) fn install(&mut self, draft: Self) -> Before {
        Before(draft.0.into_iter().map(|(address, list)| (address, self.0.insert(address, list))).collect())
    }

    /// Takes back what was installed last.
    pub(super) fn take_back(&mut self, before: Before) {
        for (address, list) in before.0 {
            match list {
                Some(list) => self.0.insert(address, list),
                None => self.0.remove(&address),
            };
        }
    }

    /// Puts all that changed into a batch.
    pub(super) fn put(&self, generation: u64, batch: &mut WriteBatch) {
        self.put_others(generation, &Self::default(), batch);
    }

    /// Puts all that changed into a batch, but for these lists.
    pub(super) fn put_others(&self, generation: u64, these: &Self, batch: &mut WriteBatch) {
        for (&address, list) in self.0.iter().filter(|(address, _)| !these.0.contains_key(address)) {
            list.put(rows::list(generation, address), batch);
        }
    }

    /// The addresses of lists that change.
    pub(super) fn changed(&self) -> impl Iterator<Item = u64> {
        let changed = |list: &List| list.rewritten || !list.pushed.is_empty();
        self.0.iter().filter(move |(_, list)| changed(list)).map(|(&address, _)| address)
    }

    /// How many lists there are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

/// Lists as they were before others took their place.
#[derive(Debug)]
pub(super) struct Before(Vec<(u64, Option<List>)>);

impl Before {
    pub(super) fn addresses(&self) -> impl Iterator<Item = u64> {
        self.0.iter().map(|&(address, _)| address)
    }
}

/// What happens to one list.
enum Step<'k> {
    Push(&'k [u8]),
    /// The key of this rank goes, or another one comes in its place.
    Take {
        rank: usize,
        old: &'k [u8],
        key: Option<&'k [u8]>,
    },
}

impl Step<'_> {
    fn make(&self, address: u64, list: &mut List, needed: &mut Vec<u64>) -> Result<(), Paused> {
        match *self {
            Self::Push(key) => list.pushed.push(key.into()),
            Self::Take { rank, old, key } => {
                let Some(keys) = list.rewrite() else {
                    needed.push(address);
                    return Ok(());
                };
                let found = keys.len();
                let place = keys.get_mut(rank).filter(|place| ***place == *old);
                let place = place.ok_or(Paused::Mismatch { address, found })?;
                match key {
                    Some(key) => *place = key.into(),
                    None => drop(keys.remove(rank)),
                }
            }
        }
        Ok(())
    }
}
