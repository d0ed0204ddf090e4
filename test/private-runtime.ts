import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { busyboxImageName, openPrivateContainerd, type PrivateContainerd } from '../src/containerd/index.ts';
import { type CriClient, createCriClient, wireTransport } from '../src/cri/index.ts';
import { realClock, systemRandom, withDeadline } from '../src/lib/index.ts';

/**
 * A containerd only for one test in a temporary directory; disposing removes all of it from the
 * machine.
 */
export interface PrivateRuntime extends AsyncDisposable {
  readonly dataDir: string;
  readonly containerd: PrivateContainerd;
  readonly cri: CriClient;
  readonly image: string;
  /** The version that containerd reports, such as 1.6.20. */
  readonly version: string;
}

const clock = realClock();
const random = systemRandom();
const busybox = '/bin/busybox';

/**
 * Applies a deadline to a set-up or clean-up step, so that a stuck machine fails the test instead
 * of hanging it.
 */
export function within<T>(ms: number, what: string, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  return withDeadline({ clock, ms, what }, work, new AbortController().signal);
}

export interface PrivateRuntimeOptions {
  /** The environment whose PATH is searched for programs; by default that of this process. */
  readonly env?: NodeJS.ProcessEnv;
  /** The parent of the data directory; by default the directory of temporary files. */
  readonly folder?: string;
  /**
   * The interval in which containerd measures the writable layers of containers; by default that of
   * containerd.
   */
  readonly countsEverySeconds?: number | undefined;
}

export async function openPrivateRuntime({
  env = process.env,
  folder = tmpdir(),
  countsEverySeconds,
}: PrivateRuntimeOptions = {}): Promise<PrivateRuntime> {
  const dataDir = await mkdtemp(join(folder, 'kubeling-test-'));
  const program = process.env['CONTAINERD_BIN'];
  const containerd = await openPrivateContainerd({
    dataDir,
    clock,
    random,
    env: countsEverySeconds === undefined ? env : await counting(env, dataDir, countsEverySeconds),
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

/**
 * An environment in whose PATH containerd is a wrapper that adds the measuring interval to the
 * config. It has no effect on a containerd given by path.
 */
async function counting(
  env: NodeJS.ProcessEnv,
  dataDir: string,
  everySeconds: number,
): Promise<NodeJS.ProcessEnv> {
  const real = execFileSync('sh', ['-c', 'command -v containerd'], { env, encoding: 'utf8' }).trim();
  const table = String.raw`^\[plugins\."io\.containerd\.(grpc\.v1\.cri|cri\.v1\.runtime)"\]$`;
  const bin = join(dataDir, 'bin');
  const script = `#!/bin/sh
if [ "$1" = --config ]; then sed -E -i 's/${table}/&\\nstats_collect_period = ${everySeconds}/' "$2"; fi
exec ${real} "$@"
`;
  await mkdir(bin);
  await writeFile(join(bin, 'containerd'), script, { mode: 0o755 });
  return { ...env, PATH: `${bin}:${env['PATH']}` };
}

async function removeAllSandboxes(cri: CriClient, signal: AbortSignal): Promise<void> {
  const { items } = await cri.listPodSandbox({}, signal);
  for (const { id: podSandboxId } of items) {
    await cri.stopPodSandbox({ podSandboxId }, signal);
    await cri.removePodSandbox({ podSandboxId }, signal);
  }
}
