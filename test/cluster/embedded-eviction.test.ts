import assert from 'node:assert/strict';
import { existsSync, mkdtempDisposableSync, writeFileSync } from 'node:fs';
import { tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import type { Node, NodeCondition, Pod } from '../../src/kinds/index.ts';
import { crowdOfMachine } from '../crowd.ts';
import { MountedDisk } from '../disks/mounted-disk.ts';
import { container, pod, podSpec } from './cluster-pods.ts';
import { patiently } from './patiently.ts';
import { SmallCluster } from './small-cluster.ts';

interface EventList {
  readonly items: readonly {
    readonly reason: string;
    readonly message: string;
    readonly involvedObject: { readonly kind: string };
  }[];
}

const pressures = ['MemoryPressure', 'DiskPressure', 'PIDPressure'] as const;
type Pressure = (typeof pressures)[number];

/**
 * For each condition of the Node: its reason without pressure, and its reason with pressure. The
 * events have the same reasons.
 */
const reasons = {
  MemoryPressure: ['KubeletHasSufficientMemory', 'KubeletHasInsufficientMemory'],
  DiskPressure: ['KubeletHasNoDiskPressure', 'KubeletHasDiskPressure'],
  PIDPressure: ['KubeletHasSufficientPID', 'KubeletHasInsufficientPID'],
} as const;
const mebi = 1024 ** 2;
/** The allocatable memory of all pods together. */
const memoryOfPods = 1024 * mebi;
const stays = 'sleep 100000 & wait';

interface Asking {
  /**
   * The directory in which the test creates a file with the pod's name to make the pod's command
   * begin.
   */
  readonly signs: string;
  readonly command: string;
  readonly emptyDir?: object;
}

/** Builds a pod with a memory request, which is therefore admitted during memory pressure. */
function asking(name: string, nodeName: string, { signs, command, emptyDir = {} }: Asking): object {
  const waits = `while [ ! -e /signs/${name} ]; do sleep 0.05; done`;
  const main = container('main', {
    command: ['sh', '-c', `${waits}; ${command}`],
    resources: { requests: { memory: '1Mi' } },
    volumeMounts: [
      { name: 'scratch', mountPath: '/scratch' },
      { name: 'signs', mountPath: '/signs' },
    ],
  });
  const volumes = [
    { name: 'scratch', emptyDir },
    { name: 'signs', hostPath: { path: signs } },
  ];
  return pod(name, podSpec([main], { nodeName, volumes }));
}

it('the Node reports each pressure, rejects pods during it, and reports its end', {
  skip: process.getuid?.() === 0 ? false : 'needs root',
  timeout: 300_000,
}, async () => {
  using disk = new MountedDisk();
  using folder = mkdtempDisposableSync(join(tmpdir(), 'kubeling-signs-'));
  const signs = folder.path;
  const crowd = crowdOfMachine();
  await using cluster = await SmallCluster.openEmbedded(
    {},
    {
      folder: disk.path,
      config: {
        evictionHard: {
          'memory.available': '512Mi',
          'nodefs.available': '24Mi',
          'pid.available': String(crowd.threshold),
        },
        systemReserved: { memory: String(totalmem() - memoryOfPods) },
        evictionPressureTransitionPeriod: '5s',
        kernelMemcgNotification: true,
      },
      flags: ['--v=2'],
    },
  );
  const { plane, node } = cluster;
  const says = async (name: Pressure, status: 'True' | 'False'): Promise<NodeCondition | undefined> => {
    const find = ({ status: reported }: Node) => reported?.conditions?.find(({ type }) => type === name);
    const observed = await cluster.objectIs<Node>(
      `/api/v1/nodes/${node.name}`,
      `${status} of ${name}`,
      (each) => find(each)?.status === status,
    );
    assert.equal(find(observed)?.reason, reasons[name][status === 'True' ? 1 : 0]);
    return find(observed);
  };
  const evicted = async (name: string): Promise<string> => {
    const { status }: Pod = await cluster.phase(name, 'Failed');
    assert.equal(status?.reason, 'Evicted');
    return status?.message ?? '';
  };
  const refused = async (name: string): Promise<string> => {
    const message = await evicted(name);
    assert.deepEqual(await node.containersOf(name), []);
    return message;
  };
  const before = await Promise.all(pressures.map((name) => says(name, 'False')));

  const fill = (mebibytes: number) => `dd if=/dev/zero of=/scratch/x bs=1M count=${mebibytes}; ${stays}`;
  await plane.apply(
    asking('other', node.name, { signs, command: stays }),
    asking('greedy', node.name, { signs, command: fill(600), emptyDir: { medium: 'Memory' } }),
    asking('filler', node.name, { signs, command: fill(30) }),
    asking('crowd', node.name, { signs, command: crowd.script }),
  );
  // Waits until these pods run before any pressure begins, because a pod without stats would be
  // evicted first.
  for (const name of ['other', 'greedy', 'filler', 'crowd']) await cluster.phase(name, 'Running');
  const begin = (name: string) => writeFileSync(join(signs, name), '');
  begin('greedy');
  await says('MemoryPressure', 'True');
  if (existsSync('/sys/fs/cgroup/memory/cgroup.event_control'))
    assert.match(node.out, /Received memory notification of the kernel/);
  await plane.apply(pod('asks-for-nothing', podSpec([container('main')], { nodeName: node.name })));
  for (const name of ['filler', 'crowd']) begin(name);
  const short = pressures
    .filter((name) => name !== 'MemoryPressure')
    .map(async (name) => {
      await says(name, 'True');
      const late = `late-for-${name.toLowerCase()}`;
      await plane.apply(asking(late, node.name, { signs, command: stays }));
      assert.match(
        await refused(late),
        new RegExp(`^Pod was rejected: The node had condition: \\[(?:\\w+ )*${name}(?: \\w+)*\\]\\. $`),
      );
    });
  await Promise.all(short);
  assert.equal(
    await refused('asks-for-nothing'),
    'Pod was rejected: The node had condition: [MemoryPressure]. ',
  );
  for (const [name, resource, threshold, more] of [
    ['greedy', 'memory', '512Mi', consumption('memory')],
    ['filler', 'ephemeral-storage', '24Mi', `(?:${consumption('ephemeral-storage')})?`],
    ['crowd', 'pids', String.raw`\d+\w*`, ''],
  ] as const) {
    const what = String.raw`The node was low on resource: ${resource}\. Threshold quantity: ${threshold}, available: \d+\w*\. `;
    assert.match(await evicted(name), new RegExp(`^${what}${more}$`));
  }

  const after = await Promise.all(pressures.map((name) => says(name, 'False')));
  assert.deepEqual(after.map(told), before.map(told));
  await plane.apply(pod('afterwards', podSpec([container('main')], { nodeName: node.name })));
  for (const name of ['other', 'afterwards']) await cluster.phase(name, 'Running');

  let observed: readonly string[] = [];
  const expected = pressures.flatMap((name) =>
    reasons[name].map((reason) => reason.replace('Kubelet', 'Node')),
  );
  await patiently(
    'the events of the Node',
    async () => {
      const { items = [] } = (await plane.get<EventList>('/api/v1/namespaces/default/events')) ?? {};
      observed = items
        .filter(({ involvedObject }) => involvedObject.kind === 'Node')
        .map(({ reason }) => reason);
      return [...expected, 'EvictionThresholdMet'].every((reason) => observed.includes(reason)) || undefined;
    },
    () => observed.join(' '),
  );
});

function consumption(resource: string): string {
  return String.raw`Container main was using \d+\w*, request is \w+, has larger consumption of ${resource}\. `;
}

function told(condition: NodeCondition | undefined): readonly unknown[] {
  return [condition?.type, condition?.status, condition?.reason, condition?.message];
}
