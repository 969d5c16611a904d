//! A pseudoterminal for commands.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// The controlling side of a terminal, for reading the output.
pub struct Terminal {
    side: File,
    name: PathBuf,
}

impl Terminal {
    /// Opens a terminal with this number of columns.
    pub fn open(columns: u16) -> Self {
        let side: OwnedFd = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&side).unwrap();
        unlockpt(&side).unwrap();
        let name = ptsname(&side, Vec::new()).unwrap();
        let name = PathBuf::from(std::ffi::OsStr::from_bytes(name.to_bytes()));
        tcsetwinsize(&side, Winsize { ws_row: 40, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        Self { side: side.into(), name }
    }

    /// Returns the command's side, as a stream.
    pub fn stream(&self) -> File {
        OpenOptions::new().read(true).write(true).open(&self.name).unwrap()
    }

    /// Reads the next output; empty when the command's side is closed.
    pub fn read_some(&mut self) -> String {
        let mut bytes = [0; 4096];
        // Linux reports the closed side as an error.
        let count = self.side.read(&mut bytes).unwrap_or_default();
        String::from_utf8_lossy(&bytes[..count]).into_owned()
    }

    /// Reads all output until the command's side is closed. The terminal ends lines with a carriage return.
    pub fn read_all(mut self) -> String {
        let mut all = Vec::new();
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = self.side.read(&mut bytes) {
            all.extend_from_slice(&bytes[..count]);
        }
        String::from_utf8(all).unwrap().replace("\r\n", "\n")
    }
}
