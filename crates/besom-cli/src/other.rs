//! The experiments of the papers, and what shells and manuals want to know of this command.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use besom_lab::command;
use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::error::{Ending, Failure, Outcome};
use crate::output;

/// The experiments of the papers.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  besom reproduce all --quick
  besom reproduce 004-remote --runs 1 --out target/lab
  besom reproduce list

Exit codes: 0 success, 1 an experiment failed or did not finish, 2 usage or input error.")]
pub(crate) struct Experiments {
    #[command(flatten)]
    arguments: command::Reproduce,
}

impl Experiments {
    pub(crate) fn run(&self) -> Outcome {
        if self.arguments.is_list() {
            command::list(&mut io::stdout().lock()).map_err(Failure::Output)?;
            return Ok(Ending::Fine);
        }
        match command::reproduce(&self.arguments) {
            Ok(true) => Ok(Ending::Fine),
            Ok(false) => Ok(Ending::No),
            Err(error) => Err(match error.downcast::<io::Error>() {
                Ok(error) if error.kind() == io::ErrorKind::BrokenPipe => Failure::Output(*error),
                Ok(error) => Failure::Usage(error.to_string()),
                Err(error) => Failure::Usage(error.to_string()),
            }),
        }
    }
}

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
