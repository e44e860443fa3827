import type { IntegrityReport } from "@sandboxer/client";
import type { JSX } from "preact";
import { formatBytes } from "../format/bytes.ts";
import { shortId } from "../format/names.ts";

const SHOWN = 50;

/** The result of an integrity check, and what to do. */
export function IntegrityView({ report }: { readonly report: IntegrityReport }): JSX.Element {
  const { ok, images, blocks, bytes, problems, nextStep } = report;
  const looked = Object.values(images).reduce((sum, count) => sum + count, 0);
  const found = `${blocks.toLocaleString()} blocks read, ${formatBytes(bytes)}`;
  if (looked === 0) return <p>There are no stored checkpoints.</p>;
  return (
    <>
      <p>
        <span class={ok ? "badge badge-good" : "badge badge-danger"}>{ok ? "intact" : "damaged"}</span>{" "}
        {countsText(images)}; {found}.
      </p>
      {problems.length === 0 ? null : (
        <ul class="error-box integrity-problems">
          {problems.slice(0, SHOWN).map(({ image, state, problem, current, checkpoint, snapshotId }) => (
            <li key={image}>
              <code>{checkpoint ?? (snapshotId === null ? image : `snapshot ${shortId(snapshotId)}`)}</code>{" "}
              {current ? `${state}, and the sandbox resumes from it` : state}: {problem}
            </li>
          ))}
          {problems.length > SHOWN ? <li>… and {problems.length - SHOWN} more</li> : null}
        </ul>
      )}
      {nextStep === null ? null : <p>{nextStep}</p>}
    </>
  );
}

function countsText(images: IntegrityReport["images"]): string {
  const counts = Object.entries(images).filter(([state, count]) => count > 0 || state === "whole");
  return `Saved states: ${counts.map(([state, count]) => `${count} ${state === "whole" ? "intact" : state}`).join(", ")}`;
}
