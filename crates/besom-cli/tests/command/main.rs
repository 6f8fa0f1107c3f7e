//! Drives the built command. Catches: answers that differ from the library's, wrong exit codes, panics, half-written
//! files, examples that do not work, noise where there is no terminal.

mod bad_input;
mod compare;
mod files;
mod formats;
mod help;
mod page;
mod pipes;
mod sceptic;
mod terminal;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder of a test, which is gone after it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("besom-cli-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a file, and returns its name.
    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        std::fs::write(self.path(name), content).unwrap();
        name.to_owned()
    }

    /// A file with a key a line.
    fn lines(&self, name: &str, keys: impl Iterator<Item = String>) -> String {
        self.file(name, keys.map(|key| key + "\n").collect::<String>())
    }

    /// The names of all files, sorted.
    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// The command, in this folder.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_besom"));
        command.current_dir(&self.0).args(arguments).stdin(Stdio::null()).env("TMPDIR", &self.0);
        command
    }

    fn run(&self, arguments: &[&str]) -> Ended {
        Ended::of(self.command(arguments).output().expect("the command starts"))
    }

    /// The command with something on standard input.
    fn feed(&self, arguments: &[&str], input: &[u8]) -> Ended {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command starts");
        // A command that fails does not read to the end.
        let _ = child.stdin.take().unwrap().write_all(input);
        Ended::of(child.wait_with_output().unwrap())
    }

    /// A line for the shell, in which `besom` is the command.
    fn shell(&self, line: &str) -> Ended {
        let folder = Path::new(env!("CARGO_BIN_EXE_besom")).parent().unwrap();
        let paths = std::env::var("PATH").unwrap_or_default();
        let output = Command::new("sh")
            .args(["-c", line])
            .current_dir(&self.0)
            .env("PATH", format!("{}:{paths}", folder.display()))
            .env("TMPDIR", &self.0)
            .stdin(Stdio::null())
            .output()
            .expect("there is a shell");
        Ended::of(output)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// How a command ended.
#[derive(Debug)]
struct Ended {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Ended {
    fn of(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let ended = Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) };
        assert!(!ended.err.contains("panicked"), "{ended:?}");
        ended
    }

    /// It must have ended so.
    #[track_caller]
    fn code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        self
    }

    /// It must have failed with one sentence that has these words.
    #[track_caller]
    fn refused(self, words: &str) -> Self {
        assert_eq!(self.code, Some(2), "{self:?}");
        assert_eq!(self.err.trim_end().lines().count(), 1, "{self:?}");
        assert!(self.err.starts_with("besom: ") && self.err.contains(words), "{words}: {self:?}");
        self
    }

    #[track_caller]
    fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Whether tests may take minutes.
fn full() -> bool {
    std::env::var_os("BESOM_FULL").is_some()
}
