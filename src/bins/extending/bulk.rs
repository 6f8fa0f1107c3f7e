//! Filters of many keys at once.

use crate::filter::clear_remote;
use crate::homes::{Failed, GROUP, Gather, Gathered, insert_anywhere};
use crate::scatter::{self, Hashed};
use crate::{AdaptiveError, FullError, Key, KeyHasher, Remote, parallel};

use super::super::ahead::Ahead;
use super::super::bulk::{Cut, fill};
use super::ExtendingBins;

/// From so many keys on, the remote gets them in runs of so many, each in the order of the table.
const RUN: usize = 1 << 18;

impl<H: KeyHasher> ExtendingBins<H> {
    /// The empty filter with all these keys, each once. The remote is emptied first, and has them then.
    pub(crate) fn filled<K, R>(self, keys: &[K], remote: &mut R) -> Result<Self, AdaptiveError<R::Error>>
    where
        K: Key + Sync,
        R: Remote,
    {
        clear_remote(remote)?;
        let units = self.table.bins() * u64::from(self.table.shape().classes);
        let gather = Gather::new(keys, units);
        // Keys that do not all fit may still, since some may come twice.
        let filled = if parallel::threads_for(keys.len()) == 1 && keys.len() <= self.capacity {
            self.filled_in_order(keys.len(), &gather, remote)
        } else {
            self.filled_at_once(keys.len(), &gather, remote)
        };
        filled.map_err(|Failed(error)| error)
    }

    /// On all cores: sorted, and line by line.
    fn filled_at_once<K: Key + Sync, R: Remote>(
        self,
        count: usize,
        gather: &Gather<'_, K>,
        remote: &mut R,
    ) -> Result<Self, Failed<R::Error>> {
        let hasher = &self.hasher;
        let item = |number| gather.item(hasher, number);
        let table = fill(
            self.table,
            count,
            item,
            |items| gather.settle(items),
            |copies, items| copies.tell(items, remote),
        )?;
        let (len, capacity) = (table.len, self.capacity);
        if len > capacity {
            return Err(Failed(FullError { len, capacity }.into()));
        }
        Ok(Self { table, ..self })
    }

    /// On one core insertion is faster than sorting, with lines fetched ahead and the remote told of many keys at once.
    fn filled_in_order<K: Key + Sync, R: Remote>(
        mut self,
        count: usize,
        gather: &Gather<'_, K>,
        remote: &mut R,
    ) -> Result<Self, Failed<R::Error>> {
        let mut items = Vec::with_capacity(GROUP.min(count));
        if count < RUN {
            for start in (0..count).step_by(GROUP) {
                items.clear();
                let numbers = start..(start + GROUP).min(count);
                items.extend(numbers.map(|number| gather.item(&self.hasher, number)));
                self.insert_group(&items, gather, remote)?;
            }
            return Ok(self);
        }
        let cut = Cut::of(&self.table);
        for start in (0..count).step_by(RUN) {
            let item = |number| gather.item(&self.hasher, start + number);
            let run = scatter::by_bucket(cut, RUN.min(count - start), item)?;
            for words in run.chunks(GROUP * Gathered::WORDS) {
                items.clear();
                items.extend(words.chunks_exact(Gathered::WORDS).map(Gathered::load));
                self.insert_group(&items, gather, remote)?;
            }
        }
        Ok(self)
    }

    /// Inserts keys, of which the remote is told at once. Those that are like another one have to be looked for there,
    /// so it is told of all before them first.
    fn insert_group<K: Key, R: Remote>(
        &mut self,
        items: &[Gathered],
        gather: &Gather<'_, K>,
        remote: &mut R,
    ) -> Result<(), Failed<R::Error>> {
        let (mut told, mut done) = (0, 0);
        while done < items.len() {
            let mut ahead =
                Ahead::new(&items[done..], &self.table, |table, item: &Gathered| table.place_of(item.hash()));
            loop {
                let places = ahead.next(&self.table);
                let inserted = self.table.insert_many_new(places);
                done += inserted;
                if inserted < places.len() || places.is_empty() {
                    break;
                }
            }
            let new = &items[told..done];
            gather.copies(new).tell(new, remote)?;
            if let Some(&item) = items.get(done) {
                let insert = |key: &[u8]| insert_anywhere(self, self.hasher.digest(key), key, remote);
                gather.with_key(item, insert).map_err(Failed)?;
                done += 1;
            }
            told = done;
        }
        Ok(())
    }
}
