import type { JSX, TargetedKeyboardEvent } from "preact";
import { useRef } from "preact/hooks";

const INDENT = "    ";

export interface CodeEditorProperties {
  readonly label: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly onRun: () => void;
}

/** Tab indents; after Escape it leaves the editor, so that keyboard users are not trapped. */
export function CodeEditor({ label, value, onChange, onRun }: CodeEditorProperties): JSX.Element {
  const leaving = useRef(false);
  const key = (event: TargetedKeyboardEvent<HTMLTextAreaElement>): void => {
    const element = event.currentTarget;
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      onRun();
    } else if (event.key === "Escape") {
      leaving.current = true;
    } else if (event.key === "Tab" && !leaving.current && !event.ctrlKey && !event.altKey) {
      event.preventDefault();
      if (event.shiftKey) outdent(element);
      else element.setRangeText(INDENT, element.selectionStart, element.selectionEnd, "end");
      onChange(element.value);
    } else if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      element.setRangeText(`\n${indentAt(element)}`, element.selectionStart, element.selectionEnd, "end");
      onChange(element.value);
    }
  };
  return (
    <textarea
      class="code-editor mono"
      aria-label={label}
      spellcheck={false}
      autoCapitalize="off"
      autoComplete="off"
      wrap="off"
      rows={10}
      value={value}
      onInput={(event) => onChange(event.currentTarget.value)}
      onKeyDown={key}
      onBlur={() => (leaving.current = false)}
    />
  );
}

/** A new line keeps the indentation. */
function indentAt({ value, selectionStart }: HTMLTextAreaElement): string {
  const line = value.slice(value.lastIndexOf("\n", selectionStart - 1) + 1, selectionStart);
  return /^[ \t]*/.exec(line)?.[0] ?? "";
}

function outdent(element: HTMLTextAreaElement): void {
  const start = element.value.lastIndexOf("\n", element.selectionStart - 1) + 1;
  const spaces = /^(?: {1,4}|\t)/.exec(element.value.slice(start))?.[0].length ?? 0;
  element.setRangeText("", start, start + spaces, "preserve");
}
