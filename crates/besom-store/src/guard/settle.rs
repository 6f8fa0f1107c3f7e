//! What follows a commit, and the way back after one that failed.

use besom::Adaptive;

use super::rehearsal::Rehearsal;
use super::{Finish, Guarded, Outcome, Writer};
use crate::StoreError;
use crate::engine::{Engine, View};

impl<F: Adaptive + Clone, E: Engine> Guarded<F, E> {
    /// The commit has been made: changes the filter.
    pub(super) fn finish(&self, writer: &mut Writer<F>) {
        let Some(doubt) = writer.doubt.take() else { return };
        let mut state = self.write_state();
        // What is given up is freed when the lock is.
        let mut outgrown = None;
        match doubt.finish {
            Finish::Swap(filter) => outgrown = Some(std::mem::replace(&mut state.filter, filter)),
            Finish::Rebuilt(filter) => {
                outgrown = Some(std::mem::replace(&mut state.filter, filter));
                state.lost = false;
            }
            Finish::Replay { op, key, evidence, made } => {
                let mut rehearsal = Rehearsal::after(&evidence, &made);
                // Nothing has changed the filter since the rehearsal, so only memory can be lacking now. The lists have the
                // change and the filter has not; a key that is new stays among the doubts until the filter was built anew.
                state.lost |= op.run(&mut state.filter, &key, &mut rehearsal).is_err();
            }
        }
        state.sequence = doubt.sequence;
        state.thaw();
        drop(state);
        drop(outgrown);
    }

    /// Finds out what became of a commit that failed, opens the database again if it asks for that, and builds the filter anew if
    /// it is of no use any more. Costs nothing if nothing has failed.
    pub(crate) fn settle(&self, writer: &mut Writer<F>) -> Outcome<(), E> {
        if self.engine.is_broken() {
            // What was not durable may be gone: keys that were removed may be back.
            self.write_state().blind = true;
            self.counters.reopenings.add(1);
            self.counters.timed(|| self.engine.reopen()).map_err(StoreError::Engine)?;
            crate::events::notice("the database was opened again after an error");
        }
        let (blind, lost, sequence) = {
            let state = self.read_state();
            (state.blind, state.lost, state.sequence)
        };
        if blind || writer.doubt.is_some() {
            let now = self.counters.timed(|| self.engine.view()?.sequence()).map_err(StoreError::Engine)?;
            self.compare(writer, sequence, now);
        } else if !lost {
            // A writer that panicked may have left this behind.
            if self.read_state().frozen {
                self.write_state().thaw();
            }
            return Ok(());
        }
        if self.read_state().lost { self.rebuild(writer) } else { Ok(()) }
    }

    /// The database is in the state that the filter stands for. A filter that is lost stands for nothing.
    fn see(&self) {
        let mut state = self.write_state();
        state.blind &= state.lost;
    }

    /// Compares the number that the database has with those of the filter and of the commit in doubt.
    fn compare(&self, writer: &mut Writer<F>, sequence: u64, now: u64) {
        match &writer.doubt {
            Some(doubt) if doubt.sequence == now => {
                self.finish(writer);
                self.see();
            }
            _ if now == sequence => {
                writer.doubt = None;
                self.write_state().thaw();
                self.see();
            }
            _ => {
                writer.doubt = None;
                let mut state = self.write_state();
                (state.lost, state.blind) = (true, true);
                state.thaw();
            }
        }
    }
}
