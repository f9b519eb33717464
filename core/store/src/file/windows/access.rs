//! The owner of a folder, and the other accounts that may write to it by its access list.

use super::super::folder::{Rules, WAYS_OUT};
use super::super::refusal::{self, Refuse, is_absent};
use super::place::{Folder, open_folder};
use frazil_base::error::{ErrorKind, Result, shell_word};
use frazil_base::os::windows::{Account, Local, attributes, done, for_this_account, sid_text, wide};
use std::fs::{self, File};
use std::io;
use std::os::windows::io::AsRawHandle;
use std::path::Path;
use std::ptr::{null, null_mut};
use windows_sys::Win32::Foundation::{GENERIC_ALL, GENERIC_WRITE};
use windows_sys::Win32::Security::Authorization::{GetSecurityInfo, SE_FILE_OBJECT};
use windows_sys::Win32::Security::{
    ACCESS_ALLOWED_ACE, ACE_HEADER, ACL, DACL_SECURITY_INFORMATION, EqualSid, GetAce, INHERIT_ONLY_ACE, IsWellKnownSid, LookupAccountSidW,
    OWNER_SECURITY_INFORMATION, PSID, WinBuiltinAdministratorsSid, WinLocalSystemSid,
};
use windows_sys::Win32::Storage::FileSystem::{
    CreateDirectoryW, DELETE, FILE_ADD_FILE, FILE_ADD_SUBDIRECTORY, FILE_DELETE_CHILD, FILE_WRITE_ATTRIBUTES, FILE_WRITE_EA, WRITE_DAC,
    WRITE_OWNER,
};
use windows_sys::Win32::System::SystemServices::{ACCESS_ALLOWED_ACE_TYPE, ACCESS_ALLOWED_CALLBACK_ACE_TYPE};

/// The rights with which an account could replace a record.
const WRITING: u32 = FILE_ADD_FILE
    | FILE_ADD_SUBDIRECTORY
    | FILE_DELETE_CHILD
    | FILE_WRITE_ATTRIBUTES
    | FILE_WRITE_EA
    | DELETE
    | WRITE_DAC
    | WRITE_OWNER
    | GENERIC_WRITE
    | GENERIC_ALL;

/// Returns whether files of an account can be trusted: this account's, the administrators', the
/// system's.
///
/// # Safety
/// `sid` is valid.
unsafe fn trusts(account: &Account, sid: PSID) -> bool {
    // SAFETY: both are valid.
    unsafe {
        EqualSid(sid, account.sid()) != 0
            || IsWellKnownSid(sid, WinBuiltinAdministratorsSid) != 0
            || IsWellKnownSid(sid, WinLocalSystemSid) != 0
    }
}

/// A folder's owner and its access list, which point into `_memory`.
struct Security {
    owner: PSID,
    list: *const ACL,
    _memory: Local,
}

impl Security {
    fn of(folder: &File) -> io::Result<Self> {
        let (mut owner, mut list, mut memory) = (null_mut(), null_mut(), null_mut());
        let asked = OWNER_SECURITY_INFORMATION | DACL_SECURITY_INFORMATION;
        // SAFETY: the handle is open with READ_CONTROL, and each place is for one pointer.
        let failed = unsafe {
            GetSecurityInfo(
                folder.as_raw_handle(),
                SE_FILE_OBJECT,
                asked,
                &raw mut owner,
                null_mut(),
                &raw mut list,
                null_mut(),
                &raw mut memory,
            )
        };
        if failed != 0 {
            return Err(io::Error::from_raw_os_error(failed as i32));
        }
        Ok(Security { owner, list, _memory: Local(memory) })
    }

    /// The name of another account that may write to the folder.
    fn writer(&self, account: &Account) -> Option<String> {
        if self.list.is_null() {
            return Some("everybody".to_owned());
        }
        // SAFETY: the list is a valid one, as long as `_memory` lives.
        let count = unsafe { (*self.list).AceCount };
        (0..u32::from(count)).find_map(|index| {
            let mut entry = null_mut();
            // SAFETY: the index is below the count, and each entry begins with its header.
            let header = unsafe {
                done(GetAce(self.list, index, &raw mut entry)).ok()?;
                *entry.cast::<ACE_HEADER>()
            };
            let allows = [ACCESS_ALLOWED_ACE_TYPE, ACCESS_ALLOWED_CALLBACK_ACE_TYPE].contains(&header.AceType.into());
            if !allows || u32::from(header.AceFlags) & INHERIT_ONLY_ACE != 0 {
                return None;
            }
            let entry = entry.cast::<ACCESS_ALLOWED_ACE>();
            // SAFETY: entries of both types have this form, with the account's SID at its end.
            unsafe {
                let sid: PSID = (&raw mut (*entry).SidStart).cast();
                ((*entry).Mask & WRITING != 0 && !trusts(account, sid)).then(|| name(sid))
            }
        })
    }
}

/// The name of an account, or its SID if it has none here.
///
/// # Safety
/// `sid` is valid.
unsafe fn name(sid: PSID) -> String {
    let (mut name, mut domain, mut kind) = ([0_u16; 257], [0_u16; 257], 0);
    let (mut name_length, mut domain_length) = (name.len() as u32, domain.len() as u32);
    // SAFETY: the SID is valid, and the places have the lengths that are given; a text that Windows returns ends in a zero.
    unsafe {
        if LookupAccountSidW(
            null(),
            sid,
            name.as_mut_ptr(),
            &raw mut name_length,
            domain.as_mut_ptr(),
            &raw mut domain_length,
            &raw mut kind,
        ) != 0
        {
            let text = |words: &[u16], length: u32| String::from_utf16_lossy(&words[..length as usize]);
            return match text(&domain, domain_length) {
                domain if domain.is_empty() => text(&name, name_length),
                domain => format!(r"{domain}\{}", text(&name, name_length)),
            };
        }
        sid_text(sid).unwrap_or_else(|_| "an account without a name".to_owned())
    }
}

/// Makes a folder and its parents. If `private`, only this account, the administrators and the
/// system may use them.
pub(in crate::file) fn make(dir: &Path, private: bool) -> io::Result<()> {
    if !private {
        return fs::create_dir_all(dir);
    }
    if let Some(above) = dir.parent() {
        fs::create_dir_all(above)?;
    }
    match make_private(dir) {
        Err(why) if why.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// Makes a folder whose access list inherits nothing from its parent, and applies to its content.
fn make_private(dir: &Path) -> io::Result<()> {
    let descriptor = for_this_account("OICI;FA", "")?;
    let attributes = attributes(&descriptor);
    // SAFETY: the path ends in a zero, and the descriptor lives until the folder is made.
    done(unsafe { CreateDirectoryW(wide(dir).as_ptr(), &raw const attributes) })
}

/// The store's folder, held open, if it exists.
///
/// # Errors
/// `STORE_UNSUITABLE` for a folder that breaks the rules.
pub(in crate::file) fn open(dir: &Path, rules: Rules) -> Result<Option<File>> {
    let opened = match open_folder(dir) {
        Err(why) if is_absent(&why) => return Ok(None),
        opened => opened.refuse(dir, dir)?,
    };
    let (account, security) = both(&opened).refuse(dir, dir)?;
    check_owner(dir, dir, &account, &security, &format!("give it to the administrators ({}), or {WAYS_OUT}", give(dir)))?;
    if rules.private
        && let Some(writer) = security.writer(&account)
    {
        let keep = keep(dir, &account).refuse(dir, dir)?;
        let why = format!("{writer} may write to the folder: remove that right ({keep}), or name it with store=file:");
        return Err(refusal::error(dir, ErrorKind::StoreUnsuitable, why));
    }
    Ok(Some(opened))
}

fn both(folder: &File) -> io::Result<(Account, Security)> {
    Ok((Account::of_this_thread()?, Security::of(folder)?))
}

fn check_owner(dir: &Path, path: &Path, account: &Account, security: &Security, fix: &str) -> Result<()> {
    // SAFETY: the owner is valid as long as the security, the account as long as itself.
    let (owner, this) = unsafe {
        if trusts(account, security.owner) {
            return Ok(());
        }
        // The names are read only for the error, because the name of a domain's account may need a
        // call to its controller.
        (name(security.owner), name(account.sid()))
    };
    let why = format!("{} belongs to account {owner}, which has full control of it, and this is account {this}: {fix}", path.display());
    Err(refusal::error(dir, ErrorKind::StoreUnsuitable, why))
}

/// The command that makes the administrators the owner.
fn give(path: &Path) -> String {
    format!("icacls {} /setowner {}", shell_word(&path.to_string_lossy()), shell_word("*S-1-5-32-544"))
}

/// The command that gives only this account the right to write. It names the account by its SID,
/// because each shell has a different syntax of variables.
fn keep(path: &Path, account: &Account) -> io::Result<String> {
    // SAFETY: the account's SID is valid as long as the account.
    let own = unsafe { sid_text(account.sid()) }?;
    Ok(format!("icacls {} /inheritance:r /grant:r {}", shell_word(&path.to_string_lossy()), shell_word(&format!("*{own}:(OI)(CI)F"))))
}

/// A namespace's folder, if it exists. `make` makes a missing folder, with the rights that it
/// inherits.
///
/// # Errors
/// `STORE_UNSUITABLE` for a folder of another account.
pub(in crate::file) fn namespace(dir: &Path, name: &str, rules: Rules, make: bool) -> Result<Option<Folder>> {
    let path = dir.join(name);
    let Some(_above) = open(dir, rules)? else { return Ok(None) };
    if make {
        match fs::create_dir(&path) {
            Err(why) if why.kind() == io::ErrorKind::AlreadyExists => {}
            Err(why) if is_absent(&why) => return Ok(None),
            made => made.refuse(dir, &path)?,
        }
    }
    let folder = match Folder::open(path.clone()) {
        Err(why) if is_absent(&why) => return Ok(None),
        opened => opened.refuse(dir, &path)?,
    };
    let (account, security) = both(folder.handle()).refuse(dir, &path)?;
    check_owner(
        dir,
        &path,
        &account,
        &security,
        &format!("give it to the administrators ({}); another namespace=NAME is for IDs of other tables", give(&path)),
    )?;
    Ok(Some(folder))
}

#[cfg(test)]
mod tests {
    use super::*;
    use frazil_base::os::windows::descriptor;
    use windows_sys::Win32::Security::{GetSecurityDescriptorDacl, GetSecurityDescriptorOwner};

    fn security(text: &str) -> Security {
        let memory = descriptor(text).unwrap();
        let (mut owner, mut list, mut present, mut defaulted) = (null_mut(), null_mut(), 0, 0);
        // SAFETY: the descriptor is valid, and each place is for one value.
        unsafe {
            done(GetSecurityDescriptorOwner(memory.0, &raw mut owner, &raw mut defaulted)).unwrap();
            done(GetSecurityDescriptorDacl(memory.0, &raw mut present, &raw mut list, &raw mut defaulted)).unwrap();
        }
        Security { owner, list, _memory: memory }
    }

    #[test]
    fn other_account_that_may_write_is_named() {
        let account = Account::of_this_thread().unwrap();
        // SAFETY: the account's SID is valid.
        let own = unsafe { sid_text(account.sid()).unwrap() };
        for (list, writer) in [
            ("D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;FA;;;OWN)", None),
            ("D:P(A;OICI;FA;;;OWN)(A;OICI;FR;;;WD)", None),
            ("D:P(A;OICI;FA;;;OWN)(A;OICIIO;FA;;;WD)", None),
            ("D:P(D;OICI;FA;;;WD)(A;OICI;FA;;;OWN)", None),
            ("D:P(A;OICI;FA;;;OWN)(A;OICI;FA;;;WD)", Some("Everyone")),
            ("D:P(A;OICI;FA;;;OWN)(A;;0x2;;;BU)", Some("Users")),
            ("D:P(A;OICI;FA;;;OWN)(A;;GA;;;AU)", Some("Authenticated Users")),
            ("D:P(A;OICI;FA;;;OWN)(A;;WD;;;S-1-5-21-1-2-3-1234)", Some("S-1-5-21-1-2-3-1234")),
        ] {
            let found = security(&format!("O:BA{}", list.replace("OWN", &own))).writer(&account);
            let ends = found.as_deref().zip(writer).is_some_and(|(found, writer)| found.ends_with(writer));
            assert!(ends || (found.is_none() && writer.is_none()), "{list}: {found:?}");
        }
        let without_a_list = Security { list: null(), ..security("O:BAD:") };
        assert_eq!(without_a_list.writer(&account).as_deref(), Some("everybody"));
    }

    #[test]
    fn owner_is_this_account_or_one_that_may_do_anything() {
        let account = Account::of_this_thread().unwrap();
        // SAFETY: the account's SID is valid.
        let own = unsafe { sid_text(account.sid()).unwrap() };
        for (owner, is_trusted) in [(&*own, true), ("BA", true), ("SY", true), ("BU", false), ("WD", false), ("S-1-5-21-1-2-3-1234", false)]
        {
            let security = security(&format!("O:{owner}D:"));
            let checked = check_owner(Path::new("d"), Path::new("d"), &account, &security, "fix");
            assert_eq!(checked.is_ok(), is_trusted, "{owner}: {checked:?}");
        }
    }
}
