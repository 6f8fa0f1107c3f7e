//! `besom inspect`: what a filter file holds.

use std::path::PathBuf;

use besom::format::{FormatError, Header, Kind};
use besom::{ExtensionFilter, HashKind, KeyHasher, SipHash, TelescopingFilter, Xxh3};
use clap::Args;
use serde::Serialize;

use crate::error::{Ending, Failure, Outcome};
use crate::filters::{self, How, Opened, named, typed};
use crate::output::{self, Paint, thousands};

/// Which file.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  besom inspect revoked.besom
  besom inspect revoked.besom --json

Exit codes: 0 success, 2 usage or input error.")]
pub(crate) struct Inspect {
    /// The filter file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The seed, if the file does not contain it
    #[arg(long, value_name = "SEED", value_parser = filters::seed)]
    seed: Option<u128>,
    /// How many random keys to measure the rate with
    #[arg(long, value_name = "N", default_value_t = 1 << 20)]
    sample: u64,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

/// What a file holds.
#[derive(Serialize)]
struct Report {
    file: String,
    filter: &'static str,
    format_version: u16,
    hash: String,
    seed_included: bool,
    generation: u64,
    keys: u64,
    capacity: u64,
    bytes: u64,
    bits_per_key: f64,
    /// What only a filter that can be asked shows; `null` for a file without its seed.
    #[serde(flatten)]
    inside: Option<Inside>,
    parameters: Vec<(&'static str, u64)>,
}

/// What only a filter that can be asked shows.
#[derive(Serialize)]
struct Inside {
    slots: usize,
    load: f64,
    adaptations: u64,
    adapted_slots: usize,
    spilled_blocks: usize,
    resets: u64,
    rebuilds: u64,
    ghosts: usize,
    /// What the numbers of the histogram mean: `selector` or `extension bits`.
    histogram_of: Option<&'static str>,
    /// Keys by selector, or by length of the extension.
    histogram: Vec<usize>,
    /// The most that the full filter accepts of other keys, before repairs.
    promised_rate: f64,
    /// The share of random keys that the filter accepts.
    measured_rate: f64,
    sample: u64,
}

impl Inspect {
    pub(crate) fn run(&self) -> Outcome {
        let (region, header) = filters::map(&self.file)?;
        let inside = match self.inside(&header) {
            Ok(inside) => Some(inside),
            // The header is there for everybody, and that nothing is damaged can be seen without a seed.
            Err(Failure::Filter { source: FormatError::SeedMissing, .. }) if self.seed.is_none() => {
                besom::format::check(&mut &region[..]).map_err(|error| named(&self.file, error))?;
                None
            }
            Err(failure) => return Err(failure),
        };
        let report = Report {
            file: self.file.display().to_string(),
            filter: header.kind.name(),
            format_version: header.version,
            hash: header.hash.to_string(),
            seed_included: header.seed.is_some(),
            generation: header.generation,
            keys: header.len,
            capacity: header.capacity,
            bytes: header.file_len(),
            bits_per_key: 8.0 * header.file_len() as f64 / header.len.max(1) as f64,
            inside,
            parameters: parameters(&header),
        };
        if self.json {
            output::print_json(&report)?;
        } else {
            output::print(&report.text(Paint::stdout()))?;
        }
        Ok(Ending::Fine)
    }

    fn inside(&self, header: &Header) -> Outcome<Inside> {
        let (filter, _) = filters::open(&self.file, self.seed, How::Checked)?;
        let stats = filter.stats();
        let (histogram_of, histogram) = self.histogram(header)?;
        Ok(Inside {
            slots: stats.slots,
            load: stats.load,
            adaptations: stats.adaptations,
            adapted_slots: stats.adapted_slots,
            spilled_blocks: stats.spills,
            resets: stats.resets,
            rebuilds: stats.rebuilds,
            ghosts: stats.ghosts,
            histogram_of,
            histogram,
            promised_rate: filter.promised_rate(),
            measured_rate: measured_rate(filter.as_ref(), self.sample),
            sample: self.sample,
        })
    }

    /// Selectors or extensions, counted.
    fn histogram(&self, header: &Header) -> Outcome<(Option<&'static str>, Vec<usize>)> {
        match header.hash {
            HashKind::SipHash => self.histogram_as::<SipHash>(header),
            _ => self.histogram_as::<Xxh3>(header),
        }
    }

    fn histogram_as<H: KeyHasher>(&self, header: &Header) -> Outcome<(Option<&'static str>, Vec<usize>)> {
        let (region, _) = filters::map(&self.file)?;
        // It was checked already.
        let failed = |error| named(&self.file, error);
        Ok(match header.kind {
            Kind::Telescoping => {
                let (filter, _) =
                    typed::<TelescopingFilter<H>>(&region, self.seed, How::Trusted).map_err(failed)?;
                (Some("selector"), filter.selectors())
            }
            Kind::Extension => {
                let (filter, _) =
                    typed::<ExtensionFilter<H>>(&region, self.seed, How::Trusted).map_err(failed)?;
                (Some("extension bits"), filter.extension_lengths())
            }
            _ => (None, Vec::new()),
        })
    }
}

/// What the numbers of a header mean.
fn parameters(header: &Header) -> Vec<(&'static str, u64)> {
    const VALUES: &[&str] =
        &["quotients", "remainder bits", "blocks", "growable", "overflow (0 reset, 1 spill)"];
    const BINS: &[&str] = &["bins", "slots of a bin", "bits of class and tag"];
    const CUCKOO: &[&str] = &["tables", "slots of a bin", "bins of a table", "bits of a slot"];
    let names: &[&str] = match header.kind {
        Kind::Quotient => &["quotients", "remainder bits", "blocks", "doublings left"],
        Kind::Bins => BINS,
        Kind::Extension if is_on_bins(header) => BINS,
        Kind::Telescoping | Kind::TelescopingUncompressed | Kind::Extension => VALUES,
        Kind::CuckooRemote
        | Kind::Cuckoo
        | Kind::Cuckooing
        | Kind::Swapping
        | Kind::Cyclic1
        | Kind::Cyclic2
        | Kind::Cyclic3 => CUCKOO,
        Kind::Bloom | Kind::Whitelist => &["words", "probes"],
        Kind::BlockedBloom => &["words", "probes", "half lines"],
        Kind::TinySet => &["bits of a block", "chains", "removal", "blocks"],
        Kind::Exact => &["keys that are rejected"],
        _ => &[],
    };
    names.iter().copied().zip(header.parameters).collect()
}

/// Whether the file is that of an extension filter on bins: blocks of a quotient table have codes, whose bits are the
/// sixth.
fn is_on_bins(header: &Header) -> bool {
    header.kind == Kind::Extension && header.parameters[5] == 0
}

/// The share of random keys that the filter accepts. They are 16 bytes that nobody has stored.
fn measured_rate(filter: &dyn Opened, sample: u64) -> f64 {
    let (mut random, mut accepted, mut answers) =
        (besom_lab::random::Random::new(0x696e_7370), 0, Vec::new());
    let mut left = sample;
    while left > 0 {
        let count = left.min(4096);
        let keys: Vec<[u8; 16]> = (0..count)
            .map(|_| {
                let (high, low) = (random.next_u64(), random.next_u64());
                (u128::from(high) << 64 | u128::from(low)).to_le_bytes()
            })
            .collect();
        let slices: Vec<&[u8]> = keys.iter().map(<[u8; 16]>::as_slice).collect();
        filter.contains_many(&slices, &mut answers);
        accepted += answers.iter().filter(|&&maybe| maybe).count() as u64;
        left -= count;
    }
    accepted as f64 / sample.max(1) as f64
}

impl Report {
    fn text(&self, paint: Paint) -> String {
        let mut lines = vec![
            ("filter", format!("{}, {} (format version {})", self.filter, self.hash, self.format_version)),
            ("keys", format!("{} of {}", thousands(self.keys), thousands(self.capacity))),
            ("size", format!("{} bytes, {:.2} bits a key", thousands(self.bytes), self.bits_per_key)),
            ("seed", if self.seed_included { "in the file".into() } else { "left out".to_owned() }),
            ("generation", self.generation.to_string()),
        ];
        lines.extend(self.parameters.iter().map(|&(name, value)| (name, value.to_string())));
        match &self.inside {
            Some(inside) => lines.extend(inside.lines()),
            None => lines.push(("load, repairs and rate", "need the seed; pass it with --seed".into())),
        }
        let mut text: String = lines
            .iter()
            .map(|(name, value)| format!("{} {value}\n", paint.dim(&format!("{name:<28}"))))
            .collect();
        if let Some((what, histogram)) =
            self.inside.as_ref().and_then(|inside| Some((inside.histogram_of?, &inside.histogram)))
        {
            text += &format!("\nkeys by {what}\n");
            let rows = histogram.iter().enumerate().filter(|(_, count)| **count > 0);
            rows.for_each(|(number, count)| text += &format!("{number:>8}  {}\n", thousands(*count as u64)));
        }
        text
    }
}

impl Inside {
    fn lines(&self) -> Vec<(&'static str, String)> {
        let mut lines = vec![("load", format!("{:.3} of {}", self.load, thousands(self.slots as u64)))];
        if self.adaptations > 0 {
            let slots =
                format!("{} in {} slots", thousands(self.adaptations), thousands(self.adapted_slots as u64));
            let side = format!(
                "{} blocks spilled, {} resets, {} rebuilds",
                self.spilled_blocks, self.resets, self.rebuilds
            );
            lines.push(("repairs", format!("{slots}; {side}")));
        }
        let (promised, measured) = (per(self.promised_rate), per(self.measured_rate));
        let sample = thousands(self.sample);
        lines.push(("rate", format!("{promised} promised, {measured} measured with {sample} keys")));
        lines
    }
}

/// A rate as people read it.
fn per(rate: f64) -> String {
    if rate > 0.0 { format!("1/{:.0} ({:.4}%)", 1.0 / rate, 100.0 * rate) } else { "0".into() }
}
