//! Gives a server one suspected cause of slowness: a library that is preloaded into it, and what it is told.
//!
//! The library (inject.c) stands before the functions of the C library that read from connections. A program that makes its own system
//! calls (Go), or that is linked statically, does not use it. Knows nothing of systems, trials or figures.

use std::path::Path;

/// The library, for ld.so(8). It must be a file to be loaded.
pub const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/inject.so"));

/// What is done to a program that reads from connections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Injection {
    /// A read returns at most so many bytes. None if it returns what there is.
    pub most_bytes: Option<u64>,
    /// So many thousandths of a further system call follow each read.
    pub thousandths_of_calls: u64,
}

impl Injection {
    /// Whether nothing is done. Its arm is what others are compared with, because the library takes a little time by itself.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// The variables that load the library from this file and tell it what to do, as a shell or env(1) takes them.
    pub fn variables(&self, library: &Path) -> [String; 2] {
        let Self { most_bytes, thousandths_of_calls } = *self;
        let what = format!("cap={},calls={thousandths_of_calls}", most_bytes.unwrap_or(0));
        [format!("LD_PRELOAD={}", library.display()), format!("NARROWS_INJECT={what}")]
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Reads from an accepted connection by several functions, and then from a pair of sockets and a file that were not accepted. Prints
    /// how many bytes each read returned.
    const READER: &str = r#"
        #include <netinet/in.h>
        #include <stdio.h>
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
            struct iovec parts[2] = {{b, 50}, {c, 450}};
            struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
            if (write(client, b, 4096) != 4096) return 1;
            printf("%zd ", recv(fd, b, 500, MSG_WAITALL));
            printf("%zd ", recv(fd, b, 500, 0));
            printf("%zd ", read(fd, b, 500));
            printf("%zd ", recvfrom(fd, b, 500, 0, NULL, NULL));
            printf("%zd ", readv(fd, parts, 2));
            printf("%zd ", recvmsg(fd, &message, 0));
            socketpair(AF_UNIX, SOCK_DGRAM, 0, s);
            if (write(s[0], b, 500) != 500) return 1;
            printf("%zd ", recv(s[1], b, 500, 0));
            FILE *file = fopen("/proc/self/maps", "r");
            printf("%zu ", fread(b, 1, 500, file));
            close(fd);
            printf("%zd\n", recv(fd, b, 10, 0));
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
        let variables = injection.variables(&path("inject.so"));
        let output = Command::new("env").args(variables).arg(path("reader")).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn reads_of_accepted_connections_are_capped_and_no_others() {
        let capped = Injection { most_bytes: Some(100), thousandths_of_calls: 1500 };
        assert_eq!(read_with(capped), "500 100 100 100 100 100 500 500 -1\n");
    }

    #[test]
    fn nothing_changes_nothing() {
        assert_eq!(read_with(Injection::default()), "500 500 500 500 500 500 500 500 -1\n");
    }
}
