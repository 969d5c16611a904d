//! What anybody may write who has a namespace: names that would be other requests or
//! objects of others, objects that would cost others their share, and values that are nobody's business.

mod floods;
mod foreign;
mod garbage;
mod log;
mod names;

use crate::common::prelude::*;

/// With an audit log, to see what is asked for whom, and a definition of groups that takes every status.
static PLANE: Shared = Shared::new(|| {
    let plane = ControlPlane::start_with_groups("kwok", &["--audit"]);
    let any = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let path = "/spec/versions/0/schema/openAPIV3Schema/properties/status";
    let patch = json!([{ "op": "replace", "path": path, "value": any }]).to_string();
    plane.must(&["patch", "crd", "rolebasedgroups.workloads.x-k8s.io", "--type=json", "-p", &patch], "");
    plane
});

/// A namespace on the control plane of this suite.
async fn stage(namespace: &str) -> Stage {
    Stage::on(PLANE.get(), namespace).await
}
