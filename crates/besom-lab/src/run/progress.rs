//! One line on the terminal: how far, and how long still. Silent where there is no terminal; the journal tells as much
//! there.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// Counts finished work and estimates the rest.
#[derive(Debug)]
pub struct Progress {
    tasks: usize,
    done: usize,
    cost: f64,
    spent: f64,
    start: Instant,
    current: String,
    shown: bool,
}

impl Progress {
    /// Nothing done yet of this many tasks of so much cost together. Shown if that is `wanted` and there is a terminal.
    #[must_use]
    pub fn new(tasks: usize, cost: f64, wanted: bool) -> Self {
        let shown = wanted && io::stderr().is_terminal();
        Self { tasks, done: 0, cost, spent: 0.0, start: Instant::now(), current: String::new(), shown }
    }

    /// A task has begun.
    pub fn started(&mut self, experiment: &str, task: &str) {
        self.current = format!("{experiment}: {task}");
        self.show();
    }

    /// A task of this cost has ended.
    pub fn finished(&mut self, cost: f64) {
        self.done += 1;
        self.spent += cost;
        self.show();
    }

    /// Ends the line.
    pub fn done(&mut self) {
        if self.shown {
            let _ = writeln!(io::stderr());
        }
    }

    fn show(&self) {
        if !self.shown {
            return;
        }
        let line = self.line(self.start.elapsed());
        let mut stderr = io::stderr().lock();
        // A terminal that has gone away is no reason to stop measuring.
        let _ = write!(stderr, "\r\x1b[K{line}");
        let _ = stderr.flush();
    }

    fn line(&self, elapsed: Duration) -> String {
        let share = if self.cost > 0.0 { self.spent / self.cost } else { 1.0 };
        let left = if share > 0.0 {
            format!("about {} left", clock(elapsed.mul_f64((1.0 - share).max(0.0) / share)))
        } else {
            "time left unknown".into()
        };
        let current: String = self.current.chars().take(60).collect();
        format!(
            "{}/{} tasks, {:.0}%, {} so far, {left} · {current}",
            self.done,
            self.tasks,
            100.0 * share,
            clock(elapsed)
        )
    }
}

fn clock(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds / 3600 {
        0 => format!("{}:{:02}", seconds / 60, seconds % 60),
        hours => format!("{hours}:{:02}:{:02}", seconds / 60 % 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_follows_from_the_cost_done() {
        let mut progress = Progress::new(3, 10.0, false);
        assert!(progress.line(Duration::from_secs(5)).contains("time left unknown"));
        progress.started("e", "t");
        progress.finished(4.0);
        let line = progress.line(Duration::from_secs(60));
        assert!(line.starts_with("1/3 tasks, 40%, 1:00 so far, about 1:30 left · e: t"), "{line}");
        assert_eq!(clock(Duration::from_secs(3671)), "1:01:11");
    }
}
