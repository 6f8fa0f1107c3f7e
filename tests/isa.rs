//! Catches: a wish for an instruction set that is not heard, or that is heard and breaks something.

use std::process::Command;

use besom::isa::Isa;
use besom::quotient::QuotientFilter;
use besom::tinyset::TinySet;
use besom::{Filter, Insert};

/// What a process does that was started with a wish: says what it uses, and uses it.
#[test]
fn child() {
    println!("uses {}", Isa::active());
    let mut quotient = QuotientFilter::builder().capacity(2_000).seed(1_u64).build().unwrap();
    let mut tiny = TinySet::builder().capacity(2_000).seed(1_u64).build().unwrap();
    for key in 0..2_000_u64 {
        quotient.insert(&key).unwrap();
        tiny.insert(&key).unwrap();
    }
    assert!((0..2_000_u64).all(|key| quotient.contains(&key) && tiny.contains(&key)));
    quotient.verify().unwrap();
    tiny.verify().unwrap();
}

/// The version that a process with this wish uses; `None` where a test cannot start another process (under an emulator).
fn used_with(wish: &str) -> Option<String> {
    let itself = std::env::current_exe().ok()?;
    let mut child = Command::new(itself);
    child.args(["isa::child", "--exact", "--nocapture"]).env(Isa::VARIABLE, wish);
    let output = child.output().ok()?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{wish}: {said}");
    Some(said.split("uses ").nth(1)?.split_whitespace().next()?.to_owned())
}

#[test]
fn the_environment_chooses_among_what_the_processor_runs() {
    for isa in Isa::available() {
        let Some(used) = used_with(&isa.to_string()) else { return };
        assert_eq!(used, isa.to_string());
    }
}

#[test]
fn a_wish_that_cannot_be_met_changes_nothing() {
    let lacking = ["neon", "avx512", "sse9", ""];
    let available: Vec<String> = Isa::available().iter().map(ToString::to_string).collect();
    for wish in lacking.iter().filter(|&&wish| !available.iter().any(|name| name == wish)) {
        let Some(used) = used_with(wish) else { return };
        assert_eq!(used, Isa::best().to_string(), "{wish:?}");
    }
}
