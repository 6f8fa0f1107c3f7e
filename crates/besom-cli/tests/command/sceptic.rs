//! What a sceptic asks of `compare`. Catches: rivals left out, verdicts without a difference, one draw sold as a
//! result, figures compared with others, threats kept back, filters missing from the picture.

use crate::Folder;

const FILES: [&str; 5] = ["compare", "--keys", "keys", "--queries", "queries"];

/// Keys, and queries for absent ones that come again and again, a few of them very often.
fn skewed(folder: &Folder) {
    folder.lines("keys", (0..4000).map(|number| format!("key-{number}")));
    let query = |number: u64| {
        let mixed = (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as f64 / 2_f64.powi(32);
        // Zipf's law with exponent 1 over 5000 keys, by inversion.
        format!("missing-{}", 5000_f64.powf(mixed) as u64)
    };
    folder.lines("queries", (0..60_000).map(query));
}

fn run(folder: &Folder, more: &[&str]) -> serde_json::Value {
    let files = [&FILES[..], &["--store", "memory", "--attack", "1000", "--json"], more].concat();
    folder.run(&files).code(0).json()
}

fn row<'j>(json: &'j serde_json::Value, name: &str) -> &'j serde_json::Value {
    let rows = json["filters"].as_array().unwrap();
    rows.iter().find(|row| row["filter"] == name).unwrap_or_else(|| panic!("{name}: {json}"))
}

fn number(value: &serde_json::Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}"))
}

/// (a) A Bloom filter with a cache, and a stacked filter, are there unless somebody leaves them out, in the same
/// memory.
#[test]
fn the_obvious_rivals_take_part_in_the_same_memory() {
    let folder = Folder::new();
    skewed(&folder);
    let json = run(&folder, &["--seeds", "3"]);
    for rival in ["bloom+cache", "stacked"] {
        let bits = number(&row(&json, rival)["bits_per_key"]);
        assert!(bits <= 12.0 * 1.05 && bits > 10.5, "{rival}: {bits}");
    }
    // The first tenth of the queries is what the stacked filter knows, and no part of what is measured.
    assert_eq!((&json["sampled_queries"], &json["queries"]), (&6000.into(), &54_000.into()));
    assert!(number(&json["cache_bytes"]) > 0.0);
    // What they are told of is worth something: the worst of a few seeds is better than that of a Bloom filter.
    let worst = |name: &str| number(&row(&json, name)["useless_reads"]["high"]);
    assert!(worst("bloom+cache") < worst("bloom") && worst("stacked") < worst("bloom"), "{json}");
}

/// (b) Where nothing can be saved, or next to nothing was measured, nobody is recommended.
#[test]
fn ties_have_no_winner() {
    let folder = Folder::new();
    skewed(&folder);
    let same =
        ["compare", "--keys", "keys", "--queries", "keys", "--store", "memory", "--seeds", "2", "--json"];
    let json = folder.run(&same).code(0).json();
    assert_eq!(json["verdict"]["finding"], "nothing-absent");
    assert_eq!(json["verdict"]["recommended"].as_array().unwrap().len(), 0);
    assert!(json["verdict"]["code"].is_null());
    folder.lines("queries", (0..1200).map(|number| format!("missing-{}", number % 600)));
    let json = run(&folder, &["--seeds", "3", "--filters", "telescoping,bloom,bins"]);
    assert_eq!(json["verdict"]["finding"], "too-few", "{}", json["verdict"]);
    let advice = json["verdict"]["details"][0].as_str().unwrap();
    assert!(advice.contains("queries, or fewer bits a key, would show a difference"), "{advice}");
}

/// (c) Several seeds, also for filters that have none of their own; a winner's range is below all others.
#[test]
fn one_draw_is_no_result() {
    let folder = Folder::new();
    skewed(&folder);
    let json =
        run(&folder, &["--filters", "telescoping,bloom,fastbloom,qfilter,cuckoofilter,xorf,bloom+cache"]);
    let seeds = number(&json["seeds"]);
    assert!((3.0..=9.0).contains(&seeds), "{seeds}");
    for filter in json["filters"].as_array().unwrap() {
        let runs = filter["runs"].as_array().unwrap();
        assert_eq!(runs.len() as f64, seeds);
        let useless = &filter["useless_reads"];
        assert!(number(&useless["low"]) < number(&useless["high"]), "every seed the same: {filter}");
    }
    let verdict = &json["verdict"];
    let recommended: Vec<_> =
        verdict["recommended"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    let best = row(&json, recommended[0]);
    for filter in json["filters"].as_array().unwrap().iter().filter(|row| row["in_contest"] == true) {
        let name = filter["filter"].as_str().unwrap();
        let parts = number(&best["useless_reads"]["high"]) < number(&filter["useless_reads"]["low"]);
        if verdict["finding"] == "winner" {
            assert!(name == recommended[0] || parts, "{name}: {verdict}");
        }
    }
    assert_eq!(run(&folder, &["--filters", "bloom", "--seeds", "4"])["seeds"], 4);
}

/// (d) Useless reads are compared with useless reads, and both stand in the table.
#[test]
fn like_is_compared_with_like() {
    let folder = Folder::new();
    skewed(&folder);
    // With queries for stored keys among them, whose reads are no filter's fault.
    let asked = std::fs::read_to_string(folder.path("queries")).unwrap();
    let mixed = asked.lines().enumerate().map(|(number, missing)| {
        if number % 4 == 0 { format!("key-{}", number % 4000) } else { missing.to_owned() }
    });
    folder.lines("queries", mixed);
    let some = ["--seeds", "3", "--filters", "extension,bloom"];
    let text = folder.run(&[&FILES[..], &["--store", "memory"], &some].concat()).code(0).out;
    let json = run(&folder, &some);
    assert_eq!(json["verdict"]["finding"], "winner", "{}", json["verdict"]);
    let headline = json["verdict"]["headline"].as_str().unwrap();
    assert!(text.replace('\n', " ").contains(headline), "{headline}: {text}");
    let medians: Vec<String> = json["filters"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|row| {
            ["low", "median", "high"].map(|part| number(&row["useless_reads"][part]).round().to_string())
        })
        .collect();
    let words = headline.replace(',', "");
    let figures: Vec<&str> = words
        .split_whitespace()
        .map(|word| word.trim_matches(|letter: char| !letter.is_ascii_alphanumeric()))
        .filter(|word| word.len() > 1 && word.chars().all(|letter| letter.is_ascii_digit()))
        .collect();
    assert!(!figures.is_empty(), "{headline}");
    for figure in figures {
        assert!(
            medians.iter().any(|median| median == figure),
            "{figure} is no figure of useless reads: {headline}"
        );
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80 || line.contains("::")), "{text}");
}

/// (e) Beside what is recommended stands what it does not withstand.
#[test]
fn the_threat_stands_beside_the_winner() {
    let folder = Folder::new();
    skewed(&folder);
    let files = [
        &FILES[..],
        &["--store", "memory", "--seeds", "3", "--filters", "whitelist,bloom", "--rate", "2^-7"],
    ]
    .concat();
    let text = folder.run(&files).code(0).out.replace('\n', " ");
    assert!(
        text.contains("does not withstand an attacker who whittles")
            && text.contains("80 to 100% of the games"),
        "{text}"
    );
    for filter in ["telescoping", "cuckooing", "bloom+cache", "stacked", "bloom"] {
        let json = run(&folder, &["--filters", filter, "--seeds", "1", "--bits-per-key", "8"]);
        let threat = json["verdict"]["threat"].as_str().unwrap();
        assert!(threat.contains("not withstand"), "{filter}: {threat}");
    }
}

/// (f) The first plot is logarithmic and has every filter; lines in the terminal are not cut off.
#[test]
fn every_filter_is_in_the_picture() {
    let folder = Folder::new();
    skewed(&folder);
    let files = [&FILES[..], &["--store", "memory", "--seeds", "3", "--report", "page.html"]].concat();
    let text = folder.run(&files).code(0).out;
    let page = std::fs::read_to_string(folder.path("page.html")).unwrap();
    let first = &page[page.find("<figure>").unwrap()..page.find("</figure>").unwrap()];
    assert!(first.contains("logarithmic") && !page.contains("far above"));
    let json = run(&folder, &["--seeds", "1"]);
    let filters = json["filters"].as_array().unwrap();
    assert_eq!(filters.len(), 15);
    for filter in filters {
        let name = filter["filter"].as_str().unwrap();
        assert!(first.contains(&format!(">{name}<")), "{name}");
    }
    // The plot stands before the table, and one sentence of at most 25 words before both.
    let (heading, table) = (page.find("<h1").unwrap(), page.find("<table").unwrap());
    assert!(heading < page.find("<figure>").unwrap() && page.find("<figure>").unwrap() < table);
    let heading = &page[heading..page.find("</h1>").unwrap()];
    let sentence = heading.split_once('>').unwrap().1.replace("<b>", "").replace("</b>", "");
    assert!(sentence.split_whitespace().count() <= 25 && heading.contains("<b>"), "{sentence}");
    // Only those that end with the most reach the top.
    let full = text.lines().filter(|line| line.contains("██████████████████████████████████████")).count();
    assert!(full <= 3, "{text}");
}

/// Streams and sizes that show nothing: each has its own sentence.
#[test]
fn what_shows_nothing_is_called_so() {
    let folder = Folder::new();
    skewed(&folder);
    let told = |more: &[&str]| {
        let files = [
            &FILES[..],
            &["--store", "memory", "--seeds", "2", "--filters", "telescoping,bloom,bins,xorf"],
            more,
        ]
        .concat();
        folder.run(&files).code(0).out.replace('\n', " ")
    };
    let small = told(&["--bits-per-key", "1"]);
    assert!(small.contains("No filter fits into 1 bit a key: the smallest,"), "{small}");
    folder.lines("queries", (0..60_000).map(|number| format!("fresh-{number}")));
    let fresh = told(&[]);
    assert!(
        fresh.contains("No absent key is asked for twice, so nothing can be saved by repairs"),
        "{fresh}"
    );
    assert!(!fresh.contains('\x1b'), "no colours where there is no terminal");
    // Nobody attacked, so nothing got through and nothing was held back.
    let peaceful = told(&["--attack", "0"]);
    assert!(peaceful.contains(" – ") && !peaceful.contains('%'), "{peaceful}");
}
