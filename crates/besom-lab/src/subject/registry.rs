//! The registry: one line per filter.

use super::{Spec, Subject, SubjectError};

/// A filter that can be built.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// Its name on command lines and in reports.
    pub name: &'static str,
    /// Whether it repairs false positives.
    pub adaptive: bool,
    /// Whether keys can be removed from it.
    pub removal: bool,
    build: fn(&Spec) -> Result<Box<dyn Subject>, String>,
}

impl Entry {
    /// Builds the filter.
    ///
    /// # Errors
    ///
    /// What its builder refuses.
    pub fn build(&self, spec: &Spec) -> Result<Box<dyn Subject>, SubjectError> {
        (self.build)(spec).map_err(|reason| SubjectError::Build { name: self.name, reason })
    }
}

/// All filters, in the order of reports.
#[must_use]
pub fn registry() -> &'static [Entry] {
    &REGISTRY
}

/// The filter of this name.
///
/// # Errors
///
/// [`SubjectError::Unknown`] if there is none.
pub fn find(name: &str) -> Result<&'static Entry, SubjectError> {
    registry()
        .iter()
        .find(|entry| entry.name == name)
        .ok_or_else(|| SubjectError::Unknown { name: name.to_owned() })
}

const REGISTRY: [Entry; 0] = [];
