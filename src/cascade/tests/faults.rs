//! Catches: a key that is lost, or a panic of the library, when the remote fails before, in the middle of or after acting,
//! panics, or answers with wrong, missing, surplus or reordered keys; disagreement that no way back leads out of.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;
use crate::{Change, Remote, Resync};

type Answer<T> = Result<T, AdaptiveError<FaultError<MissingEntry>>>;

/// A cascade on a remote that fails and lies, beside the keys that are stored for certain.
struct Tried<F> {
    filter: Cascade<F>,
    remote: TestRemote,
    stored: HashSet<u64>,
    events: Events,
}

/// What happened, to see that everything did.
#[derive(Debug, Default, Clone, Copy)]
struct Events {
    faults: u64,
    inconsistent: u64,
    agreed: u64,
    in_question: u64,
    rebuilds: u64,
}

impl<F: LevelFilter> Tried<F> {
    fn new(seed: u64, random: &mut Random, faults: Faults) -> Self {
        let capacity = 1 + random.below(80) as usize;
        let rate = 0.5_f64.powi(1 + random.below(6) as i32);
        let builder = Cascade::<F>::builder().capacity(capacity).false_positive_rate(rate).seed(seed);
        let filter = builder.levels(1 + random.below(4) as usize).build().unwrap();
        let remote = Faulty::new(MemoryRemote::new(), faults);
        Self { filter, remote, stored: HashSet::new(), events: Events::default() }
    }

    /// All that can be seen of the filter.
    fn seen(&self) -> impl PartialEq + use<F> {
        let levels =
            self.filter.levels().iter().map(|level| (level.keys, level.dead_cells)).collect::<Vec<_>>();
        let keys = (0..170_u64).chain(1_000..1_170);
        let answers: Vec<bool> = keys.map(|key| self.filter.contains(&key)).collect();
        (self.filter.ledger.clone(), levels, answers)
    }

    /// Runs an operation; `None` if the remote panicked. An error or a panic must leave the filter as it was.
    fn run<T>(
        &mut self,
        run: impl FnOnce(&mut Cascade<F>, &mut TestRemote) -> Answer<T>,
    ) -> Option<Answer<T>> {
        let before = self.seen();
        let (filter, remote) = (&mut self.filter, &mut self.remote);
        let answer = catch_unwind(AssertUnwindSafe(|| run(filter, remote))).ok();
        if !matches!(answer, Some(Ok(_))) {
            assert!(self.seen() == before, "an error changed the filter");
        }
        if let Some(Err(AdaptiveError::Inconsistent { expected, found, .. })) = answer {
            assert_ne!(expected, found);
            self.events.inconsistent += 1;
        }
        answer
    }

    fn insert(&mut self, key: u64) -> bool {
        let done = matches!(self.run(|filter, remote| filter.insert(&key, remote)), Some(Ok(_)));
        if done {
            self.stored.insert(key);
        }
        done
    }

    /// A key whose removal failed is stored or not: nothing is promised of it.
    fn remove(&mut self, key: u64) -> bool {
        self.stored.remove(&key);
        matches!(self.run(|filter, remote| filter.remove(&key, remote)), Some(Ok(_)))
    }

    fn adapt(&mut self, stranger: u64) -> bool {
        matches!(self.run(|filter, remote| filter.adapt(&stranger, remote)), Some(Ok(_)))
    }

    fn resync(&mut self, addresses: &[u64]) {
        match self.run(|filter, remote| filter.resync(addresses, remote)) {
            Some(Ok(Resync::Agreed)) => self.events.agreed += 1,
            Some(Ok(Resync::InQuestion { slots })) => {
                assert!(slots > 0);
                self.events.in_question += 1;
            }
            Some(Err(AdaptiveError::Inconsistent { .. })) => {
                panic!("a resync leads out of this, or says in question")
            }
            _ => {}
        }
    }

    fn address(&self, key: u64) -> u64 {
        self.filter.ledger.address(self.filter.digest(&key.to_le_bytes()))
    }

    fn step(&mut self, random: &mut Random) {
        let key = random.below(2 * self.filter.capacity() as u64 + 10);
        let (key, done) = match random.below(10) {
            0..4 => (key, self.insert(key)),
            4 => (key, self.remove(key)),
            _ => (key + 1_000, self.adapt(key + 1_000)),
        };
        if !done && random.below(4) > 0 {
            self.resync(&[self.address(key)]);
        }
        self.check();
    }

    /// No key that is stored is rejected, whatever the remote did.
    fn check(&self) {
        self.filter.verify().unwrap();
        for key in &self.stored {
            assert!(self.filter.contains(key), "{key} is lost");
        }
    }

    /// The faults are over: a resync of all lists, or else a rebuild from the stored keys, leads back.
    fn come_home(&mut self) {
        self.remote.faults.set_one_in(0);
        let lists: Vec<u64> = (0..self.filter.ledger.lists()).collect();
        if self.filter.resync(&lists, &mut self.remote) != Ok(Resync::Agreed) {
            self.events.rebuilds += 1;
            let mut keys = self.stored.iter();
            let scan = |visit: &mut dyn FnMut(&[u8]) -> std::ops::ControlFlow<()>| {
                let _ = keys.try_for_each(|key| visit(&key.to_le_bytes()));
                Ok::<_, std::io::Error>(())
            };
            self.filter.rebuild(scan, &mut self.remote).unwrap();
        }
        self.filter.verify_remote(&mut self.remote).unwrap();
        self.check();
    }
}

fn survives<F: LevelFilter>(kinds: &[Fault]) -> Events {
    let mut total = Events::default();
    for seed in 0..45 {
        let mut random = Random::new(seed);
        let one_in = [3, 10, 40][seed as usize % 3];
        let mut tried = Tried::<F>::new(seed, &mut random, Faults::random(seed, one_in, kinds));
        for _ in 0..4 {
            tried.remote.faults.set_one_in(one_in);
            (0..150).for_each(|_| tried.step(&mut random));
            tried.come_home();
        }
        for &kind in kinds {
            assert!(one_in > 3 || tried.remote.faults.count(kind) > 0, "{kind:?} did not happen");
        }
        let Events { inconsistent, agreed, in_question, rebuilds, .. } = tried.events;
        total.faults += tried.remote.faults.total();
        total.inconsistent += inconsistent;
        total.agreed += agreed;
        total.in_question += in_question;
        total.rebuilds += rebuilds;
    }
    println!("{total:?}");
    total
}

fn survives_everything<F: LevelFilter>() {
    for kinds in [&Fault::HONEST[..], &Fault::ALL] {
        let events = survives::<F>(kinds);
        assert!(events.faults > 1_500 && events.inconsistent > 50 && events.agreed > 300, "{events:?}");
        assert!(events.in_question > 10 && events.rebuilds > 5, "{events:?}");
    }
}

#[test]
fn adaptive_bloom_filters_survive_remotes_that_fail_and_lie() {
    survives_everything::<BloomFilter>();
}

#[test]
fn cascades_of_blocked_bloom_filters_survive_remotes_that_fail_and_lie() {
    survives_everything::<BlockedBloomFilter>();
}

#[test]
fn cascades_of_quotient_filters_survive_remotes_that_fail_and_lie() {
    survives_everything::<QuotientFilter>();
}

/// A full cascade whose cells are shared.
fn filled<F: LevelFilter>(seed: u64) -> Tried<F> {
    let builder = Cascade::<F>::builder().capacity(60).false_positive_rate(0.25).seed(seed);
    let (filter, remote) = (builder.build().unwrap(), no_faults());
    let mut tried = Tried { filter, remote, stored: HashSet::new(), events: Events::default() };
    (0..50).for_each(|key| assert!(tried.insert(key)));
    tried
}

/// A repair moves the keys of a home down. It would lose one that the list lacks.
#[test]
fn a_repair_from_a_list_that_lacks_a_key_is_refused() {
    for seed in 0..20 {
        let mut tried = filled::<BloomFilter>(seed);
        for stranger in 1_000..1_200_u64 {
            tried.remote.faults.light_fuse(0, Fault::Missing);
            tried.adapt(stranger);
            tried.remote.faults.put_out();
        }
        tried.check();
        assert!(tried.events.inconsistent > 10, "{:?}", tried.events);
        tried.filter.verify_remote(&mut tried.remote).unwrap();
    }
}

/// Every kind of disagreement that a list can show, and a scan.
#[test]
fn what_does_not_belong_into_a_list_is_noticed() {
    let mut tried = filled::<BloomFilter>(3);
    let lists = tried.filter.ledger.lists();
    let address = tried.address(7);
    let foreign =
        (5_000..).find(|&key| tried.address(key) != address && tried.filter.contains(&key)).unwrap();
    let unknown =
        (5_000..).find(|&key| tried.address(key) == address && !tried.filter.contains(&key)).unwrap();
    let accepted =
        (5_000..).find(|&key| tried.address(key) == address && tried.filter.contains(&key)).unwrap();
    for (at, key) in
        [(address, 7), (address, foreign), (address, unknown), (address, accepted), (lists + 5, foreign)]
    {
        tried.remote.inner.apply(&[Change::Push { address: at, key: &key.to_le_bytes() }]).unwrap();
        let answer = tried.filter.verify_remote(&mut tried.remote);
        assert!(matches!(answer, Err(AdaptiveError::Inconsistent { .. })), "{key} at {at}: {answer:?}");
        if at == address {
            assert!(!tried.remove(7) && tried.stored.insert(7));
            assert_eq!(tried.events.inconsistent, 1, "{key} at {at}");
        }
        tried.events = Events::default();
        // The way back: what does not belong is taken out, what does is taken in.
        assert_eq!(
            tried.filter.resync(&[address, at], &mut tried.remote),
            Ok(Resync::Agreed),
            "{key} at {at}"
        );
        tried.filter.verify_remote(&mut tried.remote).unwrap();
        tried.check();
        assert_eq!(tried.filter.len(), 50 + usize::from(key == unknown || key == accepted));
        if tried.filter.len() > 50 {
            assert!(tried.remove(key));
        }
        assert_eq!((tried.filter.len(), tried.remote.inner.len()), (50, 50));
    }
}

impl<F: LevelFilter> Tried<F> {
    /// Behind the filter's back, puts one key in the place of another.
    fn swap(&mut self, address: u64, old: u64, new: u64) {
        let [old, key] = [old, new].map(u64::to_le_bytes);
        let mut keys = Vec::new();
        self.remote.inner.read(address, &mut |stored| keys.push(stored.to_vec())).unwrap();
        let rank = keys.iter().position(|stored| stored[..] == old).unwrap();
        self.remote.inner.apply(&[Change::Replace { address, rank, old: &old, key: &key }]).unwrap();
    }

    /// Behind the filter's back, puts a key at the end of its list.
    fn slip_in(&mut self, key: u64) {
        let push = Change::Push { address: self.address(key), key: &key.to_le_bytes() };
        self.remote.inner.apply(&[push]).unwrap();
    }

    fn mark(&self, key: u64) -> u8 {
        self.filter.digest(&key.to_le_bytes()).lo as u8 | 1
    }
}

/// Keys that make the right sum although they are the wrong ones.
#[test]
fn another_key_in_the_place_of_one_is_noticed_even_if_the_sum_is_right() {
    for (home, known) in [(true, false), (false, true), (false, false)] {
        let mut tried = filled::<BloomFilter>(4);
        let like_7 = |tried: &Tried<BloomFilter>, key: u64| {
            tried.mark(key) == tried.mark(7)
                && (tried.address(key) == tried.address(7)) == home
                && tried.filter.contains(&key) == known
        };
        let other = (5_000..).find(|&key| like_7(&tried, key)).unwrap();
        tried.swap(tried.address(7), 7, other);
        let neighbour = (1..50).find(|&key| key != 7 && tried.address(key) == tried.address(7)).unwrap();
        assert!(!tried.remove(neighbour) && tried.stored.insert(neighbour));
        assert_eq!(tried.events.inconsistent, 1, "home {home}, known {known}");
        assert!(tried.filter.verify_remote(&mut tried.remote).is_err());
        tried.come_home();
        assert_eq!(tried.events.rebuilds, 1);
    }
}

/// All keys are there, and two of them not where they belong.
#[test]
fn keys_in_each_others_lists_are_noticed() {
    let mut tried = filled::<BloomFilter>(5);
    let other = (0..50).find(|&key| tried.address(key) != tried.address(7)).unwrap();
    let lists = [7, other].map(|key| tried.address(key));
    tried.swap(lists[0], 7, other);
    tried.swap(lists[1], other, 7);
    assert!(tried.filter.verify_remote(&mut tried.remote).is_err());
    // A rebuild comes across them, even if no other operation does.
    let elsewhere = |tried: &Tried<BloomFilter>, key| !lists.contains(&tried.address(key));
    for stranger in 1_000..20_000 {
        if elsewhere(&tried, stranger) && !tried.adapt(stranger) {
            break;
        }
    }
    assert_eq!(tried.events.inconsistent, 1);
    // And so does a scan, for something in a third list that only a scan can settle.
    let accepted = |&key: &u64| elsewhere(&tried, key) && tried.filter.contains(&key);
    let accepted = (50_000..).find(accepted).unwrap();
    tried.slip_in(accepted);
    let answer = tried.filter.resync(&[tried.address(accepted)], &mut tried.remote);
    assert!(matches!(answer, Ok(Resync::InQuestion { .. })), "{answer:?}");
    tried.check();
}

/// A level that is full of removed keys makes room by a rebuild for a key that is taken in, and leaves out what the list
/// has too much.
#[test]
fn a_key_is_taken_in_by_a_rebuild_where_there_is_no_room_otherwise() {
    let mut tried = filled::<BloomFilter>(6);
    (50..59).for_each(|key| assert!(tried.insert(key)));
    // What a Bloom filter cannot remove takes up room until the next rebuild.
    (100..104).for_each(|key| assert!(tried.insert(key) && tried.remove(key)));
    assert_eq!(tried.filter.levels()[0].keys, tried.filter.levels()[0].capacity);
    let rebuilds = tried.filter.stats().rebuilds;
    let unknown = |&key: &u64| tried.address(key) == tried.address(7) && !tried.filter.contains(&key);
    let unknown = (5_000..).find(unknown).unwrap();
    [7, unknown, 7, unknown].into_iter().for_each(|key| tried.slip_in(key));
    assert_eq!(tried.filter.resync(&[tried.address(7)], &mut tried.remote), Ok(Resync::Agreed));
    tried.filter.verify_remote(&mut tried.remote).unwrap();
    tried.check();
    assert!(tried.filter.contains(&unknown));
    assert_eq!((tried.filter.len(), tried.remote.inner.len()), (60, 60));
    assert_eq!(tried.filter.stats().rebuilds, rebuilds + 1);
}

/// Nothing of this crate loses a key; should memory be corrupted, this is where it shows.
#[test]
fn a_key_that_the_filter_lost_is_noticed() {
    let mut tried = filled::<QuotientFilter>(7);
    tried.filter.levels.remove(tried.filter.digest(&7_u64.to_le_bytes()));
    assert!(!tried.filter.contains(&7_u64));
    let answer = tried.filter.verify_remote(&mut tried.remote);
    assert!(matches!(answer, Err(AdaptiveError::Inconsistent { .. })), "{answer:?}");
}

/// A key that the remote lost is in question, and stays accepted until a rebuild.
#[test]
fn a_key_that_the_remote_lost_is_in_question_until_a_rebuild() {
    for seed in 0..10 {
        let mut tried = filled::<QuotientFilter>(seed);
        let list = tried.address(7);
        let mut keys = Vec::new();
        tried.remote.read(list, &mut |key| keys.push(key.to_vec())).unwrap();
        let rank = keys.iter().position(|key| key[..] == 7_u64.to_le_bytes()).unwrap();
        let lost = Change::Remove { address: list, rank, key: &keys[rank] };
        tried.remote.inner.apply(&[lost]).unwrap();
        assert!(tried.filter.verify_remote(&mut tried.remote).is_err());
        for addresses in [&[list][..], &[]] {
            let answer = tried.filter.resync(addresses, &mut tried.remote);
            let expected =
                if addresses.is_empty() { Resync::Agreed } else { Resync::InQuestion { slots: 1 } };
            assert_eq!(answer, Ok(expected));
        }
        tried.check();
        tried.come_home();
        assert_eq!((tried.events.rebuilds, tried.filter.len(), tried.remote.inner.len()), (1, 50, 50));
    }
}

/// A group that was made although the remote reported an error, again and again, for every operation and access.
#[test]
fn time_outs_are_overcome_one_by_one() {
    for fault in [Fault::FailAfter, Fault::PanicAfter] {
        let mut tried = filled::<QuotientFilter>(1);
        for key in 100..109_u64 {
            tried.remote.faults.light_fuse(u64::from(tried.filter.contains(&key)), fault);
            assert!(!tried.insert(key));
            assert_eq!(tried.filter.len() as u64, key - 50);
            // Once more by mistake: the key is in the list twice now, or the disagreement is noticed.
            tried.insert(key);
            tried.resync(&[tried.address(key)]);
            assert!(tried.insert(key));
            tried.filter.verify_remote(&mut tried.remote).unwrap();
            assert_eq!(tried.filter.len() as u64, key - 49);
        }
        assert_eq!(tried.events.agreed, 9);
    }
}

#[test]
fn a_key_that_finds_no_room_stays_in_the_remote() {
    let mut tried = filled::<BloomFilter>(2);
    (50..60).for_each(|key| assert!(tried.insert(key)));
    let address = tried.address(70);
    tried.remote.inner.apply(&[Change::Push { address, key: &70_u64.to_le_bytes() }]).unwrap();
    let answer = tried.filter.resync(&[address], &mut tried.remote);
    assert!(matches!(answer, Err(AdaptiveError::Full(_))), "{answer:?}");
    tried.check();
}

#[test]
fn a_foreign_remote_is_noticed() {
    let mut tried = filled::<BloomFilter>(1);
    tried.remote = no_faults();
    let error = (100..10_000_u64).find_map(|key| tried.filter.adapt(&key, &mut tried.remote).err());
    assert!(matches!(error, Some(AdaptiveError::Inconsistent { .. })), "{error:?}");
    tried.check();
    assert_eq!(tried.filter.len(), 50);
}
