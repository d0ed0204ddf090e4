import { copyFile, mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';

const logs = ['kubeling.log', 'containerd/containerd.log'];

/** Copies the logs of a failed node before it is removed; returns the path. */
export async function keepLogs(dataDir: string, name: string): Promise<string> {
  const dir = join(tmpdir(), `kubeling-chaos-${name}`);
  await mkdir(dir, { recursive: true });
  for (const log of logs) await copyFile(join(dataDir, log), join(dir, basename(log))).catch(() => {});
  return dir;
}
