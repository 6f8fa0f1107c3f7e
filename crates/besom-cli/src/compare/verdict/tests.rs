//! Catches: a recommendation that the figures do not bear out.
use std::time::Duration;

use super::super::replay::{Attack, Run};
use super::super::training::Training;
use super::*;

const STREAM: Stream = Stream { absent: 9000, repeated: 8000 };

fn plan(training: &Training) -> Plan<'_> {
    Plan { keys: 1000, space: Space::BitsPerKey(12.0), seed: 1, training }
}

fn row(name: &'static str, bits: f64, useless: &[u64], remote_reads: u64) -> Row {
    let run = |&false_positives: &u64| Run {
        seed: 1,
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
    };
    Row { entry_name: name, needs: find(name).unwrap().needs, runs: useless.iter().map(run).collect() }
}

#[track_caller]
fn judged(rows: &[Row], stream: Stream) -> Verdict {
    let training = Training::default();
    let verdict = judge(rows, &plan(&training), stream).unwrap();
    let words = verdict.plain_headline().split_whitespace().count();
    assert!(words <= 25, "{words} words: {}", verdict.headline);
    verdict
}

#[test]
fn a_winner_has_a_range_of_its_own() {
    let rows = [
        row("bloom", 12.0, &[500, 520, 480], 0),
        row("bloom+cache", 12.0, &[90, 95, 99], 0),
        row("telescoping", 12.1, &[50, 55, 60], 20),
        row("whitelist", 20.0, &[10, 10, 10], 0),
    ];
    let verdict = judged(&rows, STREAM);
    assert_eq!((verdict.finding, &verdict.recommended[..]), (Finding::Winner, &["telescoping"][..]));
    assert!(
        verdict.headline.contains("bloom+cache") && verdict.headline.contains("1.7 times"),
        "{verdict:?}"
    );
    let code = verdict.code.unwrap();
    assert!(code.contains("TelescopingFilter") && code.contains("1.0 / 256.0"), "{code}");
    assert!(verdict.threat.unwrap().contains("deletion-timing"));
    // By a rate, all sizes take part.
    let training = Training::default();
    let by_rate = Plan { space: Space::Rate(0.01), ..plan(&training) };
    let verdict = judge(&rows, &by_rate, STREAM).unwrap();
    assert_eq!(verdict.recommended, ["whitelist"]);
    assert!(verdict.threat.unwrap().contains("80 to 100%"));
    assert!(judge(&[], &by_rate, STREAM).is_none());
}

/// One draw has no range, and two of equal filters part once in three times.
#[test]
fn one_seed_or_two_have_no_winner() {
    let rows = |seeds: usize| {
        [
            row("bloom", 12.0, &[500, 510, 520][..seeds], 0),
            row("bloom+cache", 12.0, &[90, 91, 92][..seeds], 0),
            row("telescoping", 12.0, &[50, 52, 54][..seeds], 20),
        ]
    };
    for (seeds, told) in [(1, "1 seed: "), (2, "2 seeds: ")] {
        let verdict = judged(&rows(seeds), STREAM);
        assert_eq!(verdict.finding, Finding::TooFewSeeds);
        assert!(verdict.recommended.is_empty() && verdict.code.is_none() && verdict.threat.is_none());
        assert!(verdict.headline.contains(told) && verdict.headline.contains("bloom+cache 9"), "{verdict:?}");
    }
    assert_eq!(judged(&rows(3), STREAM).finding, Finding::Winner);
    // Nobody is compared with anybody.
    assert_eq!(judged(&rows(1)[..1], STREAM).finding, Finding::Winner);
}

/// How much chance there is in ranges that part: of six values in any order, three and three part in 2 of 20.
#[test]
fn the_chance_of_ranges_that_part_is_told() {
    let rows = [row("bloom", 12.0, &[500, 520, 480], 0), row("telescoping", 12.0, &[50, 55, 60], 20)];
    let told = |rows: &[Row]| judged(rows, STREAM).details.join(" ");
    assert!(told(&rows).contains("part like this once in 10 times at most"), "{}", told(&rows));
    let rows = [row("bloom", 12.0, &[500; 5], 0), row("telescoping", 12.0, &[50; 5], 20)];
    assert!(told(&rows).contains("once in 126 times at most"), "{}", told(&rows));
}

/// The stream is looked at up to a limit; filters are judged by what they were asked.
#[test]
fn a_stream_that_is_longer_than_what_was_looked_at_is_judged_by_all_of_it() {
    let rows =
        [row("bloom", 12.0, &[2500, 2520, 2480], 0), row("telescoping", 12.0, &[1000, 1010, 1020], 20)];
    let begun = |repeated| Stream { absent: 1500, repeated };
    assert_eq!(judged(&rows, begun(1000)).finding, Finding::Winner);
    // What comes again later was not seen yet.
    assert_eq!(judged(&rows, begun(0)).finding, Finding::Winner);
}

#[test]
fn ranges_that_overlap_have_no_winner() {
    let rows = [
        row("bloom", 12.0, &[500, 520, 480], 0),
        row("telescoping", 12.0, &[50, 55, 60], 0),
        row("broom", 12.0, &[51, 56, 61], 0),
    ];
    let verdict = judged(&rows, STREAM);
    assert_eq!((verdict.finding, &verdict.recommended[..]), (Finding::Level, &["telescoping", "broom"][..]));
    assert!(verdict.headline.starts_with("No difference at this size"), "{}", verdict.headline);
    assert!(verdict.details[0].contains("times as long"), "{verdict:?}");
}

#[test]
fn a_cache_that_suffices_is_recommended() {
    let rows = [
        row("bloom", 12.0, &[500, 520, 480], 0),
        row("bloom+cache", 12.0, &[58, 62, 70], 0),
        row("telescoping", 12.0, &[50, 55, 60], 0),
    ];
    let verdict = judged(&rows, STREAM);
    assert_eq!((verdict.finding, &verdict.recommended[..]), (Finding::Suffices, &["bloom+cache"][..]));
    assert!(verdict.headline.starts_with("**bloom+cache** suffices"), "{}", verdict.headline);
    assert!(verdict.code.unwrap().contains("schnellru"));
}

#[test]
fn streams_that_show_nothing_have_a_sentence_each() {
    let rows = [row("bloom", 12.0, &[16, 16, 16], 0), row("telescoping", 12.0, &[17, 17, 17], 5)];
    let verdict = judged(&rows, STREAM);
    assert_eq!(verdict.finding, Finding::TooFew);
    assert!(verdict.recommended.is_empty() && verdict.headline.contains("none made more than 17"));
    let verdict = judged(&rows, Stream { absent: 0, repeated: 0 });
    assert_eq!(verdict.finding, Finding::NothingAbsent);
    let rows = [row("bloom", 12.0, &[60, 61, 70], 0), row("telescoping", 12.0, &[50, 51, 52], 50)];
    let verdict = judged(&rows, Stream { absent: 9000, repeated: 0 });
    assert_eq!((verdict.finding, &verdict.recommended[..]), (Finding::NothingRepeated, &["bloom"][..]));
    let rows = [row("bloom", 14.0, &[60, 61, 70], 0), row("telescoping", 13.0, &[50, 51, 52], 50)];
    let verdict = judged(&rows, STREAM);
    assert!(verdict.headline.contains("the smallest, telescoping, takes 13.0"), "{}", verdict.headline);
    assert_eq!(verdict.details, ["Give it more memory, for example --bits-per-key 13."]);
    let rows = [row("bloom", 100.0, &[60, 61, 70], 0)];
    assert!(judged(&rows, STREAM).details[0].contains("so few keys need none"));
    let rows = [row("bloom", 12.0, &[6000, 6100, 7000], 0)];
    let verdict = judged(&rows, STREAM);
    assert_eq!(verdict.finding, Finding::TooSmall);
    assert_eq!(verdict.details, ["Give it more memory, for example --bits-per-key 13."]);
}

/// Reads of repairs are no secret, and compared with what they must be compared with.
#[test]
fn repairs_that_cost_more_than_they_save_are_told_of() {
    let rows = [row("bloom", 12.0, &[60, 62, 64], 0), row("telescoping", 12.0, &[50, 51, 52], 50)];
    let verdict = judged(&rows, STREAM);
    let told = verdict.details.iter().find(|text| text.contains("make it 101")).unwrap();
    assert!(told.contains("more than the 62 of bloom"), "{told}");
}

/// A repair that reads all over the place is not for nothing.
#[test]
fn what_repairs_read_elsewhere_counts() {
    let mut cuckoo = row("cuckooing", 12.0, &[10, 11, 12], 400);
    cuckoo.runs.iter_mut().for_each(|run| run.adaptations = run.false_positives);
    assert_eq!(cuckoo.useless().median, 400.0);
    let rows = [row("bloom", 12.0, &[500, 520, 480], 0), row("bloom+cache", 12.0, &[90, 95, 99], 0), cuckoo];
    assert_eq!(judged(&rows, STREAM).recommended, ["bloom+cache"]);
}

#[test]
fn a_gain_that_hardly_matters_is_called_so() {
    let rows = [row("bloom", 12.0, &[40, 40, 41], 0), row("telescoping", 12.0, &[30, 30, 31], 5)];
    let verdict = judged(&rows, STREAM);
    assert!(verdict.details.iter().any(|text| text.contains("hardly worth")), "{verdict:?}");
}
