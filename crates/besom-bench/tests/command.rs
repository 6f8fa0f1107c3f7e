//! Catches: a program that panics, prints broken JSON, or exits with the wrong code.

use std::process::{Command, Output};

use serde_json::Value;

fn bench(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_besom-bench")).args(arguments).output().expect("the program starts")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("the program writes UTF-8")
}

#[test]
fn json_has_an_object_for_every_filter_and_size() {
    let output = bench(&["--quick", "--json", "--log2-slots", "10,12", "--filters", "limit,qfilter,xorf"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let rows: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = rows.as_array().expect("a list");
    assert_eq!(rows.len(), 6);
    for row in rows {
        for speed in ["insert_mops", "positive_mops", "negative_mops"] {
            assert!(row[speed].as_f64().is_some_and(|mops| mops > 0.0), "{row}");
        }
        assert!(row["bits_per_key"].as_f64().is_some_and(|bits| bits > 5.0), "{row}");
        let is_limit = row["filter"] == "limit";
        assert_eq!(row["batch_negative_mops"].is_number(), is_limit, "{row}");
        assert_eq!(row["fpr"].is_null(), is_limit, "{row}");
    }
}

#[test]
fn the_table_shows_figures_ratios_and_footnotes() {
    let output = bench(&[
        "--quick",
        "--log2-slots",
        "10",
        "--filters",
        "qfilter,fastbloom",
        "--adapt-queries",
        "1000",
    ]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    for expected in ["2^10 slots", "× = times qfilter", "BloomFilter::with_false_pos", "Zipf(1.0)"] {
        assert!(table.contains(expected), "{expected} is missing:\n{table}");
    }
}

#[test]
fn an_unknown_filter_is_an_error_of_usage() {
    let output = bench(&["--filters", "nonesuch"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("qfilter, "), "{}", text(&output.stderr));
    assert!(output.stdout.is_empty());
}

#[test]
fn a_filter_that_cannot_be_measured_is_reported_and_the_others_are_measured() {
    let output = bench(&["--quick", "--json", "--fill", "0.5,1", "--filters", "xorf,qfilter"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let rows: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let failed: Vec<&Value> =
        rows.as_array().expect("a list").iter().filter(|row| row.get("error").is_some()).collect();
    assert_eq!(failed.len(), 1, "{rows}");
    assert_eq!((&failed[0]["filter"], failed[0]["fill"].as_f64()), (&Value::from("xorf"), Some(1.0)));
}

#[test]
fn the_list_names_every_filter() {
    let output = bench(&["--list"]);
    assert!(output.status.success());
    for name in ["limit", "qfilter", "fastbloom", "fastbloom-xxh3", "xorf", "cuckoofilter"] {
        assert!(text(&output.stdout).lines().any(|line| line.starts_with(&format!("{name} "))), "{name}");
    }
}
