//! What people are told who look at a program that does not start.

use arc_swap::ArcSwapOption;
use std::sync::Arc;

type Hook = Box<dyn Fn(&str) + Send + Sync>;

static HOOK: ArcSwapOption<Hook> = ArcSwapOption::const_empty();

/// Has a function told, once for each number that is looked for for longer than a second, what a start waits for and until when. It is called on
/// the thread that waits, or on frazil's own for calls of [`Pending`](crate::Pending), under no lock; a later function takes its place.
///
/// # Example
/// ```
/// frazil::on_wait(|text| eprintln!("frazil: {text}"));
/// ```
pub fn on_wait(hook: impl Fn(&str) + Send + Sync + 'static) {
    HOOK.store(Some(Arc::new(Box::new(hook))));
}

pub(crate) fn tell(text: &str) {
    if let Some(hook) = &*HOOK.load() {
        hook(text);
    }
}
