export function isConsoleBuilt(root: string): boolean;
export function bootstrap(root?: string, say?: (line: string) => void): Promise<void>;
