import { describe } from "vitest";
import { whyNoEngine } from "../../../../../test/kit/server/server-process.ts";
import { resumeAcrossProcesses } from "./support/resume-contract.ts";
import { ResumeLab } from "./support/resume-lab.ts";

const missing = whyNoEngine();
if (missing !== undefined) console.warn(`The tests of resuming on gVisor are skipped: ${missing}`);

describe.skipIf(missing !== undefined)("resuming across processes, on gVisor", () => {
  resumeAcrossProcesses(() => ResumeLab.open({ flags: ["--backend", "gvisor"] }), { keepsUnsaved: false });
});
