//! A remote that serves old views.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use crate::{Change, Remote, Visit};

/// A remote whose reads can be behind its writes: a replica, a snapshot that was begun before.
///
/// Reads see the remote as it was some groups of changes ago, as far as it is told to lag. Such a view may have as many
/// keys as the filter has items, and yet others. It owes what a [`Remote`] owes only while the lag is 0; with a lag,
/// reads are [`Partial`](crate::Authority::Partial).
///
/// ```
/// use std::ops::ControlFlow;
/// use besom::testing::StaleRemote;
/// use besom::{Change, MemoryRemote, Remote};
///
/// let mut remote = StaleRemote::new(MemoryRemote::new());
/// remote.apply(&[Change::Insert { address: 1, key: b"key" }])?;
/// remote.lag(1);
/// remote.range(0..=9, &mut |_, _| unreachable!("the view is one group old"))?;
/// assert_eq!(remote.stale_reads(), 1);
/// # Ok::<(), std::convert::Infallible>(())
/// ```
#[derive(Debug, Clone)]
pub struct StaleRemote<R> {
    now: R,
    /// The oldest view that is served.
    old: R,
    /// The groups that it lacks.
    lacking: VecDeque<Vec<(bool, u64, Vec<u8>)>>,
    lag: usize,
    stale_reads: u64,
}

impl<R: Remote + Clone> StaleRemote<R> {
    /// Serves `inner` as it is.
    pub fn new(inner: R) -> Self {
        Self { old: inner.clone(), now: inner, lacking: VecDeque::new(), lag: 0, stale_reads: 0 }
    }

    /// Lets reads lag behind by that many groups, as far as they were made from now on.
    pub fn lag(&mut self, groups: usize) {
        self.lag = groups;
    }

    /// What it really holds.
    pub fn now(&self) -> &R {
        &self.now
    }

    /// How many reads were served from a view that lacked a group.
    pub fn stale_reads(&self) -> u64 {
        self.stale_reads
    }

    /// Makes the old view as old as the lag asks for.
    fn catch_up(&mut self) -> Result<(), R::Error> {
        while self.lacking.len() > self.lag {
            let Some(group) = self.lacking.pop_front() else { break };
            let changes: Vec<Change<'_>> = group
                .iter()
                .map(|(insert, address, key)| {
                    let (address, key) = (*address, &key[..]);
                    if *insert { Change::Insert { address, key } } else { Change::Remove { address, key } }
                })
                .collect();
            self.old.apply(&changes)?;
        }
        Ok(())
    }
}

/// The most groups that are kept for old views.
const MOST: usize = 64;

impl<R: Remote + Clone> Remote for StaleRemote<R> {
    type Error = R::Error;

    fn range(&mut self, addresses: RangeInclusive<u64>, visit: &mut Visit<'_>) -> Result<(), R::Error> {
        if self.lag == 0 {
            return self.now.range(addresses, visit);
        }
        self.catch_up()?;
        self.stale_reads += u64::from(!self.lacking.is_empty());
        self.old.range(addresses, visit)
    }

    fn apply(&mut self, changes: &[Change<'_>]) -> Result<(), R::Error> {
        self.now.apply(changes)?;
        let group = changes.iter().map(|change| match *change {
            Change::Insert { address, key } => (true, address, key.to_vec()),
            Change::Remove { address, key } => (false, address, key.to_vec()),
        });
        self.lacking.push_back(group.collect());
        if self.lacking.len() > MOST {
            let lag = std::mem::replace(&mut self.lag, MOST);
            let caught_up = self.catch_up();
            self.lag = lag;
            caught_up?;
        }
        Ok(())
    }
}
