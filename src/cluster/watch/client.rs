//! The client that all watches use.

use kube::client::ClientBuilder;
use kube::{Client, Config};

use crate::cluster::requests::ApiRequests;
use crate::cluster::watch::cache_age::CacheAges;
use crate::cluster::watch::protobuf::Protobuf;

/// A client whose watches are listened to, and whose requests are counted. Pods and nodes are watched in protobuf.
///
/// # Errors
///
/// When certificates or keys of the configuration cannot be used.
pub fn client(ages: &CacheAges, requests: &ApiRequests, config: Config) -> Result<Client, kube::Error> {
    let client = ClientBuilder::try_from(config)?.with_layer(requests).with_layer(&Protobuf::default());
    Ok(client.with_layer(ages).build())
}
