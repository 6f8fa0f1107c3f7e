//! Every subcommand has examples in its help, and they work.

use crate::Folder;

/// What the examples are about.
fn prepared() -> Folder {
    let folder = Folder::new();
    let keys = |name: &'static str, count: u32| (0..count).map(move |number| format!("{name}-{number}"));
    folder.lines("names.txt", keys("name", 3000));
    folder.lines("requests.txt", keys("name", 5000).chain(keys("other", 5000)));
    folder.lines("revoked.txt", keys("revoked", 3000));
    folder.lines("valid.txt", keys("valid", 3000));
    folder.lines("monday.txt", keys("monday", 500));
    folder.lines("tuesday.txt", keys("tuesday", 500));
    folder.run(&["build", "revoked.txt", "--seed", "7", "-o", "revoked.besom"]).code(0);
    let trace: String = (0..500).map(|number| format!("{} 2 0 0\n", number * 7919 % 600)).collect();
    folder.file("OLTP.lis.zst", trace);
    folder.shell("gzip -k names.txt && mv names.txt.gz names.gz").code(0);
    folder
}

fn examples(help: &str) -> Vec<String> {
    let rest = help.split("Examples:").nth(1).expect("there are examples");
    let lines = rest.lines().skip(1).take_while(|line| !line.trim().is_empty());
    lines.map(|line| line.trim().to_owned()).collect()
}

/// Ordinary runs make the long ones shorter; one is left to those who have an hour.
fn shortened(line: &str) -> Option<String> {
    let more = match line {
        _ if crate::full() => "",
        "besom compare" => " --story-queries 20000 --filters telescoping,bloom --attack 1000 --seeds 1",
        "besom attack" => " --games 1 --keys 64",
        "besom compare --story zipf:10000000 --seeds 5 --store memory" => return None,
        _ if line.starts_with("besom attack") => " --keys 64",
        _ => "",
    };
    Some(format!("{line}{more}"))
}

#[test]
fn the_examples_of_every_command_work() {
    let folder = prepared();
    let verbs = [
        "compare",
        "build",
        "query",
        "inspect",
        "verify",
        "merge",
        "convert",
        "attack",
        "completions",
        "man",
    ];
    let listed = folder.run(&["--help"]).code(0).out;
    for verb in verbs {
        assert!(listed.contains(&format!("\n  {verb} ")), "{verb}");
        let help = folder.run(&[verb, "--help"]).code(0).out;
        let examples = examples(&help);
        assert!(examples.iter().any(|line| line.contains(&format!("besom {verb}"))), "{help}");
        for line in examples.iter().filter_map(|line| shortened(line)) {
            let ended = folder.shell(&line);
            // The names that are asked for are not revoked.
            let asks = line.starts_with("besom query") || line.contains("| besom query");
            // Some of them look like it, though.
            let code = if asks && !line.contains("--only maybe") { 1 } else { 0 };
            assert_eq!(ended.code, Some(code), "{line}: {ended:?}");
        }
    }
    for (file, what) in [
        ("report.html", "<!doctype html>"),
        ("target/man/besom.1", ".TH"),
        ("target/man/besom-compare.1", ".TH"),
    ] {
        let text = std::fs::read_to_string(folder.path(file)).unwrap();
        assert!(text.contains(what), "{file}");
    }
    for left in folder.names() {
        assert!(!left.starts_with('.'), "{left} was left behind");
    }
}

#[test]
fn the_version_is_told() {
    let folder = Folder::new();
    let version = folder.run(&["--version"]).code(0).out;
    assert_eq!(version, format!("besom {}\n", env!("CARGO_PKG_VERSION")));
    folder.run(&["query", "--version"]).code(0);
}

#[test]
fn shells_get_completions() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = folder.run(&["completions", shell]).code(0).out;
        assert!(script.contains("compare") && script.contains("bits-per-key"), "{shell}");
    }
}
