//! `FRAZIL.STORE`: questions of `store=frazil://` to a lent store. A namespace is a name here and includes its tags: a token with the right
//! to lease that name may read and write both, and nothing else.

use super::reply::Reply;
use super::session::Session;
use crate::lend::{ALL, Lent};
use crate::refusal::{Refusal, Result};
use crate::shared::Shared;
use crate::tokens::Right;
use frazil::bindings::Question;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

pub async fn answer(shared: &Shared, session: &mut Session, words: &[&str], reply: &mut Reply) -> Result<()> {
    let question = Question::parse(words)?;
    let texts = match question.namespace() {
        Some(namespace) => {
            shared.gate.check(session.token.as_ref(), Right::Lease, namespace)?;
            let lent = find(shared, namespace)?;
            let limit = question.limit();
            let (texts, permit) = lent.answer(question, limit).await?;
            session.permit = Some(permit);
            texts
        }
        None => list(shared, session, words, question.limit()).await?,
    };
    reply.array(texts.len());
    texts.iter().for_each(|text| reply.bulk(text.as_bytes()));
    Ok(())
}

/// Returns the store of a namespace, or the one for all names that are not served.
///
/// # Errors
/// `UNKNOWN_KEY` where there is none; the reason why it is not open.
fn find<'a>(shared: &'a Shared, namespace: &str) -> Result<&'a Lent> {
    let name = shared.find(namespace).or_else(|| shared.find(ALL)).ok_or_else(|| unknown(namespace))?;
    name.lent()?.ok_or_else(|| unknown(namespace))
}

/// Lists the namespaces of the lent stores that the client may use.
async fn list(shared: &Shared, session: &Session, words: &[&str], limit: Duration) -> Result<Vec<String>> {
    // A client without a known token must not reach the store.
    shared.gate.take(session.token.as_ref(), NonZeroU32::MIN)?;
    let may = |namespace: &str| shared.gate.may(session.token.as_ref(), Right::Lease, namespace);
    let (since, mut keys) = (Instant::now(), vec![]);
    for name in shared.names() {
        // A client without the right learns nothing, not even that the store is away.
        if name.name != ALL && !may(&name.name) {
            continue;
        }
        let Some(lent) = name.lent()? else { continue };
        let (found, _permit) = lent.answer(Question::parse(words)?, limit.saturating_sub(since.elapsed())).await?;
        keys.extend(found.into_iter().filter(|key| {
            let namespace = key.split('~').next().unwrap_or_default();
            let here = find(shared, namespace).is_ok_and(|of| std::ptr::eq(of, lent));
            here && may(namespace)
        }));
    }
    Ok(keys)
}

fn unknown(namespace: &str) -> Refusal {
    Refusal::unknown(format!("the namespace {namespace} is not lent here: start the server with '{namespace}=lend store=...'"))
}
