export { prepareAgent, type AgentBinary } from "./agent-binary.ts";
export type { CheckContext, CheckResult } from "./checks/check.ts";
export { isHealthy, runChecks } from "./checks/run-checks.ts";
export type { Platform, SetupContext } from "./context.ts";
export { buildNewestEngine, locateEngine } from "./engine/engine.ts";
export type { Engine } from "./engine/source.ts";
export { choosePlatform } from "./platform.ts";
export { prepareGvisor, withSetupLock, type GvisorSetup } from "./prepare-gvisor.ts";
export type { ReportStep, SetupStep } from "./step.ts";
