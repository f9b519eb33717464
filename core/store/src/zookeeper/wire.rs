//! The few ZooKeeper messages that a store needs, as bytes.
//!
//! Every number is big-endian. A text or a byte string begins with its length in 4 bytes, and a
//! list with its count. A message begins with its length.

/// The code of a successful reply.
pub(super) const OK: i32 = 0;
pub(super) const NO_NODE: i32 = -101;
pub(super) const BAD_VERSION: i32 = -103;
pub(super) const NODE_EXISTS: i32 = -110;

const CREATE: i32 = 1;
const DELETE: i32 = 2;
const SET_DATA: i32 = 5;
const CHECK: i32 = 13;
/// The code that replaces an operation's number for a failed part of a multi, and for the mark
/// after the last part.
const FAILED: i32 = -1;

/// A request to the server.
pub(super) enum Request<'a> {
    /// Makes later reads see all writes that were acknowledged before it.
    Sync,
    Exists(&'a str),
    GetData(&'a str),
    GetChildren(&'a str),
    Create(Create<'a>),
    /// All of the steps, or none.
    Multi(&'a [Step<'a>]),
}

/// A new persistent znode.
#[derive(Clone, Copy)]
pub(super) struct Create<'a> {
    pub(super) path: &'a str,
    pub(super) data: &'a str,
    pub(super) access: Access,
}

/// One part of a multi.
pub(super) enum Step<'a> {
    Check { path: &'a str, version: i32 },
    SetData { path: &'a str, data: &'a str, version: i32 },
    Create(Create<'a>),
    Delete(&'a str),
}

/// The account that has all rights on a new znode.
#[derive(Clone, Copy)]
pub(super) enum Access {
    Everybody,
    /// The user of this session's login.
    Creator,
}

/// Bytes to send.
#[derive(Default)]
pub(super) struct Writer(Vec<u8>);

impl Writer {
    pub(super) fn int(&mut self, value: i32) -> &mut Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    pub(super) fn long(&mut self, value: i64) -> &mut Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    pub(super) fn flag(&mut self, value: bool) -> &mut Self {
        self.0.push(value.into());
        self
    }

    pub(super) fn bytes(&mut self, value: &[u8]) -> &mut Self {
        self.int(i32::try_from(value.len()).expect("records and paths are short"));
        self.0.extend(value);
        self
    }

    fn text(&mut self, value: &str) -> &mut Self {
        self.bytes(value.as_bytes())
    }

    /// The message, with its length before it.
    pub(super) fn framed(&self) -> Vec<u8> {
        let mut frame = Writer::default();
        frame.bytes(&self.0);
        frame.0
    }

    pub(super) fn request(&mut self, xid: i32, request: &Request<'_>) {
        let kind = match request {
            Request::Create(_) => CREATE,
            Request::Exists(_) => 3,
            Request::GetData(_) => 4,
            Request::GetChildren(_) => 8,
            Request::Sync => 9,
            Request::Multi(_) => 14,
        };
        self.int(xid).int(kind);
        match request {
            Request::Sync => drop(self.text("/")),
            // The flag would request a notification, which this client does not use.
            Request::Exists(path) | Request::GetData(path) | Request::GetChildren(path) => drop(self.text(path).flag(false)),
            Request::Create(create) => self.create(create),
            Request::Multi(steps) => {
                for step in *steps {
                    self.step(step);
                }
                self.int(FAILED).flag(true).int(-1);
            }
        }
    }

    fn create(&mut self, create: &Create<'_>) {
        const EVERYTHING: i32 = 31;
        const PERSISTENT: i32 = 0;
        let (scheme, id) = match create.access {
            Access::Everybody => ("world", "anyone"),
            Access::Creator => ("auth", ""),
        };
        self.text(create.path).text(create.data).int(1).int(EVERYTHING).text(scheme).text(id).int(PERSISTENT);
    }

    fn step(&mut self, step: &Step<'_>) {
        let kind = match step {
            Step::Check { .. } => CHECK,
            Step::SetData { .. } => SET_DATA,
            Step::Create(_) => CREATE,
            Step::Delete(_) => DELETE,
        };
        self.int(kind).flag(false).int(-1);
        match step {
            Step::Check { path, version } => drop(self.text(path).int(*version)),
            Step::SetData { path, data, version } => drop(self.text(path).text(data).int(*version)),
            Step::Create(create) => self.create(create),
            Step::Delete(path) => drop(self.text(path).int(-1)),
        }
    }
}

/// Received bytes. Every method returns `None` if the bytes end too early.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub(super) fn int(&mut self) -> Option<i32> {
        self.take(4)?.try_into().ok().map(i32::from_be_bytes)
    }

    pub(super) fn long(&mut self) -> Option<i64> {
        self.take(8)?.try_into().ok().map(i64::from_be_bytes)
    }

    pub(super) fn flag(&mut self) -> Option<bool> {
        self.take(1).map(|byte| byte[0] != 0)
    }

    /// A length of -1 means no bytes, which are treated as empty.
    pub(super) fn bytes(&mut self) -> Option<&'a [u8]> {
        match self.int()? {
            -1 => Some(&[]),
            length => self.take(usize::try_from(length).ok()?),
        }
    }

    /// The names in an answer to [`Request::GetChildren`] that `read` accepts. Names that are not
    /// UTF-8 are not frazil's.
    pub(super) fn names<T>(&mut self, read: impl Fn(&str) -> Option<T>) -> Option<Vec<T>> {
        let mut names = Vec::new();
        for _ in 0..self.int()? {
            names.extend(str::from_utf8(self.bytes()?).ok().and_then(&read));
        }
        Some(names)
    }

    /// The answer to [`Request::GetData`].
    pub(super) fn data(&mut self) -> Option<Data<'a>> {
        let bytes = self.bytes()?;
        let (_created, changed) = (self.long()?, self.long()?);
        let (_created_ms, _changed_ms) = (self.long()?, self.long()?);
        let version = self.int()?;
        Some(Data { bytes, changed, version })
    }

    /// The answer to [`Request::Multi`]: the code of the failed part, or `OK`.
    pub(super) fn multi(&mut self, steps: usize) -> Option<i32> {
        let mut failed = OK;
        for _ in 0..steps {
            let (kind, _done, _error) = (self.int()?, self.flag()?, self.int()?);
            match kind {
                // The parts before the failed one have the code OK, although none was executed.
                FAILED => match self.int()? {
                    code if failed == OK => failed = code,
                    _ => {}
                },
                CREATE => drop(self.bytes()?),
                SET_DATA => drop(self.take(STAT)?),
                CHECK | DELETE => {}
                _ => return None,
            }
        }
        let end = (self.int()?, self.flag()?);
        (end == (FAILED, true)).then_some(failed)
    }
}

/// The length of a znode's metadata.
const STAT: usize = 68;

/// A znode.
pub(super) struct Data<'a> {
    pub(super) bytes: &'a [u8],
    /// The transaction that wrote the znode.
    pub(super) changed: i64,
    /// The number of times that the znode was written.
    pub(super) version: i32,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(parts: &[(i32, &[u8])]) -> Vec<u8> {
        let mut writer = Writer::default();
        for (kind, rest) in parts {
            writer.int(*kind).flag(false).int(0);
            writer.0.extend(*rest);
        }
        writer.int(FAILED).flag(true).int(-1);
        writer.0
    }

    #[test]
    fn result_of_a_multi() {
        let good = result(&[(CHECK, &[]), (SET_DATA, &[0; STAT]), (CREATE, &[0, 0, 0, 1, b'/'])]);
        assert_eq!(Reader(&good).multi(3), Some(OK));
        let code = |code: i32| code.to_be_bytes();
        let bad = result(&[(FAILED, &code(0)), (FAILED, &code(BAD_VERSION)), (FAILED, &code(-2))]);
        assert_eq!(Reader(&bad).multi(3), Some(BAD_VERSION));
        // The answers are too short, too long, or have extra parts. Then the outcome is unknown.
        assert_eq!(Reader(&good).multi(2), None);
        assert_eq!(Reader(&good).multi(4), None);
        for end in 0..good.len() - 4 {
            assert_eq!(Reader(&good[..end]).multi(3), None, "{end}");
        }
        assert_eq!(Reader(&result(&[(7, &[])])).multi(1), None);
    }

    #[test]
    fn nothing_is_read_past_the_end() {
        assert_eq!(Reader(&[0, 0, 0, 9, b'a']).bytes(), None);
        assert_eq!(Reader(&[0x80, 0, 0, 0]).bytes(), None);
        assert_eq!(Reader(&[255, 255, 255, 255]).bytes(), Some(&[][..]));
        assert_eq!(Reader(&[127, 255, 255, 255, 0, 0, 0, 0]).names(|_| Some(())), None);
        assert_eq!(Reader(&[0, 0, 0, 1, 0, 0, 0, 1, b'a']).names(|name| Some(name.to_owned())), Some(vec!["a".to_owned()]));
        assert!(Reader(&[0; 40]).data().is_some());
        assert!(Reader(&[0; 39]).data().is_none());
    }
}
