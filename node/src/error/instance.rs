//! The state of an environment, its beginning and its end.

use crate::error::panic::catch;
use crate::event;
use crate::lease::held::{Leased, give_back_at_exit};
use crate::wait::line::Calls;
use napi::bindgen_prelude::*;
use napi::{JsValue, check_status, sys};
use std::ptr;

/// The state of one environment (the main thread, or a worker). It holds nothing of a copy of `index.js`: test runners load one for
/// each file, and drop it with all that it made.
pub(crate) struct Instance {
    /// The key of the object that stands first in a refusal, and nowhere else; Node deletes it with the environment.
    pub(super) mark: sys::napi_ref,
    pub(crate) calls: Calls,
    pub(crate) leased: Leased,
}

impl Instance {
    pub(crate) fn of(env: &Env) -> Result<&mut Self> {
        env.get_instance_data::<Instance>()?.ok_or_else(|| napi::Error::from_reason("begin has not been called"))
    }

    /// The environment ends: its calls are given up, then what it leased is given back.
    fn end(&mut self) {
        self.calls.end();
        self.leased.give_back();
    }
}

/// Begins an environment; the mark of its refusals.
pub(crate) fn begin(env: &Env) -> Result<Object<'_>> {
    let (mark, mut kept) = (Object::new(env)?, ptr::null_mut());
    // SAFETY: the environment and the handle are alive in this call, and the place is ours.
    check_status!(unsafe { sys::napi_create_reference(env.raw(), mark.raw(), 1, &mut kept) })?;
    let instance = Instance { mark: kept, calls: Calls::new(env)?, leased: Leased::default() };
    event::listen(instance.calls.line());
    env.set_instance_data(instance, (), |_| ())?;
    frazil::bindings::stay();
    give_back_at_exit();
    let ending = *env;
    env.add_env_cleanup_hook((), move |()| drop(catch(|| Instance::of(&ending).map(Instance::end))))?;
    Ok(mark)
}
