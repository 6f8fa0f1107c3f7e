//! What shells and manuals want to know of this command.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::error::{Ending, Failure, Outcome};
use crate::output;

/// Completions for a shell.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  besom completions bash
  besom completions zsh")]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(&self) -> Outcome {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut crate::Cli::command(), "besom", &mut script);
        output::print(&String::from_utf8_lossy(&script))?;
        Ok(Ending::Fine)
    }
}

/// Manual pages.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  besom man
  besom man --out target/man")]
pub(crate) struct Man {
    /// Write one page per command into this folder, instead of the main page to standard output
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl Man {
    pub(crate) fn run(&self) -> Outcome {
        let command = crate::Cli::command();
        let Some(folder) = &self.out else {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page).map_err(Failure::Output)?;
            output::print(&String::from_utf8_lossy(&page))?;
            return Ok(Ending::Fine);
        };
        write_pages(command, folder).map_err(Failure::io(folder.display().to_string()))?;
        Ok(Ending::Fine)
    }
}

/// Writes all pages beside their places, and puts them there when all are whole.
fn write_pages(command: clap::Command, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    // Gone when it is dropped, with whatever is still in it.
    let fresh = tempfile::Builder::new().prefix(".besom-").tempdir_in(folder)?;
    clap_mangen::generate_to(command, fresh.path())?;
    for page in fs::read_dir(fresh.path())? {
        let page = page?;
        fs::rename(page.path(), folder.join(page.file_name()))?;
    }
    Ok(())
}
