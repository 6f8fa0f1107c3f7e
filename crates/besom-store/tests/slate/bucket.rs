//! A bucket that counts its requests, and in which things go wrong.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use besom::testing::Random;
use besom_store::slate::SlateOptions;
use besom_store::slate::slatedb::bytes::Bytes;
use besom_store::slate::slatedb::config::{DbReaderOptions, GarbageCollectorOptions, Settings};
use besom_store::slate::slatedb::object_store::path::Path;
use besom_store::slate::slatedb::object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use futures_util::stream::BoxStream;

/// Requests that fail before or after they have acted, one in this many.
#[derive(Debug)]
struct Faults {
    random: Random,
    one_in: u64,
}

/// What goes wrong with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    Before,
    After,
    Late,
}

/// A bucket around another one.
#[derive(Debug)]
pub(crate) struct Bucket {
    inner: Arc<dyn ObjectStore>,
    faults: Mutex<Faults>,
    /// Requests that read.
    pub(crate) gets: AtomicU64,
    /// Requests that write or list.
    pub(crate) puts: AtomicU64,
    pub(crate) failed: AtomicU64,
    /// Requests that failed before they acted, and after it, and those that came late.
    pub(crate) drawn: [AtomicU64; 3],
    /// How long requests that read take, in microseconds.
    delay: AtomicU64,
}

impl Bucket {
    pub(crate) fn new(inner: Arc<dyn ObjectStore>) -> Arc<Self> {
        let faults = Mutex::new(Faults { random: Random::new(0), one_in: 0 });
        let zero = || AtomicU64::new(0);
        let drawn = [zero(), zero(), zero()];
        Arc::new(Self { inner, faults, gets: zero(), puts: zero(), failed: zero(), drawn, delay: zero() })
    }

    /// One request in `one_in` goes wrong from now on; none if 0.
    pub(crate) fn fail(&self, seed: u64, one_in: u64) {
        *self.faults.lock().unwrap() = Faults { random: Random::new(seed), one_in };
    }

    /// Requests that read take this long from now on.
    pub(crate) fn delay_gets(&self, delay: Duration) {
        self.delay.store(delay.as_micros() as u64, Relaxed);
    }

    async fn draw(&self, counter: &AtomicU64) -> Result<Fault> {
        counter.fetch_add(1, Relaxed);
        let delay = self.delay.load(Relaxed);
        if delay > 0 && std::ptr::eq(counter, &self.gets) {
            tokio::time::sleep(Duration::from_micros(delay)).await;
        }
        let fault = {
            let mut faults = self.faults.lock().unwrap();
            let one_in = faults.one_in;
            if one_in > 0 && faults.random.one_in(one_in) {
                let kind = faults.random.below(3) as usize;
                self.drawn[kind].fetch_add(1, Relaxed);
                [Fault::Before, Fault::After, Fault::Late][kind]
            } else {
                Fault::None
            }
        };
        match fault {
            Fault::Before => return Err(self.broken()),
            Fault::Late => tokio::time::sleep(Duration::from_millis(3)).await,
            Fault::None | Fault::After => {}
        }
        Ok(fault)
    }

    fn broken(&self) -> Error {
        self.failed.fetch_add(1, Relaxed);
        Error::Generic { store: "Bucket", source: "the connection was lost".into() }
    }

    async fn around<T>(&self, counter: &AtomicU64, request: impl Future<Output = Result<T>>) -> Result<T> {
        let fault = self.draw(counter).await?;
        let outcome = request.await?;
        if fault == Fault::After { Err(self.broken()) } else { Ok(outcome) }
    }
}

impl fmt::Display for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bucket({})", self.inner)
    }
}

#[async_trait::async_trait]
impl ObjectStore for Bucket {
    async fn put_opts(&self, at: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.around(&self.puts, self.inner.put_opts(at, payload, options)).await
    }

    async fn put_multipart_opts(
        &self,
        at: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.around(&self.puts, self.inner.put_multipart_opts(at, options)).await
    }

    async fn get_opts(&self, at: &Path, options: GetOptions) -> Result<GetResult> {
        self.around(&self.gets, self.inner.get_opts(at, options)).await
    }

    async fn get_ranges(&self, at: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.around(&self.gets, self.inner.get_ranges(at, ranges)).await
    }

    fn delete_stream(&self, paths: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.puts.fetch_add(1, Relaxed);
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.around(&self.puts, self.inner.list_with_delimiter(prefix)).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.around(&self.puts, self.inner.copy_opts(from, to, options)).await
    }
}

/// Settings for tests: quick flushes, small tables, so that levels and compactions are met.
pub(crate) fn settings() -> Settings {
    let mut settings = Settings {
        flush_interval: Some(Duration::from_millis(2)),
        manifest_poll_interval: Duration::from_millis(100),
        l0_sst_size_bytes: 16 << 10,
        l0_max_ssts: 64,
        l0_max_ssts_per_key: 64,
        // A local directory cannot replace an object on a condition.
        garbage_collector_options: Some(GarbageCollectorOptions {
            boundary_files_enabled: false,
            ..GarbageCollectorOptions::default()
        }),
        ..Settings::default()
    };
    if let Some(compactor) = &mut settings.compactor_options {
        compactor.poll_interval = Duration::from_millis(100);
    }
    settings
}

/// Options for tests.
pub(crate) fn options() -> SlateOptions {
    SlateOptions::new().settings(settings()).reader_settings(DbReaderOptions::default())
}

/// Runs a test on a runtime with several threads.
pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(test)
}

/// Whether the long versions of tests are wanted.
pub(crate) fn is_full() -> bool {
    std::env::var_os("BESOM_FULL").is_some()
}
