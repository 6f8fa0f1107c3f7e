//! Futures for those who block.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Blocks this thread until a future is ready. One that awaits nothing costs no more than a call.
///
/// ```
/// assert_eq!(besom_store::wait(async { 7 }), 7);
/// ```
pub fn wait<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    if let Poll::Ready(done) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        return done;
    }
    let waker = Arc::new(Unpark(std::thread::current())).into();
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(done) => return done,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// Awaits all futures at once, and returns what they return, in order.
pub(crate) async fn all<T, A: Future<Output = T>>(futures: Vec<A>) -> Vec<T> {
    let mut waiting: Vec<_> = futures.into_iter().map(|future| (Some(Box::pin(future)), None)).collect();
    std::future::poll_fn(|context| {
        let mut ready = true;
        for (future, done) in &mut waiting {
            if let Some(running) = future {
                match running.as_mut().poll(context) {
                    Poll::Ready(result) => (*future, *done) = (None, Some(result)),
                    Poll::Pending => ready = false,
                }
            }
        }
        if ready { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    waiting.into_iter().filter_map(|(_, done)| done).collect()
}

#[cfg(test)]
mod tests {
    //! Catches: a future that is waited for too briefly, or whose result goes to another one.
    use super::*;
    use std::time::Duration;

    #[test]
    fn futures_that_come_late_are_waited_for_and_keep_their_order() {
        let late = |number: u64| async move {
            let (sender, receiver) = tokio::sync::oneshot::channel();
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(20 - 5 * number));
                let _ = sender.send(number);
            });
            receiver.await.unwrap()
        };
        assert_eq!(wait(all((0..4).map(late).collect())), [0, 1, 2, 3]);
        assert_eq!(wait(all(Vec::<std::future::Ready<u8>>::new())), [] as [u8; 0]);
    }
}
