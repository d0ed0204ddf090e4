import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, readlink, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { busyboxImageName } from '../../src/containerd/index.ts';
import { KubelingNode } from '../kubeling-node.ts';
import { skipReason } from './containerd-fixture.ts';

const closeOnExec = 0o2_000_000;
/**
 * Node.js closes only the first sixteen inherited descriptors itself, so the test uses a higher
 * one.
 */
const inherited = 40;

/** A pod whose containers run every kind of process: the main one, a probe and a hook. */
const pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'curious' },
  spec: {
    terminationGracePeriodSeconds: 0,
    containers: [
      {
        name: 'main',
        image: busyboxImageName,
        command: ['sleep', '1000'],
        lifecycle: { postStart: { exec: { command: ['true'] } } },
        readinessProbe: { exec: { command: ['true'] }, periodSeconds: 1 },
      },
    ],
  },
};

/** Returns the target of each descriptor of a process; empty for a process that has exited. */
async function descriptorsOf(pid: string): Promise<ReadonlyMap<string, string>> {
  const fds = await readdir(`/proc/${pid}/fd`).catch(() => []);
  const targets = fds.map(
    async (fd) => [fd, await readlink(`/proc/${pid}/fd/${fd}`).catch(() => '')] as const,
  );
  return new Map(await Promise.all(targets));
}

async function isPassedOn(pid: string, fd: string): Promise<boolean> {
  const info = await readFile(`/proc/${pid}/fdinfo/${fd}`, 'utf8').catch(() => '');
  const [, flags] = /^flags:\s*(\d+)/m.exec(info) ?? [];
  return flags !== undefined && (Number.parseInt(flags, 8) & closeOnExec) === 0;
}

/** CVE-2024-21626: a host descriptor that reaches a container lets it access the host. */
describe('open file descriptors of kubeling', { skip: skipReason() }, () => {
  let directory: string;
  let secret: string;
  let node: KubelingNode;

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'klg-descriptor-'));
    secret = join(directory, 'secret');
    await writeFile(secret, 'alive\n');
    // Starts kubeling from a shell that has a file open, whose descriptor kubeling inherits.
    const through = ['bash', '-c', `exec ${inherited}<${secret}; exec "$@"`, 'bash'];
    node = await KubelingNode.open(undefined, [], through);
    await node.put('curious.json', pod);
    await node.podIs(
      'curious',
      'ready',
      ({ containerStatuses = [] }) =>
        containerStatuses.length === 1 && containerStatuses.every(({ ready }) => ready),
    );
  });

  after(async () => {
    await node?.leave();
    await rm(directory, { recursive: true, force: true });
  });

  it('kubeling passes only the standard streams to its children', async () => {
    const pid = String(node.pid);
    const opened = [...(await descriptorsOf(pid))].filter(([fd]) => Number(fd) > 2);
    assert.ok(opened.length > 10, `${opened.length} descriptors`);
    const passed = await Promise.all(
      opened.map(async ([fd, to]) => ((await isPassedOn(pid, fd)) ? [`${fd} ${to}`] : [])),
    );
    assert.deepEqual(passed.flat(), []);
  });

  it('kubeling passes no inherited descriptor to the runtime or a container', async () => {
    const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name) && name !== String(node.pid));
    const found = await Promise.all(
      pids.map(async (pid) => {
        const holds = [...(await descriptorsOf(pid)).values()].includes(secret);
        return holds ? [await readFile(`/proc/${pid}/cmdline`, 'utf8')] : [];
      }),
    );
    assert.deepEqual(
      found.flat().map((line) => line.replaceAll('\0', ' ')),
      [],
    );
  });
});
