//! On a terminal: colours and progress, which are nowhere else; and Ctrl-C.

use std::fs::File;
use std::io::Read;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::Folder;

/// What a terminal shows, as it comes.
struct Screen {
    chunks: Receiver<Vec<u8>>,
    text: String,
}

/// Starts the command on a pseudo-terminal.
fn on_terminal(folder: &Folder, arguments: &[&str]) -> (Child, Screen) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let side = || File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let mut command = folder.command(arguments);
    command
        .stdin(Stdio::from(side()))
        .stdout(Stdio::from(side()))
        .stderr(Stdio::from(side()))
        .env_remove("NO_COLOR");
    let child = command.spawn().expect("the command starts");
    drop(command);
    let (sender, chunks) = channel();
    std::thread::spawn(move || {
        let (mut master, mut buffer) = (File::from(master), [0; 4096]);
        // An error is how a terminal says that nobody is there any more.
        while let Ok(read) = master.read(&mut buffer) {
            if read == 0 || sender.send(buffer[..read].to_vec()).is_err() {
                break;
            }
        }
    });
    (child, Screen { chunks, text: String::new() })
}

impl Screen {
    /// Reads until these words have come, or the end.
    fn until(&mut self, words: &str) -> bool {
        while !self.text.contains(words) {
            match self.chunks.recv_timeout(Duration::from_secs(120)) {
                Ok(chunk) => self.text += &String::from_utf8_lossy(&chunk),
                Err(_) => return false,
            }
        }
        true
    }

    fn rest(mut self) -> String {
        self.until("there is no such text on any screen");
        self.text
    }
}

fn data(folder: &Folder, queries: u32) {
    folder.lines("keys", (0..2000).map(|number| format!("key-{number}")));
    folder.lines("queries", (0..queries).map(|number| format!("q-{}", number % 5000)));
}

#[test]
fn a_terminal_gets_colours_and_progress() {
    let folder = Folder::new();
    data(&folder, 400_000);
    let run = [
        "compare",
        "--keys",
        "keys",
        "--queries",
        "queries",
        "--filters",
        "telescoping,bloom",
        "--seeds",
        "3",
    ];
    let (mut child, screen) = on_terminal(&folder, &run);
    let text = screen.rest();
    assert!(child.wait().unwrap().success(), "{text}");
    assert!(text.contains("\x1b[1m") && text.contains("\x1b[32m"), "colours: {text}");
    assert!(text.contains('░') && text.contains("\r\x1b[K"), "progress: {text}");
    let piped = folder.run(&run).code(0);
    assert!(!piped.out.contains('\x1b') && piped.err.is_empty(), "{piped:?}");
}

#[test]
fn colours_can_be_declined() {
    let folder = Folder::new();
    folder.lines("keys", ["a".to_owned()].into_iter());
    folder.run(&["build", "keys", "-o", "f"]).code(0);
    let (mut child, screen) = on_terminal(&folder, &["inspect", "f"]);
    assert!(screen.rest().contains("\x1b[2m"));
    child.wait().unwrap();
    let declined = folder.shell("NO_COLOR=1 besom inspect f").code(0);
    assert!(!declined.out.contains('\x1b'));
}

/// An interrupt in the middle: what was measured is shown, nothing stays behind.
#[test]
fn an_interrupt_shows_what_was_measured_so_far() {
    let folder = Folder::new();
    data(&folder, 3_000_000);
    let run =
        ["compare", "--keys", "keys", "--queries", "queries", "--filters", "all", "--report", "page.html"];
    let (mut child, mut screen) = on_terminal(&folder, &run);
    // Some are done when the fourth is being replayed, whatever the number of cores.
    assert!(screen.until("replaying cuckooing"), "{}", screen.text);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let text = screen.rest();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{text}");
    assert!(text.contains("Useless look-ups") && text.contains("telescoping"), "{text}");
    assert!(!text.contains("panicked"));
    // It says so at the top, and concludes nothing.
    assert!(text.contains("Interrupted: ") && !text.contains("fewest useless reads"), "{text}");
    let page = std::fs::read_to_string(folder.path("page.html")).unwrap();
    assert!(page.ends_with("</html>\n"));
    assert!(page.find("Interrupted: ").unwrap() < page.find("<h1").unwrap());
    assert!(page.contains("No conclusion is drawn") && !page.contains("class=\"threat\""));
    assert_eq!(folder.names(), ["keys", "page.html", "queries"]);
}

/// An interrupt after the contest, while the best filter is tried in a store: the contest is shown, the store's file is
/// gone.
#[test]
fn an_interrupt_of_the_last_part_leaves_the_contest() {
    let folder = Folder::new();
    data(&folder, 2_000_000);
    let run =
        ["compare", "--keys", "keys", "--queries", "queries", "--filters", "telescoping", "--seeds", "1"];
    let (mut child, mut screen) = on_terminal(&folder, &run);
    assert!(screen.until("RedbStore"), "{}", screen.text);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let text = screen.rest();
    // It may have been done before the interrupt came.
    let done = text.contains("In besom_store::RedbStore");
    assert_eq!(child.wait().unwrap().code(), Some(if done { 0 } else { 130 }), "{text}");
    assert!(text.contains("Useless look-ups") && !text.contains("panicked"), "{text}");
    assert_eq!(folder.names(), ["keys", "queries"]);
}

/// An interrupt while a filter is built or input is awaited.
#[test]
fn an_interrupt_leaves_no_half_written_file() {
    let folder = Folder::new();
    folder.lines("keys", (0..2_000_000).map(|number| format!("key-{number}")));
    let (mut child, mut screen) =
        on_terminal(&folder, &["build", "keys", "--filter", "cuckooing", "-o", "f"]);
    assert!(screen.until("inserting keys"), "{}", screen.text);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let text = screen.rest();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{text}");
    assert_eq!(folder.names(), ["keys"]);
    // Nothing comes on standard input.
    let mut child = folder.command(&["build", "-", "-o", "f"]).stdin(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let code = child.wait().unwrap();
    assert!(!code.success());
    assert_eq!(folder.names(), ["keys"]);
}
