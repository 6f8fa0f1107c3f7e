//! Catches: a query that waits for a remote.

use std::convert::Infallible;
use std::ops::RangeInclusive;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use besom::{Adaptive, BuildError, Change, Filter, MemoryRemote, Remote, Seed, Sharded, Visit};

use crate::for_every_family;

/// Whoever waits longer than this, on however slow a machine, waits for ever.
const EVER: Duration = Duration::from_secs(120);

/// What a remote is stopped at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gate {
    Read,
    Apply,
    Scan,
}

/// A remote that says when it is asked for something, and waits to be let go on.
struct Gated {
    inner: MemoryRemote,
    entered: Sender<Gate>,
    go: Receiver<()>,
}

impl Gated {
    fn pass(&self, gate: Gate) {
        // A test that has ended waits for nothing.
        if self.entered.send(gate).is_ok() {
            let _ = self.go.recv();
        }
    }
}

impl Remote for Gated {
    type Error = Infallible;

    fn range(&mut self, addresses: RangeInclusive<u64>, visit: &mut Visit<'_>) -> Result<(), Infallible> {
        self.pass(if addresses.end() - addresses.start() < 1 << 50 { Gate::Read } else { Gate::Scan });
        self.inner.range(addresses, visit)
    }

    fn apply(&mut self, changes: &[Change<'_>]) -> Result<(), Infallible> {
        self.pass(Gate::Apply);
        self.inner.apply(changes)
    }
}

/// While one thread is stopped at every gate of the remote in turn, others ask the same shard.
fn nobody_waits<F>(name: &str, build: impl Fn(usize, Seed) -> Result<F, BuildError>)
where
    F: Adaptive + Clone + Send + Sync,
{
    let filter = &Sharded::build(1, 100, |capacity, _| build(capacity, Seed::from(5_u64))).unwrap();
    let (entered, at_gate) = channel();
    let (let_go, go) = channel();
    let mut gates = Vec::new();
    std::thread::scope(|scope| {
        let worker = scope.spawn(move || {
            let mut shared = filter.with_remote(Gated { inner: MemoryRemote::new(), entered, go });
            let inserted: Vec<u64> = (0..120).filter(|key| shared.insert(key).unwrap_or(false)).collect();
            for key in 1_000..1_100_u64 {
                shared.adapt(&key).unwrap();
            }
            for key in &inserted {
                assert!(shared.remove(key).unwrap());
            }
        });
        while let Ok(gate) = at_gate.recv_timeout(EVER) {
            gates.push(gate);
            // Every so often: a thread for every gate would take long.
            if gates.len() % 7 == 1 {
                let (answered, answers) = channel();
                let asking = scope.spawn(move || {
                    let keys: Vec<u64> = (0..200).collect();
                    let single = keys.iter().filter(|key| filter.contains(*key)).count();
                    let mut many = Vec::new();
                    filter.contains_many(&keys, &mut many);
                    let _ = answered.send((single, many.iter().filter(|&&answer| answer).count()));
                });
                let waited = answers.recv_timeout(EVER);
                assert!(waited.is_ok(), "{name}: a query waits for the remote at {gate:?}");
                assert_eq!(waited.map(|(single, many)| single == many), Ok(true));
                asking.join().unwrap();
            }
            let _ = let_go.send(());
        }
        assert!(worker.join().is_ok(), "{name}: the worker failed");
    });
    for gate in [Gate::Read, Gate::Apply] {
        assert!(gates.contains(&gate), "{name} was never stopped at {gate:?}");
    }
    if name.ends_with("growing") && !name.starts_with("broom") {
        assert!(gates.contains(&Gate::Scan), "{name} never grew");
    }
}

#[test]
fn queries_never_wait_for_the_remote() {
    for_every_family!(nobody_waits);
}
