import { readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openPrivateRuntime, within } from '../private-runtime.ts';
import type { Backend, Flavour } from './backend.ts';

const limitMs = 180_000;

/** Starts a real containerd for the suite, which removes it at the end. */
export async function containerdBackend(): Promise<Backend> {
  const runtime = await openPrivateRuntime();
  const { containerd, cri, image, dataDir } = runtime;
  return {
    name: `containerd ${runtime.version}`,
    flavour: flavourOf(runtime.version),
    cri,
    image,
    logRoot: join(dataDir, 'logs'),
    cgroupParent: containerd.layout.cgroup,
    nowNs: () => BigInt(Date.now()) * 1_000_000n + 999_999n,
    until: (what, check) => poll(what, check),
    readLog,
    renameLog: rename,
    async kill() {
      const health = await within(limitMs, 'ask containerd', (signal) => containerd.health(signal));
      if (health.state === 'not-running') throw new Error('containerd is not running');
      process.kill(health.pid, 'SIGKILL');
      await poll('containerd to be gone', async () => {
        const now = await within(limitMs, 'ask containerd', (signal) => containerd.health(signal));
        return now.state === 'not-running' ? true : undefined;
      });
    },
    async revive() {
      await within(limitMs, 'start containerd again', (signal) => containerd.ensureRunning(signal));
    },
    [Symbol.asyncDispose]: () => runtime[Symbol.asyncDispose](),
  };
}

function flavourOf(version: string): Flavour {
  const [, major, minor] = /^v?(\d+)\.(\d+)/.exec(version) ?? [];
  if (major !== '1') return 'containerd-2';
  return Number(minor) < 7 ? 'containerd-1.6' : 'containerd-1.7';
}

/** Waits in real time: repeats the check at a short interval. */
export async function poll<T>(what: string, check: () => Promise<T | undefined>): Promise<T> {
  const end = performance.now() + limitMs;
  for (;;) {
    const found = await check();
    if (found !== undefined) return found;
    if (performance.now() > end) throw new Error(`Waited ${limitMs} ms without success for ${what}`);
    await sleep(20);
  }
}

export async function readLog(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return '';
    throw error;
  }
}
