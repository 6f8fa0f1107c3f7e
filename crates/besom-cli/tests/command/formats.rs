//! Files of keys as other programs write them. Catches: columns that are guessed wrong, marks and blank lines taken for
//! keys, bytes taken for text.

use crate::Folder;

/// How many keys a file has for `build`.
fn keys(folder: &Folder, name: &str, more: &[&str]) -> serde_json::Value {
    folder.run(&[&["build", name, "-o", "f", "--json", "--rate", "2^-16"][..], more].concat()).code(0).json()
}

fn has(folder: &Folder, key: &str) -> bool {
    folder.feed(&["query", "f", "--quiet"], format!("{key}\n").as_bytes()).code == Some(0)
}

#[test]
fn tables_are_known_by_their_names() {
    let folder = Folder::new();
    folder.file("one.csv", "name\nalpha\n\"be,ta\"\n");
    assert_eq!(keys(&folder, "one.csv", &[])["keys"], 2);
    assert!(has(&folder, "be,ta") && !has(&folder, "name"));
    folder.file("many.csv", "id,name\n1,alpha\n2,beta\n");
    folder
        .run(&["build", "many.csv", "-o", "g"])
        .refused("which column has the keys? Say csv:COLUMN as the format; there are id, name");
    assert_eq!(keys(&folder, "many.csv", &["--keys-format", "csv:name"])["keys"], 2);
    assert!(has(&folder, "beta"));
    folder
        .run(&["build", "many.csv", "-o", "g", "--keys-format", "csv:nome"])
        .refused("no column is called nome; there are id, name");
    folder.file("many.tsv", "id\tname\n1\tal\"pha\n2\tbeta\n");
    assert_eq!(keys(&folder, "many.tsv", &["--keys-format", "tsv:name"])["keys"], 2);
    assert!(has(&folder, "al\"pha"));
    folder.shell("gzip -k one.csv").code(0);
    assert_eq!(keys(&folder, "one.csv.gz", &[])["keys"], 2);
}

#[test]
fn fields_of_json_lines_are_keys() {
    let folder = Folder::new();
    folder.file("log.jsonl", "{\"user\": \"ann\", \"n\": 1}\n{\"user\": \"bob\", \"n\": 2}\n");
    folder
        .run(&["build", "log.jsonl", "-o", "g"])
        .refused("which field has the keys? Say jsonl:FIELD as the format; there are");
    assert_eq!(keys(&folder, "log.jsonl", &["--keys-format", "jsonl:user"])["keys"], 2);
    assert!(has(&folder, "ann"));
    assert_eq!(keys(&folder, "log.jsonl", &["--keys-format", "jsonl:n"])["keys"], 2);
    assert!(has(&folder, "2"));
    folder
        .run(&["build", "log.jsonl", "-o", "g", "--keys-format", "jsonl:host"])
        .refused("line 1: there is no field host");
    folder.file("broken.jsonl", "{\"user\": \"ann\"}\nnot json\n");
    folder.run(&["build", "broken.jsonl", "-o", "g"]).refused("line 2: no JSON object");
}

#[test]
fn marks_and_blank_lines_are_no_keys() {
    let folder = Folder::new();
    folder.file("marked", b"\xef\xbb\xbfalpha\r\n\r\nbeta\n\n\nalpha\n");
    let built = keys(&folder, "marked", &[]);
    assert_eq!(
        (&built["keys"], &built["repeated_keys"], &built["blank_lines"]),
        (&2.into(), &1.into(), &3.into())
    );
    assert!(has(&folder, "alpha"));
    let told = folder.run(&["build", "marked", "-o", "f"]).code(0).out;
    assert!(told.contains("1 lines repeated a key, 3 blank ones skipped"), "{told}");
    // Adaptive filters are built from keys, others from digests: the counts are the same.
    let built = keys(&folder, "marked", &["--filter", "telescoping"]);
    assert_eq!(
        (&built["keys"], &built["repeated_keys"], &built["blank_lines"]),
        (&2.into(), &1.into(), &3.into())
    );
    let counted = folder.feed(&["query", "f", "--count"], b"alpha\n\n\nx\n").code(1).out;
    assert_eq!(counted, "1 maybe, 1 no, 2 blank lines skipped\n");
    folder.file("asked", "alpha\n\nx\n\nalpha\n");
    let compare = |files: &[&str]| {
        let run =
            [&["compare", "--filters", "bloom", "--seeds", "1", "--store", "memory"][..], files].concat();
        folder.run(&run).code(0).out.replace('\n', " ")
    };
    let told = compare(&["--keys", "marked", "--queries", "asked"]);
    assert!(told.contains("the queries of asked (2 blank lines skipped)"), "{told}");
    let told = compare(&["--trace", "asked"]);
    assert!(told.contains("the trace asked (2 blank lines skipped): the first 1 of 2"), "{told}");
}

#[test]
fn what_is_no_text_is_refused_with_a_sentence() {
    let folder = Folder::new();
    folder.file("wide", b"\xff\xfea\0\n\0b\0\n\0");
    folder.run(&["build", "wide", "-o", "g"]).refused("wide: this is UTF-16 text; convert it to UTF-8");
    folder.file("big-endian", b"\xfe\xff\0a\0\n");
    folder.run(&["build", "big-endian", "-o", "g"]).refused("UTF-16");
    folder.file("program", b"\x7fELF\x02\x01\0\0\0\n");
    folder.run(&["build", "program", "-o", "g"]).refused("program: this is a binary file");
    folder.run(&["compare", "--trace", "program"]).refused("binary file");
    folder.lines("keys", (0..100).map(|number| number.to_string()));
    folder.run(&["build", "keys", "-o", "f"]).code(0);
    folder.run(&["query", "f", "program"]).refused("binary file");
    folder.run(&["query", "f", "f"]).refused("binary file");
}

#[test]
fn formats_are_explained_where_keys_are_read() {
    let folder = Folder::new();
    for command in ["build", "query", "compare"] {
        let help = folder.run(&[command, "--help"]).code(0).out;
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        for format in ["csv:COLUMN", "tsv:COLUMN", "jsonl:FIELD", "lines", "arc, capture", "byte-order mark"]
        {
            assert!(help.contains(format), "{command}: {format}");
        }
    }
}

/// Many keys, some of them twice and in other parts of the file: the filter has each once.
#[test]
fn a_build_on_all_cores_counts_as_one_on_one() {
    let folder = Folder::new();
    let key = |number: u64| format!("key-{}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 47);
    folder.lines("keys", (0..300_000).map(key));
    let distinct = (0..300_000).map(key).collect::<std::collections::HashSet<_>>().len();
    for filter in ["bins", "quotient", "bloom", "blocked-bloom", "tinyset"] {
        for hash in [&[][..], &["--siphash"]] {
            let more = [&["--filter", filter, "--rate", "1/256"][..], hash].concat();
            let built =
                folder.run(&[&["build", "keys", "-o", "f", "--json"][..], &more].concat()).code(0).json();
            assert_eq!(built["keys"], distinct, "{filter}");
            assert_eq!(built["repeated_keys"], 300_000 - distinct);
            folder.run(&["query", "f", "keys", "--count"]).code(0);
            folder.run(&["verify", "f"]).code(0);
        }
    }
}
