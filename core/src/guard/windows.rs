//! Names on Windows: kernel objects in the machine's namespace `Global\`, which end with the last process that has them open.
//!
//! A guard is a mutex that is never locked, because only its existence counts. A watch is an event, which other processes signal. Every
//! account can find both, so a service and a user's program detect each other. The system does not show which process has an object.

use super::{NotTaken, Peer, TakenName};
use frazil_base::os::windows::{Local, attributes, done, for_this_account, wide};
use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use windows_sys::Win32::Foundation::{
    ERROR_ACCESS_DENIED, ERROR_ALREADY_EXISTS, ERROR_FILE_NOT_FOUND, GetLastError, HANDLE, SetLastError, WAIT_OBJECT_0, WIN32_ERROR,
};
use windows_sys::Win32::Security::SECURITY_ATTRIBUTES;
use windows_sys::Win32::System::Threading::{
    CREATE_EVENT_MANUAL_RESET, CreateEventExW, CreateMutexExW, EVENT_MODIFY_STATE, OpenEventW, SYNCHRONIZATION_SYNCHRONIZE, SetEvent,
    WaitForSingleObject,
};

/// A name that this process holds until this is dropped.
pub(super) struct Name(OwnedHandle);

/// Takes a name that guards a number.
pub(super) fn take(name: &str) -> TakenName {
    create(name, |attributes, name| {
        // SAFETY: the attributes live until the call returns, and the name ends in a zero.
        unsafe { CreateMutexExW(attributes, name, 0, SYNCHRONIZATION_SYNCHRONIZE) }
    })
}

/// Takes a name that watches.
pub(super) fn take_watch(name: &str) -> TakenName {
    create(name, |attributes, name| {
        // SAFETY: as above.
        unsafe { CreateEventExW(attributes, name, CREATE_EVENT_MANUAL_RESET, SYNCHRONIZATION_SYNCHRONIZE) }
    })
}

type CreateNamed = fn(*const SECURITY_ATTRIBUTES, *const u16) -> HANDLE;

fn create(name: &str, call: CreateNamed) -> TakenName {
    let list = match access_list() {
        Ok(list) => list,
        Err(why) => return Err(NotTaken::Refused(why.to_string())),
    };
    match object(&list, name, call) {
        (Some(_), ERROR_ALREADY_EXISTS) => Err(NotTaken::InUse),
        (Some(name), _) => Ok(name),
        // Either another account has denied access to this name, or the system gives this process no names, as in a sandbox.
        (None, ERROR_ACCESS_DENIED) if object(&list, &format!("frazil/probe/{:016x}", fastrand::u64(..)), call).0.is_some() => {
            Err(NotTaken::InUse)
        }
        (None, code) => Err(NotTaken::Refused(io::Error::from_raw_os_error(code as i32).to_string())),
    }
}

/// The object of a name, which may have existed before, and the code of the call.
fn object(list: &Local, name: &str, call: CreateNamed) -> (Option<Name>, WIN32_ERROR) {
    let attributes = attributes(list);
    // SAFETY: these are plain calls. A returned handle belongs to this function.
    unsafe {
        SetLastError(0);
        let handle = call(&raw const attributes, wide(global(name)).as_ptr());
        let code = GetLastError();
        ((!handle.is_null()).then(|| Name(OwnedHandle::from_raw_handle(handle))), code)
    }
}

/// The name in the namespace of all sessions of the machine.
fn global(name: &str) -> String {
    format!(r"Global\{name}")
}

/// The access list by which every account may find an object and signal an event. All other rights are for this account, the
/// administrators and the system.
fn access_list() -> io::Result<Local> {
    let everybody = SYNCHRONIZATION_SYNCHRONIZE | EVENT_MODIFY_STATE;
    for_this_account(";GA", &format!("(A;;{everybody:#x};;;WD)"))
}

impl Name {
    /// Returns whether this process still has the name.
    pub(super) fn is_intact(&self) -> bool {
        true
    }

    /// Returns whether another process has signalled a watch.
    pub(super) fn is_rung(&self) -> bool {
        // SAFETY: the handle is open, and may be waited on.
        unsafe { WaitForSingleObject(self.0.as_raw_handle(), 0) == WAIT_OBJECT_0 }
    }
}

/// Signals a watch, to notify its holder, if there is one.
pub(super) fn ring(name: &str) -> io::Result<()> {
    // SAFETY: the name ends in a zero, and a returned handle is closed when `watch` is dropped.
    unsafe {
        let watch = OpenEventW(EVENT_MODIFY_STATE, 0, wide(global(name)).as_ptr());
        if watch.is_null() {
            let why = io::Error::last_os_error();
            return if why.raw_os_error() == Some(ERROR_FILE_NOT_FOUND as i32) { Ok(()) } else { Err(why) };
        }
        let watch = OwnedHandle::from_raw_handle(watch);
        done(SetEvent(watch.as_raw_handle()))
    }
}

/// The holder of a name, which Windows does not show.
pub(super) fn peer(_: &str) -> Option<Peer> {
    None
}

/// The command that shows the holder of a name.
pub(super) fn shown_by(name: &str) -> String {
    format!("Sysinternals' `handle -a {}` shows it", global(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fresh(kind: &str) -> String {
        format!("frazil/{kind}/test/{:016x}", fastrand::u64(..))
    }

    #[test]
    fn name_is_held_once() {
        let name = fresh("issues");
        let Ok(held) = take(&name) else { panic!("nobody has it") };
        assert!(matches!(take(&name), Err(NotTaken::InUse)));
        assert!(take(&fresh("issues")).is_ok());
        drop(held);
        assert!(take(&name).is_ok());
    }

    #[test]
    fn watch_stays_rung() {
        let name = fresh("opens");
        ring(&name).unwrap();
        let Ok(watch) = take_watch(&name) else { panic!("nobody has it") };
        assert!(matches!(take_watch(&name), Err(NotTaken::InUse)));
        assert!(!watch.is_rung());
        ring(&name).unwrap();
        assert!(watch.is_rung() && watch.is_rung());
    }

    /// Another account's object of another kind does not count as the name, and blocks no process.
    #[test]
    fn object_of_another_kind_is_not_a_guard() {
        let name = fresh("issues");
        let Ok(_event) = take_watch(&name) else { panic!("nobody has it") };
        assert!(matches!(take(&name), Err(NotTaken::Refused(_))));
    }
}
