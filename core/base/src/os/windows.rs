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

/// The token that decides about this thread's calls. It is the thread's own if the thread
/// impersonates an account.
const EFFECTIVE_TOKEN: HANDLE = -6_isize as HANDLE;

/// A text for Windows, in UTF-16 with a final zero.
pub fn wide(text: impl AsRef<OsStr>) -> Vec<u16> {
    text.as_ref().encode_wide().chain([0]).collect()
}

/// The result of a call that returns 0 on failure.
pub fn done(returned: i32) -> io::Result<()> {
    if returned == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Memory that Windows allocated for an answer.
pub struct Local(pub *mut c_void);

impl Drop for Local {
    fn drop(&mut self) {
        // SAFETY: it is freed once, by its owner.
        unsafe { LocalFree(self.0) };
    }
}

/// The account of the calling thread.
pub struct Account(Vec<u64>);

impl Account {
    pub fn of_this_thread() -> io::Result<Self> {
        let mut place = vec![0_u64; (size_of::<TOKEN_USER>() + SECURITY_MAX_SID_SIZE as usize).div_ceil(8)];
        let (length, mut used) = (size_of_val(&place[..]) as u32, 0);
        // SAFETY: the place is aligned for the structure, and has the length that is given.
        done(unsafe { GetTokenInformation(EFFECTIVE_TOKEN, TokenUser, place.as_mut_ptr().cast(), length, &raw mut used) })?;
        Ok(Account(place))
    }

    pub fn sid(&self) -> PSID {
        // SAFETY: the call that filled the place has put the structure at its beginning, and the
        // data that it points to after it.
        unsafe { (*self.0.as_ptr().cast::<TOKEN_USER>()).User.Sid }
    }
}

/// An account's identifier as text, `S-1-…`.
///
/// # Safety
/// `sid` is valid.
pub unsafe fn sid_text(sid: PSID) -> io::Result<String> {
    let mut text = null_mut();
    // SAFETY: the SID is valid; the text ends in a zero, and is freed after its last use.
    unsafe {
        done(ConvertSidToStringSidW(sid, &raw mut text))?;
        let _memory = Local(text.cast());
        let length = (0..).take_while(|at| *text.add(*at) != 0).count();
        Ok(String::from_utf16_lossy(std::slice::from_raw_parts(text, length)))
    }
}

/// An access list that gives these rights to this account, the administrators and the system, and
/// the rights `others` to other accounts.
pub fn for_this_account(rights: &str, others: &str) -> io::Result<Local> {
    let account = Account::of_this_thread()?;
    // SAFETY: the account's SID is valid as long as the account.
    let own = unsafe { sid_text(account.sid()) }?;
    let entries: String = ["SY", "BA", &own].iter().map(|who| format!("(A;{rights};;;{who})")).collect();
    descriptor(&format!("D:P{entries}{others}"))
}

/// The argument by which calls that make an object take its descriptor, which must outlive them.
pub fn attributes(descriptor: &Local) -> SECURITY_ATTRIBUTES {
    SECURITY_ATTRIBUTES { nLength: size_of::<SECURITY_ATTRIBUTES>() as u32, lpSecurityDescriptor: descriptor.0, bInheritHandle: 0 }
}

/// A security descriptor from its text, in Windows' format (SDDL).
pub fn descriptor(text: &str) -> io::Result<Local> {
    let (text, mut descriptor) = (wide(text), null_mut());
    // SAFETY: the text ends in a zero, and the place is for one pointer.
    done(unsafe { ConvertStringSecurityDescriptorToSecurityDescriptorW(text.as_ptr(), SDDL_REVISION_1, &raw mut descriptor, null_mut()) })?;
    Ok(Local(descriptor))
}
