//! Reports on groups, shared by `status`, `explain` and `fit` and by the status page.
//!
//! `picture` a group with its current decision → `status`, `segments`, `fitted`, `pod_group`, `would` the same as JSON →
//! `page`, `domains` the additions of the status page

mod domains;
mod engines;
mod fitted;
mod hold;
mod in_part;
mod page;
mod picture;
mod pod_group;
mod segments;
mod status;
mod would;

pub use engines::OutdatedEngine;
pub use fitted::coordination;
pub use in_part::InPart;
pub use page::{Drawing, Line};
pub use picture::{Findings, Picture, TreePicture};
pub use pod_group::{PodGroupStatus, SubGroup, TreeHold};
pub use segments::Segments;
pub use status::Status;
pub use would::Would;
