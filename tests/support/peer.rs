//! Tiny servers that misbehave as a test requires.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::PATIENCE;

/// A TCP server that calls a function for each connection, in a separate thread.
pub struct Peer {
    address: String,
    stop: Arc<AtomicBool>,
    connections: Arc<AtomicU64>,
}

impl Peer {
    pub fn new(treat: impl Fn(Connection) + Send + Sync + 'static) -> Self {
        Self::at("127.0.0.1:0", treat)
    }

    /// A server at this address.
    pub fn at(address: impl ToSocketAddrs, treat: impl Fn(Connection) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(address).expect("a free port");
        let address = listener.local_addr().expect("its address").to_string();
        let (stop, connections) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (stopped, count, treat) = (Arc::clone(&stop), Arc::clone(&connections), Arc::new(treat));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                count.fetch_add(1, Ordering::Relaxed);
                let treat = Arc::clone(&treat);
                thread::spawn(move || treat(Connection::new(stream)));
            }
        });
        Self { address, stop, connections }
    }

    /// The URL with this scheme.
    pub fn url(&self, scheme: &str) -> String {
        format!("{scheme}://{}", self.address)
    }

    /// The number of connections so far.
    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(&self.address);
    }
}

/// One accepted connection.
pub struct Connection {
    reader: BufReader<TcpStream>,
}

/// A request as it was received.
#[derive(Debug, Clone, Default)]
pub struct Request {
    pub head: String,
    pub body: Vec<u8>,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().skip(1);
        let mut found = lines.filter_map(|line| line.split_once(':'));
        found.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }
}

impl Connection {
    pub fn new(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.set_nodelay(true).expect("no delay");
        Self { reader: BufReader::new(stream) }
    }

    /// The address of the other side.
    pub fn client(&self) -> SocketAddr {
        self.reader.get_ref().peer_addr().expect("its address")
    }

    /// The head of the next request; `None` at the end of the connection.
    pub fn head(&mut self) -> Option<Request> {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if self.reader.read_line(&mut head).ok()? == 0 {
                return None;
            }
        }
        Some(Request { head, body: Vec::new() })
    }

    /// The next request; `None` at the end of the connection.
    pub fn request(&mut self) -> Option<Request> {
        let mut request = self.head()?;
        self.body(&mut request);
        Some(request)
    }

    /// Reads the body that the head announces.
    pub fn body(&mut self, request: &mut Request) {
        let length = request.header("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
        request.body = vec![0; length];
        self.reader.read_exact(&mut request.body).expect("the whole body");
    }

    /// The number of bytes that have arrived but were not read, up to 64 beyond the buffer.
    pub fn unread(&mut self) -> usize {
        let stream = self.reader.get_ref();
        stream.set_nonblocking(true).expect("a socket");
        let waiting = stream.peek(&mut [0; 64]).unwrap_or(0);
        stream.set_nonblocking(false).expect("a socket");
        waiting + self.reader.buffer().len()
    }

    /// The socket, for what is sent at another time.
    pub fn socket(&self) -> TcpStream {
        self.reader.get_ref().try_clone().expect("a socket")
    }

    /// Waits until something has arrived, and leaves it unread, so that closing resets the connection. The other side may have reset it
    /// before.
    pub fn wait_unread(&mut self) {
        let _ = self.reader.get_ref().peek(&mut [0; 1]);
    }

    /// Takes what has arrived, or arrives next.
    pub fn take_some(&mut self) {
        let taken = self.reader.fill_buf().map_or(0, <[u8]>::len);
        self.reader.consume(taken);
    }

    /// The next frame of HTTP/2: its kind, its flags, its stream and its payload. `None` at the end of the connection.
    pub fn http2_frame(&mut self) -> Option<(u8, u8, u32, Vec<u8>)> {
        let mut head = [0; 9];
        self.reader.read_exact(&mut head).ok()?;
        let [high, middle, low, kind, flags, stream @ ..] = head;
        let mut payload = vec![0; u32::from_be_bytes([0, high, middle, low]) as usize];
        self.reader.read_exact(&mut payload).ok()?;
        Some((kind, flags, u32::from_be_bytes(stream), payload))
    }

    /// Whether nothing of what was received is left.
    pub fn is_drained(&self) -> bool {
        self.reader.buffer().is_empty()
    }

    /// Reads the preface of HTTP/2.
    pub fn http2_preface(&mut self) {
        self.reader.read_exact(&mut [0; 24]).expect("the preface");
    }

    /// Carries everything between the connection and another server, and calls `came` when that has sent something.
    pub fn relay(self, server: &str, came: impl Fn()) {
        let here = self.reader.into_inner();
        let there = TcpStream::connect(server).expect("the other server");
        let (mut from, mut to) = (here.try_clone().expect("a socket"), there.try_clone().expect("a socket"));
        thread::spawn(move || {
            let _ = std::io::copy(&mut from, &mut to);
            let _ = to.shutdown(std::net::Shutdown::Both);
        });
        let (mut from, mut to, mut piece) = (there, here, [0; 4096]);
        while let Ok(length @ 1..) = from.read(&mut piece) {
            if to.write_all(&piece[..length]).is_err() {
                return;
            }
            came();
        }
    }

    /// Ends the sending side; receiving goes on.
    pub fn half_close(&mut self) {
        let _ = self.reader.get_ref().shutdown(std::net::Shutdown::Write);
    }

    /// Closes with a reset, whatever was read.
    pub fn reset(self) {
        reset(self.reader.into_inner());
    }

    /// Whether the other side has closed or reset the connection. Reads nothing.
    pub fn abandoned(&mut self) -> bool {
        use std::os::fd::AsRawFd;
        let fd = self.reader.get_ref().as_raw_fd();
        let mut poll = libc::pollfd { fd, events: 0, revents: 0 };
        // SAFETY: one entry, which outlives the call. POLLHUP and POLLERR are always reported.
        unsafe { libc::poll(&raw mut poll, 1, 0) > 0 }
    }

    /// Sends these bytes. Ignores an error, because the other side may have gone.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.reader.get_mut().write_all(bytes.as_ref());
    }

    /// Sends these bytes and the end of the connection together, so that nobody sees the one without the other.
    pub fn send_last(self, bytes: impl AsRef<[u8]>) {
        use std::os::fd::AsRawFd;
        let stream = self.reader.into_inner();
        let (fd, on) = (stream.as_raw_fd(), 1i32);
        // SAFETY: the option is an integer, and the pointer and the size are of one.
        let held = unsafe {
            let (option, size) = ((&raw const on).cast(), size_of_val(&on) as u32);
            libc::setsockopt(fd, libc::IPPROTO_TCP, libc::TCP_CORK, option, size)
        };
        assert_eq!(held, 0, "{}", std::io::Error::last_os_error());
        let _ = (&stream).write_all(bytes.as_ref());
    }

    /// Sends the head and then this piece again and again until the other side has gone, with a pause between two of them.
    pub fn send_on(&mut self, head: &str, piece: &str, pause: Duration) {
        self.send(head);
        while self.reader.get_mut().write_all(piece.as_bytes()).is_ok() {
            let until = Instant::now() + pause;
            while Instant::now() < until && !self.abandoned() {
                thread::sleep(Duration::from_millis(5).min(pause));
            }
        }
    }

    /// Sends `200 ok`.
    pub fn ok(&mut self) {
        self.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    }

    /// Reads until the other side closes, and discards what it sent.
    pub fn wait_end(&mut self) {
        let _ = std::io::copy(&mut self.reader, &mut std::io::sink());
    }

    /// Reads frames with a four-byte length until the half-close. Returns their number and the bytes of their payloads.
    pub fn frames(&mut self) -> (u64, u64) {
        let (mut frames, mut bytes) = (0, 0);
        let mut length = [0; 4];
        while self.reader.read_exact(&mut length).is_ok() {
            let mut payload = vec![0; u32::from_be_bytes(length) as usize];
            self.reader.read_exact(&mut payload).expect("a whole frame");
            frames += 1;
            bytes += payload.len() as u64;
        }
        (frames, bytes)
    }

    /// Answers a stream of frames.
    pub fn count(&mut self, frames: u64, bytes: u64) {
        self.send(count(frames, bytes));
    }
}

/// Closes a connection with a reset, whatever was read.
pub fn reset(stream: TcpStream) {
    use std::os::fd::AsRawFd;
    let at_once = libc::linger { l_onoff: 1, l_linger: 0 };
    let length = size_of_val(&at_once) as libc::socklen_t;
    let fd = stream.as_raw_fd();
    // SAFETY: the value outlives the call, and `length` is its size.
    let set = unsafe {
        libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_LINGER, (&raw const at_once).cast(), length)
    };
    assert_eq!(set, 0, "a socket's option");
}

/// The answer to a stream of frames.
pub fn count(frames: u64, bytes: u64) -> Vec<u8> {
    let mut answer = 16_u32.to_be_bytes().to_vec();
    answer.extend(frames.to_be_bytes());
    answer.extend(bytes.to_be_bytes());
    answer
}
