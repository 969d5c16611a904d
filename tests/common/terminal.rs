//! A terminal for a command of ours: a pseudoterminal of the kernel.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// The side of a terminal on which somebody reads.
pub struct Terminal {
    side: File,
    name: PathBuf,
}

impl Terminal {
    /// One of so many columns.
    pub fn open(columns: u16) -> Self {
        let side: OwnedFd = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&side).unwrap();
        unlockpt(&side).unwrap();
        let name = ptsname(&side, Vec::new()).unwrap();
        let name = PathBuf::from(std::ffi::OsStr::from_bytes(name.to_bytes()));
        tcsetwinsize(&side, Winsize { ws_row: 40, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        Self { side: side.into(), name }
    }

    /// The side of a command, as a stream of it.
    pub fn stream(&self) -> File {
        OpenOptions::new().read(true).write(true).open(&self.name).unwrap()
    }

    /// What is written next; empty when nobody has the other side any more.
    pub fn read_some(&mut self) -> String {
        let mut bytes = [0; 4096];
        // Linux says that the other side is gone by an error.
        let count = self.side.read(&mut bytes).unwrap_or_default();
        String::from_utf8_lossy(&bytes[..count]).into_owned()
    }

    /// Everything that is written until nobody has the other side any more. A terminal puts a carriage return at the end of
    /// lines.
    pub fn read_all(mut self) -> String {
        let mut all = Vec::new();
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = self.side.read(&mut bytes) {
            all.extend_from_slice(&bytes[..count]);
        }
        String::from_utf8(all).unwrap().replace("\r\n", "\n")
    }
}
