//! What is measured: one module per table or figure of the papers.
//!
//! An [`Experiment`] splits itself into [`Task`]s that do not depend on each other; each returns [`Point`]s. When
//! all points are there, the experiment turns them into a [`Section`]: tables, plots, and
//! **claims**, which put the paper's statement beside the measurement and say whether the two agree.
//!
//! To add one: write a module with a type that implements [`Experiment`], and give it a line in [`all`].

mod adaptivity_bits;
mod adversarial;
mod broom_budget;
mod cache;
mod churn;
mod contest;
mod exact_lists;
mod firehose;
mod games;
mod point;
mod remote_accesses;
mod repaired_space;
mod setting;
mod space;
mod support_traces;
mod sustained;
mod telescoping_traces;
mod theorems;
mod throughput;
mod tinyset;
mod tinyset_curves;
mod tinyset_load;
mod tinyset_removal;
mod tinyset_space;
mod tinyset_speed;
mod trace;
mod training;
mod turnovers;

use std::fmt;

pub use point::{Point, Points};
pub use setting::{Setting, Size};

use crate::report::Section;

/// One table or figure of a paper, or of ours.
pub trait Experiment: Sync {
    /// What `reproduce` is called with, such as `001-figure-2-active-set`: paper, place in it, subject.
    fn name(&self) -> &'static str;

    /// A headline for the report.
    fn title(&self) -> &'static str;

    /// The independent pieces of work, every repetition with its own seed.
    fn tasks(&self, setting: &Setting) -> Vec<Task>;

    /// What the points say. Called with the points of all tasks that finished, which may not be all of them.
    fn report(&self, setting: &Setting, points: &Points) -> Section;
}

/// All experiments, in the order in which they are run and reported.
#[must_use]
pub fn all() -> Vec<Box<dyn Experiment>> {
    vec![
        Box::new(firehose::Firehose::ActiveSet),
        Box::new(firehose::Firehose::PowerLaw),
        Box::new(telescoping_traces::TelescopingTraces),
        Box::new(adversarial::Adversarial),
        Box::new(throughput::Throughput),
        Box::new(cache::CacheQuestion),
        Box::new(tinyset_space::SpaceTable::ItemsPerBlock),
        Box::new(tinyset_space::SpaceTable::WithoutRemoval),
        Box::new(tinyset_space::SpaceTable::WithRemoval),
        Box::new(tinyset_space::SpaceTable::Blocks64),
        Box::new(tinyset_space::SpaceTable::Blocks32),
        Box::new(tinyset_space::SpaceTable::Causes),
        Box::new(tinyset_curves::SpaceFigure::ItemsPerBlock),
        Box::new(tinyset_speed::Filling),
        Box::new(tinyset_curves::SpaceFigure::Algorithms),
        Box::new(tinyset_curves::SpaceFigure::Blocks),
        Box::new(tinyset_load::GrowingLoad),
        Box::new(tinyset_removal::Replacement),
        Box::new(support_traces::SupportTraces),
        Box::new(theorems::Theorems),
        Box::new(sustained::Sustained),
        Box::new(adaptivity_bits::AdaptivityBits),
        Box::new(broom_budget::BroomBudget),
        Box::new(remote_accesses::RemoteAccess),
        Box::new(repaired_space::RepairedSpace),
        Box::new(exact_lists::ExactLists),
        Box::new(training::Training),
        Box::new(turnovers::Turnovers),
        Box::new(churn::Churn),
    ]
}

/// An independent piece of work of an experiment.
pub struct Task {
    /// Names the task inside its experiment: finished tasks are recognised by it when a run is resumed.
    pub id: String,
    /// About how long it takes, in any unit that is the same for all tasks of all experiments; roughly the
    /// number of filter operations. Feeds the estimate of the time left.
    pub cost: f64,
    /// Whether it measures time, so that nothing else may run beside it.
    pub timed: bool,
    work: Work,
}

type Work = Box<dyn FnOnce() -> Result<Vec<Point>, TaskError> + Send>;

impl Task {
    /// A task that may run beside others.
    pub fn new(
        id: impl Into<String>,
        cost: f64,
        work: impl FnOnce() -> Result<Vec<Point>, TaskError> + Send + 'static,
    ) -> Self {
        Self { id: id.into(), cost, timed: false, work: Box::new(work) }
    }

    /// The same task, run alone because it measures time.
    #[must_use]
    pub fn timed(self) -> Self {
        Self { timed: true, ..self }
    }

    /// Does the work.
    ///
    /// # Errors
    ///
    /// Whatever made the measurement impossible.
    pub fn run(self) -> Result<Vec<Point>, TaskError> {
        (self.work)()
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task").field("id", &self.id).field("cost", &self.cost).finish_non_exhaustive()
    }
}

/// Why a task has no points: any error, with its text.
pub type TaskError = Box<dyn std::error::Error + Send + Sync>;

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_of_experiments_and_tasks_are_unique() {
        let mut names = HashSet::new();
        for experiment in all() {
            assert!(names.insert(experiment.name()), "{} twice", experiment.name());
            for size in [Size::Quick, Size::Full] {
                let mut ids = HashSet::new();
                let setting = Setting::new(size);
                for task in experiment.tasks(&setting) {
                    assert!(ids.insert(task.id.clone()), "{}: {} twice", experiment.name(), task.id);
                    assert!(task.cost > 0.0, "{}: {} costs nothing", experiment.name(), task.id);
                }
            }
        }
    }

    #[test]
    fn every_experiment_reports_even_without_points() {
        for experiment in all() {
            let section = experiment.report(&Setting::new(Size::Quick), &Points::default());
            assert!(!section.claims.is_empty(), "{} claims nothing", experiment.name());
        }
    }
}
