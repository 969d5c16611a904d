//! The watches of devices and of claims on them (DRA). They start once a pod to be placed may ask for devices, and end with the
//! watches of nodes.

use kube::Client;
use tokio::sync::Notify;

use crate::api::device::{DEVICE_CLASS, DEVICE_TAINT_RULE, RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE, RESOURCE_SLICE};
use crate::api::{Object, ObjectKind};
use crate::cluster::capacity::SharedCapacity;
use crate::cluster::index::{Change, Readable};
use crate::cluster::watch::readable::{Refused, served, until_readable};
use crate::cluster::watch::{Selection, watch};
use crate::plan::devices::{DeviceSight, Devices, ObjectSort};

/// The kinds, each with the versions that are read.
const KINDS: [(ObjectSort, ObjectKind, &[&str]); 5] = [
    (ObjectSort::Class, DEVICE_CLASS, VERSIONS),
    (ObjectSort::Template, RESOURCE_CLAIM_TEMPLATE, VERSIONS),
    (ObjectSort::Claim, RESOURCE_CLAIM, VERSIONS),
    (ObjectSort::Slice, RESOURCE_SLICE, VERSIONS),
    (ObjectSort::TaintRule, DEVICE_TAINT_RULE, &["v1", "v1beta2", "v1alpha3"]),
];
const VERSIONS: &[&str] = &["v1", "v1beta2", "v1beta1"];

/// Returns the kinds for `CacheAges`, in all versions.
pub(super) fn kinds() -> impl Iterator<Item = ObjectKind> {
    KINDS.into_iter().flat_map(|(_, kind, versions)| versions.iter().map(move |version| ObjectKind { version, ..kind }))
}

/// Fills the devices of the capacity. Never returns.
pub(super) async fn follow(client: &Client, capacity: &SharedCapacity) {
    capacity.devices_asked().await;
    let kinds = until_readable(
        || async {
            let kinds = served_kinds(client).await?;
            if kinds.is_none() {
                see(capacity, &DeviceSight::Known);
            }
            Ok(kinds)
        },
        "wherever their devices are",
        |why| see(capacity, &DeviceSight::Refused(why.into())),
    )
    .await;
    Box::pin(watch_all(client, capacity, &kinds)).await;
}

fn see(capacity: &SharedCapacity, sight: &DeviceSight) {
    capacity.write(|known| {
        known.capacity.change_devices(|devices| std::mem::replace(&mut devices.sight, sight.clone()) != *sight);
    });
}

/// The kinds in the versions that the API server serves, in the order of [`KINDS`].
pub type Served = [Option<ObjectKind>; KINDS.len()];

/// Returns the served kinds; `None` if one that is needed is not served.
///
/// # Errors
///
/// When a kind may not be read.
pub async fn served_kinds(client: &Client) -> Result<Option<Served>, Refused> {
    let mut kinds = [None; KINDS.len()];
    for (place, (sort, kind, versions)) in kinds.iter_mut().zip(KINDS) {
        *place = served(client, kind, versions).await?;
        if place.is_none() && sort != ObjectSort::TaintRule {
            return Ok(None);
        }
    }
    Ok(Some(kinds))
}

async fn watch_all(client: &Client, capacity: &SharedCapacity, served: &Served) {
    let [classes, templates, claims, slices, rules] = *served;
    see(capacity, &DeviceSight::Awaited);
    tracing::info!("devices and claims on them are watched: pods that are to be placed may ask for some");
    let of = &Following { client, capacity, slices: Notify::new() };
    // Slices are read with the attributes that selectors name, and once more when a selector names others.
    let all_slices = async {
        loop {
            of.slices.notified().await;
            tokio::select! {
                () = of.one(ObjectSort::Slice, slices, Devices::apply_slice) => {}
                () = of.slices.notified() => of.slices.notify_one(),
            }
        }
    };
    tokio::join!(
        of.one(ObjectSort::Class, classes, Devices::apply_class),
        of.one(ObjectSort::Template, templates, Devices::apply_template),
        of.one(ObjectSort::Claim, claims, Devices::apply_claim),
        of.one(ObjectSort::TaintRule, rules, Devices::apply_taint_rule),
        all_slices,
    );
}

struct Following<'a> {
    client: &'a Client,
    capacity: &'a SharedCapacity,
    /// Wakes the watch of slices: they are to be listed, for the first time or once more.
    slices: Notify,
}

impl Following<'_> {
    /// Watches one of the kinds. `apply` returns whether a pod may go elsewhere now.
    async fn one<T: Readable>(&self, sort: ObjectSort, kind: Option<ObjectKind>, apply: fn(&mut Devices, &T) -> bool) {
        let take = |devices: &mut Devices, change: &Change<T>| {
            if let Change::Listed(all) = change {
                devices.retain(sort, &all.iter().map(Object::meta).collect::<Vec<_>>());
            }
            let mut frees = change.gone().is_some_and(|one| devices.remove(sort, one.meta()));
            change.there().iter().for_each(|one| frees |= apply(devices, one));
            if let Some(served) = change.is_served() {
                devices.are_listed(sort);
                frees = served;
            }
            if devices.wants_slices() {
                self.slices.notify_one();
            }
            frees
        };
        let report = |change| {
            self.capacity.write(|known| known.capacity.change_devices(|devices| take(devices, &change)));
        };
        let Some(kind) = kind else { return report(Change::NotServed) };
        watch::<T>(self.client, Selection::all(kind), &Notify::new(), report).await;
    }
}
