//! Parses as much of a request's head as the server needs.

/// What the request asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Route {
    #[default]
    Ok,
    Hold,
    Count,
    /// A body of this length.
    Upload(u64),
}

/// A request's head.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Head {
    /// Its length in bytes, including the empty line.
    pub len: usize,
    pub route: Route,
    pub close: bool,
    /// Whether it is HTTP/1.0, whose clients must be told that the connection is kept.
    pub old: bool,
    /// Whether the client waits for `100 Continue`.
    pub expects: bool,
}

impl Head {
    /// The head at the start of `bytes`, if it is complete.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let len = bytes.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
        let text = String::from_utf8_lossy(&bytes[..len]).to_ascii_lowercase();
        let mut lines = text.split("\r\n");
        let line = lines.next().unwrap_or_default();
        let mut words = line.split(' ');
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let old = line.ends_with("http/1.0");
        let mut head = Self { len, route: route(path), close: old, old, expects: false };
        let mut length = 0;
        for (name, value) in lines.filter_map(|line| line.split_once(':')) {
            match (name, value.trim()) {
                ("connection", "close") => head.close = true,
                ("connection", "keep-alive") => head.close = false,
                ("content-length", value) => length = value.parse().unwrap_or(0),
                ("expect", _) => head.expects = true,
                _ => {}
            }
        }
        if method == "post" || method == "put" {
            head.route = Route::Upload(length);
        }
        Some(head)
    }
}

fn route(path: &str) -> Route {
    match path {
        "/hold" => Route::Hold,
        "/count" => Route::Count,
        _ => Route::Ok,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_matters() {
        assert_eq!(Head::parse(b"GET / HTTP/1.1\r\nHost: a\r\n"), None);
        let keep = Head::parse(b"GET / HTTP/1.1\r\nHost: a\r\n\r\nrest").unwrap();
        assert_eq!((keep.len, keep.route, keep.close), (27, Route::Ok, false));
        assert!(Head::parse(b"GET / HTTP/1.1\r\nConnection: Close\r\n\r\n").unwrap().close);
        assert!(Head::parse(b"GET / HTTP/1.0\r\n\r\n").unwrap().close);
        let old = Head::parse(b"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n").unwrap();
        assert!(old.old && !old.close);
        let body =
            Head::parse(b"POST /x HTTP/1.1\r\nContent-Length: 7\r\nExpect: 100-continue\r\n\r\n").unwrap();
        assert_eq!((body.route, body.expects), (Route::Upload(7), true));
    }
}
