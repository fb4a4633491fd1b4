//! The server behind JSON lines: one spec, then asks, on standard input; lines on output.

use std::io::{self, BufRead, Read, Write};

use lab_proto::server::{ServerAsk, ServerLine, ServerSpec};
use thiserror::Error;

use crate::server::Server;

/// Longest line read, bytes.
const LINE_MAX: u64 = 64 << 10;

#[derive(Debug, Error)]
enum LineError {
    #[error("standard input: {0}")]
    Read(#[from] io::Error),
    #[error("line longer than {LINE_MAX} bytes")]
    Long,
    #[error("not understood: {0}")]
    Json(#[from] serde_json::Error),
}

/// Runs the role: serves until input ends or Stop is asked. The process's exit code: 0 after
/// an orderly end, 1 when the server could not start or the dialogue broke.
pub fn main() -> i32 {
    talk(&mut io::stdin().lock(), &mut io::stdout().lock())
}

/// The dialogue, over any streams.
fn talk(input: &mut impl BufRead, output: &mut impl Write) -> i32 {
    let spec: ServerSpec = match next(input) {
        Ok(Some(spec)) => spec,
        Ok(None) => return 0,
        Err(error) => return fail(output, false, &format!("spec {error}")),
    };
    let server = match Server::start(&spec) {
        Ok(server) => server,
        Err(error) => return fail(output, error.is_transport(), &error.to_string()),
    };
    let mut said = say(output, &ServerLine::Ready(server.report().clone()));
    loop {
        // When nobody reads the answers, nobody wants the mount either.
        let ask = if said.is_ok() { next(input) } else { Ok(None) };
        match ask {
            Ok(Some(ServerAsk::Stats)) => said = say(output, &ServerLine::Stats(server.stats())),
            Ok(Some(ServerAsk::Reset)) => {
                server.reset();
                said = say(output, &ServerLine::Done);
            }
            Ok(Some(ServerAsk::Stop)) => {
                server.stop();
                return i32::from(say(output, &ServerLine::Stopped).is_err());
            }
            Ok(None) => {
                server.stop();
                return i32::from(said.is_err());
            }
            Err(error) => {
                server.stop();
                return fail(output, false, &format!("ask {error}"));
            }
        }
    }
}

fn fail(output: &mut impl Write, transport: bool, text: &str) -> i32 {
    // A failing write leaves nobody to tell.
    let _ = say(output, &ServerLine::Failed { transport, text: text.replace('\n', " ") });
    1
}

fn say(output: &mut impl Write, line: &ServerLine) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    output.write_all(&text)?;
    output.flush()
}

/// The next line's value; None at the end of input.
fn next<T: serde::de::DeserializeOwned>(input: &mut impl BufRead) -> Result<Option<T>, LineError> {
    let mut line = Vec::new();
    if input.take(LINE_MAX).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.len() as u64 == LINE_MAX && !line.ends_with(b"\n") {
        return Err(LineError::Long);
    }
    Ok(Some(serde_json::from_slice(&line)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dialogue(input: &str) -> (i32, String) {
        let mut output = Vec::new();
        let code = talk(&mut input.as_bytes(), &mut output);
        (code, String::from_utf8(output).unwrap())
    }

    #[test]
    fn bad_input_is_one_failed_line() {
        for input in ["{}\n", "garbage\n", &"x".repeat(70_000)] {
            let (code, output) = dialogue(input);
            assert_eq!((code, output.lines().count()), (1, 1), "{output}");
            let line: ServerLine = serde_json::from_str(&output).unwrap();
            assert!(matches!(line, ServerLine::Failed { transport: false, .. }));
        }
    }

    #[test]
    fn no_input_is_an_orderly_end() {
        assert_eq!(dialogue(""), (0, String::new()));
    }
}
