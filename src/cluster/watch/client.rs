//! The client that all watches use.

use kube::client::ClientBuilder;
use kube::{Client, Config};
use tower::layer::layer_fn;

use crate::cluster::metrics::ApiRequests;
use crate::cluster::watch::cache_age::{CacheAges, Listened};
use crate::cluster::watch::protobuf::{Asking, Protobuf};

/// Returns a client that records cache ages and counts requests. It watches pods and nodes in protobuf. Fails when
/// certificates or keys of the configuration cannot be used.
pub fn client(ages: &CacheAges, requests: &ApiRequests, config: Config) -> kube::Result<Client> {
    let listened = layer_fn(|inner| Listened { inner, ages: ages.clone(), requests: requests.clone() });
    let protobuf = Protobuf::default();
    let asking = layer_fn(|inner| Asking { inner, protobuf: protobuf.clone() });
    Ok(ClientBuilder::try_from(config)?.with_layer(&listened).with_layer(&asking).build())
}
