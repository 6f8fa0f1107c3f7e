//! The time that a thread spends on a processor.

use std::time::{Duration, Instant};

/// Measures the processor time of the thread that asks, so that whoever else uses the machine costs the measurement
/// its caches and not its time. Elapsed time where the system does not tell (anywhere but on Linux).
/// Exact to a tenth of a millisecond or so.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    start: Instant,
    on_processor: Option<Duration>,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self { start: Instant::now(), on_processor: on_processor() }
    }

    /// Since the start, of the thread that started it.
    pub(crate) fn elapsed(&self) -> Duration {
        let spent = self.on_processor.zip(on_processor()).map(|(before, now)| now.saturating_sub(before));
        spent.unwrap_or_else(|| self.start.elapsed())
    }

    /// What it measures on this machine, in words.
    pub(crate) fn describe() -> &'static str {
        if on_processor().is_some() { "processor time of one thread" } else { "elapsed time" }
    }
}

/// What this thread has spent on a processor so far. The first number of the file is nanoseconds, as of the last time
/// that the thread left its processor: so it leaves it for a moment, or a timer tick would be missing.
fn on_processor() -> Option<Duration> {
    std::thread::sleep(Duration::from_nanos(1));
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches: elapsed time counted for processor time, and a unit mistaken for another.
    #[test]
    fn sleep_costs_no_processor_time_and_work_does() {
        let clock = Clock::start();
        std::thread::sleep(Duration::from_millis(300));
        let slept = clock.elapsed();
        if on_processor().is_some() {
            assert!(slept < Duration::from_millis(150), "{slept:?}");
        }
        let worked = Clock::start();
        let rounds = (0_u64..).take_while(|_| worked.start.elapsed() < Duration::from_millis(400)).count();
        let spent = worked.elapsed();
        assert!(
            spent > Duration::ZERO && spent < worked.start.elapsed() + Duration::from_millis(20),
            "{rounds}: {spent:?}"
        );
    }
}
