//! Segments that were complete and lose a replica are made anew as a whole.

mod brakes;
mod gangs;
mod kinds;
mod limits;
mod losses;
mod racks;
mod restarts;
mod scene;
