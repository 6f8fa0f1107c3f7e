//! Works through the tasks of experiments: on all cores where time is not what is measured, one at a time where
//! it is. Every finished task is in the journal before the next one starts, so an interrupted run loses nothing.

mod journal;
mod progress;

use std::collections::{HashMap, VecDeque};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

pub use self::journal::{Journal, JournalError};
pub use self::progress::Progress;
use crate::experiment::{Experiment, Point, Points, Setting, Task};

/// How a run is made.
#[derive(Debug)]
pub struct Options {
    /// Where the journal and the report go.
    pub folder: PathBuf,
    /// Whether to go on with the journal that is there.
    pub resume: bool,
    /// How many threads work on tasks that measure no time.
    pub threads: usize,
    /// Whether to show progress on the terminal.
    pub progress: bool,
}

/// What came of a run.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The points of each experiment, by its name.
    pub points: HashMap<String, Points>,
    /// What failed, with the reason.
    pub failures: Vec<String>,
    /// How many tasks were left undone because the run was stopped.
    pub undone: usize,
}

/// A task and the experiment it belongs to.
struct Job {
    experiment: &'static str,
    task: Task,
}

/// Runs all tasks of the experiments that the journal does not have yet, until done or until `stop` is set.
///
/// # Errors
///
/// When the journal cannot be written, or belongs to a run with other settings.
pub fn run(
    experiments: &[Box<dyn Experiment>],
    setting: &Setting,
    options: &Options,
    stop: &AtomicBool,
) -> Result<Outcome, JournalError> {
    let (journal, mut finished) = Journal::open(&options.folder, setting, options.resume)?;
    let (mut jobs, mut order) = (VecDeque::new(), HashMap::new());
    for experiment in experiments {
        for task in experiment.tasks(setting) {
            order.insert((experiment.name().to_owned(), task.id.clone()), order.len());
            if !finished.contains_key(&(experiment.name().to_owned(), task.id.clone())) {
                jobs.push_back(Job { experiment: experiment.name(), task });
            }
        }
    }
    let (timed, parallel): (VecDeque<Job>, VecDeque<Job>) = jobs.into_iter().partition(|job| job.task.timed);
    let cost = timed.iter().chain(&parallel).map(|job| job.task.cost).sum();
    let tasks = timed.len() + parallel.len();
    let board = Board {
        journal: Mutex::new(journal),
        finished: Mutex::new(HashMap::new()),
        failures: Mutex::new(Vec::new()),
        progress: Mutex::new(Progress::new(tasks, cost, options.progress)),
        stop,
    };
    let undone = board.work(parallel, options.threads) + board.work(timed, 1);
    let Board { finished: new, failures, progress, .. } = board;
    unpoisoned(progress.into_inner()).done();
    finished.extend(unpoisoned(new.into_inner()));
    Ok(Outcome {
        points: by_experiment(finished, &order),
        failures: unpoisoned(failures.into_inner()),
        undone,
    })
}

type Finished = HashMap<(String, String), Vec<Point>>;

/// What the threads of a run share.
struct Board<'a> {
    journal: Mutex<Journal>,
    finished: Mutex<Finished>,
    failures: Mutex<Vec<String>>,
    progress: Mutex<Progress>,
    stop: &'a AtomicBool,
}

impl Board<'_> {
    /// Works through the jobs and returns how many were left undone.
    fn work(&self, jobs: VecDeque<Job>, threads: usize) -> usize {
        let queue = Mutex::new(jobs);
        std::thread::scope(|scope| {
            for _ in 0..threads.max(1) {
                scope.spawn(|| {
                    while !self.stop.load(Ordering::Relaxed) {
                        let Some(job) = lock(&queue).pop_front() else { break };
                        self.finish(job);
                    }
                });
            }
        });
        unpoisoned(queue.into_inner()).len()
    }

    fn finish(&self, Job { experiment, task }: Job) {
        let (id, cost) = (task.id.clone(), task.cost);
        lock(&self.progress).started(experiment, &id);
        // A filter that panics costs its task, not the run.
        let outcome = catch_unwind(AssertUnwindSafe(|| task.run()))
            .unwrap_or_else(|panic| Err(format!("panicked: {}", panic_text(panic.as_ref())).into()));
        let recorded = outcome.map_err(|error| error.to_string()).and_then(|points| {
            let written = lock(&self.journal).append(experiment, &id, &points);
            written.map_err(|error: io::Error| format!("the journal: {error}")).map(|()| points)
        });
        match recorded {
            Ok(points) => drop(lock(&self.finished).insert((experiment.to_owned(), id), points)),
            Err(error) => lock(&self.failures).push(format!("{experiment}, {id}: {error}")),
        }
        lock(&self.progress).finished(cost);
    }
}

/// Points by experiment, in the order of its tasks, in whichever order these finished. What a journal holds of
/// experiments or tasks that this run does not have is left out.
fn by_experiment(finished: Finished, order: &HashMap<(String, String), usize>) -> HashMap<String, Points> {
    let place = |task: &(String, String)| order.get(task).copied();
    let mut tasks: Vec<_> =
        finished.into_iter().filter_map(|(id, points)| Some((place(&id)?, id, points))).collect();
    tasks.sort_by_key(|(place, ..)| *place);
    let mut grouped: HashMap<String, Vec<Point>> = HashMap::new();
    for (_, (experiment, _), points) in tasks {
        grouped.entry(experiment).or_default().extend(points);
    }
    grouped.into_iter().map(|(name, points)| (name, points.into_iter().collect())).collect()
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("without a word")
}

/// Panics of tasks are caught, so a poisoned lock guards data that is whole all the same.
fn unpoisoned<T>(result: Result<T, std::sync::PoisonError<T>>) -> T {
    result.unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    unpoisoned(mutex.lock())
}

#[cfg(test)]
mod tests {
    //! Catches: points lost by an interruption or a failing task, tasks done twice after it, journals of
    //! different runs mixed up.
    use super::*;
    use crate::experiment::Size;
    use crate::report::Section;

    struct Counting {
        tasks: u32,
        failing: Option<u32>,
    }

    impl Experiment for Counting {
        fn name(&self) -> &'static str {
            "counting"
        }

        fn title(&self) -> &'static str {
            "Counting"
        }

        fn tasks(&self, _: &Setting) -> Vec<Task> {
            let failing = self.failing;
            let task = |i: u32| {
                Task::new(format!("task {i}"), 1.0, move || {
                    assert!(failing != Some(i), "told to");
                    Ok(vec![Point::new("a", f64::from(i), 0).with("y", f64::from(i))])
                })
            };
            (0..self.tasks).map(task).collect()
        }

        fn report(&self, _: &Setting, _: &Points) -> Section {
            Section::new()
        }
    }

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("besom-lab-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        folder
    }

    fn go(
        name: &str,
        tasks: u32,
        failing: Option<u32>,
        resume: bool,
        stop: bool,
    ) -> Result<Outcome, JournalError> {
        let folder = std::env::temp_dir().join(format!("besom-lab-{}-{name}", std::process::id()));
        let options = Options { folder, resume, threads: 2, progress: false };
        let experiments: [Box<dyn Experiment>; 1] = [Box::new(Counting { tasks, failing })];
        run(&experiments, &Setting::new(Size::Quick), &options, &AtomicBool::new(stop))
    }

    #[test]
    fn a_failed_task_is_made_up_for_by_resuming() {
        let folder = folder("failed");
        let first = go("failed", 5, Some(3), false, false).unwrap();
        assert_eq!(first.failures, ["counting, task 3: panicked: told to"]);
        assert_eq!(first.points["counting"].all().len(), 4);
        let second = go("failed", 5, None, true, false).unwrap();
        assert_eq!(second.points["counting"].xs(""), [0.0, 1.0, 2.0, 3.0, 4.0]);
        let lines = std::fs::read_to_string(folder.join(journal::FILE)).unwrap().lines().count();
        assert_eq!(lines, 1 + 5, "no task was done twice");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_stopped_run_says_what_is_left() {
        let folder = folder("stopped");
        let outcome = go("stopped", 5, None, false, true).unwrap();
        assert_eq!((outcome.undone, outcome.points.len()), (5, 0));
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_torn_last_line_costs_only_itself() {
        let folder = folder("torn");
        go("torn", 3, None, false, false).unwrap();
        let path = folder.join(journal::FILE);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, &text[..text.len() - 20]).unwrap();
        let outcome = go("torn", 3, None, true, false).unwrap();
        assert_eq!(outcome.points["counting"].xs(""), [0.0, 1.0, 2.0]);
        let again = go("torn", 3, None, true, false).unwrap();
        assert_eq!(again.points["counting"].xs(""), [0.0, 1.0, 2.0]);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_journal_of_another_seed_is_refused() {
        let folder = folder("seed");
        go("seed", 1, None, false, false).unwrap();
        let setting = Setting { seed: 2, ..Setting::new(Size::Quick) };
        let error = Journal::open(&folder, &setting, true).unwrap_err();
        assert!(matches!(error, JournalError::OtherRun { .. }), "{error}");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
