/**
 * A client of several servers behind one address. A program in its sandbox counts; the client goes wherever the balancer sends it, and asks
 * there for what it has not seen. It stops with an error when a number is missing or comes twice.
 *
 *   node examples/three-servers/count.mjs [ws://127.0.0.1:8080] [LAST NUMBER]        key, if any: SANDBOXER_API_KEY
 */
if (typeof WebSocket === "undefined") {
  console.error(`This example needs Node 22 or newer; this is ${process.version}.`);
  process.exit(1);
}

const [server = "ws://127.0.0.1:8080", last = "100"] = process.argv.slice(2);
const CODE = "i=0; while true; do i=$((i+1)); echo $i; sleep 0.1; done";
// With extensions, output says where it is, so that nothing is missed or seen twice after a move.
const CONFIGURATION = { enable_checkpoint: true, enable_sandbox_handoff: true, extensions: true };
const PATIENCE_MS = 60_000;
const headers =
  process.env.SANDBOXER_API_KEY === undefined ? {} : { authorization: `Bearer ${process.env.SANDBOXER_API_KEY}` };

const seen = { sandboxId: "", executionId: undefined, bytes: 0, text: "", number: 0 };
let moves = 0;
let socket = open("/create");
socket.onopen = () => send(CONFIGURATION);
let answeredMs = performance.now();

function open(path) {
  const fresh = new WebSocket(server + path, { headers });
  fresh.onmessage = ({ data }) => onEvent(JSON.parse(data));
  fresh.onclose = () => fresh === socket && again();
  fresh.onerror = () => {};
  return fresh;
}

/** The server is going, or has gone: another one has the sandbox, or will take it up. */
function again() {
  if (performance.now() - answeredMs > PATIENCE_MS) fail("no server answers");
  if (seen.sandboxId === "") fail("no sandbox was made");
  setTimeout(() => (socket = open(`/attach/${seen.sandboxId}?extensions=1`)), 100);
}

function onEvent(event) {
  answeredMs = performance.now();
  if (event.event === "sandbox_id") seen.sandboxId = event.sandbox_id;
  if (event.event === "status_update" && event.status === "SANDBOX_RUNNING") onRunning();
  if (event.event === "status_update" && event.status === "SANDBOX_EXECUTION_RUNNING")
    seen.executionId ??= event.execution_id;
  if (event.event === "stdout") onOutput(event);
}

function onRunning() {
  if (seen.executionId === undefined) return send({ language: "bash", code: CODE });
  moves += 1;
  console.log(`  (another connection, number ${seen.number} was the last)`);
  send({ action: "reconnect", execution_id: seen.executionId, offset: seen.bytes });
}

function onOutput({ data, offset }) {
  seen.bytes = offset;
  const lines = (seen.text + data).split("\n");
  seen.text = lines.pop();
  for (const line of lines) {
    if (Number(line) !== seen.number + 1) fail(`${line} came after ${seen.number}`);
    seen.number = Number(line);
    console.log(line);
    if (seen.number === Number(last)) return finish();
  }
}

function finish() {
  const ended = socket;
  socket = undefined;
  ended.send(JSON.stringify({ action: "kill_sandbox" }));
  console.log(`Done: every number up to ${seen.number} came once, over ${moves + 1} connections.`);
}

function send(message) {
  socket.send(JSON.stringify(message));
}

function fail(why) {
  console.error(`Failed: ${why}.`);
  process.exit(1);
}
