//! Catches: what works with objects in memory or in a directory, and not over the S3 protocol: conditional puts, ranges,
//! lists, signatures.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use besom::testing::Random;
use besom::{BuildError, Seed, TelescopingFilter};
use besom_store::slate::{SlateReader, SlateStore};
use besom_store::{Durability, Opening, Options, StoreError};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use object_store::ObjectStore;
use object_store::aws::{AmazonS3Builder, S3ConditionalPut};
use tokio::net::TcpListener;
use tokio::sync::Mutex;

use super::bucket::{options, run};

/// Starts an S3 server on loopback whose buckets are folders. Where it listens.
async fn serve(root: &Path) -> SocketAddr {
    let mut builder = s3s::service::S3ServiceBuilder::new(s3s_fs::FileSystem::new(root).unwrap());
    builder.set_auth(s3s::auth::SimpleAuth::from_single("key", "secret"));
    let service = builder.build();
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    // The server looks whether an object is there and writes it then: without this, two could win.
    let one_at_a_time = Arc::new(Mutex::new(()));
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let (service, one_at_a_time) = (service.clone(), one_at_a_time.clone());
            let answer = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
                let (service, one_at_a_time) = (service.clone(), one_at_a_time.clone());
                async move {
                    let names = ["if-none-match", "if-match"];
                    let is_conditional = names.iter().any(|name| request.headers().contains_key(*name));
                    let _turn = if is_conditional && request.method() == hyper::Method::PUT {
                        Some(one_at_a_time.lock().await)
                    } else {
                        None
                    };
                    service.call(request.map(s3s::Body::from)).await
                }
            });
            tokio::spawn(async move {
                let connection = Builder::new(TokioExecutor::new());
                let _ = connection.serve_connection(TokioIo::new(socket), answer).await;
            });
        }
    });
    address
}

fn bucket(address: SocketAddr) -> Arc<dyn ObjectStore> {
    let builder = AmazonS3Builder::new()
        .with_endpoint(format!("http://{address}"))
        .with_allow_http(true)
        .with_bucket_name("bucket")
        .with_region("us-east-1")
        .with_access_key_id("key")
        .with_secret_access_key("secret")
        .with_conditional_put(S3ConditionalPut::ETagMatch);
    Arc::new(builder.build().unwrap())
}

fn make(keys: usize, seed: Seed) -> Result<TelescopingFilter, BuildError> {
    let filter = TelescopingFilter::builder().capacity(keys.max(50)).growable().false_positive_rate(0.05);
    filter.seed(seed).build()
}

#[test]
fn a_store_and_a_reader_over_the_s3_protocol() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("bucket")).unwrap();
    run(async {
        let address = serve(folder.path()).await;
        let buffered = || options().store(Options::new().durability(Durability::Buffered));
        let open = || SlateStore::open("db", bucket(address), make, buffered());
        let (mut model, mut random) = (BTreeMap::new(), Random::new(21));
        let store = open().await.unwrap();
        for turn in 0..400_u64 {
            let key = random.below(200).to_le_bytes();
            if random.one_in(3) {
                assert_eq!(store.remove(&key).await.unwrap().is_some(), model.remove(&key).is_some());
            } else {
                store.insert(&key, &turn.to_le_bytes()).await.unwrap();
                model.insert(key, turn);
            }
        }
        store.publish().await.unwrap();
        let reader = SlateReader::<TelescopingFilter>::open("db", bucket(address), buffered()).await.unwrap();
        for (key, turn) in &model {
            assert_eq!(reader.get(key).await.unwrap().as_deref(), Some(&turn.to_le_bytes()[..]));
        }
        for absent in 1000..4000_u64 {
            assert_eq!(reader.get(&absent.to_le_bytes()).await.unwrap(), None);
        }
        assert!(reader.metrics().adaptations > 0);
        store.close().await.unwrap();
        let store = open().await.unwrap();
        assert!(matches!(store.opening(), Opening::Snapshot), "{:?}", store.opening());
        store.verify().await.unwrap();
        assert_eq!(store.metrics().keys, model.len() as u64);
        // Another writer takes over; conditional puts are what fences the old one.
        let new = open().await.unwrap();
        new.insert(b"new", b"writer").await.unwrap();
        new.flush().await.unwrap();
        let mut fenced = store.insert(b"old", b"writer").await.err();
        if fenced.is_none() {
            fenced = store.flush().await.err();
        }
        let fenced = fenced.unwrap();
        assert!(matches!(fenced, StoreError::Closed { fenced: true }), "{fenced}");
        new.verify().await.unwrap();
        assert_eq!(new.get(b"old").await.unwrap(), None);
    });
}
