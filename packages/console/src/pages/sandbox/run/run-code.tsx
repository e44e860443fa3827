import { Sandbox, type ContextLanguage, type Language } from "@sandboxer/client";
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { processSpellings } from "../../../actions/process-actions.ts";
import { client, may } from "../../../session.ts";
import { Button } from "../../../ui/button.tsx";
import { CopyAs } from "../../../ui/copy-as.tsx";
import { tellError } from "../../../ui/toasts.tsx";
import type { SandboxTabProperties } from "../tabs.tsx";
import { CodeEditor } from "./code-editor.tsx";
import { RunHistory, type RunRequest } from "./run-history.ts";
import { RunResult } from "./run-result.tsx";
import "./run.css";

const EXAMPLES: Readonly<Record<ContextLanguage, string>> = {
  python: "import platform\nprint('hello from', platform.system())",
  bash: "echo hello from $(uname)",
  javascript: "console.log('hello from', process.platform)",
  typescript: "const platform: string = process.platform\nconsole.log('hello from', platform)",
};
const LANGUAGES = Object.keys(EXAMPLES) as ContextLanguage[];

/** Interpreters strip the types; programs of their own have no such language. */
function isProgramLanguage(language: ContextLanguage): language is Language {
  return language !== "typescript";
}

export function RunCode({ record }: SandboxTabProperties): JSX.Element {
  const history = useMemo(() => new RunHistory(), [record.id]);
  const [asCell, setAsCell] = useState(false);
  const [language, setLanguage] = useState<ContextLanguage>("python");
  const [code, setCode] = useState(EXAMPLES.python);
  const [typedUser, setUser] = useState("");
  const user = typedUser.trim() === "" ? undefined : typedUser.trim();
  const isCell = asCell || !isProgramLanguage(language);
  const request: RunRequest = isCell ? { as: "cell", language, code } : { as: "program", language, code, user };
  const running = history.runs.value.some(({ state }) => state === "running");
  const ready = !running && code.trim() !== "" && record.state === "running";

  const run = async (): Promise<void> => {
    if (!ready) return;
    try {
      const sandbox = await Sandbox.attach(record.id, { client, autoResume: false });
      await history.run(sandbox, request);
    } catch (thrown) {
      tellError("The code was not run", thrown);
    }
  };
  const choose = (chosen: ContextLanguage): void => {
    if (code === EXAMPLES[language]) setCode(EXAMPLES[chosen]);
    setLanguage(chosen);
  };
  if (!may("use")) return <p class="card">Your key is read-only. Running code needs the scope “use”.</p>;
  return (
    <div class="run-code">
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void run();
        }}
      >
        <div class="row">
          <label for="run-language">Language</label>
          <select
            id="run-language"
            value={language}
            onChange={(event) => choose(event.currentTarget.value as ContextLanguage)}
          >
            {LANGUAGES.map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
          <label title="Variables stay for the next cell, also through pauses, forks and moves">
            <input
              type="checkbox"
              checked={isCell}
              disabled={!isProgramLanguage(language)}
              onChange={(event) => setAsCell(event.currentTarget.checked)}
            />{" "}
            Keep variables
          </label>
          {isCell ? null : (
            <>
              <label for="run-user">User</label>
              <input
                id="run-user"
                class="run-user"
                value={typedUser}
                placeholder={record.user ?? "default"}
                maxLength={256}
                spellcheck={false}
                autocomplete="off"
                onInput={(event) => setUser(event.currentTarget.value)}
              />
            </>
          )}
          <span class="hint">Ctrl-Enter runs it; Escape, then Tab leaves the editor.</span>
        </div>
        <CodeEditor label={`Code in ${language}`} value={code} onChange={setCode} onRun={() => void run()} />
        <div class="row">
          <Button type="submit" kind="primary" busy={running} disabled={!ready}>
            Run
          </Button>
          {running ? (
            <Button
              kind="danger"
              onClick={() =>
                void history.stop().catch((thrown: unknown) => tellError("The program was not stopped", thrown))
              }
            >
              Stop
            </Button>
          ) : null}
          <CopyAs
            what="Run code"
            spellings={() =>
              request.as === "cell"
                ? processSpellings.cell(record.id, language, code)
                : processSpellings.run(record.id, language, code, user)
            }
          />
        </div>
      </form>
      <section class="stack" aria-label="Runs">
        {history.runs.value.length === 0 ? (
          <p class="hint">Results appear here, newest first, until you close the page.</p>
        ) : null}
        {history.runs.value.map((each) => (
          <RunResult
            key={each.number}
            run={each}
            onEdit={() => {
              setAsCell(each.request.as === "cell");
              setLanguage(each.request.language);
              setCode(each.request.code);
            }}
          />
        ))}
      </section>
    </div>
  );
}
