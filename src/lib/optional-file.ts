import { readFile } from 'node:fs/promises';

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
