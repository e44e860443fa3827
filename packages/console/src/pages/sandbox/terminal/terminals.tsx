import type { JSX } from "preact";
import type { SandboxTabProperties } from "../tabs.tsx";

export function Terminals({ record }: SandboxTabProperties): JSX.Element {
  return <p>{record.id}</p>;
}
