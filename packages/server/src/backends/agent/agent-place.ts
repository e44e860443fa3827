/** Where the agent is inside, whatever the engine. */
export const AGENT_FOLDER = "/.sandboxer";
export const AGENT_PATH = `${AGENT_FOLDER}/sandboxer-agent`;
