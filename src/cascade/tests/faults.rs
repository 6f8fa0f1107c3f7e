//! Catches: a key that is lost, or a panic of the library, when the remote fails before, in the middle of or after
//! acting, panics, or answers with wrong, missing, surplus or reordered keys; disagreement that no way back leads out
//! of.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;
use crate::{Authority, Change, Remote, Settled};

type Answer<T> = Result<T, AdaptiveError<FaultError<Infallible>>>;

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

    fn settle(&mut self, key: u64) {
        let addresses = self.addresses(key);
        match self.run(|filter, remote| filter.settle(addresses, Authority::Partial, remote)) {
            Some(Ok(Settled::Agreed)) => self.events.agreed += 1,
            Some(Ok(Settled::InQuestion { slots })) => {
                assert!(slots > 0);
                self.events.in_question += 1;
            }
            _ => {}
        }
    }

    fn list(&self, key: u64) -> u64 {
        self.filter.ledger.list(self.filter.digest(&key.to_le_bytes()))
    }

    fn addresses(&self, key: u64) -> std::ops::RangeInclusive<u64> {
        self.filter.home(self.filter.digest(&key.to_le_bytes())).unwrap()
    }

    /// Behind the filter's back, the remote gets a key, or loses one.
    fn change(&mut self, key: u64, insert: bool) {
        let (address, bytes) = (self.filter.digest(&key.to_le_bytes()).hi, key.to_le_bytes());
        let change = match insert {
            true => Change::Insert { address, key: &bytes },
            false => Change::Remove { address, key: &bytes },
        };
        self.remote.inner.apply(&[change]).unwrap();
    }

    fn step(&mut self, random: &mut Random) {
        let key = random.below(2 * self.filter.capacity() as u64 + 10);
        let (key, done) = match random.below(10) {
            0..4 => (key, self.insert(key)),
            4 => (key, self.remove(key)),
            _ => (key + 1_000, self.adapt(key + 1_000)),
        };
        if !done && random.below(4) > 0 {
            self.settle(key);
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

    /// The faults are over, and everything is settled: by what the remote has, or from the stored keys.
    fn come_home(&mut self) {
        self.remote.faults.set_one_in(0);
        let all = 0..=u64::MAX;
        if self.filter.settle(all.clone(), Authority::Partial, &mut self.remote) != Ok(Settled::Agreed) {
            self.events.rebuilds += 1;
            let settled = self.filter.settle(all, Authority::Authoritative, &mut self.remote);
            if matches!(settled, Err(AdaptiveError::Full(_))) {
                let mut keys = self.stored.iter();
                let scan = |visit: &mut dyn FnMut(&[u8]) -> std::ops::ControlFlow<()>| {
                    let _ = keys.try_for_each(|key| visit(&key.to_le_bytes()));
                    Ok::<_, std::io::Error>(())
                };
                self.filter.rebuild(scan, &mut self.remote).unwrap();
            } else {
                assert_eq!(settled, Ok(Settled::Agreed));
            }
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
fn keys_that_the_filter_does_not_know_are_noticed_and_taken_in() {
    let mut tried = filled::<BloomFilter>(3);
    let list = tried.list(7);
    let unknown = (5_000..).find(|&key| tried.list(key) == list && !tried.filter.contains(&key)).unwrap();
    let accepted = (5_000..).find(|&key| tried.list(key) == list && tried.filter.contains(&key)).unwrap();
    for key in [unknown, accepted] {
        tried.change(key, true);
        let answer = tried.filter.verify_remote(&mut tried.remote);
        assert!(matches!(answer, Err(AdaptiveError::Inconsistent { .. })), "{key}: {answer:?}");
        assert!(!tried.remove(7) && tried.stored.insert(7));
        assert_eq!(tried.events.inconsistent, 1, "{key}");
        tried.events = Events::default();
        // A key that is rejected cannot be known. One that is accepted may be.
        let settled = tried.filter.settle(tried.addresses(7), Authority::Partial, &mut tried.remote);
        assert_eq!(settled == Ok(Settled::Agreed), key == unknown, "{key}: {settled:?}");
        let settled = tried.filter.settle(tried.addresses(7), Authority::Authoritative, &mut tried.remote);
        assert_eq!(settled, Ok(Settled::Agreed), "{key}");
        tried.filter.verify_remote(&mut tried.remote).unwrap();
        tried.check();
        assert_eq!(tried.filter.len(), 51);
        assert!(tried.remove(key));
        assert_eq!((tried.filter.len(), tried.remote.inner.len()), (50, 50));
    }
    // A key at an address that is not its own.
    let address = *tried.addresses(7).start();
    tried.remote.inner.apply(&[Change::Insert { address, key: b"elsewhere" }]).unwrap();
    for authority in [Authority::Partial, Authority::Authoritative] {
        let answer = tried.filter.settle(tried.addresses(7), authority, &mut tried.remote);
        assert!(matches!(answer, Err(AdaptiveError::Inconsistent { .. })), "{answer:?}");
    }
}

/// A row that was committed before the filter learnt of the key is no item of its own.
#[test]
fn a_row_that_was_written_before_is_not_taken_for_a_stored_key() {
    for seed in 0..30 {
        let mut tried = filled::<QuotientFilter>(seed);
        let accepted = (5_000..).find(|&key| tried.filter.contains(&key)).unwrap();
        tried.change(accepted, true);
        assert!(tried.filter.insert(&accepted, &mut tried.remote).unwrap());
        assert!(!tried.filter.insert(&accepted, &mut tried.remote).unwrap());
        tried.filter.verify_remote(&mut tried.remote).unwrap();
        for key in 0..50 {
            assert!(tried.remove(key));
            assert!(tried.filter.contains(&accepted), "it went with another key");
        }
        // And the row of a key that the filter has never heard of is removed, and nothing else.
        let other = (5_000..).find(|&key| key != accepted && tried.filter.contains(&key)).unwrap();
        tried.change(other, true);
        assert!(!tried.filter.remove(&other, &mut tried.remote).unwrap());
        assert_eq!((tried.filter.len(), tried.remote.inner.len()), (1, 1));
        // A caller who has removed the row already, and says so.
        tried.change(accepted, false);
        assert!(!tried.filter.remove(&accepted, &mut tried.remote).unwrap());
        assert!(tried.filter.remove_stored(&accepted, &mut tried.remote).unwrap());
        assert_eq!(tried.filter.len(), 0);
    }
}

/// Keys that make the right sum although they are the wrong ones.
#[test]
fn another_key_in_the_place_of_one_is_noticed_even_if_the_sum_is_right() {
    let mut tried = filled::<BloomFilter>(4);
    let mark = |tried: &Tried<BloomFilter>, key: u64| tried.filter.digest(&key.to_le_bytes()).lo as u8 | 1;
    let like_7 = |tried: &Tried<BloomFilter>, key: u64| {
        mark(tried, key) == mark(tried, 7) && tried.list(key) == tried.list(7) && !tried.filter.contains(&key)
    };
    let other = (5_000..).find(|&key| like_7(&tried, key)).unwrap();
    tried.change(7, false);
    tried.change(other, true);
    let neighbour = (0..50).find(|&key| key != 7 && tried.list(key) == tried.list(7)).unwrap();
    assert!(!tried.remove(neighbour) && tried.stored.insert(neighbour));
    assert_eq!(tried.events.inconsistent, 1);
    assert!(tried.filter.verify_remote(&mut tried.remote).is_err());
    // As many keys, and others: what came is taken in, what is missing stays.
    let settled = tried.filter.settle(tried.addresses(7), Authority::Partial, &mut tried.remote);
    assert!(matches!(settled, Ok(Settled::InQuestion { .. })), "{settled:?}");
    assert!(tried.filter.contains(&7_u64) && tried.filter.contains(&other));
}

/// A level that is full of removed keys makes room by a rebuild for a key that is taken in.
#[test]
fn a_key_is_taken_in_by_a_rebuild_where_there_is_no_room_otherwise() {
    let mut tried = filled::<BloomFilter>(6);
    (50..59).for_each(|key| assert!(tried.insert(key)));
    // What a Bloom filter cannot remove takes up room until the next rebuild.
    (100..104).for_each(|key| assert!(tried.insert(key) && tried.remove(key)));
    assert_eq!(tried.filter.levels()[0].keys, tried.filter.levels()[0].capacity);
    let rebuilds = tried.filter.stats().rebuilds;
    let unknown = |&key: &u64| tried.list(key) == tried.list(7) && !tried.filter.contains(&key);
    let unknown = (5_000..).find(unknown).unwrap();
    tried.change(unknown, true);
    let settled = tried.filter.settle(tried.addresses(7), Authority::Partial, &mut tried.remote);
    assert_eq!(settled, Ok(Settled::Agreed));
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

/// A key that the remote lost is in question, and stays accepted until a read with authority.
#[test]
fn a_key_that_the_remote_lost_is_in_question() {
    for seed in 0..10 {
        let mut tried = filled::<QuotientFilter>(seed);
        tried.change(7, false);
        assert!(tried.filter.verify_remote(&mut tried.remote).is_err());
        for addresses in [tried.addresses(7), 0..=u64::MAX] {
            let answer = tried.filter.settle(addresses, Authority::Partial, &mut tried.remote);
            assert_eq!(answer, Ok(Settled::InQuestion { slots: 1 }));
        }
        tried.check();
        let settled = tried.filter.settle(tried.addresses(7), Authority::Authoritative, &mut tried.remote);
        assert_eq!((settled, tried.filter.len()), (Ok(Settled::Agreed), 49));
        assert!(tried.stored.remove(&7));
        tried.check();
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
            assert!(tried.insert(key));
            tried.filter.verify_remote(&mut tried.remote).unwrap();
            assert_eq!(tried.filter.len() as u64, key - 49);
        }
    }
}

#[test]
fn a_key_that_finds_no_room_stays_in_the_remote() {
    let mut tried = filled::<BloomFilter>(2);
    (50..60).for_each(|key| assert!(tried.insert(key)));
    let unknown = (70..).find(|key| !tried.filter.contains(key)).unwrap();
    tried.change(unknown, true);
    let answer = tried.filter.settle(tried.addresses(unknown), Authority::Partial, &mut tried.remote);
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
