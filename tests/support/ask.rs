//! A builder of requests. It sends exactly the bytes that it shows.

/// A request under construction.
#[derive(Clone, Debug)]
pub struct Ask {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    chunk_bytes: Option<usize>,
}

impl Ask {
    /// A request without headers (but `Host`) and body.
    pub fn new(method: &str, path: &str) -> Ask {
        let headers = vec![("Host".to_owned(), "localhost".to_owned())];
        let (method, path) = (method.to_owned(), path.to_owned());
        Ask {
            method,
            path,
            headers,
            body: Vec::new(),
            chunk_bytes: None,
        }
    }

    /// `GET path`.
    pub fn get(path: &str) -> Ask {
        Ask::new("GET", path)
    }

    /// `POST path` with a JSON body, which may be any text.
    pub fn post(path: &str, body: impl AsRef<[u8]>) -> Ask {
        Ask::new("POST", path)
            .header("Content-Type", "application/json")
            .body(body)
    }

    /// One more header; the same name may come again.
    pub fn header(mut self, name: &str, value: &str) -> Ask {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Removes every header of that name, `Host` too.
    pub fn without(mut self, name: &str) -> Ask {
        self.headers
            .retain(|(given, _)| !given.eq_ignore_ascii_case(name));
        self
    }

    /// `Authorization: Bearer key`.
    pub fn key(self, key: &str) -> Ask {
        self.header("Authorization", &format!("Bearer {key}"))
    }

    /// The body; sent under `Content-Length` unless [`Ask::chunked`] or a length is already given.
    pub fn body(mut self, body: impl AsRef<[u8]>) -> Ask {
        self.body = body.as_ref().to_vec();
        self
    }

    /// Sends the body in chunks of this many bytes.
    pub fn chunked(mut self, bytes: usize) -> Ask {
        self.chunk_bytes = Some(bytes.max(1));
        self
    }

    /// Returns method and target.
    pub fn target(&self) -> (&str, &str) {
        (&self.method, &self.path)
    }

    /// Returns whether its reply never has a body.
    pub fn is_head(&self) -> bool {
        self.method == "HEAD"
    }

    /// Returns the exact bytes that are sent.
    pub fn wire(&self) -> Vec<u8> {
        let mut wire = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        for (name, value) in &self.headers {
            wire.push_str(&format!("{name}: {value}\r\n"));
        }
        let has_length = self
            .headers
            .iter()
            .any(|(n, _)| n.eq_ignore_ascii_case("content-length"));
        if self.chunk_bytes.is_some() {
            wire.push_str("Transfer-Encoding: chunked\r\n");
        } else if !has_length && (!self.body.is_empty() || self.method == "POST") {
            wire.push_str(&format!("Content-Length: {}\r\n", self.body.len()));
        }
        let mut wire = (wire + "\r\n").into_bytes();
        match self.chunk_bytes {
            None => wire.extend_from_slice(&self.body),
            Some(bytes) => {
                for chunk in self.body.chunks(bytes) {
                    wire.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                    wire.extend_from_slice(chunk);
                    wire.extend_from_slice(b"\r\n");
                }
                wire.extend_from_slice(b"0\r\n\r\n");
            }
        }
        wire
    }
}
