//! The files of a report: each is there as a whole or not at all.

use std::fs;
use std::io;
use std::path::Path;

use super::html::Page;
use super::svg::render;

/// Writes `report.html`, `report.json` and every plot as `plots/EXPERIMENT-PLOT.svg` into a folder.
///
/// A file that cannot be written, on a full disk say, leaves the one that was there before.
///
/// # Errors
///
/// When a file or the folder cannot be written; the error names it.
pub fn write_page(page: &Page, folder: &Path) -> io::Result<()> {
    let plots = folder.join("plots");
    fs::create_dir_all(&plots).map_err(|error| about(&plots, &error))?;
    for (name, _, section) in &page.sections {
        for plot in section.plots.iter().filter(|plot| !plot.is_empty()) {
            write_whole(&plots.join(format!("{name}-{}.svg", plot.id)), &render(plot))?;
        }
    }
    write_whole(&folder.join("report.json"), &serde_json::to_string_pretty(&page.to_json())?)?;
    write_whole(&folder.join("report.html"), &page.to_html())
}

/// Writes a file beside its place, and puts it there when it is whole.
fn write_whole(path: &Path, content: &str) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let fresh = path.with_file_name(name);
    fs::write(&fresh, content).and_then(|()| fs::rename(&fresh, path)).map_err(|error| {
        // What there is of it helps nobody. It may fail to go, and is overwritten the next time.
        let _ = fs::remove_file(&fresh);
        about(path, &error)
    })
}

/// The same error with the file's name.
fn about(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    //! Catches: errors that do not say which file, and reports that are lost or cut off where a new one cannot be
    //! written.
    use super::*;

    #[test]
    fn what_cannot_be_written_is_named_and_leaves_nothing() {
        let folder = std::env::temp_dir().join(format!("besom-lab-files-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        let page = Page { facts: Vec::new(), sections: Vec::new(), failures: Vec::new(), undone: 0 };
        write_page(&page, &folder).unwrap();
        let before = fs::read(folder.join("report.json")).unwrap();
        // A folder where a file should be cannot be replaced by it.
        fs::remove_file(folder.join("report.html")).unwrap();
        fs::create_dir_all(folder.join("report.html").join("inside")).unwrap();
        let error = write_page(&page, &folder).unwrap_err();
        assert!(error.to_string().contains("report.html: "), "{error}");
        assert_eq!(fs::read(folder.join("report.json")).unwrap(), before);
        let names = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name());
        assert!(names.into_iter().all(|name| !name.to_string_lossy().ends_with(".new")));
        fs::remove_dir_all(folder).unwrap();
    }
}
