//! The command in pipelines. Catches: answers that wait for more keys, codes that scripts misread, noise, files that
//! cannot be piped.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use crate::Folder;

fn built(folder: &Folder) {
    folder.lines("keys", (0..1000).map(|number| format!("key-{number}")));
    folder.run(&["build", "keys", "-o", "f", "--rate", "2^-16"]).code(0);
}

/// A program that waits for each answer before it asks the next gets it.
#[test]
fn every_line_is_answered_when_it_comes() {
    let folder = Folder::new();
    built(&folder);
    let mut child =
        folder.command(&["query", "f"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut asks, answers) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    // A watchdog instead of a test that hangs.
    let (done, watched) = std::sync::mpsc::channel::<()>();
    let watchdog = std::thread::spawn(move || {
        if watched.recv_timeout(std::time::Duration::from_secs(60)).is_err() {
            let _ = child.kill();
        }
        child.wait().unwrap().code()
    });
    let mut answers = BufReader::new(answers);
    for (key, answer) in [("key-1", "maybe\tkey-1\n"), ("x", "no\tx\n"), ("key-999", "maybe\tkey-999\n")] {
        asks.write_all(format!("{key}\n").as_bytes()).unwrap();
        asks.flush().unwrap();
        let mut line = String::new();
        answers.read_line(&mut line).unwrap();
        assert_eq!(line, answer);
    }
    drop(asks);
    done.send(()).unwrap();
    assert_eq!(watchdog.join().unwrap(), Some(1));
}

#[test]
fn keys_are_chosen_as_grep_chooses_lines() {
    let folder = Folder::new();
    built(&folder);
    let asked =
        |more: &[&str], input: &str| folder.feed(&[&["query", "f"][..], more].concat(), input.as_bytes());
    let mixed = "key-1\nx\nkey-2\ny\n";
    assert_eq!(asked(&["--only", "maybe"], mixed).code(0).out, "key-1\nkey-2\n");
    assert_eq!(asked(&["--only", "no"], mixed).code(0).out, "x\ny\n");
    assert_eq!(asked(&["--invert"], mixed).code(0).out, "x\ny\n");
    assert_eq!(asked(&["--only", "no", "--invert"], mixed).code(0).out, "key-1\nkey-2\n");
    assert_eq!(asked(&["--only", "maybe"], "x\n").code(1).out, "");
    assert_eq!(asked(&[], mixed).code(1).out, "maybe\tkey-1\nno\tx\nmaybe\tkey-2\nno\ty\n");
    // grep's codes: found, not found, trouble.
    assert_eq!(asked(&["--quiet"], mixed).code(0).out, "");
    assert_eq!(asked(&["--quiet"], "x\n").code(1).out, "");
    assert_eq!(asked(&["--quiet", "--invert"], "key-1\n").code(1).out, "");
    assert_eq!(asked(&["--quiet", "--invert"], mixed).code(0).out, "");
    folder.run(&["query", "none", "--quiet"]).code(2);
}

#[test]
fn whoever_has_seen_enough_is_not_shouted_at() {
    let folder = Folder::new();
    folder.lines("keys", (0..200_000).map(|number| format!("key-{number}")));
    folder.run(&["build", "keys", "-o", "f"]).code(0);
    let ended = folder.shell("besom query f keys | head -n 1");
    assert_eq!((ended.code, ended.out.as_str(), ended.err.as_str()), (Some(0), "maybe\tkey-0\n", ""));
}

/// `-o -`: the file goes down the pipe, what is said about it does not.
#[test]
fn a_dash_is_standard_output() {
    let folder = Folder::new();
    folder.lines("keys", (0..1000).map(|number| format!("key-{number}")));
    let piped = folder.shell("besom build keys --seed 7 -o - > piped").code(0);
    assert!(piped.err.contains("1,000 keys") && piped.out.is_empty(), "{piped:?}");
    folder.run(&["build", "keys", "--seed", "7", "-o", "written"]).code(0);
    let bytes = |name: &str| std::fs::read(folder.path(name)).unwrap();
    assert_eq!(bytes("piped"), bytes("written"));
    folder.shell("besom convert written --without-seed -o - > public").code(0);
    folder.run(&["query", "public", "keys", "--seed", "7", "--count"]).code(0);
    folder.shell("besom merge written piped -o - > both 2>/dev/null; test -s both").code(1);
    let page = folder
        .shell("besom compare --trace keys --filters bloom --seeds 1 --store memory --report -")
        .code(0);
    assert!(page.out.starts_with("<!doctype html>") && page.out.ends_with("</html>\n"), "{page:?}");
    assert!(!folder.names().contains(&"-".to_owned()));
}

#[test]
fn rates_are_written_as_people_write_them() {
    let folder = Folder::new();
    folder.lines("keys", (0..1000).map(|number| format!("key-{number}")));
    let size = |rate: &str| {
        folder
            .run(&["build", "keys", "--filter", "bloom", "--rate", rate, "-o", "f", "--json"])
            .code(0)
            .json()["bytes"]
            .as_u64()
            .unwrap()
    };
    let sizes = ["1/1000", "0.1%", "0.001"].map(size);
    assert!(sizes.iter().all(|&bytes| bytes == sizes[0]), "{sizes:?}");
    assert_eq!(size("2^-8"), size("0.00390625"));
    folder.run(&["attack", "--games", "1", "--keys", "64", "--filters", "bloom", "--rate", "1/64"]).code(0);
    let refused = folder.run(&["build", "keys", "--rate", "3/2", "-o", "f"]).code(2);
    assert!(refused.err.contains("write 1/1000, 0.1%, 2^-10 or 0.001"), "{refused:?}");
}

/// A file that was published without its seed still says what it is.
#[test]
fn inspect_shows_what_needs_no_seed() {
    let folder = Folder::new();
    folder.lines("keys", (0..1000).map(|number| format!("key-{number}")));
    folder.run(&["build", "keys", "--seed", "7", "--without-seed", "--generation", "3", "-o", "f"]).code(0);
    let shown = folder.run(&["inspect", "f"]).code(0).out;
    assert!(shown.contains("1,000 of 1,000") && shown.contains("left out"), "{shown}");
    assert!(shown.contains("need the seed; pass it with --seed"), "{shown}");
    let json = folder.run(&["inspect", "f", "--json"]).code(0).json();
    assert_eq!((&json["keys"], &json["generation"]), (&1000.into(), &3.into()));
    assert!(json["measured_rate"].is_null());
    let json = folder.run(&["inspect", "f", "--json", "--seed", "7"]).code(0).json();
    assert!(json["measured_rate"].is_number() && json["load"].is_number());
    let mut bytes = std::fs::read(folder.path("f")).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    folder.file("damaged", bytes);
    folder.run(&["inspect", "damaged"]).refused("is damaged");
}

/// Keys that are no text stay apart from those that are.
#[test]
fn json_tells_keys_apart_that_are_no_text() {
    let folder = Folder::new();
    built(&folder);
    let asked = folder.feed(&["query", "f", "--json"], b"key-1\n\xff\xfe\xfd\n\xef\xbf\xbd\n").code(1);
    let lines: Vec<&str> = asked.out.lines().collect();
    assert_eq!(lines[0], r#"{"key":"key-1","maybe":true}"#);
    assert_eq!(lines[1], r#"{"key_hex":"fffefd","maybe":false}"#);
    assert_eq!(lines[2], "{\"key\":\"\u{fffd}\",\"maybe\":false}");
}
