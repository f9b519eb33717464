
/// The fields that `put` stores first, as a fork may find them: for `make defect-handover`.
#[cfg(test)]
impl Current {
    pub(super) fn store(&self, process: u64, span: Span, generation: u64, _: usize) {
        let slot = &self.slot;
        slot.begun.store(generation, Ordering::Release);
        slot.process.store(process, Ordering::Release);
        slot.first.store(span.first, Ordering::Release);
        slot.stride.store(span.stride, Ordering::Release);
        slot.count.store(span.count, Ordering::Release);
        slot.low.store(span.low, Ordering::Release);
        slot.done.store(generation, Ordering::Release);
    }
}
