//! Reports on groups, shared by `status`, `explain` and `fit` and by the status page.
//!
//! `picture` a group with its current decision → `story` what is so of it, in sentences, with `advice` and `awaited` on what is
//! held → `status`, `segments`, `fitted`, `pod_group`, `would` the same as JSON → `page`, `domains` the additions of the status
//! page

mod advice;
mod awaited;
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
mod story;
mod would;

pub use advice::{Explanation, of_held};
pub use awaited::Awaited;
pub use engines::OutdatedEngine;
pub use fitted::coordination;
pub use hold::Hold;
pub use in_part::InPart;
pub use page::{Drawing, Line};
pub use picture::{Findings, Picture, TreePicture};
pub use pod_group::{PodGroupStatus, SubGroup, TreeHold};
pub use segments::Segments;
pub use status::Status;
pub use story::Story;
pub use would::Would;
