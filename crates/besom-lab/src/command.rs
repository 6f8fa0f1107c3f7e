//! The commands of the lab, for every program that offers them.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use clap::Args;

use crate::experiment::{self, Experiment, Setting, Size};
use crate::report::{Claim, Page, write_page};
use crate::run::{self, Options};
use crate::subject;

/// Which experiments are run, how large, and where their report goes.
#[derive(Debug, Args)]
pub struct Reproduce {
    /// `all`, or names (or beginnings of names) of experiments.
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// Small sets and few repetitions: all experiments together in minutes (the default).
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// The papers' sizes and repetitions: hours.
    #[arg(long)]
    full: bool,
    /// Everything random follows from it.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How often everything is repeated with other seeds.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    runs: Option<u32>,
    /// Where the report and the journal go.
    #[arg(long, default_value = "target/lab-report", value_name = "DIR")]
    out: PathBuf,
    /// Go on with the points that an interrupted run left in --out.
    #[arg(long)]
    resume: bool,
    /// Where real traces lie (OLTP.lis.zst, P3.lis.zst); experiments do without if there are none.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Threads for tasks that measure no time; one per core if not given.
    #[arg(long)]
    threads: Option<usize>,
    /// Write the report as JSON to standard output, instead of tables.
    #[arg(long)]
    json: bool,
}

static STOP: AtomicBool = AtomicBool::new(false);

/// Where real traces are looked for if nobody says where.
const DEFAULT_DATA: &str = "../shared/data";

/// Shows the experiments and the filters by name.
///
/// # Errors
///
/// When it cannot be written.
pub fn list(out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "experiments:")?;
    for experiment in experiment::all() {
        writeln!(out, "  {:<32} {}", experiment.name(), experiment.title())?;
    }
    writeln!(out, "filters:")?;
    for entry in subject::registry() {
        let kind = if entry.adaptive { "adaptive" } else { "plain" };
        writeln!(out, "  {:<32} {kind}{}", entry.name, if entry.removal { ", removal" } else { "" })?;
    }
    Ok(())
}

/// Runs experiments, shows what came out and writes it to a folder. `false` if something failed or was left undone.
///
/// The first interrupt lets running tasks finish and writes the report; the second ends the program at once.
///
/// # Errors
///
/// When a name means no experiment, or the journal or the report cannot be written.
pub fn reproduce(arguments: &Reproduce) -> Result<bool, Box<dyn std::error::Error>> {
    let experiments = chosen(&arguments.names)?;
    let setting = Setting {
        size: if arguments.full { Size::Full } else { Size::Quick },
        seed: arguments.seed,
        runs: arguments.runs,
        data: data_folder(arguments.data.as_deref())?,
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let options = Options {
        folder: arguments.out.clone(),
        resume: arguments.resume,
        threads: arguments.threads.unwrap_or(cores),
        progress: true,
    };
    stop_on_interrupt()?;
    let start = Instant::now();
    let outcome = run::run(&experiments, &setting, &options, &STOP)?;
    let empty = experiment::Points::default();
    let sections = experiments.iter().map(|experiment| {
        let points = outcome.points.get(experiment.name()).unwrap_or(&empty);
        let mut section = experiment.report(&setting, points);
        if outcome.undone > 0 {
            section.claims = section.claims.into_iter().map(Claim::opened).collect();
        }
        (experiment.name().to_owned(), experiment.title().to_owned(), section)
    });
    let page = Page {
        facts: facts(&setting, &options, start),
        sections: sections.collect(),
        failures: outcome.failures.clone(),
        undone: outcome.undone,
    };
    write_page(&page, &arguments.out)?;
    let mut out = io::stdout().lock();
    let shown = if arguments.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&page.to_json())?)
    } else {
        show(&page, &arguments.out, &mut out)
    };
    shown.map_err(|error| io::Error::new(error.kind(), format!("standard output: {error}")))?;
    Ok(outcome.failures.is_empty() && outcome.undone == 0)
}

/// The experiments that the names mean.
fn chosen(names: &[String]) -> Result<Vec<Box<dyn Experiment>>, String> {
    let wanted =
        |name: &str, experiment: &dyn Experiment| name == "all" || experiment.name().starts_with(name);
    for name in names {
        if !experiment::all().iter().any(|experiment| wanted(name, experiment.as_ref())) {
            return Err(format!("no experiment is called {name}; `besom-lab list` shows them"));
        }
    }
    let mut experiments = experiment::all();
    experiments.retain(|experiment| names.iter().any(|name| wanted(name, experiment.as_ref())));
    Ok(experiments)
}

fn data_folder(given: Option<&Path>) -> Result<Option<PathBuf>, String> {
    match given {
        Some(folder) if !folder.is_dir() => Err(format!("--data {}: no such folder", folder.display())),
        Some(folder) => Ok(Some(folder.to_owned())),
        None => Ok(Some(PathBuf::from(DEFAULT_DATA)).filter(|folder| folder.is_dir())),
    }
}

fn stop_on_interrupt() -> Result<(), ctrlc::Error> {
    ctrlc::set_handler(|| {
        if STOP.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
        eprintln!(
            "\nstopping after the running tasks; interrupt again to stop at once, go on later with --resume"
        );
    })
}

fn facts(setting: &Setting, options: &Options, start: Instant) -> Vec<(String, String)> {
    let runs = setting.runs.map_or_else(|| "as each experiment says".into(), |runs| runs.to_string());
    let data = setting.data.as_ref().map_or_else(|| "none".into(), |data| data.display().to_string());
    [
        ("command", std::env::args().collect::<Vec<_>>().join(" ")),
        ("version", env!("CARGO_PKG_VERSION").into()),
        ("size", format!("{:?}", setting.size).to_lowercase()),
        ("seed", setting.seed.to_string()),
        ("runs", runs),
        ("real traces", data),
        ("machine", machine()),
        ("threads", options.threads.to_string()),
        ("time taken", format!("{:.0} s", start.elapsed().as_secs_f64())),
    ]
    .map(|(what, value)| (what.to_owned(), value))
    .to_vec()
}

/// Processor and number of cores.
fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let cpu_info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        cpu_info.lines().find(|line| line.starts_with("model name")).and_then(|line| line.split(": ").nth(1));
    format!("{}, {cores} cores, {}", model.unwrap_or("unknown processor"), std::env::consts::OS)
}

fn show(page: &Page, folder: &Path, out: &mut impl Write) -> io::Result<()> {
    page.interruption().map_or(Ok(()), |text| writeln!(out, "{text}"))?;
    for (name, title, section) in &page.sections {
        writeln!(out, "\n━━ {name}: {title}\n")?;
        section.notes.iter().try_for_each(|note| writeln!(out, "{note}"))?;
        section.tables.iter().try_for_each(|table| writeln!(out, "{table}"))?;
    }
    writeln!(out, "{}", page.verdicts())?;
    page.failures.iter().try_for_each(|failure| writeln!(out, "failed: {failure}"))?;
    writeln!(out, "{}", page.tally_sentence())?;
    writeln!(out, "{}", folder.join("report.html").display())
}
