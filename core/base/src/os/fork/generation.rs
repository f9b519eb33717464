//! The generation of the machine: a counter that changes when the machine is restored from a snapshot, and therefore in each copy.
//!
//! - **The VMClock device** of Linux (`struct vmclock_abi` of `linux/vmclock-abi.h`), which a hypervisor keeps up to date. Its page is
//! - **The VMClock device** of Linux (`struct vmclock_abi` of `linux/vmclock-abi.h`), which a hypervisor keeps up to date. Its page is
//!   mapped, and the hot path reads the counter there. Two copies may have equal counters. The counter shows that this is a copy, but not
//!   which one.
//! - **A file**, by `FRAZIL_GENERATION=file:PATH`, for sandboxes that publish a counter, and for tests. It holds any text that changes. The
//!   file is not mapped, because a file that shrinks would end the process with SIGBUS. It is read at most once a millisecond, and before
//!   each call of a store. Within that time two copies can issue the same IDs. The path is opened each time, because a new file may be
//!   renamed into its place.
//! - **Neither**: the generation is always 0, and copies are noticed only after a call of [`restored`](super::restored).

use crate::error::{Error, ErrorKind, shown};
use crate::os::cancel::Uncancelled;
use std::fs::OpenOptions;
use std::hash::{DefaultHasher, Hasher};
use std::io::Read;
use std::path::PathBuf;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::time::Instant;

/// The offset of `vm_generation_counter` in `struct vmclock_abi`.
pub(super) const OFFSET: usize = 104;
/// The generation of a process that polls a file. It is an odd number, which differs from every file's generation.
pub(super) const POLLED: u64 = 1;
/// The variable that names a file.
const VARIABLE: &str = "FRAZIL_GENERATION";
/// The longest text that is read.
const LONGEST: u64 = 4_096;

/// A file that is polled.
pub(super) struct Polled {
    /// The file's path, or the value of the variable if it names no file.
    path: Result<PathBuf, String>,
    begun: Instant,
    /// The time of the last reading, in ms since `begun`, plus 1. Negative for a time before `begun`.
    looked: AtomicU64,
    /// The last generation; 0 if it could not be read.
    generation: AtomicU64,
}

/// The file that is polled; null if there is none.
static POLLED_FILE: AtomicPtr<Polled> = AtomicPtr::new(std::ptr::null_mut());

pub(super) fn polled() -> Option<&'static Polled> {
    // SAFETY: null, or a leaked box.
    unsafe { POLLED_FILE.load(Ordering::Acquire).as_ref() }
}

/// Begins to poll the file that the variable names, if it is set.
pub(super) fn begin_polling() -> bool {
    let Some(value) = std::env::var_os(VARIABLE) else { return false };
    let path = value.to_str().and_then(|text| text.strip_prefix("file:")).filter(|path| !path.is_empty());
    let path = path.map(PathBuf::from).ok_or_else(|| value.to_string_lossy().into_owned());
    let polled = Polled { path, begun: Instant::now(), looked: AtomicU64::new(0), generation: AtomicU64::new(0) };
    // If two threads arrive here at once, one of the boxes stays unused.
    POLLED_FILE.store(Box::into_raw(Box::new(polled)), Ordering::Release);
    true
}

impl Polled {
    /// The generation, which is read at most once a millisecond.
    pub(super) fn look(&self) -> Option<u64> {
        let (begun, now) = (self.begun, Instant::now());
        // If the process was restored on a machine with a shorter uptime, the clock may be before `begun`.
        let before = || -1 - begun.duration_since(now).as_millis() as i64;
        let now = now.checked_duration_since(begun).map_or_else(before, |since| since.as_millis() as i64 + 1) as u64;
        if self.looked.load(Ordering::Relaxed) != now {
            self.generation.store(self.read().unwrap_or(0), Ordering::Relaxed);
            self.looked.store(now, Ordering::Relaxed);
        }
        Some(self.generation.load(Ordering::Relaxed)).filter(|generation| *generation != 0)
    }

    /// Reads the file. Returns an even hash of its text, which is not 0.
    ///
    /// # Errors
    /// `COPIED`.
    fn read(&self) -> Result<u64, Error> {
        let _uncancelled = Uncancelled::new();
        let path = self.path.as_ref().map_err(|value| {
            let why = format!("{VARIABLE}={} is not file:PATH, so it is not known whether this process is a copy", shown(value));
            Error::new(ErrorKind::Copied, why)
        })?;
        let unknown = |why: String| {
            let why = format!("{VARIABLE}=file:{}: {why}, so it is not known whether this process is a copy", path.display());
            Error::new(ErrorKind::Copied, why)
        };
        let mut text = Vec::new();
        let mut options = OpenOptions::new();
        // A pipe that replaces the file must not block.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK);
        let read = options.read(true).open(path).and_then(|file| file.take(LONGEST + 1).read_to_end(&mut text));
        read.map_err(|why| unknown(why.to_string()))?;
        // The texts of two copies may differ only after the part that was read.
        let is_whole = text.len() as u64 <= LONGEST;
        let text = text.trim_ascii();
        if text.is_empty() || !is_whole {
            let count = if is_whole { "no text".to_owned() } else { format!("more than {LONGEST} bytes") };
            return Err(unknown(format!("it has {count}; allowed: 1 to {LONGEST} bytes")));
        }
        let mut hasher = DefaultHasher::new();
        hasher.write(text);
        Ok((hasher.finish() & !1).max(2))
    }
}

/// The error of a call while the generation cannot be read.
pub(super) fn trouble() -> Error {
    let trouble = polled().and_then(|polled| polled.read().err());
    trouble.unwrap_or_else(|| Error::new(ErrorKind::Copied, format!("{VARIABLE} could not be read a moment ago")))
}

#[cfg(all(target_os = "linux", not(loom)))]
pub(super) use device::{map as map_device, page_size};

#[cfg(all(target_os = "linux", not(loom)))]
mod device {
    use super::{OFFSET, VARIABLE};
    use std::fs::File;
    use std::io;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::FileTypeExt;

    pub(super) const PATH: &str = "/dev/vmclock0";
    /// `VMCLOCK_MAGIC`, "VCLK".
    const MAGIC: u32 = 0x4b4c_4356;
    /// `VMCLOCK_FLAG_VM_GEN_COUNTER_PRESENT`
    const HAS_GENERATION: u64 = 1 << 8;

    pub(in crate::os::fork) fn page_size() -> usize {
        // SAFETY: the call only reads a number.
        usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
    }

    /// Maps the device's page over a page of zeros, which stays if the device is missing.
    pub(in crate::os::fork) fn map(at: *mut libc::c_void, size: usize) {
        if std::env::var_os(VARIABLE).is_none()
            && let Ok(file) = open(size)
        {
            // SAFETY: the address is a page that was mapped for this purpose, and is not used yet.
            unsafe { libc::mmap(at, size, libc::PROT_READ, libc::MAP_FIXED | libc::MAP_SHARED, file.as_raw_fd(), 0) };
        }
    }

    /// Opens the device, if it counts generations.
    pub(super) fn open(size: usize) -> io::Result<File> {
        let file = File::open(PATH)?;
        // Another file under this name may shrink.
        if !file.metadata()?.file_type().is_char_device() {
            return Err(io::Error::other("it is not a device"));
        }
        check(&file, size)?;
        Ok(file)
    }

    /// Checks the fields that do not change.
    pub(super) fn check(file: &File, size: usize) -> io::Result<()> {
        // SAFETY: this is a new mapping.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), size, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let field = |offset| at.wrapping_byte_add(offset).cast_const();
        // SAFETY: the fields are within the page, and aligned. The hypervisor does not change them while the machine runs.
        let (magic, bytes, version, flags) = unsafe {
            let words = [0, 4].map(|offset| u32::from_le(field(offset).cast::<u32>().read_volatile()));
            (
                words[0],
                words[1],
                u16::from_le(field(8).cast::<u16>().read_volatile()),
                u64::from_le(field(24).cast::<u64>().read_volatile()),
            )
        };
        // SAFETY: this is the mapping above, which no other code has.
        unsafe { libc::munmap(at, size) };
        if (magic, version) != (MAGIC, 1) {
            return Err(io::Error::other("it has no page of version 1 of VMClock"));
        }
        if (bytes as usize) < OFFSET + 8 || flags & HAS_GENERATION == 0 {
            return Err(io::Error::other("its hypervisor counts no generations"));
        }
        Ok(())
    }
}

/// The means by which copies of this machine are noticed, for an operator.
#[derive(Debug)]
pub enum Copies {
    /// Copies are noticed by this means.
    Noticed(String),
    /// Copies are not noticed, for this reason.
    Unnoticed(String),
    /// A means exists, but cannot be read, for this reason.
    Unreadable(String),
}

impl Copies {
    /// Finds this process's means of noticing copies.
    pub fn find() -> Self {
        super::mark();
        if let Some(polled) = polled() {
            let path = polled.path.as_deref().unwrap_or("".as_ref()).display();
            return polled
                .read()
                .map_or_else(|error| Copies::Unreadable(error.to_string()), |_| Copies::Noticed(format!("{VARIABLE}=file:{path}")));
        }
        #[cfg(all(target_os = "linux", not(loom)))]
        return match device::open(page_size()) {
            Ok(_) => Copies::Noticed(device::PATH.to_owned()),
            Err(why) if why.kind() == std::io::ErrorKind::NotFound => Copies::Unnoticed(format!("there is no {}", device::PATH)),
            Err(why) => Copies::Unreadable(format!("{}: {why}", device::PATH)),
        };
        #[cfg(not(all(target_os = "linux", not(loom))))]
        Copies::Unnoticed("this system has no VMClock device".to_owned())
    }
}

#[cfg(all(test, unix, not(loom)))]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{FileExt, symlink};

    fn polled(path: Result<PathBuf, String>) -> Polled {
        Polled { path, begun: Instant::now(), looked: AtomicU64::new(0), generation: AtomicU64::new(0) }
    }

    #[test]
    fn file_is_another_generation_with_another_text() {
        let folder = std::env::temp_dir().join(format!("frazil-generation-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("generation");
        let file = polled(Ok(path.clone()));
        let read = |text: &[u8]| {
            fs::write(&path, text).unwrap();
            file.read()
        };
        let one = read(b"1").unwrap();
        assert_eq!((one % 2, read(b" 1\n").unwrap(), read(&[b'x'; 4096]).is_ok()), (0, one, true));
        assert_ne!((read(b"2").unwrap(), POLLED), (one, one));
        for (text, why) in [
            (&b""[..], "it has no text"),
            (b" \n", "it has no text"),
            (&[b'x'; 4097], "it has more than 4096 bytes; allowed: 1 to 4096 bytes"),
        ] {
            let error = read(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Copied);
            assert!(error.to_string().contains(&format!("FRAZIL_GENERATION=file:{}: {why}", path.display())), "{error}");
        }
        // The texts may differ only after the part that is read.
        assert!(read(&[b"1".as_slice(), &[b' '; 1 << 20], b"1"].concat()).is_err(), "a file of 1 MiB");
        fs::remove_file(&path).unwrap();
        assert!(file.read().unwrap_err().to_string().contains("No such file"), "it is gone");
        fs::create_dir(&path).unwrap();
        assert!(file.read().is_err(), "a folder");
        fs::remove_dir(&path).unwrap();
        symlink("/dev/zero", &path).unwrap();
        assert!(file.read().is_err(), "a file without an end");
        fs::remove_file(&path).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        assert!(file.read().is_err(), "a pipe that nobody writes to is not waited for");
        fs::remove_dir_all(folder).unwrap();
        let error = polled(Err("vmgenid".to_owned())).read().unwrap_err();
        assert!(error.to_string().contains("FRAZIL_GENERATION=\"vmgenid\" is not file:PATH"), "{error}");
    }

    #[test]
    fn file_is_read_once_a_millisecond() {
        let path = std::env::temp_dir().join(format!("frazil-generation-once-{}", std::process::id()));
        let file = polled(Ok(path.clone()));
        let looks = || {
            let (since, look) = (Instant::now(), file.look());
            (since, look)
        };
        fs::write(&path, "1").unwrap();
        let (since, one) = looks();
        fs::write(&path, "2").unwrap();
        while looks().1 == one {
            assert!(since.elapsed().as_secs() < 20, "it is never read again");
        }
        fs::remove_file(&path).unwrap();
        while looks().1.is_some() {
            assert!(since.elapsed().as_secs() < 20, "it is never read again");
        }
    }

    /// A process was restored on a machine with a shorter uptime, and the monotonic clock was not
    /// adjusted.
    #[test]
    fn file_is_read_again_where_the_monotonic_clock_went_back() {
        let path = std::env::temp_dir().join(format!("frazil-generation-back-{}", std::process::id()));
        let file = Polled { begun: Instant::now() + std::time::Duration::from_secs(3_600), ..polled(Ok(path.clone())) };
        fs::write(&path, "1").unwrap();
        let one = file.look();
        fs::write(&path, "2").unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20));
        let two = file.look();
        fs::remove_file(&path).unwrap();
        assert_ne!(one, two, "the next copy is not noticed for an hour");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn page_that_counts_no_generations_is_not_used() {
        let path = std::env::temp_dir().join(format!("frazil-vmclock-{}", std::process::id()));
        let size = page_size();
        let check = |change: &dyn Fn(&fs::File)| {
            fs::write(&path, vec![0; size]).unwrap();
            let file = fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
            let field = |at, bytes: &[u8]| file.write_all_at(bytes, at).unwrap();
            field(0, b"VCLK");
            field(4, &4096_u32.to_le_bytes());
            field(8, &1_u16.to_le_bytes());
            field(24, &(1_u64 << 8).to_le_bytes());
            change(&file);
            device::check(&file, size).map_err(|why| why.to_string())
        };
        let set = |at, bytes: &'static [u8]| move |file: &fs::File| file.write_all_at(bytes, at).unwrap();
        assert_eq!(check(&|_| {}), Ok(()));
        assert!(check(&set(0, b"WCLK")).unwrap_err().contains("no page of version 1"));
        assert!(check(&set(8, &[2])).unwrap_err().contains("no page of version 1"), "a later version");
        assert!(check(&set(4, &[104, 0])).unwrap_err().contains("counts no generations"), "a page that ends before the counter");
        assert!(check(&set(25, &[0])).unwrap_err().contains("counts no generations"), "no flag");
        fs::remove_file(&path).unwrap();
    }
}
