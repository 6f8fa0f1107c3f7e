//! Catches: an instruction set that does something else with a line than the definition says.

use super::super::line::Line;
use super::super::machine::{Machine, Portable, Search};
use crate::bits::Isa;
use crate::testing::Random;

/// The set bit of `places` that has `number` set bits below it, alone; 0 if there is none.
fn place_of(number: u64, places: u64) -> u64 {
    let set = (0..64).filter(|place| places >> place & 1 == 1);
    set.map(|place| 1 << place).nth(number as usize).unwrap_or(0)
}

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
        for byte in [0, 1, 0x7f, 0x80, 0x81, 0xff, line.0[3], line.0[63]] {
            let equal = (0..64).filter(|&at| line.0[at] == byte).fold(0, |mask, at| mask | 1_u64 << at);
            assert_eq!(machine.equal(&line, byte), equal);
        }
        let (places, bit) = (random.next() | 1, random.below(64));
        assert_eq!(machine.deposit(1 << bit, places), place_of(bit, places));
        assert_eq!(machine.count(places), places.count_ones());
        assert_eq!(machine.deposit(0, places), 0);
    }
}

fn machine<M: Machine>(machine: M) {
    search(machine);
    for line in lines() {
        for byte in [0, 1, 0x7f, 0x80, 0x81, 0xff, line.0[3]] {
            let less = (0..64).filter(|&at| line.0[at] < byte).fold(0, |mask, at| mask | 1_u64 << at);
            assert_eq!(machine.less(&line, byte), less);
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
