//! The calls of the scripts.

use super::super::{Ask, Key, Swap};
use super::{LOAD, META, SWAP};
use ::redis::{Cmd, RedisWrite, cmd};

/// The call of a script. It always contains the whole script of 2 KiB, so that it does not depend
/// on the server's cache.
fn eval<'a>(script: &str, namespaces: impl ExactSizeIterator<Item = &'a str>) -> Cmd {
    let mut command = cmd("EVAL");
    command.arg(script).arg(2 * namespaces.len());
    for namespace in namespaces {
        command.write_arg_fmt(format_args!("frazil:{{{namespace}}}:meta"));
        command.write_arg_fmt(format_args!("frazil:{{{namespace}}}:slots"));
    }
    command
}

pub(super) fn load(namespace: &str, wanted: &[&str]) -> Cmd {
    let mut command = eval(LOAD, std::iter::once(namespace));
    command.arg(wanted);
    command
}

/// Returns whether two calls may go in one script.
pub(super) fn share_a_script(one: &Ask<'_>, next: &Ask<'_>) -> bool {
    as_swap(one).zip(as_swap(next)).is_some_and(|((_, one), (_, next))| one.server == next.server)
}

pub(super) fn as_swap<'a>(ask: &Ask<'a>) -> Option<(&'a str, &'a Swap)> {
    if let Ask::Swap(namespace, swap) = *ask { Some((namespace, swap)) } else { None }
}

/// Swaps that name the same server.
pub(super) fn swap(swaps: &[(&str, &Swap)]) -> Cmd {
    let mut command = eval(SWAP, swaps.iter().map(|(namespace, _)| *namespace));
    command.arg(swaps.first().map(|(_, swap)| &swap.server));
    for (_, swap) in swaps {
        write_optional(&mut command, swap.meta.as_deref());
        match swap.key {
            Key::Meta => command.arg(META),
            Key::Slot(node) => command.arg(node),
        };
        write_optional(&mut command, swap.old.as_deref());
        command.arg(&swap.new).arg(swap.earliest_ms).arg(swap.latest_ms);
    }
    command
}

/// Adds a record that may be absent, in the form that `swap.lua` expects.
fn write_optional(command: &mut Cmd, record: Option<&str>) {
    match record {
        Some(record) => command.write_arg_fmt(format_args!("+{record}")),
        None => command.write_arg(b"-"),
    }
}
