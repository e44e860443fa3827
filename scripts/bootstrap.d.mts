export function bootstrap(root?: string, say?: (line: string) => void): Promise<void>;
