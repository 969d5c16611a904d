//! Claims as requests for devices, with compiled selectors.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::selector::Selector;
use crate::api::device::{DeviceConstraint, DeviceSelector, ExactRequest, ResourceClaimSpec};
use crate::api::node::Taint;
use crate::api::scheduling::{PodResourceClaim, SchedulingPod, Toleration};

/// The maximum number of devices of a claim.
pub const MOST_DEVICES: usize = 32;

/// The source of a claim of a pod, each as `namespace/name`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClaimRef {
    /// A claim of this pod alone is made from the template.
    Template(Arc<str>),
    /// A claim that several pods may share.
    Named(Arc<str>),
}

/// A claim: its requests, each with its alternatives, and its constraints.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ClaimAsk {
    pub requests: Vec<RequestAsk>,
    pub constraints: Vec<SameValue>,
    /// A part of the claim that is not modelled.
    pub not_modelled: Option<Arc<str>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RequestAsk {
    /// One alternative, or those of `firstAvailable`.
    pub alternatives: Vec<Alternative>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Alternative {
    pub class: Arc<str>,
    pub selectors: Vec<Arc<Selector>>,
    /// The number of devices; `None` for all.
    pub count: Option<u64>,
    pub tolerations: Vec<Toleration>,
}

/// A constraint that devices have one value of an attribute.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SameValue {
    /// `domain/name`.
    pub attribute: Arc<str>,
    /// By request and alternative: whether the constraint applies.
    pub applies: Vec<Vec<bool>>,
}

impl ClaimRef {
    /// Returns the `namespace/name` of the template or the claim.
    pub fn key(&self) -> &Arc<str> {
        let (Self::Template(key) | Self::Named(key)) = self;
        key
    }

    /// Returns the object with its kind, as messages name it.
    pub fn describe(&self) -> String {
        let kind = if matches!(self, Self::Template(_)) { "ResourceClaimTemplate" } else { "ResourceClaim" };
        format!("{kind} {:?}", self.key())
    }
}

/// Returns the claims of a pod, in its order.
pub fn claim_refs(pod: &SchedulingPod) -> Vec<ClaimRef> {
    let namespace = pod.metadata.namespace();
    let key = |name: &str| Arc::from(format!("{namespace}/{name}"));
    let of = |claim: &PodResourceClaim| match (&claim.resource_claim_name, &claim.resource_claim_template_name) {
        (Some(name), _) => Some(ClaimRef::Named(key(name))),
        (None, Some(template)) => Some(ClaimRef::Template(key(template))),
        (None, None) => None,
    };
    pod.spec.resource_claims.iter().filter_map(of).collect()
}

impl ClaimAsk {
    /// Returns the claim with selectors compiled by `compile`, which returns why one cannot be evaluated.
    pub fn of(spec: &ResourceClaimSpec, compile: &mut impl FnMut(&str) -> Result<Arc<Selector>, Arc<str>>) -> Self {
        match Self::read(spec, compile) {
            Ok(ask) => ask,
            Err(why) => Self { not_modelled: Some(why), ..Self::default() },
        }
    }

    fn read(
        spec: &ResourceClaimSpec,
        compile: &mut impl FnMut(&str) -> Result<Arc<Selector>, Arc<str>>,
    ) -> Result<Self, Arc<str>> {
        let (mut names, mut requests) = (Vec::new(), Vec::new());
        for request in &spec.devices.requests {
            // An alternative goes by two names: that of the request, and its own behind it.
            let both = |sub: &str| [request.name.clone(), format!("{}/{sub}", request.name)];
            let (of_request, all): (Vec<_>, Vec<_>) = match request.exact() {
                Some(exact) => (vec![both("")], vec![exact]),
                None => request.first_available.iter().map(|one| (both(&one.name), &one.request)).unzip(),
            };
            let alternatives = all.into_iter().map(|one| alternative(one, compile));
            requests.push(RequestAsk { alternatives: alternatives.collect::<Result<_, _>>()? });
            names.push(of_request);
        }
        let constraint = |constraint: &DeviceConstraint| {
            let Some(attribute) = &constraint.match_attribute else { return Err(Arc::from("distinctAttribute")) };
            let applies = |names: &[String; 2]| {
                constraint.requests.is_empty() || constraint.requests.iter().any(|name| names.contains(name))
            };
            let applies = names.iter().map(|request: &Vec<_>| request.iter().map(applies).collect()).collect();
            Ok(SameValue { attribute: attribute.as_str().into(), applies })
        };
        let constraints = spec.devices.constraints.iter().map(constraint).collect::<Result<_, _>>()?;
        Ok(Self { requests, constraints, not_modelled: None })
    }

    /// Returns the claim that kube-scheduler makes for an extended resource of a class.
    pub fn of_class(class: &Arc<str>, count: u64) -> Self {
        let alternative = Alternative { class: class.clone(), count: Some(count), ..Alternative::default() };
        Self { requests: vec![RequestAsk { alternatives: vec![alternative] }], ..Self::default() }
    }

    /// Iterates over the alternatives of all requests.
    pub fn alternatives(&self) -> impl Iterator<Item = &Alternative> {
        self.requests.iter().flat_map(|request| &request.alternatives)
    }

    /// Returns the names of attributes that may be looked at; `None` for any.
    pub fn names(&self) -> Option<Vec<Arc<str>>> {
        let mut names: Vec<_> =
            self.constraints.iter().map(|constraint| last_part(&constraint.attribute).into()).collect();
        for selector in self.alternatives().flat_map(|one| &one.selectors) {
            names.extend(selector.names()?.iter().cloned());
        }
        Some(names)
    }
}

/// Returns the name of an attribute without its domain.
pub fn last_part(attribute: &str) -> &str {
    attribute.rsplit_once('/').map_or(attribute, |(_, name)| name)
}

/// Compiles the selectors of a class or a request, each by `compile`.
pub(super) fn compiled(
    selectors: &[DeviceSelector],
    compile: &mut impl FnMut(&str) -> Result<Arc<Selector>, Arc<str>>,
) -> Result<Vec<Arc<Selector>>, Arc<str>> {
    let text = |selector: &DeviceSelector| selector.cel.as_ref().map(|cel| cel.expression.clone());
    let each = selectors.iter().map(|one| compile(&text(one).ok_or("a selector of an unknown type")?));
    each.collect()
}

fn alternative(
    request: &ExactRequest,
    compile: &mut impl FnMut(&str) -> Result<Arc<Selector>, Arc<str>>,
) -> Result<Alternative, Arc<str>> {
    let not_modelled = [
        (request.admin_access, "admin access"),
        (request.capacity.is_some(), "consumable capacity"),
        (!request.derived_attributes.is_empty(), "derived attributes"),
        (request.device_class_name.is_empty(), "a request without a class"),
    ];
    if let Some((_, what)) = not_modelled.into_iter().find(|(is, _)| *is) {
        return Err(what.into());
    }
    let count = match request.allocation_mode.as_str() {
        "" | "ExactCount" => Some(request.count.unwrap_or(1)),
        "All" => None,
        other => return Err(format!("allocation mode {other}").into()),
    };
    Ok(Alternative {
        class: request.device_class_name.as_str().into(),
        selectors: compiled(&request.selectors, compile)?,
        count,
        tolerations: request.tolerations.clone(),
    })
}

/// Reports whether the toleration tolerates the taint (`v1.Toleration.ToleratesTaint`).
pub fn bears(toleration: &Toleration, taint: &Taint) -> bool {
    let key = toleration.key.is_empty() || toleration.key == taint.key;
    let effect = toleration.effect.is_empty() || toleration.effect == taint.effect;
    let value = match toleration.operator.as_str() {
        "" | "Equal" => toleration.value == taint.value,
        "Exists" => true,
        _ => false,
    };
    key && effect && value
}

/// Reports whether a taint keeps pods or claims away that do not tolerate it.
pub fn keeps_away(taint: &Taint) -> bool {
    matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute")
}

/// Compiled selectors by their text.
#[derive(Clone, Debug, Default)]
pub struct Compiled(BTreeMap<Arc<str>, Result<Arc<Selector>, Arc<str>>>);

impl Compiled {
    /// Compiles a selector once.
    ///
    /// # Errors
    ///
    /// Fails with what the evaluator does not know.
    pub fn of(&mut self, text: &str) -> Result<Arc<Selector>, Arc<str>> {
        if let Some(known) = self.0.get(text) {
            return known.clone();
        }
        let new =
            Selector::compile(text).map(Arc::new).map_err(|error| Arc::from(format!("selector {text:?} ({error})")));
        self.0.insert(text.into(), new.clone());
        new
    }

    /// Forgets selectors that nobody holds.
    pub fn prune(&mut self) {
        self.0.retain(|_, selector| selector.as_ref().is_ok_and(|selector| Arc::strong_count(selector) > 1));
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }
}
