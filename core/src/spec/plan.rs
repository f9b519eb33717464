//! The plan of a spec: its layout, policies, clock, and the source of the node number.

use super::{DEFAULT_NAMESPACE, KEYS, Spec, node_number_remedies};
use crate::generator::check_observed;
use crate::generator::policy::{Policies, Reaction, Start};
use crate::id::Id;
use crate::id::layout::{Field, Layout, check_value};
use crate::id::preset::{self, STANDARD};
use crate::id::text::shown_number;
use crate::lease::{Contract, Times, nodes_command};
use frazil_base::error::{Error, ErrorKind, Result, is_number, shown, spec_error};
use frazil_base::nearest::did_you_mean;
use frazil_base::os::host;
use frazil_base::time;
use frazil_base::time::system_ms;
use frazil_store::Address;
use frazil_store::check_namespace;
use std::sync::Arc;

/// The source of a generator's node number.
pub enum NodeSource {
    /// A number given in the spec.
    Fixed(u64),
    /// A number leased from a store.
    Leased(Arc<Contract>),
}

/// A parsed and checked spec: everything that `open` needs.
pub(crate) struct Plan {
    pub(crate) layout: Layout,
    pub(crate) policies: Policies,
    pub(crate) source: NodeSource,
    pub(crate) manual_clock: bool,
    pub(crate) after: Option<Id>,
    pub(crate) detached: bool,
    pub(crate) shared: bool,
    pub(crate) namespace: String,
}

impl Plan {
    /// Returns whether only one process of this machine may issue from the number. The separate
    /// state of a `detached` generator is not guarded.
    pub(crate) fn is_guarded(&self) -> bool {
        matches!(self.source, NodeSource::Fixed(_)) && !self.shared && !self.detached
    }

    /// Refuses an `after` that is further ahead of the clock than the policies allow. Returns its
    /// tick. A manual clock is not checked, because the program sets it.
    pub(crate) fn check_after(&self) -> Result<Option<(Id, u64)>> {
        let Some(after) = self.after else {
            return Ok(None);
        };
        let now = if self.manual_clock { None } else { Some(self.layout.tick_of(system_ms())?) };
        let drift = match &self.source {
            NodeSource::Fixed(_) => self.policies.most_ahead(&self.layout),
            NodeSource::Leased(contract) => contract.drift(),
        };
        let tick = check_observed("after", after, &self.layout, self.policies, drift, now)?;
        Ok(Some((after, tick)))
    }
}

impl Spec {
    /// The layout of the generator that the spec describes. Opens nothing, and calls no store.
    ///
    /// # Errors
    /// Those of [`Snowflake::open`](crate::Snowflake::open) that concern the spec alone.
    ///
    /// # Example
    /// ```
    /// let layout = frazil::Spec::parse("twitter store=local")?.layout()?;
    /// assert_eq!(layout.nodes(), 1024);
    /// # Ok::<(), frazil::Error>(())
    /// ```
    pub fn layout(&self) -> Result<Layout> {
        Ok(self.plan()?.layout)
    }

    /// Parses and checks every key.
    pub(crate) fn plan(&self) -> Result<Plan> {
        let (layout, preset) = self.layout_and_preset()?;
        self.check_keys(&layout)?;
        let store = self.value("store")?.map(|text| Address::parse(&text)).transpose()?;
        let policies = self.policies(&layout, preset, store.is_some())?;
        let manual_clock = match self.value("clock")?.as_deref() {
            None | Some("system") => false,
            Some("manual") => true,
            Some(other) => return Err(spec_error(format!("clock={} is none of: system, manual", shown(other)))),
        };
        let (detached, shared) = (self.flag("detached")?, self.flag("shared")?);
        let namespace = self.value("namespace")?.unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned());
        check_namespace(&namespace)?;
        let after = match self.value("after")? {
            None => None,
            Some(text) => {
                let id: Id = text.parse().map_err(|error| Error::new(ErrorKind::IdInvalid, format!("after: {error}")))?;
                layout.decode(id).map_err(|error| Error::new(error.kind(), format!("after: {error}")))?;
                Some(id)
            }
        };
        let fixed = store.is_none();
        let source = match store {
            Some(_) if self.value("shared")?.is_some() => {
                return Err(spec_error(
                    "shared= has no meaning with store=, whose numbers are never shared: leave it out; to share one, give it without a store".to_owned(),
                ));
            }
            Some(address) => self.contract(&layout, address, namespace.clone(), policies, manual_clock, detached)?,
            None => self.fixed(&layout)?,
        };
        if fixed && !manual_clock && layout.tick_ms() > 1000 {
            let tick = time::show_duration(layout.tick_ms());
            return Err(spec_error(format!(
                "a node number without a store would wait out a tick of {tick} at each start: ticks over 1s need a store"
            )));
        }
        Ok(Plan { layout, policies, source, manual_clock, after, detached, shared, namespace })
    }

    /// The layout, and the preset from which the policies come.
    pub(crate) fn layout_and_preset(&self) -> Result<(Layout, &'static preset::Preset)> {
        let text = self.value("layout")?;
        let preset = preset::find(self.preset.as_deref().unwrap_or(STANDARD))?;
        let layout = match &text {
            Some(text) if text.contains(':') => Layout::parse(text)?,
            Some(name) => {
                return Err(spec_error(format!("layout={} has no fields: a preset is named by the first word alone", shown(name))));
            }
            None => Layout::parse(preset.name)?,
        };
        Ok(match self.value("epoch")? {
            Some(epoch) => (layout.with_epoch(time::parse_epoch(&epoch)?), preset),
            None => (layout, preset),
        })
    }

    /// Parses a preset's name, the fields of a layout, or a whole spec line. Returns the layout and
    /// the policies.
    pub(crate) fn of_layout(text: &str) -> Result<(Layout, Policies)> {
        let text = text.trim();
        // A layout of another system may begin with another field, and then the layout's error says
        // so.
        let is_line = !text.contains('=') && text.split_whitespace().any(|word| word.starts_with("time:"));
        let spec = if is_line { Spec::parse(&format!("layout='{text}'"))? } else { Spec::parse(text)? };
        let (layout, preset) = spec.layout_and_preset()?;
        spec.check_keys(&layout)?;
        let policies = spec.policies(&layout, preset, spec.value("store")?.is_some())?;
        Ok((layout, policies))
    }

    fn flag(&self, key: &str) -> Result<bool> {
        match self.value(key)?.as_deref() {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(other) => Err(spec_error(format!("{key}={} is none of: true, false", shown(other)))),
        }
    }

    fn check_keys(&self, layout: &Layout) -> Result<()> {
        let fields: Vec<_> = layout.node_fields().iter().map(|field| field.name()).collect();
        for (key, _) in &self.pairs {
            if !KEYS.contains(&key.as_str()) && !fields.contains(&key.as_str()) {
                let near = match fields[..] {
                    // A field of another preset is not a misspelled key: `shard` does not mean
                    // `shared`.
                    [node] if preset::names_node(key) && self.pairs.iter().all(|(given, _)| given != node) => {
                        format!(" (did you mean {node}?)")
                    }
                    _ if preset::names_node(key) => did_you_mean(key, fields.iter().copied()),
                    _ => did_you_mean(key, fields.iter().chain(KEYS).copied()),
                };
                let why = format!(
                    "there is no key {}{near}; this layout's node fields: {}; keys: {}",
                    shown(key),
                    fields.join(", "),
                    KEYS.join(", ")
                );
                return Err(Error::new(ErrorKind::UnknownKey, why));
            }
        }
        Ok(())
    }

    fn policies(&self, layout: &Layout, preset: &preset::Preset, store: bool) -> Result<Policies> {
        // A policy that the spec lacks comes from the preset, or else from `standard`.
        let inherited = |key: &str| {
            let standard = preset::find(STANDARD).expect("standard is a preset").policies;
            let (_, value) = preset.policies.iter().chain(standard).find(|(name, _)| *name == key).expect("standard names every policy");
            (*value).to_owned()
        };
        let get = |key: &str| Ok::<_, Error>(self.value(key)?.map_or_else(|| (inherited(key), false), |value| (value, true)));
        let reaction = |key: &str| {
            let (text, given) = get(key)?;
            match Reaction::parse(key, &text)? {
                Reaction::Ahead(None) if !store && given => {
                    Err(spec_error(format!("{key}=ahead without a limit needs a store, which remembers how far: say {key}=ahead:1s")))
                }
                // Without a store, no record limits how far stamps went ahead, so a preset's
                // `ahead` is reduced to that of `standard`.
                Reaction::Ahead(None) if !store => Ok(Reaction::Ahead(Some(1000))),
                reaction => Ok(reaction),
            }
        };
        let (start, given) = get("start")?;
        Ok(Policies {
            rollback: reaction("rollback")?,
            exhausted: reaction("exhausted")?,
            start: Start::parse(&start)?.fit(layout, given)?,
            lag_ms: time::parse_duration("lag", &get("lag")?.0)?,
        })
    }

    /// The value of each node field that is given.
    fn given(&self, layout: &Layout) -> Result<Vec<Option<u64>>> {
        let value = |field: &Field| {
            let text = self.value(field.name())?;
            text.map(|text| check_value(field, node_value(field, &text)?)).transpose()
        };
        layout.node_fields().iter().map(value).collect()
    }

    fn contract(
        &self,
        layout: &Layout,
        address: Address,
        namespace: String,
        policies: Policies,
        manual_clock: bool,
        detached: bool,
    ) -> Result<NodeSource> {
        let disposable = match self.value("lease")?.as_deref() {
            None | Some("shared-slots") => false,
            Some("disposable") => true,
            Some(other) => return Err(spec_error(format!("lease={} is none of: shared-slots, disposable", shown(other)))),
        };
        let duration = |key: &str| self.value(key)?.map(|text| time::parse_duration(key, &text)).transpose();
        let times = Times { window_ms: duration("window")?, renew_ms: duration("renew")? };
        if disposable && (times.window_ms.is_some() || times.renew_ms.is_some()) {
            return Err(spec_error("window= and renew= have no meaning for lease=disposable, whose numbers have no end".to_owned()));
        }
        let fields = self.given(layout)?.into_iter().zip(layout.node_fields()).map(|(value, field)| (value, field.bits())).collect();
        let mut contract = Contract::new(address, namespace, layout, fields, disposable, times, policies, manual_clock)?;
        // A variable is shown by its name, because its content may be a secret.
        let terms = Arc::make_mut(&mut contract.terms);
        terms.nodes = nodes_command(&self.shown("store"), &contract.namespace);
        terms.line = self.without(&["store", "namespace"]).word(cfg!(windows));
        Ok(NodeSource::Leased(Arc::new(Contract { detached, spec: self.to_string().into(), ..contract })))
    }

    fn fixed(&self, layout: &Layout) -> Result<NodeSource> {
        let given = self.given(layout)?;
        for key in ["lease", "window", "renew"] {
            if self.value(key)?.is_some() {
                return Err(spec_error(format!("{key}= has no meaning without store=")));
            }
        }
        let missing: Vec<_> =
            layout.node_fields().iter().zip(&given).filter(|(_, value)| value.is_none()).map(|(field, _)| field).collect();
        if !missing.is_empty() {
            let names: Vec<_> = missing.iter().map(|field| field.name()).collect();
            let by_hand: Vec<_> = missing.iter().map(|field| format!("{}={}", field.name(), field.max().min(7))).collect();
            let why = format!("the node number is missing ({}): {}", names.join(", "), node_number_remedies(&by_hand.join(" ")));
            return Err(Error::new(ErrorKind::NodeMissing, why));
        }
        Ok(NodeSource::Fixed(layout.node_of(given.into_iter().flatten())))
    }
}

/// A node field's value: a number, or `hostname`, `hostname+N`.
fn node_value(field: &Field, text: &str) -> Result<u64> {
    let name = field.name();
    if let Some(rest) = text.strip_prefix("hostname") {
        return hostname_ordinal(name, &host::name(), rest);
    }
    if !is_number(text) {
        return Err(spec_error(format!("{name}={} is not a node number: 0, 1, 2, ..., hostname or hostname+N", shown(text))));
    }
    let (bits, max) = (field.bits(), field.max());
    let number = if text.bytes().all(|b| b.is_ascii_digit()) { text.parse().ok() } else { None };
    let outside = || format!("{name}={} is out of range: {bits} bits allow the integers 0 to {max}", shown_number(text));
    number.ok_or_else(|| Error::new(ErrorKind::OutOfRange, outside()))
}

/// The ordinal at the end of a StatefulSet pod's name: `shop-3` is 3.
fn hostname_ordinal(name: &str, host: &str, plus: &str) -> Result<u64> {
    // `parse` would accept a sign.
    let ordinal = |digits: &str| digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse::<u64>().ok()).flatten();
    let offset = match plus {
        "" => Some(0),
        _ => plus.strip_prefix('+').and_then(ordinal),
    };
    let offset = offset.ok_or_else(|| spec_error(format!("{name}={} is not hostname or hostname+N", shown(&format!("hostname{plus}")))))?;
    let ordinal = host.rsplit_once('-').and_then(|(_, n)| ordinal(n));
    let ordinal = ordinal.ok_or_else(|| spec_error(format!("{name}=hostname: the host name {} does not end with -N", shown(host))))?;
    ordinal.checked_add(offset).ok_or_else(|| Error::new(ErrorKind::OutOfRange, format!("{name}=hostname{plus} is out of range")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostname_gives_the_ordinal_of_a_pod() {
        assert_eq!(hostname_ordinal("worker", "shop-3", ""), Ok(3));
        assert_eq!(hostname_ordinal("worker", "shop-eu-12", "+100"), Ok(112));
        for (host, plus) in
            [("shop", ""), ("shop-x", ""), ("shop-", ""), ("shop-+3", ""), ("shop-3", "-1"), ("shop-3", "+x"), ("shop-3", "++5")]
        {
            assert_eq!(hostname_ordinal("worker", host, plus).map_err(|error| error.kind()), Err(ErrorKind::Spec));
        }
    }
}
