import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { busyboxImageName, openPrivateContainerd, type PrivateContainerd } from '../src/containerd/index.ts';
import { type CriClient, createCriClient, wireTransport } from '../src/cri/index.ts';
import { realClock, systemRandom, withDeadline } from '../src/lib/index.ts';

/** A containerd of the test's own under a temporary folder; disposing leaves nothing of it on the machine. */
export interface PrivateRuntime extends AsyncDisposable {
  readonly dataDir: string;
  readonly containerd: PrivateContainerd;
  readonly cri: CriClient;
  readonly image: string;
  /** containerd's version as it says it, such as 1.6.20. */
  readonly version: string;
}

const clock = realClock();
const random = systemRandom();
const busybox = '/bin/busybox';

/** Bounds each piece of set-up and clean-up, so that a stuck machine fails the test instead of hanging it. */
export function within<T>(ms: number, what: string, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  return withDeadline({ clock, ms, what }, work, new AbortController().signal);
}

export interface PrivateRuntimeOptions {
  /** In which programs are looked for; our own unless given. */
  readonly env?: NodeJS.ProcessEnv;
  /** In which its data directory is made; that of temporary files unless given. */
  readonly folder?: string;
}

export async function openPrivateRuntime({
  env = process.env,
  folder = tmpdir(),
}: PrivateRuntimeOptions = {}): Promise<PrivateRuntime> {
  const dataDir = await mkdtemp(join(folder, 'kubeling-test-'));
  const program = process.env['CONTAINERD_BIN'];
  const containerd = await openPrivateContainerd({
    dataDir,
    clock,
    random,
    env,
    cgroupDriver: 'cgroupfs',
    ...(program === undefined ? {} : { containerd: program }),
  });
  const running = await within(90_000, 'start containerd', (signal) => containerd.ensureRunning(signal));
  const images = await containerd.images();
  await within(60_000, 'import busybox', (signal) => images.importBusybox(busybox, signal));
  const cri = createCriClient({
    transport: wireTransport({ endpoint: running.socket, clock, random }),
    clock,
  });
  return {
    dataDir,
    containerd,
    cri,
    image: busyboxImageName,
    version: running.version,
    async [Symbol.asyncDispose]() {
      try {
        await within(60_000, 'remove all sandboxes', (signal) => removeAllSandboxes(cri, signal)).catch(
          () => {},
        );
      } finally {
        cri.close();
        await within(90_000, 'take containerd down', (signal) =>
          containerd.teardown({ images: 'remove' }, signal),
        );
        await rm(dataDir, { recursive: true, force: true });
      }
    },
  };
}

async function removeAllSandboxes(cri: CriClient, signal: AbortSignal): Promise<void> {
  const { items } = await cri.listPodSandbox({}, signal);
  for (const { id: podSandboxId } of items) {
    await cri.stopPodSandbox({ podSandboxId }, signal);
    await cri.removePodSandbox({ podSandboxId }, signal);
  }
}
