//! The ways back: filter and lists brought into step again, and work on the whole filter.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use besom::{AdaptiveError, BuildError, Resync};
use slatedb::WriteBatch;
use slatedb::bytes::Bytes;
use tokio::sync::mpsc;

use super::bridge::{self, Bridge, Request};
use super::metrics::raise;
use super::options::Progress;
use super::replay::Paused;
use super::shared::{Shared, SlateFilter, Writer};
use super::{SlateError, rows};

/// Keys between two reports of progress.
const REPORTED: u64 = 1 << 14;

impl<F: SlateFilter> Shared<F> {
    /// Takes a way back, if one is needed and it is time for it. What fails is noted, and tried again later.
    pub(super) async fn settle(&self, writer: &mut Writer) {
        if writer.doubts.are_settled() {
            return;
        }
        if let Err(error) = self.settle_lists(writer).await {
            self.note(error);
        }
        let keys = self.filter().len();
        if writer.doubts.want_rebuild(keys)
            && let Err(error) = self.rebuild(writer).await
        {
            self.note(error);
        }
    }

    /// Asks the lists that are in question.
    pub(super) async fn settle_lists(&self, writer: &mut Writer) -> Result<(), SlateError> {
        if writer.doubts.lost || writer.doubts.open().is_empty() {
            return Ok(());
        }
        // A batch whose future was dropped may still be on its way. Batches are written in their order, so it has arrived when
        // this one has.
        self.commit(writer, WriteBatch::new(), &[]).await?;
        let addresses: Vec<u64> = writer.doubts.open().iter().copied().collect();
        let (resync, _) =
            self.write_first(writer, |filter, replay| filter.resync(&addresses, replay)).await?;
        match resync {
            Some(Resync::Agreed) => {
                writer.doubts.agreed();
                raise(&self.counters.resyncs);
            }
            Some(Resync::InQuestion { slots }) => writer.doubts.unexplained_by_lists(slots),
            // It takes a scan to answer, and with a scan the filter can be built anew; so for answers yet to be invented.
            _ => writer.doubts.lost = true,
        }
        self.counters.slots_in_question.store(writer.doubts.slots() as u64, Relaxed);
        Ok(())
    }

    /// Makes room for a key that is not in the filter: lets a copy of the filter insert it, and grow for that, but refuses
    /// the key itself. So what is left is a filter of the same keys.
    pub(super) async fn make_room(&self, writer: &mut Writer, key: &Bytes) -> Result<(), SlateError> {
        let (held_back, key) = (Some(key.clone()), key.clone());
        self.on_a_thread(writer, held_back, move |filter, bridge| match filter.insert(&key[..], bridge) {
            Err(AdaptiveError::Remote(Paused::Planned)) => Ok(()),
            outcome => outcome.map(drop),
        })
        .await
    }

    /// Lets a copy of the filter work on a thread of its own, and puts it in the filter's place.
    pub(super) async fn on_a_thread<T: Send + 'static>(
        &self,
        writer: &mut Writer,
        held_back: Option<Bytes>,
        work: impl FnOnce(&mut F, &mut Bridge) -> Result<T, AdaptiveError<Paused>> + Send + 'static,
    ) -> Result<T, SlateError> {
        let copy = self.filter().clone();
        let (thread, requests) = start(copy, held_back, work);
        let was_lost = writer.doubts.lost;
        let generation = writer.state.generation;
        let served = self.serve(writer, requests, generation).await;
        let (filter, outcome) = thread.await.map_err(|_| SlateError::BrokenOff)?;
        served?;
        let outcome = outcome?;
        // From here on, filter and lists belong together again.
        *self.filter_mut() = filter;
        writer.doubts.lost = was_lost;
        Ok(outcome)
    }

    /// Answers the requests of a thread until it has none. Lists of the filter's own generation are lost with the first
    /// write, and stay so unless the work comes to its end.
    async fn serve(
        &self,
        writer: &mut Writer,
        mut requests: mpsc::Receiver<Request>,
        generation: u64,
    ) -> Result<(), SlateError> {
        while let Some(request) = requests.recv().await {
            if let Some((lists, sender)) = bridge::answer(request, &self.db, generation).await? {
                writer.doubts.lost |= generation == writer.state.generation;
                let mut batch = WriteBatch::new();
                lists.put(generation, &mut batch);
                self.commit(writer, batch, &[]).await?;
                // The thread may have gone.
                let _ = sender.send(());
            }
        }
        Ok(())
    }

    /// Builds the filter anew from the stored keys, with lists of a new generation. Repairs are forgotten.
    pub(super) async fn rebuild(&self, writer: &mut Writer) -> Result<(), SlateError> {
        let fresh = self.filter().emptied().map_err(out_of_memory)?;
        self.rebuild_as(writer, fresh).await?;
        Ok(())
    }

    /// Lets an empty filter take in all stored keys, and puts it in the filter's place. How many they were, and how many
    /// seconds it took.
    pub(super) async fn rebuild_as(&self, writer: &mut Writer, fresh: F) -> Result<(u64, f64), SlateError> {
        let start_time = Instant::now();
        // The number of the lists is reserved first: a rebuilding that is broken off leaves lists behind that are never taken for another one's.
        // And all that was written before is in the scan then, dropped futures included.
        writer.state.highest += 1;
        let generation = writer.state.highest;
        self.commit(writer, WriteBatch::new(), &[]).await?;
        let progress = self.options.progress.clone();
        let (thread, requests) =
            start(fresh, None, move |filter, bridge| fill(filter, bridge, progress.as_ref()));
        let served = self.serve(writer, requests, generation).await;
        let (filter, outcome) = thread.await.map_err(|_| SlateError::BrokenOff)?;
        served?;
        let keys = outcome?;
        let old = std::mem::replace(&mut writer.state.generation, generation);
        writer.doubts.lost = true;
        if let Err(error) = self.commit(writer, WriteBatch::new(), &[]).await {
            // Which generation counts is unknown now. The old filter has all keys, and the next attempt takes new lists.
            writer.state.generation = old;
            return Err(error);
        }
        *self.filter_mut() = filter;
        writer.doubts.settle();
        writer.suspects = 0;
        raise(&self.counters.rebuilds);
        self.counters.slots_in_question.store(0, Relaxed);
        let seconds = start_time.elapsed().as_secs_f64();
        #[cfg(feature = "tracing")]
        tracing::info!(target: "besom_store", keys, seconds, "the filter was built anew");
        self.sweep(writer).await?;
        Ok((keys, seconds))
    }

    /// Deletes the lists of other generations.
    pub(super) async fn sweep(&self, writer: &mut Writer) -> Result<(), SlateError> {
        let current = writer.state.generation;
        let ranges = [
            rows::lists_begin()..rows::list(current, 0),
            rows::lists_end(current)..rows::lists_end(u64::MAX),
        ];
        for mut range in ranges {
            while let Some((batch, rest)) = bridge::deletions(&self.db, range.clone()).await? {
                self.commit(writer, batch, &[]).await?;
                range.start = rest;
            }
        }
        Ok(())
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the shape that `map_err` wants")]
pub(super) fn out_of_memory(error: BuildError) -> SlateError {
    match error {
        BuildError::OutOfMemory { bytes } => SlateError::OutOfMemory { bytes },
        // The same parameters were accepted when the filter was built.
        _ => SlateError::OutOfMemory { bytes: 0 },
    }
}

type Working<F, T> = tokio::task::JoinHandle<(F, Result<T, AdaptiveError<Paused>>)>;

/// Starts work on a thread of its own.
fn start<F: SlateFilter, T: Send + 'static>(
    mut filter: F,
    held_back: Option<Bytes>,
    work: impl FnOnce(&mut F, &mut Bridge) -> Result<T, AdaptiveError<Paused>> + Send + 'static,
) -> (Working<F, T>, mpsc::Receiver<Request>) {
    let (mut bridge, requests) = Bridge::new(held_back);
    let thread = tokio::task::spawn_blocking(move || {
        let outcome = work(&mut filter, &mut bridge);
        let flushed = bridge.flush().map_err(AdaptiveError::Remote);
        (filter, outcome.and_then(|outcome| flushed.map(|()| outcome)))
    });
    (thread, requests)
}

/// Inserts all stored keys.
fn fill<F: SlateFilter>(
    filter: &mut F,
    bridge: &mut Bridge,
    progress: Option<&Progress>,
) -> Result<u64, AdaptiveError<Paused>> {
    let (mut behind, mut count) = (None, 0);
    loop {
        let keys = bridge.keys(behind).map_err(AdaptiveError::Remote)?;
        let Some(last) = keys.last() else { break };
        behind = Some(last.clone());
        for key in &keys {
            filter.insert(&key[..], bridge)?;
            count += 1;
            if let Some(progress) = progress.filter(|_| count % REPORTED == 0) {
                progress(count);
            }
        }
    }
    if let Some(progress) = progress {
        progress(count);
    }
    Ok(count)
}
