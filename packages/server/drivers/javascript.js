"use strict";
/*
 * The JavaScript and TypeScript interpreter of a sandboxer context, for the node inside. Programs print as they like;
 * frames are between their output, with a mark that only the server and this file know
 * (packages/server/src/manager/interpreter/marked-frames.ts).
 */
const fs = require("node:fs");
const { createRequire, stripTypeScriptTypes } = require("node:module");
const { join } = require("node:path");
const { createInterface } = require("node:readline");
const { Readable } = require("node:stream");
const util = require("node:util");
const { Script } = require("node:vm");

const MARK = "\x1e";
const PART = 24 * 1024;
const TEXT = 1024 * 1024;
const FORMAT = 8 * 1024 * 1024;
const MIME = {
  "text/plain": "text",
  "text/html": "html",
  "text/markdown": "markdown",
  "image/svg+xml": "svg",
  "image/png": "png",
  "image/jpeg": "jpeg",
  "application/pdf": "pdf",
  "text/latex": "latex",
  "application/json": "json",
  "application/javascript": "javascript",
};
// Cells may replace what they like.
const { stringify, parse } = JSON;
const bytesOf = Buffer.from.bind(Buffer);
const isTypeScript = SANDBOXER_LANGUAGE === "typescript";

/** A descriptor of our own for the same pipe, so that a cell may close 1 and 2. */
function own(descriptor) {
  try {
    return fs.openSync(`/proc/self/fd/${descriptor}`, "w");
  } catch {
    return descriptor;
  }
}
const descriptors = { stdout: own(1), stderr: own(2) };
const writeSync = fs.writeSync;

function write(stream, text) {
  writeBytes(stream, bytesOf(text, "latin1"));
}

function writeBytes(stream, all) {
  let bytes = all;
  while (bytes.length > 0) {
    try {
      bytes = bytes.subarray(writeSync(descriptors[stream], bytes));
    } catch (error) {
      if (error.code !== "EAGAIN") return;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
    }
  }
}

let cell;
let count = 0;
let interrupt;

function ascii(value) {
  return stringify(value).replace(/[\x1e\x7f-\uffff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

function send(frame, stream = "stdout") {
  if (cell === undefined) return;
  const mark = (text) => write(stream, `${MARK}${MARK}${cell}${text}${MARK}`);
  const text = ascii(frame);
  if (text.length <= 2 * PART) return mark(text);
  for (let at = 0; at < text.length; at += PART) mark(ascii({ f: "part", d: text.slice(at, at + PART) }));
  mark('{"f":"whole"}');
}

function formatsOf(value) {
  const own = value?.[Symbol.for("Jupyter.display")];
  if (typeof own !== "function") {
    const text = util.inspect(value, { maxArrayLength: 1000, maxStringLength: TEXT, breakLength: 80 });
    const formats = { text: text.length > TEXT ? `${text.slice(0, TEXT)}…` : text };
    if (typeof value !== "object" || value === null) return formats;
    try {
      const json = stringify(value);
      if (json !== undefined && json.length <= TEXT) formats.json = parse(json);
    } catch {
      // It has no JSON.
    }
    return formats;
  }
  const formats = {};
  for (const [mime, data] of Object.entries(own.call(value) ?? {})) {
    const name = MIME[mime];
    const shown = data instanceof Uint8Array ? bytesOf(data).toString("base64") : data;
    if ((stringify(shown) ?? "").length > FORMAT) (formats.omitted ??= []).push(name ?? mime);
    else if (name === undefined) (formats.extra ??= {})[mime] = shown;
    else formats[name] = name === "json" ? shown : String(shown);
  }
  return formats;
}

function show(value, main = false) {
  send({ f: "result", main, formats: formatsOf(value) });
}

function failure(error) {
  const is = util.types.isNativeError(error) || error instanceof Error;
  const name = is ? String(error.name || "Error") : "Error";
  const value = is ? String(error.message) : util.inspect(error);
  const lines = is && typeof error.stack === "string" ? error.stack.split("\n") : [`Uncaught ${value}`];
  const ours = lines.findIndex((line) => /\bat .*(node:|\[eval\]|Script\.runInThisContext|sandboxer)/.test(line));
  const traceback = (ours === -1 ? lines : lines.slice(0, ours)).join("\n");
  return { f: "error", name: name.slice(0, 200), value: value.slice(0, 10000), traceback: traceback.slice(0, 100000) };
}

/** Declarations at the top level may be repeated by a later cell, as in notebooks: `const` and `let` become `var`. */
function redeclarable(code) {
  let depth = 0;
  let out = "";
  for (let at = 0; at < code.length;) {
    const rest = code.slice(at, at + 2);
    const c = code[at];
    let end = at + 1;
    if (rest === "//") end = (code.indexOf("\n", at) + 1 || code.length + 1) - 1;
    else if (rest === "/*") end = (code.indexOf("*/", at + 2) + 1 || code.length) + 1;
    else if (c === '"' || c === "'" || c === "`") {
      while (end < code.length && code[end] !== c) end += code[end] === "\\" ? 2 : 1;
      end += 1;
    } else if ("([{".includes(c)) depth += 1;
    else if (")]}".includes(c)) depth -= 1;
    else if (depth === 0 && (at === 0 || /[\n;]\s*$/.test(code.slice(Math.max(0, at - 200), at)))) {
      const word = /^(?:const|let)(?=\s)/.exec(code.slice(at, at + 6))?.[0];
      if (word !== undefined) {
        out += "var";
        at += word.length;
        continue;
      }
      const name = /^class\s+([\w$]+)/.exec(code.slice(at, at + 200))?.[1];
      if (name !== undefined) out += `var ${name} = `;
    }
    out += code.slice(at, end);
    at = end;
  }
  return out;
}

/** With enums and the like where this node can. */
function strip(code) {
  try {
    return stripTypeScriptTypes(code, { mode: "transform" });
  } catch (error) {
    if (error.code !== "ERR_INVALID_ARG_VALUE") throw error;
    return stripTypeScriptTypes(code);
  }
}

function javascriptOf(code) {
  if (!isTypeScript) return redeclarable(code);
  if (stripTypeScriptTypes === undefined) {
    const error = new Error(`Node ${process.version} cannot run TypeScript. Use an image with Node 22.13 or newer.`);
    error.stack = error.message;
    throw error;
  }
  const warn = process.emitWarning;
  process.emitWarning = () => {};
  try {
    return redeclarable(strip(code));
  } finally {
    process.emitWarning = warn;
  }
}

/** The tail of the code that may be an expression: what follows the last end of a statement at the top level. */
function lastStatement(code) {
  const text = code.replace(/[\s;]+$/, "");
  const at = Math.max(...[...text.matchAll(/[\n;]/g)].map(({ index }) => index), -1) + 1;
  return { before: text.slice(0, at), last: text.slice(at) };
}

/** Code that awaits runs in a function; its top-level names still become global. */
function awaiting(code, filename) {
  const global = code.replace(/(^|[\n;]\s*)var(?=\s+[\w$]+\s*=)/g, "$1");
  const functions = [...code.matchAll(/^(?:async\s+)?function\s*\*?\s*([\w$]+)/gm)].map(
    ([, name]) => `globalThis.${name}=${name};`,
  );
  const { before, last } = lastStatement(global);
  const wrap = (body) => new Script(`(async () => {${functions.join("")}${body}\n})()`, { filename });
  try {
    return wrap(`${before}return (${last}\n)`);
  } catch {
    return wrap(global);
  }
}

function compiled(code, filename) {
  try {
    return new Script(code, { filename });
  } catch (error) {
    if (!/\bawait\b/.test(code)) throw error;
    return awaiting(code, filename);
  }
}

class KeyboardInterrupt extends Error {
  constructor() {
    super("The cell was interrupted.");
    this.name = "KeyboardInterrupt";
    this.stack = "KeyboardInterrupt: The cell was interrupted.";
  }
}

/** A promise of the cell is awaited: an interrupt ends the wait. */
async function evaluate(code) {
  const script = compiled(code, `<cell ${count}>`);
  const interrupted = new Promise((_resolve, reject) => (interrupt = () => reject(new KeyboardInterrupt())));
  interrupted.catch(() => {});
  try {
    const value = script.runInThisContext({ breakOnSigint: true, displayErrors: false });
    return await Promise.race([value, interrupted]);
  } catch (error) {
    throw error?.code === "ERR_SCRIPT_EXECUTION_INTERRUPTED" ? new KeyboardInterrupt() : error;
  }
}

async function run({ id, code, env = {} }) {
  cell = id;
  count += 1;
  for (const stream of ["stdout", "stderr"]) send({ f: "start", id, n: count }, stream);
  const before = Object.fromEntries(Object.keys(env).map((name) => [name, process.env[name]]));
  Object.assign(process.env, env);
  let status = "ok";
  try {
    // The value of a promise is the value of the cell.
    const value = await evaluate(javascriptOf(code));
    if (value !== undefined && !/;\s*$/.test(code)) show(value, true);
  } catch (error) {
    status = error?.name === "KeyboardInterrupt" ? "interrupted" : "error";
    send(failure(error));
  }
  interrupt = undefined;
  for (const [name, value] of Object.entries(before)) {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  }
  for (const stream of ["stderr", "stdout"]) send({ f: "end", id, n: count, status }, stream);
  cell = undefined;
}

// At once, without the state of a stream: an interrupt in the middle of a write would leave it waiting forever.
for (const stream of ["stdout", "stderr"]) {
  process[stream].write = (chunk, encoding, done) => {
    writeBytes(
      stream,
      typeof chunk === "string" ? bytesOf(chunk, typeof encoding === "string" ? encoding : "utf8") : chunk,
    );
    const callback = typeof encoding === "function" ? encoding : done;
    if (typeof callback === "function") process.nextTick(callback);
    return true;
  };
}
process.on("SIGINT", () => interrupt?.());
process.setUncaughtExceptionCaptureCallback?.((error) => console.error("Uncaught", error));
process.on("unhandledRejection", (error) => console.error("Uncaught (in promise)", error));
const input = fs.createReadStream("", { fd: 0, autoClose: false });
Object.defineProperty(process, "stdin", { value: Readable.from([]), configurable: true });
globalThis.display = (...values) => values.forEach((value) => show(value));
globalThis.require = createRequire(join(process.cwd(), "cell.js"));
let last = Promise.resolve();
createInterface({ input, crlfDelay: Infinity })
  .on("line", (line) => (last = last.then(() => run(parse(line)))))
  .on("close", () => last.then(() => process.exit(0)));
