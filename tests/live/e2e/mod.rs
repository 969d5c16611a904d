//! The whole program on a real control plane: groups come up segment by segment, whatever breaks meanwhile.

mod absence;
mod api_server;
mod arrival;
mod canaries;
mod events;
mod jobs;
mod kinds_of_pods;
mod lacking;
mod late;
mod metrics;
mod missing_layer;
mod outage;
mod progressions;
mod reasons;
mod recovery;
mod refusals;
mod removal;
mod replicas;
mod reviews;
mod scaling;
mod silence;
mod story;
mod told;
mod wholes;
