//! What an operator wants to read in a log, through `tracing` if that is on.

use std::fmt::Display;
use std::time::Duration;

/// A failure that fails no operation.
pub(crate) fn failure(what: &str, error: &dyn Display) {
    #[cfg(feature = "tracing")]
    tracing::warn!(target: "besom_store", %error, "{what}");
    #[cfg(not(feature = "tracing"))]
    let _ = (what, error);
}

/// Something that happens now and then.
pub(crate) fn notice(what: &str) {
    #[cfg(feature = "tracing")]
    tracing::info!(target: "besom_store", "{what}");
    #[cfg(not(feature = "tracing"))]
    let _ = what;
}

/// The filter was built again.
pub(crate) fn rebuilt(keys: u64, took: Duration) {
    #[cfg(feature = "tracing")]
    tracing::info!(target: "besom_store", keys, seconds = took.as_secs_f64(), "the filter was built anew");
    #[cfg(not(feature = "tracing"))]
    let _ = (keys, took);
}
