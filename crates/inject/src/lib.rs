//! Gives a server one suspected cause of slowness: a library that is preloaded into it, and what it is told.
//!
//! The library (inject.c) stands before the functions of the C library that read from connections. A program that makes its own system
//! calls (Go), or that is linked statically, does not use it. Knows nothing of systems, trials or figures.

use std::fmt;

/// The library, for ld.so(8). It must be a file to be loaded.
pub const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/inject.so"));

/// What is done to a program that reads from connections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Injection {
    /// A read returns at most so many bytes. None if it returns what there is.
    pub most_bytes: Option<u64>,
    /// So many thousandths of a further system call follow each read.
    pub thousandths_of_calls: u64,
    /// So many thousandths of a yield of the core (sched_yield(2)) follow each read.
    pub thousandths_of_yields: u64,
    /// The receive buffer of each connection in bytes, as getsockopt(2) says of `SO_RCVBUF`. None if it stays as it is.
    pub receive_buffer: Option<u64>,
}

/// The variable that tells the library what to do.
pub const VARIABLE: &str = "NARROWS_INJECT";

impl Injection {
    /// Whether nothing is injected. The library takes a little time even then. So other arms are compared with one that has it, too.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// What the library is told as the value of [`VARIABLE`].
impl fmt::Display for Injection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let given = |name, number: u64| (number > 0).then(|| format!("{name}={number}"));
        let options = [
            given("cap", self.most_bytes.unwrap_or(0)),
            given("calls", self.thousandths_of_calls),
            given("yields", self.thousandths_of_yields),
            given("buffer", self.receive_buffer.unwrap_or(0)),
        ];
        let options: Vec<String> = options.into_iter().flatten().collect();
        if options.is_empty() { f.write_str("nothing") } else { f.write_str(&options.join(",")) }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Reads from an accepted connection by several functions, at last with EPOLLET. Then it reads from a pair of sockets and from a file,
    /// which were not accepted. Prints how many bytes each read returned, and the receive buffer of the connection.
    const READER: &str = r#"
        #include <netinet/in.h>
        #include <stdio.h>
        #include <sys/epoll.h>
        #include <sys/socket.h>
        #include <sys/uio.h>
        #include <unistd.h>
        int main(void) {
            static char b[4096], c[4096];
            int s[2], listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
            struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
            socklen_t size = sizeof at;
            bind(listener, (struct sockaddr *)&at, size);
            listen(listener, 1);
            getsockname(listener, (struct sockaddr *)&at, &size);
            connect(client, (struct sockaddr *)&at, size);
            int fd = accept(listener, NULL, NULL);
            int buffer = 0;
            socklen_t length = sizeof buffer;
            getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, &length);
            struct iovec parts[2] = {{b, 50}, {c, 450}};
            struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
            if (write(client, b, 4096) != 4096) return 1;
            printf("%zd ", recv(fd, b, 500, MSG_WAITALL));
            printf("%zd ", recv(fd, b, 500, 0));
            printf("%zd ", read(fd, b, 500));
            printf("%zd ", recvfrom(fd, b, 500, 0, NULL, NULL));
            printf("%zd ", readv(fd, parts, 2));
            printf("%zd ", recvmsg(fd, &message, 0));
            struct epoll_event edge = {.events = EPOLLIN | EPOLLET};
            if (epoll_ctl(epoll_create1(0), EPOLL_CTL_ADD, fd, &edge)) return 1;
            printf("%zd ", read(fd, b, 500));
            socketpair(AF_UNIX, SOCK_DGRAM, 0, s);
            if (write(s[0], b, 500) != 500) return 1;
            printf("%zd ", recv(s[1], b, 500, 0));
            FILE *file = fopen("/proc/self/maps", "r");
            printf("%zu ", fread(b, 1, 500, file));
            close(fd);
            printf("%zd %d\n", recv(fd, b, 10, 0), buffer);
            return 0;
        }"#;

    fn read_with(injection: Injection) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("reader.c"), READER).unwrap();
        std::fs::write(path("inject.so"), LIBRARY).unwrap();
        let built = Command::new("cc")
            .args(["-O2", "-o"])
            .arg(path("reader"))
            .arg(path("reader.c"))
            .status()
            .unwrap();
        assert!(built.success());
        let output = Command::new(path("reader"))
            .env("LD_PRELOAD", path("inject.so"))
            .env(VARIABLE, injection.to_string())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn reads_of_accepted_connections_are_capped_and_no_others() {
        let capped = Injection {
            most_bytes: Some(100),
            thousandths_of_calls: 1500,
            thousandths_of_yields: 500,
            ..Injection::default()
        };
        let read = read_with(capped);
        assert!(read.starts_with("500 100 100 100 100 100 500 500 500 -1 "), "{read}");
    }

    #[test]
    fn accepted_connections_have_the_receive_buffer_that_is_asked_for() {
        let small = Injection { receive_buffer: Some(20_000), ..Injection::default() };
        assert_eq!(read_with(small), "500 500 500 500 500 500 500 500 500 -1 20000\n");
    }

    #[test]
    fn nothing_changes_nothing() {
        let read = read_with(Injection::default());
        assert!(read.starts_with("500 500 500 500 500 500 500 500 500 -1 "), "{read}");
        assert!(!read.ends_with(" 20000\n"), "{read}");
    }
}
