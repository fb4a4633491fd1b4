//! The client against guests that behave, and that do not.

use lab_proto::frame::encode;
use lab_proto::message::FaultKind;

use super::*;

const LONG: Duration = Duration::from_secs(10);
const SHORT: Duration = Duration::from_millis(100);
const SESSION: u64 = 77;

fn hello() -> Hello {
    Hello { wall_time_ns: 1, rng_seed: [3; 32] }
}

/// The guest's ends of the ports of a session that shook hands.
struct Guest {
    control: UnixStream,
    decoder: Decoder,
    bulk: UnixStream,
    _dir: tempfile::TempDir,
}

impl Guest {
    async fn read(&mut self) -> Frame {
        let mut buffer = [0; 4096];
        loop {
            if let Some(frame) = self.decoder.next_frame().unwrap() {
                return frame;
            }
            let count = self.control.read(&mut buffer).await.unwrap();
            assert!(count > 0, "host hung up");
            self.decoder.push(&buffer[..count]);
        }
    }

    async fn answer(&mut self, id: u32, result: Result<Reply, Fault>) {
        let frame = encode_json(Kind::Response, SESSION, &Response { id, result }).unwrap();
        self.control.write_all(&frame).await.unwrap();
    }
}

async fn session() -> (Agent, Guest) {
    let (control, guest_control) = UnixStream::pair().unwrap();
    let (bulk, guest_bulk) = UnixStream::pair().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("artifacts");
    let decoder = Decoder::for_guest();
    let mut guest = Guest { control: guest_control, decoder, bulk: guest_bulk, _dir: dir };
    let hello = hello();
    let connect = Agent::connect(Ports { control, bulk }, SESSION, &hello, &path, LONG);
    let shake = async {
        let frame = guest.read().await;
        assert_eq!((frame.kind, frame.session), (Kind::Hello, SESSION));
        // Left over from the template: another session, and a torn frame.
        let old = HelloReply { agent_version: "old".into(), boottime_ns: 1 };
        let new = HelloReply { agent_version: "new".into(), boottime_ns: 2 };
        let mut wire = encode_json(Kind::HelloReply, 5, &old).unwrap()[9..].to_vec();
        wire.extend(encode_json(Kind::HelloReply, 6, &old).unwrap());
        wire.extend(encode_json(Kind::HelloReply, SESSION, &new).unwrap());
        guest.control.write_all(&wire).await.unwrap();
    };
    let (agent, ()) = tokio::join!(connect, shake);
    let (agent, reply) = agent.unwrap();
    assert_eq!(reply.agent_version, "new");
    (agent, guest)
}

#[tokio::test]
async fn requests_overlap_and_answers_find_them() {
    let (agent, mut guest) = session().await;
    let serve = async {
        let first: Request = guest.read().await.json().unwrap();
        let second: Request = guest.read().await.json().unwrap();
        let fault = Fault { kind: FaultKind::Agent, text: "no".into() };
        guest.answer(second.id, Ok(Reply::PoweringOff)).await;
        guest.answer(first.id, Err(fault)).await;
    };
    let first = agent.request(Command::Facts, LONG);
    let second = agent.request(Command::PowerOff, LONG);
    let (first, second, ()) = tokio::join!(first, second, serve);
    assert!(matches!(first, Err(AgentError::Fault(fault)) if fault.text == "no"));
    assert_eq!(second, Ok(Reply::PoweringOff));
}

#[tokio::test]
async fn a_late_answer_is_dropped() {
    let (agent, mut guest) = session().await;
    let error = agent.request(Command::Facts, SHORT).await.unwrap_err();
    assert_eq!(error, AgentError::Timeout { what: "facts".into(), limit: SHORT });
    let serve = async {
        let late: Request = guest.read().await.json().unwrap();
        let next: Request = guest.read().await.json().unwrap();
        guest.answer(late.id, Ok(Reply::PoweringOff)).await;
        guest.answer(next.id, Ok(Reply::Marked { tainted: 4 })).await;
    };
    let mark = Command::Mark { marker: "m".into() };
    let (reply, ()) = tokio::join!(agent.request(mark, LONG), serve);
    assert_eq!(reply, Ok(Reply::Marked { tainted: 4 }));
}

#[tokio::test]
async fn garbage_ends_the_session_with_its_reason() {
    let (agent, mut guest) = session().await;
    guest.control.write_all(b"hello, world").await.unwrap();
    let error = agent.request(Command::Facts, LONG).await.unwrap_err();
    assert!(matches!(error, AgentError::Protocol(FrameError::Magic(_))), "{error}");
    assert_eq!(agent.end(), Some(error));
}

#[tokio::test]
async fn an_answer_to_nothing_is_garbage() {
    let (agent, mut guest) = session().await;
    guest.answer(9, Ok(Reply::PoweringOff)).await;
    assert!(matches!(agent.ended().await, AgentError::Protocol(FrameError::Body(_))));
    let (agent, mut guest) = session().await;
    guest.control.write_all(&encode(Kind::Bulk, SESSION, b"x").unwrap()).await.unwrap();
    assert!(matches!(agent.ended().await, AgentError::Protocol(FrameError::Body(_))));
}

#[tokio::test]
async fn a_guest_that_goes_is_lost_at_once() {
    let (agent, guest) = session().await;
    let go = async move { drop(guest) };
    let (error, ()) = tokio::join!(agent.request(Command::Facts, LONG), go);
    assert!(matches!(error, Err(AgentError::Lost(_))));
}

#[tokio::test]
async fn garbage_on_the_bulk_port_ends_a_request_that_waits() {
    let (agent, mut guest) = session().await;
    let header = lab_proto::message::BulkHeader { name: "../x".into(), offset: 0, last: true };
    let frame = lab_proto::frame::encode_bulk(SESSION, &header, b"x").unwrap();
    guest.bulk.write_all(&frame).await.unwrap();
    let end = agent.request(Command::Stats, LONG).await;
    assert_eq!(end, Err(AgentError::Artifact(ArtifactError::Name)));
}
