//! The state of an environment, its beginning and its end.

use crate::error::panic::catch;
use crate::event;
use crate::lease::held::{Leased, release_at_exit};
use crate::wait::line::Calls;
use napi::bindgen_prelude::*;
use napi::{JsValue, check_status, sys};
use std::ptr;

/// The state of one environment (the main thread, or a worker). It references no objects of a copy of `index.js`, because test runners load a
/// copy for each file, and drop it with its objects.
pub(crate) struct Instance {
    /// The mark, an object that is the first part of every refusal, and not used elsewhere. Node deletes it with the environment.
    pub(super) mark: sys::napi_ref,
    pub(crate) calls: Calls,
    pub(crate) leased: Leased,
}

impl Instance {
    pub(crate) fn of(env: &Env) -> Result<&mut Self> {
        env.get_instance_data::<Instance>()?.ok_or_else(|| napi::Error::from_reason("begin has not been called"))
    }

    /// Ends the environment: its calls fail, and then its leases are released.
    fn end(&mut self) {
        self.calls.end();
        self.leased.release_all();
    }
}

/// Begins an environment, and returns the mark of its refusals.
pub(crate) fn begin(env: &Env) -> Result<Object<'_>> {
    let (mark, mut kept) = (Object::new(env)?, ptr::null_mut());
    // SAFETY: the environment and the handle are alive in this call, and the result is a local variable.
    check_status!(unsafe { sys::napi_create_reference(env.raw(), mark.raw(), 1, &mut kept) })?;
    let instance = Instance { mark: kept, calls: Calls::new(env)?, leased: Leased::default() };
    event::listen(instance.calls.line());
    env.set_instance_data(instance, (), |_| ())?;
    frazil::bindings::stay();
    release_at_exit();
    let ending = *env;
    env.add_env_cleanup_hook((), move |()| drop(catch(|| Instance::of(&ending).map(Instance::end))))?;
    Ok(mark)
}
