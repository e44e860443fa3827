/** The path of the agent inside, whatever the engine. */
export const AGENT_FOLDER = "/.sandboxer";
export const AGENT_PATH = `${AGENT_FOLDER}/sandboxer-agent`;
