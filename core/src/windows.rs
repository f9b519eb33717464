//! The calls of Windows that the file store and the guard of a number share.

use std::ffi::{OsStr, c_void};
use std::io;
use std::os::windows::ffi::OsStrExt;
use std::ptr::null_mut;
use windows_sys::Win32::Foundation::{HANDLE, LocalFree};
use windows_sys::Win32::Security::Authorization::{
    ConvertSidToStringSidW, ConvertStringSecurityDescriptorToSecurityDescriptorW, SDDL_REVISION_1,
};
use windows_sys::Win32::Security::{GetTokenInformation, PSID, SECURITY_ATTRIBUTES, SECURITY_MAX_SID_SIZE, TOKEN_USER, TokenUser};

/// The token that decides on this thread's calls, its own where it acts for somebody else.
const EFFECTIVE_TOKEN: HANDLE = -6_isize as HANDLE;

/// A text as Windows takes it, in UTF-16 with a zero at its end.
pub(crate) fn wide(text: impl AsRef<OsStr>) -> Vec<u16> {
    text.as_ref().encode_wide().chain([0]).collect()
}

/// The result of a call that returns 0 where it fails.
pub(crate) fn done(returned: i32) -> io::Result<()> {
    if returned == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Memory that Windows allocated for an answer.
pub(crate) struct Local(pub(crate) *mut c_void);

impl Drop for Local {
    fn drop(&mut self) {
        // SAFETY: it is freed once, by its owner.
        unsafe { LocalFree(self.0) };
    }
}

/// The account of the calling thread.
pub(crate) struct Account(Vec<u64>);

impl Account {
    pub(crate) fn of_this_thread() -> io::Result<Self> {
        let mut place = vec![0_u64; (size_of::<TOKEN_USER>() + SECURITY_MAX_SID_SIZE as usize).div_ceil(8)];
        let (length, mut used) = (size_of_val(&place[..]) as u32, 0);
        // SAFETY: the place is aligned for the structure, and has the length that is given.
        done(unsafe { GetTokenInformation(EFFECTIVE_TOKEN, TokenUser, place.as_mut_ptr().cast(), length, &raw mut used) })?;
        Ok(Account(place))
    }

    pub(crate) fn sid(&self) -> PSID {
        // SAFETY: the call that filled the place has put the structure at its beginning, and what it points to behind that.
        unsafe { (*self.0.as_ptr().cast::<TOKEN_USER>()).User.Sid }
    }
}

/// An account's identifier as text, `S-1-…`.
///
/// # Safety
/// `sid` is a valid one.
pub(crate) unsafe fn sid_text(sid: PSID) -> io::Result<String> {
    let mut text = null_mut();
    // SAFETY: the SID is valid; the text ends in a zero, and is freed behind its last use.
    unsafe {
        done(ConvertSidToStringSidW(sid, &raw mut text))?;
        let _memory = Local(text.cast());
        let length = (0..).take_while(|at| *text.add(*at) != 0).count();
        Ok(String::from_utf16_lossy(std::slice::from_raw_parts(text, length)))
    }
}

/// An access list that gives these rights to this account, the administrators and the system, and to others what `others` says.
pub(crate) fn for_this_account(rights: &str, others: &str) -> io::Result<Local> {
    let account = Account::of_this_thread()?;
    // SAFETY: the account's SID is valid as long as the account.
    let own = unsafe { sid_text(account.sid()) }?;
    let entries: String = ["SY", "BA", &own].iter().map(|who| format!("(A;{rights};;;{who})")).collect();
    descriptor(&format!("D:P{entries}{others}"))
}

/// The form in which calls that make something take its descriptor, which must outlive them.
pub(crate) fn attributes(descriptor: &Local) -> SECURITY_ATTRIBUTES {
    SECURITY_ATTRIBUTES { nLength: size_of::<SECURITY_ATTRIBUTES>() as u32, lpSecurityDescriptor: descriptor.0, bInheritHandle: 0 }
}

/// A security descriptor from its text, whose form is Windows' own (SDDL).
pub(crate) fn descriptor(text: &str) -> io::Result<Local> {
    let (text, mut descriptor) = (wide(text), null_mut());
    // SAFETY: the text ends in a zero, and the place is for one pointer.
    done(unsafe { ConvertStringSecurityDescriptorToSecurityDescriptorW(text.as_ptr(), SDDL_REVISION_1, &raw mut descriptor, null_mut()) })?;
    Ok(Local(descriptor))
}
