import { open, readFile } from 'node:fs/promises';

/** The text of a file, or nothing when it is not there. */
export async function readFileIfExists(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** The JSON of a file, or nothing when the file is not there or holds something else. */
export async function readJsonIfSound(path: string): Promise<unknown> {
  const text = await readFileIfExists(path);
  try {
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The text of a file that is not larger than it may be: somebody may have put anything there. */
export async function readFileWithin(path: string, mostBytes: number): Promise<string> {
  await using file = await open(path, 'r');
  const { size } = await file.stat();
  if (size > mostBytes) throw new Error(`it must have at most ${mostBytes} bytes: current size is ${size}`);
  return await file.readFile('utf8');
}
