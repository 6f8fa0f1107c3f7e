//! Repairs of false positives, and other operations that neither add nor remove keys.

use std::sync::PoisonError;

use besom::{Adaptation, AdaptiveError};
use slatedb::WriteBatch;
use slatedb::bytes::Bytes;

use super::SlateError;
use super::metrics::raise;
use super::replay::{Paused, Replay, Step};
use super::shared::{Shared, SlateFilter, Writer};

/// False positives that wait for their repair, at most.
const MAX_WAITING: usize = 256;

impl<F: SlateFilter> Shared<F> {
    /// A look-up came back empty although the filter had let it pass: repairs it, at once or when the writer has time.
    pub(super) async fn repair(&self, key: &[u8]) {
        let hash = self.filter().digest(key).hi;
        self.counters.false_positive(hash);
        {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            if waiting.len() < MAX_WAITING {
                waiting.push(Bytes::copy_from_slice(key));
            } else {
                raise(&self.counters.failed_adaptations);
            }
        }
        if let Ok(mut writer) = self.writer.try_lock() {
            self.repair_waiting(&mut writer).await;
        }
    }

    /// Repairs all that wait.
    pub(super) async fn repair_waiting(&self, writer: &mut Writer) {
        let waiting = std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        if !waiting.is_empty() {
            self.settle(writer).await;
        }
        for key in waiting {
            match self.adapt(writer, &key).await {
                Ok(Adaptation::NotFalsePositive) if !self.filter().contains(&key[..]) => {}
                // It may have been stored since. If not, one answer is no reason to take it out of the filter.
                Ok(Adaptation::NotFalsePositive) => {
                    if matches!(self.look_up(&key).await, Ok(None)) {
                        raise(&self.counters.denied);
                        writer.suspects += 1;
                    }
                }
                Ok(Adaptation::Unfixable) => raise(&self.counters.denied),
                Ok(_) => raise(&self.counters.adaptations),
                Err(error) => {
                    if let SlateError::Inconsistent { address, .. } = error {
                        writer.doubts.ask([address]);
                    }
                    raise(&self.counters.failed_adaptations);
                    self.note(error);
                }
            }
        }
    }

    async fn adapt(&self, writer: &mut Writer, key: &Bytes) -> Result<Adaptation, SlateError> {
        let work = |filter: &mut F, replay: &mut Replay| filter.adapt(&key[..], replay);
        let (step, replay) = self.write_first(writer, work).await?;
        self.count_reads(&replay);
        match step {
            Some(adaptation) => Ok(adaptation),
            None => {
                let key = key.clone();
                self.on_a_thread(writer, None, move |filter, bridge| filter.adapt(&key[..], bridge)).await
            }
        }
    }

    /// Runs an operation that neither adds nor removes keys: its changes are written, then it comes to its end. `None` if it
    /// needs a scan.
    pub(super) async fn write_first<T>(
        &self,
        writer: &mut Writer,
        work: impl Fn(&mut F, &mut Replay) -> Result<T, AdaptiveError<Paused>>,
    ) -> Result<(Option<T>, Replay), SlateError> {
        let mut replay = Replay::planning();
        let mut run = |replay: &mut Replay| work(&mut self.filter_mut(), replay);
        match replay.drive(&self.db, writer.state.generation, &mut run).await? {
            Step::Done(outcome) => return Ok((Some(outcome), replay)),
            Step::Scan => return Ok((None, replay)),
            Step::Planned => {}
        }
        let mut batch = WriteBatch::new();
        replay.put(writer.state.generation, &mut batch);
        let addresses = replay.changed();
        self.commit(writer, batch, &addresses).await?;
        replay.confirm();
        match run(&mut replay) {
            Ok(outcome) => Ok((Some(outcome), replay)),
            Err(error) => {
                writer.doubts.ask(addresses);
                Err(error.into())
            }
        }
    }
}
