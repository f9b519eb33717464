//! An operator's remedy for a tag whose store went back.
#![cfg(unix)]

use frazil::{ErrorKind, Numbers, Segment};
use std::time::Duration;

/// A temporary folder that is reached through a link, so that another folder can replace it at once.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = Folder(std::env::temp_dir().join(format!("frazil-cli-segments-{}-{name}", std::process::id())));
        std::fs::create_dir_all(folder.beside("first")).expect("a temporary folder");
        folder.lead_to("first");
        folder
    }

    fn beside(&self, what: &str) -> std::path::PathBuf {
        self.0.with_extension(what)
    }

    fn lead_to(&self, what: &str) {
        std::os::unix::fs::symlink(self.beside(what), self.beside("link")).expect("a temporary folder");
        std::fs::rename(self.beside("link"), &self.0).expect("a temporary folder");
    }

    fn store(&self) -> String {
        format!("file:{}", self.0.display())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        for path in [self.0.clone(), self.beside("first"), self.beside("copy")] {
            drop(std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir_all(&path)));
        }
    }
}

fn numbers(numbers: &Numbers, count: usize) -> Vec<i64> {
    let mut buffer = vec![0; count];
    numbers.fill(&mut buffer).expect("numbers");
    buffer
}

#[test]
fn a_store_that_went_back_is_refused_until_an_operator_sets_the_next_number() {
    let folder = Folder::new("back's");
    let segment = Segment::open(&format!("-orders store=\"{}\" step=100 wait=2s", folder.store())).unwrap();
    assert!(std::process::Command::new("cp").arg("-a").args([folder.beside("first"), folder.beside("copy")]).status().unwrap().success());
    let before = numbers(&segment, 20);
    // The next range is prefetched, and the thread rests, so no write is under way.
    while segment.prepared().unwrap() == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    // A backup of the folder is restored.
    folder.lead_to("copy");
    let refused = loop {
        match segment.next_id() {
            Ok(id) => assert!(id.get() > before[19]),
            Err(error) => break error,
        }
    };
    assert_eq!(refused.kind(), ErrorKind::StoreChanged, "{refused}");
    assert!(refused.to_string().contains("frazil segment 'file:"), "{refused}");
    assert!(segment.batch(3).is_err_and(|error| error.kind() == ErrorKind::StoreChanged && error.written() == 0));

    // The operator runs the command of the error, with a number for N.
    let text = refused.to_string();
    let printed = &text[text.find("frazil segment").expect("a command")..];
    let command = |start: &str| printed.replace("--start=N", &format!("--start={start}"));
    let (status, err) = shell(&command("1"));
    assert_eq!(status, 1, "{err}");
    assert!(err.starts_with("error[OUT_OF_RANGE]: "), "below what the copy itself says: {err}");
    assert_eq!(segment.next_id().unwrap_err().kind(), ErrorKind::StoreChanged);
    // The copy allows this number, but the process has handed out higher ones.
    assert_eq!(shell(&command("150")), (0, String::new()));
    let still = segment.next_id().unwrap_err();
    assert_eq!(still.kind(), ErrorKind::StoreChanged);
    assert!(still.to_string().contains("the tag was set back: numbers below"), "{still}");
    assert_eq!(shell(&command("1000000")), (0, String::new()));
    assert_eq!(numbers(&segment, 100), (1_000_000..1_000_100).collect::<Vec<_>>());
}

/// Runs a printed command in a shell. Returns its exit status and its error output.
fn shell(command: &str) -> (i32, String) {
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_frazil"));
    let path = format!("{}:/usr/bin:/bin", program.parent().expect("a folder").display());
    let done = std::process::Command::new("/bin/sh").args(["-c", command]).env("PATH", path).output().expect("a shell");
    (done.status.code().expect("it ends by itself"), String::from_utf8_lossy(&done.stderr).into_owned())
}
