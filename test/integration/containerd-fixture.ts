import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, readlink, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import {
  busyboxImageName,
  openPrivateContainerd,
  type PrivateContainerd,
  type PrivateContainerdOptions,
  pauseImageName,
} from '../../src/containerd/index.ts';
import { type CriClient, createCriClient, wireTransport } from '../../src/cri/index.ts';
import { realClock, systemRandom } from '../../src/lib/index.ts';

/** The path of a containerd to test instead of the one on the PATH. */
const given = process.env['CONTAINERD_BIN'];
const cniDirs = ['/opt/cni/bin', '/usr/lib/cni', '/usr/libexec/cni'];

/** Returns why these tests cannot run on this machine; false if they can. */
export function skipReason(): string | false {
  if (process.getuid?.() !== 0) return 'needs root';
  const isFound = (name: string) =>
    (process.env['PATH'] ?? '').split(':').some((dir) => existsSync(join(dir, name)));
  if (given === undefined && !isFound('containerd')) return 'needs containerd';
  if (!isFound('runc')) return 'needs runc';
  if (!cniDirs.some((dir) => existsSync(join(dir, 'bridge')))) return 'needs the CNI plugins';
  return existsSync('/bin/busybox') ? false : 'needs a static busybox';
}

export const clock = realClock();
const execute = promisify(execFile);

export function containerdOptions(dataDir: string): PrivateContainerdOptions {
  return {
    dataDir,
    clock,
    random: systemRandom(),
    env: process.env,
    cgroupDriver: 'cgroupfs',
    ...(given === undefined ? {} : { containerd: given }),
  };
}

/** A data directory for one test, which is removed completely even if the test fails. */
export class TestDirectory implements AsyncDisposable {
  readonly path: string;

  private constructor(path: string) {
    this.path = path;
  }

  static async make(): Promise<TestDirectory> {
    return new TestDirectory(await mkdtemp(join(tmpdir(), 'klg-')));
  }

  async open(changed: Partial<PrivateContainerdOptions> = {}): Promise<PrivateContainerd> {
    return await openPrivateContainerd({ ...containerdOptions(this.path), ...changed });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const containerd = await this.open();
    const { problems } = await containerd.teardown({ images: 'remove' }, limit());
    await rm(this.path, { recursive: true });
    assert.deepEqual(problems, []);
  }
}

/** A signal that aborts a single wait after a generous limit. */
export function limit(ms = 60_000): AbortSignal {
  return AbortSignal.timeout(ms);
}

export async function until(condition: () => Promise<boolean> | boolean, what: string): Promise<void> {
  const signal = limit(120_000);
  while (!(await condition())) {
    assert(!signal.aborted, `it did not happen in time: ${what}`);
    await clock.sleep(20, new AbortController().signal);
  }
}

/** Runs the `ctr` that belongs to the containerd under test. */
export async function ctr(containerd: PrivateContainerd, ...args: readonly string[]): Promise<string> {
  const beside = given === undefined ? 'ctr' : join(given, '..', 'ctr');
  const { stdout } = await execute(beside, ['-a', containerd.layout.socket, '-n', 'k8s.io', ...args]);
  return stdout;
}

/** Starts a sleeping container without a pod; returns its process ID. */
export async function runContainer(containerd: PrivateContainerd, id: string): Promise<number> {
  await (await containerd.images()).importBusybox('/bin/busybox', limit());
  await ctr(containerd, 'run', '-d', '--null-io', busyboxImageName, id, 'sleep', '3600');
  return await taskPid(containerd, id);
}

export async function taskPid(containerd: PrivateContainerd, id: string): Promise<number> {
  const line = (await ctr(containerd, 'tasks', 'ls')).split('\n').find((row) => row.startsWith(id));
  const [, pid, status] = line?.split(/\s+/) ?? [];
  assert.equal(status, 'RUNNING', `${id}: ${line}`);
  return Number(pid);
}

export interface TestPod {
  readonly sandboxId: string;
  readonly containerId: string;
  readonly ip: string;
  /** Strings by which leftovers of this pod are recognized in a snapshot of the machine's state. */
  readonly words: readonly string[];
}

export function connect(containerd: PrivateContainerd): CriClient & Disposable {
  const transport = wireTransport({
    endpoint: `unix://${containerd.layout.socket}`,
    clock,
    random: systemRandom(),
  });
  const cri = createCriClient({ transport, clock });
  return { ...cri, [Symbol.dispose]: () => cri.close() };
}

/** Builds a pod with one container that serves its name over HTTP, also on a host port. */
export async function runPod(
  containerd: PrivateContainerd,
  name: string,
  hostPort: number,
): Promise<TestPod> {
  using cri = connect(containerd);
  await importImages(containerd, cri);
  const config = {
    metadata: { name, uid: `uid-${name}`, namespace: 'default', attempt: 0 },
    logDirectory: containerd.layout.dataDir,
    portMappings: [{ protocol: 'TCP' as const, containerPort: 80, hostPort }],
    linux: { cgroupParent: containerd.layout.cgroup },
  };
  const { podSandboxId } = await cri.runPodSandbox({ config }, limit());
  const script = `mkdir -p /www && echo ${name} >/www/index.html && exec httpd -f -p 80 -h /www`;
  const container = {
    metadata: { name: 'web', attempt: 0 },
    image: { image: busyboxImageName },
    command: ['sh', '-c', script],
    logPath: `${name}.log`,
    linux: { securityContext: { namespaceOptions: { pid: 'CONTAINER' as const } } },
  };
  const request = { podSandboxId, config: container, sandboxConfig: config };
  const { containerId } = await cri.createContainer(request, limit());
  await cri.startContainer({ containerId }, limit());
  const { status } = await cri.podSandboxStatus({ podSandboxId }, limit());
  const namespace = await readlink(`/proc/${await taskPid(containerd, podSandboxId)}/ns/net`);
  return {
    sandboxId: podSandboxId,
    containerId,
    ip: status?.network?.ip ?? '',
    words: [podSandboxId, containerId, namespace],
  };
}

/** An imported image appears in containerd's CRI a moment later, so the test waits for it. */
async function importImages(containerd: PrivateContainerd, cri: CriClient): Promise<void> {
  await (await containerd.images()).importBusybox('/bin/busybox', limit());
  for (const image of [busyboxImageName, pauseImageName]) {
    await until(
      async () => (await cri.imageStatus({ image: { image } }, limit())).image !== undefined,
      `${image} is listed`,
    );
  }
}

/** Sends HTTP requests to the address until it responds; returns the response. */
export async function httpGet(address: string): Promise<string> {
  let text = '';
  await until(async () => {
    const response = await fetch(`http://${address}/`, { signal: limit(2000) }).catch(() => undefined);
    text = (await response?.text()) ?? '';
    return text !== '';
  }, `${address} answers`);
  return text.trim();
}

export async function pidOf(containerd: PrivateContainerd): Promise<number> {
  return JSON.parse(await readFile(containerd.layout.pidFile, 'utf8')).pid;
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
