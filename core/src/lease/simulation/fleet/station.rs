//! A server with a number of processors, which serves requests in order of arrival.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

pub(super) struct Station {
    /// The time at which each processor is free, in us.
    free: BinaryHeap<Reverse<u64>>,
    /// The number of requests in each second, and the time that they took, in us.
    pub(super) seconds: Vec<(u32, u64)>,
}

impl Station {
    pub(super) fn new(processors: usize) -> Self {
        Station { free: std::iter::repeat_n(Reverse(0), processors).collect(), seconds: Vec::new() }
    }

    /// Takes a request, and returns when it is done.
    pub(super) fn serve(&mut self, now_us: u64, cost_us: u64) -> u64 {
        let Reverse(free) = self.free.pop().expect("a server has a processor");
        let begins = free.max(now_us);
        self.free.push(Reverse(begins + cost_us));
        let second = (begins / 1_000_000) as usize;
        if self.seconds.len() <= second {
            self.seconds.resize(second + 1, (0, 0));
        }
        self.seconds[second].0 += 1;
        self.seconds[second].1 += cost_us;
        begins + cost_us
    }

    pub(super) fn processors(&self) -> usize {
        self.free.len()
    }
}
