//! A connection to a store, for commands that show or change its records.

use frazil::admin::resolve;
use frazil::admin::store::{Address, Loaded, Store, Swap, Swapped, Which};
use frazil::{Error, ErrorKind, Result};
use std::time::Duration;

/// The limit of one call of the store. A user waits for it, and a namespace may be large.
const TIMEOUT: Duration = Duration::from_secs(10);

pub(super) struct Connection {
    pub(super) address: Address,
    /// `None` if the folder or the table does not exist yet, and the command may not create it.
    pub(super) store: Option<Box<dyn Store>>,
}

impl Connection {
    /// Connects to a store. Creates a missing table if something will be `written`, and a missing folder if `makes_folder` is set.
    ///
    /// # Errors
    /// `SPEC` for an address that cannot be understood; `STORE_*`.
    pub(super) fn open(given: &str, written: bool, makes_folder: bool) -> Result<Self> {
        let address = Address::parse(&resolve("store", given)?)?;
        if let Some(folder) = address.missing_folder()?.filter(|_| !makes_folder) {
            return Err(Error::new(ErrorKind::StoreUnsuitable, format!("store={address}: the folder {folder} does not exist")));
        }
        let store = if written { Some(address.connect(TIMEOUT)?) } else { address.look(TIMEOUT)? };
        Ok(Connection { address, store })
    }

    /// # Errors
    /// `STORE_*`.
    pub(super) fn load(&mut self, key: &str, which: Which) -> Result<Loaded> {
        self.store.as_mut().map_or_else(|| Ok(Loaded::default()), |store| store.load(key, which))
    }

    /// # Errors
    /// `STORE_*`.
    pub(super) fn swap(&mut self, key: &str, swap: &Swap) -> Result<Swapped> {
        self.store.as_mut().map_or(Ok(Swapped::Differs), |store| store.swap(key, swap))
    }
}
