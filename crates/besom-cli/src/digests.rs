//! The digests of a file's keys, each once: all that a filter without a hash index needs of them. Read by one thread,
//! hashed and sorted by all.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};

use besom::{Digest, KeyHasher};

use crate::error::{Failure, Outcome};
use crate::input::{Input, Passed};
use crate::interrupt;
use crate::progress::Progress;

/// Distinct digests, in the order of their upper halves: that of the places in a filter.
pub(crate) struct Digests {
    /// By their first bits; each sorted.
    groups: Vec<Vec<Digest>>,
    pub(crate) passed: Passed,
}

/// Groups, and keys that are handed over at once.
const GROUPS: usize = 256;
const BATCH: usize = 1 << 13;
const BATCH_BYTES: usize = 1 << 20;

/// Keys on their way to those who hash them.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Digests {
    /// Reads all keys of an input. Two keys with one digest are one key to every filter with this hash function.
    pub(crate) fn read<H: KeyHasher>(mut input: Input, hasher: &H) -> Outcome<Self> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let (sender, receiver) = sync_channel(4 * threads);
        let receiver = Mutex::new(receiver);
        let (read, hashed) = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(|| hash_all(&receiver, hasher))).collect();
            let read = hand_over(&mut input, &sender);
            // Those who hash end when nobody is left who could hand something over.
            drop(sender);
            (read, workers.into_iter().map(|worker| worker.join().unwrap_or_default()).collect::<Vec<_>>())
        });
        let keys = read?;
        let groups = sorted(hashed, threads);
        let distinct: usize = groups.iter().map(Vec::len).sum();
        if distinct == 0 {
            return Err(input.empty());
        }
        Ok(Self { groups, passed: Passed { repeated: keys - distinct as u64, blank: input.skipped() } })
    }

    pub(crate) fn len(&self) -> usize {
        self.groups.iter().map(Vec::len).sum()
    }

    /// The groups, one after the other.
    pub(crate) fn groups(&self) -> impl Iterator<Item = &[Digest]> {
        self.groups.iter().map(Vec::as_slice)
    }
}

/// Reads keys and hands them over. How many there were.
fn hand_over(input: &mut Input, sender: &SyncSender<Batch>) -> Outcome<u64> {
    let mut progress = Progress::open();
    progress.begin("reading keys");
    let (mut key, mut batch, mut keys) = (Vec::new(), Batch::default(), 0);
    let mut send = |batch: &mut Batch| {
        progress.count(batch.ends.len() as u64);
        // Nobody ends before this does, unless he panicked.
        sender.send(std::mem::take(batch)).map_err(|_| Failure::Interrupted)
    };
    while interrupt::while_idle(|| input.next(&mut key))? {
        keys += 1;
        batch.bytes.extend_from_slice(&key);
        batch.ends.push(batch.bytes.len());
        if batch.ends.len() == BATCH || batch.bytes.len() >= BATCH_BYTES {
            send(&mut batch)?;
        }
    }
    send(&mut batch)?;
    Ok(keys)
}

/// Hashes what is handed over until there is no more, by groups.
fn hash_all<H: KeyHasher>(batches: &Mutex<Receiver<Batch>>, hasher: &H) -> Vec<Vec<Digest>> {
    let mut groups = vec![Vec::new(); GROUPS];
    loop {
        let batch = batches.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(batch) = batch else { return groups };
        let mut start = 0;
        for end in batch.ends {
            let digest = hasher.digest(&batch.bytes[start..end]);
            groups[(digest.hi >> 56) as usize].push(digest);
            start = end;
        }
    }
}

/// Puts the groups of all threads together, sorted, each digest once.
fn sorted(hashed: Vec<Vec<Vec<Digest>>>, threads: usize) -> Vec<Vec<Digest>> {
    let mut parts: Vec<Vec<Vec<Digest>>> = vec![Vec::new(); GROUPS];
    for groups in hashed {
        groups.into_iter().zip(&mut parts).for_each(|(group, parts)| parts.push(group));
    }
    let work = Mutex::new(parts.into_iter().enumerate());
    let done = Mutex::new(vec![Vec::new(); GROUPS]);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let next = work.lock().unwrap_or_else(PoisonError::into_inner).next();
                    let Some((place, parts)) = next else { break };
                    let mut group = parts.concat();
                    group.sort_unstable_by_key(|digest| digest.to_u128());
                    group.dedup();
                    done.lock().unwrap_or_else(PoisonError::into_inner)[place] = group;
                }
            });
        }
    });
    done.into_inner().unwrap_or_else(PoisonError::into_inner)
}
