//! The client that all watches use.

use kube::client::ClientBuilder;
use kube::{Client, Config};

use crate::cluster::requests::ApiRequests;
use crate::cluster::watch::cache_age::{CacheAges, Listening};
use crate::cluster::watch::protobuf::Protobuf;

/// Returns a client that records cache ages and counts requests. It watches pods and nodes in protobuf. Fails when
/// certificates or keys of the configuration cannot be used.
pub fn client(ages: &CacheAges, requests: &ApiRequests, config: Config) -> kube::Result<Client> {
    let listening = Listening { ages: ages.clone(), requests: requests.clone() };
    Ok(ClientBuilder::try_from(config)?.with_layer(&listening).with_layer(&Protobuf::default()).build())
}
