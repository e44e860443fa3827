import { spell } from "./sandbox-actions.ts";
import { commandLine, literal, sdkOnSandbox, shellWord, type Spellings } from "./spellings.ts";

const onProcess = (process: string, ...lines: readonly string[]): readonly string[] => [
  `const started = await sandbox.process(${literal(process)});`,
  ...lines,
];

const pathOf = (process: string, rest: string): string => `/processes/${encodeURIComponent(process)}${rest}`;

/** Actions on a process of a sandbox, in other forms. */
export const processSpellings = {
  /** curl cannot send input over WebSocket: it reads. */
  attach: (id: string, process: string): Spellings =>
    spell(
      ["attach", id, process],
      onProcess(process, "for await (const line of started.lines()) console.log(line);"),
      id,
      { method: "GET", path: pathOf(process, "/output?follow=true&offset=0") },
    ),
  shell: (id: string): Spellings =>
    spell(["shell", id], ["const terminal = await sandbox.pty({ rows: 24, columns: 80 });"], id, {
      method: "POST",
      path: "/exec",
      body: { command: ["bash"], pty: { rows: 24, columns: 80 }, wait: false },
    }),
  stdin: (id: string, process: string, text: string): Spellings => {
    const url = `${location.origin}/v1/sandboxes/${encodeURIComponent(id)}${pathOf(process, "/stdin")}`;
    const typed = `printf %s ${shellWord(text)}`;
    return {
      cli: `${typed} | ${commandLine("attach", id, process)}`,
      sdk: sdkOnSandbox(id, ...onProcess(process, `await started.write(${literal(text)});`)),
      curl: `${typed} | curl -fsS -X POST -H "authorization: Bearer $SANDBOXER_API_KEY" -H 'content-type: application/octet-stream' --data-binary @- ${shellWord(url)}`,
    };
  },
  output: (id: string, process: string, offset: number): Spellings =>
    spell(
      ["logs", "-f", id, process, "--from", String(offset)],
      [
        `const started = await sandbox.process(${literal(process)}, { offset: ${offset} });`,
        "for await (const line of started.lines()) console.log(line);",
      ],
      id,
      { method: "GET", path: pathOf(process, `/output?offset=${offset}`) },
    ),
  signal: (id: string, process: string, signal: string): Spellings =>
    spell(
      ["kill", id, process, "--signal", signal],
      onProcess(process, `await started.kill(${literal(signal)});`),
      id,
      {
        method: "POST",
        path: pathOf(process, "/signal"),
        body: { signal },
      },
    ),
  remove: (id: string, process: string): Spellings =>
    spell(
      ["kill", id, process, "--signal", "SIGKILL", "--release"],
      onProcess(process, "await started.release();"),
      id,
      { method: "DELETE", path: pathOf(process, "") },
    ),
  run: (id: string, language: string, code: string, user: string | undefined): Spellings =>
    spell(
      ["exec", ...(user === undefined ? [] : ["--user", user]), id, "--language", language, "--code", code],
      [
        `const { stdout, stderr, exitCode } = await sandbox.exec({ language: ${literal(language)}, code: ${literal(code)} }${user === undefined ? "" : `, { user: ${literal(user)} }`});`,
        "console.log(exitCode, stdout, stderr);",
      ],
      id,
      { method: "POST", path: "/exec", body: { language, code, ...(user === undefined ? {} : { user }) } },
    ),
  cell: (id: string, language: string, code: string): Spellings => {
    const call = { method: "POST", path: "/cells", body: { language, code } } as const;
    const cli =
      language === "python"
        ? ["python", id, "-c", code]
        : ["api", "POST", `/v1/sandboxes/${id}${call.path}`, "--body", JSON.stringify(call.body)];
    const interpreter = `sandbox.interpreter({ language: ${literal(language)} })`;
    const lines = [
      `const { status, results, stdout, stderr } = await ${interpreter}.run(${literal(code)});`,
      "console.log(status, results, stdout, stderr);",
    ];
    return spell(cli, lines, id, call);
  },
};
