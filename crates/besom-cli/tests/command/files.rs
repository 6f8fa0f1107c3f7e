//! `build`, `query`, `inspect`, `verify`, `merge`, `convert`: every kind of filter, against the keys that it was built
//! from.

use besom::format::Kind;

use crate::Folder;

fn keys(range: std::ops::Range<u32>) -> impl Iterator<Item = String> {
    range.map(|number| format!("key-{number}"))
}

#[test]
fn every_kind_is_built_asked_inspected_and_verified() {
    let folder = Folder::new();
    folder.lines("keys", keys(0..3000));
    folder.lines("others", keys(10_000..40_000));
    // Shards are made by programs.
    folder.run(&["build", "keys", "--filter", "sharded", "-o", "f"]).code(2);
    for kind in Kind::ALL.iter().filter(|&&kind| kind != Kind::Sharded) {
        for hash in [&[][..], &["--siphash"]] {
            let build = [&["build", "keys", "--filter", kind.name(), "-o", "f", "--json"][..], hash].concat();
            let built = folder.run(&build).code(0).json();
            assert_eq!((&built["filter"], &built["keys"]), (&kind.name().into(), &3000.into()));
            folder.run(&["query", "f", "keys", "--count"]).code(0);
            let counts = folder.run(&["query", "f", "others", "--count", "--json"]).code(1).json();
            let maybe = counts["maybe"].as_u64().unwrap();
            assert!((10..400).contains(&maybe), "{kind}: {maybe} of 30000 at a rate of 1/256");
            folder.run(&["verify", "f"]).code(0);
            let inspected = folder.run(&["inspect", "f", "--json", "--sample", "20000"]).code(0).json();
            assert_eq!(inspected["filter"], kind.name());
            // Bloom filters do not count keys that they accept by chance when these come.
            let counted = inspected["keys"].as_u64().unwrap();
            let uncounted = kind.name().contains("bloom") || kind.name() == "whitelist";
            assert!(counted == 3000 || uncounted && (2980..3000).contains(&counted), "{kind}: {counted}");
            let measured = inspected["measured_rate"].as_f64().unwrap();
            assert!(measured < 0.01, "{kind}: {measured}");
            let promised = inspected["promised_rate"].as_f64().unwrap();
            assert!(promised <= 1.0 / 256.0, "{kind}: {promised}");
            assert!(measured < promised + 0.0025, "{kind}: {promised} promised, {measured} measured");
        }
    }
}

/// `build --no`: every key accepted, every negative rejected, a filter for everything else.
#[test]
fn known_negatives_are_excluded_by_every_filter_that_adapts() {
    let folder = Folder::new();
    folder.lines("yes", keys(0..2000));
    folder.lines("no", keys(5000..45_000));
    folder.lines("few", keys(5000..9000));
    // Those that keep whole levels of colliding keys make room by forgetting, once a twentieth of the keys collided.
    let room_for_all = [
        "telescoping",
        "telescoping-uncompressed",
        "extension",
        "extension-bins",
        "extension-quotient",
        "broom",
        "broom-bins",
        "broom-quotient",
        "whitelist",
    ];
    let room_for_few = ["adaptive-bloom", "cascade"];
    let lists = room_for_all
        .map(|kind| (kind, "no", 40_000))
        .into_iter()
        .chain(room_for_few.map(|kind| (kind, "few", 4000)));
    for (kind, no, negatives) in lists {
        let built = folder
            .run(&["build", "yes", "--no", no, "--filter", kind, "-o", "f", "--json", "--seed", "5"])
            .code(0)
            .json();
        assert_eq!(built["negatives"], negatives);
        assert!((3..4000).contains(&built["adaptations"].as_u64().unwrap()), "{kind}: {built}");
        let answers = folder.run(&["query", "f", "yes"]).code(0);
        assert!(answers.out.lines().all(|line| line.starts_with("maybe\tkey-")), "{kind}");
        let expected = format!("0 maybe, {negatives} no\n");
        assert_eq!(folder.run(&["query", "f", no, "--count"]).code(1).out, expected, "{kind}");
    }
    folder
        .run(&["build", "yes", "--no", "no", "--filter", "adaptive-bloom", "--seed", "5", "-o", "g"])
        .refused("forgets repairs");
    folder.run(&["build", "yes", "--no", "no", "--filter", "bloom", "-o", "g"]).refused("does not adapt");
    assert!(!folder.path("g").exists());
    let text = folder.run(&["inspect", "f"]).code(0).out;
    assert!(text.contains("measured with"), "{text}");
    folder.run(&["build", "yes", "--no", "no", "--updatable", "-o", "f"]).code(0);
    let histogram = folder.run(&["inspect", "f", "--json"]).code(0).json();
    assert_eq!(histogram["histogram_of"], "extension bits");
    let counts = histogram["histogram"].as_array().unwrap();
    assert!(
        counts.len() > 3 && counts.iter().map(|count| count.as_u64().unwrap()).sum::<u64>() == 2000,
        "{counts:?}"
    );
}

/// The size that is promised, at a tenth of the keys; all of them with `BESOM_FULL`.
#[test]
fn an_exact_list_of_rate_1_in_256_takes_8_bits_a_key() {
    let folder = Folder::new();
    let keys_of = if crate::full() { 1_000_000 } else { 100_000 };
    folder.lines("yes", keys(0..keys_of));
    folder.lines("no", keys(10_000_000..10_000_000 + keys_of));
    let built = folder
        .run(&["build", "yes", "--no", "no", "--rate", "0.00390625", "-o", "f", "--json"])
        .code(0)
        .json();
    let bits = built["bits_per_key"].as_f64().unwrap();
    assert!(bits <= 8.15, "{bits}");
    folder.run(&["query", "f", "yes", "--count"]).code(0);
    assert!(folder.run(&["query", "f", "no", "--count"]).code(1).out.starts_with("0 maybe, "));
    let rate = folder.run(&["inspect", "f", "--json"]).code(0).json()["measured_rate"].as_f64().unwrap();
    assert!(rate <= 1.05 / 256.0, "{rate}");
}

#[test]
fn answers_come_a_line_a_key_in_the_order_of_the_keys() {
    let folder = Folder::new();
    folder.lines("keys", ["a", "b"].map(str::to_owned).into_iter());
    folder.run(&["build", "keys", "-o", "f", "--rate", "0.00001"]).code(0);
    let asked = folder.feed(&["query", "f"], b"b\nx\n\na").code(1);
    assert_eq!(asked.out, "maybe\tb\nno\tx\nmaybe\ta\n");
    let asked = folder.feed(&["query", "f", "-", "--json"], b"b\r\nx\n").code(1);
    assert_eq!(asked.out, "{\"key\":\"b\",\"maybe\":true}\n{\"key\":\"x\",\"maybe\":false}\n");
    assert_eq!(folder.feed(&["query", "f", "--trust", "--count"], b"a\n").code(0).out, "1 maybe, 0 no\n");
}

#[test]
fn filters_that_were_built_alike_are_merged() {
    let folder = Folder::new();
    folder.lines("left", keys(0..500));
    folder.lines("right", keys(500..1000));
    for kind in ["bins", "quotient", "bloom", "blocked-bloom"] {
        for side in ["left", "right"] {
            folder
                .run(&[
                    "build",
                    side,
                    "--filter",
                    kind,
                    "--seed",
                    "0x7",
                    "--capacity",
                    "1000",
                    "-o",
                    &format!("{side}.besom"),
                ])
                .code(0);
        }
        let merged =
            folder.run(&["merge", "left.besom", "right.besom", "-o", "both", "--json"]).code(0).json();
        assert_eq!(merged["keys"], 1000, "{kind}");
        folder.run(&["query", "both", "left", "--count"]).code(0);
        folder.run(&["query", "both", "right", "--count"]).code(0);
        folder.run(&["verify", "both"]).code(0);
    }
    folder
        .run(&[
            "build",
            "right",
            "--filter",
            "blocked-bloom",
            "--seed",
            "8",
            "--capacity",
            "1000",
            "-o",
            "right.besom",
        ])
        .code(0);
    folder.run(&["merge", "left.besom", "right.besom", "-o", "none"]).refused("seed");
    folder.run(&["build", "left", "--filter", "telescoping", "-o", "t"]).code(0);
    folder.run(&["merge", "t", "t", "-o", "none"]).refused("cannot be merged");
    assert!(!folder.path("none").exists());
}

#[test]
fn the_seed_is_left_out_and_put_back() {
    let folder = Folder::new();
    folder.lines("keys", keys(0..100));
    folder.run(&["build", "keys", "--seed", "12", "--generation", "3", "-o", "f"]).code(0);
    let told = folder.run(&["convert", "f", "--without-seed", "-o", "public"]).code(0).out;
    assert!(told.contains("0xc"), "{told}");
    folder
        .run(&["query", "public", "keys"])
        .refused("this file does not contain its seed; pass it with --seed");
    folder.run(&["query", "public", "keys", "--seed", "13"]).refused("--seed is not the one");
    folder.run(&["query", "public", "keys", "--seed", "12", "--count"]).code(0);
    folder.run(&["verify", "public"]).refused("--seed");
    folder.run(&["convert", "public", "--seed", "12", "--generation", "4", "-o", "f"]).code(0);
    let inspected = folder.run(&["inspect", "f", "--json"]).code(0).json();
    assert_eq!((&inspected["generation"], &inspected["seed_included"]), (&4.into(), &true.into()));
}

/// `diff` and `apply`: the bytes of the new file, from the old one alone.
#[test]
fn deltas_lead_from_file_to_file() {
    let folder = Folder::new();
    folder.lines("monday", keys(0..20_000));
    folder.lines("tuesday", keys(0..20_200));
    for day in ["monday", "tuesday"] {
        let build = ["build", day, "--capacity", "25000", "--seed", "7", "-o", &format!("{day}.besom")];
        folder.run(&build).code(0);
    }
    let made = folder.run(&["diff", "monday.besom", "tuesday.besom", "-o", "delta", "--json"]).code(0).json();
    assert_eq!(made["method"], "fingerprints");
    assert!(made["delta_bytes"].as_u64().unwrap() < 200 * 3 + 300, "{made}");
    folder.run(&["apply", "monday.besom", "delta", "-o", "new.besom"]).code(0);
    folder.run(&["query", "new.besom", "tuesday", "--quiet"]).code(0);
    let counts = |file: &str| folder.run(&["query", file, "others", "--count"]).code(1).out;
    folder.lines("others", keys(100_000..150_000));
    assert_eq!(counts("new.besom"), counts("tuesday.besom"));
    folder.run(&["apply", "tuesday.besom", "delta", "-o", "wrong"]).refused("belongs to another file");
    assert!(!folder.path("wrong").exists());
    folder.run(&["apply", "monday.besom", "monday.besom", "-o", "wrong"]).refused("not a delta");
    // A list is built again as a whole.
    folder.lines("no", keys(50_000..90_000));
    for day in ["monday", "tuesday"] {
        let file = format!("{day}.exact");
        let built =
            folder.run(&["build", day, "--no", "no", "--seed", "7", "-o", &file, "--json"]).code(0).json();
        let (bits, limit) =
            (built["bits_per_key"].as_f64().unwrap(), built["limit_bits_per_key"].as_f64().unwrap());
        assert_eq!(built["filter"], "exact");
        assert!(bits < 1.15 * limit, "{built}");
    }
    folder.run(&["diff", "monday.exact", "tuesday.exact", "-o", "none"]).code(1);
    assert!(!folder.path("none").exists());
    folder.run(&["convert", "tuesday.exact", "--generation", "3", "-o", "again"]).code(0);
    folder.run(&["query", "again", "tuesday", "--quiet"]).code(0);
    assert!(folder.run(&["query", "again", "no", "--count"]).code(1).out.starts_with("0 maybe, "));
}
