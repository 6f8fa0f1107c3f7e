//! Ctrl-C: the first one is a wish, which long loops look for; they then show what there is.

use std::sync::atomic::{AtomicBool, Ordering};

static STOP: AtomicBool = AtomicBool::new(false);
/// A file is being put in its place. That takes no time worth interrupting, and would leave a part behind.
static SAVING: AtomicBool = AtomicBool::new(false);
/// Nothing was measured and nothing written: there is nothing to wait for.
static IDLE: AtomicBool = AtomicBool::new(false);

/// From now on interrupts are wishes. A second one ends the program at once, unless a file is being saved.
pub(crate) fn install() {
    // Only one handler can be set; that is this one, and if it cannot be set interrupts end the program as ever.
    let _ = ctrlc::set_handler(|| {
        let again = STOP.swap(true, Ordering::Relaxed);
        if IDLE.load(Ordering::Relaxed) || again && !SAVING.load(Ordering::Relaxed) {
            std::process::exit(130);
        }
    });
}

/// Whether to stop.
pub(crate) fn stopped() -> bool {
    STOP.load(Ordering::Relaxed)
}

/// Reads input that may never come: an interrupt ends the program there and then.
pub(crate) fn while_idle<T>(read: impl FnOnce() -> T) -> T {
    IDLE.store(true, Ordering::Relaxed);
    let read = read();
    IDLE.store(false, Ordering::Relaxed);
    read
}

/// Saves a file, undisturbed.
pub(crate) fn while_saving<T>(save: impl FnOnce() -> T) -> T {
    SAVING.store(true, Ordering::Relaxed);
    let saved = save();
    SAVING.store(false, Ordering::Relaxed);
    saved
}
