//! The way from a node to the engine, which can be cut, slow, or lead to another server.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

#[derive(Clone, Debug)]
pub struct Link(Arc<State>);

#[derive(Debug)]
struct State {
    address: SocketAddr,
    target: AtomicU16,
    /// Nothing gets through, and nobody is told.
    is_cut: AtomicBool,
    delay_ms: AtomicU64,
    /// Lost on its way to the engine, with its connection.
    lost: Mutex<Option<&'static str>>,
    open: Mutex<Vec<TcpStream>>,
}

impl Link {
    /// A way to a port of this machine.
    pub fn to(target: u16) -> Link {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let link = Link(Arc::new(State {
            address: listener.local_addr().expect("an address"),
            target: target.into(),
            is_cut: false.into(),
            delay_ms: 0.into(),
            lost: Mutex::default(),
            open: Mutex::default(),
        }));
        let own = link.clone();
        thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let own = own.clone();
                thread::spawn(move || own.connect(near));
            }
        });
        link
    }

    pub fn address(&self) -> SocketAddr {
        self.0.address
    }

    pub fn cut(&self) {
        self.0.is_cut.store(true, Ordering::SeqCst);
    }

    pub fn mend(&self) {
        self.0.is_cut.store(false, Ordering::SeqCst);
    }

    /// Everything takes so much longer, each way.
    pub fn delay(&self, delay: Duration) {
        self.0.delay_ms.store(u64::try_from(delay.as_millis()).expect("a short time"), Ordering::SeqCst);
    }

    /// The first message with this text does not arrive, and its connection is closed.
    pub fn lose(&self, text: &'static str) {
        *self.0.lost.lock().expect("a lock") = Some(text);
    }

    pub fn has_lost(&self) -> bool {
        self.0.lost.lock().expect("a lock").is_none()
    }

    /// Leads to another port from now on; connections that are open are closed.
    pub fn lead_to(&self, target: u16) {
        self.0.target.store(target, Ordering::SeqCst);
        for stream in self.0.open.lock().expect("a lock").drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    fn connect(&self, near: TcpStream) {
        self.wait_while_cut();
        let Ok(far) = TcpStream::connect(("127.0.0.1", self.0.target.load(Ordering::SeqCst))) else { return };
        let (near_too, far_too) = (near.try_clone().expect("a stream"), far.try_clone().expect("a stream"));
        let kept = [near.try_clone().expect("a stream"), far.try_clone().expect("a stream")];
        self.0.open.lock().expect("a lock").extend(kept);
        for stream in [&near, &far] {
            stream.set_nodelay(true).expect("a stream");
        }
        let back = self.clone();
        thread::spawn(move || back.copy(far_too, near_too));
        self.copy(near, far);
    }

    fn copy(&self, mut from: TcpStream, mut to: TcpStream) {
        let mut bytes = vec![0; 64 << 10];
        loop {
            let read = from.read(&mut bytes).unwrap_or(0);
            self.wait_while_cut();
            thread::sleep(Duration::from_millis(self.0.delay_ms.load(Ordering::SeqCst)));
            if read == 0 || self.is_lost(&bytes[..read]) || to.write_all(&bytes[..read]).is_err() {
                let _ = to.shutdown(Shutdown::Both);
                let _ = from.shutdown(Shutdown::Both);
                return;
            }
        }
    }

    fn is_lost(&self, message: &[u8]) -> bool {
        let mut lost = self.0.lost.lock().expect("a lock");
        lost.take_if(|text| message.windows(text.len()).any(|part| part == text.as_bytes())).is_some()
    }

    fn wait_while_cut(&self) {
        while self.0.is_cut.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(5));
        }
    }
}
