//! Where keys and queries come from.

use std::path::Path;

use besom_lab::workload::Format;

use super::queries::{Queries, Recorder, STRANGER};
use crate::error::{Failure, Outcome};
use crate::input::{Input, Passed, too_many};
use crate::interrupt;
use crate::keys::KeySet;

/// Keys, some of them stored, and queries.
pub(super) struct Source {
    /// The stored keys, and behind them, if they came from a trace, the others.
    pub(super) keys: KeySet,
    /// How many are stored.
    pub(super) stored: u32,
    pub(super) queries: Queries,
    /// Queries that came before, if somebody asked for them: none of those that are measured.
    pub(super) sample: Option<Queries>,
    /// Lines that are no key.
    pub(super) passed: Passed,
    /// What it is, in a sentence without an end.
    pub(super) title: String,
}

/// One query in this many is for those who want to know what is asked before they are built.
pub(super) const SAMPLED_IN: u64 = 10;

impl Source {
    /// Takes the first queries away as a sample.
    pub(super) fn hold_out(mut self) -> Outcome<Self> {
        let (sample, rest) = self.queries.clone().split(self.queries.len() / SAMPLED_IN)?;
        (self.sample, self.queries) = (Some(sample), rest);
        Ok(self)
    }

    /// Reads the sample from a file of its own.
    pub(super) fn sampled_from(mut self, path: &Path, format: Option<&Format>) -> Outcome<Self> {
        let (mut input, mut recorder, mut key) = (Input::open(path, format)?, Recorder::new()?, Vec::new());
        while next(&mut input, &mut key, recorder.count(), &mut |_, _| ())? {
            recorder.push(self.keys.number(&key).unwrap_or(STRANGER), &key)?;
        }
        self.sample = Some(recorder.finish(0, 0, self.stored)?);
        Ok(self)
    }
}

/// Keys from one file, queries from another.
pub(super) fn from_files(
    keys: (&Path, Option<&Format>),
    queries: (&Path, Option<&Format>),
    progress: &mut dyn FnMut(&str, u64),
) -> Outcome<Source> {
    let keys_input = Input::open(keys.0, keys.1)?;
    let mut queries_input = Input::open(queries.0, queries.1)?;
    let keys_name = keys_input.name.clone();
    let (keys, passed) = keys_input.into_set()?;
    let (mut recorder, mut key) = (Recorder::new()?, Vec::new());
    while next(&mut queries_input, &mut key, recorder.count(), progress)? {
        recorder.push(keys.number(&key).unwrap_or(STRANGER), &key)?;
    }
    if recorder.count() == 0 {
        return Err(Failure::Usage(format!("{}: there is no query in it", queries_input.name)));
    }
    let blank = blank_lines(&queries_input);
    let title = format!("the keys of {keys_name}, the queries of {}{blank}", queries_input.name);
    let stored = keys.len() as u32;
    let queries = recorder.finish(0, 0, stored)?;
    Ok(Source { keys, stored, queries, sample: None, passed, title })
}

/// Everything from one stream of requests: the first keys to appear are stored, as many as the share says; the requests
/// after that are the queries.
pub(super) fn from_trace(
    path: &Path,
    format: Option<&Format>,
    share: f64,
    progress: &mut dyn FnMut(&str, u64),
) -> Outcome<Source> {
    let mut input = Input::open(path, format)?;
    let (mut keys, mut recorder, mut key) = (KeySet::new(), Recorder::new()?, Vec::new());
    // By number of distinct keys: how many requests it took to see them, and where the next one begins.
    let mut seen = Vec::new();
    while next(&mut input, &mut key, recorder.count(), progress)? {
        let (number, new) = keys.insert(&key).ok_or_else(|| too_many(&input.name))?;
        recorder.push(number, &key)?;
        if new {
            seen.push((recorder.count(), recorder.bytes()));
        }
    }
    if keys.len() < 2 {
        return Err(Failure::Usage(format!("{}: a trace needs at least two different keys", input.name)));
    }
    let stored = ((keys.len() as f64 * share).round() as usize).clamp(1, keys.len() - 1);
    let (skipped, start) = seen[stored - 1];
    let title = format!(
        "the trace {}{}: the first {stored} of {} distinct keys are stored, and the requests after that are asked",
        input.name,
        blank_lines(&input),
        keys.len()
    );
    let queries = recorder.finish(start, skipped, stored as u32)?;
    Ok(Source { keys, stored: stored as u32, queries, sample: None, passed: Passed::default(), title })
}

/// How many lines of an input that was read were blank, in brackets, if any were.
fn blank_lines(input: &Input) -> String {
    Passed { repeated: 0, blank: input.skipped() }.describe()
}

fn next(
    input: &mut Input,
    key: &mut Vec<u8>,
    count: u64,
    progress: &mut dyn FnMut(&str, u64),
) -> Outcome<bool> {
    if count.is_multiple_of(65_536) {
        progress("reading queries", 65_536);
        if interrupt::stopped() {
            return Err(Failure::Interrupted);
        }
    }
    interrupt::while_idle(|| input.next(key))
}
