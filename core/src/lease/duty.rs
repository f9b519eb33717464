//! Duties: the work of a worker's thread beside its leases, each piece when it is due. Tags' ranges are fetched this way.

use std::collections::{BTreeSet, HashMap};
use std::time::Instant;

/// Work that comes due again and again. It is done without the worker's lock, and in short pieces: leases wait meanwhile.
pub(crate) trait Duty: Send {
    /// Does what is due now.
    fn attend(&mut self) -> Due;
}

/// The time at which a duty has something to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    At(Instant),
    /// Due when it is called.
    Called,
    /// Never again.
    Over,
}

/// The duties of a worker.
#[derive(Default)]
pub(super) struct Agenda {
    places: HashMap<u64, Place>,
    /// Those that are not attended to now, and have a time: whoever was called first comes first.
    queue: BTreeSet<(Instant, u64)>,
}

struct Place {
    /// `None` while it is attended to.
    duty: Option<Box<dyn Duty>>,
    due: Option<Instant>,
    /// True if it was called while it was attended to.
    called: bool,
}

impl Agenda {
    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// A duty, which is due at once.
    pub(super) fn add(&mut self, number: u64, duty: Box<dyn Duty>) {
        self.places.insert(number, Place { duty: Some(duty), due: None, called: false });
        self.call(number);
    }

    /// Makes a duty due now, unless it is already; nothing where it is over.
    pub(super) fn call(&mut self, number: u64) {
        let Some(place) = self.places.get_mut(&number) else { return };
        let now = Instant::now();
        if place.duty.is_none() {
            place.called = true;
        } else if place.due.is_none_or(|due| due > now) {
            place.due.map(|due| self.queue.remove(&(due, number)));
            place.due = Some(now);
            self.queue.insert((now, number));
        }
    }

    /// Returns when the next one is due.
    pub(super) fn next(&self) -> Option<Instant> {
        self.queue.first().map(|(due, _)| *due)
    }

    /// A duty that is due.
    pub(super) fn take(&mut self, now: Instant) -> Option<(u64, Box<dyn Duty>)> {
        let (_, number) = *self.queue.first().filter(|(due, _)| *due <= now)?;
        self.queue.pop_first();
        let place = self.places.get_mut(&number).expect("what is queued has a place");
        place.due = None;
        place.called = false;
        place.duty.take().map(|duty| (number, duty))
    }

    /// After it was attended to. What is over is handed back, for who holds no lock to drop.
    pub(super) fn put_back(&mut self, number: u64, duty: Box<dyn Duty>, due: Due) -> Option<Box<dyn Duty>> {
        let place = self.places.get_mut(&number).expect("a duty that is attended to has a place");
        let due = match due {
            Due::Over => {
                self.places.remove(&number);
                return Some(duty);
            }
            _ if place.called => Some(Instant::now()),
            Due::At(due) => Some(due),
            Due::Called => None,
        };
        place.duty = Some(duty);
        place.due = due;
        self.queue.extend(due.map(|due| (due, number)));
        None
    }

    /// Ends them all.
    pub(super) fn clear(&mut self) -> Self {
        std::mem::take(self)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::time::Duration;

    struct Nothing;

    impl Duty for Nothing {
        fn attend(&mut self) -> Due {
            Due::Called
        }
    }

    fn later(ms: u64) -> Instant {
        Instant::now() + Duration::from_millis(ms)
    }

    #[test]
    fn whoever_was_called_first_comes_first() {
        let mut agenda = Agenda::default();
        (1..=3).for_each(|number| agenda.add(number, Box::new(Nothing)));
        // It is due already, and stays where it is.
        agenda.call(1);
        let (first, duty) = agenda.take(later(0)).unwrap();
        assert_eq!(first, 1);
        assert!(agenda.put_back(first, duty, Due::At(Instant::now())).is_none());
        let order: Vec<_> = std::iter::from_fn(|| agenda.take(later(0)).map(|(number, _)| number)).collect();
        assert_eq!(order, [2, 3, 1]);
    }

    #[test]
    fn a_call_while_it_is_attended_to_is_not_lost() {
        let mut agenda = Agenda::default();
        agenda.add(7, Box::new(Nothing));
        let (number, duty) = agenda.take(later(0)).unwrap();
        assert!(agenda.take(later(0)).is_none());
        agenda.call(7);
        agenda.put_back(number, duty, Due::Called);
        let (number, duty) = agenda.take(later(0)).expect("it was called");
        agenda.put_back(number, duty, Due::At(later(60_000)));
        assert!(agenda.take(later(0)).is_none());
        agenda.call(7);
        let (number, duty) = agenda.take(later(0)).expect("it was called");
        agenda.put_back(number, duty, Due::Called);
        assert_eq!(agenda.next(), None);
        agenda.call(7);
        let (number, duty) = agenda.take(later(0)).expect("it was called");
        assert!(agenda.put_back(number, duty, Due::Over).is_some());
        agenda.call(7);
        assert!(agenda.is_empty() && agenda.next().is_none());
    }
}
