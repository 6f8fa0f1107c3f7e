//! Catches: an instruction set that does something else with a line than the definition says.

use super::super::layout::Cut;
use super::super::line::{Line, Run};
use super::super::machine::{Machine, Portable, Search};
#[cfg(target_arch = "x86_64")]
use crate::bits::Isa;
use crate::testing::Random;

/// The set bit of `places` that has `number` set bits below it, alone; 0 if there is none.
fn place_of(number: u32, places: u64) -> u64 {
    let set = (0..64).filter(|place| places >> place & 1 == 1);
    set.map(|place| 1 << place).nth(number as usize).unwrap_or(0)
}

/// Runs of all lengths, where those of lines with this many slots are.
fn runs(slots: u32, random: &mut Random) -> Vec<Run> {
    let mut runs: Vec<Run> = (0..=slots).map(|at| Run { first: 1 << at, last: 1 << at }).collect();
    runs.extend((0..60).map(|_| {
        let at = random.below(u64::from(slots)) as u32;
        let len = 1 + random.below(u64::from(slots - at)) as u32;
        Run { first: 1 << at, last: 1 << (at + len) }
    }));
    runs
}

/// The slots of a run whose bytes, of those that begin with `first`, pass a test.
fn passing(line: &Line, first: u32, run: Run, test: impl Fn(u8) -> bool) -> u64 {
    let slots = run.first.trailing_zeros()..run.last.trailing_zeros();
    let passing = slots.filter(|&slot| test(line.0[(first + slot) as usize]));
    passing.fold(0, |mask, slot| mask | 1 << slot)
}

/// Where the bytes of slots begin, and how many slots there are, in the layouts that differ most.
const COLUMNS: [(u32, u32); 4] = [(0, 55), (0, 51), (26, 26), (20, 20)];

/// Lines with few different bytes, so that equal ones are common, and with all of them.
fn lines() -> Vec<Line> {
    let mut random = Random::new(1);
    (0..200)
        .map(|number| {
            let mask = if number % 2 == 0 { 0x81 } else { 0xff };
            Line(std::array::from_fn(|_| random.next() as u8 & mask))
        })
        .collect()
}

fn search<M: Search>(machine: M) {
    let mut random = Random::new(2);
    for line in lines() {
        for (first, slots) in COLUMNS {
            for run in runs(slots, &mut random) {
                for byte in [0, 0x7f, 0x80, 0xff, line.0[3]] {
                    let expected = passing(&line, first, run, |stored| stored == byte);
                    assert_eq!(machine.equal(&line, first, byte, run), expected, "{byte} in {run:?}");
                }
            }
        }
    }
    for _ in 0..20_000 {
        let (occupied, borders) = (random.next() & random.next(), random.next() & random.next() | 1);
        assert_eq!(machine.count(borders), borders.count_ones());
        let class = random.below(64) as u32;
        let before = (occupied & ((1 << class) - 1)).count_ones();
        let with = before + (occupied >> class & 1) as u32;
        if with < borders.count_ones() {
            let Run { first, last } = machine.run::<Cut<49, 64, 1, 0>>(occupied, borders, class as usize);
            assert_eq!((first, last), (place_of(before, borders), place_of(with, borders)), "{class}");
        }
    }
}

fn machine<M: Machine>(machine: M) {
    search(machine);
    let mut random = Random::new(3);
    for line in lines() {
        for (first, slots) in COLUMNS {
            for run in runs(slots, &mut random) {
                for byte in [0, 1, 0x80, 0x81, 0xff, line.0[3]] {
                    let expected = passing(&line, first, run, |stored| stored < byte);
                    assert_eq!(machine.less(&line, first, byte, run), expected, "{byte} in {run:?}");
                }
            }
        }
        for (at, end) in
            [(0, 1), (0, 64), (31, 32), (31, 49), (32, 55), (48, 49), (63, 64), (5, 40), (30, 34)]
        {
            let mut bytes = line.0.to_vec();
            bytes.insert(at, 0xa5);
            bytes.remove(end);
            let mut opened = line;
            machine.open(&mut opened, at as u32, end as u32, 0xa5);
            assert_eq!(opened.0[..], bytes[..], "{at}..{end}");
            let mut bytes = line.0.to_vec();
            bytes.insert(end, 0);
            bytes.remove(at);
            let mut closed = line;
            machine.close(&mut closed, at as u32, end as u32);
            assert_eq!(closed.0[..], bytes[..], "{at}..{end}");
        }
    }
}

#[test]
fn every_machine_does_what_the_definition_says() {
    machine(Portable);
    #[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
    // SAFETY: the program was compiled for this machine.
    machine(unsafe { super::super::machine::neon::Neon::new() });
    #[cfg(target_arch = "x86_64")]
    {
        use super::super::machine::inlined::{InlinedAvx512, InlinedBmi2};
        use super::super::machine::x86::{Avx2, Avx512};

        #[target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt")]
        fn avx2() {
            // SAFETY: this function's features are the machine's.
            machine(unsafe { Avx2::new() });
        }
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx2,bmi1,bmi2,popcnt,lzcnt")]
        fn avx512() {
            // SAFETY: this function's features are the machine's.
            machine(unsafe { Avx512::new() });
        }
        if Isa::best() >= Isa::Avx2 {
            // SAFETY: these features were just detected.
            unsafe {
                avx2();
                search(InlinedBmi2::new());
            }
        }
        if Isa::best() >= Isa::Avx512 {
            // SAFETY: these features were just detected.
            unsafe {
                avx512();
                machine(InlinedAvx512::new());
            }
        }
    }
}
