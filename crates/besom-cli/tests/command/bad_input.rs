//! Bad input: one clear sentence, exit code 2, no file left behind.

use std::process::Stdio;

use crate::{Ended, Folder};

#[test]
fn files_that_are_no_files_of_keys_are_refused() {
    let folder = Folder::new();
    folder.file("empty", "");
    folder.file("long", [&b"a\n"[..], &vec![b'x'; (1 << 20) + 10], b"\nb\n"].concat());
    folder.file("torn.gz", [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3]);
    folder.file("torn.zst", [0x28, 0xb5, 0x2f, 0xfd, 9, 9]);
    std::fs::create_dir(folder.path("folder")).unwrap();
    let before = folder.names();
    let refused = |keys: &str, words: &str| {
        folder.run(&["build", keys, "-o", "out"]).refused(words);
        folder.run(&["compare", "--keys", keys, "--queries", keys]).refused(words);
        folder.run(&["compare", "--trace", keys, "--report", "out.html"]).refused(if keys == "empty" {
            "two different keys"
        } else {
            words
        });
    };
    refused("missing", "missing: ");
    refused("folder", "directory");
    refused("empty", "contains no keys");
    refused("long", "line 2: longer than 1048576 bytes");
    refused("torn.gz", "torn.gz: ");
    refused("torn.zst", "torn.zst: ");
    assert_eq!(folder.names(), before);
}

/// Any bytes are lines, for those who say so; a megabyte a line is not too long; repeated keys are one key.
#[test]
fn odd_keys_are_keys() {
    let folder = Folder::new();
    let mut garbage: Vec<u8> =
        (0..200_000_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    garbage.extend([vec![b'\n'], vec![b'x'; 1 << 20], vec![b'\n']].concat());
    folder.file("garbage", &garbage);
    folder.run(&["build", "garbage", "-o", "f"]).refused("garbage: this is a binary file");
    folder.run(&["build", "garbage", "-o", "f", "--keys-format", "lines"]).code(0);
    folder.run(&["query", "f", "garbage", "--keys-format", "lines", "--count"]).code(0);
    folder.lines("twice", (0..2000).map(|number| format!("key-{}", number % 1000)));
    let built = folder.run(&["build", "twice", "-o", "f", "--filter", "quotient", "--json"]).code(0).json();
    assert_eq!((&built["keys"], &built["repeated_keys"]), (&1000.into(), &1000.into()));
}

#[test]
fn a_key_in_both_lists_is_named() {
    let folder = Folder::new();
    folder.lines("yes", ["a", "b", "c"].map(str::to_owned).into_iter());
    folder.lines("no", ["x", "b", "c"].map(str::to_owned).into_iter());
    folder
        .run(&["build", "yes", "--no", "no", "-o", "f"])
        .refused("2 keys are in both lists, \"b\" among them");
    assert!(!folder.path("f").exists());
}

#[test]
fn damaged_filter_files_are_refused_by_everything_that_reads_them() {
    let folder = Folder::new();
    folder.lines("keys", (0..20_000).map(|number| format!("key-{number}")));
    folder.run(&["build", "keys", "-o", "good", "--filter", "telescoping"]).code(0);
    let good = std::fs::read(folder.path("good")).unwrap();
    let mut newer = good.clone();
    newer[8] = 99;
    let mut flipped = good.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 4;
    folder.file("newer", &newer);
    folder.file("flipped", &flipped);
    folder.file("cut", &good[..good.len() / 2]);
    folder.file("stub", &good[..100]);
    folder.file("text", "no filter at all\n");
    folder.file("nothing", "");
    let all = |file: &str, words: &str| {
        folder.run(&["query", file, "keys"]).refused(words);
        folder.run(&["inspect", file]).refused(words);
        folder.run(&["convert", file, "-o", "out"]).refused(words);
        folder.run(&["merge", file, "good", "-o", "out"]).code(2);
    };
    all("newer", "update besom");
    all("flipped", "is damaged");
    all("cut", "cut off");
    all("stub", "cut off");
    all("text", "not a besom file");
    all("nothing", "not a besom file: it is empty");
    all("gone", "gone: ");
    all(".", "directory");
    for (file, code) in
        [("good", 0), ("flipped", 1), ("cut", 1), ("stub", 2), ("text", 2), ("newer", 2), ("gone", 2)]
    {
        folder.run(&["verify", file]).code(code);
    }
    let verdict = folder.run(&["verify", "flipped", "--json"]).code(1).json();
    assert!(verdict["sound"] == false && verdict["problem"].as_str().unwrap().contains("chunk"), "{verdict}");
    assert!(!folder.path("out").exists());
}

#[test]
fn targets_that_cannot_be_replaced_are_left_alone() {
    let folder = Folder::new();
    folder.lines("keys", ["a".to_owned()].into_iter());
    std::fs::create_dir(folder.path("folder")).unwrap();
    folder.run(&["build", "keys", "-o", "folder"]).refused("is a directory");
    folder.run(&["build", "keys", "-o", "none/such"]).refused("its directory does not exist");
    folder.run(&["build", "keys", "-o", "/dev/full"]).refused("no ordinary file");
    folder.run(&["compare", "--trace", "keys", "--report", "folder"]).refused("is a directory");
    assert!(std::fs::metadata("/dev/full").is_ok_and(|there| !there.is_file()));
}

/// Files may not grow beyond a few kilobytes: as on a disk that is full, writing fails in the middle.
#[test]
fn a_full_disk_leaves_the_old_file_and_nothing_else() {
    let folder = Folder::new();
    folder.lines("keys", (0..100_000).map(|number| format!("key-{number}")));
    folder.file("out", "the old file");
    let before = folder.names();
    let line = |command: &str| format!("trap '' XFSZ; ulimit -f 16; exec {command}");
    folder.shell(&line("besom build keys -o out")).refused("out: ");
    assert_eq!(std::fs::read(folder.path("out")).unwrap(), b"the old file");
    folder.shell(&line("besom compare --trace keys --report page.html")).refused("temporary");
    folder
        .shell(&line("besom compare --story-queries 10 --filters bloom --store redb"))
        .refused("--store memory");
    assert_eq!(folder.names(), before);
    folder.run(&["build", "keys", "-o", "f"]).code(0);
    folder.shell("besom query f keys > /dev/full").refused("standard output: ");
    folder.shell("besom inspect f > /dev/full").refused("standard output: ");
    // A manual consists of many files: those that there are stay, none is cut off.
    folder.shell(&line("besom man --out pages")).code(0);
    let pages = || std::fs::read_dir(folder.path("pages")).unwrap().count();
    let whole = pages();
    folder.shell("trap '' XFSZ; ulimit -f 1; exec besom man --out pages").refused("pages: ");
    assert_eq!(pages(), whole, "nothing was left behind");
}

#[test]
fn a_closed_pipe_ends_it_silently() {
    let folder = Folder::new();
    folder.lines("keys", (0..100_000).map(|number| format!("key-{number}")));
    folder.run(&["build", "keys", "-o", "f"]).code(0);
    for arguments in [
        &["query", "f", "keys"][..],
        &["completions", "bash"],
        &["compare", "--trace", "keys", "--filters", "bloom", "--attack", "10", "--seeds", "1"],
        &["attack", "--games", "1", "--keys", "64", "--filters", "bloom"],
        &["man"],
        &["inspect", "f", "--json"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let child =
            folder.command(arguments).stdout(Stdio::from(writer)).stderr(Stdio::piped()).spawn().unwrap();
        // As a program that the signal ended, and without a word.
        assert_eq!(Ended::of(child.wait_with_output().unwrap()).code(141).err, "", "{arguments:?}");
    }
}

#[test]
fn wrong_usage_is_answered_with_exit_code_2_and_a_hint() {
    let folder = Folder::new();
    folder.lines("keys", ["a".to_owned()].into_iter());
    for (arguments, words) in [
        (&["build", "keys"][..], "--output"),
        (&["build", "keys", "-o", "f", "--filter", "blooom"], "blocked-bloom"),
        (&["build", "keys", "-o", "f", "--rate", "2"], "not a rate"),
        (&["build", "keys", "-o", "f", "--without-seed"], "--seed"),
        (&["compare", "--keys", "keys"], "--queries"),
        (&["compare", "--filters", "nonesuch"], "telescoping"),
        (&["compare", "--trace", "keys", "--keys", "keys"], "cannot be used with"),
        (&["compare", "--bits-per-key", "nan"], "not a number of bits"),
        (&["compare", "--trace", "keys", "--keys-format", "xml"], "csv:COLUMN"),
        (&["attack", "--adversaries", "nobody"], "single-query"),
        (&["merge", "keys", "-o", "f"], "2 values"),
        (&["nonsense"], "unrecognized"),
        (&[], "Usage"),
    ] {
        let ended = folder.run(arguments).code(2);
        assert!(ended.err.contains(words), "{arguments:?}: {}", ended.err);
    }
    folder
        .run(&["build", "keys", "-o", "f", "--filter", "tinyset", "--rate", "1e-30"])
        .refused("choose one from");
}
