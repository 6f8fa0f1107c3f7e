//! Which filter is recommended, and why.

use super::contender::{Plan, Space, find};
use super::replay::Row;
use crate::output::thousands;

/// How much larger than asked for a filter may have become by its repairs.
const TOLERANCE: f64 = 1.05;
/// A gain below this share of all store reads is not worth a change.
const WORTH: f64 = 0.02;

/// What is recommended.
#[derive(Debug, Clone)]
pub(crate) struct Verdict {
    /// The filter with the fewest store reads among those of its size.
    pub(crate) recommended: &'static str,
    /// Why, in a sentence or two.
    pub(crate) sentence: String,
    /// How to build it.
    pub(crate) code: String,
}

/// Whether a filter stayed within the space that all were given.
pub(crate) fn in_contest(row: &Row, plan: &Plan) -> bool {
    match plan.space {
        Space::BitsPerKey(bits) => row.bits_per_key <= TOLERANCE * bits,
        Space::Rate(_) => true,
    }
}

/// Judges what was measured. `None` if nothing was, or everything is too large.
pub(crate) fn judge(rows: &[Row], plan: &Plan) -> Option<Verdict> {
    let contest = || rows.iter().filter(|row| in_contest(row, plan));
    let best = contest().min_by(|a, b| order(a, b))?;
    let plain = contest().filter(|row| !row.adaptive).min_by(|a, b| order(a, b));
    let adaptive = contest().filter(|row| row.adaptive).min_by(|a, b| order(a, b));
    let mut sentence = match (plain, adaptive) {
        (Some(plain), Some(adaptive)) if adaptive.entry_name == best.entry_name => {
            against_plain(adaptive, plain)
        }
        (Some(plain), Some(adaptive)) => not_worth(plain, adaptive),
        _ => format!(
            "{} had the fewest store reads: {} in {} queries, {} of them useless.",
            best.entry_name,
            thousands(best.store_reads()),
            thousands(best.queries),
            thousands(best.false_positives)
        ),
    };
    if best.entry_name == "whitelist" {
        let with_remote =
            contest().filter(|row| row.adaptive && row.entry_name != "whitelist").min_by(|a, b| order(a, b));
        sentence += &whitelist_caveat(with_remote);
    }
    Some(Verdict { recommended: best.entry_name, sentence, code: code(best, plan) })
}

/// Fewest store reads first; then who stands up better to the attacker, who is faster, who is smaller.
pub(super) fn order(a: &Row, b: &Row) -> std::cmp::Ordering {
    (a.store_reads().cmp(&b.store_reads()))
        .then(a.attack.false_positives.cmp(&b.attack.false_positives))
        .then(b.filter_speed.total_cmp(&a.filter_speed))
        .then(a.bits_per_key.total_cmp(&b.bits_per_key))
}

fn against_plain(best: &Row, plain: &Row) -> String {
    let useless = |row: &Row| row.false_positives + row.remote_reads;
    let (ours, theirs) = (useless(best), useless(plain));
    let times = theirs as f64 / ours.max(1) as f64;
    let mut sentence = format!(
        "{} saves most: {} needless store reads in {} queries (those of its repairs included), where {}, the best that does \
         not adapt, made {}: {times:.1} times as many. An attacker who repeats what gets through had {:.2}% of his queries \
         accepted, against {:.0}%.",
        best.entry_name,
        thousands(ours),
        thousands(best.queries),
        plain.entry_name,
        thousands(theirs),
        100.0 * share(best),
        100.0 * share(plain),
    );
    let saved = plain.store_reads().saturating_sub(best.store_reads());
    if (saved as f64) < WORTH * plain.store_reads() as f64 {
        let part = 100.0 * saved as f64 / plain.store_reads().max(1) as f64;
        sentence += &format!(
            " But that is only {part:.1}% of all store reads, most of which find what they look for: unless somebody attacks, \
             an adaptive filter is hardly worth it for this stream."
        );
    }
    sentence
}

/// What counts alone do not show about the filter that keeps a list.
fn whitelist_caveat(second: Option<&Row>) -> String {
    let second = second.map_or_else(String::new, |row| {
        format!(" {} comes next, with {} store reads.", row.entry_name, thousands(row.store_reads()))
    });
    format!(
        " Mind that it cannot remove keys, and that its list grows with every new false positive.{second}"
    )
}

fn not_worth(plain: &Row, adaptive: &Row) -> String {
    format!(
        "Adaptive filters are not worth it for this stream: of the {} false positives of {} only {} were repeated ones. It had \
         {} store reads; {}, the best that adapts, had {}, those of its repairs included. If somebody may attack, it is \
         another matter: whoever repeats what gets through had {:.0}% of his queries accepted, against {:.2}%.",
        thousands(plain.false_positives),
        plain.entry_name,
        thousands(plain.repeated),
        thousands(plain.store_reads()),
        adaptive.entry_name,
        thousands(adaptive.store_reads()),
        100.0 * share(plain),
        100.0 * share(adaptive),
    )
}

/// The share of the attacker's queries that got through.
fn share(row: &Row) -> f64 {
    row.attack.false_positives as f64 / row.attack.queries.max(1) as f64
}

/// The code that builds the filter as it was measured.
fn code(row: &Row, plan: &Plan) -> String {
    let Ok(entry) = find(row.entry_name) else { return String::new() };
    let (name, keys) = (entry.type_name, plan.keys);
    let rate = format!("1.0 / {:.1}", 1.0 / row.rate);
    match entry.name {
        "fastbloom" => format!("let filter = {name}::with_false_pos({rate}).expected_items({keys});"),
        "qfilter" => format!("let filter = {name}::new({keys}, {rate})?;"),
        "cuckoofilter" => format!("let filter = {name}::with_capacity({keys});"),
        "xorf" => format!("let filter = {name}::try_from(&hashes_of_keys)?; // of {keys} keys"),
        _ => {
            let load = if has_load(entry.name) { ".max_load(0.95)" } else { "" };
            let calls = format!(".capacity({keys}).false_positive_rate({rate}){load}{}", entry.ground());
            let filter = format!("let filter = besom::{name}::builder(){calls}.build()?;");
            if entry.adaptive && entry.name != "whitelist" {
                filter
                    + "\nlet mut guard = besom::Guard::new(filter, your_store); // repairs false positives by itself"
            } else {
                filter
            }
        }
    }
}

/// Whether a filter has slots, and was given a load for them.
fn has_load(name: &str) -> bool {
    !name.starts_with("broom")
        && !["adaptive-bloom", "cascade", "whitelist", "bloom", "blocked-bloom", "tinyset", "bins"]
            .contains(&name)
}

#[cfg(test)]
mod tests {
    //! Catches: a recommendation that the figures do not bear out.
    use std::time::Duration;

    use super::super::replay::Attack;
    use super::*;

    const PLAN: Plan = Plan { keys: 1000, space: Space::BitsPerKey(12.0), seed: 1 };

    fn row(name: &'static str, bits: f64, false_positives: u64, remote_reads: u64) -> Row {
        Row {
            entry_name: name,
            adaptive: find(name).unwrap().adaptive,
            rate: 1.0 / 256.0,
            bits_per_key: bits,
            working_bits: 0,
            queries: 10_000,
            absent: 9000,
            false_positives,
            repeated: 0,
            lookups: 1000 + false_positives,
            remote_reads,
            adaptations: remote_reads,
            insert_time: Duration::ZERO,
            time: Duration::from_secs(1),
            filter_speed: 1e6,
            useless: Vec::new(),
            attack: Attack { queries: 100, false_positives: 1 },
        }
    }

    #[test]
    fn the_fewest_reads_among_those_of_the_size_win() {
        let rows =
            [row("bloom", 12.0, 500, 0), row("telescoping", 12.1, 50, 50), row("whitelist", 20.0, 10, 0)];
        let verdict = judge(&rows, &PLAN).unwrap();
        assert_eq!(verdict.recommended, "telescoping");
        assert!(verdict.sentence.contains("5.0 times as many"), "{}", verdict.sentence);
        assert!(
            verdict.code.contains("TelescopingFilter") && verdict.code.contains("1.0 / 256.0"),
            "{}",
            verdict.code
        );
        let by_rate = Plan { space: Space::Rate(0.01), ..PLAN };
        assert_eq!(judge(&rows, &by_rate).unwrap().recommended, "whitelist");
        assert!(judge(&rows[2..], &PLAN).is_none());
    }

    #[test]
    fn repairs_that_cost_more_than_they_save_are_not_recommended() {
        let rows = [row("bloom", 12.0, 60, 0), row("telescoping", 12.0, 50, 50)];
        let verdict = judge(&rows, &PLAN).unwrap();
        assert_eq!(verdict.recommended, "bloom");
        assert!(verdict.sentence.contains("not worth it"), "{}", verdict.sentence);
    }

    #[test]
    fn a_gain_that_hardly_matters_is_called_so() {
        let rows = [row("bloom", 12.0, 20, 0), row("telescoping", 12.0, 5, 5)];
        let verdict = judge(&rows, &PLAN).unwrap();
        assert!(verdict.sentence.contains("hardly worth it"), "{}", verdict.sentence);
    }
}
