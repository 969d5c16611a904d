//! Devices of DRA: ResourceSlices offer them, DeviceClasses and claims select some, an allocation of a claim takes them.
//!
//! Read in the shape of `resource.k8s.io/v1`, and in the older shapes of v1beta1: a request without `exactly`, a device in
//! `basic`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_with::apply;

use super::node::Taint;
use super::quantity::Quantity;
use super::scheduling::{NodeSelector, Toleration};
use super::{Meta, ObjectKind, null_default};

pub const RESOURCE_SLICE: ObjectKind =
    ObjectKind::cluster_scoped("resource.k8s.io", "v1", "ResourceSlice", "resourceslices");
pub const DEVICE_CLASS: ObjectKind =
    ObjectKind::cluster_scoped("resource.k8s.io", "v1", "DeviceClass", "deviceclasses");
pub const RESOURCE_CLAIM: ObjectKind =
    ObjectKind::namespaced("resource.k8s.io", "v1", "ResourceClaim", "resourceclaims");
pub const RESOURCE_CLAIM_TEMPLATE: ObjectKind =
    ObjectKind::namespaced("resource.k8s.io", "v1", "ResourceClaimTemplate", "resourceclaimtemplates");
pub const DEVICE_TAINT_RULE: ObjectKind =
    ObjectKind::cluster_scoped("resource.k8s.io", "v1", "DeviceTaintRule", "devicetaintrules");

/// A part of a pool of devices of one driver.
#[apply(_ => #[serde(deserialize_with = "null_default")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ResourceSlice {
    pub metadata: Meta,
    pub spec: ResourceSliceSpec,
}

#[apply(_ => #[serde(deserialize_with = "null_default")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceSliceSpec {
    #[serde_with(skip_apply)]
    pub driver: String,
    pub pool: ResourcePool,
    #[serde(flatten)]
    #[serde_with(skip_apply)]
    pub nodes: Nodes,
    /// Each device has nodes of its own.
    pub per_device_node_selection: bool,
    pub devices: Vec<SliceDevice>,
    /// Counters that devices of the pool share.
    pub shared_counters: Vec<IgnoredAny>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourcePool {
    pub name: String,
    /// Slices of older generations are obsolete.
    #[serde(deserialize_with = "null_default")]
    pub generation: i64,
    /// Number of slices of this generation.
    #[serde(deserialize_with = "null_default")]
    pub resource_slice_count: i64,
}

/// The nodes that reach a device: one field is set.
#[apply(_ => #[serde(deserialize_with = "null_default")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Nodes {
    pub node_name: String,
    pub node_selector: Option<NodeSelector>,
    pub all_nodes: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct SliceDevice {
    pub name: String,
    #[serde(flatten)]
    pub own: DeviceProperties,
    /// The properties in v1beta1.
    pub basic: Option<DeviceProperties>,
}

#[apply(_ => #[serde(deserialize_with = "null_default")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeviceProperties {
    pub attributes: BTreeMap<String, DeviceAttribute>,
    pub capacity: BTreeMap<String, DeviceCapacity>,
    /// `NoSchedule` and `NoExecute` keep claims away; other effects do not.
    pub taints: Vec<Taint>,
    #[serde(flatten)]
    #[serde_with(skip_apply)]
    pub nodes: Nodes,
    /// Counters of the pool that the device takes while it is allocated.
    pub consumes_counters: Vec<IgnoredAny>,
    /// Several claims may share the device.
    pub allow_multiple_allocations: bool,
    /// Conditions that pods wait for after the device is allocated.
    pub binding_conditions: Vec<IgnoredAny>,
}

/// A value; one field is set. All are `None` for a type that is not known.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct DeviceAttribute {
    pub string: Option<String>,
    pub int: Option<i64>,
    pub bool: Option<bool>,
    /// A semantic version.
    pub version: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct DeviceCapacity {
    #[serde(deserialize_with = "null_default")]
    pub value: Quantity,
}

/// A selector of devices, and the extended resource that asks for one.
#[apply(_ => #[serde(deserialize_with = "null_default")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct DeviceClass {
    pub metadata: Meta,
    pub spec: DeviceClassSpec,
}

#[apply(_ => #[serde(deserialize_with = "null_default")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeviceClassSpec {
    pub selectors: Vec<DeviceSelector>,
    /// A resource of containers that asks for devices of the class.
    pub extended_resource_name: String,
}

/// A condition on a device; without `cel` it is of a type that is not known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default)]
pub struct DeviceSelector {
    pub cel: Option<CelSelector>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default)]
pub struct CelSelector {
    pub expression: String,
}

/// A claim of devices.
#[apply(_ => #[serde(deserialize_with = "null_default")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ResourceClaim {
    pub metadata: Meta,
    pub spec: ResourceClaimSpec,
    pub status: ResourceClaimStatus,
}

/// A template from which each pod gets a claim.
#[apply(_ => #[serde(deserialize_with = "null_default")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ResourceClaimTemplate {
    pub metadata: Meta,
    pub spec: ResourceClaimTemplateSpec,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ResourceClaimTemplateSpec {
    #[serde(deserialize_with = "null_default")]
    pub spec: ResourceClaimSpec,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default)]
pub struct ResourceClaimSpec {
    #[serde(deserialize_with = "null_default")]
    pub devices: DeviceClaim,
}

#[apply(_ => #[serde(deserialize_with = "null_default")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default)]
pub struct DeviceClaim {
    pub requests: Vec<DeviceRequest>,
    pub constraints: Vec<DeviceConstraint>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeviceRequest {
    pub name: String,
    pub exactly: Option<ExactRequest>,
    /// Alternatives, of which the first that can be had is allocated.
    #[serde(deserialize_with = "null_default")]
    pub first_available: Vec<SubRequest>,
    /// The request in v1beta1.
    #[serde(flatten)]
    pub flat: ExactRequest,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default)]
pub struct SubRequest {
    pub name: String,
    #[serde(flatten)]
    pub request: ExactRequest,
}

#[apply(_ => #[serde(deserialize_with = "null_default")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ExactRequest {
    pub device_class_name: String,
    pub selectors: Vec<DeviceSelector>,
    /// `ExactCount` or `All`; empty is `ExactCount`.
    pub allocation_mode: String,
    /// Absent is 1.
    pub count: Option<u64>,
    /// The devices may be in use.
    pub admin_access: bool,
    pub tolerations: Vec<Toleration>,
    /// A part of a device.
    pub capacity: Option<Unread>,
    /// Attributes that the scheduler derives.
    pub derived_attributes: Vec<Unread>,
}

/// A value that is there, and is not read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Unread;

impl<'de> Deserialize<'de> for Unread {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
}

/// A condition on the devices of some requests of a claim together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeviceConstraint {
    /// Names of requests, each as `request` or `request/alternative`; empty is all.
    #[serde(deserialize_with = "null_default")]
    pub requests: Vec<String>,
    /// An attribute of which all devices have one value.
    pub match_attribute: Option<String>,
    /// An attribute of which all devices have different values.
    pub distinct_attribute: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceClaimStatus {
    pub allocation: Option<DeviceAllocation>,
    /// The users of the claim.
    #[serde(deserialize_with = "null_default")]
    pub reserved_for: Vec<ClaimUser>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeviceAllocation {
    #[serde(deserialize_with = "null_default")]
    pub devices: AllocatedDevices,
    /// The nodes that reach the devices; absent is all nodes.
    pub node_selector: Option<NodeSelector>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct AllocatedDevices {
    #[serde(deserialize_with = "null_default")]
    pub results: Vec<AllocatedDevice>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AllocatedDevice {
    pub driver: String,
    pub pool: String,
    pub device: String,
    /// The device stays free for others.
    #[serde(deserialize_with = "null_default")]
    pub admin_access: bool,
}

/// A user of a claim, mostly a pod.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ClaimUser {
    #[serde(deserialize_with = "null_default")]
    pub uid: String,
}

/// A taint of the devices that a rule selects.
#[apply(_ => #[serde(deserialize_with = "null_default")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct DeviceTaintRule {
    pub metadata: Meta,
    pub spec: DeviceTaintRuleSpec,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeviceTaintRuleSpec {
    pub device_selector: Option<DeviceTaintSelector>,
    #[serde(deserialize_with = "null_default")]
    pub taint: Taint,
}

/// Devices by name; an absent field is any.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct DeviceTaintSelector {
    pub driver: Option<String>,
    pub pool: Option<String>,
    pub device: Option<String>,
}

impl SliceDevice {
    /// Returns the properties, whatever version they are written in.
    pub fn properties(&self) -> &DeviceProperties {
        self.basic.as_ref().unwrap_or(&self.own)
    }
}

impl DeviceRequest {
    /// Returns the request for devices of one kind, if there are no alternatives.
    pub fn exact(&self) -> Option<&ExactRequest> {
        let flat = || (self.first_available.is_empty()).then_some(&self.flat);
        self.exactly.as_ref().or_else(flat)
    }
}
