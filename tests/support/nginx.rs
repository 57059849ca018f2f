//! nginx as the other side of a test: one process, which leaves nothing behind when it is killed.

use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use super::{Guarded, installed, plain, until};

/// Starts nginx in a folder, with this in its `http` block, and waits until it listens on a port of 127.0.0.1. `None` if it is
/// not installed: the test is skipped then.
pub fn start(folder: &Path, port: u16, http: &str) -> Option<Guarded> {
    let program = installed("nginx")?;
    let config = format!(
        "daemon off; master_process off; pid nginx.pid; error_log stderr; events {{}}\n\
         http {{ client_body_temp_path b; proxy_temp_path p; fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s;\n\
         {http} }}\n"
    );
    std::fs::write(folder.join("nginx.conf"), config).expect("a file");
    let mut command = Command::new(program);
    plain(&mut command);
    command.args(["-e", "stderr", "-p"]).arg(folder).args(["-c", "nginx.conf"]);
    let mut child = Guarded::spawn(&mut command);
    let listens = || TcpStream::connect(("127.0.0.1", port)).is_ok();
    if !until(|| listens() || !child.running()) || !child.running() {
        panic!("{:#?}", child.end());
    }
    Some(child)
}
