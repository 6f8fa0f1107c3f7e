//! Catches: a run that cannot be repeated from its seed or resumed, a page that is not written, errors without a
//! hint.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

fn lab(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_besom-lab")).args(arguments).output().expect("the binary starts")
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("besom-lab-command-{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

/// The shortest experiment, once, in one thread.
fn run(out: &str, seed: &str, more: &[&str]) -> Output {
    let fixed = ["reproduce", "004-remote", "--runs", "1", "--threads", "1", "--out", out, "--seed", seed];
    lab(&[&fixed[..], more].concat())
}

#[test]
fn a_run_is_repeatable_from_its_seed_and_resumable() {
    let [first, second, third] = ["first", "second", "third"].map(folder);
    for (folder, seed) in [(&first, "5"), (&second, "5"), (&third, "6")] {
        let output = run(folder.to_str().unwrap(), seed, &[]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(folder.join("report.html").is_file() && folder.join("report.json").is_file());
    }
    let points = |folder: &PathBuf| std::fs::read_to_string(folder.join("points.jsonl")).unwrap();
    assert_eq!(points(&first), points(&second));
    assert_ne!(points(&first), points(&third));

    let before = points(&first);
    let output = run(first.to_str().unwrap(), "5", &["--resume"]);
    assert!(output.status.success());
    assert_eq!(points(&first), before, "nothing was left to do");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("agree") && text.contains("the paper claims"), "{text}");
    // A small run speaks of its own size only, wherever it speaks of claims; and nobody watches its progress.
    assert!(text.contains("agrees at this size") && text.contains("disagree at this size"), "{text}");
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    let report = |name: &str| std::fs::read_to_string(first.join(name)).unwrap();
    assert!(report("report.json").contains("\"scope\": \"at this size\""));
    assert!(report("report.html").contains("at this size"));

    let output = run(first.to_str().unwrap(), "7", &["--resume"]);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("choose another --out"));
    [first, second, third].iter().for_each(|folder| std::fs::remove_dir_all(folder).unwrap());
}

#[test]
fn wrong_names_are_answered_with_a_hint() {
    let output = lab(&["reproduce", "no-such-figure"]);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("`besom-lab list` shows them"));
    let output = lab(&["reproduce", "all", "--data", "/no/such/folder"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("no such folder"));
}

/// The README's command must not leave files behind that belong to nobody: what is under `target` is ignored.
#[test]
fn reports_go_under_target_unless_told_otherwise() {
    let text = String::from_utf8(lab(&["reproduce", "--help"]).stdout).unwrap();
    assert!(text.contains("[default: target/lab-report]"), "{text}");
}

#[test]
fn the_list_names_experiments_and_filters() {
    let text = String::from_utf8(lab(&["list"]).stdout).unwrap();
    for name in ["001-figure-2-active-set", "003-theorems", "004-sustained-rates", "telescoping", "broom"] {
        assert!(text.contains(name), "{name}");
    }
}

#[test]
fn a_closed_pipe_a_full_disk_and_wrong_names_have_their_own_exit_codes() {
    let code = |arguments: &[&str], stdout: Stdio| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_besom-lab"));
        let output = command.args(arguments).stdout(stdout).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    assert_eq!(code(&["list"], writer.into()), (Some(141), String::new()));
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let (status, told) = code(&["list"], full.into());
    assert!(status == Some(2) && told.starts_with("besom-lab: "), "{status:?} {told}");
    let (status, told) = code(&["reproduce", "no-such-figure"], Stdio::null());
    assert!(status == Some(2) && told.contains("no experiment is called"), "{status:?} {told}");
}
