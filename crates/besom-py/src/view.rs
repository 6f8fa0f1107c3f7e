//! What filters show of themselves.

use besom::FilterStats;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyDict};

use crate::state::Hashed;

/// An array of `bool`, which can be written to.
pub(crate) fn bool_array<'py>(py: Python<'py>, answers: &[bool]) -> PyResult<Bound<'py, PyAny>> {
    let numpy = py.import("numpy")?;
    // SAFETY: a bool is one byte, which is 0 or 1.
    let bytes = unsafe { std::slice::from_raw_parts(answers.as_ptr().cast::<u8>(), answers.len()) };
    let bool_type = numpy.getattr("bool_")?;
    if bytes.is_empty() {
        return numpy.call_method1("empty", (0, bool_type));
    }
    numpy.call_method1("frombuffer", (PyByteArray::new(py, bytes), bool_type))
}

/// The figures of a filter, by name.
pub(crate) fn stats<'py>(py: Python<'py>, stats: &FilterStats) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    all.set_item("items", stats.items)?;
    all.set_item("slots", stats.slots)?;
    all.set_item("load", stats.load)?;
    all.set_item("bits", stats.bits)?;
    all.set_item("bits_per_key", stats.bits_per_key())?;
    all.set_item("working_bits", stats.working_bits)?;
    all.set_item("adaptations", stats.adaptations)?;
    all.set_item("resets", stats.resets)?;
    all.set_item("spills", stats.spills)?;
    all.set_item("adapted_slots", stats.adapted_slots)?;
    all.set_item("adaptivity_bits", stats.adaptivity_bits)?;
    all.set_item("ghosts", stats.ghosts)?;
    all.set_item("ghost_bits", stats.ghost_bits)?;
    all.set_item("rebuilds", stats.rebuilds)?;
    Ok(all)
}

/// A filter in a line.
pub(crate) fn line(class: &str, filter: &Hashed) -> String {
    let stats = filter.stats();
    let size = size(stats.bits.div_ceil(8));
    let repairs = match stats.adaptations {
        0 => String::new(),
        repairs => format!(", {} repairs", grouped(repairs)),
    };
    let (len, capacity) = (grouped(filter.len() as u64), grouped(filter.capacity() as u64));
    format!("<besom.{class} {:?}: {len} of {capacity} keys, {size}{repairs}>", filter.kind().name())
}

/// A filter in a notebook: its figures, and a bar that says how full it is.
pub(crate) fn html(class: &str, filter: &Hashed) -> String {
    let stats = filter.stats();
    let (len, capacity) = (filter.len() as u64, filter.capacity() as u64);
    let share = 100.0 * len as f64 / (capacity.max(1) as f64);
    let measured = one_in(filter.measured_rate(1 << 16));
    let promised = one_in(filter.promised_rate());
    let bits = if len == 0 { String::new() } else { format!(", {:.1} bits per key", stats.bits_per_key()) };
    let can_repair = filter.is_adaptive() || stats.adaptations > 0;
    let repairs = can_repair.then(|| ("repairs", grouped(stats.adaptations)));
    let rows = [
        ("kind", format!("{}, {}", filter.kind().name(), filter.hash_name())),
        ("keys", format!("{} of {}<br>{}", grouped(len), grouped(capacity), bar(share))),
        ("size", format!("{}{bits}", size(stats.bits.div_ceil(8)))),
        ("rate", format!("{measured} (promised: {promised})")),
    ];
    let rows: String = rows
        .into_iter()
        .chain(repairs)
        .map(|(name, value)| {
            format!(
                "<tr><th style=\"text-align:left\">{name}</th><td style=\"text-align:left\">{value}</td></tr>"
            )
        })
        .collect();
    format!("<table><caption style=\"text-align:left\">besom.{class}</caption>{rows}</table>")
}

fn bar(percent: f64) -> String {
    let width = percent.clamp(0.0, 100.0);
    format!(
        "<div style=\"width:12em;height:.6em;background:#ddd\"><div style=\"width:{width:.0}%;height:100%;background:#4878a8\">\
         </div></div>"
    )
}

fn one_in(rate: f64) -> String {
    if rate > 0.0 { format!("1 in {}", grouped((1.0 / rate).round() as u64)) } else { "none seen".into() }
}

/// A size in the unit that suits it.
fn size(bytes: usize) -> String {
    match bytes {
        0..1000 => format!("{bytes} bytes"),
        1000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

/// A number with commas.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// What a guard has counted, by name. `negatives` were counted apart.
pub(crate) fn guard_stats<'py>(
    py: Python<'py>,
    stats: &besom::GuardStats,
    negatives: u64,
) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    let absent = stats.negatives + negatives + stats.false_positives;
    all.set_item("queries", stats.queries + negatives)?;
    all.set_item("negatives", stats.negatives + negatives)?;
    all.set_item("true_positives", stats.true_positives)?;
    all.set_item("false_positives", stats.false_positives)?;
    all.set_item("false_positive_rate", stats.false_positives as f64 / absent.max(1) as f64)?;
    all.set_item("failed_repairs", stats.failed_repairs)?;
    all.set_item("failed_removals", stats.failed_removals)?;
    all.set_item("denied", stats.denied)?;
    all.set_item("remote_reads", stats.remote_reads)?;
    all.set_item("remote_writes", stats.remote_writes)?;
    all.set_item("resyncs", stats.resyncs)?;
    all.set_item("rebuilds", stats.rebuilds)?;
    all.set_item("in_question", stats.in_question)?;
    all.set_item("slots_in_question", stats.slots_in_question)?;
    Ok(all)
}

/// What a store has counted, by name.
pub(crate) fn metrics<'py>(py: Python<'py>, metrics: &besom_store::Metrics) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    all.set_item("queries", metrics.queries)?;
    all.set_item("reads_avoided", metrics.reads_avoided)?;
    all.set_item("true_positives", metrics.true_positives)?;
    all.set_item("false_positives", metrics.false_positives)?;
    all.set_item("repeated_false_positives", metrics.repeated_false_positives)?;
    all.set_item("adaptations", metrics.adaptations)?;
    all.set_item("failed_adaptations", metrics.failed_adaptations)?;
    all.set_item("remote_reads", metrics.remote_reads)?;
    all.set_item("commits", metrics.commits)?;
    all.set_item("rebuilds", metrics.rebuilds)?;
    all.set_item("snapshots", metrics.snapshots)?;
    all.set_item("store_seconds", metrics.store_time.as_secs_f64())?;
    all.set_item("keys", metrics.keys)?;
    all.set_item("bits_per_key", metrics.bits_per_key)?;
    Ok(all)
}
