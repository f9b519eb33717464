//! The protocols of the ports.

use crate::metrics::{Metrics, Port};
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Http,
    Resp,
    Admin,
}

impl Protocol {
    pub const ALL: [Protocol; 3] = [Protocol::Http, Protocol::Resp, Protocol::Admin];

    /// Returns the name of the setting that has its address.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Http => "http",
            Protocol::Resp => "resp",
            Protocol::Admin => "admin",
        }
    }

    pub fn port(self, metrics: &Metrics) -> &Arc<Port> {
        match self {
            Protocol::Http => &metrics.http,
            Protocol::Resp => &metrics.resp,
            Protocol::Admin => &metrics.admin,
        }
    }
}
