/**
 * A client that knows nothing of the servers behind the address: plain HTTP calls, each over a connection of its own, so that each goes to
 * another server. It appends numbers to a file in its sandbox, and stops with an error when a saved one is missing, or one is there twice.
 *
 *   node examples/three-servers/calls.mjs [http://127.0.0.1:8080] [LAST NUMBER]        key, if any: SANDBOXER_API_KEY
 */
const [server = "http://127.0.0.1:8080", last = "100"] = process.argv.slice(2);
const PATIENCE_MS = 120_000;
const key = process.env.SANDBOXER_API_KEY;
const run = crypto.randomUUID();

/** Whether a server was lost since this was last reset, and with it what was not saved. */
let wasResumed = false;
const sandbox = await call("POST", "/v1/sandboxes", {}, "create");
const path = `/v1/sandboxes/${sandbox.id}`;
let attempts = 0;
for (let number = 1; number <= Number(last); number += 1) {
  attempts += 1;
  wasResumed = false;
  await inSandbox(`echo ${number} >> numbers`, `number ${number} attempt ${attempts}`);
  // Saved data is not lost with a killed server.
  await call("POST", `${path}/checkpoint`, { leave_running: true });
  const stdout = await inSandbox("cat numbers");
  if (wasResumed && stdout === upTo(number - 1)) {
    // Its server was killed before the number was saved.
    number -= 1;
    continue;
  }
  if (stdout !== upTo(number)) fail(`the file has ${JSON.stringify(stdout)} instead of the numbers up to ${number}`);
  console.log(number);
}
await call("DELETE", path);
console.log(`Done: every number up to ${last} is there once.`);

async function inSandbox(shell, name) {
  return (await call("POST", `${path}/exec`, { shell }, name)).stdout;
}

function upTo(number) {
  return Array.from({ length: number }, (_, index) => `${index + 1}\n`).join("");
}

/** Repeats a call until it is answered. The key makes sure that it is carried out once. */
async function call(method, target, body, name) {
  const startMs = performance.now();
  for (;;) {
    const answer = await attempt(method, target, body, name);
    if (answer.status < 300) return answer.body;
    const { code, message, details } = answer.body.error ?? {};
    if (answer.status < 500 && code !== "lease_held" && code !== "wrong_state") fail(`${method} ${target}: ${message}`);
    if (performance.now() - startMs > PATIENCE_MS) fail(`${method} ${target} is not answered: ${message}`);
    // Its server has stopped, or was killed: any other one resumes it.
    if (details?.state === "stored" || details?.url === null || code === "server_unreachable") {
      wasResumed = true;
      await attempt("POST", `${path}/resume`);
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

async function attempt(method, target, body, name) {
  try {
    const response = await fetch(server + target, {
      method,
      headers: {
        // The next call is to go to the next server.
        connection: "close",
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
        ...(name === undefined ? {} : { "idempotency-key": `${run}/${name.replaceAll(" ", "-")}` }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: response.status, body: await response.json() };
  } catch (error) {
    return { status: 599, body: { error: { code: "no_answer", message: String(error) } } };
  }
}

function fail(why) {
  console.error(`Failed: ${why}.`);
  process.exit(1);
}
