//! A result that waits for its caller.

use super::mark;
use crate::error::{Error, ErrorKind, Result};
use std::future::poll_fn;
use std::pin::pin;

/// The result of a call that was not taken yet, and the number of the process that made it.
///
/// The result may wait for a polled task, or for an event loop. Copies of the machine and forked
/// children also have the waiting results. So [`deliver`](Waiting::deliver) compares the number
/// when the result is taken. Code that keeps a result for a caller keeps it in a `Waiting`, and
/// delivers it as the last step.
#[derive(Debug)]
pub struct Waiting<T> {
    /// The number before the last poll of the call, so that a copy made during that poll is noticed, too.
    process: u64,
    value: T,
}

impl<T> Waiting<T> {
    /// Awaits a call, and keeps its result.
    ///
    /// # Errors
    /// Those of the call.
    pub async fn of(call: impl Future<Output = Result<T>>) -> Result<Self> {
        let mut call = pin!(call);
        poll_fn(|context| {
            let process = mark().current();
            call.as_mut().poll(context).map_ok(|value| Waiting { process, value })
        })
        .await
    }

    /// Returns the result of a call whose caller has waited for it.
    ///
    /// # Errors
    /// `COPIED` in a copy of the machine, `FORKED` in a forked child. A result without a value is never refused, because the other
    /// process could not use it.
    pub fn deliver(self) -> Result<T> {
        let mark = mark();
        if size_of::<T>() == 0 || mark.is_still(self.process) {
            return Ok(self.value);
        }
        let copied =
            || "this call was answered before the machine was copied, and each copy has the answer: make the call again".to_owned();
        Err(mark.refusal(self.process, parents_call, copied))
    }

    /// Returns the result of a call whose caller has not waited.
    pub fn at_once(self) -> T {
        self.value
    }
}

fn parents_call() -> String {
    "this call was made by the parent process, which has its answer: make the call again in the child".to_owned()
}

/// The error of a forked child that awaits a call of its parent, and must not take the result.
pub fn awaited_by_parent() -> Error {
    Error::new(ErrorKind::Forked, parents_call())
}

#[cfg(all(test, unix, not(loom)))]
mod tests {
    use super::super::in_child;
    use super::super::restored;
    use super::*;
    use std::cell::Cell;
    use std::task::{Context, Poll, Waker};

    fn of<T>(call: impl FnOnce() -> Result<T>) -> Result<Waiting<T>> {
        let Poll::Ready(waiting) = pin!(Waiting::of(async { call() })).poll(&mut Context::from_waker(Waker::noop())) else {
            panic!("the call does not wait");
        };
        waiting
    }

    fn kind<T>(delivered: Result<T>) -> Option<ErrorKind> {
        delivered.err().map(|error| error.kind())
    }

    #[test]
    fn forked_is_the_error_of_a_parents_answer() {
        let answer = Cell::new(of(|| Ok(7)).ok());
        let deliver = || answer.take().map(Waiting::deliver);
        assert!(in_child(|| deliver().and_then(kind) == Some(ErrorKind::Forked)));
        assert_eq!(deliver(), Some(Ok(7)), "the parent has it");
    }

    #[test]
    fn copied_is_the_error_of_an_earlier_answer() {
        assert!(in_child(|| {
            let (answer, other) = (of(|| Ok(7)), of(|| Ok(8)));
            restored();
            let later = of(|| Ok(9)).and_then(Waiting::deliver);
            kind(answer.and_then(Waiting::deliver)) == Some(ErrorKind::Copied) && other.map(Waiting::at_once) == Ok(8) && later == Ok(9)
        }));
    }

    #[test]
    fn copied_is_the_error_if_the_copy_is_made_during_the_call() {
        let copied = || {
            restored();
            Ok(7)
        };
        assert!(in_child(|| kind(of(copied).and_then(Waiting::deliver)) == Some(ErrorKind::Copied)));
    }

    #[test]
    fn answer_without_a_value_and_an_error_are_unchanged() {
        assert!(in_child(|| {
            let (done, failed) = (of(|| Ok(())), of(|| Err::<i64, _>(Error::closed())));
            restored();
            done.and_then(Waiting::deliver) == Ok(()) && kind(failed.and_then(Waiting::deliver)) == Some(ErrorKind::Closed)
        }));
    }
}
