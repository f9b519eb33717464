//! A checked request.

use super::Caller;
use super::backpressure::{Backpressure, BatchRoom};
use crate::mint;
use crate::names::Name;
use crate::peer::Peer;
use crate::refusal::{Refusal, Result};
use crate::shared::{Charge, Client, Shared};
use crate::tokens::{Right, fingerprint};
use crate::unread_answers;
use frazil::bindings::did_you_mean;
use frazil::{Error, ErrorKind};
use hyper::body::Incoming;
use hyper::header::HeaderValue;
use hyper::{Method, Request};
use std::borrow::Cow;
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::Poll;

/// The largest batch that needs no room, because such batches of a connection add up to few bytes.
const SMALL: usize = 50;

pub struct RequestContext<'a> {
    pub shared: &'a Shared,
    pub request: &'a Request<Incoming>,
    client: Client,
}

impl<'a> RequestContext<'a> {
    /// Reads the caller of a request, which may mint.
    ///
    /// # Errors
    /// Those of [`Caller::of`] and [`Caller::token`].
    pub fn new(shared: &'a Shared, peer: Peer, mints: bool, request: &'a Request<Incoming>) -> Result<Self> {
        let token = Caller::of(shared, peer, mints, request)?.token()?;
        Ok(RequestContext { shared, request, client: Client { address: peer.address(), token } })
    }

    /// Checks the method. Where GET is allowed, HEAD is as well.
    ///
    /// # Errors
    /// `METHOD_NOT_ALLOWED`.
    pub fn check_method(&self, wanted: &Method, why: &str) -> Result<()> {
        let given = self.request.method();
        if given == wanted || (given == Method::HEAD && wanted == Method::GET) {
            return Ok(());
        }
        let allow = if *wanted == Method::POST { "POST" } else { "GET, HEAD" };
        Err(Refusal::method_not_allowed(format!("{} is not for this path: {why}", self.request.method()), allow))
    }

    /// Checks a request of Leaf's and Tinyid's paths, on which GET mints. Refuses HEAD, and the prefetch of a browser.
    ///
    /// # Errors
    /// `METHOD_NOT_ALLOWED`, `FORBIDDEN`.
    pub fn check_get_mints(&self) -> Result<()> {
        let method = self.request.method();
        if !matches!(*method, Method::GET | Method::POST) {
            return Err(Refusal::method_not_allowed(format!("{method} is not for this path: GET"), "GET, POST"));
        }
        let is_ahead = |value: &HeaderValue| value.as_bytes().starts_with(b"prefetch");
        if ["sec-purpose", "purpose", "x-moz"].iter().any(|name| self.request.headers().get(*name).is_some_and(is_ahead)) {
            return Err(Refusal::forbidden("a prefetch by a browser mints no ID".to_owned()));
        }
        Ok(())
    }

    /// Checks a right on a name that was found.
    ///
    /// # Errors
    /// Those of [`Gate::check`](crate::tokens::Gate::check).
    pub fn check(&self, right: Right, name: &Name) -> Result<()> {
        self.shared.gate.check(self.client.token.as_ref(), right, &name.name)
    }

    /// Returns the name that the request asks for, if its token has the right.
    ///
    /// # Errors
    /// Those of [`Shared::name`].
    pub fn name(&self, right: Right, name: &str) -> Result<&'a Arc<Name>> {
        self.shared.name(&self.client, right, name)
    }

    /// Parses the number of IDs that the request asks for.
    ///
    /// # Errors
    /// Those of [`Shared::count`].
    pub fn count(&self, key: &str, text: &str) -> Result<Charge<'a>> {
        self.shared.count(&self.client, key, text)
    }

    /// Returns the client, with a token from the query if there is one, as Tinyid's clients send it.
    pub fn client_with(&self, token: Option<&str>) -> Client {
        let given = token.filter(|_| self.shared.gate.is_closed()).map(|token| fingerprint(token.as_bytes()));
        Client { token: given.or(self.client.token), ..self.client }
    }

    /// Waits for room for a batch of `count` IDs of a name.
    ///
    /// # Errors
    /// Those of [`Backpressure::take`], [`unread_answers::reserve`] and [`mint::place`].
    pub async fn reserve(&self, name: &Arc<Name>, count: usize) -> Result<BatchRoom> {
        if count <= SMALL {
            return Ok(BatchRoom(None));
        }
        let mut room = Box::pin(self.room(name, count));
        if let Poll::Ready(room) = poll_fn(|context| Poll::Ready(room.as_mut().poll(context))).await {
            return room;
        }
        // Its memory is that of a request that waits for IDs.
        let _place = mint::place(name)?;
        room.await
    }

    async fn room(&self, name: &Arc<Name>, count: usize) -> Result<BatchRoom> {
        let connection = match self.request.extensions().get::<Backpressure>() {
            Some(room) => Some(room.take(name, count).await?),
            None => None,
        };
        let all = unread_answers::reserve(name, count, self.shared.limits.wait).await?;
        Ok(BatchRoom(Some((connection, all))))
    }

    /// Parses the query, which may have only these keys.
    ///
    /// # Errors
    /// `UNKNOWN_KEY`; `SPEC` for a repeated key.
    pub fn query(&self, allowed: &[&'static str]) -> Result<Query<'a>> {
        let mut found: Vec<(&'static str, Cow<'a, str>)> = vec![];
        for (key, value) in form_urlencoded::parse(self.request.uri().query().unwrap_or_default().as_bytes()) {
            let Some(&key) = allowed.iter().find(|&&allowed| allowed == key) else {
                let short: String = key.chars().take(32).collect();
                let near = did_you_mean(&key, allowed.iter().copied());
                let known = if allowed.is_empty() { "no query".to_owned() } else { allowed.join(", ") };
                let why = format!("{short:?} is unknown here{near}: use {known}");
                return Err(Error::new(ErrorKind::UnknownKey, why).into());
            };
            if found.iter().any(|(earlier, _)| *earlier == key) {
                return Err(Error::new(ErrorKind::Spec, format!("{key} is given twice")).into());
            }
            found.push((key, value));
        }
        Ok(Query(found))
    }
}

pub struct Query<'a>(Vec<(&'static str, Cow<'a, str>)>);

impl Query<'_> {
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(found, _)| *found == key).map(|(_, value)| value.as_ref())
    }
}
