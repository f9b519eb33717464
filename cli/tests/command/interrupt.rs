//! Ctrl-C for a command.

use std::process::{Child, Command};

/// Has the command listen, also where this program was started in the background of a shell, which ignores Ctrl-C.
#[cfg(unix)]
pub(crate) fn listening(command: &mut Command) -> &mut Command {
    use std::os::unix::process::CommandExt;
    // SAFETY: signal(2) may be called between fork and exec.
    unsafe {
        command.pre_exec(|| {
            libc::signal(libc::SIGINT, libc::SIG_DFL);
            Ok(())
        })
    }
}

#[cfg(unix)]
pub(crate) fn interrupt(child: &mut Child) {
    assert!(matches!(child.try_wait(), Ok(None)), "it has ended");
    // SAFETY: the child is ours, and has not been waited for.
    assert_eq!(unsafe { libc::kill(child.id() as i32, libc::SIGINT) }, 0);
}

#[cfg(windows)]
pub(crate) fn listening(command: &mut Command) -> &mut Command {
    command
}

/// Presses Ctrl-C in this program's console, where all programs get it, so these tests run one after the other.
#[cfg(windows)]
pub(crate) fn interrupt(child: &mut Child) {
    use windows_sys::Win32::System::Console::{CTRL_C_EVENT, GenerateConsoleCtrlEvent, SetConsoleCtrlHandler};

    unsafe extern "system" fn ignore(_: u32) -> windows_sys::core::BOOL {
        1
    }
    assert!(matches!(child.try_wait(), Ok(None)), "it has ended");
    // SAFETY: the function stays where it is, and does nothing.
    let sent = unsafe { SetConsoleCtrlHandler(Some(ignore), 1) != 0 && GenerateConsoleCtrlEvent(CTRL_C_EVENT, 0) != 0 };
    assert!(sent, "{}", std::io::Error::last_os_error());
}
