//! What the figures bear out: a winner only where ranges part, and plain words where nothing can be said.

use besom_lab::stats::Spread;
use serde::Serialize;

use super::MOST_BITS;
use super::contender::{Needs, Plan, Space, bits_text, find};
use super::replay::Row;
use super::threats::threat;
use super::training::Stream;
use crate::output::{counted, thousands};

/// How much larger than asked for a filter may have become by its repairs.
const TOLERANCE: f64 = 1.05;
/// A gain below this share of all store reads is not worth a change.
const WORTH: f64 = 0.02;
/// Fewer useless reads than this are chance.
const FEW: f64 = 30.0;
/// With fewer seeds than this, equal filters part once in three times, or always.
const FEWEST_SEEDS: usize = 3;

/// What came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Finding {
    /// One filter has fewer useless reads with every seed than any other with any.
    Winner,
    /// Several filters that need the same share the first place.
    Level,
    /// A filter that needs less than the best is not clearly worse.
    Suffices,
    /// No query was for an absent key.
    NothingAbsent,
    /// No absent key was asked for twice.
    NothingRepeated,
    /// Ranges of fewer than three seeds, which part too easily.
    TooFewSeeds,
    /// Too few useless reads to tell filters apart.
    TooFew,
    /// No filter fits into the memory, or none is of use there.
    TooSmall,
}

/// What is recommended, and why.
#[derive(Debug, Clone)]
pub(crate) struct Verdict {
    pub(crate) finding: Finding,
    /// Those that share the first place, the best first; nobody where nothing can be said.
    pub(crate) recommended: Vec<&'static str>,
    /// One sentence of at most 25 words, in which names between `**` are bold.
    pub(crate) headline: String,
    /// What else a reader should know, a sentence or two each.
    pub(crate) details: Vec<String>,
    /// What the first of the recommended does not withstand.
    pub(crate) threat: Option<&'static str>,
    /// How to build it.
    pub(crate) code: Option<String>,
}

/// Whether a filter stayed within the space that all were given.
pub(crate) fn in_contest(row: &Row, plan: &Plan<'_>) -> bool {
    match plan.space {
        Space::BitsPerKey(bits) => row.bits_per_key() <= TOLERANCE * bits,
        Space::Rate(_) => true,
    }
}

/// Fewest useless reads first; then who stands up better to the attacker, who is smaller. Nothing that depends on the
/// time of day.
pub(super) fn order(a: &Row, b: &Row) -> std::cmp::Ordering {
    let attacked = |row: &Row| row.attacked().map_or(0.0, |share| share.median);
    (a.useless().median.total_cmp(&b.useless().median))
        .then(attacked(a).total_cmp(&attacked(b)))
        .then(a.bits_per_key().total_cmp(&b.bits_per_key()))
        .then(a.entry_name.cmp(b.entry_name))
}

/// Judges what was measured. `None` if nothing was.
pub(crate) fn judge(rows: &[Row], plan: &Plan<'_>, stream: Stream) -> Option<Verdict> {
    if rows.is_empty() {
        return None;
    }
    let mut contest: Vec<&Row> = rows.iter().filter(|row| in_contest(row, plan)).collect();
    contest.sort_by(|a, b| order(a, b));
    let plain = contest.iter().find(|row| row.needs == Needs::Nothing).copied();
    if stream.absent == 0 {
        return Some(Verdict::nothing(
            Finding::NothingAbsent,
            "No query asks for an absent key, so no filter can save a read on this stream.",
            "Give it queries as they arrive at the store, those that find nothing among them.",
        ));
    }
    // What is known of the stream is known of its beginning, if it is long; filters were asked all of it.
    let absent = rows[0].first().absent;
    let Some(&best) = contest.first().filter(|best| best.useless().median < 0.5 * absent as f64) else {
        return Some(too_small(rows, plan));
    };
    let most = contest.iter().map(|row| row.useless().high).fold(0.0, f64::max);
    if most < FEW {
        return Some(too_few(best, most));
    }
    if stream.repeated == 0
        && stream.absent == absent
        && let Some(plain) = plain
    {
        return Some(nothing_repeated(plain, best, plan));
    }
    if best.runs.len() < FEWEST_SEEDS
        && let Some(&next) = contest.get(1)
    {
        return Some(too_few_seeds(best, next));
    }
    Some(weigh(&contest, best, plain, plan))
}

/// The usual case: several filters, each with a range.
fn weigh(contest: &[&Row], best: &Row, plain: Option<&Row>, plan: &Plan<'_>) -> Verdict {
    let level: Vec<&Row> =
        contest.iter().filter(|row| !best.useless().parts_from(&row.useless())).copied().collect();
    let simplest = level.iter().min_by_key(|row| row.needs).copied().unwrap_or(best);
    let mut verdict = if simplest.needs < best.needs {
        suffices(simplest, best)
    } else if level.len() > 1 {
        several(&level, contest)
    } else {
        winner(best, contest)
    };
    let shown = find_row(contest, verdict.recommended[0]).unwrap_or(best);
    let simpler = contest.iter().find(|row| row.needs < shown.needs).copied();
    verdict.details.extend(ranges(shown, simpler.into_iter().chain(plain)));
    if verdict.finding == Finding::Winner && contest.len() > 1 {
        verdict.details.push(format!(
            "By chance alone, two filters that are alike part like this once in {} times at most.",
            count(times_to_part(shown.runs.len()).min(1e6))
        ));
    }
    verdict.details.extend(repairs(shown, simpler));
    verdict.details.extend(caveat(shown, plan));
    verdict.details.extend(worth(shown, plain));
    verdict.threat = Some(threat(shown.entry_name));
    verdict.code = Some(code(shown, plan));
    verdict
}

fn find_row<'r>(rows: &[&'r Row], name: &str) -> Option<&'r Row> {
    rows.iter().find(|row| row.entry_name == name).copied()
}

impl Verdict {
    fn nothing(finding: Finding, headline: &str, advice: &str) -> Self {
        Self::new(finding, Vec::new(), headline.into(), vec![advice.into()])
    }

    fn new(finding: Finding, recommended: Vec<&'static str>, headline: String, details: Vec<String>) -> Self {
        Self { finding, recommended, headline, details, threat: None, code: None }
    }

    /// The headline without marks.
    pub(crate) fn plain_headline(&self) -> String {
        self.headline.replace("**", "")
    }
}

fn count(value: f64) -> String {
    thousands(value.round() as u64)
}

fn range(spread: &Spread) -> String {
    if spread.low == spread.high {
        count(spread.median)
    } else {
        format!("{} to {}", count(spread.low), count(spread.high))
    }
}

/// How many times as many.
fn times(more: f64, fewer: f64) -> String {
    let ratio = more / fewer.max(1.0);
    if ratio < 9.95 { format!("{ratio:.1} times") } else { format!("{ratio:.0} times") }
}

fn too_small(rows: &[Row], plan: &Plan<'_>) -> Verdict {
    let Space::BitsPerKey(bits) = plan.space else {
        let headline = "At this rate every filter lets most absent keys through: ask for a smaller one.";
        return Verdict::nothing(Finding::TooSmall, headline, "Choose --rate 0.01, for example.");
    };
    let more = |least: f64| {
        if least > MOST_BITS {
            "Every filter has a size below which it does not go: so few keys need none.".into()
        } else {
            format!("Give it more memory, for example --bits-per-key {}.", least.max(8.0).ceil())
        }
    };
    let smallest = rows.iter().min_by(|a, b| a.bits_per_key().total_cmp(&b.bits_per_key()));
    match smallest.filter(|_| !rows.iter().any(|row| in_contest(row, plan))) {
        Some(row) => Verdict::nothing(
            Finding::TooSmall,
            &format!(
                "No filter fits into {} a key: the smallest, {}, takes {:.1}.",
                bits_text(bits),
                row.entry_name,
                row.bits_per_key()
            ),
            &more(row.bits_per_key()),
        ),
        None => Verdict::nothing(
            Finding::TooSmall,
            &format!(
                "At {} a key every filter lets more than half of the absent keys through.",
                bits_text(bits)
            ),
            &more(bits + 1.0),
        ),
    }
}

fn too_few(best: &Row, most: f64) -> Verdict {
    let queries = best.first().queries;
    let more = (queries as f64 * 10.0 * FEW / most.max(1.0)).max(queries as f64 * 2.0);
    let made = match count(most).as_str() {
        "0" => "no filter made a useless read".into(),
        most => format!("none made more than {most} useless reads"),
    };
    let headline = format!("Too few queries to tell filters apart: {made} in {}.", counted(queries, "query"));
    let advice = format!("About {} queries, or fewer bits a key, would show a difference.", round_up(more));
    Verdict::nothing(Finding::TooFew, &headline, &advice)
}

fn too_few_seeds(best: &Row, next: &Row) -> Verdict {
    let headline = format!(
        "No winner with {}: chance alone may part so few. Fewest useless reads: {} {}, {} {}.",
        counted(best.runs.len() as u64, "seed"),
        best.entry_name,
        count(best.useless().median),
        next.entry_name,
        count(next.useless().median)
    );
    Verdict::nothing(
        Finding::TooFewSeeds,
        &headline,
        "Another seed may turn that around: take --seeds 3 or more.",
    )
}

/// The next number of one digit and zeros.
fn round_up(value: f64) -> String {
    let unit = 10_f64.powf(value.max(1.0).log10().floor());
    thousands(((value / unit).ceil() * unit) as u64)
}

fn nothing_repeated(plain: &Row, best: &Row, plan: &Plan<'_>) -> Verdict {
    let headline = format!(
        "No absent key is asked for twice, so nothing can be saved by repairs: a plain filter, such as **{}**, is enough.",
        plain.entry_name
    );
    let mut details: Vec<String> = ranges(plain, std::iter::once(best)).into_iter().collect();
    details.push(
        "A cache of absent keys saves nothing either. It is another matter if somebody attacks.".into(),
    );
    let mut verdict = Verdict::new(Finding::NothingRepeated, vec![plain.entry_name], headline, details);
    verdict.threat = Some(threat(plain.entry_name));
    verdict.code = Some(code(plain, plan));
    verdict
}

fn suffices(simple: &Row, best: &Row) -> Verdict {
    let rival = match best.needs {
        Needs::HashIndex => "filter with a hash index",
        Needs::Sample => "trained filter",
        _ => "other filter",
    };
    let headline = format!(
        "**{}** suffices: {} useless reads; no {rival} is clearly better on this stream.",
        simple.entry_name,
        count(simple.useless().median)
    );
    let best_is = format!(
        "The fewest in the middle of all seeds has {}, with {} ({}). {}",
        best.entry_name,
        count(best.useless().median),
        range(&best.useless()),
        what_would_show(best, simple)
    );
    Verdict::new(Finding::Suffices, vec![simple.entry_name], headline, vec![best_is])
}

fn several(level: &[&Row], contest: &[&Row]) -> Verdict {
    let names = match level {
        [a, b] => format!("**{}** and **{}**", a.entry_name, b.entry_name),
        [a, b, c] => format!("**{}**, **{}** and **{}**", a.entry_name, b.entry_name, c.entry_name),
        [a, rest @ ..] => format!("**{}** and {} others", a.entry_name, rest.len()),
        [] => String::new(),
    };
    let low = level.iter().map(|row| row.useless().low).fold(f64::INFINITY, f64::min);
    let high = level.iter().map(|row| row.useless().high).fold(0.0, f64::max);
    let behind = contest.iter().find(|row| row.needs < level[0].needs);
    let behind = behind.map_or_else(String::new, |row| {
        format!(
            "; {}, {}, makes {}",
            row.entry_name,
            best_without(level[0].needs),
            count(row.useless().median)
        )
    });
    let headline = format!(
        "No difference at this size between {names}: {} to {} useless reads{behind}.",
        count(low),
        count(high)
    );
    let all: Vec<_> = level.iter().map(|row| row.entry_name).collect();
    let details = vec![format!(
        "Level are {}: their ranges overlap. {}",
        all.join(", "),
        what_would_show(level[0], level[1])
    )];
    Verdict::new(Finding::Level, all, headline, details)
}

fn winner(best: &Row, contest: &[&Row]) -> Verdict {
    let useless = best.useless().median;
    let simpler = contest.iter().find(|row| row.needs < best.needs);
    let against =
        simpler.map(|row| (row, best_without(best.needs))).or(contest.get(1).map(|row| (row, "the next")));
    let headline = match against {
        Some((rival, what)) => format!(
            "**{}** makes the fewest useless reads: {}; {}, {what}, makes {}, {} as many.",
            best.entry_name,
            count(useless),
            rival.entry_name,
            count(rival.useless().median),
            times(rival.useless().median, useless)
        ),
        None => format!("**{}**, the only filter, makes {} useless reads.", best.entry_name, count(useless)),
    };
    Verdict::new(Finding::Winner, vec![best.entry_name], headline, Vec::new())
}

/// Once in how many trials the ranges of two equal filters part, with so many seeds each: half of C(2n, n).
fn times_to_part(seeds: usize) -> f64 {
    (1..=seeds).map(|place| (seeds + place) as f64 / place as f64).product::<f64>() / 2.0
}

fn best_without(needs: Needs) -> &'static str {
    match needs {
        Needs::HashIndex => "the best without a hash index",
        Needs::Sample => "the best without a sample",
        Needs::Feedback | Needs::Nothing => "the best that learns nothing",
    }
}

/// What it would take to see whether two filters differ that were not told apart.
fn what_would_show(a: &Row, b: &Row) -> String {
    let (a, b) = (a.useless(), b.useless());
    let width = f64::midpoint(a.high - a.low, b.high - b.low);
    let factor = (width / (a.median - b.median).abs().max(1e-9)).powi(2);
    if factor > 100.0 {
        "If there is a difference, it is too small for a stream even a hundred times as long to show.".into()
    } else {
        let more = factor.ceil().max(2.0);
        format!(
            "A stream about {more:.0} times as long, or more seeds (--seeds), would show one if there is one."
        )
    }
}

/// Medians and ranges of the filters that the headline is about.
fn ranges<'r>(best: &'r Row, others: impl Iterator<Item = &'r Row>) -> Option<String> {
    let seeds = best.runs.len();
    let of =
        |row: &Row| format!("{} {} ({})", row.entry_name, count(row.useless().median), range(&row.useless()));
    let mut told = vec![best.entry_name];
    let mut parts = vec![of(best)];
    for row in others {
        if !told.contains(&row.entry_name) {
            told.push(row.entry_name);
            parts.push(of(row));
        }
    }
    let over = match seeds {
        1 => "With one seed".into(),
        seeds => format!("Median and range of {seeds} seeds"),
    };
    (parts.len() > 1).then(|| format!("{over}, useless reads: {}.", parts.join("; ")))
}

/// Repairs read as well: what that means if their first reads cost as much as look-ups.
fn repairs(best: &Row, simpler: Option<&Row>) -> Option<String> {
    let (reads, useless) = (best.repair_reads().median, best.useless().median);
    if reads == 0.0 {
        return None;
    }
    let with = best.spread(|run| (run.false_positives + run.remote_reads) as f64).median;
    let then = match simpler {
        Some(row) if row.useless().median < with && row.useless().median > useless => format!(
            "; counted in full they make it {}, more than the {} of {}: keep the hash index where the data is",
            count(with),
            count(row.useless().median),
            row.entry_name
        ),
        _ => format!("; counted in full they make it {}, which changes nothing", count(with)),
    };
    Some(format!(
        "Its repairs read the hash index {} times, the first time right after the look-up that failed, which is not counted{then}.",
        count(reads)
    ))
}

/// What counts alone do not show.
fn caveat(best: &Row, plan: &Plan<'_>) -> Option<String> {
    match best.entry_name {
        "whitelist" => Some(
            "Mind that whitelist cannot remove keys, and that its list grows with every new false positive."
                .into(),
        ),
        "stacked" => Some(format!(
            "Mind that stacked was trained on the {} queries before these; it does not learn, and new keys or new habits of those who \
             ask mean building it again.",
            thousands(plan.training.sampled)
        )),
        "bloom+cache" => Some(format!(
            "The cache has {} bytes, the best split for this stream in hindsight; where distinct false positives outgrow it, it is \
             of no use.",
            thousands(plan.training.cache_bytes as u64)
        )),
        _ => None,
    }
}

/// Whether the gain is worth a change, beside the reads that find what they look for.
fn worth(best: &Row, plain: Option<&Row>) -> Option<String> {
    let plain = plain.filter(|plain| plain.entry_name != best.entry_name)?;
    let all = plain.spread(|run| run.lookups as f64).median;
    let saved = plain.useless().median - best.useless().median;
    (saved < WORTH * all).then(|| {
        format!(
            "But that is only {:.1}% of all store reads, most of which find what they look for: unless somebody attacks, it is hardly \
             worth a change from {}.",
            100.0 * saved.max(0.0) / all.max(1.0),
            plain.entry_name
        )
    })
}

/// The code that builds the filter as it was measured.
fn code(row: &Row, plan: &Plan<'_>) -> String {
    let Ok(entry) = find(row.entry_name) else { return String::new() };
    let (name, keys) = (entry.type_name, plan.keys);
    let rate = format!("1.0 / {:.1}", 1.0 / row.first().rate);
    match entry.name {
        "fastbloom" => format!("let filter = {name}::with_false_pos({rate}).expected_items({keys});"),
        "qfilter" => format!("let filter = {name}::new({keys}, {rate})?;"),
        "cuckoofilter" => format!("let filter = {name}::with_capacity({keys});"),
        "xorf" => format!("let filter = {name}::try_from(&hashes_of_keys)?; // of {keys} keys"),
        "stacked" => format!(
            "let sample = besom_lab::comparison::Sample::of(queries_of_yesterday);\n\
             let filter = besom_lab::comparison::StackedFilter::new({keys}, bits, &sample, seed)?;"
        ),
        "bloom+cache" => format!(
            "let filter = besom::bloom::BloomFilter::builder().capacity({keys}).false_positive_rate({rate}).build()?;\n\
             let absent = schnellru::LruMap::<u64, (), _>::with_memory_budget({}); // hashes of keys found absent",
            plan.training.cache_bytes
        ),
        _ => {
            let calls = format!(".capacity({keys}).false_positive_rate({rate}){}", entry.calls());
            let filter = format!("let filter = besom::{name}::builder(){calls}.build()?;");
            if entry.needs == Needs::HashIndex {
                filter
                    + "\nlet mut guard = besom::Guard::new(filter, your_store); // repairs false positives by itself"
            } else {
                filter
            }
        }
    }
}

#[cfg(test)]
mod tests;
