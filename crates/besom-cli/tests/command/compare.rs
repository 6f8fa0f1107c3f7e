//! `compare`: the counts are those of an exact model, the recommendation is what it says.

use std::collections::HashSet;

use crate::Folder;

/// Keys and queries, three of four of them for absent keys, which come again and again.
fn data(folder: &Folder) -> (usize, usize) {
    let keys = (0..4000).map(|number| format!("key-{number}"));
    folder.lines("keys", keys.chain(["key-7".to_owned()]));
    let query = |number: u64| {
        let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        if number.is_multiple_of(4) {
            format!("key-{}", mixed % 4000)
        } else {
            format!("missing-{}", mixed % 3000)
        }
    };
    folder.lines("queries", (0..60_000).map(query));
    (15_000, 45_000)
}

#[test]
fn counts_add_up_and_the_best_is_recommended() {
    let folder = Folder::new();
    let (present, _) = data(&folder);
    for store in ["memory", "redb"] {
        let run = [
            "compare",
            "--keys",
            "keys",
            "--queries",
            "queries",
            "--filters",
            "all",
            "--attack",
            "5000",
            "--store",
            store,
            "--seeds",
            if store == "redb" { "1" } else { "3" },
            "--sample",
            "queries",
            "--json",
        ];
        let json = folder.run(&run).code(0).json();
        assert_eq!((&json["keys"], &json["queries"]), (&4000.into(), &60_000.into()));
        let filters = json["filters"].as_array().unwrap();
        assert_eq!(filters.len(), 31);
        let names: HashSet<_> = filters.iter().map(|filter| filter["filter"].as_str().unwrap()).collect();
        assert!(names.is_superset(&HashSet::from([
            "telescoping",
            "broom",
            "fastbloom",
            "qfilter",
            "cuckoofilter",
            "xorf"
        ])));
        let number = |filter: &serde_json::Value, field: &str| {
            filter[field].as_f64().unwrap_or_else(|| panic!("{field}")) as u64
        };
        for filter in filters {
            assert!(
                number(filter, "queries_per_second") > 0 && number(filter, "filter_queries_per_second") > 0
            );
            for run in filter["runs"].as_array().unwrap() {
                assert_eq!((number(run, "queries"), number(run, "absent_queries")), (60_000, 45_000));
                let wrong = number(run, "false_positives");
                assert_eq!(number(run, "lookups"), present as u64 + wrong, "{run}");
                assert_eq!(number(run, "store_reads"), number(run, "lookups") + number(run, "remote_reads"));
                if ["telescoping", "extension"].contains(&filter["filter"].as_str().unwrap()) {
                    // A repair reads one range. What insertions read is not the queries' fault.
                    assert!(number(run, "remote_reads") <= wrong, "{run}");
                }
                let again = number(run, "repeated_false_positives");
                if ["adaptive", "feedback"].contains(&filter["kind"].as_str().unwrap()) {
                    assert!(again * 4 <= wrong, "{filter}");
                } else {
                    // Every absent key comes fifteen times, so nearly all false positives are repeated ones.
                    assert!(wrong < 50 || again * 10 >= wrong * 8, "{filter}");
                    assert_eq!(number(run, "adaptations"), 0);
                    assert!(number(run, "attacked_false_positives") > 2000, "{filter}");
                }
            }
        }
        let contest = || filters.iter().filter(|filter| filter["in_contest"] == true);
        assert!(contest().all(|filter| filter["bits_per_key"].as_f64().unwrap() <= 12.0 * 1.05));
        let medians: Vec<f64> =
            filters.iter().map(|filter| filter["useless_reads"]["median"].as_f64().unwrap()).collect();
        assert!(medians.is_sorted(), "{medians:?}");
        assert!(json["verdict"]["headline"].is_string() && json["complete"] == true);
    }
}

/// The store that people use, with the filter built from the same numbers, sees what the contest saw.
#[test]
fn the_product_meets_the_same_false_positives_as_the_contest() {
    let folder = Folder::new();
    data(&folder);
    let run = |filters: &str, store: &str| {
        let files = ["compare", "--keys", "keys", "--queries", "queries", "--attack", "10", "--json"];
        let once = ["--filters", filters, "--store", store, "--seeds", "1"];
        folder.run(&[&files[..], &once].concat()).code(0).json()
    };
    for filter in [
        "telescoping",
        "extension",
        "broom",
        "cuckooing",
        "swapping",
        "cyclic-1",
        "cyclic-2",
        "cyclic-3",
        "adaptive-bloom",
        "cascade",
    ] {
        let json = run(filter, "redb");
        let (row, product) = (&json["filters"][0], &json["redb_store"]);
        assert_eq!(product["filter"], filter);
        let run = &row["runs"][0];
        assert_eq!(product["queries"], run["queries"], "{filter}: {json}");
        if filter.starts_with("cyc") || ["cuckooing", "swapping"].contains(&filter) {
            // Where their keys lie depends on the order in which they come, and a store has another one. Repairs help
            // all the same: without them it would be as many as these.
            let without = run["rate"].as_f64().unwrap() * run["absent_queries"].as_f64().unwrap();
            assert!(product["false_positives"].as_f64().unwrap() < 0.6 * without, "{filter}: {json}");
        } else {
            for field in ["false_positives", "adaptations"] {
                assert_eq!(product[field], run[field], "{filter}, {field}: {json}");
            }
        }
        assert!(product["queries_per_second"].as_f64().unwrap() > 0.0);
    }
    // The best of those that it takes; nothing where it takes none, or where no disk is wanted.
    assert_eq!(run("bloom,telescoping,whitelist", "redb")["redb_store"]["filter"], "telescoping");
    assert!(run("bloom,whitelist", "redb")["redb_store"].is_null());
    assert!(run("bloom,telescoping", "memory")["redb_store"].is_null());
    assert_eq!(folder.names(), ["keys", "queries"], "nothing stays behind");
}

/// A small filter of the cuckoo family: what it works in is shown, and not counted as bits of its keys.
#[test]
fn working_memory_stands_apart() {
    let folder = Folder::new();
    folder.lines("keys", (0..500).map(|number| format!("key-{number}")));
    folder.lines("queries", (0..1000).map(|number| format!("q-{number}")));
    let files = [
        "compare",
        "--keys",
        "keys",
        "--queries",
        "queries",
        "--filters",
        "cuckooing,bloom",
        "--store",
        "memory",
    ];
    let json = folder.run(&[&files[..], &["--json"]].concat()).code(0).json();
    let of = |name: &str| {
        json["filters"].as_array().unwrap().iter().find(|row| row["filter"] == name).unwrap().clone()
    };
    let working = of("cuckooing")["working_bits"].as_u64().unwrap();
    assert!(working > 1000, "{json}");
    assert!(of("cuckooing")["bits_per_key"].as_f64().unwrap() <= 12.0, "{json}");
    assert_eq!(of("bloom")["working_bits"], 0);
    let text = folder.run(&files).code(0).out;
    let told = format!("whatever the size: cuckooing {:.0} kbit.", working as f64 / 1000.0);
    assert!(text.replace('\n', " ").contains(&told), "{text}");
}

/// The same seed, the same counts: on another store as well. (xorf draws seeds of its own: each of its builds is
/// another.)
#[test]
fn counts_follow_from_the_seed() {
    let folder = Folder::new();
    data(&folder);
    let counts = |store: &str, seed: &str| {
        let filters = "telescoping,broom,swapping,adaptive-bloom,bloom,bloom+cache,qfilter";
        let run = [
            "compare",
            "--keys",
            "keys",
            "--queries",
            "queries",
            "--filters",
            filters,
            "--store",
            store,
            "--seed",
            seed,
            "--attack",
            "1000",
            "--seeds",
            "2",
            "--json",
        ];
        let json = folder.run(&run).code(0).json();
        let fields = ["false_positives", "store_reads", "adaptations", "attacked_false_positives"];
        let mut rows = json["filters"].as_array().unwrap().clone();
        rows.sort_by_key(|row| row["filter"].as_str().unwrap().to_owned());
        let of = |round: usize| {
            rows.iter()
                .map(|row| fields.map(|field| row["runs"][round][field].as_u64().unwrap()))
                .collect::<Vec<_>>()
        };
        [of(0), of(1)]
    };
    let (first, second) = (counts("memory", "1"), counts("memory", "2"));
    assert_eq!(first, counts("redb", "1"));
    assert_ne!(first, second);
    assert_eq!(first[1], second[0], "seeds follow one another");
}

#[test]
fn a_trace_is_cut_where_the_stored_keys_have_appeared() {
    let folder = Folder::new();
    // Six distinct keys; with a half of them stored, the queries begin after the first `c`.
    folder.lines("trace", "a b a c a d b e d d f".split(' ').map(str::to_owned));
    let run =
        ["compare", "--trace", "trace", "--filters", "bloom", "--json", "--attack", "10", "--seeds", "1"];
    let json = folder.run(&run).code(0).json();
    assert_eq!((&json["keys"], &json["queries"]), (&3.into(), &7.into()));
    let json = folder
        .run(&["compare", "--trace", "trace", "--stored", "0.1", "--filters", "bloom", "--json"])
        .code(0)
        .json();
    assert_eq!((&json["keys"], &json["queries"]), (&1.into(), &10.into()));
}

/// Formats: CSV, disk traces, gzip, standard input.
#[test]
fn keys_come_in_many_shapes() {
    let folder = Folder::new();
    folder.file("keys.csv", "id,name\n1,alpha\n2,\"be,ta\"\n");
    folder.lines("queries", ["alpha", "gamma", "be,ta"].map(str::to_owned).into_iter());
    let run = |more: &[&str]| {
        let run = [&["compare", "--filters", "bloom,telescoping", "--store", "memory", "--json"][..], more]
            .concat();
        folder.run(&run).code(0).json()
    };
    let csv = [
        "--keys",
        "keys.csv",
        "--keys-format",
        "csv:name",
        "--queries",
        "queries",
        "--queries-format",
        "lines",
    ];
    assert_eq!(run(&csv)["filters"][0]["runs"][0]["lookups"], 2);
    folder.file("pages.lis", "64 2 0 0\n7 1 0 1\n64 3 0 0\n");
    assert_eq!(run(&["--trace", "pages.lis"])["keys"], 2);
    let fed = folder
        .feed(&["compare", "--keys", "-", "--queries", "queries", "--filters", "bloom", "--json"], b"alpha\n")
        .code(0);
    assert_eq!(fed.json()["keys"], 1);
}

/// What is told without data, shortened.
#[test]
fn the_story_is_told() {
    let folder = Folder::new();
    let run = [
        "compare",
        "--story-queries",
        "200000",
        "--filters",
        "telescoping,bloom",
        "--store",
        "memory",
        "--attack",
        "20000",
        "--seeds",
        "1",
    ];
    let told = folder.run(&run).code(0);
    assert!(told.out.starts_with("1,000,000 keys, 200,000 queries: a package registry"), "{}", told.out);
    assert!(told.out.contains("Useless look-ups") && told.err.is_empty(), "{told:?}");
    assert!(folder.names().is_empty(), "nothing stays behind: {:?}", folder.names());
}

#[test]
fn a_rate_can_be_given_instead_of_space() {
    let folder = Folder::new();
    data(&folder);
    let run = [
        "compare",
        "--keys",
        "keys",
        "--queries",
        "queries",
        "--rate",
        "1/100",
        "--filters",
        "quotient,bloom,fastbloom,xorf,bloom+cache,stacked",
        "--seeds",
        "1",
        "--json",
    ];
    let json = folder.run(&run).code(0).json();
    for filter in json["filters"].as_array().unwrap() {
        assert_eq!(filter["in_contest"], true);
        let rate = if filter["filter"] == "xorf" { 1.0 / 256.0 } else { 0.01 };
        assert_eq!(filter["runs"][0]["rate"], rate);
    }
}
