//! Several calls in few round trips.

use super::super::{Answer, Ask, Key, Loaded, Swapped, Which};
use super::ZooKeeper;
use super::records::{changed, fits, found, is_expected};
use super::session::{no_zookeeper, refused};
use super::wire::{BAD_VERSION, NO_NODE, NODE_EXISTS, OK, Request};
use frazil_base::error::Result;

impl ZooKeeper {
    /// Reads all znodes, and then sends one multi for each swap, without waiting in between. If
    /// another client interferes with a call, that call is repeated alone.
    pub(super) fn ask_together(&mut self, asks: &[Ask<'_>]) -> Vec<Result<Answer>> {
        if let Some(error) = asks.iter().find_map(|ask| self.check(ask.namespace()).err()) {
            return vec![Err(error); asks.len()];
        }
        let place = asks.first().map_or("", |ask| ask.namespace());
        let made = self.with(place, |store, turn| {
            let paths = |ask: &Ask| (store.path(ask.namespace(), Key::Meta), store.path(ask.namespace(), ask.key()));
            let paths: Vec<_> = asks.iter().map(paths).collect();
            let reads = paths.iter().flat_map(|(meta, record)| [meta, record, meta]).map(|path| Request::GetData(path)).collect();
            let replies = store.read(turn, reads)?;
            let (mut answers, mut multis) = (Vec::with_capacity(asks.len()), Vec::new());
            for (n, (ask, (meta, record))) in asks.iter().zip(&paths).enumerate() {
                let [first, of_record, last] = &replies[3 * n..3 * n + 3] else { return Err(no_zookeeper("a reply is missing")) };
                let read = || Ok((found(first, meta)?, found(of_record, record)?, found(last, meta)?));
                answers.push(match (read(), ask) {
                    (Err(failure), _) => Some(Err(failure)),
                    (Ok((first, found, last)), Ask::Load(_, node)) if changed(&first) == changed(&last) => {
                        let slots = found.map(|found| (*node, found.text)).into_iter().collect();
                        Some(Ok(Answer::Loaded(Loaded { meta: first.map(|meta| meta.text), slots, ..Loaded::default() })))
                    }
                    (Ok((old_meta, old, _)), Ask::Swap(_, swap)) if !fits(swap) || !is_expected(&old_meta, &old, swap) => {
                        Some(Ok(Answer::Swapped(Swapped::Differs)))
                    }
                    (Ok((old_meta, old, _)), Ask::Swap(_, swap)) => {
                        multis.push((n, store.steps(meta, record, &old_meta, &old, swap)));
                        None
                    }
                    (Ok(_), Ask::Load(..)) => None,
                });
            }
            let requests: Vec<_> = multis.iter().map(|(_, steps)| Request::Multi(steps)).collect();
            let replies = turn.open.session.ask(&requests, turn.deadline)?;
            for ((n, steps), reply) in multis.iter().zip(replies) {
                answers[*n] = match store.wrote(&reply, steps.len()) {
                    Ok(OK) => Some(Ok(Answer::Swapped(Swapped::Done))),
                    Ok(NO_NODE | BAD_VERSION | NODE_EXISTS) => None,
                    Ok(code) => Some(Err(refused(code, &paths[*n].1))),
                    Err(failure) => Some(Err(failure)),
                };
            }
            for (ask, answer) in asks.iter().zip(&mut answers) {
                if answer.is_none() {
                    *answer = Some(match *ask {
                        Ask::Load(namespace, node) => store.load_alone(turn, namespace, &Which::One(node)).map(Answer::Loaded),
                        Ask::Swap(namespace, swap) => store.swap_alone(turn, namespace, swap).map(Answer::Swapped),
                    });
                }
            }
            Ok(answers)
        });
        match made {
            Ok(answers) => answers.into_iter().flatten().map(|answer| answer.map_err(|failure| self.hosts.error(failure))).collect(),
            Err(error) => vec![Err(error); asks.len()],
        }
    }
}
