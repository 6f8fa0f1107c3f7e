//! The work of one operation (section 5.3, Theorem 6): slots touched, keys outside the primary table, accesses to
//! the remote.
use crate::game::FreshKeys;
use crate::testing::{Accesses, CountingRemote, Random};
use crate::{Adaptive, BroomFilter, Filter, MemoryRemote, Table};

type Counting = CountingRemote<MemoryRemote>;

/// Accesses of all operations of one kind.
#[derive(Debug, Default)]
struct Cost {
    operations: u64,
    reads: u64,
    groups: u64,
    changes: u64,
    most_reads: u64,
}

impl Cost {
    fn of<T>(&mut self, remote: &mut Counting, operation: impl FnOnce(&mut Counting) -> T) -> T {
        remote.take_accesses();
        let result = operation(remote);
        let Accesses { reads, writes, changes, .. } = remote.take_accesses();
        self.operations += 1;
        self.reads += reads;
        self.groups += writes;
        self.changes += changes;
        self.most_reads = self.most_reads.max(reads);
        result
    }

    fn print(&self, name: &str) {
        let each = |count: u64| count as f64 / self.operations as f64;
        println!(
            "{name:>7}: {:>9} operations, {:.4} reads each ({} at most), {:.4} groups of {:.2} changes",
            self.operations,
            each(self.reads),
            self.most_reads,
            each(self.groups),
            self.changes as f64 / self.groups.max(1) as f64
        );
    }
}

/// Replaces random keys of a full filter, and now and then asks for a fresh one.
fn churn(table: Table, rate: f64, rounds: u64) -> (BroomFilter, [Cost; 3], f64) {
    const N: usize = 59_000;
    let mut remote = Counting::default();
    let builder = BroomFilter::builder().capacity(N).false_positive_rate(rate).max_load(0.9);
    let mut filter = builder.table(table).seed(99_u64).build().unwrap();
    let (mut fresh, mut random) = (FreshKeys::new(5), Random::new(5));
    let [mut inserts, mut removes, mut adapts] = <[Cost; 3]>::default();
    let mut stored: Vec<[u8; 8]> = fresh.by_ref().take(N).collect();
    for key in &stored {
        assert!(inserts.of(&mut remote, |remote| filter.insert(key, remote)).unwrap());
    }
    let mut most_elsewhere = 0.0_f64;
    for round in 0..rounds {
        let (slot, key) = (random.below(N as u64) as usize, fresh.next().unwrap());
        let gone = std::mem::replace(&mut stored[slot], key);
        assert!(removes.of(&mut remote, |remote| filter.remove(&gone, remote)).unwrap());
        assert!(inserts.of(&mut remote, |remote| filter.insert(&key, remote)).unwrap());
        let query = fresh.next().unwrap();
        if filter.contains(&query) {
            adapts.of(&mut remote, |remote| filter.adapt(&query, remote)).unwrap();
        }
        if round % 1000 == 0 {
            most_elsewhere = most_elsewhere.max(filter.levels().elsewhere as f64 / N as f64);
        }
    }
    assert!(stored.iter().all(|key| filter.contains(key)));
    filter.verify().unwrap();
    filter.verify_remote(&mut remote).unwrap();
    (filter, [inserts, removes, adapts], most_elsewhere)
}

fn check(table: Table, rate: f64, rounds: u64) {
    let (filter, [inserts, removes, adapts], most_elsewhere) = churn(table, rate, rounds);
    let levels = filter.levels();
    println!("{table:?}, rate {rate:e}, load 0.90, {} insertions and removals", 2 * rounds);
    println!(
        "most slots touched: {} of {} in the primary table, {} in the secondary; most keys elsewhere {:.2}%, \
         hinted {:.2}%, {} ghosts, {:.3} adaptivity bits per key, phase {}",
        levels.longest_shift,
        levels.bound,
        levels.longest_secondary_shift,
        100.0 * most_elsewhere,
        100.0 * levels.hinted,
        levels.ghosts,
        filter.stats().adaptivity_bits as f64 / filter.len() as f64,
        levels.phase
    );
    inserts.print("insert");
    removes.print("remove");
    adapts.print("adapt");
    assert!(levels.longest_shift <= levels.bound);
    assert!(levels.longest_secondary_shift <= levels.bound);
    assert!(most_elsewhere < 0.05, "{most_elsewhere}");
    let each = |cost: &Cost| cost.reads as f64 / cost.operations.max(1) as f64;
    // An insertion reads if it collides, and, while bits are short, what an adaptation reads if it takes the bits of a
    // ghost.
    assert!(
        each(&inserts) <= rate * 16.0 + 2.0 * filter.levels().ghosts as f64 / filter.len() as f64,
        "{inserts:?}"
    );
    assert!(each(&removes) <= 1.05 && each(&adapts) <= 50.0, "{removes:?} {adapts:?}");
    assert!(inserts.most_reads <= 160 && adapts.most_reads <= 160, "{inserts:?} {adapts:?}");
    assert_eq!((inserts.groups, removes.groups), (inserts.operations, removes.operations));
    assert!(adapts.groups <= adapts.operations);
}

#[test]
fn ten_million_insertions_and_removals_stay_within_bounds() {
    check(Table::Quotient, 1.0 / 256.0, 5_000_000);
}

#[test]
fn large_remainders_stay_within_bounds() {
    check(Table::Quotient, 1e-5, 500_000);
}

#[test]
fn bins_stay_within_bounds() {
    check(Table::Bins, 1.0 / 256.0, 200_000);
}
