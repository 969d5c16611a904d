//! What is told of groups: by `status`, `explain` and `fit`, and by the status page. One picture and one shape of it for all.
//!
//! `picture` a group with what would be decided about it now → `status`, `segments`, `fitted`, `pod_group`, `would` the same as
//! JSON → `page`, `domains` what the status page draws besides

mod domains;
mod fitted;
mod hold;
mod page;
mod picture;
mod pod_group;
mod segments;
mod status;
mod would;

pub use fitted::coordination;
pub use page::{Drawing, Line};
pub use picture::{Findings, Picture, TreePicture};
pub use pod_group::{PodGroupStatus, SubGroup, TreeHold};
pub use segments::Segments;
pub use status::Status;
pub use would::Would;
