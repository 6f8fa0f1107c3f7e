//! What is written: standard output that may be closed, and files that are there as a whole or not at all.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

use serde::Serialize;

use crate::error::{Failure, Outcome};
use crate::interrupt;

/// Writes text to standard output.
pub(crate) fn print(text: &str) -> Outcome<()> {
    print_bytes(text.as_bytes())
}

/// Writes bytes to standard output.
fn print_bytes(bytes: &[u8]) -> Outcome<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(Failure::Output)
}

/// Writes a value to standard output as JSON.
pub(crate) fn print_json(value: &impl Serialize) -> Outcome<()> {
    say_json(value, Path::new(""))
}

/// Whether a target is standard output.
pub(crate) fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

/// Writes what is said about a file: where the file itself goes to standard output, it is said on the other side.
pub(crate) fn say(text: &str, about: &Path) -> Outcome<()> {
    if is_stdout(about) {
        eprint!("{text}");
        return Ok(());
    }
    print(text)
}

/// Writes a value about a file as JSON.
pub(crate) fn say_json(value: &impl Serialize, about: &Path) -> Outcome<()> {
    let text = serde_json::to_string_pretty(value).map_err(|error| Failure::Output(error.into()))?;
    say(&(text + "\n"), about)
}

/// Refuses a target that is something else than a file: what is written takes the place of what is there.
pub(crate) fn check_target(path: &Path) -> Outcome<()> {
    let refuse = |problem: &str| Err(Failure::Usage(format!("{}: {problem}", path.display())));
    if is_stdout(path) {
        return if io::stdout().is_terminal() {
            refuse("is the terminal; send it to a file or through a pipe")
        } else {
            Ok(())
        };
    }
    match fs::metadata(path) {
        Ok(there) if there.is_dir() => refuse("is a directory; name a file in it"),
        Ok(there) if !there.is_file() => refuse("is no ordinary file; name one that can be replaced"),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            match folder {
                Some(folder) if !folder.is_dir() => refuse("its directory does not exist"),
                _ if path.file_name().is_none() => refuse("is no name of a file"),
                _ => Ok(()),
            }
        }
        Err(source) => Err(Failure::Io { what: path.display().to_string(), source }),
    }
}

/// Writes a file beside its place, and puts it there when it is whole.
pub(crate) fn write_file(path: &Path, content: &str) -> Outcome<()> {
    write_bytes(path, content.as_bytes())
}

/// The same for bytes.
pub(crate) fn write_bytes(path: &Path, content: &[u8]) -> Outcome<()> {
    check_target(path)?;
    if is_stdout(path) {
        return print_bytes(content);
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let write = || {
        // Removed when it is dropped, unless it took its place.
        let mut file =
            tempfile::Builder::new().prefix(".besom-").permissions(ordinary()).tempfile_in(folder)?;
        file.write_all(content)?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    };
    interrupt::while_saving(write).map_err(Failure::io(path.display().to_string()))
}

/// The permissions of a file that is no secret; the user's mask applies.
fn ordinary() -> fs::Permissions {
    #[cfg(unix)]
    {
        std::os::unix::fs::PermissionsExt::from_mode(0o666)
    }
    #[cfg(not(unix))]
    {
        fs::metadata(".")
            .map(|here| here.permissions())
            .unwrap_or_else(|_| unreachable!("there is a directory"))
    }
}

/// Colours, where they are wanted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint(bool);

impl Paint {
    /// For standard output: on a terminal, unless `NO_COLOR` is set.
    pub(crate) fn stdout() -> Self {
        Self(io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()))
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.with("2", text)
    }

    pub(crate) fn green(self, text: &str) -> String {
        self.with("32", text)
    }

    pub(crate) fn red(self, text: &str) -> String {
        self.with("31", text)
    }

    fn with(self, code: &str, text: &str) -> String {
        if self.0 { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// A number with its thousands apart: `1,234,567`.
pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// So many of what has this name: `1 key`, `2,000 queries`.
pub(crate) fn counted(number: u64, name: &str) -> String {
    let name = match (number, name.strip_suffix('y')) {
        (1, _) => name.to_owned(),
        // No vowel before it in what is counted here, but for keys.
        (_, Some(stem)) if !stem.ends_with('e') => format!("{stem}ies"),
        _ => format!("{name}s"),
    };
    format!("{} {name}", thousands(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_not_many() {
        assert_eq!([counted(1, "query"), counted(0, "query")], ["1 query", "0 queries"]);
        assert_eq!([counted(1, "key"), counted(2000, "key")], ["1 key", "2,000 keys"]);
    }

    #[test]
    fn thousands_are_apart() {
        let cases = [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")];
        cases.into_iter().for_each(|(number, text)| assert_eq!(thousands(number), text));
    }
}
