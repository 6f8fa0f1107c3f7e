//! The library from outside, in one program: what is generic is compiled once for all of these tests.
//!
//! `cargo test --test all format::` runs one subject.

mod adaptive_bloom;
mod addresses;
mod bloom_filters;
mod bulk;
mod cuckoo;
mod delta;
mod every_kind;
mod exact;
mod faults;
mod format;
mod fuzz;
mod growth;
mod isa;
mod modules;
mod promised_rate;
mod python;
mod quotient_filter;
mod sharded;

/// Counts what a thread allocates, for the tests of [`format`].
#[global_allocator]
static ALLOCATOR: format::memory::Counting = format::memory::Counting;

/// Panics that tests make happen are no news.
fn quiet_about_made_panics() {
    std::panic::set_hook(Box::new(|info| {
        let payload = info.payload();
        let owned = || payload.downcast_ref::<String>().map(String::as_str);
        let text = payload.downcast_ref::<&str>().copied().or_else(owned);
        if !text.is_some_and(|text| text.starts_with("made to panic")) {
            eprintln!("{info}");
        }
    }));
}
