//! A list that is shipped to many machines: a million keys that must be accepted, ten million that must be rejected, from files.
//!
//! ```text
//! cargo run --release --features mmap --example exact_list -- [ACCEPTED]
//! ```
//!
//! The list is built from the files without holding them in memory, saved, opened in a memory map and asked. The next day's changes are
//! shipped as two small lists: the keys that came, against all that are known, and the keys that went, against those that stayed. A patch is
//! an exact list itself, so the answers stay exact.

use std::error::Error;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use besom::Filter;
use besom::exact::{ExactList, List, Lists, limit_bits};
use besom::format::{Persist, ReadOptions, Region, WriteOptions};

/// Two files of keys, one a line.
struct Files {
    yes: PathBuf,
    no: PathBuf,
}

impl Lists for Files {
    type Error = io::Error;

    fn visit(&mut self, list: List, mut visit: impl FnMut(&[u8])) -> io::Result<()> {
        let mut reader = BufReader::new(File::open(if list == List::Yes { &self.yes } else { &self.no })?);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line)? > 0 {
            visit(line.trim_ascii_end());
            line.clear();
        }
        Ok(())
    }
}

fn name(number: u64) -> String {
    format!("certificate-{number:x}")
}

fn write(path: &Path, numbers: impl Iterator<Item = u64>) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    for number in numbers {
        writeln!(file, "{}", name(number))?;
    }
    file.flush()
}

fn open(path: &Path) -> Result<ExactList, Box<dyn Error>> {
    // SAFETY: nobody changes the files of this example; saving replaces them.
    let region = unsafe { Region::map(&File::open(path)?)? };
    Ok(ExactList::open(&region, &ReadOptions::new())?.0)
}

fn main() -> Result<(), Box<dyn Error>> {
    let accepted: u64 = std::env::args().nth(1).map_or(Ok(1_000_000), |count| count.parse())?;
    let (known, changes) = (11 * accepted, accepted / 100);
    let folder = std::env::temp_dir().join(format!("besom-exact-{}", std::process::id()));
    std::fs::create_dir(&folder)?;
    let path = |name: &str| folder.join(name);
    write(&path("yes.txt"), 0..accepted)?;
    write(&path("no.txt"), accepted..known)?;

    let mut files = Files { yes: path("yes.txt"), no: path("no.txt") };
    let list = ExactList::builder().build_from(&mut files)?;
    list.save(path("list.besom"), &WriteOptions::new().generation(1))?;
    let bytes = std::fs::metadata(path("list.besom"))?.len();
    let limit = limit_bits(accepted, known - accepted) / 8.0;
    println!(
        "shipped: {bytes} bytes, {:.3} bits a key; no list can take less than {limit:.0} bytes",
        bytes as f64 * 8.0 / accepted as f64
    );

    // The next day, some keys that were rejected are to be accepted, and the other way round.
    let came: Vec<String> = (accepted..accepted + changes).map(name).collect();
    let went: Vec<String> = (0..changes).map(name).collect();
    let others = (0..accepted).chain(accepted + changes..known).map(name);
    let builder = || ExactList::builder().seed(list.seed());
    builder().build(&came, others)?.save(path("came.besom"), &WriteOptions::new().generation(2))?;
    builder()
        .build(&went, (changes..accepted).map(name))?
        .save(path("went.besom"), &WriteOptions::new().generation(2))?;
    for patch in ["came", "went"] {
        let bytes = std::fs::metadata(path(&format!("{patch}.besom")))?.len();
        println!("patch, {patch}: {bytes} bytes, {:.2} a change", bytes as f64 / changes as f64);
    }

    // On the other machines: three memory maps, one hash.
    let [list, came, went] = ["list", "came", "went"].map(|file| open(&path(&format!("{file}.besom"))));
    let (list, came, went) = (list?, came?, went?);
    let answer = |key: &str| {
        let digest = list.digest(key.as_bytes());
        came.contains_digest(digest) || list.contains_digest(digest) && !went.contains_digest(digest)
    };
    let wrong = (0..known)
        .filter(|&number| answer(&name(number)) != (changes..accepted + changes).contains(&number))
        .count();
    println!("{known} keys asked, {wrong} wrong answers");
    std::fs::remove_dir_all(&folder)?;
    if wrong == 0 { Ok(()) } else { Err("there were wrong answers".into()) }
}
