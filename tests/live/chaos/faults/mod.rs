//! Faults of the real control plane, each in the middle of a run, with what was seen of them as figures.

mod certificates;
mod clock;
mod definitions;
mod leader;
mod nodes;
mod planes;
mod registration;
mod requests;
mod restored;
mod story;
