//! One line on the terminal: what is done, how far, how long still. Silent where there is no terminal.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// How often the line changes.
const PAUSE: Duration = Duration::from_millis(100);
/// What is shown before this much is done would be a guess.
const ENOUGH: f64 = 0.02;

/// Work that is done step by step.
pub(crate) struct Progress {
    total: f64,
    done: f64,
    what: String,
    start: Instant,
    shown: Instant,
    terminal: bool,
}

impl Progress {
    /// So much work, in whatever unit.
    pub(crate) fn new(total: f64) -> Self {
        let start = Instant::now();
        let terminal = io::stderr().is_terminal();
        Self { total: total.max(1.0), done: 0.0, what: String::new(), start, shown: start, terminal }
    }

    /// Work of which nobody knows how much there is.
    pub(crate) fn open() -> Self {
        Self::new(f64::INFINITY)
    }

    /// This many more are done, of work of which nobody knows how much there is.
    pub(crate) fn count(&mut self, done: u64) {
        self.advance(done as f64);
    }

    /// There is more to do than was thought.
    pub(crate) fn more(&mut self, work: f64) {
        self.total += work.max(0.0);
    }

    /// What comes next.
    pub(crate) fn begin(&mut self, what: impl Into<String>) {
        self.what = what.into();
        self.show();
    }

    /// What comes next, to be shown with the next advance.
    pub(crate) fn begin_quietly(&mut self, what: String) {
        self.what = what;
    }

    /// Some of the work is done.
    pub(crate) fn advance(&mut self, work: f64) {
        self.done += work;
        if self.terminal && self.shown.elapsed() >= PAUSE {
            self.show();
        }
    }

    /// This many operations of this kind are done with this filter.
    pub(crate) fn step(&mut self, what: &str, filter: &str, operations: u64) {
        self.begin_quietly(format!("{what} {filter}"));
        self.advance(operations as f64);
    }

    /// Takes the line away.
    pub(crate) fn clear(&self) {
        if self.terminal {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }

    fn show(&mut self) {
        if !self.terminal {
            return;
        }
        self.shown = Instant::now();
        let line = if self.total.is_finite() {
            line(&self.what, self.done / self.total, self.start.elapsed())
        } else {
            format!("{} · {}", self.what, crate::output::thousands(self.done as u64))
        };
        // A terminal that has gone away is no reason to stop.
        let mut stderr = io::stderr().lock();
        let _ = write!(stderr, "\r\x1b[K{line}").and_then(|()| stderr.flush());
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

fn line(what: &str, share: f64, elapsed: Duration) -> String {
    let share = share.clamp(0.0, 1.0);
    let filled = (share * 20.0) as usize;
    let bar: String = (0..20).map(|place| if place < filled { '█' } else { '░' }).collect();
    let left = if share < ENOUGH {
        String::new()
    } else {
        let seconds = elapsed.mul_f64((1.0 - share) / share).as_secs();
        format!(" · about {}:{:02} left", seconds / 60, seconds % 60)
    };
    format!("{bar} {:3.0}%{left} · {what}", 100.0 * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_follows_from_the_time_taken() {
        let text = line("bloom", 0.25, Duration::from_secs(30));
        assert_eq!(text, "█████░░░░░░░░░░░░░░░  25% · about 1:30 left · bloom");
        assert!(!line("bloom", 0.001, Duration::from_secs(1)).contains("left"));
    }
}
