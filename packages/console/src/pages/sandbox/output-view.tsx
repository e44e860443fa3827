import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { formatBytes } from "../../format/bytes.ts";
import type { OutputPart } from "./output-text.ts";

export interface OutputViewProperties {
  readonly label: string;
  readonly parts: readonly OutputPart[];
  readonly droppedBytes?: number;
  /** Whether it scrolls with the output. */
  readonly follow?: boolean;
}

/** The output of a program; stderr has another colour and a label. */
export function OutputView({ label, parts, droppedBytes = 0, follow = true }: OutputViewProperties): JSX.Element {
  const element = useRef<HTMLPreElement>(null);
  const atEnd = useRef(true);
  useEffect(() => {
    const { current } = element;
    if (current !== null && follow && atEnd.current) current.scrollTop = current.scrollHeight;
  }, [parts, follow]);
  const note = (): void => {
    const { current } = element;
    if (current !== null) atEnd.current = current.scrollHeight - current.scrollTop - current.clientHeight < 24;
  };
  return (
    <>
      {droppedBytes > 0 ? <p class="hint">The first {formatBytes(droppedBytes)} are no longer shown.</p> : null}
      <pre class="output" tabIndex={0} role="log" aria-label={label} ref={element} onScroll={note}>
        {parts.map(({ stream, text }, index) => (
          <span key={index} class={`output-${stream}`} title={stream === "stderr" ? "stderr" : undefined}>
            {text}
          </span>
        ))}
      </pre>
    </>
  );
}
