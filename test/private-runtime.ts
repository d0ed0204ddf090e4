import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
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
  /** How often it counts what containers have written over their images; as it does by itself unless given. */
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

/** In which the containerd that is found is the same with a line more in its config; one given by path is as it is. */
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
