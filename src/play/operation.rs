//! What can be done with an adaptive filter and any remote, as a value.

use std::ops::RangeInclusive;

use crate::{Adaptation, Adaptive, Authority, Remote, RemoteResult, Settled};

/// One operation of a filter of type `F`. It must do the same each time that it is run, and nothing to the filter if
/// the remote fails.
pub trait Operation<F> {
    /// What it returns.
    type Output;

    /// Runs it.
    ///
    /// # Errors
    ///
    /// What the filter says; it is unchanged.
    fn run<R: Remote>(&self, filter: &mut F, remote: &mut R) -> RemoteResult<Self::Output, R>;
}

/// Defines an operation that calls one method with a key.
macro_rules! operations {
    ($($(#[$meta:meta])* $name:ident: $method:ident -> $output:ty;)+) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, Copy)]
        pub struct $name<'k>(
            /// The bytes of the key.
            pub &'k [u8],
        );

        impl<F: Adaptive> Operation<F> for $name<'_> {
            type Output = $output;

            fn run<R: Remote>(&self, filter: &mut F, remote: &mut R) -> RemoteResult<$output, R> {
                filter.$method(self.0, remote)
            }
        }
    )+};
}

operations! {
    /// [`Adaptive::insert`].
    Insert: insert -> bool;
    /// [`Adaptive::insert_new`].
    InsertNew: insert_new -> ();
    /// [`Adaptive::remove`].
    Remove: remove -> bool;
    /// [`Adaptive::remove_stored`].
    RemoveStored: remove_stored -> bool;
    /// [`Adaptive::adapt`].
    Adapt: adapt -> Adaptation;
}

/// [`Adaptive::settle`] of the homes in a range.
#[derive(Debug, Clone)]
pub struct Settle {
    /// The addresses.
    pub range: RangeInclusive<u64>,
    /// Whether what is read there is all that there is.
    pub authority: Authority,
}

impl<F: Adaptive> Operation<F> for Settle {
    type Output = Settled;

    fn run<R: Remote>(&self, filter: &mut F, remote: &mut R) -> RemoteResult<Settled, R> {
        filter.settle(self.range.clone(), self.authority, remote)
    }
}
