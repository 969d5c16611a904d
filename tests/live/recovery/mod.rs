//! Segments that were complete and lose a replica are made anew as a whole.

mod kinds;
mod limits;
mod losses;
mod restarts;
mod scene;
