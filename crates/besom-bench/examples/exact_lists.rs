//! Exact lists beside clubcard and the Bloom filter cascade, and static filters beside xorf, all in one run.
//!
//! ```text
//! cargo run --release -p besom-bench --example exact_lists -- [YES] [RATIO …]
//! cargo run --release -p besom-bench --example exact_lists -- stream YES NO
//! ```
//!
//! `YES` accepted keys (10^6 unless given) and `RATIO` times as many rejected ones; a ratio below 1 has more accepted
//! than rejected keys. Sizes are those of files, header and all, in bits per key of the shorter list. Construction is
//! given in processor time, of all cores together; queries are interleaved, and the shortest of their times counts.
//! `BESOM_ISA` chooses the instructions. With `stream`, one list is built from keys that are nowhere in memory, and the
//! most memory that the process ever had is printed.

use std::hint::black_box;
use std::time::Instant;

use besom::Filter;
use besom::exact::{ExactList, List, Lists, limit_bits};
use besom::format::Persist;
use clubcard::builder::{ApproximateRibbon, ClubcardBuilder, ExactRibbon};
use clubcard::{ApproximateSizeOf, AsQuery, Clubcard, Equation, Filterable, Queryable};
use rust_cascade::{Cascade, CascadeBuilder, HashAlgorithm};
use xorf::{BinaryFuse8, BinaryFuse16};

/// The words of a row in a clubcard.
const W: usize = 4;

/// A key of a clubcard. Its hash is a cheap one, as ours is.
struct Number {
    key: [u8; 8],
    hash: [u64; W],
    included: bool,
}

fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

impl Number {
    fn new(key: u64, included: bool) -> Self {
        let first = mix(key);
        let hash = [first | 1, mix(first ^ 1), mix(first ^ 2), mix(first ^ 3)];
        Self { key: key.to_le_bytes(), hash, included }
    }
}

impl AsQuery<W> for Number {
    fn as_query(&self, rows: usize) -> Equation<W> {
        let start = (self.hash[W - 1] as usize) % rows.max(1);
        Equation::inhomogeneous(start, self.hash, u8::from(!self.included))
    }

    fn block(&self) -> &[u8] {
        &[]
    }

    fn discriminant(&self) -> &[u8] {
        &self.key
    }
}

impl Filterable<W> for Number {
    fn included(&self) -> bool {
        self.included
    }
}

impl Queryable<W> for Number {
    type UniverseMetadata = ();
    type PartitionMetadata = ();

    fn in_universe(&self, (): &()) -> bool {
        true
    }
}

fn clubcard(yes: &[u64], no: &[u64]) -> Clubcard<W, (), ()> {
    let mut builder = ClubcardBuilder::<W, Number>::new();
    let mut first = builder.new_approx_builder(&[]);
    yes.iter().for_each(|&key| first.insert(Number::new(key, true)));
    first.set_universe_size(yes.len() + no.len());
    builder.collect_approx_ribbons(vec![ApproximateRibbon::from(first)]);
    let mut second = builder.new_exact_builder(&[]);
    yes.iter().for_each(|&key| second.insert(Number::new(key, true)));
    no.iter().for_each(|&key| second.insert(Number::new(key, false)));
    builder.collect_exact_ribbons(vec![ExactRibbon::from(second)]);
    builder.build::<Number>((), ())
}

fn cascade(yes: &[u64], no: &[u64]) -> Result<Box<Cascade>, Box<dyn std::error::Error>> {
    let mut builder = CascadeBuilder::new(HashAlgorithm::MurmurHash3, vec![], yes.len(), no.len());
    for key in yes {
        builder.include(key.to_le_bytes().to_vec()).map_err(|error| format!("{error:?}"))?;
    }
    for key in no {
        builder.exclude(key.to_le_bytes().to_vec()).map_err(|error| format!("{error:?}"))?;
    }
    Ok(builder.finalize().map_err(|error| format!("{error:?}"))?)
}

/// The processor time of this process, all threads together; the time of day where nobody counts it.
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let ticks = stat.rsplit(')').next().map(|fields| fields.split_whitespace().skip(11).take(2));
    let ticks: Option<f64> = ticks.and_then(|ticks| ticks.map(|field| field.parse::<f64>().ok()).sum());
    let now = || {
        std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0.0, |time| time.as_secs_f64())
    };
    ticks.map_or_else(now, |ticks| ticks / 100.0)
}

/// What work returns, and the processor time that it takes.
fn seconds<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let start = processor_seconds();
    let result = work();
    (result, (processor_seconds() - start).max(0.01))
}

/// Asks about keys, and counts those that are accepted.
type Ask<'a> = &'a mut dyn FnMut(&[u64]) -> usize;

/// Keys that are asked about between two looks at the clock: so few that a piece is often answered without
/// interruption.
const PIECE: usize = 1 << 13;

/// The time of each question in nanoseconds a key, asked in turns. Of every piece the shortest time counts.
fn nanoseconds<const N: usize>(queries: &[u64], mut ask: [Ask<'_>; N]) -> [f64; N] {
    let mut best = [(); N].map(|()| vec![f64::INFINITY; queries.len().div_ceil(PIECE)]);
    for _ in 0..15 {
        for (ask, best) in ask.iter_mut().zip(&mut best) {
            for (piece, best) in queries.chunks(PIECE).zip(best) {
                let start = Instant::now();
                black_box(ask(piece));
                *best = best.min(start.elapsed().as_secs_f64());
            }
        }
    }
    best.map(|best| best.iter().sum::<f64>() * 1e9 / queries.len() as f64)
}

fn keys(count: usize, odd: bool) -> Vec<u64> {
    let first = if odd { 0 } else { 1 << 40 };
    (first..first + count as u64).map(|number| mix(number) & !1 | u64::from(odd)).collect()
}

fn list(yes: usize, ratio: f64) -> Result<(), Box<dyn std::error::Error>> {
    let (yes, no) = (keys(yes, true), keys((yes as f64 * ratio) as usize, false));
    let (ours, our_time) = seconds(|| ExactList::builder().seed(7_u64).build(&yes, &no));
    let ours = ours?;
    let (club, club_time) = seconds(|| clubcard(&yes, &no));
    let shorter = yes.len().min(no.len()) as f64;
    let bits = |bytes: usize| 8.0 * bytes as f64 / shorter;
    let wrong = yes.iter().filter(|key| !ours.contains(*key)).count()
        + no.iter().filter(|key| ours.contains(*key)).count();
    let limit = limit_bits(yes.len() as u64, no.len() as u64) / shorter;
    let our_bits = bits(ours.to_bytes(&Default::default())?.len());
    let club_bits = bits(club.approximate_size_of());
    // Cascades are slow: beside small lists only.
    let cascade_bits = if yes.len() + no.len() <= 2_000_000 {
        format!("{:.2}", bits(cascade(&yes, &no)?.approximate_size_of()))
    } else {
        "–".into()
    };
    let queries: Vec<u64> =
        yes.iter().zip(no.iter().cycle()).flat_map(|(&yes, &no)| [yes, no]).take(1 << 20).collect();
    let mut answers = Vec::new();
    let [single, batched, theirs] = nanoseconds(
        &queries,
        [
            &mut |keys| keys.iter().filter(|key| ours.contains(*key)).count(),
            &mut |keys| {
                ours.contains_many(keys, &mut answers);
                answers.len()
            },
            &mut |keys| keys.iter().filter(|key| club.unchecked_contains(&Number::new(**key, true))).count(),
        ],
    );
    println!(
        "| {} : {} | {limit:.3} | {our_bits:.3} | {club_bits:.3} | {cascade_bits} | {wrong} | {:.3} | {our_time:.2} | {:.2} | {single:.1} | {batched:.1} | {theirs:.1} |",
        yes.len(),
        no.len(),
        ours.unknown_rate(),
        club_time / our_time,
    );
    Ok(())
}

/// A list that accepts at most one unknown key in 256: its size beside r + 1 + k/2^r with r = 7, and what it accepts.
fn bounded(yes: usize, ratio: f64) -> Result<(), Box<dyn std::error::Error>> {
    let (yes, no) = (keys(yes, true), keys((yes as f64 * ratio) as usize, false));
    let list = ExactList::builder().seed(7_u64).unknown_rate(1.0 / 256.0).build(&yes, &no)?;
    let wrong = yes.iter().filter(|key| !list.contains(*key)).count()
        + no.iter().filter(|key| list.contains(*key)).count();
    let bits = 8.0 * list.to_bytes(&Default::default())?.len() as f64 / yes.len() as f64;
    let formula = 8.0 + ratio / 128.0;
    let unknown = (1_u64 << 50..(1 << 50) + (1 << 22)).filter(|&number| list.contains(&mix(number))).count();
    println!(
        "| {} : {} | {bits:.3} | {formula:.3} | {:.4} | {wrong} | 1/{:.1} |",
        yes.len(),
        no.len(),
        bits / formula,
        f64::from(1 << 22) / unknown.max(1) as f64,
    );
    Ok(())
}

fn filter(count: usize) -> Result<(), Box<dyn std::error::Error>> {
    let keys_in = keys(count, true);
    let strangers = keys(count.min(1 << 20), false);
    let eight = ExactList::builder().seed(7_u64).build_filter(&keys_in)?;
    let sixteen = ExactList::builder().seed(7_u64).unknown_rate(1.0 / 65536.0).build_filter(&keys_in)?;
    let (xor8, xor16) = (BinaryFuse8::try_from(&keys_in)?, BinaryFuse16::try_from(&keys_in)?);
    for (name, ours, theirs_bits) in [
        ("1/256", &eight, 8.0 * xor8.fingerprints.len() as f64),
        ("1/65536", &sixteen, 16.0 * xor16.fingerprints.len() as f64),
    ] {
        let queries: Vec<u64> = keys_in
            .iter()
            .zip(&strangers)
            .flat_map(|(&key, &stranger)| [key, stranger])
            .take(1 << 20)
            .collect();
        let mut answers = Vec::new();
        let [single, batched, theirs] = nanoseconds(
            &queries,
            [
                &mut |keys| keys.iter().filter(|key| ours.contains(*key)).count(),
                &mut |keys| {
                    ours.contains_many(keys, &mut answers);
                    answers.len()
                },
                &mut |keys| {
                    if name == "1/256" {
                        keys.iter().filter(|key| xorf::Filter::contains(&xor8, *key)).count()
                    } else {
                        keys.iter().filter(|key| xorf::Filter::contains(&xor16, *key)).count()
                    }
                },
            ],
        );
        let accepted = strangers.iter().filter(|key| ours.contains(*key)).count();
        println!(
            "| {count} | {name} | {:.3} | {:.3} | 1/{:.0} | {single:.1} | {batched:.1} | {theirs:.1} | {:.2} | {:.2} |",
            8.0 * ours.to_bytes(&Default::default())?.len() as f64 / count as f64,
            theirs_bits / count as f64,
            strangers.len() as f64 / accepted.max(1) as f64,
            theirs / single,
            theirs / batched,
        );
    }
    Ok(())
}

/// Numbers that are made as they are read: those below `yes` are accepted.
struct Stream {
    yes: u64,
    no: u64,
}

impl Lists for Stream {
    type Error = std::convert::Infallible;

    fn visit(&mut self, list: List, mut visit: impl FnMut(&[u8])) -> Result<(), Self::Error> {
        let numbers = if list == List::Yes { 0..self.yes } else { self.yes..self.yes + self.no };
        numbers.for_each(|number| visit(&mix(number).to_le_bytes()));
        Ok(())
    }

    fn count(&mut self, list: List) -> Result<u64, Self::Error> {
        Ok(if list == List::Yes { self.yes } else { self.no })
    }
}

fn stream(yes: u64, no: u64) -> Result<(), Box<dyn std::error::Error>> {
    let start = Instant::now();
    let (list, time) = seconds(|| ExactList::builder().seed(7_u64).build_from(&mut Stream { yes, no }));
    let (list, elapsed) = (list?, start.elapsed().as_secs_f64());
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("unknown").to_owned();
    let wrong = (0..yes + no).filter(|&number| list.contains(&mix(number)) != (number < yes)).count();
    let mut file = Counted(0);
    list.write_to(&mut file, &Default::default())?;
    println!(
        "{yes} : {no}: {:.3} bits a key of the shorter list, {wrong} wrong answers, {elapsed:.1} s ({time:.1} s of processor time), \
         most memory {peak}",
        8.0 * file.0 as f64 / if no == 0 { yes } else { yes.min(no) } as f64
    );
    Ok(())
}

/// Counts what is written.
struct Counted(u64);

impl std::io::Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if std::env::args().nth(1).as_deref() == Some("stream") {
        let number = |at: usize| -> Result<u64, Box<dyn std::error::Error>> {
            Ok(std::env::args().nth(at).ok_or("stream takes two numbers")?.parse()?)
        };
        return stream(number(2)?, number(3)?);
    }
    let arguments: Vec<f64> =
        std::env::args().skip(1).map(|argument| argument.parse()).collect::<Result<_, _>>()?;
    let yes = arguments.first().map_or(1_000_000, |&yes| yes as usize);
    let ratios = if arguments.len() > 1 { arguments[1..].to_vec() } else { vec![1.0, 10.0] };
    println!("instructions: {}\n", besom::isa::Isa::active());
    println!(
        "| yes : no | limit | besom, bits | clubcard | cascade | wrong | unknown accepted | build, s | times clubcard's speed | query, ns | batched | clubcard |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|");
    ratios.iter().try_for_each(|&ratio| list(yes, ratio))?;
    println!("\n| yes : no, unknown 1/256 | besom, bits | r + 1 + k/2^r | ratio | wrong | measured rate |");
    println!("|---|---|---|---|---|---|");
    ratios.iter().filter(|&&ratio| ratio >= 1.0).try_for_each(|&ratio| bounded(yes, ratio))?;
    println!(
        "\n| keys | rate | besom, bits | xorf | measured rate | query, ns | batched | xorf | of its speed | batched |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    filter(yes)
}
