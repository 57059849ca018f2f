//! Where a URL leads.

use std::fmt;

/// A scheme, a host and a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    scheme: String,
    host: String,
    port: u16,
}

impl Origin {
    /// An origin; upper and lower case make no difference.
    pub fn new(scheme: &str, host: &str, port: u16) -> Self {
        Self { scheme: scheme.to_ascii_lowercase(), host: host.to_ascii_lowercase(), port }
    }

    /// Splits a URL into its origin, and path and query. The path is empty or begins with `/`.
    pub(crate) fn split(url: &str) -> Result<(Self, &str), String> {
        let (scheme, rest) = url
            .split_once("://")
            .filter(|(scheme, _)| ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)))
            .ok_or_else(|| format!("{url:?} is no URL: it must begin with http:// or https://"))?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        if let Some((_, host)) = authority.rsplit_once('@') {
            // A password is not shown.
            return Err(format!(
                "a URL names a user or a password before {host:?}: leave them out, and use --auth"
            ));
        }
        let usual = if scheme.eq_ignore_ascii_case("https") { 443 } else { 80 };
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().map_err(|_| format!("{port:?} is no port in {url:?}"))?)
            }
            _ => (authority, usual),
        };
        if host.is_empty() {
            return Err(format!("{url:?} needs a host"));
        }
        Ok((Self::new(scheme, host, port), path))
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}:{}", self.scheme, self.host, self.port)
    }
}

/// Path and query as they are sent: at least `/`, and without a fragment.
pub(crate) fn as_sent(path: &str) -> String {
    let path = path.split('#').next().unwrap_or_default();
    if path.starts_with('/') { path.to_owned() } else { format!("/{path}") }
}
